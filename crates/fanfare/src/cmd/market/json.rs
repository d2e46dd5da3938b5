//! Events and instruments as JSON.

use fanfare_market::Price;
use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind};
use fanfare_market::instruments::{Definition, IdSource, Instrument, Name, SecurityId};
use serde_json::{Map, Value};

/// Appends the JSON object of an event.
pub(crate) fn event(event: &Event, known: Option<&Instrument<'_>>, line: &mut String) {
    line.push_str(&Value::Object(object(event, known)).to_string());
}

/// Returns what an event says, without the fields that are unknown. Prices are strings, so that
/// they stay exact.
pub(crate) fn object(event: &Event, known: Option<&Instrument<'_>>) -> Map<String, Value> {
    let mut object = Map::new();
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    add("number", event.number.into());
    add("kind", event.kind.name().into());
    if matches!(event.kind, Kind::Level | Kind::Order | Kind::Definition) {
        add("action", action(event.action).into());
    }
    match event.instrument {
        InstrumentId::ALL => add("instrument", "all".into()),
        InstrumentId(number) => add("instrument", number.into()),
    };
    if let Some(known) = known {
        names(&known.definition.name, &mut object);
    }
    let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
    if event.entry != 0 {
        add("entry", char::from(event.entry).to_string().into());
    }
    if event.level != 0 {
        add("level", event.level.into());
    }
    if event.price.is_defined() {
        add("price", event.price.to_string().into());
    }
    if event.size != Event::NO_SIZE {
        add("size", event.size.into());
    }
    if event.id != 0 {
        add(id_name(event.kind), event.id.into());
    }
    if event.rpt_seq != 0 {
        add("rpt_seq", event.rpt_seq.into());
    }
    if event.ts_event != Event::NO_TIME {
        add("ts_event", event.ts_event.into());
    }
    if event.ts_recv != 0 {
        add("ts_recv", event.ts_recv.into());
    }
    if event.flags.has(Flags::SNAPSHOT) {
        add("snapshot", true.into());
    }
    if event.flags.has(Flags::LAST) {
        add("last", true.into());
    }
    if let (Kind::Definition, Some(known)) = (event.kind, known) {
        add("definition", Value::Object(definition(known)));
    }
    object
}

pub(crate) const fn action(action: Action) -> &'static str {
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

/// The line of a new start of the plant.
pub(crate) const RESTART: &str = r#"{"restart":true}"#;

/// Returns the line of events that are missing.
pub(crate) fn lost(first: u64, last: u64) -> String {
    format!(r#"{{"lost":{{"first":{first},"last":{last}}}}}"#)
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

fn text(bytes: &[u8]) -> Value {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn names(name: &Name<'_>, object: &mut Map<String, Value>) {
    if !name.symbol.is_empty() {
        object.insert("symbol".to_owned(), text(name.symbol));
    }
    if name.id != SecurityId::None {
        object.insert("security_id".to_owned(), name.id.to_string().into());
    }
    if name.source != IdSource::NONE {
        object.insert("source".to_owned(), name.source.to_string().into());
    }
}

/// What is known of an instrument.
pub(super) fn instrument(known: &Instrument<'_>) -> Value {
    let mut object = Map::new();
    object.insert("instrument".to_owned(), known.instrument.0.into());
    names(&known.definition.name, &mut object);
    object.insert("revision".to_owned(), known.revision.into());
    object.append(&mut definition(known));
    Value::Object(object)
}

/// What a definition says, without its names.
pub(crate) fn definition(known: &Instrument<'_>) -> Map<String, Value> {
    let of: &Definition<'_> = &known.definition;
    let mut object = Map::new();
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
        object.insert(key.to_owned(), text(value));
    }
    let prices: [(&str, Price); 5] = [
        ("tick", of.tick),
        ("multiplier", of.multiplier),
        ("strike", of.strike),
        ("low_limit", of.low_limit),
        ("high_limit", of.high_limit),
    ];
    for (key, price) in prices.into_iter().filter(|(_, price)| price.is_defined()) {
        object.insert(key.to_owned(), price.to_string().into());
    }
    if of.maturity != Event::NO_TIME {
        object.insert("maturity".to_owned(), of.maturity.into());
    }
    let numbers = [
        ("depth", of.depth),
        ("book_type", of.book_type.into()),
        ("status", known.status),
    ];
    for (key, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        object.insert(key.to_owned(), number.into());
    }
    object
}
