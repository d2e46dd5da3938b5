//! `fanfare throughput …`: many sessions from one process to another, with every message persisted.

mod acceptor;
mod initiator;
mod options;
mod orders;
mod pair;
mod run;

use clap::Subcommand;
use std::process::ExitCode;

/// Throughput over many sessions with persistence.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start both sides as two processes, for each number of sessions, and print the table.
    Run(run::Args),
    /// Receive orders, and check that each arrives, in order and unchanged.
    Acceptor(acceptor::Args),
    /// Send the orders of a flat file, each persisted in a journal.
    Initiator(initiator::Args),
    /// Write a flat file of orders.
    Orders(orders::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(args),
        Command::Acceptor(args) => acceptor::run(args),
        Command::Initiator(args) => initiator::run(args),
        Command::Orders(args) => orders::run(args),
    }
}
