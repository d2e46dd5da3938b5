//! The outlet of a feed's events to the ring: instruments before their events, the plant's numbers,
//! states and their notices. It is the same for a feed that is received and one that is relayed.

use super::ring::EventRing;
use super::states::{StateCounts, States};
use crate::counts::MarketCounts;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::gateway::plan::Plan;
use crate::notice::{Notice, Notices};
use fanfare_fix::session::Now;
use fanfare_market::instruments::Instrument;
use fanfare_market::mapping::Counts;
use fanfare_market::{Event, InstrumentId, Instruments, Kind, Values};
use std::sync::Arc;

/// The initial capacity for the events of a message.
const ROOM: usize = 1_024;

/// The most instruments that are shown again in a turn, after a reader has lost events.
pub(crate) const SHOWN: usize = 16;

/// The interval at which other counters are set, in nanoseconds.
const LOOK: u64 = 100_000_000;

/// The shortest time between two notices of the states of a feed's instruments, in nanoseconds. The
/// longer one applies while some recover.
const BETWEEN: u64 = 1_000_000_000;
const WHILE_RECOVERING: u64 = 10_000_000_000;

/// The outlet of one feed's events to the ring.
pub(crate) struct MarketOutlet {
    /// The plant's number of the feed's first instrument.
    base: u32,
    pub(crate) brought: Brought,
    /// The number of instruments of the table that the ring has.
    known: u32,
    /// The next instrument to be shown again, or `None` if all were.
    shown: Option<u32>,
    /// Whether all are to be shown again afterwards, because the lost events may belong to the
    /// first ones.
    is_asked_again: bool,
    /// The last values of the instruments, unless they are kept elsewhere.
    values: Option<Values>,
    states: States,
    /// The states in the last notice, and the time at which it was sent.
    notice: (StateCounts, u64),
    /// The time at which other counters are set next.
    due: u64,
    /// Whether a notice has told that little room is left for instruments.
    has_told_room: bool,
    channel: Arc<str>,
    pub(crate) counts: MarketCounts,
    notices: Notices,
}

/// The events of a feed's message, until they are written to the ring.
#[derive(Default)]
pub(crate) struct Brought {
    pub(crate) events: Vec<Event>,
    /// The instruments of which anything besides the book has changed.
    pub(crate) changed: Vec<InstrumentId>,
}

impl Brought {
    /// Adds an event.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event) {
        self.events.push(*event);
        if matches!(event.kind, Kind::Definition | Kind::Status) {
            self.changed.push(event.instrument);
        }
    }
}

impl MarketOutlet {
    /// Creates the outlet of the feed with this name. `base` is the plant's number of its first
    /// instrument.
    pub(crate) fn new(channel: Arc<str>, base: u32, plan: Plan<'_>) -> Self {
        Self {
            base,
            brought: Brought {
                events: Vec::with_capacity(ROOM),
                changed: Vec::with_capacity(ROOM),
            },
            known: 0,
            shown: None,
            is_asked_again: false,
            values: None,
            states: States::default(),
            notice: Default::default(),
            due: 0,
            has_told_room: false,
            counts: MarketCounts::new(plan.counters, &channel),
            channel,
            notices: plan.notices.clone(),
        }
    }

    /// Keeps the last values of the instruments, to show them with the books.
    pub(crate) fn with_values(mut self) -> Self {
        self.values = Some(Values::default());
        self
    }

    /// Returns the number of instruments of the table that the ring has.
    pub(crate) const fn known(&self) -> u32 {
        self.known
    }

    /// Writes the collected records to the ring: new and changed instruments, then events.
    #[inline]
    pub(crate) fn pass_on(&mut self, table: &Instruments, ring: &mut EventRing) {
        self.prepare(table, ring);
        ring.put(&mut self.brought.events);
        self.brought.events.clear();
    }

    /// Writes the collected records of the end of the feed, as [`Self::pass_on`] does. The events
    /// may be of many messages, and more than the ring holds: see [`EventRing::put_last`].
    pub(crate) fn pass_last(&mut self, table: &Instruments, ring: &mut EventRing) {
        self.prepare(table, ring);
        ring.put_last(&mut self.brought.events);
        self.brought.events.clear();
    }

    /// Writes new and changed instruments to the ring, and counts the collected events, which get
    /// the plant's numbers of their instruments.
    #[inline]
    fn prepare(&mut self, table: &Instruments, ring: &mut EventRing) {
        if table.len() > self.known as usize || !self.brought.changed.is_empty() {
            self.put_instruments(table, ring);
        }
        for event in &mut self.brought.events {
            if event.kind == Kind::State {
                self.states.take(event);
            } else if let Some(values) = &mut self.values {
                values.take(event);
            }
            if event.instrument != InstrumentId::ALL {
                event.instrument.0 += self.base;
            }
        }
        let events = self.brought.events.len() as u64;
        self.counts.events.increment(events);
    }

    /// Writes events with the plant's numbers to the ring. `continues` is set if others of their
    /// message follow.
    pub(crate) fn pass_numbered(
        &mut self,
        events: &[Event],
        continues: bool,
        ring: &mut EventRing,
    ) {
        for event in events.iter().filter(|event| event.kind == Kind::State) {
            self.states.take(event);
        }
        self.counts.events.increment(events.len() as u64);
        ring.put_numbered(events, continues);
    }

    /// Writes new and changed instruments to the ring.
    #[cold]
    fn put_instruments(&mut self, table: &Instruments, ring: &mut EventRing) {
        let base = self.base;
        for changed in self.brought.changed.drain(..) {
            if changed.0 < self.known
                && let Some(instrument) = numbered(table, changed.0, base)
            {
                ring.put_instrument(&instrument);
            }
        }
        let len = len_of(table);
        for number in self.known..len {
            if let Some(instrument) = numbered(table, number, base) {
                ring.put_instrument(&instrument);
            }
        }
        self.known = len;
    }

    /// Introduces the instruments of the table, before the feed brings anything.
    pub(crate) fn introduce(&mut self, table: &Instruments, ring: &mut EventRing) {
        let len = len_of(table);
        for number in self.known..len {
            if let Some(instrument) = numbered(table, number, self.base) {
                ring.introduce(&instrument);
            }
        }
        self.known = len;
    }

    /// Collects the events that show the next instrument again, after a reader has lost events.
    /// `show` adds those of its book and state. Returns false if there is no instrument to be
    /// shown.
    pub(crate) fn show_next(
        &mut self,
        now: Now,
        show: impl FnOnce(u64, InstrumentId, &mut Vec<Event>),
    ) -> bool {
        let Some(number) = self.shown else {
            return false;
        };
        let received = now.utc.nanos().unsigned_abs();
        let events = &mut self.brought.events;
        if number < self.known {
            let instrument = InstrumentId(number);
            self.brought.changed.push(instrument);
            let start = events.len();
            show(received, instrument, events);
            if let Some(values) = &self.values {
                values.show(instrument, received, events, start);
            }
        }
        let next = number.saturating_add(1);
        if next >= self.known
            && let Some(values) = &self.values
        {
            events.extend(values.sessions(received));
        }
        self.shown = match next < self.known {
            true => Some(next),
            false => std::mem::take(&mut self.is_asked_again).then_some(0),
        };
        true
    }

    /// Marks all instruments to be shown again.
    pub(crate) const fn show_all(&mut self) {
        match self.shown {
            Some(_) => self.is_asked_again = true,
            None => self.shown = Some(0),
        }
    }

    /// Returns whether some instruments are still to be shown.
    pub(crate) const fn is_showing(&self) -> bool {
        self.shown.is_some()
    }

    /// Publishes the number of instruments in each state, and sends a notice of it. Allocates
    /// nothing.
    pub(crate) fn count(&mut self, now: u64) {
        let counts = self.states.counts();
        let (before, at) = self.notice;
        if counts == before {
            return;
        }
        let are_whole = |counts: StateCounts| counts.recovering + counts.stale == 0;
        let is_news = are_whole(before) || are_whole(counts) || before.all() != counts.all();
        let between = if is_news { BETWEEN } else { WHILE_RECOVERING };
        if now.saturating_sub(at) < between {
            return;
        }
        self.notice = (counts, now);
        self.set_counts();
        let (channel, what) = (Arc::clone(&self.channel), MarketNotice::States(counts));
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Sends a notice, once, when the table has nine tenths of the instruments that it takes.
    pub(crate) fn tell_room(&mut self, table: &Instruments) {
        let (have, most) = (table.len(), table.limit());
        if self.has_told_room || have < most - most / 10 {
            return;
        }
        self.has_told_room = true;
        let closed = self.states.counts().closed;
        let what = format!(
            "the feed has {have} instruments of at most {most} (`most_instruments`), {closed} of \
             them closed in this run. Closed instruments keep their places, with [history] over \
             restarts too; a start with a larger `most_instruments`, or with a new \
             `history.folder`, makes room"
        );
        let (channel, what) = (Arc::clone(&self.channel), MarketNotice::Room(what));
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Returns whether other counters are due.
    #[inline]
    pub(crate) const fn is_due(&mut self, now: u64) -> bool {
        let is_due = now >= self.due;
        if is_due {
            self.due = now + LOOK;
        }
        is_due
    }

    pub(crate) fn set_counts(&self) {
        let (counts, states) = (&self.counts, self.states.counts());
        counts.live.set(states.live);
        counts.recovering.set(states.recovering);
        counts.stale.set(states.stale);
        counts.closed.set(states.closed);
    }
}

fn len_of(table: &Instruments) -> u32 {
    u32::try_from(table.len()).unwrap_or(u32::MAX)
}

/// Returns an instrument of a table with the plant's number. `base` is that of the first one.
fn numbered(table: &Instruments, number: u32, base: u32) -> Option<Instrument<'_>> {
    let mut instrument = table.get(InstrumentId(number))?;
    instrument.instrument.0 += base;
    Some(instrument)
}

/// Returns a notice of the entries that a mapping has left out, whenever their number has doubled
/// since `told`. `refused` are those of instruments beyond the limit of the books.
#[cold]
pub(crate) fn left_out(counts: Counts, refused: u64, told: &mut u64) -> Option<MarketNotice> {
    let named = [
        (counts.no_rule, "that no rule of the mapping fits"),
        (counts.without_instrument, "without an instrument"),
        (counts.unknown_instrument, "of instruments never defined"),
        (
            counts.table_full + refused,
            "of instruments beyond the limit",
        ),
    ];
    let total = named.iter().map(|(count, _)| count).sum();
    if total == 0 || total < 2 * *told {
        return None;
    }
    *told = total;
    let parts = named.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let what = format!("left out so far, entries: {}", parts.join(", "));
    Some(MarketNotice::LeftOut(what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice;
    use crate::test_log::named;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::stop::Stop;

    #[test]
    fn little_room_for_instruments_is_told_once_and_before_it_ends() {
        let (counters, stop) = (Counters::new(), Stop::new());
        let (notices, received) = notice::channel();
        let plan = Plan::of_a_test(&counters, &notices, &stop);
        let mut outlet = MarketOutlet::new("one".into(), 0, plan);
        let (mut table, mut told) = (Instruments::new(20), Vec::new());
        for number in 1..=20 {
            table.define(&named(&format!("S{number}"))).unwrap();
            outlet.tell_room(&table);
            told.extend(received.iter().map(|notice| (number, notice.to_string())));
        }
        let [(18, notice)] = &told[..] else {
            panic!("{told:?}");
        };
        let says = "feed one: the feed has 18 instruments of at most 20 (`most_instruments`)";
        assert!(notice.contains(says), "{notice}");
    }
}
