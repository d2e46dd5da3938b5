//! `fanfare fix …`: sessions from settings files, and tools that inspect FIX.

mod acceptor;
mod cat;
mod codegen;
mod echo;
mod initiator;
mod operators;
mod refusals;
mod reload;
mod sessions;

pub(in crate::cmd) use cat::{Kind, Pieces};
pub(crate) use sessions::print_log_losses;

use clap::Subcommand;
use std::process::ExitCode;
use std::time::Duration;

/// The longest sleep of an idle thread.
const NAP: Duration = Duration::from_millis(20);

/// FIX sessions and tools.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Accept the sessions of a QuickFIX-style settings file.
    Acceptor(acceptor::Args),
    /// Connect the sessions of a QuickFIX-style settings file, send messages, print those received.
    Initiator(initiator::Args),
    /// Print FIX from a log, a stream or a capture with the names of fields and values.
    Cat(cat::Args),
    Codegen(codegen::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Acceptor(args) => acceptor::run(args),
        Command::Initiator(args) => initiator::run(args),
        Command::Cat(args) => cat::run(args),
        Command::Codegen(args) => codegen::run(args),
    }
}
