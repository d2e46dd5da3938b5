//! Market data as a service: requests, subscriptions, pictures and increments.
//!
//! A worker keeps its own view of the market from the plant's events, and the subscriptions of its
//! sessions. Subscriptions that are sent the same of an instrument form a class ([`class`]), whose
//! updates are encoded once for each version of FIX. A subscription begins with a picture, and
//! begins again with one whenever it has missed anything: there is one way to join
//! ([`delivery`]).

mod bodies;
mod class;
mod classes;
mod client;
mod contract;
mod delivery;
mod entry_types;
mod flow;
mod inspect;
mod ladder;
mod list;
mod messages;
mod patterns;
mod replies;
mod request;
mod securities;
mod subscribe;
mod view;

pub use contract::Contract;
pub use entry_types::EntryTypes;
pub(crate) use inspect::{At, Inspector, NoAnswer, WantedSubscriptions};
pub use patterns::Pattern;

use crate::audit::Audit;
use crate::batch::end_of;
use crate::hole::{Hole, Missing};
use crate::market::ring::EventReader;
use crate::notice::PeerEnd;
use crate::users::grant::Grant;
use crate::users::roster::Served;
use crate::users::{UserBook, UserSet};
use bodies::{Bodies, BodyId, Writers};
use classes::{Classes, NOWHERE};
use client::Client;
use delivery::Sender;
use fanfare_engine::host::{Peer, Peers, SessionKey};
use fanfare_fix::session::AppMessage;
use fanfare_market::book::{BookConfig, Level};
use fanfare_market::{Delivery, Event, InstrumentId};
use inspect::Inspection;
use std::collections::HashMap;
use std::sync::Arc;
use view::View;

/// Messages of the feeds that are taken in a turn: so many may be late for the others.
const TURN: usize = 64;

/// The market data service of one worker.
pub(crate) struct Service {
    events: EventReader,
    core: Core,
    sender: Sender,
    inspection: Inspection,
}

/// What the service is told when it is made.
pub(crate) struct ServiceConfig {
    /// Of the feeds, in their order.
    pub(crate) books: Vec<BookConfig>,
    pub(crate) users: UserBook,
    pub(crate) audit: Audit,
    /// Bytes that may wait for one session.
    pub(crate) queue_bytes: usize,
}

/// What the service did in a turn.
#[derive(Default)]
pub(crate) struct Turn {
    /// Messages taken and sent.
    pub(crate) work: usize,
    /// Messages given to connections.
    pub(crate) sent: usize,
    /// Sessions that are to end, and why.
    pub(crate) ends: Vec<(SessionKey, PeerEnd)>,
    /// Events that the worker was too slow for: every session has to be told.
    pub(crate) lost: Option<Hole>,
}

/// Everything but the source of the events.
struct Core {
    view: View,
    classes: Classes,
    clients: Vec<Option<Box<Client>>>,
    writers: Writers,
    bodies: Bodies,
    book: UserBook,
    audit: Audit,
    /// Users and named lists, as of this version of the book.
    users: (u64, Arc<UserSet>),
    /// The state of each feed's trading session: TradingSessionStatus(h).
    sessions: Vec<Event>,
    /// Sessions with messages of this turn.
    touched: Vec<u32>,
    /// Sessions with something to catch up.
    waiting: Vec<u32>,
    /// Classes whose interval has to end first, and when that is.
    due: Vec<(u64, u32)>,
    /// Subscriptions whose patterns are not all looked up.
    growing: Vec<(u32, u32)>,
    /// Subscriptions with patterns: instruments may come.
    with_patterns: Vec<(u32, u32)>,
    /// Events of the message that no book holds, until their instrument's last one.
    pending: Vec<Event>,
    /// Pictures of this turn: by class and version.
    pictures: HashMap<(u32, u8), BodyId>,
    now: u64,
    scratch: Scratch,
}

/// Entries of a message that there is room for from the start.
const ENTRIES: usize = 1024;

/// Room that is used again. It grows only for a message with more entries than any before.
struct Scratch {
    levels: Vec<Level>,
    entries: Vec<Event>,
    sayable: Vec<Event>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            levels: Vec::with_capacity(ENTRIES),
            entries: Vec::with_capacity(ENTRIES),
            sayable: Vec::new(),
        }
    }
}

impl Service {
    pub(crate) fn new(config: ServiceConfig, mut events: EventReader) -> Self {
        events.keep_added();
        Self {
            events,
            core: Core {
                view: View::new(config.books),
                classes: Classes::default(),
                clients: Vec::new(),
                writers: Writers::new(),
                bodies: Bodies::new(config.queue_bytes / 2),
                users: (config.users.version(), config.users.read()),
                book: config.users,
                audit: config.audit,
                sessions: Vec::new(),
                touched: Vec::new(),
                waiting: Vec::new(),
                due: Vec::new(),
                growing: Vec::new(),
                with_patterns: Vec::new(),
                pending: Vec::new(),
                pictures: HashMap::new(),
                now: 0,
                scratch: Scratch::default(),
            },
            sender: Sender::new(config.queue_bytes),
            inspection: Inspection::new(),
        }
    }

    /// Asks about its subscriptions, from any thread.
    pub(crate) fn inspector(&self) -> Inspector {
        self.inspection.inspector()
    }

    /// A session has logged on, in the version of this place.
    pub(crate) fn on_logon(&mut self, peer: &Peer<'_>, version: usize) {
        let index = peer.key().index();
        let core = &mut self.core;
        // Who has none is being logged out.
        let grant = core.book.grant(peer.id());
        let grant = grant.unwrap_or_else(|| Arc::new(Grant::nothing()));
        core.writers.open(version);
        if core.clients.len() <= index {
            core.clients.resize_with(index + 1, || None);
        }
        if let Some(place) = core.clients.get_mut(index) {
            *place = Some(Box::new(Client::new(peer.key(), version, grant)));
        }
    }

    /// A session is over.
    pub(crate) fn on_end(&mut self, key: SessionKey) {
        self.core.end(key.index() as u32);
    }

    /// Answers a message of a session. Returns why the session is to end, if it is.
    pub(crate) fn on_message(
        &mut self,
        peer: &mut Peer<'_>,
        message: &AppMessage<'_>,
    ) -> Option<PeerEnd> {
        let queued = peer.queued();
        if queued > self.sender.limit() {
            // One that asks and does not read the answers.
            return Some(PeerEnd::SlowConsumer { queued });
        }
        // Many requests may come in a turn: the session's store has no room for all answers.
        if let Err(error) = peer.make_room() {
            return Some(end_of(error));
        }
        self.core.now = peer.now().mono;
        self.core
            .answer(peer, &message.message, self.events.directory());
        None
    }

    /// Whether the session has asked for market data since it logged on.
    pub(crate) fn has_asked(&self, key: SessionKey) -> bool {
        let client = self.core.clients.get(key.index());
        let client = client.and_then(Option::as_ref);
        client.is_some_and(|client| client.has_asked)
    }

    /// Returns whether the feeds brought events that no turn has taken.
    pub(crate) fn has_events(&self) -> bool {
        self.events.backlog() > 0
    }

    /// What a session has been served so far.
    pub(crate) fn served(&self, key: SessionKey) -> Served {
        let client = self.core.clients.get(key.index()).and_then(Option::as_ref);
        client.map_or_else(Served::default, |client| client.served())
    }

    /// Takes what the feeds brought, and sends what sessions have asked for.
    pub(crate) fn turn(&mut self, peers: &mut Peers<'_>) -> Turn {
        let Self {
            events,
            core,
            sender,
            inspection,
        } = self;
        let mut turn = Turn::default();
        core.begin(peers.now());
        events.begin_turn(peers.now().mono);
        if core.book.version() != core.users.0 {
            core.review(peers, events.directory());
            turn.work += 1;
        }
        turn.work += events.read(TURN, |delivery| match delivery {
            Delivery::Event(event, directory) => core.event(event, directory),
            Delivery::End(directory) => core.end_of_message(directory),
            Delivery::Lost { first, last } => {
                core.lose_all();
                let nanos = peers.now().utc.nanos();
                turn.lost = Some(Hole {
                    first,
                    last,
                    ..Hole::new(Missing::WorkersBehind, last - first + 1, nanos)
                });
            }
            Delivery::Restart => {
                core.lose_all();
                core.view.restart();
            }
        });
        let added = events.take_added();
        let directory = events.directory();
        turn.work += core.grow(&added, directory);
        core.flush_due(directory);
        turn.work += sender.deliver(core, peers, &mut turn);
        turn.work += sender.catch_up(core, peers, directory, &mut turn);
        turn.work += inspection.turn(core, peers, directory);
        turn.work += turn.ends.len();
        events.end_turn(turn.sent > 0);
        turn
    }

    /// The time at which there is something to do.
    pub(crate) fn next_turn(&self) -> Option<u64> {
        let core = &self.core;
        if !core.growing.is_empty() || self.inspection.is_running() {
            return Some(0);
        }
        core.due.iter().map(|(at, _)| *at).min()
    }
}

impl Core {
    fn begin(&mut self, now: fanfare_fix::session::Now) {
        self.now = now.mono;
        self.bodies.clear();
        self.pictures.clear();
    }

    fn client_mut(&mut self, session: u32) -> Option<&mut Client> {
        self.clients.get_mut(session as usize)?.as_deref_mut()
    }

    /// Removes a session with all of its subscriptions.
    fn end(&mut self, session: u32) {
        let Some(client) = self.client_mut(session) else {
            return;
        };
        // A session may be behind with all of a million subscriptions.
        client.behind.clear();
        // With the session in its place: links of its other subscriptions move meanwhile.
        for number in 0..client.subscriptions.len() as u32 {
            self.stop(session, number);
        }
        if let Some(place) = self.clients.get_mut(session as usize) {
            *place = None;
        }
        self.touched.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
    }

    /// Events were lost: every picture has to come anew.
    fn lose_all(&mut self) {
        let all: Vec<InstrumentId> = self.view.numbers().collect();
        self.view.lose_all();
        self.pending.clear();
        for instrument in all {
            self.put_behind(instrument);
        }
    }
}
