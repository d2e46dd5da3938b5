//! The commands: a folder for each group, a file for each command.

pub(crate) mod bench;
mod fanout;
mod fast;

use clap::Subcommand;
use std::process::ExitCode;

/// What `fanfare` can do.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Benchmarks against a raw baseline of the same run.
    #[command(subcommand)]
    Bench(bench::Command),
    /// The FIX fan-out gateway, its producers, its consumers, and its latency report.
    #[command(subcommand)]
    Fanout(fanout::Command),
    /// The FAST codec and the feed layer: generate, send, receive, decode, encode, explain.
    #[command(subcommand)]
    Fast(fast::Command),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Bench(command) => bench::run(command),
        Command::Fanout(command) => fanout::run(command),
        Command::Fast(command) => fast::run(command),
    }
}
