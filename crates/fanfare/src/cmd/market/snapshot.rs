//! A book as text and as JSON.

use super::json::text;
use fanfare_feed::recovery::State;
use fanfare_gateway::{lacks, state_name};
use fanfare_market::book::Level;
use fanfare_market::instruments::{Instrument, Name};
use fanfare_market::{Book, Side};
use fanfare_wire::text::Escaped;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// The widest price or size, in characters.
const WIDTH: usize = 14;

/// The state of one instrument at one moment.
pub(crate) struct Snapshot<'a> {
    pub(crate) known: Option<Instrument<'a>>,
    pub(crate) state: Option<State>,
    pub(crate) rpt_seq: Option<u32>,
    pub(crate) book: Option<&'a Book>,
    /// The most levels of a side that are shown.
    pub(crate) depth: usize,
}

impl Snapshot<'_> {
    /// Formats name, state and both sides, the best levels on the first line.
    pub(crate) fn table(&self) -> String {
        let name = self.known.as_ref().map(|known| known.definition.name);
        let mut text = name.map(|name| full_name(&name)).unwrap_or_default();
        if let Some(state) = self.state {
            let _ = write!(text, "  {state}");
        }
        if let Some(rpt_seq) = self.rpt_seq {
            let _ = write!(text, "  RptSeq {rpt_seq}");
        }
        let head = format!(
            "{:>WIDTH$} {:>WIDTH$} | {:<WIDTH$} {:<WIDTH$}",
            "size", "bid", "offer", "size"
        );
        let _ = write!(text, "\n{}", head.trim_end());
        let Some(book) = self.book else {
            return text + "\n(empty)";
        };
        let side = |side| book.depth(side).map(Some).chain(std::iter::repeat(None));
        let rows = Side::BOTH.map(|side| book.depth(side).len());
        let rows = rows.into_iter().max().unwrap_or_default();
        let shown = side(Side::Bid).zip(side(Side::Offer));
        for (bid, offer) in shown.take(rows.min(self.depth)) {
            let [bid_price, bid_size] = cells(bid);
            let [offer_price, offer_size] = cells(offer);
            let row = format!(
                "{bid_size:>WIDTH$} {bid_price:>WIDTH$} | {offer_price:<WIDTH$} \
                 {offer_size:<WIDTH$}"
            );
            let _ = write!(text, "\n{}", row.trim_end());
        }
        if rows == 0 {
            text.push_str("\n(empty)");
        }
        text
    }

    pub(crate) fn object(&self) -> Map<String, Value> {
        let name = self.known.as_ref().map(|known| known.definition.name);
        let values = [
            ("symbol", json!(name.map(|name| text(name.symbol)))),
            (
                "security_id",
                json!(name.map(|name| text(&name.id.bytes()))),
            ),
            ("state", json!(self.state.map(state_name))),
            ("lacks", json!(self.state.and_then(lacks))),
            ("rpt_seq", json!(self.rpt_seq)),
            ("bids", self.levels(Side::Bid)),
            ("offers", self.levels(Side::Offer)),
        ];
        let named = values.map(|(name, value)| (name.to_owned(), value));
        named.into_iter().collect()
    }

    fn levels(&self, side: Side) -> Value {
        let levels = self.book.into_iter().flat_map(|book| book.depth(side));
        let value = |level: Level| match level.orders {
            0 => json!({"price": level.price.to_string(), "size": level.size}),
            orders => {
                json!({"price": level.price.to_string(), "size": level.size, "orders": orders})
            }
        };
        levels.take(self.depth).map(value).collect()
    }
}

fn cells(level: Option<Level>) -> [String; 2] {
    level.map_or_else(Default::default, |level| {
        [level.price.to_string(), level.size.to_string()]
    })
}

/// Formats symbol and ID, which are text of the feed.
fn full_name(name: &Name<'_>) -> String {
    let id = name.id.bytes();
    let (symbol, own) = (Escaped::new(name.symbol), Escaped::new(&id));
    match (name.symbol.is_empty(), id.is_empty()) {
        (true, _) => own.to_string(),
        (false, true) => symbol.to_string(),
        (false, false) => format!("{symbol} {own}"),
    }
}

/// Returns some names of instruments, for an error about an unknown one.
pub(crate) fn some_names<'a>(all: impl Iterator<Item = Instrument<'a>>, count: usize) -> String {
    const MOST: usize = 8;
    let names = all
        .take(MOST)
        .map(|known| full_name(&known.definition.name));
    let names = names.collect::<Vec<_>>().join(", ");
    match count {
        0 => "none".into(),
        count if count > MOST => format!("{names} and {} more", count - MOST),
        _ => names,
    }
}
