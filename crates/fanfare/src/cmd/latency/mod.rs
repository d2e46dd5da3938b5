//! `fanfare latency …`: a server and a client that measure round trips of orders.

mod client;
mod server;

use anyhow::Result;
use clap::Subcommand;
use fanfare_engine::journal::Options;
use std::process::ExitCode;

/// Round trips of orders: a server that acknowledges each, a client that measures.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Send orders and print the latency of their reports.
    Client(client::Args),
    /// Respond to each NewOrderSingle(D) with an ExecutionReport(8).
    Server(server::Args),
}

/// Returns the options of a journal that is measured: its segments have their full size from the
/// start.
fn options(accept_loss: bool) -> Options {
    let options = Options {
        accept_loss,
        ..Options::default()
    };
    options.full_from_the_start()
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Client(args) => client::run(args),
        Command::Server(args) => server::run(args),
    }
}
