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
    /// The receiver: checks that every order arrives, in order and unchanged.
    Acceptor(acceptor::Args),
    /// The sender: every order from a flat file, persisted in a journal.
    Initiator(initiator::Args),
    /// Make a flat file of orders.
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
