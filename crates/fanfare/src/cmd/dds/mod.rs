//! `fanfare dds`: distribution over DDS (systems.md E).

mod bridge;
mod echo;
mod fit;
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
use options::Fitting;
use std::process::ExitCode;

/// The commands of `fanfare dds`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Publish(Fitting<publish::Args>),
    Subscribe(Fitting<subscribe::Args>),
    Idl(idl::Args),
    Bridge(Box<Fitting<bridge::Args>>),
    Ls(Fitting<ls::Args>),
    Echo(Fitting<echo::Args>),
    Ping(Fitting<ping::PingArgs>),
    Pong(Fitting<ping::PongArgs>),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Publish(args) => publish::run(&args.0),
        Command::Subscribe(args) => subscribe::run(&args.0),
        Command::Idl(args) => idl::run(args),
        Command::Bridge(args) => bridge::run(&args.0),
        Command::Ls(args) => ls::run(&args.0),
        Command::Echo(args) => echo::run(&args.0),
        Command::Ping(args) => ping::ping(&args.0),
        Command::Pong(args) => ping::pong(&args.0),
    }
}
