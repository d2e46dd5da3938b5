//! The state of an instrument as JSON.

use fanfare_feed::recovery::{Lack, State};
use fanfare_history::FeedInfo;
use fanfare_history::moment::utc;
use fanfare_market::event::{Event, InstrumentId, entry};
use fanfare_market::instruments::{Directory, Lookup, SecurityId};
use fanfare_market::{Book, Price, Side};
use fanfare_wire::text::{Escaped, is_unsafe, unescape};
use serde_json::{Map, Value, json};

/// The most orders of a level that are shown.
const ORDERS: usize = 100;

/// Returns the name of a state.
#[must_use]
pub const fn state_name(state: State) -> &'static str {
    match state {
        State::Live => "live",
        State::Recovering(_) => "recovering",
        State::Stale => "stale",
        State::Closed => "closed",
    }
}

/// Returns what an instrument that is recovering lacks, or `None` in another state.
#[must_use]
pub fn lacks(state: State) -> Option<Value> {
    let State::Recovering(lack) = state else {
        return None;
    };
    Some(match lack {
        Lack::Snapshot => json!({"what": "snapshot"}),
        Lack::SnapshotAfterFault => json!({"what": "snapshot", "after_fault": true}),
        Lack::Changes(from, to) => json!({"what": "changes", "from": from, "to": to}),
        Lack::Certainty(u64::MAX) => json!({"what": "channel"}),
        Lack::Certainty(end) => json!({"what": "certainty", "below": end as u32}),
    })
}

/// Formats a text of a feed.
pub(super) fn text(bytes: &[u8]) -> String {
    Escaped::new(bytes).to_string()
}

/// Returns the texts that `wanted` may stand for: itself, and the text that is shown so.
pub(super) fn spellings(wanted: &str) -> impl Iterator<Item = String> {
    let meant = unescape(wanted).filter(|meant| meant != wanted);
    std::iter::once(wanted.to_owned()).chain(meant)
}

/// Returns whether a text of a feed, as it is or as it is [shown](text), passes `is`.
fn either(bytes: &[u8], is: impl Fn(&[u8]) -> bool) -> bool {
    let is_shown_otherwise = |char: char| char == '\\' || is_unsafe(char);
    let differs = || match std::str::from_utf8(bytes) {
        Ok(text) => text.contains(is_shown_otherwise),
        Err(_) => true,
    };
    is(bytes) || (differs() && is(text(bytes).as_bytes()))
}

/// Returns whether a text of a feed is `wanted`, as it is or as it is [shown](text).
pub(super) fn is_text(bytes: &[u8], wanted: &str) -> bool {
    either(bytes, |bytes| bytes == wanted.as_bytes())
}

/// Returns whether SecurityID(48) is `wanted`, as it is or as it is [shown](id_text).
pub(super) fn is_id(id: SecurityId<'_>, wanted: &str) -> bool {
    match id {
        SecurityId::Text(id) => is_text(id, wanted),
        id => id_text(id) == wanted,
    }
}

/// Returns whether a symbol, or else SecurityID(48), has this prefix, as it is or as it is shown.
pub(super) fn begins(symbol: &[u8], id: SecurityId<'_>, prefix: &str) -> bool {
    let begins = |bytes: &[u8]| bytes.starts_with(prefix.as_bytes());
    match (symbol, id) {
        ([], SecurityId::Text(id)) => either(id, begins),
        ([], id) => begins(id_text(id).as_bytes()),
        (symbol, _) => either(symbol, begins),
    }
}

/// Formats a time, if it is known.
pub(super) fn time(nanos: u64) -> Option<String> {
    (!matches!(nanos, 0 | Event::NO_TIME)).then(|| utc(nanos))
}

fn price(price: Price) -> Option<String> {
    price.is_defined().then(|| price.to_string())
}

fn size(size: i64) -> Option<i64> {
    (size != Event::NO_SIZE).then_some(size)
}

/// Returns the feed of an instrument.
pub(super) fn feed_of(feeds: &[FeedInfo], instrument: InstrumentId) -> Option<&FeedInfo> {
    feeds.iter().rev().find(|own| own.base <= instrument.0)
}

/// Formats SecurityID(48), as an empty text if there is none.
pub(super) fn id_text(id: SecurityId<'_>) -> String {
    match id {
        SecurityId::None => String::new(),
        SecurityId::Text(id) => text(id),
        id => id.to_string(),
    }
}

/// Returns the fields that begin every response about an instrument.
pub(super) fn names(
    instrument: InstrumentId,
    directory: &Directory,
    feeds: &[FeedInfo],
) -> Map<String, Value> {
    let known = directory.instrument(instrument);
    let name = known.as_ref().map(|known| known.definition.name);
    let id = name.map(|name| id_text(name.id));
    object([
        ("number", json!(instrument.0)),
        (
            "symbol",
            json!(name.map(|name| text(name.symbol)).unwrap_or_default()),
        ),
        ("security_id", json!(id.unwrap_or_default())),
        (
            "feed",
            json!(feed_of(feeds, instrument).map(|feed| &feed.name)),
        ),
    ])
}

/// The name of the state of an instrument whose feed has said nothing about its book so far.
pub(super) const UNHEARD: &str = "unheard";

/// Returns the fields of a state, `None` for an instrument without any.
pub(super) fn state(state: Option<State>) -> [(&'static str, Value); 2] {
    [
        ("state", json!(state.map_or(UNHEARD, state_name))),
        ("lacks", json!(state.and_then(lacks))),
    ]
}

pub(super) fn object<const N: usize>(fields: [(&str, Value); N]) -> Map<String, Value> {
    Map::from_iter(fields.map(|(name, value)| (name.to_owned(), value)))
}

/// Returns up to `depth` levels of a side, the best first.
pub(super) fn levels(book: Option<&Book>, side: Side, depth: usize) -> Value {
    let Some(book) = book else {
        return json!([]);
    };
    let level = |level: fanfare_market::book::Level| {
        let mut object = object([
            ("price", json!(level.price.to_string())),
            ("size", json!(level.size)),
        ]);
        if level.orders != 0 {
            object.insert("orders".to_owned(), level.orders.into());
        }
        let queue = book.queue(side, level.price).take(ORDERS);
        let orders: Vec<_> = queue
            .map(|order| json!({"id": order.id.to_string(), "size": order.size}))
            .collect();
        if !orders.is_empty() {
            object.insert("ids".to_owned(), orders.into());
        }
        Value::Object(object)
    };
    book.depth(side).take(depth).map(level).collect()
}

/// Formats a trade.
pub(super) fn trade(event: &Event) -> Value {
    let id = (event.id != 0).then(|| event.id.to_string());
    json!({
        "number": event.number,
        "time": time_of(event),
        "price": price(event.price),
        "size": size(event.size),
        "id": id,
    })
}

/// Formats the last value of a statistic.
pub(super) fn statistic(event: &Event) -> Value {
    json!({
        "type": char::from(event.entry).to_string(),
        "name": entry_name(event.entry),
        "price": price(event.price),
        "size": size(event.size),
        "time": time_of(event),
    })
}

/// Returns the exchange's time, or the time of arrival if there is none.
fn time_of(event: &Event) -> Option<String> {
    time(event.ts_event).or_else(|| time(event.ts_recv))
}

/// Returns the name of a value of MDEntryType(269).
const fn entry_name(of: u8) -> Option<&'static str> {
    Some(match of {
        entry::BID => "bid",
        entry::OFFER => "offer",
        entry::TRADE => "trade",
        b'3' => "index value",
        b'4' => "opening price",
        b'5' => "closing price",
        b'6' => "settlement price",
        b'7' => "session high",
        b'8' => "session low",
        b'9' => "VWAP",
        b'A' => "imbalance",
        b'B' => "trade volume",
        b'C' => "open interest",
        _ => return None,
    })
}
