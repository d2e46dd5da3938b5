//! `fanfare fanout …`: the gateway, its producers and consumers, its latency report.

mod baseline;
mod consumers;
mod producers;
pub(crate) mod report;
mod server;

pub(crate) use server::Args as ServerArgs;

use clap::Subcommand;
use std::process::ExitCode;

/// More sessions than that have no free port on one address.
const MOST_SESSIONS: u64 = 28_000;

/// The fan-out gateway and its benchmark.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway: producers' sessions on one port, consumers' on another.
    Server(server::Args),
    /// Many sessions that receive the fan-out and check that nothing is lost.
    Consumers(consumers::Args),
    /// Many sessions that send market data snapshots on schedule.
    Producers(producers::Args),
    /// Latency and rates from a capture of the gateway's traffic.
    Report(report::Args),
    /// The same bytes to as many plain sockets, without FIX: what the machine gives.
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
