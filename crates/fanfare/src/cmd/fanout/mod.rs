//! `fanfare fanout …`: the gateway, its producers and consumers, its latency report.

mod baseline;
mod consumers;
mod producers;
pub(crate) mod report;
mod server;
mod subscribe;

pub(crate) use server::Args as ServerArgs;

use crate::plural::counted;
use crate::print::note;
use clap::Subcommand;
use fanfare_instruments::load::Refused;
use std::process::ExitCode;

/// The most sessions: one address has no free ports for more.
const MOST_SESSIONS: u64 = 28_000;

/// The largest number in the first CompID.
const FIRST: u64 = 1_000_000_000;
/// The longest prefix of CompIDs, in bytes: with its number a CompID has at most 64, the limit of a
/// header field.
const LONGEST_PREFIX: usize = 40;

/// Parses the prefix of CompIDs.
fn prefix(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic();
    if text.is_empty() || text.len() > LONGEST_PREFIX || !text.chars().all(is_plain) {
        return Err(format!(
            "must be 1 to {LONGEST_PREFIX} printable ASCII characters without spaces"
        ));
    }
    Ok(text.to_owned())
}

/// Prints the number of sessions, and why there are no more.
fn tell_logged_on(sessions: usize, refused: &Refused) {
    note!("{} logged on", counted(sessions as u64, "session"));
    if let Some((session, why)) = &refused.first {
        let count = counted(refused.count as u64, "session");
        note!("{count} not let in, the others go on; first {session}: {why}");
    }
}

/// The fan-out gateway and its benchmark.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway: producers' sessions on one port, consumers' on another.
    ///
    /// The command runs the service of `fanfare gateway` with a configuration for FIX alone.
    Server(server::Args),
    /// Many sessions that receive the fan-out and check that nothing is lost, or that subscribe to
    /// market data and check their books.
    Consumers(Box<consumers::Args>),
    /// Many sessions that send market data snapshots on schedule.
    Producers(producers::Args),
    /// Latency and rates from a capture of the gateway's traffic.
    Report(report::Args),
    /// The same bytes to as many plain sockets, without FIX: the limit of the machine.
    Baseline(baseline::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Server(args) => server::run(args),
        Command::Consumers(args) => consumers::run(args),
        Command::Producers(args) => producers::run(args),
        Command::Report(args) => report::run(args),
        Command::Baseline(args) => baseline::run(args),
    }
}
