//! `fanfare fast`: the FAST codec and the feed layer as tools.

pub(crate) mod bench;
mod codegen;
pub(crate) mod decode;
mod encode;
mod explain;
mod generate;
pub(crate) mod lines;
mod multicast;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod packets;
pub(crate) mod stopwatch;
mod structs;
mod templates;

pub(in crate::cmd) use generate::{cannot_write, create};

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
