//! `fanfare bench …`: figures against a raw baseline of the same run.

mod book;
mod codec;
mod dbn;
#[cfg(feature = "dds")]
mod dds;
mod events;
mod fanout;
mod feed;
mod history;
mod latency;
mod market;
mod scale;
mod watch;

use anyhow::{Context, Result};
use clap::builder::PossibleValue;
use clap::{Subcommand, ValueEnum};
use fanfare_engine::stop::Stop;
use fanfare_gateway::SlowPolicy;
use fanfare_instruments::bench::{BenchError, Processors};
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use crate::print::note;

/// Benchmarks, each against plain sockets or plain code in the same run.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Updates of books by level and by order, against books of sorted maps and other libraries'
    /// books.
    Book(book::Args),
    /// The FIX codec alone: index and encode one message, in nanoseconds.
    Codec(codec::Args),
    /// DBN records to one client and to 200, against a raw program that writes the same bytes.
    Dbn(dbn::Args),
    /// Writing and reading against a plain C program on the same Cyclone DDS.
    #[cfg(feature = "dds")]
    Dds(dds::Args),
    /// From datagram to event in the ring: the cost of mapping and books on top of decoding.
    Events(Box<events::Args>),
    /// The fan-out against plain sends to as many plain sockets.
    Fanout(fanout::Args),
    /// A feed over two lossy multicast lines, against a raw sender and receiver.
    Feed(feed::Args),
    /// The log of market events: writing, reading, books as of any moment, bytes per event.
    History(history::Args),
    /// An order and its report through two sessions, against plain sockets.
    Latency(latency::Args),
    /// From a datagram to the X of its subscribers, against a raw program that receives the same
    /// datagram and sends as many bytes; and the cost of sessions that do not subscribe to it, or
    /// are slow.
    Market(market::Args),
    /// The fan-out to 10, 100, 1,000 and 10,000 consumers: start, memory of a session, deliveries
    /// at the highest rate, and latency below it; and the pauses of the processors without it.
    Scale(scale::Args),
}

pub(crate) fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Book(args) => book::run(args),
        Command::Codec(args) => codec::run(args),
        Command::Dbn(args) => dbn::run(args),
        #[cfg(feature = "dds")]
        Command::Dds(args) => dds::run(args),
        Command::Events(args) => events::run(args),
        Command::Fanout(args) => fanout::run(args),
        Command::Feed(args) => feed::run(args),
        Command::History(args) => history::run(args),
        Command::Latency(args) => latency::run(args),
        Command::Market(args) => market::run(args),
        Command::Scale(args) => scale::run(args),
    }
}

/// Returns two processors, and warns if there is one only.
pub(crate) fn processors() -> Result<Processors> {
    let found = Processors::of_this_thread().context("cannot tell which processors may be used")?;
    if !found.are_two() {
        note!("one processor only: nothing is pinned, the figures say little");
    }
    Ok(found)
}

/// A part of a benchmark: its name, and the function that adds its figures.
type Part<'a> = (String, &'a dyn Fn(&mut Figures) -> Result<(), BenchError>);

/// Adds the figures of one part after the other, until `stop` is raised.
fn add_all(parts: &[Part<'_>], figures: &mut Figures, stop: &Stop) -> Result<(), BenchError> {
    for (name, add) in parts {
        if stop.is_raised() {
            break;
        }
        note!("{name}");
        match add(figures) {
            // Ctrl-C ends a process that is started at that moment.
            Err(_) if stop.is_raised() => break,
            added => added?,
        }
    }
    Ok(())
}

/// The policy for a consumer that never reads.
#[derive(Debug, Clone, Copy)]
struct Stalled(SlowPolicy);

impl ValueEnum for Stalled {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(SlowPolicy::Drop), Self(SlowPolicy::Disconnect)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

impl Stalled {
    const fn name(self) -> &'static str {
        match self.0 {
            SlowPolicy::Drop => "drop",
            SlowPolicy::Disconnect => "disconnect",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_stop_ends_a_benchmark_between_its_parts() {
        let stop = Stop::new();
        let first = |figures: &mut Figures| -> Result<(), BenchError> {
            figures.count("first", 1);
            stop.raise();
            Ok(())
        };
        let second = |figures: &mut Figures| -> Result<(), BenchError> {
            figures.count("second", 1);
            Ok(())
        };
        let parts: [Part<'_>; 2] = [("first".to_owned(), &first), ("second".to_owned(), &second)];
        let mut figures = Figures::new("test");
        add_all(&parts, &mut figures, &stop).unwrap();
        assert_eq!(figures.value("first"), Some(1.0));
        assert_eq!(figures.value("second"), None);
    }
}
