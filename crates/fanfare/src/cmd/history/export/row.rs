//! An event as a row: the columns of CSV and Parquet.

use crate::plural::counted;
use crate::print::note;
use fanfare_market::event::{Event, Flags, InstrumentId, Kind};
use fanfare_market::instruments::{Instrument, Name, SecurityId};
use fanfare_market::json;
use fanfare_wire::text::readable;
use std::borrow::Cow;

/// The names of the columns, in order.
pub(super) const NAMES: [&str; 20] = [
    "number",
    "ts_recv",
    "ts_event",
    "feed",
    "instrument",
    "symbol",
    "security_id",
    "kind",
    "action",
    "entry",
    "level",
    "price",
    "size",
    "id",
    "rpt_seq",
    "snapshot",
    "last",
    "security_id_source",
    "lost",
    "definition",
];

/// The values of an event in each column; `None` for unknown ones.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) number: u64,
    pub(super) ts_recv: Option<u64>,
    pub(super) ts_event: Option<u64>,
    pub(super) feed: Option<u16>,
    /// `None` for an event of all instruments of the feed.
    pub(super) instrument: Option<u32>,
    pub(super) symbol: Option<Cow<'a, str>>,
    pub(super) security_id: Option<String>,
    pub(super) kind: &'static str,
    pub(super) action: Option<&'static str>,
    pub(super) entry: Option<char>,
    pub(super) level: Option<u16>,
    /// In units of 10^-9.
    pub(super) price: Option<i64>,
    pub(super) size: Option<i64>,
    pub(super) id: Option<u64>,
    pub(super) rpt_seq: Option<u32>,
    pub(super) snapshot: bool,
    pub(super) last: bool,
    pub(super) security_id_source: Option<String>,
    /// The last missing event, in a row of kind `lost`; `number` is the first one.
    pub(super) lost: Option<u64>,
    /// A JSON object.
    pub(super) definition: Option<String>,
    /// Whether a name is not UTF-8, and is written escaped. No column.
    pub(super) is_escaped: bool,
}

/// Returns whether a part of a name is not UTF-8.
fn is_escaped(name: Name<'_>) -> bool {
    let is_text = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok();
    let is_id = match name.id {
        SecurityId::Text(id) => is_text(id),
        SecurityId::None | SecurityId::Number(_) => true,
    };
    !(is_text(name.symbol) && is_id && is_text(name.source.as_bytes()))
}

/// Reports the rows whose names are not UTF-8.
pub(super) fn tell_escaped(rows: u64) {
    if rows > 0 {
        let rows = counted(rows, "row");
        note!("fanfare: {rows} with names that are not UTF-8: their bytes are written as \\xff");
    }
}

impl<'a> Row<'a> {
    pub(super) fn new(event: &Event, known: Option<&Instrument<'a>>) -> Self {
        let name = known.map(|known| known.definition.name);
        let time = |time: u64| (time != Event::NO_TIME).then_some(time);
        let symbol = name
            .map(|name| name.symbol)
            .filter(|symbol| !symbol.is_empty());
        let definition = |known: &Instrument<'_>| {
            let is_one = event.kind == Kind::Definition;
            is_one.then(|| {
                let mut text = String::new();
                json::definition(known, &mut text);
                text
            })
        };
        let id = name
            .map(|name| name.id)
            .filter(|id| *id != SecurityId::None);
        let source = name.map(|name| name.source.to_string());
        Self {
            number: event.number,
            ts_recv: time(event.ts_recv).filter(|time| *time != 0),
            ts_event: time(event.ts_event),
            feed: (event.source != 0).then_some(event.source),
            instrument: (event.instrument != InstrumentId::ALL).then_some(event.instrument.0),
            symbol: symbol.map(readable),
            security_id: id.map(|id| id.to_string()),
            kind: event.kind.name(),
            action: json::has_action(event).then(|| json::action(event.action)),
            entry: (event.entry != 0).then_some(char::from(event.entry)),
            level: (event.level != 0).then_some(event.level),
            price: event.price.is_defined().then(|| event.price.units()),
            size: (event.size != Event::NO_SIZE).then_some(event.size),
            id: (event.id != 0).then_some(event.id),
            rpt_seq: (event.rpt_seq != 0).then_some(event.rpt_seq),
            snapshot: event.flags.has(Flags::SNAPSHOT),
            last: event.flags.has(Flags::LAST),
            security_id_source: source.filter(|source| !source.is_empty()),
            lost: None,
            definition: known.and_then(definition),
            is_escaped: name.is_some_and(is_escaped),
        }
    }

    /// Returns the row of missing events.
    pub(super) fn lost(first: u64, last: u64) -> Self {
        Self {
            number: first,
            kind: "lost",
            lost: Some(last),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::instruments::Definition;

    #[test]
    fn names_that_are_not_utf_8_stay_different() {
        let shown = |symbol: &'static [u8]| {
            let name = Name {
                symbol,
                id: SecurityId::Text(symbol),
                ..Name::default()
            };
            let known = Instrument {
                instrument: InstrumentId(7),
                definition: Definition::named(name),
                revision: 0,
                status: 0,
            };
            let row = Row::new(&Event::EMPTY, Some(&known));
            let symbol = row.symbol.unwrap_or_default().into_owned();
            (symbol, row.security_id.unwrap_or_default(), row.is_escaped)
        };
        let escaped = |text: &str| (text.to_owned(), text.to_owned(), true);
        assert_eq!(shown(b"\xcf\xe0"), escaped(r"\xcf\xe0"));
        assert_eq!(shown(b"\xcf\xe1"), escaped(r"\xcf\xe1"));
        let plain = (r"A\B".to_owned(), r"A\B".to_owned(), false);
        assert_eq!(shown(br"A\B"), plain);
    }
}
