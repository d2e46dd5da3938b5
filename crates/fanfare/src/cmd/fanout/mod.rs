//! `fanfare fanout …`: systems.md A.

mod server;

use clap::Subcommand;
use std::process::ExitCode;

/// The fan-out gateway and its benchmark.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run the gateway: producers' sessions on one port, consumers' on another.
    Server(server::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Server(args) => server::run(args),
    }
}
