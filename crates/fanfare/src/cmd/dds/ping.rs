//! `fanfare dds ping` and `pong`: the round trip of a sample between two programs.

use super::options::{DomainArgs, Role};
use super::statistics;
use crate::print::{exit_code, note, say};
use crate::range::seconds;
use anyhow::{Context, Result, bail};
use fanfare_dds::Status;
use fanfare_engine::stop::Stop;
use fanfare_instruments::dds::{Ping, PingOptions, Pong};
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// The longest payload.
const LONGEST: u32 = 1 << 20;

/// Measure the round trip of a sample to a `fanfare dds pong` and back, one at a time.
///
/// Times are in microseconds, from the write to the call of the listener with the echo, whose bytes
/// are checked. A sample without an echo within --timeout counts as lost.
#[derive(Debug, clap::Args)]
pub(crate) struct PingArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Bytes of payload in each sample.
    #[arg(long, value_name = "BYTES", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(LONGEST)))]
    size: u32,
    /// Samples that are measured.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Samples of the warm-up, which are not measured.
    #[arg(long, value_name = "COUNT", default_value_t = 1_000)]
    warm_up: u64,
    /// Best-effort instead of reliable delivery; pong needs the same.
    #[arg(long)]
    best_effort: bool,
    /// Seconds to wait for a pong before the first sample.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds(86_400.0))]
    wait: f64,
    /// Seconds to wait for an echo.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds(86_400.0))]
    timeout: f64,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Send each sample of `fanfare dds ping` back, until Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct PongArgs {
    #[command(flatten)]
    domain: DomainArgs,
    /// Best-effort instead of reliable delivery.
    #[arg(long)]
    best_effort: bool,
    /// Exit after this many samples; default: Ctrl-C.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

fn unfit(status: &Status) {
    note!("fanfare: {status}: is --best-effort the same on both sides?");
}

pub(crate) fn pong(args: &PongArgs) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Subscriber)?;
    let pong = Pong::open(&domain, args.best_effort, unfit)?;
    note!("answering on FanfarePong what comes on FanfarePing");
    let most = args.count.unwrap_or(u64::MAX);
    while !stop.is_raised() && pong.came() < most {
        pong.turn()?;
    }
    let (came, failed) = pong.finish();
    note!("{came} samples came, {failed} could not be answered");
    Ok(exit_code(failed == 0))
}

pub(crate) fn ping(args: &PingArgs) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let domain = args.domain.open(Role::Publisher)?;
    let options = PingOptions {
        size: args.size,
        best_effort: args.best_effort,
        timeout: Duration::from_secs_f64(args.timeout),
    };
    let mut ping = Ping::open(&domain, &options, unfit)?;
    wait_for_pong(args, &ping, &stop)?;
    let total = args.warm_up.saturating_add(args.count);
    for sequence in 0..total {
        if stop.is_raised() {
            break;
        }
        let sent = ping.one(sequence, sequence >= args.warm_up);
        sent.context("cannot write a ping")?;
    }
    ping.check()?;
    Ok(report(args, &ping))
}

/// Waits until both directions have a pong.
fn wait_for_pong(args: &PingArgs, ping: &Ping, stop: &Stop) -> Result<()> {
    let end = Instant::now() + Duration::from_secs_f64(args.wait);
    while !ping.is_matched() {
        if stop.is_raised() {
            bail!("interrupted before the first pong");
        }
        if Instant::now() >= end {
            let id = args.domain.domain;
            bail!(
                "no pong in domain {id} within {} s: run `fanfare dds pong`",
                args.wait
            );
        }
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn report(args: &PingArgs, ping: &Ping) -> ExitCode {
    let (wrong, trips) = (ping.wrong(), &ping.round_trips);
    let ok = ping.lost == 0 && wrong == 0 && !trips.is_empty();
    if args.json {
        let mut figures = Figures::new("dds ping");
        figures.count("sent", ping.sent);
        figures.count("received", trips.len());
        figures.count("lost", ping.lost);
        figures.count("wrong", wrong);
        figures.count("size_bytes", args.size.into());
        figures.add("roundtrip_mean_us", trips.mean_micros());
        for (name, percent) in [
            ("roundtrip_min_us", 0.0),
            ("roundtrip_p50_us", 50.0),
            ("roundtrip_p90_us", 90.0),
            ("roundtrip_p99_us", 99.0),
            ("roundtrip_p99_9_us", 99.9),
            ("roundtrip_max_us", 100.0),
        ] {
            figures.add(name, trips.micros(percent));
        }
        figures.add("latency_p50_us", trips.micros(50.0) / 2.0);
        figures.set_ok(ok);
        say!("{}", figures.to_json());
    } else {
        say!(
            "{} samples of {} bytes sent, {} answers, {} lost, {wrong} wrong; times in us",
            ping.sent,
            args.size,
            trips.len(),
            ping.lost
        );
        statistics::print(&[("round trip".to_owned(), trips)]);
        if !trips.is_empty() {
            let median = trips.micros(50.0) / 2.0;
            say!("latency = round trip / 2: p50 {median:.3} us");
        }
    }
    exit_code(ok)
}
