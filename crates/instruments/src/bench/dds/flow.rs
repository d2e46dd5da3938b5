//! Samples per second, from process to process.

use std::time::Duration;

use super::ends::Ours;
use super::other::{Child, End};
use super::{DdsBench, ask_until, cannot_write, config, settle, wait};
use crate::bench::{BenchError, on};
use crate::figures::{Figures, median};
use crate::raw_dds::{CProgram, Role};

/// The duration of the writing.
const FLOW: Duration = Duration::from_millis(500);

impl DdsBench<'_> {
    /// Adds the samples per second of both programs, and the median of their ratios.
    ///
    /// # Errors
    /// A process or an end of DDS cannot be opened, or not all samples came.
    pub fn add_throughput(&self, figures: &mut Figures) -> Result<(), BenchError> {
        on(self.processors.here, || self.throughput(figures))
    }

    fn throughput(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let (mut raw_rates, mut rates) = (Vec::new(), Vec::new());
        for _ in self.turns(self.rounds) {
            let mut sink = self.child(End::RawSink, self.domain)?;
            let mut source = CProgram::open(&config(self.domain), Role::Source, true)?;
            wait("the other process", || source.is_matched())?;
            settle();
            let written = source
                .flow(FLOW.as_nanos() as u64)
                .ok_or_else(cannot_write)?;
            raw_rates.push(rate(&mut sink, written)?);
            drop((source, sink));
            let mut sink = self.child(End::Sink, self.domain + 1)?;
            let mut source = Ours::source(&config(self.domain + 1), true)?;
            wait("the other process", || source.is_matched())?;
            settle();
            let written = source.flow(FLOW)?;
            rates.push(rate(&mut sink, written)?);
        }
        let ratios = rates.iter().zip(&raw_rates).map(|(a, b)| a / b).collect();
        figures.add("raw_rate_per_s", median(raw_rates));
        figures.add("rate_per_s", median(rates));
        figures.add("ratio_rate", median(ratios));
        Ok(())
    }
}

/// Returns the samples per second at the sink; all must have come.
fn rate(sink: &mut Child, written: u64) -> Result<f64, BenchError> {
    ask_until(
        sink,
        Duration::from_millis(5),
        |count, nanos| (count >= written).then(|| count as f64 / (nanos as f64 / 1e9)),
        |count, _| format!("{count} of {written} samples arrived"),
    )
}
