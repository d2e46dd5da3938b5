//! The statistics table: name, count, sum, mean, std_dev, min, p50, p99, max.

use crate::print::say;
use fanfare_instruments::histogram::Histogram;

/// Durations of one kind, in nanoseconds.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    histogram: Histogram,
    sum: f64,
    squares: f64,
}

impl Default for Series {
    fn default() -> Self {
        Self {
            histogram: Histogram::new(),
            sum: 0.0,
            squares: 0.0,
        }
    }
}

impl Series {
    #[inline]
    pub(crate) fn record(&mut self, nanos: u64) {
        self.histogram.record(nanos);
        let x = nanos as f64;
        self.sum += x;
        self.squares += x * x;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum += other.sum;
        self.squares += other.squares;
    }

    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean, nanoseconds; NaN when nothing was recorded.
    pub(crate) fn mean(&self) -> f64 {
        self.sum / self.count() as f64
    }

    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        self.histogram
            .percentile(percent)
            .map_or(f64::NAN, |n| n as f64)
    }

    fn deviation(&self) -> f64 {
        let n = self.count() as f64;
        if n < 2.0 {
            return 0.0;
        }
        ((self.squares - self.sum * self.sum / n) / (n - 1.0))
            .max(0.0)
            .sqrt()
    }
}

/// Prints the table, times in microseconds; rows without a record are left out.
pub(crate) fn print(rows: &[(String, &Series)]) {
    let rows: Vec<_> = rows.iter().filter(|(_, s)| s.count() > 0).collect();
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(4);
    say!(
        "{:width$} {:>8} {:>14} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "name",
        "count",
        "sum",
        "mean",
        "std_dev",
        "min",
        "p50",
        "p99",
        "max"
    );
    for (name, s) in rows {
        let us = |nanos: f64| nanos / 1e3;
        let bound = |n: Option<u64>| us(n.map_or(f64::NAN, |n| n as f64));
        say!(
            "{name:width$} {:>8} {:>14.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
            s.count(),
            us(s.sum),
            us(s.mean()),
            us(s.deviation()),
            bound(s.histogram.min()),
            us(s.percentile(50.0)),
            us(s.percentile(99.0)),
            bound(s.histogram.max()),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let mut s = Series::default();
        for x in [2_000, 4_000, 4_000, 4_000, 5_000, 5_000, 7_000, 9_000] {
            s.record(x);
        }
        assert!((s.mean() - 5_000.0).abs() < 1e-9);
        assert!((s.deviation() - 2_138.09).abs() < 0.01);
        let mut both = Series::default();
        both.merge(&s);
        assert_eq!(both.count(), 8);
    }
}
