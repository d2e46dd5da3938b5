//! The assembly of snapshots that span several messages.
//!
//! A mapping specifies by `last-fragment`, and if the feed has them by `first-fragment` and
//! `fragment`, which part of a snapshot a message has. [`Fragments`] holds the parts until the last
//! one has arrived, and discards a snapshot that lacks one, so that only complete snapshots are
//! returned.
//!
//! No message may be missing between the fragments of a snapshot, by MsgSeqNum(34). Fragments with
//! numbers of their own may be interleaved with those of other instruments. Those without are in
//! consecutive messages. If nothing marks the first one, it is the message after the end of another
//! snapshot, even if a SequenceReset(4) stands between them.

use crate::book::{BookConfig, BookKind};
use crate::event::{Event, Flags, InstrumentId};
use crate::mapping::{Does, Fragment, Outcome, Snapshot};
use crate::snapshot_fault::{SnapshotFault, SnapshotWhy};
use std::collections::HashMap;

/// The limits on incomplete snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentConfig {
    /// The most events of one snapshot. A larger one is discarded.
    pub most_per_snapshot: usize,
    /// The most events of all incomplete snapshots, 64 bytes each. Beyond it, the oldest incomplete
    /// snapshot is discarded.
    pub most: usize,
}

impl Default for FragmentConfig {
    /// Returns 65,536 events of a snapshot (4 MB) and 1,048,576 of all (64 MB).
    fn default() -> Self {
        Self {
            most_per_snapshot: 1 << 16,
            most: 1 << 20,
        }
    }
}

impl FragmentConfig {
    /// The most trades and values of the session in a snapshot, besides its book.
    const BESIDE: usize = 1_024;

    /// Returns limits that a snapshot of each book with this configuration fits, and two of them at
    /// a time; at least the default ones.
    #[must_use]
    pub fn of(book: &BookConfig) -> Self {
        let entries = match book.kind() {
            BookKind::Orders => book.orders(),
            BookKind::Levels | BookKind::Prices => book.levels().saturating_mul(2),
        };
        let whole = entries as usize + Self::BESIDE;
        let least = Self::default();
        Self {
            most_per_snapshot: least.most_per_snapshot.max(whole),
            most: least.most.max(2 * whole),
        }
    }
}

/// The counts of the assembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FragmentStats {
    /// Messages with a part of a snapshot.
    pub fragments: u64,
    /// Snapshots of more than one message that were completed.
    pub whole: u64,
    /// Snapshots with a fragment that is missing, repeated, or of another moment.
    pub discarded: u64,
    /// Snapshots discarded because of the limits.
    pub no_room: u64,
    /// Fragments of snapshots whose beginning is missing.
    pub without_beginning: u64,
}

impl FragmentStats {
    /// Returns all counters with their names.
    pub const fn all(&self) -> [(&'static str, u64); 5] {
        [
            ("seen", self.fragments),
            ("whole", self.whole),
            ("discarded", self.discarded),
            ("no_room", self.no_room),
            ("without_beginning", self.without_beginning),
        ]
    }

    /// Returns the number of snapshots that will not be completed.
    pub(crate) const fn lost(&self) -> u64 {
        self.discarded + self.no_room + self.without_beginning
    }

    /// Returns the sums of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            fragments: self.fragments + other.fragments,
            whole: self.whole + other.whole,
            discarded: self.discarded + other.discarded,
            no_room: self.no_room + other.no_room,
            without_beginning: self.without_beginning + other.without_beginning,
        }
    }
}

/// The events of a message, or of a complete snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole<'a> {
    /// The events. Those of a snapshot are a Clear and its entries.
    pub events: &'a [Event],
    /// MsgSeqNum(34) of the message, or of the first one of the snapshot.
    pub number: Option<u64>,
}

/// An incomplete snapshot.
#[derive(Debug)]
struct Part {
    /// The fields that all fragments share.
    moment: (Option<u32>, Option<u64>),
    /// The expected number of the next fragment, or of its message if fragments have none.
    next: u64,
    /// MsgSeqNum(34) of the first message.
    number: Option<u64>,
    /// The age rank: later snapshots have higher values.
    age: u64,
    events: Vec<Event>,
}

/// An assembler of snapshots. See the module's text. Each channel has one of its own.
///
/// Allocates for incomplete snapshots beyond the most held before.
#[derive(Debug, Default)]
pub struct Fragments {
    config: FragmentConfig,
    parts: HashMap<u32, Part>,
    /// The snapshot that was completed last.
    whole: Vec<Event>,
    /// The buffers of former snapshots.
    spare: Vec<Vec<Event>>,
    held: usize,
    begun: u64,
    /// MsgSeqNum(34) of the previous message.
    last: Option<u64>,
    /// Whether the previous message left no snapshot incomplete.
    is_between: bool,
    stats: FragmentStats,
    /// The first fault since the last call of [`Self::take_fault`].
    fault: Option<SnapshotFault>,
}

impl Fragments {
    /// Creates an assembler without fragments.
    pub fn new(config: FragmentConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// Returns the counters of the assembly so far.
    pub const fn stats(&self) -> FragmentStats {
        self.stats
    }

    /// Takes the first fault since the last call.
    pub(crate) const fn take_fault(&mut self) -> Option<SnapshotFault> {
        self.fault.take()
    }

    /// Processes a message of the channel, in order, after arbitration of its lines. Returns its
    /// events, or those of the snapshot that it completes. Returns `None` if it has a part of a
    /// snapshot that is not complete yet, or never will be.
    pub fn take<'a>(&'a mut self, outcome: &Outcome, events: &'a [Event]) -> Option<Whole<'a>> {
        let number = outcome.number;
        let Some(snapshot) = outcome.snapshot else {
            self.pass(outcome);
            return Some(Whole { events, number });
        };
        if !self.is_next(number) {
            self.lose(SnapshotWhy::Gap);
        }
        let was_between = self.is_between;
        self.last = number;
        self.is_between = snapshot.fragment.is_none_or(|fragment| fragment.is_last);
        let Some(fragment) = snapshot.fragment else {
            self.discard(snapshot.instrument.0, SnapshotWhy::Unfinished);
            return Some(Whole { events, number });
        };
        self.stats.fragments += 1;
        let begins = match (fragment.number, fragment.is_first) {
            (Some(own), _) => own == 1,
            (None, Some(is_first)) => is_first,
            (None, None) => was_between,
        };
        if begins {
            self.discard(snapshot.instrument.0, SnapshotWhy::Unfinished);
            if fragment.is_last {
                return Some(Whole { events, number });
            }
            self.begin(number, &snapshot, fragment, events);
            return None;
        }
        self.go_on(&snapshot, fragment, events)
    }

    /// Records that messages are missing, among which may be a fragment of each snapshot. Even a
    /// later fragment of the same moment may belong to another snapshot, which is divided
    /// differently.
    #[cold]
    pub(crate) fn lose(&mut self, why: SnapshotWhy) {
        self.is_between = false;
        self.discard_all(why);
    }

    /// Processes a message without a snapshot, or one that could not be mapped, of which
    /// [`MapError::outcome`](crate::mapping::MapError::outcome) is known.
    #[inline]
    pub fn pass(&mut self, outcome: &Outcome) {
        let has_lost = outcome.does == Some(Does::Snapshot);
        if has_lost || outcome.number.is_some() {
            if has_lost {
                self.lose(SnapshotWhy::Unread);
            } else if !self.is_next(outcome.number) {
                self.lose(SnapshotWhy::Gap);
            }
            self.last = outcome.number;
        }
        if let (Some(Does::SequenceReset), Some(next)) = (outcome.does, outcome.next) {
            // No message is missing between it and the first one of the new numbers.
            self.last = Some(next.wrapping_sub(1));
        }
    }

    /// Returns whether no message is missing between the previous one and this one.
    #[inline]
    fn is_next(&self, number: Option<u64>) -> bool {
        number.is_some() && self.last.map(|last| last.wrapping_add(1)) == number
    }

    fn begin(
        &mut self,
        number: Option<u64>,
        snapshot: &Snapshot,
        fragment: Fragment,
        events: &[Event],
    ) {
        if fragment.number.is_none() {
            // If fragments are in consecutive messages, only one snapshot is incomplete.
            self.discard_all(SnapshotWhy::Unfinished);
        }
        if !self.has_room((snapshot.instrument.0, number), 0, events.len()) {
            return;
        }
        self.begun += 1;
        let mut room = self.spare.pop().unwrap_or_default();
        room.extend(events.iter().map(inner));
        self.held += events.len();
        let part = Part {
            moment: moment(snapshot, fragment),
            next: match fragment.number {
                Some(own) => u64::from(own) + 1,
                None => number.unwrap_or(0).wrapping_add(1),
            },
            number,
            age: self.begun,
            events: room,
        };
        self.parts.insert(snapshot.instrument.0, part);
    }

    fn go_on(
        &mut self,
        snapshot: &Snapshot,
        fragment: Fragment,
        events: &[Event],
    ) -> Option<Whole<'_>> {
        let id = snapshot.instrument.0;
        let Some(part) = self.parts.get(&id) else {
            if fragment.number.is_none() {
                self.discard_all(SnapshotWhy::Unfinished);
            }
            self.stats.without_beginning += 1;
            self.note(id, self.last, SnapshotWhy::NoBeginning);
            return None;
        };
        // Without a number of its own it directly follows the previous fragment.
        let number = fragment.number.map(u64::from).or(self.last);
        if number != Some(part.next) || part.moment != moment(snapshot, fragment) {
            self.discard(id, SnapshotWhy::NotNext);
            return None;
        }
        // Its Clear was in an earlier part.
        let more = events.get(1..).unwrap_or_default();
        if !self.has_room((id, part.number), part.events.len(), more.len()) {
            self.remove(id);
            return None;
        }
        let part = self.parts.get_mut(&id)?;
        if let Some(clear) = part.events.first_mut() {
            clear.rpt_seq = clear.rpt_seq.max(snapshot.rpt_seq);
        }
        part.events.extend(more.iter().map(inner));
        part.next = part.next.wrapping_add(1);
        self.held += more.len();
        if !fragment.is_last {
            return None;
        }
        let number = part.number;
        self.finish(id);
        Some(Whole {
            events: &self.whole,
            number,
        })
    }

    /// Completes the snapshot, whose parts become like those of one message.
    fn finish(&mut self, id: u32) {
        let Some(part) = self.parts.remove(&id) else {
            return;
        };
        self.held -= part.events.len();
        let mut before = std::mem::replace(&mut self.whole, part.events);
        before.clear();
        self.keep(before);
        self.stats.whole += 1;
        if let Some(last) = self.whole.last_mut() {
            last.flags = last.flags.with(Flags::LAST);
        }
    }

    /// Returns whether the limits allow more events of a snapshot, which begins with the message of
    /// this number, after others were discarded if necessary.
    fn has_room(&mut self, (own, number): (u32, Option<u64>), has: usize, more: usize) -> bool {
        let FragmentConfig {
            most_per_snapshot,
            most,
        } = self.config;
        if has + more > most_per_snapshot.min(most) {
            self.stats.no_room += 1;
            self.note(
                own,
                number,
                SnapshotWhy::TooLarge(most_per_snapshot.min(most)),
            );
            return false;
        }
        while self.held + more > most {
            let others = self.parts.iter().filter(|(id, _)| **id != own);
            let oldest = others.min_by_key(|(_, part)| part.age);
            let Some((id, number)) = oldest.map(|(id, part)| (*id, part.number)) else {
                return false;
            };
            self.stats.no_room += 1;
            self.note(id, number, SnapshotWhy::NoRoom(most));
            self.remove(id);
        }
        true
    }

    /// Removes an incomplete snapshot. Returns MsgSeqNum(34) of its first message, if it is there.
    fn remove(&mut self, id: u32) -> Option<Option<u64>> {
        let mut part = self.parts.remove(&id)?;
        self.held -= part.events.len();
        part.events.clear();
        self.keep(part.events);
        Some(part.number)
    }

    /// Notes a fault of a snapshot for [`Self::take_fault`].
    fn note(&mut self, id: u32, number: Option<u64>, why: SnapshotWhy) {
        self.fault.get_or_insert(SnapshotFault {
            instrument: Some(InstrumentId(id)),
            number,
            why,
        });
    }

    /// Keeps the buffer of a snapshot for another one.
    fn keep(&mut self, room: Vec<Event>) {
        if self.spare.len() < SPARE {
            self.spare.push(room);
        }
    }

    fn discard(&mut self, id: u32, why: SnapshotWhy) {
        if let Some(number) = self.remove(id) {
            self.stats.discarded += 1;
            self.note(id, number, why);
        }
    }

    fn discard_all(&mut self, why: SnapshotWhy) {
        while let Some(id) = self.parts.keys().next().copied() {
            self.discard(id, why);
        }
    }
}

/// The number of buffers that are kept.
const SPARE: usize = 4;

/// Returns the fields that are the same in all fragments of a snapshot.
fn moment(snapshot: &Snapshot, fragment: Fragment) -> (Option<u32>, Option<u64>) {
    let rpt_seq = fragment.has_rpt_seq.then_some(snapshot.rpt_seq);
    (rpt_seq, snapshot.last_processed)
}

/// Returns the event without LAST, because the message ends but the snapshot does not.
fn inner(event: &Event) -> Event {
    Event {
        flags: event.flags.without(Flags::LAST),
        ..*event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Kind;

    const A: u32 = 1;
    const B: u32 = 2;

    /// Returns a fragment with this number of entries.
    fn part(number: u64, instrument: u32, rpt_seq: u32, entries: usize) -> (Outcome, Vec<Event>) {
        let snapshot = Snapshot {
            instrument: InstrumentId(instrument),
            rpt_seq,
            last_processed: Some(500),
            total: None,
            fragment: Some(Fragment {
                is_last: false,
                is_first: None,
                number: None,
                has_rpt_seq: true,
            }),
        };
        let outcome = Outcome {
            does: Some(Does::Snapshot),
            number: Some(number),
            sent: None,
            next: None,
            snapshot: Some(snapshot),
        };
        let clear = Event {
            instrument: InstrumentId(instrument),
            rpt_seq,
            flags: Flags::SNAPSHOT,
            ..Event::EMPTY
        };
        let level = Event {
            kind: Kind::Level,
            id: number,
            ..clear
        };
        let mut events = vec![clear];
        events.extend(vec![level; entries]);
        let last = events.len() - 1;
        events[last].flags = Flags::SNAPSHOT.with(Flags::LAST);
        (outcome, events)
    }

    fn change(outcome: &mut Outcome, change: impl FnOnce(&mut Fragment)) {
        let snapshot = outcome.snapshot.as_mut().unwrap();
        change(snapshot.fragment.as_mut().unwrap());
    }

    fn last(mut part: (Outcome, Vec<Event>)) -> (Outcome, Vec<Event>) {
        change(&mut part.0, |fragment| fragment.is_last = true);
        part
    }

    fn first(mut part: (Outcome, Vec<Event>)) -> (Outcome, Vec<Event>) {
        change(&mut part.0, |fragment| fragment.is_first = Some(true));
        part
    }

    fn middle(mut part: (Outcome, Vec<Event>)) -> (Outcome, Vec<Event>) {
        change(&mut part.0, |fragment| fragment.is_first = Some(false));
        part
    }

    fn of(number: u32, mut part: (Outcome, Vec<Event>)) -> (Outcome, Vec<Event>) {
        change(&mut part.0, |fragment| fragment.number = Some(number));
        part
    }

    /// Returns the messages of the levels that are delivered, or `None` if none are.
    fn take(to: &mut Fragments, part: &(Outcome, Vec<Event>)) -> Option<Vec<u64>> {
        let whole = to.take(&part.0, &part.1)?;
        let kinds: Vec<Kind> = whole.events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Clear).count(), 1);
        assert_eq!(kinds[0], Kind::Clear);
        let ends = whole
            .events
            .iter()
            .rev()
            .map(|event| event.flags.has(Flags::LAST));
        assert!(ends.enumerate().all(|(at, is_last)| is_last == (at == 0)));
        Some(whole.events[1..].iter().map(|event| event.id).collect())
    }

    #[test]
    fn consecutive_fragments_become_a_snapshot() {
        let mut to = Fragments::default();
        // The first message may be the end of any snapshot.
        assert_eq!(take(&mut to, &last(part(7, A, 9, 1))), None);
        assert_eq!(to.stats().without_beginning, 1);
        assert_eq!(take(&mut to, &part(8, A, 9, 2)), None);
        assert_eq!(take(&mut to, &part(9, A, 9, 0)), None);
        let snapshot = last(part(10, A, 9, 1));
        assert_eq!(take(&mut to, &snapshot), Some(vec![8, 8, 10]));
        assert_eq!(to.whole[0].rpt_seq, 9);
        assert_eq!(take(&mut to, &last(part(11, B, 3, 1))), Some(vec![11]));
        let stats = to.stats();
        assert_eq!((stats.fragments, stats.whole, stats.discarded), (5, 1, 0));
        assert_eq!(to.held, 0);
    }

    #[test]
    fn a_fragment_that_is_missing_repeated_or_of_another_moment_discards() {
        let wrong = [
            last(part(4, A, 9, 1)),
            last(part(2, A, 9, 1)),
            last(part(3, A, 10, 1)),
            last(part(3, B, 9, 1)),
            {
                let mut other = last(part(3, A, 9, 1));
                other.0.snapshot.as_mut().unwrap().last_processed = Some(501);
                other
            },
            {
                let mut other = last(part(3, A, 9, 1));
                other.0.number = None;
                other
            },
        ];
        for wrong in wrong {
            let mut to = Fragments::default();
            assert_eq!(take(&mut to, &first(part(1, A, 9, 1))), None);
            assert_eq!(take(&mut to, &middle(part(2, A, 9, 1))), None);
            assert_eq!(take(&mut to, &wrong), None, "{wrong:?}");
            assert_eq!((to.stats().discarded, to.held), (1, 0));
            // None of it is left for the next one.
            let next = wrong.0.number.unwrap_or(3) + 1;
            assert_eq!(take(&mut to, &middle(last(part(next, A, 9, 1)))), None);
        }
    }

    #[test]
    fn what_is_no_snapshot_may_stand_between_or_lose_one() {
        let mut to = Fragments::default();
        let heartbeat = |number| Outcome {
            does: Some(Does::Heartbeat),
            number,
            snapshot: None,
            ..part(0, A, 1, 0).0
        };
        assert_eq!(take(&mut to, &last(part(1, A, 9, 1))), None);
        // Without a number it shows nothing.
        to.pass(&heartbeat(None));
        to.pass(&heartbeat(Some(2)));
        assert_eq!(take(&mut to, &part(3, A, 9, 1)), None);
        to.pass(&heartbeat(None));
        assert_eq!(take(&mut to, &last(part(4, A, 9, 1))), Some(vec![3, 4]));
        assert_eq!(take(&mut to, &part(5, A, 9, 1)), None);
        to.pass(&heartbeat(Some(6)));
        // It is not a beginning.
        assert_eq!(take(&mut to, &last(part(7, A, 9, 1))), None);
        assert_eq!(to.stats().discarded, 1);
        // A snapshot of an unknown instrument.
        let unknown = Outcome {
            snapshot: None,
            ..part(8, A, 9, 0).0
        };
        to.pass(&unknown);
        assert_eq!(take(&mut to, &last(part(9, A, 9, 1))), None);
        assert_eq!(take(&mut to, &last(part(10, A, 9, 1))), Some(vec![10]));
    }

    #[test]
    fn numbers_that_restart_lose_no_snapshot() {
        let mut to = Fragments::default();
        let reset = |number, next| Outcome {
            does: Some(Does::SequenceReset),
            next: Some(next),
            snapshot: None,
            ..part(number, A, 1, 0).0
        };
        assert_eq!(take(&mut to, &last(part(1, A, 9, 1))), None);
        to.pass(&reset(2, 1));
        let first_of_cycle = last(part(1, A, 10, 1));
        assert_eq!(take(&mut to, &first_of_cycle), Some(vec![1]));
        // A message in front of the restart is missing, which may have been a beginning.
        to.pass(&reset(3, 1));
        assert_eq!(take(&mut to, &first_of_cycle), None);
        // So is one behind it.
        to.pass(&reset(2, 1));
        assert_eq!(take(&mut to, &last(part(2, A, 11, 1))), None);
        assert_eq!(to.stats().without_beginning, 3);
    }

    #[test]
    fn fragments_with_numbers_come_among_those_of_others() {
        let mut to = Fragments::default();
        assert_eq!(take(&mut to, &of(1, part(1, A, 9, 1))), None);
        assert_eq!(take(&mut to, &of(1, part(2, B, 5, 1))), None);
        let end = of(2, last(part(3, A, 9, 1)));
        assert_eq!(take(&mut to, &end), Some(vec![1, 3]));
        let end = of(3, last(part(4, B, 5, 1)));
        assert_eq!(take(&mut to, &end), None, "2 is missing");
        assert_eq!(take(&mut to, &of(2, last(part(5, B, 5, 1)))), None);
        let stats = to.stats();
        let counts = (stats.whole, stats.discarded, stats.without_beginning);
        assert_eq!(counts, (1, 1, 1));
        // A missing message may have been the beginning of a snapshot that is divided differently.
        assert_eq!(take(&mut to, &of(1, part(6, A, 9, 1))), None);
        assert_eq!(take(&mut to, &of(2, last(part(8, A, 9, 1)))), None);
        // Without RptSeq(83) of the message it is the highest one of the entries.
        let of_entries = |mut part: (Outcome, Vec<Event>)| {
            change(&mut part.0, |fragment| fragment.has_rpt_seq = false);
            part
        };
        assert_eq!(take(&mut to, &of_entries(of(1, part(9, A, 7, 1)))), None);
        let end = of_entries(of(2, last(part(10, A, 8, 1))));
        assert_eq!(take(&mut to, &end), Some(vec![9, 10]));
        assert_eq!(to.whole[0].rpt_seq, 8);
    }

    #[test]
    fn a_snapshot_of_the_largest_book_fits() {
        let limits = |book: BookConfig| {
            let FragmentConfig {
                most_per_snapshot,
                most,
            } = FragmentConfig::of(&book);
            (most_per_snapshot, most)
        };
        let default = (1 << 16, 1 << 20);
        assert_eq!(limits(BookConfig::by_level(5).unwrap()), default);
        assert_eq!(limits(BookConfig::by_order(5, 1_000).unwrap()), default);
        let orders = BookConfig::by_order(5, 100_000).unwrap();
        assert_eq!(limits(orders), (101_024, 1 << 20));
        let prices = BookConfig::by_price(65_535).unwrap();
        assert_eq!(limits(prices), (132_094, 1 << 20));
        let orders = BookConfig::by_order(5, 1 << 24).unwrap();
        assert_eq!(limits(orders), ((1 << 24) + 1_024, (1 << 25) + 2_048));
    }

    #[test]
    fn what_is_held_is_bounded() {
        let mut to = Fragments::new(FragmentConfig {
            most_per_snapshot: 4,
            most: 6,
        });
        assert_eq!(take(&mut to, &of(1, part(1, A, 9, 2))), None);
        assert_eq!(take(&mut to, &of(2, part(2, A, 9, 2))), None, "too large");
        assert_eq!((to.stats().no_room, to.held), (1, 0));
        assert_eq!(take(&mut to, &of(3, last(part(3, A, 9, 0)))), None);
        // The oldest is discarded.
        for (number, instrument, held) in [(4, 1, 3), (5, 2, 6), (6, 3, 6)] {
            assert_eq!(take(&mut to, &of(1, part(number, instrument, 9, 2))), None);
            assert_eq!(to.held, held);
        }
        assert_eq!(to.stats().no_room, 2);
        assert_eq!(take(&mut to, &of(2, last(part(7, 1, 9, 0)))), None);
        let end = of(2, last(part(8, 2, 9, 0)));
        assert_eq!(take(&mut to, &end), Some(vec![5, 5]));
        let end = of(2, last(part(9, 3, 9, 1)));
        assert_eq!(take(&mut to, &end), Some(vec![6, 6, 9]));
        assert_eq!(to.held, 0);
        assert_eq!(take(&mut to, &of(1, part(10, 1, 9, 4))), None, "never fits");
        assert_eq!((to.stats().no_room, to.held), (3, 0));
    }

    /// Returns a fault of an instrument, whose snapshot began with a message.
    fn fault(instrument: u32, number: u64, why: SnapshotWhy) -> Option<SnapshotFault> {
        Some(SnapshotFault {
            instrument: Some(InstrumentId(instrument)),
            number: Some(number),
            why,
        })
    }

    #[test]
    fn the_first_fault_is_kept_with_its_reason() {
        let mut to = Fragments::new(FragmentConfig {
            most_per_snapshot: 4,
            most: 6,
        });
        assert_eq!(take(&mut to, &last(part(1, A, 9, 1))), None);
        let no_beginning = fault(A, 1, SnapshotWhy::NoBeginning);
        assert_eq!(to.take_fault(), no_beginning);
        assert_eq!(to.take_fault(), None);
        // One after another: an incomplete snapshot, and the message that discards it.
        let unreadable = |number| Outcome {
            snapshot: None,
            ..part(number, A, 9, 0).0
        };
        for (next, expected) in [
            (Ok(part(5, A, 9, 1)), SnapshotWhy::Gap),
            (Ok(part(4, A, 8, 1)), SnapshotWhy::NotNext),
            (Ok(first(part(4, A, 9, 1))), SnapshotWhy::Unfinished),
            (Ok(first(part(4, B, 9, 1))), SnapshotWhy::Unfinished),
            (Ok(part(4, A, 9, 3)), SnapshotWhy::TooLarge(4)),
            (Err(unreadable(4)), SnapshotWhy::Unread),
        ] {
            let mut to = Fragments::new(to.config);
            assert_eq!(take(&mut to, &first(part(3, A, 9, 1))), None);
            match &next {
                Ok(part) => assert_eq!(take(&mut to, part), None),
                Err(outcome) => to.pass(outcome),
            }
            assert_eq!(to.take_fault(), fault(A, 3, expected), "{next:?}");
        }
        assert_eq!(take(&mut to, &of(1, part(2, A, 9, 2))), None);
        assert_eq!(take(&mut to, &of(1, part(3, B, 9, 3))), None);
        assert_eq!(to.take_fault(), fault(A, 2, SnapshotWhy::NoRoom(6)));
        to.lose(SnapshotWhy::Remapped);
        // It is not that of a later fault.
        assert_eq!(take(&mut to, &of(2, last(part(4, A, 9, 0)))), None);
        assert_eq!(to.take_fault(), fault(B, 3, SnapshotWhy::Remapped));
        assert_eq!(to.take_fault(), None);
    }
}
