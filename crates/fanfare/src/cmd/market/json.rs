//! Events and definitions as JSON objects, for larger objects that contain them.

use fanfare_market::event::Event;
use fanfare_market::instruments::Instrument;
use fanfare_market::json;
use serde_json::{Map, Value};

/// Returns an event's fields, without those that are unknown.
pub(crate) fn object(event: &Event, known: Option<&Instrument<'_>>) -> Map<String, Value> {
    let mut text = String::new();
    json::event(event, known, &mut text);
    parsed(&text)
}

/// Returns a definition's fields, without its names.
pub(super) fn definition(known: &Instrument<'_>) -> Map<String, Value> {
    let mut text = String::new();
    json::definition(known, &mut text);
    parsed(&text)
}

/// Returns a text of a feed: a string, or an object with its bytes if it is not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Value {
    let mut text = String::new();
    json::text(bytes, &mut text);
    serde_json::from_str(&text).unwrap_or_default()
}

fn parsed(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_default()
}
