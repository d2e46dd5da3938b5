//! `fanfare throughput …`: many sessions from one process to another, every message kept.

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
    /// The side that receives: checks that every order comes, in order, as it was sent.
    Acceptor(acceptor::Args),
    /// The side that sends: every order from a flat file, kept in a journal.
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
