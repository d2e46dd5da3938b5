//! The totals of mapping, on stderr.

use super::printer::Printer;
use crate::plural::counted;
use crate::print::{exit_code, note};
use fanfare_instruments::figures::Figures;
use fanfare_market::FragmentStats;
use fanfare_market::dbn::DbnCounts;
use fanfare_market::mapping::Counts;
use std::process::ExitCode;

/// The totals of mapping.
pub(super) struct Totals {
    pub(super) counts: Counts,
    pub(super) fragments: FragmentStats,
    pub(super) errors: u64,
    /// Bytes of a log outside messages.
    pub(super) skipped: u64,
}

/// Prints the totals. Returns the exit status.
pub(super) fn report(printer: &Printer, totals: &Totals, json: bool) -> ExitCode {
    let Totals { counts, errors, .. } = totals;
    let dbn = printer.dbn();
    let is_ok = *errors == 0 && dbn.is_none_or(|dbn| dbn.lost == 0);
    let instruments = printer.table.len() as u64;
    let dbn = dbn.iter().flat_map(DbnCounts::all);
    let dbn = dbn.map(|(name, count)| (format!("dbn_{name}"), count));
    let fragments = totals.fragments.all();
    let fragments = fragments.map(|(name, count)| (format!("fragments_{name}"), count));
    let skipped = ("other_bytes".to_owned(), totals.skipped);
    let more = fragments.into_iter().chain(dbn).chain([skipped]);
    if json {
        let mut figures = Figures::new("market events");
        figures.set_ok(is_ok);
        for (name, count) in counts.all() {
            figures.count(name, count);
        }
        figures.count("instruments", instruments);
        figures.count("written", printer.written);
        figures.count("errors", *errors);
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
        counted(*errors, "error")
    );
    let others = counts.all().into_iter().skip(2);
    let others = others.map(|(name, count)| (name.to_owned(), count));
    for (name, count) in others.chain(more).filter(|(_, count)| *count != 0) {
        note!("  {}: {count}", name.replace('_', " "));
    }
    exit_code(is_ok)
}
