//! Maps FIX messages of a log or a stream to events.

use super::options::named_mapping;
use super::printer::Printer;
use super::totals::Totals;
use crate::cmd::fix::{Kind, Pieces};
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_fix::dict::{Dictionary, Version, names_of};
use fanfare_fix::text::{Found, Scanner};
use fanfare_market::{FixMapper, Fragments, Instruments};
use std::path::Path;

/// The source of messages, and their interpretation.
pub(super) struct Log<'a> {
    pub(super) path: &'a Path,
    pub(super) mapping: Option<&'a str>,
    /// The version; by default that of the first message.
    pub(super) version: Option<Version>,
    pub(super) keep_going: bool,
}

/// The mapper of messages and the consumer of their events.
struct Mapped<'a> {
    log: &'a Log<'a>,
    name: String,
    mapper: Option<FixMapper>,
    fragments: Fragments,
    printer: Printer,
    errors: u64,
}

/// Maps a log to its end, or to the first message that cannot be read; `prepare` creates the
/// consumer of the events once the log is open.
pub(super) fn play(
    log: &Log<'_>,
    prepare: impl FnOnce() -> Result<Printer>,
) -> Result<(Printer, Totals)> {
    let stop = Stop::on_interrupt()?;
    let mut input = Pieces::open(log.path, stop)?;
    let name = input.name().to_owned();
    if input.kind().with_context(|| name.clone())? == Kind::Capture {
        bail!("`{name}` is a capture: --fix expects a log or a stream");
    }
    let mut mapped = Mapped {
        log,
        mapper: None,
        fragments: Fragments::default(),
        printer: prepare()?,
        errors: 0,
        name,
    };
    let mut scanner = Scanner::default();
    let mut is_open = true;
    while is_open && let Some(piece) = input.next_piece()? {
        scanner.push(&piece);
        is_open = mapped.all_of(&mut scanner)?;
        if input.is_drained() {
            mapped.printer.flush()?;
        }
    }
    scanner.finish();
    if is_open {
        mapped.all_of(&mut scanner)?;
    }
    let Some(mapper) = mapped.mapper else {
        bail!("no FIX message in {}", mapped.name);
    };
    let totals = Totals {
        counts: mapper.counts(),
        fragments: mapped.fragments.stats(),
        errors: mapped.errors,
        skipped: scanner.skipped().bytes,
    };
    Ok((mapped.printer, totals))
}

impl Mapped<'_> {
    /// Maps the messages of the scanner. Returns false if nothing more is wanted.
    fn all_of(&mut self, scanner: &mut Scanner) -> Result<bool> {
        while let Some(found) = scanner.next() {
            let is_used = self.message(&found)?;
            if self.printer.is_full() || !(is_used || self.log.keep_going) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Maps a message. Returns false if it cannot be read.
    fn message(&mut self, found: &Found<'_>) -> Result<bool> {
        if self.mapper.is_none() {
            self.mapper = Some(mapper(self.log, found)?);
        }
        let place = format!("{}:{}", self.name, found.line);
        if let Some(flaw) = found.flaws.first() {
            self.errors += 1;
            let msg_type = String::from_utf8_lossy(found.message.msg_type());
            self.printer
                .remark(&format!("{place}: MsgType(35) {msg_type}: {flaw}"));
            return Ok(false);
        }
        let Some(mapper) = &mut self.mapper else {
            return Ok(false);
        };
        let table: &mut Instruments = &mut self.printer.table;
        let outcome = mapper.message(table, 0, &found.message);
        for fault in mapper.faults() {
            let what = mapper.describe(fault, &self.printer.table);
            self.printer.remark(&format!("{place}: {what}"));
        }
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                self.errors += 1;
                self.fragments.pass(&error.outcome());
                self.printer.events(mapper.events(), None)?;
                return Ok(true);
            }
        };
        self.printer.message(outcome.number);
        if let Some(whole) = self.fragments.take(&outcome, mapper.events()) {
            self.printer.events(whole.events, outcome.number)?;
        }
        Ok(true)
    }
}

/// Compiles the mapping for `--fix-version`, or for the version of the first message.
fn mapper(log: &Log<'_>, found: &Found<'_>) -> Result<FixMapper> {
    let mapping = named_mapping(log.mapping.unwrap_or("builtin:fix"))?;
    let dictionary = match log.version {
        Some(version) => Dictionary::built_in(version),
        None => names_of(&found.message),
    };
    Ok(mapping.for_fix(&dictionary, 0)?)
}
