//! The lines that carry one feed, and the counters of each.

use std::fmt;
use std::ops::Range;

/// One of the lines that carry the same feed; usually there are two, A and B. A replay channel that
/// fills gaps can be a third.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(u8);

impl Line {
    /// The first line.
    pub const A: Self = Self(0);
    /// The second line.
    pub const B: Self = Self(1);
    /// The most lines of an arbiter.
    pub const MAX: usize = 4;

    /// Returns the line with this index from 0, or `None` from [`Line::MAX`] on.
    pub const fn new(index: usize) -> Option<Self> {
        if index < Self::MAX {
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Returns the index from 0, below [`Line::MAX`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'A' + self.0))
    }
}

/// The counters of a line. Units are those passed to [`Arbiter::receive`](crate::Arbiter::receive):
/// packets or messages. Once no unit is held back, `received == first + duplicate + late +
/// refused`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineStats {
    /// Units received.
    pub received: u64,
    /// Units that brought new numbers and were delivered.
    pub first: u64,
    /// Units that another line (or this one) had brought before.
    pub duplicate: u64,
    /// Units that fill a declared gap: too late to be delivered in order.
    pub late: u64,
    /// Units that could not be used: see [`Refusal`](crate::Refusal).
    pub refused: u64,
    /// Sequence numbers that this line left out between its first and its highest.
    pub lost: u64,
    /// The delay of this line's duplicates behind the other line.
    pub lateness: Lateness,
}

/// The delay of one line behind the other in nanoseconds, over the units that both brought and
/// where it was second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lateness {
    /// The number of units counted.
    pub count: u64,
    /// The sum in ns (saturating).
    pub sum: u64,
    /// The largest delay in ns.
    pub max: u64,
}

impl Lateness {
    /// Returns the mean in nanoseconds, or 0 if nothing was counted.
    pub const fn mean(&self) -> u64 {
        match self.sum.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }

    pub(crate) fn record(&mut self, nanos: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        self.max = self.max.max(nanos);
    }
}

/// How many sequence numbers below a line's highest a unit of that line may be and still count as
/// reordered.
pub(crate) const REORDER: u64 = 1024;
const WORDS: usize = REORDER as usize / 64;

/// The record of which of its last [`REORDER`] sequence numbers a line has brought, so that a gap
/// that is filled by reordering does not count as lost, and a repetition does not fill one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Track {
    range: Option<(u64, u64)>,
    seen: [u64; WORDS],
}

impl Track {
    /// Returns the highest sequence number so far.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.range.map(|(_, highest)| highest)
    }

    /// Returns whether the line has brought `sequence`, if that is within the last [`REORDER`]
    /// numbers.
    pub(crate) fn has(&self, sequence: u64) -> bool {
        let is_near = |(first, highest)| {
            (first..=highest).contains(&sequence) && highest - sequence < REORDER
        };
        let bit = 1u64 << (sequence % 64);
        self.range.is_some_and(is_near) && self.seen[(sequence % REORDER) as usize / 64] & bit != 0
    }

    /// Resets the record: the next sequence number is the line's first again.
    pub(crate) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Marks `start..end` as brought and corrects `lost`, the numbers left out so far.
    pub(crate) fn record(&mut self, start: u64, end: u64, lost: &mut u64) {
        match self.range {
            Some((first, highest)) if start > highest && end > start => {
                *lost += start - highest - 1;
                self.set(highest + 1..start, false);
                self.set(start..end, true);
                self.range = Some((first, end - 1));
            }
            _ => (start..end).for_each(|sequence| self.record_one(sequence, lost)),
        }
    }

    fn record_one(&mut self, sequence: u64, lost: &mut u64) {
        let Some((first, highest)) = self.range else {
            self.range = Some((sequence, sequence));
            self.mark(sequence);
            return;
        };
        if sequence > highest {
            *lost += sequence - highest - 1;
            self.set(highest + 1..sequence, false);
            self.mark(sequence);
            self.range = Some((first, sequence));
        } else if sequence < first {
            if highest - sequence < REORDER {
                *lost += first - sequence - 1;
                self.mark(sequence);
                self.range = Some((sequence, highest));
            }
        } else if highest - sequence < REORDER && !self.mark(sequence) {
            *lost = lost.saturating_sub(1);
        }
    }

    /// Sets the bit; returns whether it was set before.
    fn mark(&mut self, sequence: u64) -> bool {
        let bit = 1u64 << (sequence % 64);
        let word = &mut self.seen[(sequence % REORDER) as usize / 64];
        let was = *word & bit != 0;
        *word |= bit;
        was
    }

    /// Sets or clears the bits of these numbers, a word at a time.
    pub(crate) fn set(&mut self, numbers: Range<u64>, brought: bool) {
        let mut from = numbers.start.max(numbers.end.saturating_sub(REORDER));
        while from < numbers.end {
            let first = from % 64;
            let count = (numbers.end - from).min(64 - first);
            let mask = (u64::MAX >> (64 - count)) << first;
            let word = &mut self.seen[(from % REORDER) as usize / 64];
            *word = if brought { *word | mask } else { *word & !mask };
            from += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn lines_have_letters_and_an_end() {
        assert_eq!(Line::new(0), Some(Line::A));
        assert_eq!(Line::new(1).unwrap().to_string(), "B");
        assert_eq!(Line::new(Line::MAX), None);
    }

    #[test]
    fn reordering_and_repetition_do_not_count_as_lost() {
        let (mut track, mut lost) = (Track::default(), 0);
        for sequence in [5, 8, 6, 6, 7] {
            track.record(sequence, sequence + 1, &mut lost);
        }
        assert_eq!(lost, 0);
        track.record(20, 22, &mut lost);
        assert_eq!((lost, track.highest()), (11, Some(21)));
    }

    #[test]
    fn what_comes_before_the_first_opens_the_range() {
        let (mut track, mut lost) = (Track::default(), 0);
        for sequence in [10, 7, 9] {
            track.record(sequence, sequence + 1, &mut lost);
        }
        assert_eq!(lost, 1, "8 is missing");
    }

    proptest! {
        #[test]
        fn units_of_many_numbers_are_as_their_numbers_one_by_one(
            units in prop::collection::vec((-80i64..200, 1u64..1500), 1..60),
        ) {
            let (mut at, mut lost) = (100_000u64, [0, 0]);
            let mut tracks = [Track::default(), Track::default()];
            for (step, count) in units {
                at = at.saturating_add_signed(step);
                tracks[0].record(at, at + count, &mut lost[0]);
                (at..at + count).for_each(|n| tracks[1].record_one(n, &mut lost[1]));
                prop_assert_eq!(lost[0], lost[1]);
                prop_assert_eq!(tracks[0].range, tracks[1].range);
                prop_assert_eq!(tracks[0].seen, tracks[1].seen);
                at += count;
            }
        }

        #[test]
        fn lost_is_what_a_set_says(
            steps in prop::collection::vec(-40i64..60, 1..300),
        ) {
            let (mut track, mut lost) = (Track::default(), 0);
            let (mut at, mut all) = (100_000i64, BTreeSet::new());
            for step in steps {
                at += step;
                // Within the window the bitmap and the set must agree.
                if all.last().is_some_and(|h| h - at >= REORDER as i64) {
                    at = *all.last().unwrap();
                }
                all.insert(at);
                track.record(at as u64, at as u64 + 1, &mut lost);
                let span = all.last().unwrap() - all.first().unwrap() + 1;
                prop_assert_eq!(lost, (span - all.len() as i64) as u64);
            }
        }
    }
}
