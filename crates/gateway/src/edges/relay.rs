//! The records that the thread of the feeds writes to the ring of a feed's publisher.

use super::sample::BookKind;
use crate::counts::RelayCounts;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy};
use fanfare_feed::recovery::State;
use fanfare_fix::session::Now;
use fanfare_market::relay::{Relayed, Snapshots, Step};
use fanfare_market::state::{has_book, to_event};
use fanfare_market::{Event, Flags, Follower, InstrumentId, Instruments, Kind, LastValues, Market};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The kinds of records.
pub(super) const STEPS: u32 = 0;
pub(super) const INSTRUMENT: u32 = 1;
pub(super) const SNAPSHOT: u32 = 2;

/// The bytes of this ring for each byte of a ring to a worker.
const PER_BYTE: usize = 4;
/// The least size of this ring, in bytes.
const LEAST: usize = 1 << 20;

/// The most events of one sample, unless a packet has more.
const EVENTS: usize = 256;

/// The initial capacity for a record, in bytes.
const ROOM: usize = 1 << 16;

/// The most snapshots of one turn.
const TURN: usize = 16;

/// The longest time between samples to the edges, in nanoseconds.
const BETWEEN: u64 = 200_000_000;

/// The bytes of a snapshot before the definition.
pub(super) const HEAD: usize = 24;

/// The feed's end of the ring to its publisher.
pub(crate) struct Relay {
    ring: Broadcast,
    waker: Waker,
    /// Whether all instruments are to be shown, because an edge has joined, or the publisher was
    /// overtaken.
    asked: Arc<AtomicBool>,
    snapshots: Snapshots,
    last: Vec<LastValues>,
    /// The number of instruments that the publisher has, and those that have changed since.
    known: u32,
    changed: Vec<InstrumentId>,
    /// The time of the last steps.
    spoken: u64,
    room: Vec<u8>,
    events: Vec<Event>,
    counts: RelayCounts,
    wrote: bool,
}

/// The publisher's end of the ring.
pub(super) struct RelayEnd {
    pub(super) ring: BroadcastReader,
    pub(super) waker: Waker,
    pub(super) asked: Arc<AtomicBool>,
    pub(super) longest: usize,
}

impl Relay {
    /// Creates a ring for about as many messages as those of `bytes` to the workers, and its
    /// reading end. Snapshots of an instrument are sent once in `interval` nanoseconds.
    pub(super) fn new(
        bytes: usize,
        interval: u64,
        waker: Waker,
        counts: RelayCounts,
    ) -> Option<(Self, RelayEnd)> {
        let bytes = bytes.saturating_mul(PER_BYTE).max(LEAST);
        let mut ring = Broadcast::new(bytes, 1, Policy::Lap);
        let asked = Arc::new(AtomicBool::new(false));
        let end = RelayEnd {
            ring: ring.subscribe()?,
            waker: waker.clone(),
            asked: Arc::clone(&asked),
            longest: bytes,
        };
        let this = Self {
            ring,
            waker,
            asked,
            snapshots: Snapshots::new(interval),
            last: Vec::new(),
            known: 0,
            changed: Vec::with_capacity(EVENTS),
            spoken: 0,
            room: Vec::with_capacity(ROOM),
            events: Vec::with_capacity(ROOM / Event::SIZE),
            counts,
            wrote: false,
        };
        Some((this, end))
    }

    /// Records the instruments that the events change, by the feed's own numbers. Allocates for new
    /// instruments.
    #[inline]
    pub(crate) fn see(&mut self, now: u64, events: &[Event]) {
        for event in events {
            let number = event.instrument.0;
            if event.instrument == InstrumentId::ALL {
                continue;
            }
            match event.kind {
                Kind::Trade | Kind::Statistic => {
                    let place = number as usize;
                    if place >= self.last.len() {
                        self.last.resize_with(place + 1, LastValues::default);
                    }
                    self.last[place].take(event);
                }
                Kind::Definition | Kind::Status => self.changed.push(event.instrument),
                Kind::State => self.snapshots.hurry(number),
                _ => {}
            }
            self.snapshots.change(now, number);
        }
    }

    /// Writes the events of the turn, and the snapshots that are due.
    pub(crate) fn turn(&mut self, now: Now, follower: &mut Follower) {
        let table = follower.instruments();
        if table.len() > self.known as usize || !self.changed.is_empty() {
            self.put_instruments(table);
        }
        if now.mono.saturating_sub(self.spoken) >= BETWEEN {
            follower.keep_alive();
        }
        if let Some(steps) = follower.steps()
            && !steps.is_empty()
        {
            self.spoken = now.mono;
            steps.parts(EVENTS, |steps, events| self.put_steps(steps, events));
            steps.clear();
        }
        if self.asked.load(Ordering::Relaxed) && self.asked.swap(false, Ordering::Relaxed) {
            self.snapshots.show_all(follower.instruments().len());
        }
        for _ in 0..TURN {
            let Some(number) = self.snapshots.next(now.mono) else {
                break;
            };
            self.put_snapshot(now, follower, InstrumentId(number));
        }
        if std::mem::take(&mut self.wrote) {
            self.waker.wake();
        }
    }

    /// Returns the time of the next scheduled work.
    pub(crate) fn next_timer(&self) -> Option<u64> {
        let spoken = self.spoken + BETWEEN;
        let snapshots = self.snapshots.poll_timeout();
        Some(snapshots.map_or(spoken, |due| due.min(spoken)))
    }

    /// Writes the record in `self.room`.
    fn put(&mut self, kind: u32) {
        self.wrote = true;
        // A ring that laps has capacity for every record that is not too long.
        if self.ring.push(kind, &self.room).is_err() {
            self.counts.too_long.increment(1);
        }
    }

    #[cold]
    fn put_instruments(&mut self, table: &Instruments) {
        let len = u32::try_from(table.len()).unwrap_or(u32::MAX);
        let mut changed = std::mem::take(&mut self.changed);
        let known = self.known;
        changed.retain(|instrument| instrument.0 < known);
        let new = (known..len).map(InstrumentId);
        for id in changed.iter().copied().chain(new) {
            if let Some(instrument) = table.get(id) {
                instrument.write(&mut self.room);
                self.put(INSTRUMENT);
            }
        }
        changed.clear();
        (self.changed, self.known) = (changed, len);
    }

    fn put_steps(&mut self, steps: &[Step], events: &[Event]) {
        self.room.clear();
        let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
        self.room.extend(count.to_le_bytes());
        self.room.extend(steps.iter().flat_map(Step::to_bytes));
        self.room.extend(events.iter().flat_map(Event::to_bytes));
        self.put(STEPS);
    }

    fn put_snapshot(&mut self, now: Now, follower: &Follower, id: InstrumentId) {
        let Some(instrument) = follower.instruments().get(id) else {
            return;
        };
        instrument.write(&mut self.room);
        Relayed::mark(&mut self.room, follower.restarts());
        let definition = u32::try_from(self.room.len()).unwrap_or(u32::MAX);
        let market = follower.market();
        let code = market.state(id).map_or(0, |state| to_event(state).id);
        let last = follower.last_number();
        let mut head = [0; HEAD];
        let words = [
            code | u64::from(last.is_some()) << 8 | u64::from(last.unwrap_or(0)) << 32,
            now.utc.nanos().unsigned_abs(),
            definition.into(),
        ];
        for (place, word) in head.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        self.room.splice(0..0, head);
        match shown(market, id) {
            Shown::Book => {
                self.snapshot(follower, id);
                self.room
                    .extend(self.events.iter().flat_map(Event::to_bytes));
            }
            Shown::Later => self.snapshots.change(now.mono, id.0),
            Shown::Nothing => {}
        }
        self.put(SNAPSHOT);
    }

    /// Writes the book and the last values of an instrument.
    fn snapshot(&mut self, follower: &Follower, id: InstrumentId) {
        let events = &mut self.events;
        events.clear();
        follower
            .market()
            .snapshot_of(id, &mut |event| events.push(*event));
        let rpt_seq = events.last().map_or(0, |event| event.rpt_seq);
        let values = self.last.get(id.0 as usize);
        events.extend(values.into_iter().flat_map(LastValues::iter));
        for event in &mut *events {
            (event.flags, event.rpt_seq) = (Flags::SNAPSHOT, rpt_seq);
        }
        if let Some(last) = events.last_mut() {
            last.flags = last.flags.with(Flags::LAST);
        }
    }
}

/// The part of a book that its snapshot has.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Book,
    /// Nothing yet. The snapshot is to be made again.
    Later,
    /// Nothing before the next change of the state.
    Nothing,
}

/// Returns the part of its book that the snapshot of an instrument has.
fn shown(market: &Market, id: InstrumentId) -> Shown {
    let state = market.state(id);
    if !state.is_some_and(has_book) {
        return Shown::Nothing;
    }
    // With a book that is ahead, the edge would apply the messages in between again. Here they
    // change nothing when they arrive. While the lines are silent, none arrives.
    match (market.is_ahead(id), state) {
        (false, _) => Shown::Book,
        (true, Some(State::Live)) => Shown::Later,
        (true, _) => Shown::Nothing,
    }
}

/// Returns the kind of the books of a feed.
pub(super) fn book_kind(book: &crate::market::config::FeedBook) -> BookKind {
    let rules = book.book().map_or(0, |book| book.rules());
    BookKind {
        kind: book.kind as u8 | (rules as u8) << 4,
        numbers: book.numbers as u8,
        depth: book.depth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::config::FeedBook;
    use fanfare_engine::counters::Counters;
    use fanfare_fast::Program;
    use fanfare_feed::channel;
    use fanfare_feed::recovery::{Numbering, RecoveryConfig};
    use fanfare_market::instruments::Name;
    use fanfare_market::{BookConfig, FollowerConfig, Mapping, MarketConfig};
    use fanfare_wire::UtcTimestamp;

    #[test]
    fn books_with_other_rules_are_of_another_kind() {
        let plain = FeedBook::default();
        let crossing = FeedBook {
            may_cross: true,
            ..plain.clone()
        };
        assert_eq!(book_kind(&plain).kind, plain.kind as u8);
        assert_ne!(book_kind(&plain), book_kind(&crossing));
    }

    #[test]
    fn a_book_that_is_ahead_is_shown_again_only_while_messages_may_arrive() {
        for numbering in [Numbering::Channel, Numbering::Instrument] {
            let config = MarketConfig {
                book: BookConfig::by_price(5).unwrap(),
                recovery: RecoveryConfig::new(numbering),
                has_natural_refresh: false,
                source: 1,
            };
            let (mut market, id) = (Market::new(config, 1), InstrumentId(0));
            let clear = [Event {
                instrument: id,
                rpt_seq: 5,
                flags: Flags::SNAPSHOT,
                ..Event::EMPTY
            }];
            let snapshot = |market: &mut Market| {
                market.snapshot((0, 0), Some(12), &clear, &mut |_| {});
                shown(market, id)
            };
            assert_eq!(snapshot(&mut market), Shown::Nothing, "nothing has arrived");
            market.see(10, &mut |_| {});
            assert_eq!(snapshot(&mut market), Shown::Later);
            for (is_silent, expected) in [(true, Shown::Nothing), (false, Shown::Later)] {
                market.silence(is_silent, &mut |_| {});
                assert_eq!(shown(&market, id), expected);
            }
            market.see(12, &mut |_| {});
            assert_eq!(shown(&market, id), Shown::Book);
            market.silence(true, &mut |_| {});
            assert_eq!(shown(&market, id), Shown::Book);
        }
    }

    const TEMPLATES: &str = r#"<templates><template name="Changes" id="1">
        <uInt32 name="MsgSeqNum" id="34"/>
        <sequence name="Entries"><length name="NoMDEntries" id="268"/>
        <uInt32 name="Action" id="279"/><string name="EntryType" id="269"/>
        <string name="Symbol" id="55"/><decimal name="Price" id="270"/>
        <uInt32 name="Size" id="271"/><uInt32 name="Level" id="1023"/>
        </sequence></template></templates>"#;

    const MAPPING: &str = r#"
[[message]]
template = "Changes"
does = "changes"
number = 34
entries = 268
instrument = { symbol = 55 }
entry = { type = 269, action = 279, price = 270, size = 271 }
event = [{ kind = "level", level = 1023 }]
"#;

    #[test]
    fn a_snapshot_shows_the_restarts_of_its_channel_also_without_a_book() {
        let program = Arc::new(Program::parse(TEMPLATES).unwrap());
        let mapping = Mapping::parse("mapping", MAPPING).unwrap();
        let config = FollowerConfig::new(MarketConfig {
            book: BookConfig::by_price(5).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Channel),
            has_natural_refresh: false,
            source: 1,
        });
        let mut table = Instruments::new(1);
        let id = table.see(&Name::of_symbol(b"A")).unwrap();
        let mapper = mapping.for_templates(&program, 1).unwrap();
        let mut follower = Follower::new(config, mapper, table).with_steps();
        let counts = RelayCounts::new(&Counters::new(), "");
        let ends = Relay::new(1, 1, Waker::detached().unwrap(), counts);
        let (mut relay, mut end) = ends.unwrap();
        let reset = channel::Event::Reset {
            expected: 1,
            next: 1,
            announced: true,
        };
        let now = Now {
            mono: 1,
            utc: UtcTimestamp::from_nanos(1),
        };
        for restarts in 0..2_u32 {
            relay.put_snapshot(now, &follower, id);
            let mut shown = Vec::new();
            let batch = end.ring.read(2, |record| {
                shown.push((record.kind, record.bytes[HEAD + 12..HEAD + 16].to_vec()));
            });
            assert_eq!((batch.read, batch.lost), (1, 0));
            assert_eq!(shown, [(SNAPSHOT, (restarts + 1).to_le_bytes().to_vec())]);
            follower.channel(0, &reset, &mut |_| {});
        }
    }
}
