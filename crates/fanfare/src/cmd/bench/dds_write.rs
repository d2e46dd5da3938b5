//! The writing part of `fanfare bench dds`: what a decoded Quote costs until it is on the network,
//! beside a plain typed `dds_write` of one.

use super::dds::{config, settle, wait};
use super::dds_ends::{Child, End, Ours};
use anyhow::{Result, bail};
use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_fast::generate::{Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program};
use fanfare_instruments::figures::{Figures, median};
use fanfare_instruments::raw_dds::{CProgram, Role};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Samples written in one go: few, so that no writer waits for its reader.
const BURST: u32 = 64;
/// Bursts in a round.
const BURSTS: u32 = 50;

/// Adds the nanoseconds of a `dds_write`, of a conversion and write, and of what the second takes
/// more: medians of the rounds, in turns.
pub(super) fn figures(
    domain: u32,
    there: Option<usize>,
    rounds: usize,
    figures: &mut Figures,
) -> Result<()> {
    let (mut raw_sink, mut sink) = (
        Child::start(End::RawSink, domain, there)?,
        Child::start(End::Sink, domain + 1, there)?,
    );
    let mut raw = CProgram::open(&config(domain), Role::Source, false)?;
    let ours = Ours::source(&config(domain + 1), false)?;
    wait("the other process", || {
        raw.is_matched() && ours.is_matched()
    })?;
    settle();
    let mut converter = quote()?;
    let (mut raws, mut all, mut more) = (Vec::new(), Vec::new(), Vec::new());
    // The first round of each warms up.
    for round in 0..=rounds {
        let raw_nanos = self::round(&mut raw_sink, || match raw.burst(BURST) {
            0 => bail!("the C program cannot write"),
            nanos => Ok(nanos),
        })?;
        let nanos = self::round(&mut sink, || ours.burst(BURST, &mut converter))?;
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

/// A Quote, decoded.
fn quote() -> Result<Converter> {
    let program = Arc::new(Program::simple());
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default())?;
    let mut converter = Converter::new(Arc::new(mapping), 1024);
    let mut feed = Generator::simple(Program::simple(), 1, PACKET_SIZE);
    let Some(packet) = feed.next_packet()? else {
        bail!("the generator has no packet");
    };
    converter.decode(&mut Decoder::new(program), packet)?;
    Ok(converter)
}

/// Nanoseconds a sample, over several bursts; before each the sink has everything.
fn round(sink: &mut Child, mut burst: impl FnMut() -> Result<u64>) -> Result<f64> {
    let (mut wanted, _) = sink.ask()?;
    let mut nanos = 0;
    for _ in 0..BURSTS {
        nanos += burst()?;
        wanted += u64::from(BURST);
        let begin = Instant::now();
        while sink.ask()?.0 < wanted {
            if begin.elapsed() > Duration::from_secs(10) {
                bail!("a sample did not arrive within 10 s");
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
    Ok(nanos as f64 / f64::from(BURSTS * BURST))
}
