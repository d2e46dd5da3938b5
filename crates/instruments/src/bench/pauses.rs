//! Pauses of the processors: the time that a hypervisor or another program takes from a thread that
//! never waits. The highest latencies of any program on the machine contain them.

use std::panic;
use std::thread;
use std::time::Duration;

use fanfare_engine::clock::Clock;
use fanfare_engine::stop::Stop;

use super::{BenchError, Processors, on};
use crate::figures::Figures;

/// The shortest pause that counts, in nanoseconds. An interrupt of the kernel takes less.
const SHORTEST: u64 = 1_000_000;

/// Pauses of 1 ms and more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pauses {
    count: u64,
    total: u64,
    longest: u64,
}

impl Pauses {
    /// Reads the clock on both processors at the same time, or on the only one, until `duration` is
    /// over or `stop` is raised.
    ///
    /// # Errors
    /// A thread cannot be pinned.
    pub fn measure(
        processors: Processors,
        duration: Duration,
        stop: &Stop,
    ) -> Result<Self, BenchError> {
        let on_one = |processor| on(processor, || Ok(Self::here(duration, stop)));
        if !processors.are_two() {
            return on_one(None);
        }
        thread::scope(|scope| {
            let there = scope.spawn(|| on_one(processors.there));
            let here = on_one(processors.here)?;
            let there = there
                .join()
                .unwrap_or_else(|payload| panic::resume_unwind(payload))?;
            Ok(here.and(there))
        })
    }

    fn here(duration: Duration, stop: &Stop) -> Self {
        let mut clock = Clock::new();
        let mut pauses = Self::default();
        let mut last = clock.read().mono;
        let end = last + duration.as_nanos() as u64;
        while last < end && !stop.is_raised() {
            let now = clock.read().mono;
            pauses.record(now - last);
            last = now;
        }
        pauses
    }

    fn record(&mut self, gap: u64) {
        if gap >= SHORTEST {
            self.count += 1;
            self.total += gap;
            self.longest = self.longest.max(gap);
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            total: self.total + other.total,
            longest: self.longest.max(other.longest),
        }
    }

    /// Adds the number of pauses as `pauses`, their sum as `pauses_ms`, and the longest one as
    /// `pause_longest_ms`.
    pub fn add(self, figures: &mut Figures) {
        figures.count("pauses", self.count);
        figures.add("pauses_ms", self.total as f64 / 1e6);
        figures.add("pause_longest_ms", self.longest as f64 / 1e6);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_from_one_millisecond_on() {
        let (mut one, mut other) = (Pauses::default(), Pauses::default());
        one.record(SHORTEST - 1);
        assert_eq!(one, Pauses::default());
        one.record(SHORTEST);
        one.record(3 * SHORTEST);
        other.record(2 * SHORTEST);
        let mut figures = Figures::new("test");
        one.and(other).add(&mut figures);
        let value = |name| figures.value(name).unwrap();
        assert_eq!(value("pauses"), 3.0);
        assert_eq!(value("pauses_ms"), 6.0);
        assert_eq!(value("pause_longest_ms"), 3.0);
    }

    #[test]
    fn a_raised_stop_ends_the_measurement() {
        let stop = Stop::new();
        stop.raise();
        let processors = Processors::of_this_thread().unwrap();
        for processors in [processors, Processors::default()] {
            let hour = Duration::from_secs(3600);
            Pauses::measure(processors, hour, &stop).unwrap();
        }
    }
}
