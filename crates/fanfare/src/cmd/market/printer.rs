//! Events on stdout or in a file: JSON lines, or records of DBN.

use crate::cmd::fast::lines::refuse_input;
use crate::input::is_standard;
use crate::print::{Remarks, Stdout};
use crate::progress;
use crate::usage::{Usage, misuse};
use anyhow::{Result, bail};
use clap::ValueEnum;
use fanfare_market::Instruments;
use fanfare_market::dbn::{DbnConfig, DbnCounts, Schema, Schemas, ToDbn};
use fanfare_market::event::{Event, InstrumentId, Kind};
use fanfare_market::instruments::Name;
use fanfare_market::json;
use fanfare_wire::text::Escaped;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// One JSON object per line.
    Json,
    /// Databento Binary Encoding, version 3.
    Dbn,
}

/// The options for the selection, destination and format of events.
#[derive(Debug, clap::Args)]
pub(super) struct Printing {
    /// JSON objects, one per line, or DBN: a stream of mixed schemas with the symbols of its
    /// instruments, for `dbn`, `databento` and other readers of it.
    #[arg(long, value_enum, default_value_t = Format::Json, value_name = "FORMAT")]
    format: Format,
    /// Write to this file, - for stdout.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Schemas of --format dbn: mbo, mbp-1 or mbp-10, trades, definition, status, statistics.
    /// Default: all but mbp-1. An event becomes at most one record: an order is an mbp-N record
    /// only without mbo, a trade only without trades.
    #[arg(
        long, value_name = "SCHEMA,...", value_delimiter = ',', value_parser = schema
    )]
    schema: Vec<Schema>,
    /// Name of the dataset in the metadata of --format dbn, up to 15 bytes.
    #[arg(long, value_name = "NAME", default_value = "FANFARE", value_parser = dataset)]
    dataset: String,
    /// Numbered levels of a side that the feed sends, for --format dbn; the definition of an
    /// instrument (MarketDepth(264)) takes precedence.
    #[arg(
        long, value_name = "LEVELS", default_value_t = 5,
        value_parser = crate::range::whole::<u16>(1..=65_535)
    )]
    depth: u16,
    /// Only events of the instrument with this symbol or SecurityID.
    #[arg(long, value_name = "SYMBOL")]
    symbol: Option<String>,
    /// Stop after this number of events.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

pub(crate) fn schema(name: &str) -> Result<Schema, String> {
    name.parse().map_err(|error| format!("{error}"))
}

/// Returns the set of the schemas that options name; mixed ones if they name none.
pub(crate) fn schemas(named: &[Schema]) -> Result<Schemas> {
    if named.is_empty() {
        return Ok(Schemas::MIXED);
    }
    let exclude = || Usage("--schema: mbp-1 and mbp-10 exclude each other".to_owned());
    Ok(Schemas::new(named).ok_or_else(exclude)?)
}

pub(crate) fn dataset(name: &str) -> Result<String, String> {
    match name.len() {
        1..=15 if name.is_ascii() => Ok(name.to_owned()),
        _ => Err("must be 1 to 15 ASCII characters".to_owned()),
    }
}

/// An output of DBN bytes.
struct Dbn {
    to_dbn: ToDbn,
    dataset: String,
    bytes: Vec<u8>,
    /// Whether the metadata was written.
    is_begun: bool,
    /// The number of the last message.
    last: Option<u64>,
}

enum Form {
    /// No output.
    None,
    Json(String),
    Dbn(Box<Dbn>),
}

/// A printer that numbers events and writes those that are selected.
pub(super) struct Printer {
    pub(super) table: Instruments,
    symbol: Option<String>,
    limit: u64,
    form: Form,
    out: BufWriter<Box<dyn Write>>,
    /// The number of the last event.
    number: u64,
    pub(super) written: u64,
    remarks: Remarks,
}

impl Printer {
    /// Creates a printer that writes nothing.
    pub(super) fn silent(table: Instruments) -> Self {
        Self {
            table,
            symbol: None,
            limit: u64::MAX,
            form: Form::None,
            out: BufWriter::new(Box::new(io::sink())),
            number: 0,
            written: 0,
            remarks: Remarks::default(),
        }
    }

    /// Creates a printer with these options; refuses an output that is one of the files read.
    pub(super) fn new(options: &Printing, table: Instruments, read: &[&Path]) -> Result<Self> {
        let form = match options.format {
            Format::Json if !options.schema.is_empty() => misuse!("--schema needs --format dbn"),
            Format::Json => Form::Json(String::new()),
            Format::Dbn => Form::Dbn(Box::new(Dbn::new(options)?)),
        };
        Ok(Self {
            symbol: options.symbol.clone(),
            limit: options.limit.unwrap_or(u64::MAX),
            form,
            out: BufWriter::with_capacity(1 << 16, open(&options.output, read)?),
            ..Self::silent(table)
        })
    }

    /// Notes that a message with this MsgSeqNum(34) has come.
    pub(super) fn message(&mut self, number: Option<u64>) {
        if let Form::Dbn(dbn) = &mut self.form {
            dbn.see(number);
        }
    }

    /// Writes the events of a message, and to stderr the values that DBN cannot represent.
    /// `message` is MsgSeqNum(34).
    pub(super) fn events(&mut self, events: &[Event], message: Option<u64>) -> io::Result<()> {
        for (at, event) in events.iter().enumerate() {
            self.number += 1;
            let number = self.number;
            let is_change = |own: &&Event| {
                own.instrument == event.instrument && matches!(own.kind, Kind::Level | Kind::Order)
            };
            if event.kind == Kind::Clear
                && matches!(self.form, Form::Dbn(_))
                && let Some(change) = events.iter().skip(at).find(is_change)
            {
                self.open_book(change);
            }
            self.event(&Event { number, ..*event }, message)?;
        }
        Ok(())
    }

    /// Opens the book of an instrument for a change that is to come, so that DBN has the beginning
    /// of the book.
    pub(super) fn open_book(&mut self, change: &Event) {
        if !self.is_wanted(change.instrument) {
            return;
        }
        if let Form::Dbn(dbn) = &mut self.form {
            dbn.to_dbn.open_book(change, &self.table);
        }
    }

    fn event(&mut self, event: &Event, message: Option<u64>) -> io::Result<()> {
        if self.is_full() || !self.is_wanted(event.instrument) {
            return Ok(());
        }
        self.written += 1;
        match &mut self.form {
            Form::None => Ok(()),
            Form::Json(line) => {
                line.clear();
                let known = self.table.get(event.instrument);
                json::event(event, known.as_ref(), line);
                line.push('\n');
                self.out.write_all(line.as_bytes())
            }
            Form::Dbn(dbn) => {
                dbn.write(event, message, &self.table);
                self.out.write_all(&dbn.bytes)?;
                dbn.bytes.clear();
                self.remark_lost();
                Ok(())
            }
        }
    }

    fn remark_lost(&mut self) {
        let Form::Dbn(dbn) = &self.form else {
            return;
        };
        let lost = dbn.to_dbn.lost().iter();
        let lost: Vec<String> = lost.map(|lost| lost.describe(&self.table)).collect();
        lost.into_iter().for_each(|lost| self.remark(&lost));
    }

    /// Reports a failure to map to an event; of many only the first ones.
    #[cold]
    pub(super) fn remark(&mut self, what: &str) {
        let what = Escaped::text(what);
        self.remarks.push(format_args!("fanfare: {what}"));
    }

    fn is_wanted(&self, instrument: InstrumentId) -> bool {
        let Some(wanted) = &self.symbol else {
            return true;
        };
        let known = self.table.get(instrument);
        known.is_some_and(|known| is_called(&known.definition.name, wanted))
    }

    /// Returns whether no more events are wanted.
    pub(super) const fn is_full(&self) -> bool {
        self.written >= self.limit
    }

    /// Writes buffered output.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the output: DBN has metadata even without an event.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        if let Form::Dbn(dbn) = &mut self.form {
            dbn.begin(0);
            self.out.write_all(&dbn.bytes)?;
            dbn.bytes.clear();
        }
        self.out.flush()
    }

    /// Returns the counts of DBN records.
    pub(super) const fn dbn(&self) -> Option<DbnCounts> {
        match &self.form {
            Form::Dbn(dbn) => Some(dbn.to_dbn.counts()),
            _ => None,
        }
    }
}

impl Dbn {
    fn new(options: &Printing) -> Result<Self> {
        let schemas = schemas(&options.schema)?;
        if is_standard(&options.output) && io::stdout().is_terminal() {
            bail!("DBN is binary, and stdout is a terminal: give a file (--output), or a pipe");
        }
        let config = DbnConfig {
            depth: options.depth,
            ..DbnConfig::new(schemas)
        };
        Ok(Self {
            to_dbn: ToDbn::new(config)?,
            dataset: options.dataset.clone(),
            bytes: Vec::new(),
            is_begun: false,
            last: None,
        })
    }

    /// Notes a message; those between it and the one before are missing.
    fn see(&mut self, message: Option<u64>) {
        let Some(message) = message else {
            return;
        };
        let is_next = |last: u64| message == last || message == last.wrapping_add(1);
        if self.last.is_some_and(|last| !is_next(last)) {
            self.to_dbn.gap();
        }
        self.last = Some(message);
    }

    fn begin(&mut self, start: u64) {
        if !self.is_begun {
            self.is_begun = true;
            self.to_dbn.metadata(&self.dataset, start, &mut self.bytes);
        }
    }

    fn write(&mut self, event: &Event, message: Option<u64>, table: &Instruments) {
        let times = [event.ts_recv, event.ts_event];
        let is_known = |time: &u64| *time != 0 && *time != Event::NO_TIME;
        self.begin(times.into_iter().find(is_known).unwrap_or(0));
        let sequence = message.unwrap_or(0) as u32;
        self.to_dbn.write(event, sequence, table, &mut self.bytes);
    }
}

fn open(path: &Path, read: &[&Path]) -> Result<Box<dyn Write>> {
    if is_standard(path) {
        progress::give_way();
        return Ok(Box::new(Stdout));
    }
    refuse_input(path, read)?;
    let path = path.to_owned();
    match File::create(&path) {
        Ok(file) => Ok(Box::new(Named { file, path })),
        Err(error) => Err(cannot_write(&path, &error).into()),
    }
}

/// A file, whose errors name it.
struct Named {
    file: File,
    path: PathBuf,
}

impl Write for Named {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes);
        written.map_err(|error| cannot_write(&self.path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        flushed.map_err(|error| cannot_write(&self.path, &error))
    }
}

#[cold]
fn cannot_write(path: &Path, error: &io::Error) -> io::Error {
    let told = format!("cannot write `{}`: {error}", path.display());
    io::Error::new(error.kind(), told)
}

/// Matches by symbol, or by ID.
fn is_called(name: &Name<'_>, wanted: &str) -> bool {
    name.symbol == wanted.as_bytes() || name.id.to_string() == wanted
}
