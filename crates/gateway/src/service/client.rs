//! A session that has requested market data, with its subscriptions.

use super::bodies::BodyId;
use super::class::Part;
use super::classes::Place;
use super::contract::Contract;
use super::feeds::OfFeed;
use super::list::List;
use super::patterns::Pattern;
use super::spec::Spec;
use crate::users::grant::Grant;
use crate::users::roster::Served;
use crate::users::{Names, Requests};
use fanfare_engine::host::SessionKey;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::{Event, InstrumentId, Kind};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// The initial capacity for messages of a turn for a session.
const OUTBOX: usize = 64;

/// The most subscriptions of a session at a time.
const MOST_OPEN: usize = 1 << 14;

/// A message of this turn for a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub(crate) body: BodyId,
    pub(crate) of: Of,
}

/// The subject of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// An instrument of a subscription.
    Part(Part),
    /// No subscription.
    Told(Untold),
}

/// An item about an instrument that a session has not been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Untold {
    /// Its state.
    State(InstrumentId),
    /// Its trading status.
    Status(InstrumentId),
    /// The status of a feed's trading session.
    Session(u16),
    /// The notice that a subscription has more instruments than the session may have.
    TooMany(u32),
    /// The notice that a request for snapshots matches no instrument.
    NoneFound(u32),
}

impl Untold {
    /// Returns whether a user may see it.
    pub(crate) fn is_seen(self, grant: &Grant, directory: &Directory) -> bool {
        match self {
            Self::State(id) | Self::Status(id) => grant.sees(directory.instrument(id)),
            Self::Session(_) | Self::TooMany(_) | Self::NoneFound(_) => true,
        }
    }
}

/// A session that is logged on.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) key: SessionKey,
    /// The index of its version.
    pub(crate) version: usize,
    pub(crate) grant: Arc<Grant>,
    pub(crate) subscriptions: Vec<Option<Box<Subscription>>>,
    /// The free indices of `subscriptions`.
    vacant: Vec<u32>,
    /// Those that are free once `behind` has no parts of subscriptions that have ended.
    released: Vec<u32>,
    /// The number of parts of subscriptions that have ended, of which `behind` may have some.
    lapsed: usize,
    /// The subscriptions by their [leads](Subscription::lead).
    by_request: HashMap<Box<[u8]>, u32>,
    /// Whether the session has requested market data since it logged on, granted or refused.
    pub(crate) has_asked: bool,
    /// Whether a subscription was conflated since then.
    pub(crate) has_conflated: bool,
    /// Whether the kernel is kept from taking what it cannot send.
    pub(crate) has_limit: bool,
    /// The number of instruments of all its subscriptions, of which one without any counts as one.
    pub(crate) parts: usize,
    /// TradSesReqID(335) of the requests for the status of the trading session that go on, with the
    /// feeds that they name.
    pub(crate) session_requests: Vec<(Box<[u8]>, OfFeed)>,
    /// The messages of this turn.
    pub(crate) outbox: Vec<Out>,
    /// The instruments that need a snapshot first. Some may be of subscriptions that have ended.
    pub(crate) behind: VecDeque<Part>,
    pub(crate) untold: BTreeSet<Untold>,
    /// The lists of instruments that are being sent, the current one first.
    pub(crate) lists: VecDeque<List>,
    /// Whether a list has sent the last message of lists and snapshots, which alternate.
    pub(crate) has_listed: bool,
    /// The event whose state was sent last, so that several subscriptions receive it once.
    pub(crate) told: u64,
    /// Whether it is among the sessions with pending messages.
    pub(crate) is_waiting: bool,
    /// The requests of the current second.
    requests: Requests,
    /// The losses of all its subscriptions, including those that have ended.
    losses: Losses,
}

/// Returns the session of an index.
pub(crate) fn at(clients: &[Option<Box<Client>>], session: u32) -> Option<&Client> {
    clients.get(session as usize)?.as_deref()
}

/// Returns the session of an index, to change it.
pub(crate) fn at_mut(clients: &mut [Option<Box<Client>>], session: u32) -> Option<&mut Client> {
    clients.get_mut(session as usize)?.as_deref_mut()
}

/// The updates that were not sent one by one, because the client was behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Updates that were merged into later ones.
    pub(crate) conflated: u64,
    /// Updates that were skipped, and announced.
    pub(crate) skipped: u64,
}

/// A MarketDataRequest(V) that is being served.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// The first field of each of its messages: `262=…|`, or `324=…|` for the trading status.
    pub(crate) lead: Box<[u8]>,
    pub(crate) spec: Spec,
    pub(crate) contract: Contract,
    /// Whether updates follow the snapshot: 263=1.
    pub(crate) goes_on: bool,
    pub(crate) places: Vec<Place>,
    /// The instruments that were named one by one, in order.
    pub(crate) named: Arc<[InstrumentId]>,
    /// The prefixes, to which instruments that appear later belong too.
    pub(crate) patterns: Vec<Pattern>,
    /// The lists, whose prefixes are in `patterns`, too.
    pub(crate) lists: Vec<Arc<Names>>,
    /// The feed whose instruments belong to it.
    pub(crate) feed: OfFeed,
    /// The pattern whose instruments are being added, and the last symbol that was.
    pub(crate) growing: Option<(usize, Option<Box<[u8]>>)>,
    /// Whether patterns and lists are looked up once more, because its user is permitted others.
    pub(crate) looks_again: bool,
    /// The instruments that it has, while it [looks again](Self::looks_again).
    pub(crate) had: Option<BTreeSet<InstrumentId>>,
    /// The number of parts without a snapshot yet, in a subscription without updates.
    pub(crate) unserved: usize,
    /// The trades that are queued while the client is behind, in the order of the plant's numbers,
    /// and the number that exceeded the capacity.
    pub(crate) trades: Vec<Event>,
    pub(crate) trades_left_out: u64,
    pub(crate) losses: Losses,
}

/// The most trades that are queued for one subscription.
const MOST_TRADES: usize = 1024;

/// Returns the first field of each message of a subscription.
pub(crate) fn lead(tag: u32, id: &[u8]) -> Vec<u8> {
    let mut lead = format!("{tag}=").into_bytes();
    lead.extend_from_slice(id);
    lead.push(1);
    lead
}

impl Subscription {
    /// Creates a subscription to instruments that are named one by one, in order.
    pub(crate) fn new(
        lead: Vec<u8>,
        spec: Spec,
        contract: Contract,
        goes_on: bool,
        named: &[InstrumentId],
    ) -> Self {
        Self {
            lead: lead.into(),
            spec,
            contract,
            goes_on,
            places: Vec::with_capacity(named.len()),
            named: named.into(),
            patterns: Vec::new(),
            lists: Vec::new(),
            feed: OfFeed::default(),
            growing: None,
            looks_again: false,
            had: None,
            unserved: 0,
            trades: Vec::new(),
            trades_left_out: 0,
            losses: Losses::default(),
        }
    }

    /// Returns whether it is for the trading status only: SecurityStatusRequest(e).
    pub(crate) const fn is_of_status(&self) -> bool {
        self.spec.entries.is_empty()
    }

    /// Returns the MDReqID(262) or SecurityStatusReqID(324).
    pub(crate) fn request(&self) -> &[u8] {
        let end = self.lead.len().saturating_sub(1);
        self.lead.get(4..end).unwrap_or_default()
    }

    /// Leaves out the older half of those of its trades that `is_own` selects.
    #[cold]
    pub(crate) fn leave_out_half(&mut self, is_own: impl Fn(&Event) -> bool) {
        let kept = self.trades.iter().filter(|event| is_own(event)).count();
        let count = kept.div_ceil(2);
        let mut rest = count;
        self.trades.retain(|event| {
            let goes = rest > 0 && is_own(event);
            rest -= usize::from(goes);
            !goes
        });
        self.trades_left_out += count as u64;
    }

    /// Keeps the trades of an update for which the client is behind. Beyond the capacity, a
    /// subscription whose updates are changes leaves out the new ones, one whose updates are
    /// snapshots the old ones: a snapshot has the newest.
    pub(crate) fn hold_trades(&mut self, entries: &[Event]) {
        for event in entries.iter().filter(|event| event.kind == Kind::Trade) {
            if self.trades.len() >= MOST_TRADES {
                if !self.spec.snapshots {
                    self.trades_left_out += 1;
                    continue;
                }
                self.leave_out_half(|_| true);
            }
            // An update that is not sent in its turn may come behind later ones.
            let is_before = |own: &Event| own.number <= event.number;
            let at = self.trades.partition_point(is_before);
            // Without RptSeq(83), because it is sent out of sequence.
            let own = Event {
                rpt_seq: 0,
                ..*event
            };
            self.trades.insert(at, own);
        }
    }
}

impl Client {
    pub(crate) fn new(key: SessionKey, version: usize, grant: Arc<Grant>) -> Self {
        Self {
            key,
            version,
            grant,
            subscriptions: Vec::new(),
            vacant: Vec::new(),
            released: Vec::new(),
            lapsed: 0,
            by_request: HashMap::new(),
            has_asked: false,
            has_conflated: false,
            has_limit: false,
            parts: 0,
            session_requests: Vec::new(),
            outbox: Vec::with_capacity(OUTBOX),
            behind: VecDeque::new(),
            untold: BTreeSet::new(),
            lists: VecDeque::new(),
            has_listed: false,
            told: 0,
            is_waiting: false,
            requests: Requests::default(),
            losses: Losses::default(),
        }
    }

    /// Returns the counts of what it has been served so far.
    pub(crate) fn served(&self) -> Served {
        Served {
            conflated: self.losses.conflated,
            skipped: self.losses.skipped,
            subscriptions: self.by_request.len() as u64,
        }
    }

    /// Counts an update of a subscription that was merged into a later one.
    pub(crate) fn count_conflated(&mut self, subscription: u32) {
        self.losses.conflated += 1;
        if let Some(own) = self.get_mut(subscription) {
            own.losses.conflated += 1;
        }
    }

    /// Counts an update of a subscription that was skipped.
    pub(crate) fn count_skipped(&mut self, subscription: u32) {
        self.losses.skipped += 1;
        if let Some(own) = self.get_mut(subscription) {
            own.losses.skipped += 1;
        }
    }

    /// Counts a request. Returns whether it is within the limit of its user.
    pub(crate) fn may_ask(&mut self, now: u64) -> bool {
        let most = self.grant.requests_per_second;
        self.requests.beyond(most, now) == 0
    }

    /// Returns the subscription with an ID: MDReqID(262) or SecurityStatusReqID(324).
    pub(crate) fn find(&self, tag: u32, id: &[u8]) -> Option<u32> {
        self.by_request.get(lead(tag, id).as_slice()).copied()
    }

    /// Checks that it may have one more subscription, of this many instruments.
    ///
    /// # Errors
    /// Returns the limit that the subscription exceeds.
    pub(crate) fn check_one_more(&self, instruments: usize) -> Result<(), String> {
        let most = self.grant.subscriptions;
        if self.parts + instruments.max(1) > most {
            let text = "instruments at a time: a request without any counts as one";
            return Err(format!("at most {most} {text}"));
        }
        match self.by_request.len() < MOST_OPEN {
            true => Ok(()),
            false => Err(format!("at most {MOST_OPEN} requests at a time")),
        }
    }

    /// Sets the entitlements of its user, and discards pending items about instruments that the
    /// user may not see.
    pub(crate) fn set_grant(&mut self, grant: &Arc<Grant>, directory: &Directory) {
        self.grant = Arc::clone(grant);
        self.untold
            .retain(|untold| untold.is_seen(grant, directory));
        self.outbox.retain(|out| match &out.of {
            Of::Part(_) => true,
            Of::Told(untold) => untold.is_seen(grant, directory),
        });
    }

    /// Adds a subscription without instruments. Returns its index.
    pub(crate) fn add(&mut self, subscription: Subscription) -> u32 {
        self.parts += 1;
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.subscriptions.push(None);
            self.subscriptions.len() as u32 - 1
        });
        self.by_request.insert(subscription.lead.clone(), number);
        if let Some(place) = self.subscriptions.get_mut(number as usize) {
            *place = Some(Box::new(subscription));
        }
        number
    }

    /// Removes a subscription, whose index is not used again before it is
    /// [released](Self::release).
    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Subscription>> {
        let subscription = self.subscriptions.get_mut(number as usize)?.take()?;
        let parts = subscription.places.len().max(1);
        self.by_request.remove(&subscription.lead);
        self.parts -= parts;
        self.lapsed += parts;
        self.untold.remove(&Untold::TooMany(number));
        self.untold.remove(&Untold::NoneFound(number));
        Some(subscription)
    }

    /// Releases the index of a subscription that was removed, for another one once no part in
    /// `behind` has it. Goes through `behind` only if half of it may be of such subscriptions.
    pub(crate) fn release(&mut self, number: u32) {
        self.released.push(number);
        if self.lapsed * 2 < self.behind.len() {
            return;
        }
        let known = &self.subscriptions;
        let is_known = |part: &Part| matches!(known.get(part.subscription as usize), Some(Some(_)));
        self.behind.retain(is_known);
        self.vacant.append(&mut self.released);
        self.lapsed = 0;
    }

    /// Leaves out indices, in order, for a session without subscriptions, until they are
    /// [released](Self::release).
    pub(crate) fn skip(&mut self, numbers: impl Iterator<Item = u32>) {
        for number in numbers {
            let first = self.subscriptions.len() as u32;
            self.vacant.extend(first..number);
            self.subscriptions.resize_with(number as usize + 1, || None);
        }
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Subscription> {
        self.subscriptions.get(number as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(number as usize)?.as_deref_mut()
    }

    /// Returns whether a message belongs to a conflated subscription.
    pub(crate) fn conflates(&self, out: &Out) -> bool {
        match out.of {
            Of::Part(part) => self
                .get(part.subscription)
                .is_some_and(|own| own.contract == Contract::Conflated),
            Of::Told(_) => false,
        }
    }

    /// Returns the place of a part.
    pub(crate) fn place(&self, part: Part) -> Option<Place> {
        self.get(part.subscription)?
            .places
            .get(part.entry as usize)
            .copied()
    }

    /// Returns whether messages are pending.
    pub(crate) fn has_to_catch_up(&self) -> bool {
        !self.behind.is_empty() || !self.untold.is_empty() || !self.lists.is_empty()
    }
}
