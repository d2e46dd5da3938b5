//! Maps files of DBN to events.

use super::printer::Printer;
use crate::plural::counted;
use crate::print::{exit_code, note};
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_gateway::DbnFile;
use fanfare_instruments::figures::Figures;
use fanfare_market::book::BookKind;
use fanfare_market::dbn::{DbnCounts, FromDbnCounts};
use fanfare_market::event::{Event, Kind};
use std::path::Path;
use std::process::ExitCode;

/// Prints the events of a file up to its end, or to the first damage.
pub(super) fn play(
    path: &Path,
    json: bool,
    prepare: impl FnOnce() -> Result<Printer>,
) -> Result<ExitCode> {
    let stop = Stop::on_interrupt()?;
    let shown = || path.display().to_string();
    let mut file = DbnFile::open(path, 0).with_context(shown)?;
    let mut printer = prepare()?;
    let mut events = 0;
    let damage = loop {
        let more = file.read(&mut printer.table);
        events += file.events().len() as u64;
        for event in file.events() {
            if let Some(kind) = file.book_kind(event.instrument) {
                printer.open_book(&change(event, kind));
            }
        }
        printer.events(file.events(), None)?;
        match more {
            Ok(true) if !stop.is_raised() && !printer.is_full() => {}
            Ok(_) => break None,
            Err(error) => break Some(error),
        }
    };
    printer.finish()?;
    if let Some(error) = &damage {
        note!("fanfare: {}: {error}", path.display());
    }
    let is_ok = damage.is_none() && printer.dbn().is_none_or(|dbn| dbn.lost == 0);
    report(&printer, (file.counts(), events), is_ok, json);
    Ok(exit_code(is_ok))
}

/// Returns a change of the book that an event's instrument has.
fn change(event: &Event, book: BookKind) -> Event {
    let kind = match book {
        BookKind::Orders => Kind::Order,
        BookKind::Levels | BookKind::Prices => Kind::Level,
    };
    Event {
        kind,
        level: 0,
        ..*event
    }
}

fn report(printer: &Printer, (counts, events): (FromDbnCounts, u64), is_ok: bool, json: bool) {
    let instruments = printer.table.len() as u64;
    let dbn = printer.dbn();
    let dbn = dbn.iter().flat_map(DbnCounts::all);
    if json {
        let mut figures = Figures::new("market events");
        figures.set_ok(is_ok);
        for (name, count) in [
            ("records", counts.records),
            ("events", events),
            ("instruments", instruments),
            ("written", printer.written),
        ] {
            figures.count(name, count);
        }
        for (name, count) in counts.left_out() {
            figures.count(&format!("left_out_{}", name.replace(' ', "_")), count);
        }
        for (name, count) in dbn {
            figures.count(&format!("dbn_{name}"), count);
        }
        return note!("{}", figures.to_json());
    }
    note!(
        "{} of {} in {}, {} written",
        counted(events, "event"),
        counted(instruments, "instrument"),
        counted(counts.records, "record"),
        printer.written
    );
    for (name, count) in counts.left_out().into_iter().chain(dbn) {
        if count > 0 {
            note!("  {}: {count}", name.replace('_', " "));
        }
    }
}
