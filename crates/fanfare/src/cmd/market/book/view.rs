//! The display of a book: a table that is redrawn, or JSON.

use crate::cmd::market::picture::Picture;
use crate::plural::counted;
use crate::print::{note, say};
use fanfare_market::Follower;
use fanfare_market::event::InstrumentId;
use serde_json::Value;
use std::io::{IsTerminal, stdout};

/// The escape codes that move the cursor home and erase the screen behind it.
const REDRAW: &str = "\x1b[H\x1b[J";

/// A display of books.
pub(super) struct View {
    is_json: bool,
    is_once: bool,
    is_terminal: bool,
    /// The last line printed, so that no line is repeated.
    last: String,
}

impl View {
    pub(super) fn new(is_json: bool, is_once: bool) -> Self {
        Self {
            is_json,
            is_once,
            is_terminal: stdout().is_terminal(),
            last: String::new(),
        }
    }

    /// Returns whether the book is printed once.
    pub(super) const fn is_once(&self) -> bool {
        self.is_once
    }

    /// Returns whether each change is printed.
    pub(super) const fn wants_each(&self) -> bool {
        self.is_json && !self.is_once
    }

    /// Shows the current book.
    pub(super) fn show(&mut self, follower: &Follower, instrument: InstrumentId) {
        if self.is_json {
            return self.print_json(follower, instrument);
        }
        let clear = if self.is_terminal { REDRAW } else { "" };
        let text = table(follower, instrument);
        if text != self.last {
            say!("{clear}{text}");
            self.last = text;
        }
    }

    /// Prints the book at the end of the feed.
    pub(super) fn show_last(&mut self, follower: &Follower, instrument: InstrumentId) {
        match self.is_json {
            true => self.print_json(follower, instrument),
            false => say!("{}", table(follower, instrument)),
        }
    }

    fn print_json(&mut self, follower: &Follower, instrument: InstrumentId) {
        let text = Value::Object(picture(follower, instrument).object()).to_string();
        if text != self.last {
            say!("{text}");
            self.last = text;
        }
    }
}

/// Returns the displayed state of an instrument.
fn picture(follower: &Follower, instrument: InstrumentId) -> Picture<'_> {
    let market = follower.market();
    Picture {
        known: follower.instruments().get(instrument),
        state: market.state(instrument),
        rpt_seq: market.position(instrument),
        book: market.book(instrument),
        depth: usize::MAX,
    }
}

fn table(follower: &Follower, instrument: InstrumentId) -> String {
    picture(follower, instrument).table()
}

/// Prints the counts to stderr.
pub(super) fn report(follower: &Follower) {
    let (stats, recovery) = (follower.stats(), follower.market().recovery_stats());
    let (market, mapped) = (follower.market().stats(), follower.mapper().counts());
    let fragments = follower.fragment_stats();
    let pictures = recovery.snapshots_taken
        + recovery.snapshots_old
        + recovery.snapshots_ahead
        + recovery.snapshots_unusable;
    note!(
        "{}, {} missing; {} taken of {}; recoveries: {} begun, {} ended",
        counted(stats.messages, "message"),
        follower.market().missing().count(),
        recovery.snapshots_taken,
        counted(pictures, "picture"),
        recovery.recoveries,
        recovery.recovered,
    );
    let others = [
        ("impossible changes of books", market.faults),
        ("changes without RptSeq", market.unnumbered),
        ("changes without room to wait", recovery.overflows),
        ("RptSeq that went back", recovery.jumped_back),
        ("values that cannot be represented", mapped.faults),
        (
            "entries of instruments that were never defined",
            mapped.unknown_instrument,
        ),
        ("entries of instruments beyond the table", mapped.table_full),
        ("packets that cannot be decoded", stats.bad),
        ("pictures that cannot be read", stats.bad_pictures),
        ("pictures that lack a fragment", fragments.discarded),
        ("pictures without room", fragments.no_room),
        ("fragments without a beginning", fragments.without_beginning),
        ("messages without a number", stats.unnumbered),
        ("messages that came again", stats.repeated),
        ("changes dropped", recovery.dropped),
        ("instruments beyond the limit", market.refused),
    ];
    for (what, count) in others.into_iter().filter(|(_, count)| *count != 0) {
        note!("  {what}: {count}");
    }
}
