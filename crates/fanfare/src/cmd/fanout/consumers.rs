//! `fanfare fanout consumers`: many sessions that receive the fan-out and check it.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_instruments::load::{
    Asked, ConsumerOptions, ConsumerReport, Consumers, SubscribeOptions,
};
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use super::subscribe::{self, Market};
use super::{FIRST, MOST_SESSIONS, prefix, tell_logged_on};
use crate::address::resolve;
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::range::whole;

/// Options of `fanfare fanout consumers`.
///
/// The command ends at Ctrl-C, after --messages, and at Enter on a terminal or with --until-enter.
/// A session that the gateway refuses is named on stderr, and the others continue; the exit status
/// is 1 then. A mark that only some of the sessions have received is missing in the others.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// The gateway's host: a name or an address.
    host: String,
    /// Sessions, one FIX connection each.
    #[arg(value_parser = whole::<usize>(1..=MOST_SESSIONS))]
    clients: usize,
    /// Print the total each time this many messages have arrived; 0: never.
    #[arg(value_name = "PROGRESS", default_value_t = 1000)]
    progress: u64,
    /// The gateway's port for consumers.
    #[arg(long, value_name = "PORT", default_value_t = 3001)]
    port: u16,
    /// Prefix of CompIDs, followed by a number. Hosts that load the same gateway need different
    /// ones.
    #[arg(long, value_name = "NAME", default_value = "C", value_parser = prefix)]
    prefix: String,
    /// The number in the first CompID.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=FIRST))]
    first: usize,
    /// End at a line on stdin even if stdin is not a terminal. The end of stdin is not a line.
    #[arg(long)]
    until_enter: bool,
    /// End after this many messages of all sessions together.
    #[arg(long, value_name = "N")]
    messages: Option<u64>,
    /// Count marks that a producer sent before the first one received as missing: for consumers
    /// that were logged on before the producers began.
    #[arg(long, conflicts_with = "subscribe")]
    from_start: bool,
    /// Print the figures as one JSON object at the end; progress goes to stderr.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    market: Market,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    raise_open_files(args.clients as u64 + 64)?;
    if !args.market.subscribe.is_empty() {
        return subscribe(args);
    }
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let options = ConsumerOptions {
        progress: args.progress,
        messages: args.messages,
        from_start: args.from_start,
        name: args.prefix.clone(),
        first: args.first,
        ..ConsumerOptions::new(resolve(&args.host, args.port)?, args.clients)
    };
    let consumers = Consumers::connect(&options, &stop)?;
    tell_logged_on(consumers.sessions(), consumers.refused());
    watch_enter(args, &stop);
    let mut progress = progress(args, "Snapshots(W)");
    let report = consumers.run(&stop, &mut progress)?;
    print(args, &report);
    Ok(exit_code(report.is_clean()))
}

/// Runs the same sessions with subscriptions.
fn subscribe(args: &Args) -> Result<ExitCode> {
    let to = SubscribeOptions {
        name: args.prefix.clone(),
        first: args.first,
        progress: args.progress,
        messages: args.messages,
        ..SubscribeOptions::new(
            resolve(&args.host, args.port)?,
            args.clients,
            Asked::everything(),
        )
    };
    let options = args.market.options(to)?;
    let ends_with = |stop: &Stop| watch_enter(args, stop);
    let mut progress = progress(args, "W and X");
    subscribe::run(&options, args.json, ends_with, &mut progress)
}

/// Returns a function that prints totals of these messages.
fn progress(args: &Args, what: &'static str) -> impl FnMut(u64) {
    let json = args.json;
    move |total| {
        let line = format!("Total number of already received {what}: {total}");
        if json {
            note!("{line}");
        } else {
            say!("{line}");
        }
    }
}

fn watch_enter(args: &Args, stop: &Stop) {
    if args.until_enter || std::io::stdin().is_terminal() {
        note!("Press Enter to shutdown");
        stop_on_enter(stop.clone());
    }
}

fn stop_on_enter(stop: Stop) {
    std::thread::spawn(move || {
        let mut line = String::new();
        if std::io::stdin()
            .lock()
            .read_line(&mut line)
            .is_ok_and(|n| n > 0)
        {
            stop.raise();
        }
    });
}

fn print(args: &Args, report: &ConsumerReport) {
    if let Some((session, why)) = &report.first_ended {
        let sessions = counted(report.ended as u64, "session");
        note!("{sessions} ended early, first {session}: {why}");
    }
    if args.json {
        return say!("{}", report.figures().to_json());
    }
    let order = report.order;
    say!(
        "{} received, {:.0} a second",
        counted(report.received, "message"),
        report.rate()
    );
    let (fewest, most) = report.per_session;
    say!("{fewest} to {most} a session");
    say!(
        "{} in order, {} missing, {} reordered, {}",
        order.in_order,
        order.missing,
        order.reordered,
        counted(order.duplicates, "duplicate")
    );
    if report.unmarked > 0 {
        say!("{} without a mark", report.unmarked);
    }
    if report.told_missing > 0 {
        say!(
            "{} messages missing, as the gateway said by News(B)",
            report.told_missing
        );
    }
    if report.told_unknown > 0 {
        let places = counted(report.told_unknown, "place");
        say!("messages missing in {places}, as the gateway said: how many is not known");
    }
    if report.short > 0 {
        let short = counted(report.short, "message");
        say!("{short} that were expected have not come");
    }
}
