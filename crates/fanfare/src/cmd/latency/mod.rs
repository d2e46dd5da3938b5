//! `fanfare latency …`: a server and a client that measure round trips of orders.

mod client;
mod server;

use anyhow::Result;
use clap::Subcommand;
use std::process::ExitCode;

/// Round trips of orders: a server that answers each, a client that measures.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Sends orders and prints the latency of their reports.
    Client(client::Args),
    /// Answers each NewOrderSingle with an ExecutionReport.
    Server(server::Args),
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Client(args) => client::run(args),
        Command::Server(args) => server::run(args),
    }
}
