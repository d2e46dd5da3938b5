//! Two gateways in turns, started anew several times in both orders: which one was started first
//! makes a difference of a hundredth or two, and must not look like the cost of anything.

use super::rounds::{Rounds, Target, compare};
use super::{Receivers, WARM_UP};
use crate::bench::{BenchError, Processors, on};
use crate::figures::{Figures, median};
use fanfare_engine::stop::Stop;

/// How often both are started.
const STARTS: usize = 4;

/// A gateway that is ready for rounds.
pub(in crate::bench) trait Subject: Send {
    /// What sends a message, and those that receive it.
    fn ends(&mut self) -> (&mut dyn Target, &mut Receivers);

    /// Ends it.
    ///
    /// # Errors
    /// A thread of it has failed.
    fn stop(self) -> Result<(), BenchError>;
}

/// Rounds of one without what is measured and of one with it, of each start.
pub(in crate::bench) struct Pairs(Vec<(Rounds, Rounds)>);

impl Pairs {
    /// Starts both four times, each of them first in half of the cases, for a quarter of `rounds`
    /// each. `start` returns the one with what is measured for true.
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
            // A thread of its own is pinned: what is started later is not.
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

    /// Adds a percentile of the times to the last receiver, in microseconds, without and with what
    /// is measured: the medians over all starts of the medians of their slices.
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

    /// Returns the ratio of a percentile with what is measured to that without it: the geometric
    /// mean over all starts of the medians of their slices' ratios.
    pub(in crate::bench) fn ratio(&self, percent: f64) -> f64 {
        let logs = self
            .0
            .iter()
            .map(|(without, with)| with.slice_ratio(without, percent).ln());
        (logs.sum::<f64>() / self.0.len() as f64).exp()
    }

    /// Deliveries that did not come.
    pub(in crate::bench) fn lost(&self) -> u64 {
        self.0
            .iter()
            .map(|(without, with)| without.lost + with.lost)
            .sum()
    }
}
