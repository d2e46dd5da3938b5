//! Counts of values over the whole range of `u64` with bounded relative error: an HdrHistogram,
//! with exact minimum, maximum and sum, which its buckets would round.

use hdrhistogram::{CreationError, Histogram as Buckets};

/// Returns the share of values that are `percent` percent, clamped to 0..=100.
fn share(percent: f64) -> f64 {
    // The tiny allowance keeps 99.9 % of 1,000 at rank 999 despite the rounding of 0.999 in f64.
    percent.clamp(0.0, 100.0) / 100.0 * (1.0 - 1e-12)
}

/// Returns the rank, from 1, of the smallest of `count` values that at least `percent` percent of
/// them do not exceed.
pub(crate) fn rank(percent: f64, count: u64) -> u64 {
    (share(percent) * count as f64).ceil().max(1.0) as u64
}

/// A histogram of unsigned values, by convention nanoseconds.
///
/// Recording takes constant time. No value is out of range, so nothing is ever clipped. Not shared
/// between threads: each thread records into its own and the results are [merged](Self::merge).
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    buckets: Buckets<u64>,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Creates a histogram of three significant digits (relative error below 1/1024). Its 440 KiB
    /// are allocated here: recording does not allocate.
    pub fn new() -> Self {
        Self::of(Buckets::new_with_bounds(1, u64::MAX, 3))
    }

    /// Creates a histogram of two significant digits (relative error below 1/128), for many
    /// histograms at once: 1 KiB for each power of two up to the largest value, 58 KiB at most. A
    /// value larger than all before may allocate.
    pub fn small() -> Self {
        Self::of(Buckets::new(2))
    }

    fn of(buckets: Result<Buckets<u64>, CreationError>) -> Self {
        let Ok(buckets) = buckets else {
            unreachable!("any range can be had with up to five digits")
        };
        Self {
            buckets,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // Cannot fail: the range is that of u64, or grows to it.
        let _ = self.buckets.record(value);
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds everything counted in `other`. With different precisions the values of `other` are
    /// taken at the lower end of their buckets; minimum, maximum and mean stay exact.
    pub fn merge(&mut self, other: &Self) {
        // Cannot fail: the range is that of u64, or grows to it.
        let _ = self.buckets.add(&other.buckets);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all values, and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.reset();
        (self.sum, self.min, self.max) = (0, u64::MAX, 0);
    }

    /// Returns the number of values.
    pub fn len(&self) -> u64 {
        self.buckets.len()
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Returns the smallest value, exact.
    pub fn min(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.min)
    }

    /// Returns the largest value, exact.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// Returns the mean, exact except for the rounding of f64.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.len() as f64)
    }

    /// Returns the [mean](Self::mean) of nanoseconds, in microseconds; NaN without values.
    pub fn mean_micros(&self) -> f64 {
        self.mean().map_or(f64::NAN, |nanos| nanos / 1e3)
    }

    /// Returns the standard deviation of the population that the values sample, with the values
    /// taken at the middle of their buckets; 0 for fewer than two.
    pub fn deviation(&self) -> f64 {
        let Some(mean) = self.mean().filter(|_| self.len() > 1) else {
            return 0.0;
        };
        let square = |(value, count)| (value as f64 - mean).powi(2) * count as f64;
        let squares: f64 = self.buckets().map(square).sum();
        (squares / (self.len() - 1) as f64).sqrt()
    }

    /// Returns the value that at least `percent` percent of all values do not exceed: the middle of
    /// the bucket that holds the value of that rank. `percent` is clamped to 0..=100. The first
    /// rank is the minimum and the last the maximum, both exact.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        match rank(percent, self.len()) {
            _ if self.is_empty() => None,
            1 => Some(self.min),
            rank if rank >= self.len() => Some(self.max),
            _ => {
                let value = self.buckets.value_at_quantile(share(percent));
                Some(self.middle(value))
            }
        }
    }

    /// Returns a [percentile](Self::percentile) of nanoseconds, in microseconds; NaN without
    /// values.
    pub fn micros(&self, percent: f64) -> f64 {
        let nanos = self.percentile(percent);
        nanos.map_or(f64::NAN, |nanos| nanos as f64 / 1e3)
    }

    /// Returns the filled buckets from low to high, as (middle value, count).
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let filled = self.buckets.iter_recorded();
        filled.map(|step| (self.middle(step.value_iterated_to()), step.count_at_value()))
    }

    /// Returns the middle of the bucket that holds `value`, within the recorded range.
    fn middle(&self, value: u64) -> u64 {
        self.buckets
            .median_equivalent(value)
            .clamp(self.min, self.max)
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

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let mut histogram = Histogram::new();
        for value in [2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000] {
            histogram.record(value);
        }
        assert_eq!(
            (histogram.mean_micros(), histogram.micros(100.0)),
            (5.0, 9.0)
        );
        assert!((histogram.deviation() - 2_138.09).abs() < 2.0);
        assert_eq!(Histogram::new().deviation(), 0.0);
        assert!(Histogram::new().mean_micros().is_nan() && Histogram::new().micros(50.0).is_nan());
    }

    /// Returns the percentile in the obvious way: sorts, takes the value of that rank.
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
            small in any::<bool>(),
        ) {
            let (mut histogram, parts) = if small {
                (Histogram::small(), 128.0)
            } else {
                (Histogram::new(), 1024.0)
            };
            values.iter().for_each(|&v| histogram.record(v));
            let expected = oracle(&mut values, percent);
            let got = histogram.percentile(percent).unwrap();
            let error = got.abs_diff(expected) as f64;
            prop_assert!(error <= expected as f64 / parts, "{got} {expected}");
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
        let mut coarse = Histogram::small();
        (0..7).for_each(|_| coarse.record(1_000_003));
        let mut fine = Histogram::new();
        fine.record(10);
        fine.merge(&coarse);
        assert_eq!((fine.len(), fine.max()), (8, Some(1_000_003)));
        fine.clear();
        assert!(fine.is_empty());
    }
}
