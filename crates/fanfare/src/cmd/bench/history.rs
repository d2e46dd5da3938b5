//! `fanfare bench history`: the log of market events, compared with a raw program that writes as
//! many bytes.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::history::{HistoryBench, Kind};
use fanfare_instruments::bench::market::MarketBench;
use fanfare_instruments::figures::Figures;
use std::path::PathBuf;
use std::process::ExitCode;

use super::processors;
use crate::print::measured_out;
use crate::range::whole;
use crate::scratch::Scratch;

/// Options of `fanfare bench history`.
///
/// Events of a generated feed are written to a log and read back: those of the complex feed, and
/// those of books of numbered levels (`spectra_`). `append_ratio` is the writer's time divided by
/// that of a raw program that writes the same bytes to a file. `memory_growth` is the memory after
/// the last event, with readers that follow the log, divided by that after a fifth of the events.
/// `append_ratio_p50` is the time from a datagram to the last of its subscribers with a log,
/// divided by that without.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Events of each log; each takes 64 bytes on disk during the run.
    #[arg(long, value_name = "N", default_value_t = 20_000_000)]
    #[arg(value_parser = whole::<u64>(100_000..=10_000_000_000))]
    events: u64,
    /// Readers that follow a log while it is written; one of them stops.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole::<usize>(2..=1000))]
    readers: usize,
    /// Datagrams through each of two gateways, with a log and without, alternating.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Subscribers of each gateway.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole::<usize>(1..=10_000))]
    subscribers: usize,
    /// The folder for the logs, which are removed at the end [default: a temporary folder]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let scratch = match &args.folder {
        Some(folder) => Scratch::inside(folder, "history"),
        None => Scratch::new("history"),
    };
    let scratch = scratch.context("cannot make a folder for the logs")?;
    let folder = scratch.file("");
    let bench = HistoryBench {
        events: args.events,
        folder: &folder,
        processors: processors()?,
    };
    let mut figures = Figures::new("bench history");
    let complex = bench.add(&mut figures, "", Kind::Complex, &stop)?;
    let spectra = bench.add(&mut figures, "spectra_", Kind::Spectra, &stop)?;
    let memory = bench.add_memory(&mut figures, args.readers, &stop)?;
    if stop.is_raised() {
        return Ok(measured_out(figures, args.json, &stop));
    }
    figures.set_ok(complex && spectra && memory);
    let market = MarketBench {
        rounds: args.rounds,
        processors: bench.processors,
    };
    let log = scratch.file("log");
    market.add_logged(&mut figures, (args.subscribers, &log), &stop)?;
    Ok(measured_out(figures, args.json, &stop))
}
