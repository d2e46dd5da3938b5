//! The connections of one agent: accepted, logged on, kept alive, ended with a reason.

use crate::counts::PeerCounts;
use crate::notice::{Notice, Notices, PeerEnd, Refusal};
use crate::peer::{Live, Peer, Stage};
use crate::registry::{Claim, Registry};
use crate::{Config, Side};
use fanfare_engine::poll::{self, Poller, Token};
use fanfare_engine::slots::Slots;
use fanfare_engine::tcp::{Connection, Received, Stream};
use fanfare_fix::session::{
    self, AppMessage, Event, MessageStore, NoResendStore, Now, Peek, SECOND, Scratch, Session,
    SessionId, Step, peek_logon,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// Events taken from the kernel in one turn.
const EVENTS: usize = 256;

/// How often timers are looked at, in nanoseconds. They are seconds long.
const TICK: u64 = SECOND / 10;

/// How long a shutdown waits for the answers to its Logouts.
const FAREWELL: Duration = Duration::from_millis(500);

/// What the peers of one side have in common.
#[derive(Clone)]
pub(crate) struct SideRules {
    side: Side,
    registry: Registry,
    template: session::Config,
    queue_bytes: usize,
    message_bytes: usize,
    logon_timeout: u64,
}

impl SideRules {
    pub(crate) fn new(config: &Config, side: &Side) -> Self {
        let nobody = SessionId::new(session::Version::Fix44, "", "");
        let logon_timeout = config.limits.logon_timeout_s * SECOND;
        let template = session::Config {
            logon_timeout,
            heart_bt_int_range: (0, u32::try_from(config.limits.heartbeat_max_s).unwrap_or(0)),
            max_message: config.limits.message_bytes,
            ..session::Config::new(nobody)
        };
        Self {
            side: side.clone(),
            registry: Registry::default(),
            template,
            queue_bytes: config.slow_consumer.queue_bytes,
            message_bytes: config.limits.message_bytes,
            logon_timeout,
        }
    }
}

/// Where application messages go.
pub(crate) trait Sink {
    /// Whether the messages of a read of so many bytes can be taken now. If not, the connection
    /// is left alone for this turn, and the kernel holds its bytes.
    fn has_room(&mut self, bytes: usize) -> bool;

    /// Takes one message.
    fn take(&mut self, message: &AppMessage<'_>);
}

/// Forgets what it gets: consumers have nothing to say to a fan-out.
pub(crate) struct Discard;

impl Sink for Discard {
    fn has_room(&mut self, _bytes: usize) -> bool {
        true
    }

    fn take(&mut self, _message: &AppMessage<'_>) {}
}

/// The connections of one agent.
pub(crate) struct Peers {
    rules: SideRules,
    poller: Poller,
    slots: Slots<Peer>,
    counts: PeerCounts,
    notices: Notices,
    /// Shared by all connections: each keeps only the bytes of a message that is not complete.
    buffer: Box<[u8]>,
    scratch: Scratch,
    next_tick: u64,
    /// Connections to end after the walk over all of them.
    ending: Vec<(Token, PeerEnd)>,
}

impl Peers {
    pub(crate) fn new(rules: SideRules, counts: PeerCounts, notices: Notices) -> io::Result<Self> {
        Ok(Self {
            poller: Poller::new(EVENTS)?,
            slots: Slots::new(),
            counts,
            notices,
            // One whole message may be kept, and a read must still have room.
            buffer: vec![0; 2 * rules.message_bytes].into_boxed_slice(),
            scratch: Scratch::new(rules.message_bytes),
            next_tick: 0,
            ending: Vec::new(),
            rules,
        })
    }

    /// Takes a new connection into the lobby, or turns it away.
    pub(crate) fn admit(&mut self, now: Now, stream: Stream) {
        let peer = stream.peer();
        if self.slots.len() >= self.rules.side.max_sessions {
            return self.refused(peer, Refusal::TooMany);
        }
        let mut connection = Connection::new(stream, self.rules.queue_bytes);
        if let Err(e) = connection.register(&self.poller, self.slots.next_token()) {
            self.counts.refused.increment(1);
            let end = PeerEnd::Broken(e.to_string());
            return self.notices.tell(Notice::Ended {
                session: None,
                peer,
                end,
                left_out: 0,
            });
        }
        let deadline = now.mono.saturating_add(self.rules.logon_timeout);
        self.slots.insert(Peer {
            connection,
            stage: Stage::Lobby { deadline },
        });
        self.counts.connections.set(self.slots.len() as u64);
    }

    pub(crate) fn refused(&self, peer: std::net::SocketAddr, why: Refusal) {
        self.counts.refused.increment(1);
        let end = PeerEnd::Refused(why);
        self.notices.tell(Notice::Ended {
            session: None,
            peer,
            end,
            left_out: 0,
        });
    }

    /// One turn: reads each connection that is ready once, writes what can be written, and looks
    /// after the timers when it is time. Gives the number of connections that were ready.
    pub(crate) fn turn(&mut self, now: Now, sink: &mut impl Sink) -> io::Result<usize> {
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        for i in 0..ready {
            let Some(event) = self.poller.event(i) else {
                break;
            };
            if let Err(end) = self.serve(now, event, sink) {
                self.end(now, event.token, end);
            }
        }
        if now.mono >= self.next_tick {
            self.next_tick = now.mono + TICK;
            self.tick(now);
        }
        Ok(ready)
    }

    /// Calls `each` for every logged-on session; one that gives an end is ended.
    pub(crate) fn for_each_live(
        &mut self,
        now: Now,
        mut each: impl FnMut(&mut Live, &mut Connection) -> Result<(), PeerEnd>,
    ) {
        for (token, peer) in self.slots.iter_mut() {
            let Stage::Live(live) = &mut peer.stage else {
                continue;
            };
            if !live.session.is_logged_on() {
                continue;
            }
            let done = each(live, &mut peer.connection)
                .and_then(|()| update_interest(&self.poller, token, &mut peer.connection));
            if let Err(end) = done {
                self.ending.push((token, end));
            }
        }
        self.end_marked(now);
    }

    /// Connections now.
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    pub(crate) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Logs every session out and waits a moment for the answers.
    pub(crate) fn say_goodbye(&mut self, now: Now) {
        self.for_each_live(now, |live, connection| {
            live.tell_holes(now, connection, usize::MAX)?;
            live.session.logout(now, "shutting down");
            live.transmit(now, connection)
        });
        let steps = FAREWELL.as_millis() / 10;
        for _ in 0..steps {
            if self.slots.is_empty() || self.poller.poll(Some(Duration::from_millis(10))).is_err() {
                break;
            }
            if self.turn(now, &mut Discard).is_err() {
                break;
            }
        }
        let left: Vec<Token> = self.slots.iter().map(|(token, _)| token).collect();
        for token in left {
            self.end(
                now,
                token,
                PeerEnd::Session(session::DisconnectReason::Closed),
            );
        }
    }

    /// Reads and writes one connection.
    fn serve(&mut self, now: Now, event: poll::Event, sink: &mut impl Sink) -> Result<(), PeerEnd> {
        // A token without a slot: its connection ended earlier in this turn.
        let Some(peer) = self.slots.get_mut(event.token) else {
            return Ok(());
        };
        let Peer { connection, stage } = peer;
        if event.is_writable() {
            connection.flush().map_err(broken)?;
        }
        if event.is_readable() && sink.has_room(self.buffer.len()) {
            let desk = Desk {
                now,
                rules: &self.rules,
                scratch: &mut self.scratch,
                counts: &self.counts,
                notices: &self.notices,
            };
            let mut outcome = Ok(());
            let received = connection.receive(&mut self.buffer, |connection, bytes| {
                let (done, result) = desk.understand(connection, stage, bytes, sink);
                outcome = result;
                done
            });
            outcome?;
            match received {
                Ok(Received::Closed) => return Err(closed(now, stage)),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(GARBLED),
                Err(e) => return Err(broken(e)),
            }
        }
        if let Stage::Live(live) = stage {
            live.transmit(now, connection)?;
            live.tell_holes(now, connection, self.rules.queue_bytes)?;
        }
        update_interest(&self.poller, event.token, connection)
    }

    /// Timers of all connections.
    fn tick(&mut self, now: Now) {
        for (token, peer) in self.slots.iter_mut() {
            let Peer { connection, stage } = peer;
            let done = match stage {
                Stage::Lobby { deadline } if now.mono >= *deadline => {
                    Err(PeerEnd::Refused(Refusal::LogonTimeout))
                }
                Stage::Lobby { .. } => Ok(()),
                Stage::Live(live) => {
                    let notice = live.report(now, connection.stream().peer());
                    notice.into_iter().for_each(|n| self.notices.tell(n));
                    look_after(now, live, connection)
                        .and_then(|()| update_interest(&self.poller, token, connection))
                }
            };
            if let Err(end) = done {
                self.ending.push((token, end));
            }
        }
        self.end_marked(now);
    }

    fn end_marked(&mut self, now: Now) {
        while let Some((token, end)) = self.ending.pop() {
            self.end(now, token, end);
        }
    }

    /// Frees the session before the socket closes: whoever sees the close may log on again.
    #[cold]
    fn end(&mut self, now: Now, token: Token, end: PeerEnd) {
        let Some(Peer { connection, stage }) = self.slots.remove(token) else {
            return;
        };
        let peer = connection.stream().peer();
        let (session, left_out) = match stage {
            Stage::Lobby { .. } => {
                self.counts.refused.increment(1);
                (None, 0)
            }
            Stage::Live(mut live) => {
                live.session.disconnected(now);
                live.keep_numbers();
                self.counts.ended.increment(1);
                (Some(live.claim.id().clone()), live.left_out)
            }
        };
        self.counts.connections.set(self.slots.len() as u64);
        self.notices.tell(Notice::Ended {
            session,
            peer,
            end,
            left_out,
        });
        let _ = connection.stream().finish();
    }
}

/// What it takes to understand the bytes of one connection.
struct Desk<'a> {
    now: Now,
    rules: &'a SideRules,
    scratch: &'a mut Scratch,
    counts: &'a PeerCounts,
    notices: &'a Notices,
}

impl Desk<'_> {
    /// Gives how many bytes are done with, and whether the connection goes on.
    fn understand(
        mut self,
        connection: &mut Connection,
        stage: &mut Stage,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> (usize, Result<(), PeerEnd>) {
        if let Stage::Lobby { .. } = stage {
            match self.welcome(bytes) {
                Ok(Some(live)) => *stage = Stage::Live(live),
                Ok(None) => return (0, Ok(())),
                Err(refusal) => return (0, Err(PeerEnd::Refused(refusal))),
            }
        }
        let Stage::Live(live) = stage else {
            return (0, Ok(()));
        };
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or(&[]);
            let step = live.session.handle_bytes(self.now, self.scratch, rest);
            if step.is_idle() {
                return (at, Ok(()));
            }
            let Step { consumed, event } = step;
            at += consumed;
            match event {
                Some(Event::App(message)) => sink.take(&message),
                Some(Event::LoggedOn { .. }) => {
                    self.counts.logons.increment(1);
                    let session = live.claim.id().clone();
                    let peer = connection.stream().peer();
                    self.notices.tell(Notice::LoggedOn { session, peer });
                }
                Some(Event::Disconnect(reason)) => {
                    // What the session still has to say goes out first, if it can.
                    let _ = live.transmit(self.now, connection);
                    return (at, Err(PeerEnd::Session(reason)));
                }
                _ => {}
            }
        }
    }

    /// Finds out who a Logon is from; `None` while it is not complete.
    fn welcome(&mut self, bytes: &[u8]) -> Result<Option<Box<Live>>, Refusal> {
        // A session skips noise in front of a message; a stranger has no claim to that.
        if !bytes.starts_with(MESSAGE_START) && !MESSAGE_START.starts_with(bytes) {
            return Err(Refusal::Garbled);
        }
        let limit = self.rules.template.max_header_field;
        let logon = match peek_logon(self.scratch.decoder(), bytes, limit) {
            Peek::Logon(logon) => logon,
            Peek::TooLong(field) => return Err(Refusal::TooLong(field)),
            Peek::Partial if bytes.len() < self.rules.message_bytes => return Ok(None),
            Peek::Partial | Peek::Garbled(_) => return Err(Refusal::Garbled),
            Peek::NotLogon => return Err(Refusal::NoLogon),
        };
        if !self.rules.side.admits(logon.sender, logon.target) {
            return Err(Refusal::UnknownSession);
        }
        let id = logon.session_id();
        let claim = self
            .rules
            .registry
            .claim(id)
            .ok_or(Refusal::AlreadyLoggedOn)?;
        Ok(Some(Box::new(self.open(claim))))
    }

    fn open(&self, claim: Claim) -> Live {
        let id = claim.id().clone();
        let config = session::Config {
            precision: id.version.precision(),
            id,
            ..self.rules.template.clone()
        };
        let mut store = NoResendStore::default();
        // This store keeps numbers in memory; setting them cannot fail.
        let _ = store.set_next_sender(claim.numbers.sender);
        let _ = store.set_next_target(claim.numbers.target);
        let mut session = Session::acceptor(config, store);
        session.connected(self.now);
        Live::new(session, claim)
    }
}

/// How every message begins.
const MESSAGE_START: &[u8] = b"8=FIX";

const GARBLED: PeerEnd = PeerEnd::Refused(Refusal::Garbled);

/// Timers of one session, and what they made it say.
fn look_after(now: Now, live: &mut Live, connection: &mut Connection) -> Result<(), PeerEnd> {
    if live.session.poll_timeout().is_none_or(|at| at > now.mono) {
        return Ok(());
    }
    live.session.handle_timeout(now);
    let mut end = Ok(());
    while let Some(event) = live.session.poll_event() {
        if let Event::Disconnect(reason) = event {
            end = Err(PeerEnd::Session(reason));
        }
    }
    live.transmit(now, connection).and(end)
}

fn update_interest(
    poller: &Poller,
    token: Token,
    connection: &mut Connection,
) -> Result<(), PeerEnd> {
    connection.update_interest(poller, token).map_err(broken)
}

/// The peer closed: the session knows why, if there is one.
fn closed(now: Now, stage: &mut Stage) -> PeerEnd {
    let Stage::Live(live) = stage else {
        return PeerEnd::Left;
    };
    live.session.disconnected(now);
    while let Some(event) = live.session.poll_event() {
        if let Event::Disconnect(reason) = event {
            return PeerEnd::Session(reason);
        }
    }
    PeerEnd::Session(session::DisconnectReason::ConnectionLost)
}

fn broken(error: io::Error) -> PeerEnd {
    PeerEnd::Broken(error.to_string())
}
