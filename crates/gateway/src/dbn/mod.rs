//! DBN live: market events as records, for clients of its live protocol.
//!
//! One agent reads the ring of market events, encodes each event once, and queues the records for
//! the clients that want them. It waits for no client: unread records stay in the client's queue,
//! and records beyond the queue's limit are dropped and reported.
//!
//! A subscription starts with symbols and, if requested, the book, some instruments at a time
//! ([`join`]).

mod beginning;
mod calls;
mod client;
pub(crate) mod config;
mod deliver;
mod early;
mod interest;
mod join;
mod line;
mod past;
mod port;
mod records;
mod replay;
mod restarts;
mod review;
pub(crate) mod server;
mod subscribe;
mod task;
mod threads;
mod wanted;
mod wire;

use crate::counts::DbnCounts;
use crate::market::ring::EventReader;
use crate::notice::audit::{Audit, DbnPeer};
use crate::notice::{Notice, Notices};
use crate::users::dbn_seat::Bell;
use crate::users::roster::Roster;
use crate::users::{CurrentUsers, UserBook};
use client::{Client, End, FAREWELL, Phase, Times};
use config::DbnConfig;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::clock::Clock;
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::slots::Slots;
use fanfare_engine::tcp::{BindError, Listener};
use fanfare_engine::throttle::Throttle;
use fanfare_fix::session::{Now, SECOND};
use fanfare_history::Run;
use fanfare_market::Delivery;
use fanfare_market::book::BookConfig;
use fanfare_market::dbn::live::{Batch, Encoder, ErrorCode, LiveSchemas, SystemCode};
use fanfare_market::dbn::{DbnConfig as RecordConfig, Schemas};
use interest::Wants;
use join::Place;
use past::Past;
use restarts::Restarts;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use task::Task;
use threads::Threads;
use wanted::Wanted;

/// The most messages of the feeds that are processed in a turn.
const TURN: usize = 256;
/// The most sockets that are served in a turn.
const SOCKETS: usize = 256;
/// The least interval between two polls of the sockets while events arrive, in nanoseconds, because
/// a poll is a system call.
const PACE: u64 = 200_000;

/// The interval at which a replay is polled, in nanoseconds.
const REPLAY: u64 = 1_000_000;

const LISTENER: Token = Token(u64::MAX);

/// The components of the agent.
pub(crate) struct Parts {
    pub(crate) config: DbnConfig,
    pub(crate) events: EventReader,
    /// The books of the feeds, in their order.
    pub(crate) books: Vec<BookConfig>,
    /// The numbers of their first instruments, if they are known.
    pub(crate) bases: Vec<u32>,
    pub(crate) users: UserBook,
    pub(crate) roster: Roster,
    pub(crate) audit: Audit,
    pub(crate) notices: Notices,
    pub(crate) counts: DbnCounts,
    /// The folder of the log and the run that is written to it, if there is a log.
    pub(crate) log: Option<(PathBuf, Run)>,
}

/// The reason why the DBN port cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DbnError {
    /// The address could not be listened on.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The operating system provided no descriptor.
    #[error("cannot start the port for DBN")]
    System(#[from] io::Error),
    /// The feeds' books are too large.
    #[error("books for DBN: {0}")]
    Book(#[from] fanfare_market::book::ConfigError),
}

/// The port and its clients.
pub(crate) struct DbnAgent {
    config: DbnConfig,
    events: EventReader,
    listener: Listener,
    poller: Poller,
    encoder: Encoder,
    batch: Batch,
    /// Whether the plant was restarted before the next event.
    restarts: Restarts,
    hub: Hub,
    users: CurrentUsers,
    roster: Roster,
    /// The bell that operators ring.
    bell: Bell,
    /// The addresses that have sent wrong keys.
    wrong: Throttle,
    audit: Audit,
    notices: Notices,
    counts: DbnCounts,
    /// The state for replays, if there is a log.
    past: Option<Arc<Past>>,
    /// The threads of replays.
    threads: Threads,
    next_session: u64,
    next_look: u64,
    room: Vec<u8>,
    /// The time of the next work for which nothing wakes the thread.
    next_timer: u64,
    times: Times,
    clock: Clock,
}

/// The clients, and their subscriptions.
#[derive(Default)]
struct Hub {
    clients: Slots<Client>,
    wants: Wants,
    wanted: Wanted,
    /// Whether subscriptions have changed since the schemas of all clients were summed up.
    has_changed: bool,
}

impl Hub {
    /// Returns the schemas to encode if they may be others than before.
    fn sum_up(&mut self, now: u64) -> Option<LiveSchemas> {
        if !self.has_changed && now < self.wanted.next_timer() {
            return None;
        }
        self.has_changed = false;
        let clients = self.clients.iter();
        let wanted = clients.fold(LiveSchemas::NONE, |sum, (_, client)| {
            sum.with(client.interest.any)
        });
        Some(self.wanted.set(wanted, now))
    }
}

impl DbnAgent {
    pub(crate) fn open(parts: Parts) -> Result<Self, DbnError> {
        let config = parts.config;
        let listener = Listener::bind(config.address())?;
        let poller = Poller::new(SOCKETS)?;
        poller.add(&listener, LISTENER, Interest::Read)?;
        let record = RecordConfig {
            names: false,
            ..RecordConfig::new(Schemas::MIXED)
        };
        let past = parts.log.map(|(folder, run)| {
            Arc::new(Past {
                folder,
                run,
                waker: parts.events.waker().clone(),
            })
        });
        let encoder = Encoder::new(parts.books, record)?.with_bases(parts.bases);
        let bell = Bell::new(parts.events.waker().clone());
        let mut events = parts.events;
        events.keep_added();
        Ok(Self {
            events,
            listener,
            poller,
            encoder,
            batch: Batch::default(),
            restarts: Restarts::default(),
            hub: Hub::default(),
            users: CurrentUsers::new(parts.users),
            roster: parts.roster,
            bell,
            wrong: Throttle::default(),
            audit: parts.audit,
            notices: parts.notices,
            counts: parts.counts,
            past,
            threads: Threads::default(),
            next_session: 1,
            next_look: 0,
            room: Vec::new(),
            next_timer: 0,
            times: Times::default(),
            clock: Clock::new(),
            config,
        })
    }

    /// Returns the address on which it listens.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.address()
    }

    /// Returns how many clients it accepts at a time.
    pub(crate) const fn most(&self) -> usize {
        self.config.max_clients
    }

    /// Encodes the events of the feeds as records for all clients.
    fn take_events(&mut self) -> usize {
        let Self {
            events,
            encoder,
            batch,
            times,
            ..
        } = self;
        batch.clear();
        let restarts = &mut self.restarts;
        let read = events.read(TURN, |delivery| match delivery {
            Delivery::Event(event, directory) => {
                restarts.write(encoder, directory, batch);
                encoder.event(event, directory, batch);
            }
            Delivery::End(_) => {}
            Delivery::Lost { first, last } => {
                restarts.lose(encoder);
                let text = format!(
                    "events {first} to {last} are missing: books are unknown until they are shown"
                );
                batch.notice(SystemCode::Unset, &text, times.utc);
            }
            Delivery::Restart => restarts.note(),
            Delivery::Watermark(mark) => encoder.watermark(mark, batch),
        });
        let named = events.take_added();
        if !named.is_empty() {
            self.review_names(&named);
        }
        read
    }

    /// Continues with the clients' pending tasks, and sends their queued bytes.
    fn look_after(&mut self) -> usize {
        let now = self.times;
        let mut work = 0;
        let mut timer = u64::MAX;
        let (stall, mut gone) = (self.config.stall_timeout_s * SECOND, Vec::new());
        self.threads.begin_pass();
        for token in self.tokens() {
            work += usize::from(self.resume(token));
            let Some(client) = self.hub.clients.get_mut(token) else {
                continue;
            };
            work += usize::from(client.look(now));
            work += self.go_on(token);
            let Some(client) = self.hub.clients.get_mut(token) else {
                continue;
            };
            if matches!(client.tasks.front(), Some(Task::Replay(_))) {
                timer = timer.min(now.mono + REPLAY);
            }
            if let Some((code, why)) = client.ends.take() {
                end(client, code, &why, now);
                // A client that reads slowly needs longer until it reaches the reason.
                if let (true, Phase::Ending { until }) = (client.is_cut, &mut client.phase) {
                    *until = now.mono + stall;
                }
            }
            let is_full = client.wire.flush(now.mono);
            poll(&self.poller, token, client, is_full);
            if client.is_paused && client.takes_requests() {
                timer = now.mono;
            }
            client.note();
            if let Phase::Ending { .. } = client.phase {
                client.wire.finish();
            }
            count(&self.counts, client);
            match over(client, now.mono, stall) {
                Some(end) => gone.push((token, end)),
                None => timer = timer.min(client.next_timer(stall)),
            }
        }
        work += gone.len();
        for (token, end) in gone {
            self.leave(token, &end);
        }
        self.next_timer = timer;
        self.counts.lost.set(self.encoder.lost());
        work
    }

    /// Continues with a client's pending tasks. Returns the number of instruments processed.
    fn go_on(&mut self, token: Token) -> usize {
        self.at_place(token, |place, next, client| {
            place.go_on(next, token, client)
        })
    }

    /// Calls `step` with the number of the next event for a client that has pending tasks. Returns
    /// its result, or 0.
    fn at_place(
        &mut self,
        token: Token,
        step: impl FnOnce(&mut Place<'_>, u64, &mut Client) -> usize,
    ) -> usize {
        let client = self.hub.clients.get_mut(token);
        let Some(client) = client.filter(|client| !client.tasks.is_empty()) else {
            return 0;
        };
        let before = client.interest.any;
        let mut place = Place {
            encoder: &self.encoder,
            wants: &mut self.hub.wants,
            threads: &mut self.threads,
            directory: self.events.directory(),
            now: self.times,
            room: &mut self.room,
        };
        let done = step(&mut place, self.events.next_number(), client);
        // A subscription has failed.
        self.hub.has_changed |= client.interest.any != before;
        done
    }

    /// Removes a client whose connection has ended.
    fn leave(&mut self, token: Token, end: &End) {
        let Some(mut client) = self.hub.clients.remove(token) else {
            return;
        };
        count(&self.counts, &mut client);
        for instrument in client.interest.some.keys() {
            self.hub.wants.set(*instrument, token, LiveSchemas::NONE);
        }
        self.hub.has_changed = true;
        self.counts.clients.set(self.hub.clients.len() as u64);
        let (session, peer) = (client.session, client.wire.peer());
        let who = DbnPeer {
            session,
            user: client.user_name(),
            peer,
        };
        let End { why, is_trouble } = *end;
        self.audit.dbn("end", &who, "", why);
        let what = format!("session {session} ended: {why}");
        self.notices.send(Notice::Dbn {
            peer,
            what,
            is_trouble,
        });
    }

    /// Limits the encoded schemas to those that clients want, once in a turn, before its events: a
    /// schema that is added has to be brought to all books.
    fn sum_up(&mut self) {
        if let Some(wanted) = self.hub.sum_up(self.times.mono) {
            self.encoder.want(wanted, self.events.directory());
        }
    }

    /// Reports an event of a client.
    fn note(&self, token: Token, event: &'static str, what: &str, why: &str) {
        let Some(client) = self.hub.clients.get(token) else {
            return;
        };
        let (session, peer) = (client.session, client.wire.peer());
        let user = client.user_name();
        let who = DbnPeer {
            session,
            user,
            peer,
        };
        self.audit.dbn(event, &who, what, why);
    }
}

/// Adds to the counters what a client was sent, and what was dropped, since the last call.
fn count(counts: &DbnCounts, client: &mut Client) {
    counts
        .bytes
        .increment(std::mem::take(&mut client.wire.sent));
    counts
        .skipped
        .increment(std::mem::take(&mut client.uncounted));
}

/// Polls the socket of a client for what it waits for now.
fn poll(poller: &Poller, token: Token, client: &mut Client, is_full: bool) {
    let wanted = client.polls(is_full);
    let before = std::mem::replace(&mut client.polled, wanted);
    if before == wanted {
        return;
    }
    let wire = &client.wire;
    let changed = match (before, wanted) {
        (None, Some(interest)) => poller.add(wire, token, interest),
        (Some(_), Some(interest)) => poller.change(wire, token, interest),
        (_, None) => poller.remove(wire),
    };
    if changed.is_err() {
        client.wire.mark_broken();
    }
}

/// Sends a client the reason why it ends, after which it is closed.
fn end(client: &mut Client, code: ErrorCode, why: &str, now: Times) {
    if let Phase::Ending { .. } = client.phase {
        return;
    }
    if client.is_streaming() {
        client.drop_held();
        client.fail(code, why, now);
    }
    client.tasks.clear();
    let until = now.mono + FAREWELL;
    client.phase = Phase::Ending { until };
}

/// Returns the end of a connection, if it has ended.
fn over(client: &Client, now: u64, stall: u64) -> Option<End> {
    let is_late = |since: u64| now >= since.saturating_add(stall);
    match client.phase {
        _ if client.wire.is_broken() => Some(client.gone()),
        _ if client.wire.stalled().is_some_and(is_late) => {
            Some(End::trouble("the client took no bytes for too long"))
        }
        Phase::Greeted { until, .. } if now >= until => {
            Some(End::trouble("the client did not authenticate in time"))
        }
        Phase::Ready { until } if now >= until => {
            Some(End::trouble("the client did not start its session in time"))
        }
        Phase::Ending { until } if now >= until => Some(client.gone()),
        _ => None,
    }
}

impl Agent for DbnAgent {
    fn name(&self) -> &str {
        "dbn"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.times.advance(now);
        let mut work = usize::from(self.review());
        if self.bell.was_rung() {
            work += self.answer_calls();
        }
        if now.mono >= self.next_look {
            work += self.sockets()?;
            self.next_look = now.mono + PACE;
        }
        self.sum_up();
        self.events.begin_turn(now.mono);
        let sent = self.counts.bytes.value();
        let taken = self.take_events();
        if taken > 0 {
            // An event may have come since the turn began, and is not sent before its arrival.
            let now = self.clock.read();
            self.times.advance(now);
        }
        work += taken;
        if !self.batch.is_empty() {
            work += 1;
            self.deliver();
        }
        if work > 0 || now.mono >= self.next_timer {
            work += self.look_after();
        }
        self.events.end_turn(self.counts.bytes.value() != sent);
        Ok(work)
    }

    fn on_close(&mut self, now: Now) {
        self.times.advance(now);
        self.sum_up();
        while self.take_events() > 0 {
            let now = self.clock.read();
            self.times.advance(now);
            self.deliver();
        }
        self.counts.lost.set(self.encoder.lost());
        // Sends what clients accept without waiting.
        for token in self.tokens() {
            self.at_place(token, |place, next, client| {
                place.finish(next, token, client);
                0
            });
            if let Some(client) = self.hub.clients.get_mut(token) {
                client.end_replays("the gateway stops", self.times);
                client.wire.flush(now.mono);
                count(&self.counts, client);
            }
        }
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend([self.poller.as_fd(), self.events.waker().as_fd()]);
    }

    fn next_timer(&self) -> Option<u64> {
        Some(self.next_timer.min(self.hub.wanted.next_timer()))
    }

    fn before_sleep(&mut self) {
        self.events.waker().prepare_sleep();
        self.next_look = 0;
    }

    fn after_sleep(&mut self) {
        self.events.waker().awake();
        self.next_look = 0;
    }
}

impl DbnAgent {
    fn tokens(&self) -> Vec<Token> {
        self.hub.clients.iter().map(|(token, _)| token).collect()
    }
}

#[cfg(test)]
mod tests;
