//! The ranges of sequence numbers that were declared missing and have not arrived since, for
//! requests of recovery.

use std::collections::VecDeque;
use std::ops::Range;

/// Disjoint ranges in ascending order, bounded. Beyond the limit, the oldest are dropped (and
/// counted), since recovery of old data is the least useful.
#[derive(Debug, Clone)]
pub struct Missing {
    ranges: VecDeque<Range<u64>>,
    limit: usize,
    forgotten: u64,
}

impl Missing {
    pub(crate) fn new(limit: usize) -> Self {
        let limit = limit.max(1);
        Self {
            ranges: VecDeque::with_capacity(limit + 1),
            limit,
            forgotten: 0,
        }
    }

    /// Returns the missing ranges, oldest first, in extended numbers: the low 32 bits are the
    /// sequence number, the bits above rise with each wrap and each reset.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().cloned()
    }

    /// Returns whether nothing is missing.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns whether this number is missing.
    pub fn contains(&self, number: u64) -> bool {
        let at = self.ranges.partition_point(|range| range.end <= number);
        self.ranges
            .get(at)
            .is_some_and(|range| range.start <= number)
    }

    /// Returns the number after the last missing one.
    pub(crate) fn last_end(&self) -> Option<u64> {
        self.ranges.back().map(|range| range.end)
    }

    /// Returns whether any of these numbers is missing.
    pub(crate) fn has(&self, span: Range<u64>) -> bool {
        let mut ranges = self.ranges.iter();
        ranges.any(|range| range.start < span.end && span.start < range.end)
    }

    /// Returns the number of sequence numbers that are missing.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|r| r.end - r.start).sum()
    }

    /// Returns how many sequence numbers were dropped because there were too many ranges.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Adds a range, which is nearly always above all others.
    pub(crate) fn push(&mut self, range: Range<u64>) {
        if self.last_end().is_some_and(|end| range.start < end) {
            self.insert(range);
        } else {
            match self.ranges.back_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => self.ranges.push_back(range),
            }
        }
        self.bound();
    }

    /// Adds a range in order, joined with those that it overlaps or touches.
    #[cold]
    fn insert(&mut self, range: Range<u64>) {
        let from = self.ranges.partition_point(|r| r.end < range.start);
        let to = self.ranges.partition_point(|r| r.start <= range.end);
        let joined = self.ranges.range(from..to);
        let joined = joined.fold(range, |all, r| all.start.min(r.start)..all.end.max(r.end));
        self.ranges.drain(from..to);
        self.ranges.insert(from, joined);
        debug_assert!(self.is_in_order());
    }

    /// Returns whether the ranges are in order and apart.
    fn is_in_order(&self) -> bool {
        let behind = self.ranges.iter().skip(1);
        self.ranges.iter().zip(behind).all(|(a, b)| a.end < b.start)
    }

    /// Removes `range`; returns how many of its sequence numbers were missing.
    pub(crate) fn take(&mut self, range: Range<u64>) -> u64 {
        let mut taken = 0;
        let mut i = self.ranges.partition_point(|r| r.end <= range.start);
        while let Some(at) = self.ranges.get_mut(i) {
            if at.start >= range.end {
                break;
            }
            let from = at.start.max(range.start);
            let to = at.end.min(range.end);
            taken += to - from;
            let (left, right) = (at.start..from, to..at.end);
            match (left.is_empty(), right.is_empty()) {
                (true, true) => {
                    self.ranges.remove(i);
                }
                (true, false) => *at = right,
                (false, true) => {
                    *at = left;
                    i += 1;
                }
                (false, false) => {
                    *at = left;
                    self.ranges.insert(i + 1, right);
                    self.bound();
                    break;
                }
            }
        }
        taken
    }

    fn bound(&mut self) {
        while self.ranges.len() > self.limit {
            if let Some(oldest) = self.ranges.pop_front() {
                self.forgotten += oldest.end - oldest.start;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn adjacent_ranges_join_and_the_oldest_is_forgotten() {
        let mut missing = Missing::new(2);
        missing.push(1..3);
        missing.push(3..5);
        missing.push(10..11);
        assert_eq!(missing.ranges().collect::<Vec<_>>(), [1..5, 10..11]);
        missing.push(20..21);
        assert_eq!(missing.ranges().collect::<Vec<_>>(), [10..11, 20..21]);
        assert_eq!(missing.forgotten(), 4);
    }

    #[test]
    fn a_range_below_others_is_placed_in_order() {
        let mut missing = Missing::new(3);
        missing.push(20..25);
        missing.push(30..31);
        missing.push(10..12);
        assert_eq!(
            missing.ranges().collect::<Vec<_>>(),
            [10..12, 20..25, 30..31]
        );
        assert!(missing.contains(11) && missing.contains(30) && !missing.contains(12));
        // It joins two of them, then one begins in another.
        missing.push(12..20);
        missing.push(24..27);
        assert_eq!(missing.ranges().collect::<Vec<_>>(), [10..27, 30..31]);
        // The oldest is forgotten, which may be the new one.
        missing.push(40..41);
        missing.push(5..7);
        assert_eq!(
            missing.ranges().collect::<Vec<_>>(),
            [10..27, 30..31, 40..41]
        );
        assert_eq!((missing.forgotten(), missing.last_end()), (2, Some(41)));
    }

    proptest! {
        #[test]
        fn in_any_order_it_is_a_set(
            ranges in prop::collection::vec((0u64..300, 1u64..30), 0..60),
        ) {
            let mut missing = Missing::new(1_000);
            let mut oracle = BTreeSet::new();
            for (from, len) in ranges {
                missing.push(from..from + len);
                oracle.extend(from..from + len);
                prop_assert!(missing.is_in_order());
                let all: Vec<u64> = missing.ranges().flatten().collect();
                prop_assert_eq!(&all, &oracle.iter().copied().collect::<Vec<_>>());
            }
        }

        #[test]
        fn it_is_a_set(
            gaps in prop::collection::vec((1u64..20, 1u64..20), 0..40),
            takes in prop::collection::vec((0u64..800, 0u64..60), 0..60),
        ) {
            let mut missing = Missing::new(1_000);
            let mut oracle = BTreeSet::new();
            let mut at = 0;
            for (space, len) in gaps {
                missing.push(at + space..at + space + len);
                oracle.extend(at + space..at + space + len);
                at += space + len;
            }
            for (from, len) in takes {
                let before = oracle.len();
                oracle.retain(|s| !(from..from + len).contains(s));
                let taken = missing.take(from..from + len);
                prop_assert_eq!(taken as usize, before - oracle.len());
                let all: Vec<u64> = missing.ranges().flatten().collect();
                prop_assert_eq!(&all, &oracle.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(missing.count() as usize, oracle.len());
            }
        }
    }
}
