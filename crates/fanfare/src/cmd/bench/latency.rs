//! `fanfare bench latency`: an order and its report through two sessions, with and without
//! journals, alternating with plain sockets.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::pingpong::{CompareOptions, compare};
use std::path::PathBuf;
use std::process::ExitCode;

use super::processors;
use crate::print::measured_out;
use crate::range::whole;
use crate::scratch::Scratch;

/// Options of `fanfare bench latency`.
///
/// Raw sockets, sessions and sessions with journals alternate in rounds of 110 round trips on two
/// pinned, busy threads; the first 10 of a round do not count. Every figure is the median over
/// slices of 1,000 round trips of each, and every ratio the median of the slices' ratios, so that
/// an interrupt or a slow minute of the machine does not affect one of them alone. Figures with
/// `pooled` in their names are the percentiles of all round trips together.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Round trips through each, alternating.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    #[arg(value_parser = whole::<u64>(1..=MOST))]
    rounds: u64,
    /// Round trips through each before those that count.
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    #[arg(value_parser = whole::<u64>(0..=MOST))]
    warm_up: u64,
    /// Folder for the journals [default: a temporary folder, removed at the end].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The largest number of round trips.
const MOST: u64 = 1_000_000_000;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let scratch = Scratch::new("latency").context("cannot make a folder for the journals")?;
    let base = args
        .store
        .clone()
        .unwrap_or_else(|| scratch.file("journals"));
    // Made before this thread is pinned: afterwards it would see one core only.
    let mut figures = Figures::new("bench latency");
    let processors = processors()?;
    let options = CompareOptions {
        rounds: args.rounds,
        warm_up: args.warm_up,
        folder: &base,
        cpus: processors.here.zip(processors.there),
    };
    let comparison = compare(&options, || stop.is_raised())?;
    comparison.add_to(&mut figures);
    figures.set_ok(!comparison.session.all.is_empty());
    Ok(measured_out(figures, args.json, &stop))
}
