//! The thread of a live feed: connections, one after the other.

use super::super::dbn::DbnPlace;
use super::super::piece::{Piece, Step};
use super::client::{Client, Terms};
use super::config::{LONGEST_RETRY, LiveFeed, LiveSource};
use super::follow::{Follow, Note};
use crate::counts::SourceCounts;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::feed::session::config::split;
use crate::gateway::plan::Plan;
use crate::notice::{Limit, Notice, Notices};
use crate::users::DbnKey;
use fanfare_engine::clock;
use fanfare_engine::poll::Waker;
use fanfare_engine::stop::Stop;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The bytes that are received at once.
const ROOM: usize = 64 << 10;
/// The time for which more bytes are awaited: of a message whose end has not come, and otherwise
/// until the stop of the gateway is looked for.
const QUIET: Duration = Duration::from_millis(5);
const IDLE: Duration = Duration::from_millis(100);
/// The longest time until a connection is accepted, and until it takes what is sent.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest time until the session is started, in seconds.
const GREETING: u64 = 30;
/// The silence beyond two heartbeats after which a session has ended, in seconds.
const GRACE: u64 = 5;
/// The length of a session after which pauses begin with the first one again.
const STEADY: Duration = Duration::from_secs(10);
/// The length of a session after which subscriptions without a known symbol are requested again.
const ANEW: Duration = Duration::from_secs(60);

/// The thread of a feed.
pub(super) struct Live {
    source: LiveSource,
    key: DbnKey,
    follow: Follow,
    piece: Piece,
    pieces: SyncSender<Step>,
    waker: Waker,
    /// The time at which the session was started.
    on_since: Option<Instant>,
    /// The place of the host that is tried next, and of those behind it.
    host: usize,
    counts: SourceCounts,
    channel: Arc<str>,
    notices: Notices,
    limit: Limit,
    stop: Stop,
    /// The thread ends when its market is dropped.
    life: Weak<()>,
}

/// The reason why a session has ended.
enum Ended {
    /// The gateway that the feed is of stops.
    Stop,
    /// The connection, for this reason.
    Lost(String),
}

impl From<String> for Ended {
    fn from(why: String) -> Self {
        Self::Lost(why)
    }
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        Self::Lost(format!("the connection is broken: {error}"))
    }
}

impl Live {
    pub(super) fn new(
        feed: &LiveFeed,
        key: DbnKey,
        place: DbnPlace,
        (pieces, waker): (SyncSender<Step>, Waker),
        life: &Arc<()>,
        plan: Plan<'_>,
    ) -> Self {
        Self {
            source: feed.source.clone(),
            key,
            follow: Follow::new(&feed.source, place),
            piece: Piece::default(),
            pieces,
            waker,
            on_since: None,
            host: 0,
            counts: SourceCounts::new(plan.counters, &feed.channel),
            channel: feed.channel.as_str().into(),
            notices: plan.notices.clone(),
            limit: Limit::default(),
            stop: plan.stop.clone(),
            life: Arc::downgrade(life),
        }
    }

    /// Connects until the gateway stops.
    pub(super) fn run(mut self) {
        let first = Duration::from_millis(self.source.retry_ms);
        let mut pause = first;
        loop {
            let Err(Ended::Lost(why)) = self.session() else {
                return;
            };
            let on_since = self.on_since;
            if self.end().is_err() {
                return;
            }
            if on_since.is_some_and(|since| since.elapsed() >= STEADY) {
                pause = first;
            }
            // A host that accepts connections and starts no session holds up none behind it.
            self.host = match on_since {
                Some(_) => 0,
                None => self.host + 1,
            };
            let millis = pause.as_millis();
            let what = format!("{why}; the next connection follows in {millis} ms");
            self.tell(what, true);
            if !self.wait(pause) {
                return;
            }
            pause = (pause * 2).min(Duration::from_millis(LONGEST_RETRY));
        }
    }

    /// Ends a session that has been started.
    fn end(&mut self) -> Result<(), Ended> {
        self.tell_notes();
        if self.on_since.take().is_none() {
            return Ok(());
        }
        self.counts.ended.increment(1);
        self.counts.logged_on.set(0);
        self.follow.lose(&mut self.piece);
        self.flush()
    }

    /// Waits before the next connection. Returns false if the gateway stops.
    fn wait(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(IDLE));
        }
        false
    }

    fn is_over(&self) -> bool {
        self.stop.is_raised() || self.life.strong_count() == 0
    }

    /// Follows one connection to its end.
    fn session(&mut self) -> Result<(), Ended> {
        let mut stream = self.connect()?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(CONNECT))?;
        stream.set_read_timeout(Some(IDLE))?;
        let starts = self.follow.starts(clock::utc()).to_vec();
        let mut client = Client::new();
        let mut room = vec![0; ROOM];
        let begun = Instant::now();
        let (mut heard, mut wait) = (begun, IDLE);
        while !self.is_over() {
            match receive(&mut stream, &mut room)? {
                [] => {
                    self.check_silence(heard)?;
                    // Half a record is the next one of the message.
                    if client.rest().is_empty() {
                        self.follow.pass_on(true, &mut self.piece);
                    }
                }
                bytes => {
                    heard = Instant::now();
                    self.counts.heard.set(clock::utc() / 1_000_000);
                    client.take(bytes)?;
                    self.advance(&mut client, &starts, &mut stream)?;
                }
            }
            if self.on_since.is_none() {
                self.check_silence(begun)?;
            }
            self.flush()?;
            if begun.elapsed() >= ANEW && self.follow.lacks_symbols() {
                let why = "a subscription had no symbol that the gateway knows".to_owned();
                return Err(why.into());
            }
            let next = if self.follow.is_open() { QUIET } else { IDLE };
            if next != wait {
                stream.set_read_timeout(Some(next))?;
                wait = next;
            }
        }
        Err(Ended::Stop)
    }

    fn connect(&mut self) -> Result<TcpStream, Ended> {
        let mut why = "no host has an address".to_owned();
        let hosts = &self.source.hosts;
        self.host %= hosts.len().max(1);
        for at in (self.host..hosts.len()).chain(0..self.host) {
            let Some((host, address)) = hosts.get(at).and_then(|host| Some((host, split(host)?)))
            else {
                continue;
            };
            let addresses = match address.to_socket_addrs() {
                Ok(addresses) => addresses,
                Err(error) => {
                    why = format!("cannot find {host}: {error}");
                    continue;
                }
            };
            for address in addresses {
                if self.is_over() {
                    return Err(Ended::Stop);
                }
                match TcpStream::connect_timeout(&address, CONNECT) {
                    Ok(stream) => {
                        self.host = at;
                        return Ok(stream);
                    }
                    Err(error) => why = format!("cannot connect to {host}: {error}"),
                }
            }
        }
        Err(why.into())
    }

    /// Checks that not too much time has passed since the last bytes, or, before the session is
    /// started, since the beginning of the connection.
    fn check_silence(&self, heard: Instant) -> Result<(), Ended> {
        let most = match self.on_since {
            Some(_) => 2 * self.source.heartbeat_s + GRACE,
            None => GREETING,
        };
        match heard.elapsed().as_secs() > most {
            true => Err(format!("the gateway has sent nothing for {most} s").into()),
            false => Ok(()),
        }
    }

    /// Processes the bytes that have arrived.
    fn advance(
        &mut self,
        client: &mut Client,
        starts: &[Option<u64>],
        stream: &mut TcpStream,
    ) -> Result<(), Ended> {
        if self.on_since.is_none() {
            let terms = Terms {
                key: &self.key,
                dataset: &self.source.dataset,
                heartbeat_s: self.source.heartbeat_s,
                requests: &self.source.subscribe,
                starts,
            };
            let is_started = client.lines(&terms)?;
            stream.write_all(&client.out())?;
            if !is_started {
                return Ok(());
            }
            self.begin();
        }
        while let Some(len) = self.follow.read(client.rest(), &mut self.piece)? {
            client.skip(len);
            if self.piece.is_full() {
                self.flush()?;
            }
        }
        self.follow.pass_on(false, &mut self.piece);
        self.counts.messages.set(self.follow.records());
        self.tell_notes();
        Ok(())
    }

    fn begin(&mut self) {
        self.on_since = Some(Instant::now());
        self.counts.logons.increment(1);
        self.counts.logged_on.set(1);
        let requests = self.source.subscribe.len() as u64;
        self.counts.requests.increment(requests);
        self.follow.begin(clock::utc(), &mut self.piece);
        self.tell_notes();
    }

    /// Hands what was read to the thread of the feeds, for which it waits.
    fn flush(&mut self) -> Result<(), Ended> {
        if self.piece.marks.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        let sent = self.pieces.send(Step::Piece(piece));
        self.waker.wake();
        sent.map_err(|_| Ended::Stop)
    }

    fn tell_notes(&mut self) {
        for note in self.follow.notes() {
            match note {
                Note::Event(what) => self.tell(what, false),
                Note::Trouble(what) => self.tell(what, true),
                Note::Refused(what) => {
                    self.counts.refused.increment(1);
                    self.tell(format!("a subscription is refused: {what}"), true);
                }
                Note::Lost(what) => {
                    self.counts.losses.increment(1);
                    self.tell(what, true);
                }
            }
        }
    }

    fn tell(&mut self, what: String, is_trouble: bool) {
        if self.limit.lets(clock::utc().cast_signed()) {
            let channel = Arc::clone(&self.channel);
            let what = MarketNotice::Session { what, is_trouble };
            let notice = FeedNotice::Market { channel, what };
            self.notices.send(Notice::Feed(notice));
        }
    }
}

/// Receives the bytes that are there, or waits for some. Returns none if none have come.
fn receive<'a>(stream: &mut TcpStream, room: &'a mut [u8]) -> Result<&'a [u8], Ended> {
    let read = match stream.read(room) {
        Ok(0) => return Err("the gateway has closed the connection".to_owned().into()),
        Ok(read) => read,
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => 0,
            _ => return Err(error.into()),
        },
    };
    Ok(room.get(..read).unwrap_or_default())
}
