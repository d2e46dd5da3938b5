//! `fanfare market`: the market data of a feed.

mod book;
mod check;
mod dbn;
mod events;
mod feed;
mod fix_log;
mod instruments;
pub(crate) mod json;
pub(crate) mod options;
pub(crate) mod printer;
pub(crate) mod snapshot;
mod totals;
mod writer;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of `fanfare market`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Book(Box<book::Args>),
    Check(check::Args),
    Events(Box<events::Args>),
    Instruments(Box<instruments::Args>),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Book(args) => book::run(args),
        Command::Check(args) => check::run(args),
        Command::Events(args) => events::run(args),
        Command::Instruments(args) => instruments::run(args),
    }
}
