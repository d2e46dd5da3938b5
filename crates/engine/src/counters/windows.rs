//! The values of histograms over the last seconds, kept by the thread that reads them.

use super::histogram::{Distribution, Sparse};
use super::{Counters, HistogramReading};
use std::collections::VecDeque;

/// Nanoseconds between two readings.
const SECOND: u64 = 1_000_000_000;
/// Readings kept of each histogram.
const KEPT: usize = 60;

/// Reads all histograms once a second and keeps the values of the last 10 s and of the last minute.
///
/// Reading does not disturb the writers. For each histogram, 60 differences are kept without their
/// empty buckets: 8 bytes for each bucket that was hit in a second, 284 kB at most.
pub struct Windows {
    counters: Counters,
    kept: Vec<Kept>,
    /// The time of the last reading; `None` before the first.
    read: Option<u64>,
}

/// The values kept of one histogram.
struct Kept {
    last: Distribution,
    /// The values of each second with the time of its end, the oldest first.
    seconds: VecDeque<(u64, Sparse)>,
}

/// One histogram, over three windows.
#[derive(Debug, Clone)]
pub struct Windowed {
    /// The agent, line or topic measured; empty for the whole program.
    pub of: String,
    /// The name, `snake_case`.
    pub name: String,
    /// What is measured.
    pub description: String,
    /// The values of the last 10 s, up to the moment of reading.
    pub seconds_10: Distribution,
    /// The values of the last minute, up to the moment of reading.
    pub minute: Distribution,
    /// All values since the start.
    pub all: Distribution,
}

impl Windows {
    /// Makes windows over all histograms of a registry, including those added later.
    #[must_use]
    pub const fn new(counters: Counters) -> Self {
        Self {
            counters,
            kept: Vec::new(),
            read: None,
        }
    }

    /// Makes a reading if the last one is a second old, and returns whether it did. Values recorded
    /// before the first reading are in no window. `now` is monotonic, in nanoseconds.
    pub fn turn(&mut self, now: u64) -> bool {
        if self.read.is_some_and(|last| now < last + SECOND) {
            return false;
        }
        let is_first = self.read.replace(now).is_none();
        for (at, distribution) in self.counters.distributions().into_iter().enumerate() {
            if self.kept.len() <= at {
                self.kept.push(Kept {
                    last: Distribution::EMPTY,
                    seconds: VecDeque::with_capacity(KEPT),
                });
            }
            if let Some(kept) = self.kept.get_mut(at) {
                let second = distribution.since(&kept.last).sparse();
                kept.last = distribution;
                if is_first {
                    continue;
                }
                if kept.seconds.len() == KEPT {
                    kept.seconds.pop_front();
                }
                kept.seconds.push_back((now, second));
            }
        }
        true
    }

    /// Returns all histograms as of `now`, monotonic, in nanoseconds. Before the first reading, the
    /// windows have all values.
    #[must_use]
    pub fn read(&self, now: u64) -> Vec<Windowed> {
        let all = self.counters.histograms().into_iter().enumerate();
        let all = all.map(
            |(
                at,
                HistogramReading {
                    of,
                    name,
                    description,
                    distribution,
                },
            )| {
                let kept = self.kept.get(at);
                let over = |seconds: u64| {
                    let from = now.saturating_sub(seconds * SECOND);
                    kept.map_or_else(
                        || distribution.clone(),
                        |kept| kept.since(from, &distribution),
                    )
                };
                Windowed {
                    of,
                    name,
                    description,
                    seconds_10: over(10),
                    minute: over(60),
                    all: distribution.clone(),
                }
            },
        );
        all.collect()
    }
}

impl Kept {
    /// Returns the values of the seconds that ended after `from`, and those since the last reading.
    fn since(&self, from: u64, now: &Distribution) -> Distribution {
        let mut sum = now.since(&self.last);
        let recent = self.seconds.iter().filter(|(end, _)| *end > from);
        recent.for_each(|(_, second)| second.add_to(&mut sum));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_what_came_in_it() {
        let counters = Counters::new();
        let ring = counters.add_histogram("worker0", "stage_ring", "time in the ring");
        let mut windows = Windows::new(counters);
        let counts = |windows: &Windows, now: u64| {
            let all = windows.read(now * SECOND);
            [&all[0].seconds_10, &all[0].minute, &all[0].all].map(Distribution::count)
        };
        assert_eq!(counts(&windows, 100), [0, 0, 0]);
        assert!(windows.turn(100 * SECOND));
        ring.record(5);
        assert_eq!(counts(&windows, 100), [1, 1, 1]);
        assert!(!windows.turn(101 * SECOND - 1));
        for second in 101..200 {
            assert!(windows.turn(second * SECOND));
            ring.record(second);
        }
        // The seconds that ended at 190 and later, and what came since 199.
        assert_eq!(counts(&windows, 199), [11, 61, 100]);
        assert_eq!(windows.read(199 * SECOND)[0].seconds_10.quantile(0.0), 191);
        // After a pause without readings, the values belong to the second that ended then.
        assert!(windows.turn(250 * SECOND));
        assert_eq!(counts(&windows, 250), [1, 10, 100]);
        assert_eq!(counts(&windows, 400), [0, 0, 100]);
    }

    #[test]
    fn what_came_before_the_first_reading_is_in_no_window() {
        let counters = Counters::new();
        let early = counters.add_histogram("", "early", "");
        early.record(1);
        let mut windows = Windows::new(counters);
        windows.turn(SECOND);
        early.record(2);
        let all = windows.read(SECOND);
        let counts = [&all[0].seconds_10, &all[0].all].map(Distribution::count);
        assert_eq!(counts, [1, 2]);
    }

    #[test]
    fn histograms_that_come_later_are_read_too() {
        let counters = Counters::new();
        let mut windows = Windows::new(counters.clone());
        windows.turn(0);
        let late = counters.add_histogram("b", "x", "");
        late.record(1);
        assert_eq!(windows.read(1)[0].minute.count(), 1);
        windows.turn(SECOND);
        assert_eq!(windows.read(SECOND)[0].minute.count(), 1);
        assert_eq!(windows.read(SECOND)[0].of, "b");
    }
}
