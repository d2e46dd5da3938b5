//! The cost of a decoded Quote until it is on the network, compared with a plain typed `dds_write`.

use std::sync::Arc;
use std::time::Duration;

use fanfare_fast::generate::{Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program, Record};

use super::convert::{converter, told};
use super::ends::Ours;
use super::other::{Child, End};
use super::{DdsBench, ask_until, cannot_write, config, settle, wait};
use crate::bench::{BenchError, on};
use crate::figures::{Figures, median};
use crate::raw_dds::{CProgram, Role};

/// Samples written at once: few, so that no writer waits for its reader.
const BURST: u32 = 64;
/// Bursts in a round.
const BURSTS: u32 = 50;

impl DdsBench<'_> {
    /// Adds the nanoseconds of a `dds_write`, of a conversion and write, and of their difference:
    /// medians of the rounds, in alternation.
    ///
    /// # Errors
    /// A process or an end of DDS cannot be opened, or a sample does not arrive.
    pub fn add_writing(&self, figures: &mut Figures) -> Result<(), BenchError> {
        on(self.processors.here, || self.writing(figures))
    }

    fn writing(&self, figures: &mut Figures) -> Result<(), BenchError> {
        let mut raw_sink = self.child(End::RawSink, self.domain)?;
        let mut sink = self.child(End::Sink, self.domain + 1)?;
        let mut raw = CProgram::open(&config(self.domain), Role::Source, false)?;
        let ours = Ours::source(&config(self.domain + 1), false)?;
        wait("the other process", || {
            raw.is_matched() && ours.is_matched()
        })?;
        settle();
        let program = Arc::new(Program::simple());
        let quote = quote(&program)?;
        let mut converter = converter(&program, 1024)?;
        let (mut raws, mut all, mut more) = (Vec::new(), Vec::new(), Vec::new());
        // The first round of each is a warm-up.
        for round in self.turns(self.rounds + 1) {
            let raw_nanos = bursts(&mut raw_sink, || raw.burst(BURST).ok_or_else(cannot_write))?;
            let nanos = bursts(&mut sink, || ours.burst(BURST, &quote, &mut converter))?;
            if round > 0 {
                raws.push(raw_nanos);
                all.push(nanos);
                more.push(nanos - raw_nanos);
            }
        }
        figures.add("raw_write_ns", median(raws));
        figures.add("convert_write_ns", median(all));
        figures.add("convert_write_over_raw_ns", median(more));
        Ok(())
    }
}

/// Returns a decoded Quote.
fn quote(program: &Arc<Program>) -> Result<Record, BenchError> {
    let mut feed = Generator::simple(Program::simple(), 1, PACKET_SIZE);
    let packet = feed.next_packet().map_err(told)?.unwrap_or_default();
    let mut record = Record::new();
    let decoded = Decoder::new(Arc::clone(program)).decode_record(packet, &mut record);
    decoded.map_err(told)?;
    Ok(record)
}

/// Returns the nanoseconds per sample, over several bursts; before each the sink has received all.
fn bursts(
    sink: &mut Child,
    mut burst: impl FnMut() -> Result<u64, BenchError>,
) -> Result<f64, BenchError> {
    let (mut wanted, _) = sink.ask()?;
    let mut nanos = 0;
    for _ in 0..BURSTS {
        nanos += burst()?;
        wanted += u64::from(BURST);
        ask_until(
            sink,
            Duration::from_micros(200),
            |count, _| (count >= wanted).then_some(()),
            |count, _| format!("{count} of {wanted} samples arrived"),
        )?;
    }
    Ok(nanos as f64 / f64::from(BURSTS * BURST))
}
