//! `fanfare history export`: part of a log as a file of another format.

mod csv;
mod dbn;
pub(super) mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod row;

use super::Place;
use super::range::{Choice, Chosen, Range};
use crate::cmd::market::printer::{dataset, schema};
use crate::input::is_standard;
use crate::plural::counted;
use crate::print::{exit_code, note};
use crate::progress;
use crate::usage::misuse;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use fanfare_engine::stop::Stop;
use fanfare_history::Log;
use fanfare_market::Delivery;
use fanfare_market::dbn::Schema;
use fanfare_market::event::Event;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::json;
use output::Output;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the events of a log, or part of them, as DBN, Parquet, CSV or JSON.
///
/// The file appears under its name when it is complete: neither a full disk nor a kill leaves a
/// partial one. Ctrl-C completes it with the events written so far. The exit status is 1 if events
/// are missing in the log, if damage hides whether they are of a --symbol, or if DBN or
/// Parquet cannot represent a value; the file has the others.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Format of the file.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// The file, - for stdout.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    range: Range,
    #[command(flatten)]
    choice: Choice,
    /// Schemas of --format dbn: mbo, mbp-1 or mbp-10, trades, definition, status, statistics.
    /// Default: all but mbp-1.
    #[arg(
        long, value_name = "SCHEMA,...", value_delimiter = ',', value_parser = schema
    )]
    schema: Vec<Schema>,
    /// Name of the dataset in the metadata of --format dbn, up to 15 bytes.
    #[arg(
        long, value_name = "NAME", default_value = "FANFARE",
        value_parser = dataset
    )]
    dataset: String,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Databento Binary Encoding, version 3, of mixed schemas.
    Dbn,
    /// Typed columns, zstd, statistics of each.
    Parquet,
    /// A line with names, then a line for each event.
    Csv,
    /// The lines of `history cat --json`.
    Json,
}

/// A destination of events.
trait Sink {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()>;

    /// Handles missing events.
    fn lost(&mut self, first: u64, last: u64) -> Result<()>;

    /// Handles a restart of the plant.
    fn restart(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of values that the format cannot represent.
    fn lost_values(&self) -> u64 {
        0
    }

    /// Completes the output.
    fn finish(self: Box<Self>) -> Result<Output>;
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if !args.schema.is_empty() && args.format != Format::Dbn {
        misuse!("--schema needs --format dbn");
    }
    let is_binary = matches!(args.format, Format::Dbn | Format::Parquet);
    let is_terminal = is_standard(&args.output) && io::stdout().is_terminal();
    if is_binary && is_terminal {
        bail!("the format is binary, and stdout is a terminal: give a file (--output), or a pipe");
    }
    let log = args.place.open_events()?;
    let stop = Stop::on_interrupt()?;
    let name = args.output.display();
    let cannot = || format!("cannot write `{name}`");
    if is_terminal {
        progress::give_way();
    }
    let output = Output::open(&args.output, &log)?;
    // While the log grows, the books and the events begin at the same number.
    let range = args.range.fixed(&log)?;
    let mut export = Export {
        sink: sink(args, range, &log, output)?,
        chosen: args.choice.begin(),
        events: 0,
        lost: 0,
    };
    let each = |delivery: Delivery<'_>| export.take(delivery).with_context(cannot);
    let is_whole = range.read(&log, &stop, each)?;
    progress::clear();
    let is_named = export.chosen.tell();
    if export.lost > 0 {
        note!(
            "fanfare: {} missing in the log",
            counted(export.lost, "event")
        );
    }
    let events = counted(export.events, "event");
    let is_complete = is_named && export.lost == 0 && export.sink.lost_values() == 0;
    let output = export.sink.finish().with_context(cannot)?;
    output.commit().with_context(cannot)?;
    let end = if is_whole { "" } else { "; ended by Ctrl-C" };
    note!("{events} in {name}{end}");
    Ok(exit_code(is_complete))
}

fn sink(args: &Args, range: Range, log: &Log, output: Output) -> Result<Box<dyn Sink>> {
    Ok(match args.format {
        Format::Json => Box::new(Json {
            out: BufWriter::with_capacity(1 << 16, output),
            line: String::new(),
        }),
        Format::Csv => Box::new(csv::Csv::new(output)?),
        Format::Dbn => Box::new(dbn::Dbn::new(args, range, log, output)?),
        #[cfg(feature = "parquet")]
        Format::Parquet => Box::new(parquet::Parquet::new(output)?),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => bail!(
            "this program is built without Parquet: cargo build --release --package fanfare \
             --features parquet"
        ),
    })
}

struct Export<'a> {
    sink: Box<dyn Sink>,
    chosen: Chosen<'a>,
    events: u64,
    lost: u64,
}

impl Export<'_> {
    /// Writes a delivery; an event only if it is selected.
    fn take(&mut self, delivery: Delivery<'_>) -> Result<()> {
        match delivery {
            Delivery::Event(event, table) => {
                if self.chosen.wants(event, table) {
                    self.events += 1;
                    self.sink.event(event, table)?;
                }
            }
            Delivery::Lost { first, last } => {
                self.chosen.forget();
                self.lost += last - first + 1;
                self.sink.lost(first, last)?;
            }
            Delivery::Restart => {
                self.chosen.forget();
                self.sink.restart()?;
            }
            Delivery::End(_) | Delivery::Watermark(_) => {}
        }
        Ok(())
    }
}

/// Events as the lines of `history cat --json`.
struct Json {
    out: BufWriter<Output>,
    line: String,
}

impl Json {
    fn put(&mut self) -> Result<()> {
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

impl Sink for Json {
    fn event(&mut self, event: &Event, table: &Directory) -> Result<()> {
        let known = table.instrument(event.instrument);
        json::event(event, known.as_ref(), &mut self.line);
        self.put()
    }

    fn lost(&mut self, first: u64, last: u64) -> Result<()> {
        json::lost(first, last, &mut self.line);
        self.put()
    }

    fn restart(&mut self) -> Result<()> {
        self.line.push_str(json::RESTART);
        self.put()
    }

    fn finish(self: Box<Self>) -> Result<Output> {
        Ok(self
            .out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?)
    }
}
