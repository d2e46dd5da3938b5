//! `fanfare market events`: a feed as events, one JSON object a line.

use super::feed::{Errors, Feed};
use super::options::{INSTRUMENTS, MAPPING_HELP, mapping, read_table};
use super::writer::{Mapped, Shared};
use crate::cmd::fast::decode::sink::Sink;
use crate::cmd::fast::decode::{self, Outcome};
use crate::cmd::fast::options::load;
use crate::cmd::fast::output::Output;
use crate::plural::counted;
use crate::print::{exit_code, note};
use anyhow::Result;
use fanfare_instruments::figures::Figures;
use fanfare_market::Instruments;
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Print what a feed says about the market: definitions, books, trades, statistics, states.
///
/// A mapping says which templates and fields become which events (docs/mapping.md). Each event is
/// a JSON object on a line; the plant's numbers have no holes. What cannot become an event is
/// reported and counted; the exit status is 1 if a value cannot be represented. The feed comes
/// in as with `fanfare fast decode`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    errors: Errors,
    /// Mapping; default: the built-in one that fits the templates.
    #[arg(short, long, value_name = "MAPPING", long_help = MAPPING_HELP)]
    mapping: Option<String>,
    /// Instruments that are known before: a CSV file, or a TOML file.
    #[arg(long, value_name = "FILE")]
    instruments: Option<PathBuf>,
    /// Events of the instrument with this symbol or SecurityID alone.
    #[arg(long, value_name = "SYMBOL")]
    symbol: Option<String>,
    /// Stop after this number of events.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Print the figures as one JSON object on stderr.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (mapped, outcome) = play(
        (&args.feed, args.errors),
        args.mapping.as_deref(),
        true,
        |mut mapped| {
            if let Some(file) = &args.instruments {
                read_table(file, &mut mapped.table)?;
            }
            Ok(mapped.only(args.symbol.as_deref(), args.limit))
        },
    )?;
    report(&mapped.0.borrow(), &outcome, args.json);
    Ok(exit_code(outcome.errors() == 0))
}

/// Maps a feed to its end.
pub(super) fn play(
    (feed, errors): (&Feed, Errors),
    name: Option<&str>,
    writes: bool,
    prepare: impl FnOnce(Mapped) -> Result<Mapped>,
) -> Result<(Shared, Outcome)> {
    let templates = feed.check()?;
    let decoding = feed.decoding(errors.keep_going);
    decoding.check()?;
    let program = load(templates, feed.strictness.reading())?;
    let mapper = mapping(name, &program)?.for_templates(&program, 0)?;
    let table = Instruments::new(INSTRUMENTS);
    let mapped = prepare(Mapped::new(mapper, table, writes))?;
    let shared = Shared(Rc::new(RefCell::new(mapped)));
    let decoder = decode::decoder(&decoding, &program);
    let sink = Sink::new(decoder, Output::new(None), decode::sink_options(&decoding));
    let sink = sink.with_taking(Box::new(shared.clone()));
    let mut outcome = decode::play(&decoding, sink)?;
    outcome.flush()?;
    Ok((shared, outcome))
}

fn report(mapped: &Mapped, outcome: &Outcome, json: bool) {
    let counts = mapped.mapper.counts();
    let instruments = mapped.table.len() as u64;
    if json {
        let mut figures = Figures::new("market events");
        figures.set_ok(outcome.errors() == 0);
        for (name, count) in counts.all() {
            figures.count(name, count);
        }
        figures.count("instruments", instruments);
        figures.count("written", mapped.written);
        figures.count("errors", outcome.errors());
        note!("{}", figures.to_json());
        return;
    }
    note!(
        "{} of {} in {}, {} written, {}",
        counted(counts.events, "event"),
        counted(instruments, "instrument"),
        counted(counts.messages, "message"),
        mapped.written,
        counted(outcome.errors(), "error")
    );
    let others = counts.all();
    let others = others.iter().skip(2).filter(|(_, count)| *count != 0);
    for (name, count) in others {
        note!("  {}: {count}", name.replace('_', " "));
    }
}
