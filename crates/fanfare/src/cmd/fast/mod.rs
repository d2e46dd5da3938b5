//! `fanfare fast`: the FAST codec and the feed layer as tools.

mod decode;
mod encode;
mod feed;
mod generate;
mod live;
mod multicast;
mod options;
mod output;
mod packets;
mod report;
mod sink;
mod two_files;

use clap::Subcommand;
use std::process::ExitCode;

/// The commands of `fanfare fast`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Generate(generate::Args),
    Multicast(multicast::Args),
    Decode(decode::Args),
    Encode(encode::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Generate(args) => generate::run(args),
        Command::Multicast(args) => multicast::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Encode(args) => encode::run(args),
    }
}
