//! `fanfare fast`: the FAST codec and the feed layer as tools.

mod bench;
mod capture;
mod codegen;
mod decode;
mod encode;
mod explain;
pub(crate) mod feed;
mod generate;
mod lines;
mod live;
mod multicast;
pub(crate) mod options;
mod output;
pub(crate) mod packets;
mod pipe;
mod report;
mod sequence;
mod sink;
mod streams;
mod structs;
mod templates;
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
    Templates(templates::Args),
    Explain(explain::Args),
    Bench(bench::Args),
    Codegen(codegen::Args),
}

pub(crate) fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Generate(args) => generate::run(args),
        Command::Multicast(args) => multicast::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Encode(args) => encode::run(args),
        Command::Templates(args) => templates::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Codegen(args) => codegen::run(args),
    }
}
