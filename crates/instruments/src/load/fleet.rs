//! Many initiators on one thread.

use std::io::{self, ErrorKind, IoSlice};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Poller, Token};
use fanfare_engine::tcp::{Connection, Received, SendError, Stream};
use fanfare_fix::session::{
    Config, Event, NoResendStore, Now, SECOND, Scratch, Session, SessionId, Version,
};

use super::LoadError;

/// One read takes at most this much; all sessions of the thread share the buffer.
const RECEIVE_BUFFER: usize = 256 << 10;
/// Bytes that may wait for the kernel in one session, besides those in its store.
const SEND_QUEUE: usize = 1 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often the sessions' timers (heartbeats, time-outs) are looked at.
const TIMER_LOOK: u64 = SECOND / 20;

/// Why a gateway closes without an answer, which is the only refusal that FIX lets it give.
const CLOSED_UNANSWERED: &str = "the gateway closed the connection without an answer: a session \
    with this CompID is logged on (--prefix and --first have others), is not on its list, or there \
    are as many as it takes";

/// Who connects to whom.
#[derive(Debug, Clone)]
pub(super) struct FleetOptions {
    pub(super) address: SocketAddr,
    /// CompIDs are this and a number.
    pub(super) name: String,
    /// The number in the first.
    pub(super) first: usize,
    /// TargetCompID(56).
    pub(super) target: String,
    pub(super) version: Version,
    /// Largest message sent.
    pub(super) max_send: usize,
}

/// Sessions with their connections, served by one reactor.
pub(super) struct Fleet {
    clients: Vec<Client>,
    poller: Poller,
    scratch: Scratch,
    buffer: Box<[u8]>,
    clock: Clock,
    timer_look_at: u64,
    refused: Refused,
}

/// Sessions that could not log on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refused {
    /// How many.
    pub count: usize,
    /// CompID of the first of them, and what happened to it.
    pub first: Option<(String, String)>,
}

impl Refused {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// One session on its connection.
pub(super) struct Client {
    /// Its number among all sessions of the run, from 0.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) session: Session<NoResendStore>,
    connection: Connection,
    /// Why it is over.
    ended: Option<String>,
    /// Whether, being over, it has been taken from the poller.
    closed: bool,
}

impl Fleet {
    /// Connects the sessions of these numbers and logs them on. Those that the gateway does not
    /// let in are left out, and counted.
    pub(super) fn connect(
        options: &FleetOptions,
        numbers: impl Iterator<Item = usize>,
    ) -> Result<Self, LoadError> {
        let mut fleet = Self {
            clients: Vec::new(),
            poller: Poller::new(1024)?,
            scratch: Scratch::default(),
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            clock: Clock::new(),
            timer_look_at: 0,
            refused: Refused::default(),
        };
        for number in numbers {
            let now = fleet.clock.read();
            let mut client = Client::connect(options, number, now)?;
            let token = Token(fleet.clients.len() as u64);
            client.connection.register(&fleet.poller, token)?;
            fleet.clients.push(client);
        }
        let is_settled = |c: &Client| c.session.is_logged_on() || c.ended.is_some();
        while !fleet.clients.iter().all(is_settled) {
            fleet.turn(Duration::from_millis(50), &mut |_, _| {})?;
        }
        fleet.leave_out()?;
        Ok(fleet)
    }

    /// Leaves out the sessions that are over.
    fn leave_out(&mut self) -> io::Result<()> {
        self.refused = Refused {
            count: self.ended(),
            first: self.first_ended(),
        };
        if self.refused.count == 0 {
            return Ok(());
        }
        self.clients.retain(|client| client.ended.is_none());
        // A token is the index of a client.
        for (index, client) in self.clients.iter_mut().enumerate() {
            self.poller.remove(&client.connection)?;
            client
                .connection
                .register(&self.poller, Token(index as u64))?;
        }
        Ok(())
    }

    /// The sessions that were not let in.
    pub(super) fn refused(&self) -> &Refused {
        &self.refused
    }

    /// Gives each session its number anew.
    pub(super) fn renumber(&mut self, mut number: impl FnMut(usize) -> usize) {
        for client in &mut self.clients {
            client.number = number(client.number);
        }
    }

    /// Time now; read once a turn.
    pub(super) fn now(&mut self) -> Now {
        self.clock.read()
    }

    pub(super) fn clients(&self) -> &[Client] {
        &self.clients
    }

    pub(super) fn client(&mut self, index: usize) -> Option<&mut Client> {
        self.clients.get_mut(index)
    }

    /// One turn: takes what has arrived, waiting at most `wait` for it, hands each event with the
    /// index of its session to `on_event`, and does what the sessions' timers ask for. Gives the
    /// bytes received.
    pub(super) fn turn(
        &mut self,
        wait: Duration,
        on_event: &mut impl FnMut(usize, &Event<'_>),
    ) -> io::Result<usize> {
        let ready = self.poller.poll(Some(wait))?;
        let now = self.clock.read();
        let mut received = 0;
        for at in 0..ready {
            let Some(event) = self.poller.event(at) else {
                break;
            };
            let index = event.token.0 as usize;
            let Some(client) = self.clients.get_mut(index) else {
                continue;
            };
            if event.is_readable() {
                let mut sink = |event: &Event<'_>| on_event(index, event);
                let (scratch, buffer) = (&mut self.scratch, &mut self.buffer);
                received += client.receive(now, scratch, buffer, &mut sink);
            }
            client.transmit(now);
            client.settle(&self.poller, event.token);
        }
        if now.mono >= self.timer_look_at {
            self.timer_look_at = now.mono + TIMER_LOOK;
            for (index, client) in self.clients.iter_mut().enumerate() {
                client.handle_timeout(now);
                client.settle(&self.poller, Token(index as u64));
            }
        }
        Ok(received)
    }

    /// Writes what a session has to say now, without waiting for the next turn.
    pub(super) fn transmit(&mut self, index: usize, now: Now) {
        if let Some(client) = self.clients.get_mut(index) {
            client.transmit(now);
            client.settle(&self.poller, Token(index as u64));
        }
    }

    /// The first session that is over, and why.
    pub(super) fn first_ended(&self) -> Option<(String, String)> {
        let ended = self
            .clients
            .iter()
            .find_map(|c| c.ended.as_ref().map(|why| (c, why)));
        ended.map(|(client, why)| (client.name.clone(), why.clone()))
    }

    /// How many sessions are over.
    pub(super) fn ended(&self) -> usize {
        self.clients.iter().filter(|c| c.ended.is_some()).count()
    }

    /// Logs all sessions out and waits for the answers, as long as the sessions themselves do.
    pub(super) fn logout(
        &mut self,
        on_event: &mut impl FnMut(usize, &Event<'_>),
    ) -> io::Result<()> {
        let now = self.clock.read();
        for (index, client) in self.clients.iter_mut().enumerate() {
            if client.ended.is_none() {
                client.session.logout(now, "");
                client.transmit(now);
                client.settle(&self.poller, Token(index as u64));
            }
        }
        let limit = now.mono + 5 * SECOND;
        while self.ended() < self.clients.len() && self.clock.read().mono < limit {
            self.turn(Duration::from_millis(20), on_event)?;
        }
        Ok(())
    }
}

impl Client {
    fn connect(options: &FleetOptions, number: usize, now: Now) -> Result<Self, LoadError> {
        let name = format!("{}{}", options.name, options.first + number);
        let address = options.address;
        let failed = |error| LoadError::Connect {
            session: name.clone(),
            address,
            error,
        };
        let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(failed)?;
        let stream = Stream::new(stream).map_err(failed)?;
        let mut config = Config::new(SessionId::new(options.version, &name, &options.target));
        config.reset_on_logon = true;
        config.max_send = options.max_send;
        let store = NoResendStore::new((256 << 10).max(4 * options.max_send));
        let mut session = Session::initiator(config, store);
        session.connected(now);
        let connection = Connection::new(stream, SEND_QUEUE);
        let mut client = Self {
            number,
            name,
            session,
            connection,
            ended: None,
            closed: false,
        };
        client.transmit(now);
        Ok(client)
    }

    /// Whether everything it had to say is with the kernel.
    pub(super) fn is_flushed(&self) -> bool {
        self.connection.queued() == 0 && self.session.poll_transmit().is_empty()
    }

    fn receive(
        &mut self,
        now: Now,
        scratch: &mut Scratch,
        buffer: &mut [u8],
        sink: &mut impl FnMut(&Event<'_>),
    ) -> usize {
        let (session, ended) = (&mut self.session, &mut self.ended);
        let received = self.connection.receive(buffer, |_, bytes| {
            let mut at = 0;
            loop {
                let step = session.handle_bytes(now, scratch, bytes.get(at..).unwrap_or_default());
                at += step.consumed;
                match &step.event {
                    Some(Event::Disconnect(why)) => *ended = Some(why.to_string()),
                    Some(event) => sink(event),
                    None if step.consumed == 0 => return at,
                    None => {}
                }
            }
        });
        match received {
            Ok(Received::Bytes(n)) => return n,
            Ok(Received::Nothing) => {}
            Ok(Received::Closed) => self.closed(now),
            Err(error) => self.broken(now, &error),
        }
        0
    }

    fn handle_timeout(&mut self, now: Now) {
        if self.session.poll_timeout().is_some_and(|at| at <= now.mono) {
            self.session.handle_timeout(now);
            self.transmit(now);
        }
    }

    /// Hands what the session has to say to the connection. What finds no room stays with the
    /// session.
    fn transmit(&mut self, now: Now) {
        if self.connection.queued() > 0
            && let Err(error) = self.connection.flush()
        {
            return self.broken(now, &error);
        }
        loop {
            let bytes = self.session.poll_transmit();
            let len = bytes.len();
            if len == 0 {
                return;
            }
            match self.connection.send(&[IoSlice::new(bytes)]) {
                Ok(_) => self.session.transmitted(len),
                Err(SendError::Overflow(_)) => return,
                Err(SendError::Io(error)) => return self.broken(now, &error),
            }
        }
    }

    /// Takes the events that came without bytes, and ends the connection of a session that is
    /// over, or asks the poller for what it now waits for.
    fn settle(&mut self, poller: &Poller, token: Token) {
        while let Some(event) = self.session.poll_event() {
            if let Event::Disconnect(why) = event {
                self.ended.get_or_insert(why.to_string());
            }
        }
        if self.ended.is_none()
            && let Err(error) = self.connection.update_interest(poller, token)
        {
            self.ended = Some(error.to_string());
        }
        if self.ended.is_some() && !self.closed {
            // Both fail only when the connection is gone already.
            let _ = self.connection.stream().finish();
            let _ = poller.remove(&self.connection);
            self.closed = true;
        }
    }

    /// A gateway that closes before it has read our Logon resets the connection.
    fn broken(&mut self, now: Now, error: &io::Error) {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => self.closed(now),
            _ => self.lost(now, &error.to_string()),
        }
    }

    fn closed(&mut self, now: Now) {
        let why = if self.session.is_logged_on() {
            "the gateway closed the connection"
        } else {
            CLOSED_UNANSWERED
        };
        self.lost(now, why);
    }

    fn lost(&mut self, now: Now, why: &str) {
        self.session.disconnected(now);
        self.ended.get_or_insert_with(|| why.to_owned());
    }
}
