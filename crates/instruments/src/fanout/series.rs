//! The course of a run in a bounded number of intervals, whatever its length.

use crate::histogram::Histogram;

/// The most intervals kept; a longer run makes them wider.
const MAX_BINS: usize = 256;
const FIRST_WIDTH: u64 = 1_000_000;

/// The events of one interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Bin {
    pub(super) incoming: u64,
    pub(super) outgoing: u64,
    pub(super) latency: Option<Histogram>,
}

/// Intervals of equal width from the first event on.
#[derive(Debug)]
pub(super) struct Series {
    start: Option<u64>,
    width: u64,
    bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            start: None,
            width: FIRST_WIDTH,
            bins: Vec::new(),
        }
    }
}

impl Series {
    pub(super) fn incoming(&mut self, time: u64) {
        if let Some(bin) = self.bin(time) {
            bin.incoming += 1;
        }
    }

    pub(super) fn outgoing(&mut self, time: u64) {
        if let Some(bin) = self.bin(time) {
            bin.outgoing += 1;
        }
    }

    pub(super) fn latency(&mut self, time: u64, nanos: u64) {
        if let Some(bin) = self.bin(time) {
            bin.latency
                .get_or_insert_with(Histogram::small)
                .record(nanos);
        }
    }

    /// Returns the seconds of one interval, and the intervals.
    pub(super) fn bins(&self) -> (f64, &[Bin]) {
        (self.width as f64 / 1e9, &self.bins)
    }

    /// Returns the intervals merged to at most `most`: for values that need many events.
    pub(super) fn coarser(&self, most: usize) -> (f64, Vec<Bin>) {
        let (mut width, mut bins) = (self.width, self.bins.clone());
        while bins.len() > most.max(1) {
            bins = halve(&bins);
            width *= 2;
        }
        (width as f64 / 1e9, bins)
    }

    /// Returns the interval of that time. Events before the first one are counted with it.
    fn bin(&mut self, time: u64) -> Option<&mut Bin> {
        let start = *self.start.get_or_insert(time);
        let since = time.saturating_sub(start);
        while since / self.width >= MAX_BINS as u64 {
            self.bins = halve(&self.bins);
            self.width = self.width.saturating_mul(2);
        }
        let at = (since / self.width) as usize;
        if self.bins.len() <= at {
            self.bins.resize(at + 1, Bin::default());
        }
        self.bins.get_mut(at)
    }
}

/// Merges each two neighbours.
fn halve(bins: &[Bin]) -> Vec<Bin> {
    let join = |pair: &[Bin]| {
        let mut joined = Bin::default();
        for bin in pair {
            joined.incoming += bin.incoming;
            joined.outgoing += bin.outgoing;
            match (&mut joined.latency, &bin.latency) {
                (Some(all), Some(more)) => all.merge(more),
                (none, Some(first)) => *none = Some(first.clone()),
                (_, None) => {}
            }
        }
        joined
    };
    bins.chunks(2).map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_run_makes_the_intervals_wider_and_loses_nothing() {
        let mut series = Series::default();
        for i in 0..10_000_u64 {
            series.incoming(5 + i * 1_000_000);
            series.outgoing(5 + i * 1_000_000);
            series.latency(5 + i * 1_000_000, i);
        }
        let (width, bins) = series.bins();
        assert!(bins.len() <= MAX_BINS && bins.len() > MAX_BINS / 2);
        assert!((width - 0.064).abs() < 1e-9, "{width}");
        assert_eq!(bins.iter().map(|b| b.incoming).sum::<u64>(), 10_000);
        let all: u64 = bins
            .iter()
            .filter_map(|b| b.latency.as_ref())
            .map(Histogram::len)
            .sum();
        assert_eq!(all, 10_000);
        let (width, bins) = series.coarser(40);
        assert!((width - 0.256).abs() < 1e-9 && bins.len() <= 40);
        assert_eq!(bins.iter().map(|b| b.outgoing).sum::<u64>(), 10_000);
    }

    #[test]
    fn times_from_another_age_end_the_doubling() {
        let mut series = Series::default();
        series.incoming(7);
        series.incoming(u64::MAX);
        series.incoming(0);
        let total: u64 = series.bins().1.iter().map(|b| b.incoming).sum();
        assert_eq!(total, 3);
    }
}
