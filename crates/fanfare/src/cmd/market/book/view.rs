//! The display of a book: a table that is redrawn, or JSON.

use crate::cmd::market::snapshot::Snapshot;
use crate::plural::counted;
use crate::print::{Out, line, note};
use fanfare_market::Follower;
use fanfare_market::event::InstrumentId;
use fanfare_wire::text::SafeJson;
use serde_json::Value;
use std::io::{self, IsTerminal, stdout};

/// The escape codes that move the cursor home and erase the screen behind it.
const REDRAW: &str = "\x1b[H\x1b[J";

/// A display of books.
pub(super) struct View {
    is_json: bool,
    is_once: bool,
    is_terminal: bool,
    /// The last line printed, so that no line is repeated.
    last: String,
    out: Out,
}

impl View {
    pub(super) fn new(is_json: bool, is_once: bool) -> Self {
        Self {
            is_json,
            is_once,
            is_terminal: stdout().is_terminal(),
            last: String::new(),
            out: Out::default(),
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
    ///
    /// # Errors
    /// The book cannot be printed; a closed pipe is an error, too, which ends the run.
    pub(super) fn show(&mut self, follower: &Follower, instrument: InstrumentId) -> io::Result<()> {
        let snapshot = snapshot(follower, instrument);
        let (clear, text) = match (self.is_json, self.is_terminal) {
            (true, _) => ("", SafeJson(Value::Object(snapshot.object())).to_string()),
            (false, true) => (REDRAW, snapshot.table()),
            (false, false) => ("", snapshot.table()),
        };
        if text == self.last {
            return Ok(());
        }
        line(&mut self.out, format_args!("{clear}{text}"))?;
        self.last = text;
        Ok(())
    }

    /// Prints the book at the end of the feed.
    ///
    /// # Errors
    /// Those of [`Self::show`].
    pub(super) fn show_last(
        &mut self,
        follower: &Follower,
        instrument: InstrumentId,
    ) -> io::Result<()> {
        match self.is_json {
            true => self.show(follower, instrument),
            false => {
                let text = snapshot(follower, instrument).table();
                line(&mut self.out, format_args!("{text}"))
            }
        }
    }
}

/// Returns the displayed state of an instrument.
fn snapshot(follower: &Follower, instrument: InstrumentId) -> Snapshot<'_> {
    let market = follower.market();
    Snapshot {
        known: follower.instruments().get(instrument),
        state: market.state(instrument),
        rpt_seq: market.position(instrument),
        book: market.book(instrument),
        depth: usize::MAX,
    }
}

/// Prints the counts to stderr.
pub(super) fn report(follower: &Follower) {
    let (stats, recovery) = (follower.stats(), follower.market().recovery_stats());
    let (market, mapped) = (follower.market().stats(), follower.mapper().counts());
    let fragments = follower.fragment_stats();
    let snapshots = recovery.snapshots_taken
        + recovery.snapshots_old
        + recovery.snapshots_ahead
        + recovery.snapshots_unusable;
    note!(
        "{}, {} missing; {} taken of {}; recoveries: {} begun, {} ended",
        counted(stats.messages, "message"),
        follower.market().missing().count(),
        recovery.snapshots_taken,
        counted(snapshots, "snapshot"),
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
        ("snapshots that cannot be read", stats.bad_snapshots),
        ("snapshots that lack a fragment", fragments.discarded),
        ("snapshots without room", fragments.no_room),
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
