//! The example, on a log of a few events.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../examples/follow.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod follow;

use fanfare_history::{Writer, WriterConfig};
use fanfare_market::instruments::{Definition, Instrument, Name};
use fanfare_market::{Action, Event, Flags, InstrumentId, Kind, Price};
use std::path::Path;

/// Returns a trade at 2.5.
fn trade(number: u64, action: Action, size: i64, flags: Flags) -> [u8; Event::SIZE] {
    let trade = Event {
        number,
        kind: Kind::Trade,
        action,
        size,
        price: Price::from_units(2_500_000_000),
        flags,
        ..Event::EMPTY
    };
    trade.to_bytes()
}

/// Returns what is printed from this number on.
fn printed(folder: &Path, number: Option<&str>) -> Vec<String> {
    let mut reader = follow::open(folder, number.map(Into::into)).unwrap();
    let mut lines = Vec::new();
    while reader
        .read(usize::MAX, |delivery| lines.extend(follow::line(delivery)))
        .unwrap()
        > 0
    {}
    lines
}

#[test]
fn new_trades_are_printed_from_a_number_on() {
    let folder = std::env::temp_dir().join(format!("fanfare-follow-{}", std::process::id()));
    let (mut writer, _) = Writer::open(&folder, WriterConfig::default(), Vec::new(), 1).unwrap();
    let name = Name::of_symbol(b"RIU3");
    let instrument = Instrument {
        instrument: InstrumentId(0),
        definition: Definition::named(name),
        revision: 1,
        status: 0,
    };
    let mut bytes = Vec::new();
    instrument.write(&mut bytes);
    writer.instrument(&bytes).unwrap();
    let trades = [
        trade(1, Action::New, 7, Flags::NONE),
        trade(2, Action::New, Event::NO_SIZE, Flags::NONE),
        trade(3, Action::Delete, 7, Flags::NONE),
        trade(4, Action::New, 7, Flags::SNAPSHOT),
        trade(5, Action::New, 9, Flags::LAST),
    ];
    writer.events(&trades).unwrap();
    writer.commit().unwrap();
    let all = ["1 RIU3 7 at 2.5", "2 RIU3 - at 2.5", "5 RIU3 9 at 2.5"];
    assert_eq!(printed(&folder, None), all);
    assert_eq!(printed(&folder, Some("2")), all[1..]);
    let error = follow::open(&folder, Some("12x".into())).unwrap_err();
    assert_eq!(error.to_string(), "invalid digit found in string");
    std::fs::remove_dir_all(folder).unwrap();
}
