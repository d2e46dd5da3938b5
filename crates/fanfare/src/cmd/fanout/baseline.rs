//! `fanfare fanout baseline`: the same bytes through plain sockets.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::fanout::add_baseline;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use crate::cmd::bench::processors;
use crate::print::measured_out;
use crate::range::whole;

/// Options of `fanfare fanout baseline`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Plain loopback connections.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=20_000))]
    consumers: usize,
    /// Messages, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut figures = Figures::new("fanout baseline");
    let stop = Stop::on_interrupt()?;
    let processors = processors()?;
    add_baseline(&mut figures, args.consumers, args.rounds, processors, &stop)?;
    Ok(measured_out(figures, args.json, &stop))
}
