//! `fanfare store …`: the message stores of sessions.

mod export;
mod import;
mod list;
mod repair;
mod set_seq;
mod stores;
mod verify;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands on message stores.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List sessions with their numbers, messages, bytes and durability; also those in use.
    List(list::Args),
    /// Check every CRC and the order of the files; on a fault exit with 1 and print its place.
    Verify(verify::Args),
    /// Print the messages of a store, as text with | or as JSON.
    Export(export::Args),
    /// Cut off a torn end, or save the intact messages of a damaged store.
    Repair(repair::Args),
    /// Take over a file store of QuickFIX (C++) or QuickFIX/J.
    Import(import::Args),
    /// Set the next MsgSeqNum(34) of one direction or both, while the session does not run.
    SetSeq(set_seq::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List(args) => list::run(args),
        Command::Verify(args) => verify::run(args),
        Command::Export(args) => export::run(args),
        Command::Repair(args) => repair::run(args),
        Command::Import(args) => import::run(args),
        Command::SetSeq(args) => set_seq::run(args),
    }
}
