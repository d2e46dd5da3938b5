//! `fanfare dds`: distribution over DDS (systems.md E).

mod expected;
mod idl;
mod input;
mod options;
mod publish;
mod statistics;
mod subscribe;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of `fanfare dds`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Publish(publish::Args),
    Subscribe(subscribe::Args),
    Idl(idl::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Publish(args) => publish::run(args),
        Command::Subscribe(args) => subscribe::run(args),
        Command::Idl(args) => idl::run(args),
    }
}
