//! How a book is shown: a table that is drawn anew, or JSON.

use crate::plural::counted;
use crate::print::{note, say};
use fanfare_feed::recovery::{Lack, State};
use fanfare_market::book::Level;
use fanfare_market::event::InstrumentId;
use fanfare_market::{Book, Follower, Instruments, Side};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{IsTerminal, stdout};

/// Home, and everything behind it erased.
const REDRAW: &str = "\x1b[H\x1b[J";
/// The widest price or size, in characters.
const WIDTH: usize = 14;

/// Shows books.
pub(super) struct View {
    is_json: bool,
    is_once: bool,
    is_terminal: bool,
    /// The last line that was printed, so that nothing is said twice.
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

    /// Whether the book is printed once.
    pub(super) const fn is_once(&self) -> bool {
        self.is_once
    }

    /// Whether each change is printed.
    pub(super) const fn wants_each(&self) -> bool {
        self.is_json && !self.is_once
    }

    /// Shows the book as it is now.
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

    /// Prints the book as the feed left it.
    pub(super) fn show_last(&mut self, follower: &Follower, instrument: InstrumentId) {
        match self.is_json {
            true => self.print_json(follower, instrument),
            false => say!("{}", table(follower, instrument)),
        }
    }

    fn print_json(&mut self, follower: &Follower, instrument: InstrumentId) {
        let text = object(follower, instrument).to_string();
        if text != self.last {
            say!("{text}");
            self.last = text;
        }
    }
}

/// Name, state and both sides, the best levels in the first line.
fn table(follower: &Follower, instrument: InstrumentId) -> String {
    let market = follower.market();
    let mut text = name(follower.instruments(), instrument);
    if let Some(state) = market.state(instrument) {
        let _ = write!(text, "  {state}");
    }
    if let Some(rpt_seq) = market.position(instrument) {
        let _ = write!(text, "  RptSeq {rpt_seq}");
    }
    let head = format!(
        "{:>WIDTH$} {:>WIDTH$} | {:<WIDTH$} {:<WIDTH$}",
        "size", "bid", "offer", "size"
    );
    let _ = write!(text, "\n{}", head.trim_end());
    let Some(book) = market.book(instrument) else {
        return text + "\n(empty)";
    };
    let side = |side| book.depth(side).map(Some).chain(std::iter::repeat(None));
    let rows = Side::BOTH.map(|side| book.depth(side).len());
    let rows = rows.into_iter().max().unwrap_or_default();
    for (bid, offer) in side(Side::Bid).zip(side(Side::Offer)).take(rows) {
        let [bid_price, bid_size] = cells(bid);
        let [offer_price, offer_size] = cells(offer);
        let row = format!(
            "{bid_size:>WIDTH$} {bid_price:>WIDTH$} | {offer_price:<WIDTH$} {offer_size:<WIDTH$}"
        );
        let _ = write!(text, "\n{}", row.trim_end());
    }
    if rows == 0 {
        text.push_str("\n(empty)");
    }
    text
}

fn cells(level: Option<Level>) -> [String; 2] {
    level.map_or_else(Default::default, |level| {
        [level.price.to_string(), level.size.to_string()]
    })
}

fn name(table: &Instruments, instrument: InstrumentId) -> String {
    let Some(known) = table.get(instrument) else {
        return String::new();
    };
    let name = known.definition.name;
    let symbol = String::from_utf8_lossy(name.symbol);
    match (symbol.is_empty(), name.id.to_string()) {
        (true, id) => id,
        (false, id) if id.is_empty() => symbol.into_owned(),
        (false, id) => format!("{symbol} {id}"),
    }
}

/// Names of instruments, for whoever asked for one that is not there.
pub(super) fn some_names(table: &Instruments) -> String {
    const MOST: usize = 8;
    let names: Vec<_> = table
        .iter()
        .take(MOST)
        .map(|known| name(table, known.instrument))
        .collect();
    match table.len() {
        0 => "none".into(),
        len if len > MOST => format!("{} and {} more", names.join(", "), len - MOST),
        _ => names.join(", "),
    }
}

fn object(follower: &Follower, instrument: InstrumentId) -> Value {
    let (market, table) = (follower.market(), follower.instruments());
    let state = market.state(instrument);
    let book = market.book(instrument);
    let known = table.get(instrument);
    let name = known.as_ref().map(|known| known.definition.name);
    json!({
        "symbol": name.map(|name| String::from_utf8_lossy(name.symbol).into_owned()),
        "security_id": name.map(|name| name.id.to_string()),
        "state": state.map(state_name),
        "lacks": state.and_then(lacks),
        "rpt_seq": market.position(instrument),
        "bids": levels(book, Side::Bid),
        "offers": levels(book, Side::Offer),
    })
}

fn levels(book: Option<&Book>, side: Side) -> Vec<Value> {
    let levels = book.into_iter().flat_map(|book| book.depth(side));
    let value = |level: Level| match level.orders {
        0 => json!({"price": level.price.to_string(), "size": level.size}),
        orders => {
            json!({"price": level.price.to_string(), "size": level.size, "orders": orders})
        }
    };
    levels.map(value).collect()
}

const fn state_name(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Recovering(_) => "recovering",
        State::Stale => "stale",
        State::Closed => "closed",
    }
}

fn lacks(state: State) -> Option<Value> {
    let State::Recovering(lack) = state else {
        return None;
    };
    Some(match lack {
        Lack::Picture => json!({"what": "picture"}),
        Lack::PictureAfterFault => json!({"what": "picture", "after_fault": true}),
        Lack::Changes(from, to) => json!({"what": "changes", "from": from, "to": to}),
        Lack::Certainty(u64::MAX) => json!({"what": "channel"}),
        Lack::Certainty(end) => json!({"what": "certainty", "below": end as u32}),
    })
}

/// What was counted, on stderr.
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
