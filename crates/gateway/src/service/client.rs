//! A session that asks for market data, and what it has asked for.

use super::bodies::BodyId;
use super::class::Spec;
use super::classes::Place;
use super::contract::Contract;
use super::list::List;
use super::patterns::Pattern;
use crate::users::grant::Grant;
use crate::users::roster::Served;
use fanfare_engine::host::SessionKey;
use fanfare_fix::session::SECOND;
use fanfare_market::{Event, InstrumentId, Kind};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Messages of a turn that a session has room for from the start.
const OUTBOX: usize = 64;

/// A message of this turn for a session.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub(crate) body: BodyId,
    pub(crate) of: Of,
}

/// What a message is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// An instrument of a subscription.
    Part(Part),
    /// No subscription.
    Told(Untold),
}

/// An instrument of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) subscription: u32,
    pub(crate) entry: u32,
}

/// What a session has not been told of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Untold {
    /// Its state.
    State(InstrumentId),
    /// Its trading status.
    Status(InstrumentId),
    /// The status of a feed's trading session.
    Session(u16),
    /// That a subscription has more instruments than the session may have.
    TooMany(u32),
}

/// A session that is logged on.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) key: SessionKey,
    /// The place of its version.
    pub(crate) version: usize,
    pub(crate) grant: Arc<Grant>,
    pub(crate) subscriptions: Vec<Option<Box<Subscription>>>,
    /// Places of `subscriptions` whose subscription has ended.
    vacant: Vec<u32>,
    /// By their [leads](Subscription::lead).
    by_request: HashMap<Box<[u8]>, u32>,
    /// Whether it has asked for market data since it logged on, granted or refused.
    pub(crate) has_asked: bool,
    /// Instruments of all its subscriptions.
    pub(crate) parts: usize,
    /// Messages of this turn.
    pub(crate) outbox: Vec<Out>,
    /// Instruments whose picture has to come first.
    pub(crate) behind: VecDeque<Part>,
    pub(crate) untold: BTreeSet<Untold>,
    /// Lists of instruments that are being sent, the first in front.
    pub(crate) lists: VecDeque<List>,
    /// The event whose state was told last: several subscriptions are told once.
    pub(crate) told: u64,
    /// Whether it is among those with something to catch up.
    pub(crate) is_waiting: bool,
    /// Requests in the second that began at this time.
    requests: (u64, u32),
    /// Of all its subscriptions, those that have ended among them.
    losses: Losses,
}

/// What did not go out one by one, because the client was behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Updates that were merged into later ones.
    pub(crate) conflated: u64,
    /// Updates that were left out, and announced.
    pub(crate) skipped: u64,
}

/// A MarketDataRequest(V) that is being served.
#[derive(Debug)]
pub(crate) struct Subscription {
    /// `262=…|`, in front of each of its messages; `324=…|` if it is of the trading status.
    pub(crate) lead: Box<[u8]>,
    pub(crate) spec: Spec,
    pub(crate) contract: Contract,
    /// 263=1: goes on behind the picture.
    pub(crate) goes_on: bool,
    pub(crate) places: Vec<Place>,
    /// Instruments that were named one by one, in order.
    pub(crate) named: Arc<[InstrumentId]>,
    /// Prefixes: instruments that come later belong to it too.
    pub(crate) patterns: Vec<Pattern>,
    /// The pattern whose instruments are being added, and the last symbol that was.
    pub(crate) growing: Option<(usize, Option<Box<[u8]>>)>,
    /// Parts that have not had their picture, where nothing follows it.
    pub(crate) unserved: usize,
    /// Trades that wait while the client is behind, and how many found no room here.
    pub(crate) trades: Vec<Event>,
    pub(crate) trades_left_out: u64,
    pub(crate) losses: Losses,
}

/// Trades that wait for one subscription at most.
const MOST_TRADES: usize = 1024;

/// The field that each message of a subscription begins with.
pub(crate) fn lead(tag: u32, id: &[u8]) -> Vec<u8> {
    let mut lead = format!("{tag}=").into_bytes();
    lead.extend_from_slice(id);
    lead.push(1);
    lead
}

impl Subscription {
    /// One of instruments that are named one by one, in order.
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
            growing: None,
            unserved: 0,
            trades: Vec::new(),
            trades_left_out: 0,
            losses: Losses::default(),
        }
    }

    /// Whether it is of the trading status alone: SecurityStatusRequest(e).
    pub(crate) const fn is_of_status(&self) -> bool {
        self.spec.entries.is_empty()
    }

    /// MDReqID(262) or SecurityStatusReqID(324).
    pub(crate) fn request(&self) -> &[u8] {
        let end = self.lead.len().saturating_sub(1);
        self.lead.get(4..end).unwrap_or_default()
    }

    /// Keeps the trades of an update that the client is behind with.
    pub(crate) fn hold_trades(&mut self, entries: &[Event]) {
        for event in entries.iter().filter(|event| event.kind == Kind::Trade) {
            match self.trades.len() < MOST_TRADES {
                // Without a number: it is not in its turn.
                true => self.trades.push(Event {
                    rpt_seq: 0,
                    ..*event
                }),
                false => self.trades_left_out += 1,
            }
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
            by_request: HashMap::new(),
            has_asked: false,
            parts: 0,
            outbox: Vec::with_capacity(OUTBOX),
            behind: VecDeque::new(),
            untold: BTreeSet::new(),
            lists: VecDeque::new(),
            told: 0,
            is_waiting: false,
            requests: (0, 0),
            losses: Losses::default(),
        }
    }

    /// What it has been served so far.
    pub(crate) fn served(&self) -> Served {
        Served {
            conflated: self.losses.conflated,
            skipped: self.losses.skipped,
            subscriptions: (self.subscriptions.len() - self.vacant.len()) as u64,
        }
    }

    /// Notes that an update of a subscription was merged into a later one.
    pub(crate) fn count_conflated(&mut self, subscription: u32) {
        self.losses.conflated += 1;
        if let Some(own) = self.get_mut(subscription) {
            own.losses.conflated += 1;
        }
    }

    /// Notes that an update of a subscription was left out.
    pub(crate) fn count_skipped(&mut self, subscription: u32) {
        self.losses.skipped += 1;
        if let Some(own) = self.get_mut(subscription) {
            own.losses.skipped += 1;
        }
    }

    /// Whether it may make one more request now.
    pub(crate) fn may_ask(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.requests.0) >= SECOND {
            self.requests = (now, 0);
        }
        self.requests.1 = self.requests.1.saturating_add(1);
        self.requests.1 <= self.grant.requests_per_second
    }

    /// The subscription with an ID: MDReqID(262) or SecurityStatusReqID(324).
    pub(crate) fn find(&self, tag: u32, id: &[u8]) -> Option<u32> {
        self.by_request.get(lead(tag, id).as_slice()).copied()
    }

    /// Adds a subscription. Returns its place.
    pub(crate) fn add(&mut self, subscription: Subscription) -> u32 {
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

    /// Removes a subscription.
    pub(crate) fn remove(&mut self, number: u32) -> Option<Box<Subscription>> {
        let subscription = self.subscriptions.get_mut(number as usize)?.take()?;
        self.vacant.push(number);
        self.by_request.remove(&subscription.lead);
        self.parts -= subscription.places.len();
        self.behind.retain(|part| part.subscription != number);
        Some(subscription)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Subscription> {
        self.subscriptions.get(number as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Subscription> {
        self.subscriptions.get_mut(number as usize)?.as_deref_mut()
    }

    /// Whether a message is of a conflated subscription.
    pub(crate) fn conflates(&self, out: &Out) -> bool {
        match out.of {
            Of::Part(part) => self
                .get(part.subscription)
                .is_some_and(|own| own.contract == Contract::Conflated),
            Of::Told(_) => false,
        }
    }

    /// Where a part stands.
    pub(crate) fn place(&self, part: Part) -> Option<Place> {
        self.get(part.subscription)?
            .places
            .get(part.entry as usize)
            .copied()
    }

    /// Whether there is something to catch up.
    pub(crate) fn has_to_catch_up(&self) -> bool {
        !self.behind.is_empty() || !self.untold.is_empty() || !self.lists.is_empty()
    }
}
