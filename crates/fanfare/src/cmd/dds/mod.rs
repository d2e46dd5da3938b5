//! `fanfare dds`: distribution over DDS (systems.md E).

mod bridge;
mod echo;
mod idl;
mod input;
mod ls;
mod once;
mod options;
mod outlet;
mod ping;
mod printer;
mod publish;
mod statistics;
mod subscribe;
mod waiting;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of `fanfare dds`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Publish(publish::Args),
    Subscribe(subscribe::Args),
    Idl(idl::Args),
    Bridge(Box<bridge::Args>),
    Ls(ls::Args),
    Echo(echo::Args),
    Ping(ping::PingArgs),
    Pong(ping::PongArgs),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Publish(args) => publish::run(args),
        Command::Subscribe(args) => subscribe::run(args),
        Command::Idl(args) => idl::run(args),
        Command::Bridge(args) => bridge::run(args),
        Command::Ls(args) => ls::run(args),
        Command::Echo(args) => echo::run(args),
        Command::Ping(args) => ping::ping(args),
        Command::Pong(args) => ping::pong(args),
    }
}
