//! `fanfare market events`: a feed as events, JSON lines or DBN.

use super::feed::{Errors, Feed};
use super::options::{INSTRUMENTS, MAPPING_HELP, mapping, read_table};
use super::printer::{Printer, Printing};
use super::writer::{Mapped, Shared};
use crate::cmd::fast::decode::sink::Sink;
use crate::cmd::fast::decode::{self, Outcome};
use crate::cmd::fast::options::load;
use crate::cmd::fast::output::Output;
use crate::plural::counted;
use crate::print::{exit_code, note};
use anyhow::Result;
use fanfare_instruments::figures::Figures;
use fanfare_market::dbn::DbnCounts;
use fanfare_market::mapping::Counts;
use fanfare_market::{FragmentStats, Fragments, Instruments};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Print what a feed says about the market: definitions, books, trades, statistics, states.
///
/// A mapping says which templates and fields become which events (docs/mapping.md). Each event is
/// a JSON object on a line, or a record of DBN; the plant's numbers have no holes. What cannot
/// become an event, or DBN cannot hold, is reported and counted; the exit status is 1 then. The
/// feed comes in as with `fanfare fast decode`.
///
/// Events are those of the messages as they come: nothing is put in order or recovered. Records of
/// DBN say in their flags where a book may therefore be wrong (MAYBE_BAD_BOOK): from a hole in
/// RptSeq(83) on, or a beginning in the middle, to the next picture.
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
    #[command(flatten)]
    printing: Printing,
    /// Print the figures as one JSON object on stderr.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut table = Instruments::new(INSTRUMENTS);
    if let Some(file) = &args.instruments {
        read_table(file, &mut table)?;
    }
    let feed = (&args.feed, args.errors);
    let prepare = || Printer::new(&args.printing, table);
    let (mapped, outcome) = play(feed, args.mapping.as_deref(), prepare)?;
    let mut mapped = mapped.0.borrow_mut();
    mapped.printer.finish()?;
    let counts = mapped.mapper.counts();
    let errors = outcome.errors();
    let fragments = mapped.fragments.stats();
    Ok(report(
        &mapped.printer,
        (&counts, fragments),
        errors,
        args.json,
    ))
}

/// Maps a feed to its end; `prepare` makes what takes the events once all else is known to be
/// right.
pub(super) fn play(
    (feed, errors): (&Feed, Errors),
    name: Option<&str>,
    prepare: impl FnOnce() -> Result<Printer>,
) -> Result<(Shared, Outcome)> {
    let templates = feed.check()?;
    let decoding = feed.decoding(errors.keep_going);
    decoding.check()?;
    let program = load(templates, feed.strictness.reading())?;
    let mapper = mapping(name, &program)?.for_templates(&program, 0)?;
    let mapped = Mapped {
        mapper,
        fragments: Fragments::default(),
        printer: prepare()?,
    };
    let shared = Shared(Rc::new(RefCell::new(mapped)));
    let decoder = decode::decoder(&decoding, &program);
    let sink = Sink::new(decoder, Output::new(None), decode::sink_options(&decoding));
    let sink = sink.with_taking(Box::new(shared.clone()));
    let mut outcome = decode::play(&decoding, sink)?;
    outcome.flush()?;
    Ok((shared, outcome))
}

/// Says what there was; the exit status.
fn report(
    printer: &Printer,
    (counts, fragments): (&Counts, FragmentStats),
    errors: u64,
    json: bool,
) -> ExitCode {
    let dbn = printer.dbn();
    let is_ok = errors == 0 && dbn.is_none_or(|dbn| dbn.lost == 0);
    let instruments = printer.table.len() as u64;
    let dbn = dbn.iter().flat_map(DbnCounts::all);
    let dbn = dbn.map(|(name, count)| (format!("dbn_{name}"), count));
    let fragments = fragments.all();
    let fragments = fragments.map(|(name, count)| (format!("fragments_{name}"), count));
    let more = fragments.into_iter().chain(dbn);
    if json {
        let mut figures = Figures::new("market events");
        figures.set_ok(is_ok);
        for (name, count) in counts.all() {
            figures.count(name, count);
        }
        figures.count("instruments", instruments);
        figures.count("written", printer.written);
        figures.count("errors", errors);
        for (name, count) in more {
            figures.count(&name, count);
        }
        note!("{}", figures.to_json());
        return exit_code(is_ok);
    }
    note!(
        "{} of {} in {}, {} written, {}",
        counted(counts.events, "event"),
        counted(instruments, "instrument"),
        counted(counts.messages, "message"),
        printer.written,
        counted(errors, "error")
    );
    let others = counts.all().into_iter().skip(2);
    let others = others.map(|(name, count)| (name.to_owned(), count));
    for (name, count) in others.chain(more).filter(|(_, count)| *count != 0) {
        note!("  {}: {count}", name.replace('_', " "));
    }
    exit_code(is_ok)
}
