//! Counts of values over the whole range of `u64` with bounded relative error.
//!
//! Values below 2^bits are counted each by itself; above, each power of two is divided into
//! 2^(bits-1) equal buckets. No value is out of range, so nothing is ever clipped, and the
//! memory is fixed at construction, so recording never allocates.

/// Bits that give three significant decimal digits: 1,024 buckets for each power of two.
const THREE_DIGITS: u32 = 11;

/// A histogram of unsigned values, by convention nanoseconds.
///
/// Recording takes constant time and does not allocate. Not shared between threads: each thread
/// records into its own and the results are [merged](Self::merge).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    bits: u32,
    counts: Box<[u64]>,
    total: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Three significant digits (relative error below 1/1024), 440 KiB.
    pub fn new() -> Self {
        Self::with_bits(THREE_DIGITS)
    }

    /// Relative error below 2^(1-bits), (66-bits) * 2^(bits-1) counters of 8 bytes. `bits` is
    /// held to 1..=16. Six bits (3 %, 15 KiB) are enough for a point of a plot.
    pub fn with_bits(bits: u32) -> Self {
        let bits = bits.clamp(1, 16);
        let buckets = ((66 - bits) as usize) << (bits - 1);
        let counts = vec![0; buckets].into_boxed_slice();
        Self {
            bits,
            counts,
            total: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Counts one value `n` times.
    #[inline]
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        let bucket = self.bucket_of(value);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += n;
        }
        self.total += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds everything counted in `other`. With different precisions the values of `other` are
    /// taken at the middle of their buckets; minimum, maximum and mean stay exact.
    pub fn merge(&mut self, other: &Self) {
        if self.bits == other.bits {
            for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
                *mine += theirs;
            }
        } else {
            for (bucket, &count) in other.counts.iter().enumerate().filter(|(_, c)| **c > 0) {
                let target = self.bucket_of(other.middle_of(bucket));
                if let Some(mine) = self.counts.get_mut(target) {
                    *mine += count;
                }
            }
        }
        self.total += other.total;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.total, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    /// How many values were counted.
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (self.total > 0).then_some(self.min)
    }

    /// The largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (self.total > 0).then_some(self.max)
    }

    /// The mean, exact but for the rounding of f64.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The value that at least `percent` percent of all values do not exceed: the middle of the
    /// bucket that holds the value of that rank. `percent` is held to 0..=100; 0 is the minimum
    /// and 100 the maximum, both exact.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let share = percent.clamp(0.0, 100.0) / 100.0;
        // The tiny allowance keeps 99.9 % of 1,000 at rank 999 whatever f64 makes of 0.999.
        let rank = (share * self.total as f64 * (1.0 - 1e-12)).ceil() as u64;
        if rank == 0 || rank >= self.total {
            return Some(if rank == 0 { self.min } else { self.max });
        }
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if count > 0 && seen >= rank {
                return Some(self.middle_of(bucket).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The filled buckets from low to high, as (middle value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        filled.map(|(bucket, &count)| (self.middle_of(bucket).clamp(self.min, self.max), count))
    }

    #[inline]
    fn bucket_of(&self, value: u64) -> usize {
        let width = u64::BITS - value.leading_zeros();
        let shift = width.saturating_sub(self.bits);
        let base = (shift as usize) << (self.bits - 1);
        base + (value >> shift) as usize
    }

    fn middle_of(&self, bucket: usize) -> u64 {
        let half = 1_usize << (self.bits - 1);
        let shift = (bucket / half).saturating_sub(1);
        let low = ((bucket - shift * half) as u64) << shift;
        low + ((1_u64 << shift) >> 1)
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The obvious way: sort, take the value of that rank.
    fn oracle(values: &mut [u64], percent: f64) -> u64 {
        values.sort_unstable();
        let rank = (percent / 100.0 * values.len() as f64 * (1.0 - 1e-12)).ceil() as usize;
        values[rank.max(1) - 1]
    }

    fn value() -> impl Strategy<Value = u64> {
        (0_u32..64, any::<u64>()).prop_map(|(shift, v)| v >> shift)
    }

    proptest! {
        #[test]
        fn percentiles_equal_those_of_the_sorted_values(
            mut values in prop::collection::vec(value(), 1..300),
            percent in 0.0..=100.0,
            bits in 4_u32..=12,
        ) {
            let mut histogram = Histogram::with_bits(bits);
            values.iter().for_each(|&v| histogram.record(v));
            let expected = oracle(&mut values, percent);
            let got = histogram.percentile(percent).unwrap();
            let error = got.abs_diff(expected) as f64;
            prop_assert!(error <= expected as f64 / f64::from(1 << (bits - 1)), "{got} {expected}");
            prop_assert_eq!(histogram.min(), values.first().copied());
            prop_assert_eq!(histogram.max(), values.last().copied());
        }

        #[test]
        fn merging_equals_recording_all_in_one(
            a in prop::collection::vec(value(), 0..100),
            b in prop::collection::vec(value(), 0..100),
        ) {
            let record = |values: &mut dyn Iterator<Item = &u64>| {
                let mut histogram = Histogram::new();
                values.for_each(|&v| histogram.record(v));
                histogram
            };
            let mut merged = record(&mut a.iter());
            merged.merge(&record(&mut b.iter()));
            prop_assert_eq!(merged, record(&mut a.iter().chain(&b)));
        }
    }

    #[test]
    fn nothing_is_clipped() {
        let mut histogram = Histogram::new();
        for value in [0, 1, u64::MAX / 3, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.len(), 4);
        assert_eq!(histogram.max(), Some(u64::MAX));
        assert_eq!(histogram.buckets().map(|(_, count)| count).sum::<u64>(), 4);
    }

    #[test]
    fn an_empty_one_has_no_figures() {
        let histogram = Histogram::new();
        assert_eq!(histogram.percentile(50.0), None);
        assert_eq!(
            (histogram.min(), histogram.max(), histogram.mean()),
            (None, None, None)
        );
    }

    #[test]
    fn the_rank_of_round_percentages_is_exact() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|v| histogram.record(v));
        assert_eq!(histogram.percentile(99.9), Some(999));
        assert_eq!(histogram.percentile(50.0), Some(500));
        assert_eq!(histogram.percentile(100.0), Some(1000));
        assert_eq!(histogram.percentile(0.0), Some(1));
    }

    #[test]
    fn merging_a_coarser_one_keeps_counts_and_extremes() {
        let mut coarse = Histogram::with_bits(5);
        coarse.record_n(1_000_003, 7);
        let mut fine = Histogram::new();
        fine.record(10);
        fine.merge(&coarse);
        assert_eq!((fine.len(), fine.max()), (8, Some(1_000_003)));
        fine.clear();
        assert!(fine.is_empty());
    }
}
