//! Market data as a service: requests, subscriptions, snapshots and increments.
//!
//! A worker keeps its own view of the market from the plant's events, and the subscriptions of its
//! sessions. Subscriptions that receive the same messages of an instrument form a class
//! ([`class`]), whose updates are encoded once for each version of FIX. A subscription begins with
//! a snapshot, and begins again with one whenever it has missed anything, so that there is one way
//! to join ([`delivery`]). Subscriptions end in slices ([`ending`]).

mod bodies;
mod class;
mod class_list;
mod classes;
mod client;
mod contract;
mod delivery;
mod ending;
mod entry_types;
mod feeds;
mod flow;
mod growth;
mod inspect;
mod ladder;
mod list;
mod messages;
mod patterns;
mod replies;
mod request;
mod securities;
mod share;
mod spec;
mod subscribe;
#[cfg(test)]
mod tests;
mod untold;
mod view;

pub use contract::Contract;
pub use entry_types::EntryTypes;
pub(crate) use inspect::{At, Inspector, NoAnswer, WantedSubscriptions};
pub use patterns::Pattern;

use crate::fanout::batch::{ENVELOPE, end_of};
use crate::fanout::hole::{Hole, Missing};
use crate::market::ring::EventReader;
use crate::notice::PeerEnd;
use crate::notice::audit::Audit;
use crate::users::grant::Grant;
use crate::users::roster::Served;
use crate::users::{CurrentUsers, UserBook};
use bodies::{Bodies, BodyId, Writers};
use classes::{Classes, NOWHERE};
use client::Client;
use delivery::Sender;
use ending::Ending;
use fanfare_engine::host::{Peer, Peers, SessionKey};
use fanfare_fix::session::AppMessage;
use fanfare_history::FeedInfo;
use fanfare_market::book::{BookConfig, Level};
use fanfare_market::{Delivery, Event, InstrumentId};
use feeds::Feeds;
use inspect::Inspection;
use share::Share;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use view::View;

/// The most messages of the feeds that are processed in a turn, which bounds the delay between
/// sessions.
const TURN: usize = 64;

/// The market data service of one worker.
pub(crate) struct Service {
    events: EventReader,
    core: Core,
    sender: Sender,
    inspection: Inspection,
}

/// The parameters of the service.
pub(crate) struct ServiceConfig {
    /// The books of the feeds, in their order.
    pub(crate) books: Vec<BookConfig>,
    /// The feeds, in their order.
    pub(crate) feeds: Vec<FeedInfo>,
    pub(crate) users: UserBook,
    pub(crate) audit: Audit,
    /// The most bytes that may be queued for one session.
    pub(crate) queue_bytes: usize,
}

/// The results of a turn.
#[derive(Default)]
pub(crate) struct Turn {
    /// The number of messages processed and sent, and of instruments that were looked up.
    pub(crate) work: usize,
    /// The number of messages handed to connections.
    pub(crate) sent: usize,
    /// The number of updates that were skipped for sessions whose queues were full.
    pub(crate) skipped: u64,
    /// The sessions that are to end, with the reason.
    pub(crate) ends: Vec<(SessionKey, PeerEnd)>,
    /// The events that are missing, of which every session must be notified.
    pub(crate) lost: Option<Hole>,
    /// The number of those that were overwritten before the worker read them.
    pub(crate) lapped: u64,
}

/// The state of the service without the source of the events.
struct Core {
    view: View,
    classes: Classes,
    clients: Vec<Option<Box<Client>>>,
    writers: Writers,
    bodies: Bodies,
    feeds: Feeds,
    /// The users and named lists.
    users: CurrentUsers,
    audit: Audit,
    /// The state of each feed's trading session: TradingSessionStatus(h).
    sessions: Vec<Event>,
    /// The sessions with messages of this turn.
    touched: Vec<u32>,
    /// The sessions with pending messages.
    waiting: Vec<u32>,
    /// The subscriptions whose patterns are not fully looked up, the next one last: new requests
    /// (`true`) come before those that look again.
    growing: BTreeSet<(bool, u32, u32)>,
    /// The subscriptions with patterns or lists, to which instruments may be added.
    with_patterns: BTreeSet<(u32, u32)>,
    /// The instruments with subscriptions that were renamed while patterns are looked up.
    renamed: HashSet<InstrumentId>,
    /// The subscriptions that have ended, and whose parts are still to be removed.
    ending: Ending,
    /// Whether the message that was read last continues.
    is_within: bool,
    /// The events of the message that no book holds, until their instrument's last one.
    pending: Vec<Event>,
    /// The snapshots of this turn, by class and version.
    snapshots: HashMap<(u32, u8), BodyId>,
    now: u64,
    /// What the requests of clients may still take of the turn.
    share: Share,
    scratch: Scratch,
}

/// The initial capacity for entries of a message.
const ENTRIES: usize = 1024;

/// Buffers that are reused. They grow only for a message with more entries than any before.
struct Scratch {
    levels: Vec<Level>,
    /// The entries of an update.
    entries: Vec<Event>,
    /// Those of a snapshot.
    snapshot: Vec<Event>,
    /// The trades of a snapshot in place of changes.
    trades: Vec<Event>,
    sayable: Vec<Event>,
}

impl Default for Scratch {
    fn default() -> Self {
        Self {
            levels: Vec::with_capacity(ENTRIES),
            entries: Vec::with_capacity(ENTRIES),
            snapshot: Vec::with_capacity(ENTRIES),
            trades: Vec::with_capacity(ENTRIES),
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
                feeds: Feeds::new(&config.feeds),
                // One fits wherever half of a queue is free.
                bodies: Bodies::new((config.queue_bytes / 2).saturating_sub(ENVELOPE)),
                users: CurrentUsers::new(config.users),
                audit: config.audit,
                sessions: Vec::new(),
                touched: Vec::new(),
                waiting: Vec::new(),
                growing: BTreeSet::new(),
                with_patterns: BTreeSet::new(),
                renamed: HashSet::new(),
                ending: Ending::new(),
                is_within: false,
                pending: Vec::new(),
                snapshots: HashMap::new(),
                now: 0,
                share: Share::WHOLE,
                scratch: Scratch::default(),
            },
            sender: Sender::new(config.queue_bytes),
            inspection: Inspection::new(),
        }
    }

    /// Returns an inspector of its subscriptions, for any thread.
    pub(crate) fn inspector(&self) -> Inspector {
        self.inspection.inspector()
    }

    /// Adds a session that has logged on, with the index of its version.
    pub(crate) fn on_logon(&mut self, peer: &Peer<'_>, version: usize) {
        let index = peer.key().index();
        let core = &mut self.core;
        // A session without a grant is being logged out.
        let grant = core.users.book().grant(peer.id());
        let grant = grant.unwrap_or_else(|| Arc::new(Grant::nothing()));
        core.writers.open(version);
        let client = Client::new(peer.key(), version, grant);
        core.log_on(index as u32, Box::new(client));
    }

    /// Removes a session that has ended.
    pub(crate) fn on_end(&mut self, key: SessionKey) {
        self.core.end(key.index() as u32);
    }

    /// Processes a message of a session. Returns the reason why the session is to end, if it is.
    pub(crate) fn on_message(
        &mut self,
        peer: &mut Peer<'_>,
        message: &AppMessage<'_>,
    ) -> Option<PeerEnd> {
        let queued = peer.queued();
        if queued > self.sender.limit() {
            // The session sends requests and does not read the responses.
            return Some(PeerEnd::SlowConsumer { queued });
        }
        // Many requests may arrive in a turn, and the session's store does not hold all responses.
        if let Err(error) = peer.make_room() {
            return Some(end_of(error));
        }
        self.core.now = peer.now().mono;
        // A session may be there before the first turn.
        self.events.take_introduced();
        self.core
            .answer(peer, &message.message, self.events.directory());
        None
    }

    /// Returns whether the session has requested market data since it logged on.
    pub(crate) fn has_asked(&self, key: SessionKey) -> bool {
        let client = self.core.client(key.index() as u32);
        client.is_some_and(|client| client.has_asked)
    }

    /// Returns whether the feeds brought events that no turn has processed.
    pub(crate) fn has_events(&self) -> bool {
        self.events.backlog() > 0
    }

    /// Returns the counts of what a session has been served so far.
    pub(crate) fn served(&self, key: SessionKey) -> Served {
        let client = self.core.client(key.index() as u32);
        client.map_or_else(Served::default, Client::served)
    }

    /// Processes the events of the feeds, and sends the messages that sessions have requested.
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
        if core.users.look() {
            core.review(peers, events.directory());
            turn.work += 1;
        }
        let read = core.read(events, peers.now().utc.nanos(), &mut turn.lost);
        core.share = Share::of_turn(read, events.backlog() > 0);
        turn.work += read + core.end_slice();
        let lapped = turn.lost.as_ref().filter(|_| events.take_overtaken());
        turn.lapped = lapped.map_or(0, |lost| lost.count);
        let added = events.take_added();
        // Books of a message that was read in part are neither sent nor compared.
        core.is_within = events.is_within_message();
        let is_whole = !core.is_within;
        let directory = events.directory();
        core.review_names(&added, peers, directory);
        turn.work += core.grow(&added, directory);
        if is_whole {
            core.flush_due(directory);
        }
        turn.work += sender.deliver(core, peers, &mut turn);
        if is_whole {
            turn.work += sender.catch_up(core, peers, directory, &mut turn);
        }
        turn.work += inspection.turn(core, peers, directory);
        turn.work += turn.ends.len();
        events.end_turn(turn.sent > 0);
        turn
    }

    /// Returns the time of the next scheduled work.
    pub(crate) fn next_turn(&self) -> Option<u64> {
        let core = &self.core;
        let has_slices = !core.growing.is_empty() || !core.ending.is_empty();
        if has_slices || self.inspection.is_running() {
            return Some(0);
        }
        core.classes.next_due()
    }
}

impl Core {
    /// Processes the next messages of the feeds. Adds the events that were overwritten before to
    /// `lost`. Returns the number of messages.
    fn read(&mut self, events: &mut EventReader, nanos: i64, lost: &mut Option<Hole>) -> usize {
        events.read(TURN, |delivery| match delivery {
            Delivery::Event(event, directory) => self.event(event, directory),
            Delivery::End(directory) => self.end_of_message(directory),
            Delivery::Lost { first, last } => {
                self.lose_all();
                let hole = Hole {
                    first,
                    last,
                    ..Hole::new(Missing::WorkersBehind, last - first + 1, nanos)
                };
                match lost {
                    Some(before) => before.grow(&hole),
                    None => *lost = Some(hole),
                }
            }
            Delivery::Restart => self.restart(),
            Delivery::Watermark(_) => {}
        })
    }

    fn begin(&mut self, now: fanfare_fix::session::Now) {
        self.now = now.mono;
        self.bodies.clear();
        self.snapshots.clear();
    }

    fn client(&self, session: u32) -> Option<&Client> {
        client::at(&self.clients, session)
    }

    fn client_mut(&mut self, session: u32) -> Option<&mut Client> {
        client::at_mut(&mut self.clients, session)
    }

    /// Marks every subscription as in need of a snapshot, because events were lost.
    fn lose_all(&mut self) {
        let all: Vec<InstrumentId> = self.view.numbers().collect();
        self.view.lose_all();
        self.pending.clear();
        for instrument in all {
            self.put_behind(instrument);
        }
    }
}
