//! `fanfare bench scale`: the fan-out by the number of consumers.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::fanout::FanoutBench;
use fanfare_instruments::bench::pauses::Pauses;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;
use std::time::Duration;

use super::processors;
use crate::print::{figures_out, note};
use crate::range::whole;

/// The duration for which the pauses of the processors are measured.
const IDLE: Duration = Duration::from_secs(10);

/// Options of `fanfare bench scale`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Numbers of consumers, each measured with a gateway of its own.
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "10,100,1000,10000"
    )]
    #[arg(value_parser = whole::<usize>(1..=20_000))]
    consumers: Vec<usize>,
    /// Fan-out workers of the gateway.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=64))]
    workers: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let mut figures = Figures::new("bench scale");
    let processors = processors()?;
    note!("pauses of the processors, {} s", IDLE.as_secs());
    Pauses::measure(processors, IDLE, &stop)?.add(&mut figures);
    for &consumers in &args.consumers {
        note!("{consumers} consumers");
        let bench = FanoutBench {
            consumers,
            workers: args.workers,
            processors,
        };
        let prefix = format!("with_{consumers}_");
        // What has been measured is printed, whatever becomes of the rest.
        match bench.add_scale(&mut figures, &prefix, &stop) {
            Ok(true) => {}
            Ok(false) => {
                note!("stopped before all was measured");
                break;
            }
            Err(error) => {
                note!("{error}");
                figures.set_ok(false);
            }
        }
    }
    Ok(figures_out(&figures, args.json))
}
