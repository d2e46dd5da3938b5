//! `fanfare bench market`: from a datagram to the X of its subscribers, beside a raw program.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::market::MarketBench;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use super::processors;
use crate::print::figures_out;
use crate::range::whole;

/// Options of `fanfare bench market`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Datagrams through each, in turns.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Subscribers of one instrument, beside as many raw sends.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=10_000))]
    subscribers: usize,
    /// Sessions, ten of which want what changes, beside a gateway with these ten alone; and
    /// sessions that all want it, two of which are behind, beside a gateway without these two.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(10..=10_000))]
    sessions: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Sessions that want what changes.
const WANTING: usize = 10;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let bench = MarketBench {
        rounds: args.rounds,
        processors: processors()?,
    };
    let mut figures = Figures::new("bench market");
    bench.add_one(&mut figures, &stop)?;
    bench.add_last(&mut figures, args.subscribers, &stop)?;
    bench.add_among(&mut figures, (WANTING, args.sessions), &stop)?;
    bench.add_slow(&mut figures, args.sessions, &stop)?;
    Ok(figures_out(&figures, args.json))
}
