//! `fanfare bench market`: from a datagram to the X of its subscribers, compared with a raw
//! program.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::market::MarketBench;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use super::{Part, add_all, processors};
use crate::plural::counted;
use crate::print::measured_out;
use crate::range::whole;

/// Options of `fanfare bench market`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Datagrams through each, alternating.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Subscribers of one instrument, and as many raw sends.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=10_000))]
    subscribers: usize,
    /// Sessions: ten that subscribe to the instrument that changes, against a gateway with these
    /// ten alone; and sessions that all subscribe to it, two of them slow, against a gateway
    /// without these two.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(10..=10_000))]
    sessions: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Sessions that subscribe to the instrument that changes.
const WANTING: usize = 10;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let bench = MarketBench {
        rounds: args.rounds,
        processors: processors()?,
    };
    let mut figures = Figures::new("bench market");
    let (subscribers, sessions) = (args.subscribers, args.sessions);
    let parts: [Part<'_>; 4] = [
        ("one subscriber".to_owned(), &|figures| {
            bench.add_one(figures, &stop)
        }),
        (
            format!(
                "{} of one instrument",
                counted(subscribers as u64, "subscriber")
            ),
            &|figures| bench.add_last(figures, subscribers, &stop),
        ),
        (
            format!("{WANTING} subscribers among {sessions} sessions"),
            &|figures| bench.add_among(figures, (WANTING, sessions), &stop),
        ),
        (
            format!("{sessions} sessions, two of them slow"),
            &|figures| bench.add_slow(figures, sessions, &stop),
        ),
    ];
    add_all(&parts, &mut figures, &stop)?;
    Ok(measured_out(figures, args.json, &stop))
}
