//! Events and instruments as JSON text. Prices are strings, so that they stay exact, and unknown
//! values are left out. A text that is not UTF-8 is `{"raw":"…"}` with its bytes as hexadecimal
//! digits.

use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Definition, IdSource, Instrument, Name, SecurityId};
use crate::price::Price;
use std::fmt::{Display, Write};

/// A value of an event.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A number.
    Number(&'a dyn Display),
    /// A text of characters that JSON does not escape.
    Plain(&'a dyn Display),
    /// A text of the feed, in any encoding.
    Text(&'a [u8]),
    /// The value true.
    True,
    /// The definition of this instrument, without its names.
    Definition(&'a Instrument<'a>),
}

/// The line for a restart of the plant.
pub const RESTART: &str = r#"{"restart":true}"#;

/// Appends the JSON object of an event.
pub fn event(event: &Event, known: Option<&Instrument<'_>>, out: &mut String) {
    let mut object = Object::begin(out);
    fields(event, known, &mut |key, value| object.add(key, value));
    object.end();
}

/// Appends the JSON object of missing events.
pub fn lost(first: u64, last: u64, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = write!(out, r#"{{"lost":{{"first":{first},"last":{last}}}}}"#);
}

/// Appends the JSON object of an instrument.
pub fn instrument(known: &Instrument<'_>, out: &mut String) {
    let mut object = Object::begin(out);
    let mut each = |key: &'static str, value: Value<'_>| object.add(key, value);
    each("instrument", Value::Number(&known.instrument.0));
    names(&known.definition.name, &mut each);
    each("revision", Value::Number(&known.revision));
    defined(known, &mut each);
    object.end();
}

/// Appends the JSON object of a definition, without its names.
pub fn definition(known: &Instrument<'_>, out: &mut String) {
    let mut object = Object::begin(out);
    defined(known, &mut |key, value| object.add(key, value));
    object.end();
}

/// Calls `each` with the names and values of an event.
pub fn fields(
    event: &Event,
    known: Option<&Instrument<'_>>,
    each: &mut dyn FnMut(&'static str, Value<'_>),
) {
    use Value::{Number, Plain, True};
    each("number", Number(&event.number));
    each("kind", Plain(&event.kind.name()));
    if has_action(event) {
        each("action", Plain(&action(event.action)));
    }
    match event.instrument {
        InstrumentId::ALL => each("instrument", Plain(&"all")),
        InstrumentId(number) => each("instrument", Number(&number)),
    }
    if event.source != 0 {
        each("feed", Number(&event.source));
    }
    if let Some(known) = known {
        names(&known.definition.name, each);
    }
    if event.entry != 0 {
        let entry = char::from(event.entry);
        each(
            "entry",
            Value::Text(entry.encode_utf8(&mut [0; 4]).as_bytes()),
        );
    }
    if event.level != 0 {
        each("level", Number(&event.level));
    }
    if event.price.is_defined() {
        each("price", Plain(&event.price));
    }
    if event.size != Event::NO_SIZE {
        each("size", Number(&event.size));
    }
    if event.id != 0 {
        each(id_name(event.kind), Number(&event.id));
    }
    if event.rpt_seq != 0 {
        each("rpt_seq", Number(&event.rpt_seq));
    }
    if event.ts_event != Event::NO_TIME {
        each("ts_event", Number(&event.ts_event));
    }
    if !matches!(event.ts_recv, 0 | Event::NO_TIME) {
        each("ts_recv", Number(&event.ts_recv));
    }
    if event.flags.has(Flags::SNAPSHOT) {
        each("snapshot", True);
    }
    if event.flags.has(Flags::LAST) {
        each("last", True);
    }
    if let (Kind::Definition, Some(known)) = (event.kind, known) {
        each("definition", Value::Definition(known));
    }
}

/// Returns whether the object of an event has its action. That of a trade or a statistic has it
/// only if it is not [`Action::New`].
#[must_use]
pub const fn has_action(event: &Event) -> bool {
    match event.kind {
        Kind::Level | Kind::Order | Kind::Definition => true,
        Kind::Trade | Kind::Statistic => !matches!(event.action, Action::New),
        Kind::Status | Kind::State | Kind::Clear => false,
    }
}

/// Returns the name of an action.
#[must_use]
pub const fn action(action: Action) -> &'static str {
    match action {
        Action::New => "new",
        Action::Change => "change",
        Action::Delete => "delete",
        Action::DeleteThru => "delete_thru",
        Action::DeleteFrom => "delete_from",
        Action::Overlay => "overlay",
        Action::Fill => "fill",
    }
}

const fn id_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Level => "orders",
        Kind::Order => "order_id",
        Kind::Trade => "trade_id",
        Kind::Definition => "revision",
        Kind::Status => "status",
        _ => "id",
    }
}

fn names(name: &Name<'_>, each: &mut dyn FnMut(&'static str, Value<'_>)) {
    if !name.symbol.is_empty() {
        each("symbol", Value::Text(name.symbol));
    }
    match name.id {
        SecurityId::None => {}
        SecurityId::Text(text) => each("security_id", Value::Text(text)),
        id => each("security_id", Value::Plain(&id)),
    }
    if name.source != IdSource::NONE {
        each("source", Value::Text(name.source.as_bytes()));
    }
}

/// Calls `each` with the names and values of a definition, without its instrument's names.
fn defined(known: &Instrument<'_>, each: &mut dyn FnMut(&'static str, Value<'_>)) {
    let of: &Definition<'_> = &known.definition;
    let texts = [
        ("description", of.description),
        ("type", of.security_type),
        ("cfi", of.cfi),
        ("currency", of.currency),
        ("market", of.market),
        ("segment", of.segment),
        ("underlying", of.underlying),
        ("maturity_month", of.maturity_month),
    ];
    for (key, value) in texts.into_iter().filter(|(_, value)| !value.is_empty()) {
        each(key, Value::Text(value));
    }
    let prices: [(&str, Price); 5] = [
        ("tick", of.tick),
        ("multiplier", of.multiplier),
        ("strike", of.strike),
        ("low_limit", of.low_limit),
        ("high_limit", of.high_limit),
    ];
    for (key, price) in prices.into_iter().filter(|(_, price)| price.is_defined()) {
        each(key, Value::Plain(&price));
    }
    if of.maturity != Event::NO_TIME {
        each("maturity", Value::Number(&of.maturity));
    }
    let numbers = [
        ("depth", of.depth),
        ("book_type", of.book_type.into()),
        ("status", known.status),
    ];
    for (key, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        each(key, Value::Number(&number));
    }
}

/// An object that is being written.
struct Object<'a> {
    out: &'a mut String,
    between: char,
}

impl<'a> Object<'a> {
    const fn begin(out: &'a mut String) -> Self {
        Self { out, between: '{' }
    }

    fn add(&mut self, key: &str, value: Value<'_>) {
        let out = &mut *self.out;
        out.push(self.between);
        self.between = ',';
        out.extend(["\"", key, "\":"]);
        // Writing to a string cannot fail.
        let _ = match value {
            Value::Number(number) => write!(out, "{number}"),
            Value::Plain(text) => write!(out, "\"{text}\""),
            Value::True => out.write_str("true"),
            Value::Text(bytes) => {
                text(bytes, out);
                Ok(())
            }
            Value::Definition(known) => {
                definition(known, out);
                Ok(())
            }
        };
    }

    fn end(self) {
        if self.between == '{' {
            self.out.push('{');
        }
        self.out.push('}');
    }
}

/// Appends a text as a JSON string; one that is not UTF-8 as an object with its bytes.
pub fn text(bytes: &[u8], out: &mut String) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        out.push_str("{\"raw\":\"");
        for byte in bytes {
            let _ = write!(out, "{byte:02x}");
        }
        return out.push_str("\"}");
    };
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => out.push(char),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_for_users_has_every_name() {
        let page = include_str!("../../../docs/mapping.md");
        let (_, page) = page.split_once("\n## Events as JSON\n").unwrap();
        let (page, _) = page.split_once("\n## ").unwrap();
        let words: Vec<_> = page.split('`').skip(1).step_by(2).collect();
        let has = |word: &str| assert!(words.contains(&word), "{word}");
        let name = Name {
            symbol: b"A",
            id: SecurityId::Number(7),
            source: IdSource::parse(b"8").unwrap(),
        };
        let known = Instrument {
            instrument: InstrumentId(3),
            definition: Definition::named(name),
            revision: 1,
            status: 17,
        };
        for kind in Kind::ALL {
            let full = Event {
                kind,
                id: 1,
                entry: b'0',
                level: 1,
                price: Price::from_units(1),
                size: 1,
                rpt_seq: 1,
                source: 1,
                ts_event: 1,
                ts_recv: 1,
                flags: Flags::LAST.with(Flags::SNAPSHOT),
                ..Event::EMPTY
            };
            has(kind.name());
            fields(&full, Some(&known), &mut |name, _| has(name));
        }
        let actions = (0..=5).filter_map(Action::from_number);
        for own in actions.chain([Action::Fill]) {
            has(action(own));
        }
    }

    #[test]
    fn names_that_are_not_utf_8_stay_different_and_feeds_are_told_apart() {
        let written = |symbol: &'static [u8], source| {
            let known = Instrument {
                instrument: InstrumentId(3),
                definition: Definition::named(Name {
                    symbol,
                    id: SecurityId::Text(symbol),
                    source: IdSource::NONE,
                }),
                revision: 1,
                status: 0,
            };
            let of = Event {
                number: 5,
                kind: Kind::Trade,
                instrument: InstrumentId(3),
                source,
                ..Event::EMPTY
            };
            let mut line = String::new();
            event(&of, Some(&known), &mut line);
            line
        };
        assert_eq!(
            written(b"\xcf\xe0", 2),
            concat!(
                r#"{"number":5,"kind":"trade","instrument":3,"feed":2,"#,
                r#""symbol":{"raw":"cfe0"},"security_id":{"raw":"cfe0"}}"#
            )
        );
        assert!(written(b"\xcf\xe1", 0).contains(r#""instrument":3,"symbol":{"raw":"cfe1"}"#));
    }

    #[test]
    fn a_trade_that_is_not_new_has_its_action() {
        let written = |kind, action| {
            let mut line = String::new();
            let of = Event {
                kind,
                action,
                ..Event::EMPTY
            };
            event(&of, None, &mut line);
            line
        };
        for kind in [Kind::Trade, Kind::Statistic] {
            assert!(!written(kind, Action::New).contains("action"));
            assert!(written(kind, Action::Delete).contains(r#""action":"delete""#));
        }
        assert!(!written(Kind::Clear, Action::Delete).contains("action"));
    }

    #[test]
    fn an_event_says_what_is_known_alone() {
        let name = Name {
            symbol: b"A\"\x01\n",
            id: SecurityId::Number(7),
            source: IdSource::parse(b"8").unwrap(),
        };
        let known = Instrument {
            instrument: InstrumentId(3),
            definition: Definition {
                name,
                tick: Price::from_units(10_000_000),
                ..Definition::default()
            },
            revision: 1,
            status: 17,
        };
        let of = Event {
            number: 5,
            kind: Kind::Definition,
            instrument: InstrumentId(3),
            id: 1,
            ts_recv: 0,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        let mut line = String::new();
        event(&of, Some(&known), &mut line);
        let expected = concat!(
            r#"{"number":5,"kind":"definition","action":"new","instrument":3,"#,
            r#""symbol":"A\"\u0001\n","security_id":"7","source":"8","revision":1,"last":true,"#,
            r#""definition":{"tick":"0.01","status":17}}"#
        );
        assert_eq!(line, expected);
        let timeless = Event {
            ts_recv: Event::NO_TIME,
            ..of
        };
        line.clear();
        event(&timeless, Some(&known), &mut line);
        assert_eq!(line, expected);
        line.clear();
        definition(
            &Instrument {
                definition: Definition::default(),
                status: 0,
                ..known
            },
            &mut line,
        );
        assert_eq!(line, "{}");
        line.clear();
        lost(1, 2, &mut line);
        assert_eq!(line, r#"{"lost":{"first":1,"last":2}}"#);
    }
}
