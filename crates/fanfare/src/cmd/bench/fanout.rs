//! `fanfare bench fanout`: one message to every consumer, alternating between the gateway and plain
//! sends.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::fanout::FanoutBench;
use fanfare_instruments::bench::stamps::add_stamps;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use super::watch::Watch;
use super::{Stalled, processors};
use crate::print::{measured_out, note};
use crate::range::whole;

/// Options of `fanfare bench fanout`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Consumers, and plain connections of the baseline.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=20_000))]
    consumers: usize,
    /// Messages through each, alternating.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Measure instead the highest rate of messages that the gateway sustains.
    #[arg(long)]
    saturate: bool,
    /// Messages of --saturate.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    #[arg(value_parser = whole::<u64>(1..=1_000_000))]
    messages: u64,
    /// Measure instead the latency of the other consumers while one more never reads, under this
    /// policy, against a gateway without it.
    #[arg(long, value_name = "POLICY", value_enum, conflicts_with = "saturate")]
    stalled: Option<Stalled>,
    /// Measure instead the cost of the stages' measurement: a gateway with it against one without,
    /// and the time of one stamp.
    #[arg(long, conflicts_with_all = ["saturate", "stalled"])]
    stages: bool,
    /// Measure instead the cost of monitoring: a gateway whose console is polled once a second, as
    /// by Prometheus and the page, against one without a console.
    #[arg(long, conflicts_with_all = ["saturate", "stalled", "stages"])]
    watched: bool,
    /// With --watched: open the page in this browser, Chromium or a derivative, headless.
    #[arg(long, value_name = "PROGRAM", requires = "watched")]
    browser: Option<String>,
    /// Fan-out workers of the gateway.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=64))]
    workers: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let bench = FanoutBench {
        consumers: args.consumers,
        workers: args.workers,
        processors: processors()?,
    };
    let mut figures = Figures::new("bench fanout");
    if let Some(Stalled(policy)) = args.stalled {
        let size = (args.rounds, args.messages);
        if !bench.add_stalled(&mut figures, policy, size, &stop)? {
            note!("the queue of the consumer that never reads did not fill");
        }
    } else if args.stages {
        add_stamps(&mut figures);
        bench.add_stages(&mut figures, args.rounds, &stop)?;
    } else if args.watched {
        let watch = |gateway: &_| Watch::start(gateway, args.browser.as_deref());
        bench.add_watched(&mut figures, args.rounds, &stop, watch)?;
    } else if args.saturate {
        note!(
            "five times {} messages, plain and through the gateway",
            args.messages
        );
        if !bench.add_rates(&mut figures, args.messages, &stop)? {
            note!("stopped before the first of five was measured");
        }
    } else {
        bench.add_latency(&mut figures, args.rounds, &stop)?;
    }
    Ok(measured_out(figures, args.json, &stop))
}
