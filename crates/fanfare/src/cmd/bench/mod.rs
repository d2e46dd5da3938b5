//! `fanfare bench …`: figures against a raw baseline of the same run.

mod codec;
mod dds;
mod dds_ends;
mod dds_shm;
mod dds_stalled;
mod dds_trips;
mod dds_write;
mod fanout;
mod feed;
mod latency;

use anyhow::{Context, Result};
use clap::Subcommand;
use fanfare_engine::cpu;
use std::process::ExitCode;

use crate::print::note;

/// Benchmarks, each against plain sockets or plain code in the same run.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// The FIX codec alone: index and encode one message, in nanoseconds.
    Codec(codec::Args),
    /// Writing and reading against a plain C program on the same Cyclone DDS.
    Dds(dds::Args),
    /// The fan-out against plain sends to as many plain sockets.
    Fanout(fanout::Args),
    /// A feed over two lossy multicast lines, against a raw sender and receiver.
    Feed(feed::Args),
    /// An order and its report through two sessions, against plain sockets.
    Latency(latency::Args),
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Codec(args) => codec::run(args),
        Command::Dds(args) => dds::run(args),
        Command::Fanout(args) => fanout::run(args),
        Command::Feed(args) => feed::run(args),
        Command::Latency(args) => latency::run(args),
    }
}

/// Two processors: for the measuring thread and for the sending ones; none with a single one.
pub(crate) fn processors() -> Result<(Option<usize>, Option<usize>)> {
    let cpus = cpu::allowed().context("cannot tell which processors may be used")?;
    match cpus.as_slice() {
        [first, .., last] => Ok((Some(*last), Some(*first))),
        _ => {
            note!("one processor only: nothing is pinned, the figures say little");
            Ok((None, None))
        }
    }
}
