//! The agent that runs sessions.

mod agent;
mod ending;
mod logon;
mod ports;
mod run;

use super::HostError;
use super::connection::Connection;
use super::handle::Remote;
use super::handler::{Handler, Peers};
use super::hosted::turn::{Guarded, INTERNAL_ERROR, Life, Workbench};
use super::hosted::{Hosted, Link, Prepared};
use super::log::LogTap;
use super::peer::SessionKey;
use super::settings::Initiator;
use crate::clock::Clock;
use crate::poll::{Poller, Token};
use crate::slots::Slots;
use crate::tcp::Attempt;
use crate::throttle::Throttle;
use ending::Ending;
use fanfare_fix::session::{Config, DisconnectReason, Now, SECOND, Scratch};
use ports::HostPort;
use std::any::Any;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs any number of FIX sessions on one thread, as an [`Agent`](crate::agent::Agent). A host that
/// is stopped closes its ports, logs all sessions out and waits for the responses, at most as long
/// as the sessions' logout timeouts.
pub struct Host<H> {
    name: String,
    pub(super) bench: Workbench<H>,
    pub(super) remote: Remote,
    pub(super) clock: Clock,
    pub(super) poller: Poller,
    pub(super) slots: Slots<Slot>,
    pub(super) hosted: Vec<Hosted>,
    /// The places of sessions that were removed.
    pub(super) vacant: Vec<SessionKey>,
    /// The ports, by numbers that are not reused.
    pub(super) ports: HashMap<usize, HostPort>,
    pub(super) next_port: usize,
    /// The senders of wrong passwords, at all ports.
    throttle: Throttle,
    /// The limit of IDs in the header of a Logon; `None` while nothing is hosted.
    pub(super) header_field_limit: Option<usize>,
    /// Sessions that have a connection.
    live: Vec<SessionKey>,
    /// The time of the next check of timers.
    next_scan: u64,
    turn: u32,
    /// Whether the last duty cycle had work.
    busy: bool,
    /// Whether the thread sleeps in the kernel at times: all connections have to wake it.
    sleeps: bool,
    /// Whether the host waits for the message log.
    held: bool,
    /// Whether connections had to be watched, and whether the host waited for the log, at the last
    /// call of [`watch_as_needed`](Self::watch_as_needed).
    habits: (bool, bool),
    /// The time from which `on_turn` is called again after a panic.
    next_application: u64,
    closing: bool,
}

/// The owner of a token.
pub(super) enum Slot {
    Port(usize),
    Link(SessionKey),
    Ending(Box<Ending>),
}

impl Slot {
    /// Returns when the connection is to be closed.
    fn deadline(&self) -> Option<u64> {
        match self {
            Self::Ending(ending) => Some(ending.deadline()),
            Self::Port(_) | Self::Link(_) => None,
        }
    }
}

/// Events taken from the kernel in one duty cycle.
const EVENTS: usize = 256;
/// Capacity of the receive buffer beyond the longest message.
const ROOM: usize = 256 << 10;
/// The interval at which timers are checked: none of them needs a shorter one.
const SCAN: u64 = 1_000_000;
/// Each scan checks every session. Every further 64 sessions make the interval a [`SCAN`] longer,
/// up to a tenth of a second.
const SESSIONS_PER_SCAN: u64 = 64;
const MOST_SCANS: u64 = 100;
/// With no more connections than this, each is simply read, without asking the kernel which one is
/// ready: one system call less between a message and its response. They are not watched either,
/// unless the thread sleeps.
const DIRECT: usize = 2;
/// Duty cycles between two polls of the kernel while anything else is watched: connections that
/// have not logged on, that end, or that wait for space to send. New connections are polled for
/// once a [`SCAN`].
const ASK: u32 = 16;
/// The interval at which an initiator checks whether its hours have begun.
const CLOSED: u64 = SECOND;
/// The time for the counterparty to read our last bytes and to close.
const ENDING: u64 = SECOND;

impl<H: Handler> Host<H> {
    /// Makes a host of no sessions yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(handler: H) -> io::Result<Self> {
        let bench = Workbench {
            handler: Guarded { handler, panics: 0 },
            scratch: Scratch::new(0),
            buffer: Box::default(),
            received: 0,
            log: None,
            resending: VecDeque::new(),
            pending: VecDeque::new(),
        };
        let poller = Poller::new(EVENTS)?;
        Ok(Self {
            name: "fix".to_owned(),
            bench,
            remote: Remote::new(&poller)?,
            clock: Clock::new(),
            poller,
            slots: Slots::new(),
            hosted: Vec::new(),
            vacant: Vec::new(),
            ports: HashMap::new(),
            next_port: 0,
            throttle: Throttle::default(),
            header_field_limit: None,
            live: Vec::new(),
            next_scan: 0,
            turn: 0,
            busy: false,
            sleeps: false,
            held: false,
            habits: (false, false),
            next_application: 0,
            closing: false,
        })
    }

    /// Names the agent, for threads and messages: "fix" by default.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Hosts an initiator, which connects when the host runs.
    ///
    /// # Errors
    /// The session is hosted already, or its store cannot be opened.
    pub fn initiate(&mut self, initiator: Initiator) -> Result<SessionKey, HostError> {
        let now = self.clock.read();
        self.add(initiator.prepare(now)?)
    }

    /// Copies all messages from now on to a log that another thread writes: the other end is a
    /// [`MessageLog`](super::MessageLog).
    pub fn log_to(&mut self, mut tap: LogTap) {
        for (index, hosted) in self.hosted.iter().enumerate() {
            tap.name(index, &hosted.session.config().id);
        }
        self.bench.log = Some(tap);
    }

    /// Returns the application.
    pub fn handler(&mut self) -> &mut H {
        &mut self.bench.handler.handler
    }

    /// Returns the number of calls of the handler that panicked.
    #[must_use]
    pub const fn panics(&self) -> u64 {
        self.bench.handler.panics
    }

    /// Adds a session, in the place of a removed one if there is one, and reports repairs of its
    /// store to the handler.
    pub(super) fn add(&mut self, prepared: Prepared) -> Result<SessionKey, HostError> {
        let Prepared {
            mut hosted,
            recoveries,
        } = prepared;
        let config = hosted.session.config();
        let id = config.id.clone();
        if self.remote.key(&id).is_some() {
            return Err(HostError::Duplicate(id));
        }
        let is_free = |key: &SessionKey| self.logged_endings(*key) == [None, None];
        let vacant = self.vacant.iter().rposition(is_free);
        let vacant = vacant.map(|at| self.vacant.swap_remove(at));
        let key = vacant.unwrap_or(SessionKey(self.hosted.len()));
        self.make_room(config);
        for recovery in recoveries.iter().filter(|found| !found.is_unremarkable()) {
            let guarded = &mut self.bench.handler;
            guarded.call(Some(&id), |handler| handler.on_recovery(&id, recovery));
        }
        if let Some(log) = &mut self.bench.log {
            log.name(key.0, &id);
        }
        hosted.serial = self.remote.add(key, config);
        match self.hosted.get_mut(key.0) {
            Some(place) => *place = hosted,
            None => self.hosted.push(hosted),
        }
        Ok(key)
    }

    /// Enlarges the shared buffers for the longest message of any session, and the limit of IDs for
    /// the longest ID.
    pub(super) fn make_room(&mut self, config: &Config) {
        let limit = config.header_field_limit();
        let limit = self.header_field_limit.unwrap_or(0).max(limit);
        if self.header_field_limit != Some(limit) {
            self.header_field_limit = Some(limit);
            let ports = self.ports.values_mut();
            ports.for_each(|own| own.port.set_max_header_field(limit));
        }
        let max_message = config.max_message;
        if self.bench.buffer.len() < max_message + ROOM {
            self.bench.buffer = vec![0; max_message + ROOM].into_boxed_slice();
            self.bench.scratch = Scratch::new(max_message);
        }
    }

    /// Assigns a connection to a session, with the bytes already read from it.
    pub(super) fn attach(
        &mut self,
        key: SessionKey,
        connection: Connection,
        now: Now,
        bytes: &[u8],
    ) {
        let stream = self.next_stream(key, now);
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        let token = self.slots.insert(Slot::Link(key));
        self.live.push(key);
        hosted.link = Some(Link::new(connection, token, stream));
        if let Some(log) = &mut self.bench.log {
            log.begins(stream);
        }
        hosted.session.connected(now);
        let mut life = hosted.drain(key, now, &mut self.bench);
        if life == Life::GoesOn && !bytes.is_empty() {
            life = hosted.feed(key, now, &mut self.bench, bytes);
        }
        self.after(key, now, life);
        self.note_pending(key);
        self.watch_as_needed(now);
    }

    /// Returns whether connections have to be watched.
    fn watches(&self) -> bool {
        self.sleeps || self.live.len() > DIRECT
    }

    /// Watches all connections, or none, if their number or the thread's habits have changed.
    fn watch_as_needed(&mut self, now: Now) {
        let habits = (self.watches(), self.held);
        if std::mem::replace(&mut self.habits, habits) == habits {
            return;
        }
        for index in (0..self.live.len()).rev() {
            if let Some(&key) = self.live.get(index) {
                self.after(key, now, Life::GoesOn);
            }
        }
        self.watch_endings();
    }

    /// Does what follows a session's duty cycle: watches its connection, or ends it.
    fn after(&mut self, key: SessionKey, now: Now, life: Life) {
        let reads = self.watches();
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        if life == Life::GoesOn
            && hosted
                .update_interest(&self.poller, reads, self.held)
                .is_ok()
        {
            return;
        }
        self.tear_down(key, now, life);
    }

    /// Takes the connection from its session. That of a session that has ended is closed once its
    /// last bytes are sent, another one at once.
    fn tear_down(&mut self, key: SessionKey, now: Now, life: Life) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        // A counterparty that did not respond to our Logout in time has less for the rest.
        let linger = ENDING.min(hosted.session.config().logout_timeout);
        if life == Life::Ended {
            hosted.queue_rest();
        }
        let link = hosted.part(key, now, &mut self.bench);
        if let Some(connector) = &mut hosted.connector {
            connector.lost(now.mono);
        }
        self.live.retain(|&live| live != key);
        self.leave(key, now);
        match link {
            Some(link) if life == Life::Ended => self.end(key, link, now.mono + linger, now),
            Some(link) => drop(self.slots.remove(link.token)),
            None => {}
        }
    }

    fn receive(&mut self, key: SessionKey, now: Now) -> usize {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return 0;
        };
        let (work, life) = hosted.receive(key, now, &mut self.bench);
        if work > 0 {
            self.after(key, now, life);
        }
        self.note_pending(key);
        work
    }

    /// Notes that a connection has received bytes that no event reports, if it has.
    fn note_pending(&mut self, key: SessionKey) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        let link = hosted.link.as_ref();
        if link.is_some_and(|link| link.connection.transport.has_pending())
            && !std::mem::replace(&mut hosted.pending, true)
        {
            self.bench.pending.push_back(key);
        }
    }

    /// Reads the connections that have received bytes which no event reports.
    fn receive_pending(&mut self, now: Now) -> usize {
        let mut work = 0;
        for _ in 0..self.bench.pending.len() {
            let Some(key) = self.bench.pending.pop_front() else {
                break;
            };
            if let Some(hosted) = self.hosted.get_mut(key.0) {
                hosted.pending = false;
            }
            work += self.receive(key, now);
        }
        work
    }

    /// Reads all connections without asking the kernel which is ready.
    fn receive_directly(&mut self, now: Now) -> usize {
        let mut work = 0;
        for index in (0..self.live.len()).rev() {
            if let Some(&key) = self.live.get(index) {
                work += self.receive(key, now);
            }
        }
        work
    }

    /// Returns whether timers are checked in this duty cycle. After a duty cycle with work they may
    /// be checked early: its messages are on their way, and the next message is farther off than at
    /// any other time. So timers seldom stand between a message and its response.
    fn scans(&self, now: Now, work: usize) -> bool {
        let early = if self.busy && work == 0 { SCAN / 2 } else { 0 };
        now.mono + early >= self.next_scan
    }

    /// Returns whether the kernel is polled in a duty cycle that has not needed it.
    fn asks(&self, work: usize) -> bool {
        (self.sleeps && work == 0) || (self.turn.is_multiple_of(ASK) && self.awaits_events())
    }

    /// Returns whether anything but ports is watched.
    fn awaits_events(&self) -> bool {
        let links = self.live.iter().filter_map(|key| self.hosted.get(key.0));
        let unwatched = links
            .filter(|hosted| hosted.link.as_ref().is_some_and(|link| !link.is_watched()))
            .count();
        let waiting = || self.ports.values().any(|own| !own.port.is_empty());
        self.slots.len() > self.ports.len() + unwatched || waiting()
    }

    fn poll(&mut self, now: Now) -> io::Result<usize> {
        let mut work = self.receive_pending(now);
        let count = self.poller.poll(Some(Duration::ZERO))?;
        for index in 0..count {
            let Some(event) = self.poller.event(index) else {
                break;
            };
            work += match self.slots.get(event.token) {
                Some(&Slot::Port(port)) => self.serve_port(port, now)?,
                Some(&Slot::Link(key)) => {
                    let mut done = 0;
                    if event.is_writable() {
                        done += self.write(key, now);
                    }
                    if event.is_readable() {
                        done += self.receive(key, now);
                    }
                    done
                }
                Some(Slot::Ending(_)) => self.serve_ending(event.token, now),
                None => 0,
            };
        }
        Ok(work)
    }

    pub(super) fn write(&mut self, key: SessionKey, now: Now) -> usize {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return 0;
        };
        let life = hosted.drain(key, now, &mut self.bench);
        self.after(key, now, life);
        1
    }

    /// Calls the handler's `on_turn`.
    fn application(&mut self, now: Now) -> usize {
        if now.mono < self.next_application {
            return 0;
        }
        self.with_peers(now, H::on_turn)
    }

    /// Calls the handler with all sessions, and writes what it has put into them. Returns an amount
    /// of work, even if it panics.
    fn with_peers(
        &mut self,
        now: Now,
        call: impl FnOnce(&mut H, &mut Peers<'_>) -> usize,
    ) -> usize {
        let mut peers = Peers {
            now,
            hosted: &mut self.hosted,
            last: None,
            touched: Cell::new(false),
            is_logged: self.bench.log.is_some(),
        };
        let call = AssertUnwindSafe(|| call(&mut self.bench.handler.handler, &mut peers));
        let called = catch_unwind(call);
        let last = peers.last;
        // A panic ends the session that was taken last.
        let touched = peers.touched.get() || called.is_err();
        let work = match called {
            Ok(work) => work,
            Err(panic) => self.application_panicked(last, now, &*panic),
        };
        // Whatever amount of work the handler returns, a session that it touched may have ended.
        // Handlers look at sessions in each turn, which must not cost a walk over all of them.
        if touched {
            self.flush_touched(now);
        }
        work
    }

    /// Reports to the handler that the host is stopped.
    fn call_on_close(&mut self, now: Now) {
        self.with_peers(now, |handler, peers| {
            handler.on_close(peers);
            0
        });
    }

    /// Ends the session that the handler took last, and delays the next `on_turn`, as it may well
    /// panic again.
    #[cold]
    fn application_panicked(
        &mut self,
        last: Option<SessionKey>,
        now: Now,
        panic: &(dyn Any + Send),
    ) -> usize {
        self.next_application = now.mono + SECOND;
        let hosted = last.and_then(|key| self.hosted.get_mut(key.0));
        let session = hosted.map(|hosted| {
            hosted.touched = true;
            &mut hosted.session
        });
        let id = session.as_ref().map(|session| &session.config().id);
        self.bench.handler.panicked(id, panic);
        if let Some(session) = session {
            session.abandon(now, INTERNAL_ERROR, DisconnectReason::ApplicationPanicked);
        }
        1
    }

    /// Returns whether the host waits for space in the message log.
    pub(super) fn is_held(&mut self, now: Now) -> bool {
        let log = self.bench.log.as_mut();
        let held = log.is_some_and(|log| log.holds(now));
        if held != self.held {
            self.held = held;
            self.watch_as_needed(now);
        }
        held
    }

    /// Reports changes of the message log to the handler.
    fn report_log(&mut self) {
        let Workbench { handler, log, .. } = &mut self.bench;
        let Some(log) = log else {
            return;
        };
        log.look();
        let hosted = &self.hosted;
        let name = |session: usize| Some(&hosted.get(session)?.session.config().id);
        while let Some(trouble) = log.trouble(name) {
            handler.call(None, |handler| handler.on_log(&trouble));
        }
    }

    /// Writes the messages that the application has put into sessions outside their own duty
    /// cycles.
    pub(super) fn flush_touched(&mut self, now: Now) {
        for index in 0..self.hosted.len() {
            if self.hosted.get(index).is_some_and(|hosted| hosted.touched) {
                self.write(SessionKey(index), now);
            }
        }
    }

    /// Writes the next part of one of the resends under way.
    fn resend(&mut self, now: Now) -> usize {
        let Some(key) = self.bench.resending.pop_front() else {
            return 0;
        };
        if let Some(hosted) = self.hosted.get_mut(key.0) {
            hosted.resending = false;
            hosted.unprepared = true;
            let life = hosted.on_time(key, now, &mut self.bench);
            self.after(key, now, life);
        }
        1
    }

    fn timers(&mut self, now: Now) -> usize {
        let scans = 1 + self.hosted.len() as u64 / SESSIONS_PER_SCAN;
        self.next_scan = now.mono + SCAN * scans.min(MOST_SCANS);
        self.report_log();
        let mut work = 0;
        for index in 0..self.hosted.len() {
            let key = SessionKey(index);
            let Some(hosted) = self.hosted.get_mut(index) else {
                break;
            };
            if hosted.link.is_none() {
                work += self.connect(key, now);
                continue;
            }
            if let Some(connector) = &mut hosted.connector
                && hosted.session.is_logged_on()
            {
                connector.succeeded();
            }
            if hosted.resending {
                // Its timers are checked with the resend.
                continue;
            }
            // A resend, too, drives code and data of the session out of the caches.
            hosted.unprepared = true;
            let life = hosted.on_time(key, now, &mut self.bench);
            if life != Life::GoesOn {
                self.after(key, now, life);
                work += 1;
            }
        }
        work + self.overdue(now)
    }

    /// Advances the connection attempt of an initiator.
    fn connect(&mut self, key: SessionKey, now: Now) -> usize {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return 0;
        };
        let Some(connector) = &mut hosted.connector else {
            return 0;
        };
        if self.closing || hosted.is_stopped || now.mono < connector.due() {
            return 0;
        }
        if !hosted.session.is_open(now.utc) {
            connector.defer(now.mono + CLOSED);
            return 0;
        }
        match connector.poll(now.mono) {
            Attempt::Wait(_) => return 0,
            Attempt::Connected(stream) => {
                let peer = stream.peer();
                match hosted.encrypt.begin(stream, connector.name_of(peer)) {
                    Ok(transport) => {
                        let connection = Connection::new(transport, hosted.queue_bytes, None);
                        self.attach(key, connection, now, &[]);
                    }
                    Err(error) => {
                        connector.lost(now.mono);
                        let id = &hosted.session.config().id;
                        self.bench.handler.unconnected(id, peer, &error.into());
                    }
                }
            }
            Attempt::Failed { to, error, .. } => {
                let id = &hosted.session.config().id;
                self.bench.handler.unconnected(id, to, &error.into());
            }
        }
        1
    }

    /// Closes connections whose deadline has passed.
    fn overdue(&mut self, now: Now) -> usize {
        let mut work = self.tick_ports(now);
        while let Some(token) = self.first_overdue(now) {
            drop(self.slots.remove(token));
            work += 1;
        }
        work
    }

    fn first_overdue(&self, now: Now) -> Option<Token> {
        let mut slots = self.slots.iter();
        slots
            .find(|(_, slot)| slot.deadline().is_some_and(|at| at <= now.mono))
            .map(|(t, _)| t)
    }

    /// Returns whether nothing remains to be sent or received.
    fn is_quiet(&self) -> bool {
        let talks = |slot: &Slot| matches!(slot, Slot::Link(_) | Slot::Ending(_));
        !self.slots.iter().any(|(_, slot)| talks(slot))
    }
}
