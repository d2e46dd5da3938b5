//! `fanfare latency client`: sends orders and measures the round trip of each.

use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Args as ClapArgs, value_parser};
use fanfare_engine::cpu;
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{Config, LogonFault, SECOND, SessionId, Version};
use fanfare_instruments::figures::Figures;
use fanfare_instruments::pingpong::{ClientOptions, ClientReport, Pace, measure};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use super::StoreArgs;
use crate::address::resolve;
use crate::print::{exit_code, note, say};
use crate::range::rate;

/// Options of `fanfare latency client`.
///
/// The client logs on with ResetSeqNumFlag(141), sends NewOrderSingle(D) messages of about 155
/// bytes and measures the time from before an order is encoded until the session has decoded and
/// checked its ExecutionReport(8). One order is in flight. With --rate, orders are sent on
/// schedule, independently of their reports, and an order's time counts from when it was due, so
/// that its delay is included.
///
/// The report so far is printed even if the run ends early, by Ctrl-C too; the exit status is 1
/// then.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The server's host: a name or an address.
    host: String,
    /// The server's port.
    port: u16,
    /// Orders to measure.
    #[arg(value_parser = value_parser!(u64).range(1..=MOST))]
    count: u64,
    /// Orders of the warm-up, which are not measured.
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = value_parser!(u64).range(..=MOST))]
    warm_up: u64,
    /// Orders per second, on schedule.
    #[arg(long, value_name = "R", value_parser = rate(FASTEST))]
    rate: Option<f64>,
    /// Run on this processor alone and never yield it; by default, the thread yields to others.
    #[arg(long, value_name = "CPU")]
    pin: Option<usize>,
    #[command(flatten)]
    store: StoreArgs,
    /// Write the percentile curve as a chart.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// BeginString of the session.
    #[arg(long, value_name = "VERSION", default_value = "FIX.4.4")]
    begin_string: BeginString,
    /// SenderCompID.
    #[arg(long, value_name = "COMP_ID", default_value = "CLIENT", value_parser = comp_id)]
    sender: String,
    /// TargetCompID.
    #[arg(long, value_name = "COMP_ID", default_value = "SERVER", value_parser = comp_id)]
    target: String,
    /// Measure a server whose Logon has no EncryptMethod(98) and HeartBtInt(108), and whose clock
    /// does not advance: libtrading's fix_server, which has the CompIDs SELLSIDE and BUYSIDE.
    #[arg(long)]
    lenient: bool,
    /// Seconds to wait for the logon, and for each report that is due.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// The most orders of one run.
const MOST: u64 = 1_000_000_000;
/// The highest rate, in orders per second.
const FASTEST: f64 = 10e6;

/// The versions that the order is valid in.
#[derive(Clone, Copy)]
struct BeginString(Version);

impl clap::ValueEnum for BeginString {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self(Version::Fix42),
            Self(Version::Fix43),
            Self(Version::Fix44),
            Self(Version::Fixt11),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.begin_string()))
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let pace = match args.rate {
        None => Pace::PingPong,
        Some(rate) => Pace::OpenLoop(rate),
    };
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let options = ClientOptions {
        address: resolve(&args.host, args.port)?,
        session: session(args),
        store: args.store.kind(),
        pace,
        count: args.count,
        warm_up: args.warm_up,
        patience: Duration::from_secs(args.timeout),
        spin: args.pin.is_some(),
    };
    // Made before this thread is pinned: afterwards it would see one core only.
    let figures = Figures::new("latency client");
    if let Some(cpu) = args.pin {
        cpu::pin_to(cpu)?;
    }
    let report = measure(&options, || stop.is_raised())?;
    finish(args, &report, figures)
}

fn session(args: &Args) -> Config {
    let BeginString(version) = args.begin_string;
    let mut config = Config::new(SessionId::new(version, &args.sender, &args.target));
    config.reset_on_logon = true;
    config.logon_timeout = args.timeout * SECOND;
    config.bare_logon = args.lenient;
    config.check_latency = !args.lenient;
    config
}

fn finish(args: &Args, report: &ClientReport, mut figures: Figures) -> Result<ExitCode> {
    report.add_to(&mut figures);
    if args.json {
        say!("{}", figures.to_json());
    } else {
        say!("{report}");
    }
    if let Some(path) = &args.svg {
        std::fs::write(path, report.to_svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(why) = &report.trouble {
        note!("fanfare: {why}");
        if let Some(hint) = report.logon_fault.and_then(hint) {
            note!("{hint}");
        }
        return Ok(ExitCode::FAILURE);
    }
    if !report.is_complete() {
        let (done, all) = (report.round_trips.len(), report.count);
        note!("interrupted after {done} of {all} orders");
    }
    Ok(exit_code(report.is_complete()))
}

/// Parses a CompID.
fn comp_id(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic();
    match text.len() {
        1..=64 if text.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("must be 1 to 64 printable ASCII characters".to_owned()),
    }
}

/// Returns a hint for a server whose Logon is not as expected.
fn hint(fault: LogonFault) -> Option<&'static str> {
    match fault {
        LogonFault::EncryptMethod | LogonFault::HeartBtInt | LogonFault::SendingTime => Some(
            "--lenient measures a server whose Logon has no EncryptMethod(98) and \
             HeartBtInt(108), such as libtrading's fix_server",
        ),
        LogonFault::CompId => Some(
            "the server has other CompIDs: --sender and --target name ours and its own \
             (libtrading's fix_server: --sender BUYSIDE --target SELLSIDE --lenient)",
        ),
        _ => None,
    }
}
