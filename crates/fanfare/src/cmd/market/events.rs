//! `fanfare market events`: a feed as events, JSON lines or DBN.

use super::dbn;
use super::feed::{Errors, Feed};
use super::fix_log::{self, Log};
use super::options::{INSTRUMENTS, MAPPING_HELP, mapping, read_table, version};
use super::printer::{Printer, Printing};
use super::totals::{Totals, report};
use super::writer::{Mapped, Shared};
use crate::cmd::fast::decode::sink::Sink;
use crate::cmd::fast::decode::{self, Outcome};
use crate::cmd::fast::options::load;
use crate::cmd::fast::output::Output;
use anyhow::Result;
use fanfare_fix::dict::Version;
use fanfare_market::{Fragments, Instruments};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;

/// Print the market data of a feed: definitions, books, trades, statistics, states.
///
/// A mapping defines which templates and fields become which events (docs/mapping.md). Each event
/// is a JSON object on a line, or a record of DBN; the plant's numbers have no gaps. A message that
/// cannot become an event, or that DBN cannot represent, is reported and counted; the exit status
/// is 1 then. The feed is read as by `fanfare fast decode`, or, with --fix, as by `fanfare fix cat`
/// from the FIX messages of a log or a stream.
///
/// Events follow the messages as received: nothing is reordered or recovered. The flags of DBN
/// records mark where a book may therefore be wrong (MAYBE_BAD_BOOK): from a gap in RptSeq(83), or
/// a start in the middle, to the next snapshot.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    feed: Feed,
    #[command(flatten)]
    errors: Errors,
    /// FIX messages instead of FAST: a log or a stream, - for stdin. A truncated message, or one
    /// with a wrong BodyLength or CheckSum, is an error.
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["templates", "file", "multicast", "pcap"]
    )]
    fix: Option<PathBuf>,
    /// Version of FIX that defines the mapping's fields; default: that of the first message.
    #[arg(long, value_name = "VERSION", requires = "fix", value_parser = version)]
    fix_version: Option<Version>,
    /// A file of DBN instead of a feed: version 1 to 3, compressed by zstd or not. The file is
    /// read to its end, or to the first damage.
    #[arg(
        long, value_name = "FILE",
        conflicts_with_all = ["templates", "file", "multicast", "pcap", "fix", "mapping"]
    )]
    dbn: Option<PathBuf>,
    /// Mapping; default: the built-in one that fits the templates, builtin:fix with --fix.
    #[arg(short, long, value_name = "MAPPING", long_help = MAPPING_HELP)]
    mapping: Option<String>,
    /// Known instruments: a CSV file, or a TOML file.
    #[arg(long, value_name = "FILE")]
    instruments: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
    /// Print the figures as one JSON object on stderr.
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns the names of the files that are read.
    fn files(&self) -> Vec<&Path> {
        let sources = self.fix.iter().chain(&self.dbn).chain(&self.instruments);
        let sources = sources.map(PathBuf::as_path);
        let mapping = self.mapping.iter().map(Path::new);
        self.feed.files().chain(sources).chain(mapping).collect()
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut table = Instruments::new(INSTRUMENTS);
    if let Some(file) = &args.instruments {
        read_table(file, &mut table)?;
    }
    let prepare = || Printer::new(&args.printing, table, &args.files());
    if let Some(path) = &args.dbn {
        return dbn::play(path, args.json, prepare);
    }
    let mapping = args.mapping.as_deref();
    if let Some(path) = &args.fix {
        let log = Log {
            path,
            mapping,
            version: args.fix_version,
            keep_going: args.errors.keep_going,
        };
        let (mut printer, totals) = fix_log::play(&log, prepare)?;
        printer.finish()?;
        return Ok(report(&printer, &totals, args.json));
    }
    let (mapped, outcome) = play((&args.feed, args.errors), mapping, prepare)?;
    let mut mapped = mapped.0.borrow_mut();
    mapped.printer.finish()?;
    let totals = Totals {
        counts: mapped.mapper.counts(),
        fragments: mapped.fragments.stats(),
        errors: outcome.errors(),
        skipped: 0,
    };
    Ok(report(&mapped.printer, &totals, args.json))
}

/// Maps a feed to its end; `prepare` creates the consumer of the events after all other options are
/// checked.
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
