//! `fanfare bench scale`: the fan-out by the number of consumers.

use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::BenchError;
use fanfare_instruments::bench::fanout::FanoutBench;
use fanfare_instruments::bench::pauses::Pauses;
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;
use std::time::Duration;

use super::processors;
use crate::print::{measured_out, note};
use crate::range::whole;

/// The duration for which the pauses of the processors are measured.
const IDLE: Duration = Duration::from_secs(10);

/// The numbers of consumers if none are given.
const USUAL: [usize; 4] = [10, 100, 1_000, 10_000];

/// Options of `fanfare bench scale`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Numbers of consumers, each measured with a gateway of its own [default:
    /// 10,100,1000,10000, without those that need more open files than the system allows].
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
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
    let bench = |consumers| FanoutBench {
        consumers,
        workers: args.workers,
        processors,
    };
    let all = counts(&args.consumers, |consumers| bench(consumers).allow_files());
    note!("pauses of the processors, {} s", IDLE.as_secs());
    Pauses::measure(processors, IDLE, &stop)?.add(&mut figures);
    for consumers in all {
        note!("{consumers} consumers");
        let prefix = format!("with_{consumers}_");
        // What has been measured is printed, whatever becomes of the rest.
        match bench(consumers).add_scale(&mut figures, &prefix, &stop) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                note!("{error}");
                figures.set_ok(false);
            }
        }
    }
    Ok(measured_out(figures, args.json, &stop))
}

/// Returns the given numbers of consumers. If there are none, returns the usual ones, without those
/// for which `allow` fails.
fn counts(given: &[usize], allow: impl Fn(usize) -> Result<(), BenchError>) -> Vec<usize> {
    if !given.is_empty() {
        return given.to_vec();
    }
    let fits = |consumers: &usize| {
        let allowed = allow(*consumers);
        if let Err(error) = &allowed {
            note!("left out: {error}");
        }
        allowed.is_ok()
    };
    USUAL.into_iter().filter(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_usual_numbers_are_left_out() {
        let allow = |consumers: usize| match consumers {
            ..=1_000 => Ok(()),
            _ => Err(BenchError::Missing("too few open files".to_owned())),
        };
        assert_eq!(counts(&[], allow), [10, 100, 1_000]);
        assert_eq!(counts(&[5_000], allow), [5_000]);
    }
}
