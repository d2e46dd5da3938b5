//! `fanfare fanout producers`: many sessions that send market data on schedule.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_instruments::load::{ProducerOptions, ProducerReport, Producers, Template};
use std::path::PathBuf;
use std::process::ExitCode;

use super::{FIRST, MOST_SESSIONS, prefix, tell_logged_on};
use crate::address::resolve;
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::range::{rate, whole};

/// Options of `fanfare fanout producers`.
///
/// A session that the gateway refuses is named on stderr, and the others continue; the exit status
/// is 1 then.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The gateway's host: a name or an address.
    host: String,
    /// Sessions, one FIX connection each.
    #[arg(value_parser = whole::<usize>(1..=MOST_SESSIONS))]
    clients: usize,
    /// Messages that each session sends.
    messages: u64,
    /// Messages per second of each session.
    #[arg(value_parser = rate(1e8))]
    rate: f64,
    /// One in this many messages, over all sessions, goes to every consumer [default: CLIENTS].
    fanout: Option<u64>,
    /// The gateway's port for producers.
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    port: u16,
    /// Prefix of CompIDs, followed by a number. Hosts that load the same gateway need different
    /// ones.
    #[arg(long, value_name = "NAME", default_value = "P", value_parser = prefix)]
    prefix: String,
    /// The number in the first CompID.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=FIRST))]
    first: usize,
    /// A FIX message to send instead of the built-in snapshot; SOH or `|` between fields.
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Threads among which the sessions are divided.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=64))]
    threads: usize,
    /// Print the figures as one JSON object at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    raise_open_files(args.clients as u64 + 64)?;
    let template = template(args)?;
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let options = ProducerOptions {
        messages: args.messages,
        rate: args.rate,
        fanout: args.fanout.unwrap_or(args.clients as u64),
        threads: args.threads,
        name: args.prefix.clone(),
        first: args.first,
        ..ProducerOptions::new(resolve(&args.host, args.port)?, args.clients)
    };
    let producers = Producers::connect(&options, template, &stop)?;
    tell_logged_on(producers.sessions(), producers.refused());
    let report = producers.run(&stop)?;
    print(args, &report);
    Ok(exit_code(report.is_whole()))
}

fn template(args: &Args) -> Result<Template> {
    let Some(path) = &args.template else {
        return Ok(Template::builtin());
    };
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Template::parse(&text).with_context(|| path.display().to_string())
}

fn print(args: &Args, report: &ProducerReport) {
    if let Some(warning) = report.warning() {
        note!("warning: {warning}");
    }
    if args.json {
        return say!("{}", report.figures().to_json());
    }
    let (sent, marked) = (counted(report.sent, "message"), report.marked);
    say!(
        "{sent} sent, {marked} of them marked, {:.0} a second",
        report.rate()
    );
}
