//! Alternates between two gateways that are restarted several times in both orders: the order of
//! their starts makes a difference of a hundredth or two, which must not look like the cost of a
//! feature.

use super::rounds::{Rounds, Target, compare};
use super::{Receivers, WARM_UP};
use crate::bench::{BenchError, Processors, on};
use crate::figures::{Figures, median};
use fanfare_engine::stop::Stop;

/// The number of starts of both.
const STARTS: usize = 4;

/// A gateway that is ready for rounds.
pub(in crate::bench) trait Subject: Send {
    /// Returns the sender of messages, and their receivers.
    fn ends(&mut self) -> (&mut dyn Target, &mut Receivers);

    /// Stops it.
    ///
    /// # Errors
    /// One of its threads has failed.
    fn stop(self) -> Result<(), BenchError>;
}

/// For each start, the rounds of the gateway without the measured feature and of the one with it.
pub(in crate::bench) struct Pairs(Vec<(Rounds, Rounds)>);

impl Pairs {
    /// Starts both four times, each of them first in half of the cases, for a quarter of `rounds`
    /// each. `start` returns the one with the measured feature for true.
    ///
    /// # Errors
    /// As `start`, or a connection broke.
    pub(in crate::bench) fn measure<S: Subject>(
        processors: Processors,
        rounds: usize,
        stop: &Stop,
        mut start: impl FnMut(bool) -> Result<S, BenchError>,
    ) -> Result<Self, BenchError> {
        let mut pairs = Vec::new();
        let rounds = rounds.div_ceil(STARTS);
        for is_with_first in (0..STARTS).map(|turn| turn % 2 == 1) {
            if stop.is_raised() {
                break;
            }
            let (mut one, mut other) = (start(is_with_first)?, start(!is_with_first)?);
            // A thread of its own is pinned: threads that are started later are not.
            let (first, second) = on(processors.here, || {
                let rounds = (WARM_UP.min(rounds), rounds);
                let took = compare(one.ends(), other.ends(), rounds, || stop.is_raised())?;
                Ok(took)
            })?;
            one.stop()?;
            other.stop()?;
            pairs.push(match is_with_first {
                true => (second, first),
                false => (first, second),
            });
        }
        Ok(Self(pairs))
    }

    /// Measures the gateway with the feature beside the one without it, and two without it, whose
    /// ratio is the noise of the measurement.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub(in crate::bench) fn beside_noise<S: Subject>(
        processors: Processors,
        rounds: usize,
        stop: &Stop,
        start: impl Fn(bool) -> Result<S, BenchError>,
    ) -> Result<[Self; 2], BenchError> {
        Ok([
            Self::measure(processors, rounds, stop, &start)?,
            Self::measure(processors, rounds, stop, |_| start(false))?,
        ])
    }

    /// Adds a percentile of the times to the last receiver, in microseconds, without and with the
    /// measured feature: the medians over all starts of the medians of their slices.
    pub(in crate::bench) fn add_times(
        &self,
        figures: &mut Figures,
        (without, with): (&str, &str),
        percent: f64,
    ) {
        let of = |side: fn(&(Rounds, Rounds)) -> &Rounds| {
            median(
                self.0
                    .iter()
                    .map(|pair| side(pair).slice_us(percent))
                    .collect(),
            )
        };
        figures.add(without, of(|(without, _)| without));
        figures.add(with, of(|(_, with)| with));
    }

    /// Returns the ratio of a percentile with the measured feature to that without it: the
    /// geometric mean over all starts of the medians of their slices' ratios.
    pub(in crate::bench) fn ratio(&self, percent: f64) -> f64 {
        let logs = self
            .0
            .iter()
            .map(|(without, with)| with.slice_ratio(without, percent).ln());
        (logs.sum::<f64>() / self.0.len() as f64).exp()
    }

    /// Returns the number of missing deliveries.
    pub(in crate::bench) fn lost(&self) -> u64 {
        self.0
            .iter()
            .map(|(without, with)| without.lost + with.lost)
            .sum()
    }
}
