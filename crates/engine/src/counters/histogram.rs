//! Durations counted in buckets: one writer, any number of readers.

use crate::pad::Padded;
use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits of a value that its bucket keeps below the highest one.
const BITS: u32 = 4;
/// Buckets for each power of two, and for the values below the first.
const PARTS: usize = 1 << BITS;
/// Values from here on share the last bucket: 2^40 ns are 18 minutes.
const EXPONENTS: u32 = 40;

/// The buckets of a [`Histogram`].
pub(super) const BUCKETS: usize = PARTS * (EXPONENTS - BITS + 1) as usize;

/// The writing end of a histogram of nanoseconds, for one thread at a time: it can be moved, not
/// shared.
///
/// Values up to 31 have buckets of their own, and each power of two from there has 16, up to 2^40
/// (18 minutes): a value is known to a sixteenth of itself. Longer durations share the last bucket.
/// A histogram takes 4,992 bytes. [`record`](Self::record) makes three relaxed stores and allocates
/// nothing.
pub struct Histogram {
    cells: Arc<Cells>,
    one_thread: PhantomData<Cell<()>>,
}

/// What the ends of a histogram share.
pub(super) struct Cells {
    sum: Padded<AtomicU64>,
    max: AtomicU64,
    buckets: [AtomicU64; BUCKETS],
}

impl Cells {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            sum: Padded(AtomicU64::new(0)),
            max: AtomicU64::new(0),
            buckets: [const { AtomicU64::new(0) }; BUCKETS],
        })
    }

    /// Returns the values recorded so far. A value recorded meanwhile may be included in part.
    pub(super) fn read(&self) -> Distribution {
        let counts = self.buckets.iter();
        Distribution {
            counts: counts.map(|cell| cell.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

impl Histogram {
    pub(super) const fn new(cells: Arc<Cells>) -> Self {
        Self {
            cells,
            one_thread: PhantomData,
        }
    }

    /// Counts a duration, in nanoseconds.
    #[inline]
    pub fn record(&self, nanos: u64) {
        let Cells { sum, max, buckets } = &*self.cells;
        // Plain loads and stores suffice for the only writer.
        let add = |cell: &AtomicU64, n: u64| {
            cell.store(
                cell.load(Ordering::Relaxed).wrapping_add(n),
                Ordering::Relaxed,
            );
        };
        if let Some(bucket) = buckets.get(place(nanos)) {
            add(bucket, 1);
        }
        add(sum, nanos);
        if nanos > max.load(Ordering::Relaxed) {
            max.store(nanos, Ordering::Relaxed);
        }
    }
}

/// Returns the bucket of a value.
#[inline]
const fn place(value: u64) -> usize {
    let Some(exponent) = value.checked_ilog2() else {
        return 0;
    };
    if exponent < BITS {
        return value as usize;
    }
    if exponent >= EXPONENTS {
        return BUCKETS - 1;
    }
    let shift = exponent - BITS;
    // The highest bit is 1: it adds the first of the 16 for each shift.
    ((shift as usize) << BITS) + (value >> shift) as usize
}

/// Returns the largest value of a bucket.
const fn largest(place: usize) -> u64 {
    let shift = (place >> BITS).saturating_sub(1) as u32;
    let value = (place - ((shift as usize) << BITS)) as u64;
    ((value + 1) << shift) - 1
}

/// The contents of a histogram at one moment, or the values recorded between two moments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// The count of each bucket; empty where nothing was recorded.
    counts: Vec<u64>,
    sum: u64,
    max: u64,
}

impl Distribution {
    /// A distribution without values.
    pub(super) const EMPTY: Self = Self {
        counts: Vec::new(),
        sum: 0,
        max: 0,
    };

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all values, in nanoseconds; wraps at 2^64.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the largest value in nanoseconds, or up to a sixteenth more in a difference; 0
    /// without values.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Returns the smallest value that a share `of` (0 to 1) of all values does not exceed, or up
    /// to a sixteenth more, in nanoseconds; 0 without values.
    #[must_use]
    pub fn quantile(&self, of: f64) -> u64 {
        let count = self.count();
        let rank = ((of.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let reached = self.counts.iter().position(|own| {
            seen += own;
            seen >= rank
        });
        reached.map_or(0, |place| self.bound(place))
    }

    /// Returns exactly how many values are below 2^`exponent` nanoseconds. From 2^40 on, all are.
    #[must_use]
    pub fn below(&self, exponent: u32) -> u64 {
        let end = match exponent {
            EXPONENTS.. => BUCKETS,
            _ => place(1 << exponent),
        };
        self.counts.iter().take(end).sum()
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (own, count) in self.counts.iter_mut().zip(&other.counts) {
            *own += count;
        }
        self.sum = self.sum.wrapping_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Returns the values recorded since `earlier`, a reading of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = earlier.counts.iter().chain(std::iter::repeat(&0));
        let counts = self.counts.iter().zip(before);
        let counts: Vec<u64> = counts
            .map(|(now, before)| now.wrapping_sub(*before))
            .collect();
        let last = counts.iter().rposition(|&count| count > 0);
        Self {
            max: last.map_or(0, |place| self.bound(place)),
            counts,
            sum: self.sum.wrapping_sub(earlier.sum),
        }
    }

    /// Returns the largest value that a bucket can have here. The last bucket has all longer
    /// durations.
    fn bound(&self, place: usize) -> u64 {
        match place + 1 < BUCKETS {
            true => largest(place).min(self.max),
            false => self.max,
        }
    }

    /// Returns the distribution without its empty buckets, for storage.
    pub(super) fn sparse(&self) -> Sparse {
        let counts = self.counts.iter().enumerate();
        let counts = counts.filter(|&(_, &count)| count > 0);
        Sparse {
            counts: counts
                .map(|(place, &count)| (place as u16, count as u32))
                .collect(),
            sum: self.sum,
            max: self.max,
        }
    }
}

/// A distribution of less than 2^32 values, without empty buckets.
pub(super) struct Sparse {
    counts: Box<[(u16, u32)]>,
    sum: u64,
    max: u64,
}

impl Sparse {
    pub(super) fn add_to(&self, sum: &mut Distribution) {
        if sum.counts.len() < BUCKETS {
            sum.counts.resize(BUCKETS, 0);
        }
        for &(place, count) in &self.counts {
            if let Some(own) = sum.counts.get_mut(usize::from(place)) {
                *own += u64::from(count);
            }
        }
        sum.sum = sum.sum.wrapping_add(self.sum);
        sum.max = sum.max.max(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn recorded(values: &[u64]) -> Distribution {
        let cells = Cells::new();
        let histogram = Histogram::new(Arc::clone(&cells));
        values.iter().for_each(|&value| histogram.record(value));
        cells.read()
    }

    /// Durations of all sizes.
    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (0u32..44, any::<u64>()).prop_map(|(bits, any)| any & ((1 << bits) - 1));
        prop::collection::vec(value, 1..300)
    }

    /// Returns the value that the definition of a quantile names, in sorted values.
    fn exact(sorted: &[u64], of: f64) -> u64 {
        let rank = (of * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    fn check(found: &Distribution, values: &[u64]) -> Result<(), TestCaseError> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        prop_assert_eq!(found.count(), sorted.len() as u64);
        let largest = sorted[sorted.len() - 1];
        prop_assert!(found.max() >= largest);
        // The last bucket has all longer durations, too.
        let is_known = |value: u64| value <= super::largest(BUCKETS - 2);
        prop_assert!(!is_known(largest) || found.max() <= largest + largest / 16);
        for of in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let (exact, found) = (exact(&sorted, of), found.quantile(of));
            if is_known(exact) {
                prop_assert!(
                    found >= exact && found <= exact + exact / 16,
                    "{of}: {found}"
                );
            }
        }
        for exponent in 0..40 {
            let below = sorted
                .iter()
                .filter(|&&value| value < 1 << exponent)
                .count();
            prop_assert_eq!(found.below(exponent), below as u64);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_values_to_a_sixteenth(values in values()) {
            let found = recorded(&values);
            prop_assert_eq!(found.max(), *values.iter().max().unwrap());
            let sum = values.iter().fold(0u64, |sum, value| sum.wrapping_add(*value));
            prop_assert_eq!(found.sum(), sum);
            check(&found, &values)?;
        }

        #[test]
        fn a_difference_has_what_came_in_between(before in values(), after in values()) {
            let all = [before.clone(), after.clone()].concat();
            let (earlier, later) = (recorded(&before), recorded(&all));
            let between = later.since(&earlier);
            check(&between, &after)?;
            let mut again = Distribution::EMPTY;
            earlier.sparse().add_to(&mut again);
            between.sparse().add_to(&mut again);
            prop_assert_eq!(again.counts, later.counts);
        }

        #[test]
        fn merged_histograms_have_the_values_of_both(one in values(), other in values()) {
            let all = recorded(&[one.clone(), other.clone()].concat());
            let mut merged = Distribution::EMPTY;
            merged.merge(&recorded(&one));
            merged.merge(&recorded(&other));
            prop_assert_eq!(&merged, &all);
            merged.merge(&Distribution::EMPTY);
            prop_assert_eq!(merged, all);
        }

        #[test]
        fn a_bucket_begins_behind_the_one_before(value in 0u64..1 << 40) {
            let place = place(value);
            prop_assert!(value <= largest(place));
            prop_assert!(place == 0 || value > largest(place - 1));
        }
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let nothing = recorded(&[]);
        assert_eq!(
            (nothing.count(), nothing.quantile(0.5), nothing.max()),
            (0, 0, 0)
        );
        assert_eq!(Distribution::EMPTY.quantile(1.0), 0);
        assert_eq!(nothing.since(&Distribution::EMPTY).count(), 0);
    }

    #[test]
    fn what_is_too_long_is_counted_as_the_longest() {
        let long = recorded(&[u64::MAX, 1 << 40, 5]);
        assert_eq!((long.count(), long.max()), (3, u64::MAX));
        assert_eq!((long.below(40), long.below(39)), (3, 1));
        assert_eq!(long.quantile(1.0), u64::MAX);
    }

    #[test]
    fn the_memory_is_as_stated() {
        assert_eq!(BUCKETS, 592);
        assert_eq!(size_of::<Cells>(), 4_992);
    }
}
