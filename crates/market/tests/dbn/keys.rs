//! DBN as events: which records are of one instrument, and what it is called.

use crate::from::{Read, read, with_symbols};
use crate::{event, schemas};
use dbn::RecordRef;
use fanfare_market::Instruments;
use fanfare_market::dbn::live::{SystemCode, system};
use fanfare_market::dbn::{FromDbn, RESTARTED, Schema, ToDbn, Wrong};
use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind, entry};
use fanfare_market::instruments::{Definition, Name, SecurityId};
use fanfare_market::state::code;

const AT_NO_DAY: u64 = u64::MAX;

/// Returns the record of a symbol that is valid from a time on.
fn mapping((publisher, id): (u16, u32), symbol: &str, from: u64) -> Vec<u8> {
    let mut bytes = vec![0; 176];
    (bytes[0], bytes[1]) = (44, 0x16);
    bytes[2..4].copy_from_slice(&publisher.to_le_bytes());
    bytes[4..8].copy_from_slice(&id.to_le_bytes());
    bytes[89..89 + symbol.len()].copy_from_slice(symbol.as_bytes());
    bytes[160..168].copy_from_slice(&from.to_le_bytes());
    bytes
}

/// Returns the record of a trade of this size.
fn trade((publisher, id): (u16, u32), size: u32) -> Vec<u8> {
    let mut of = dbn::MboMsg::default();
    (of.hd.publisher_id, of.hd.instrument_id) = (publisher, id);
    (of.action, of.size, of.ts_recv) = (b'T' as _, size, 1_000);
    RecordRef::from(&of).as_ref().to_vec()
}

fn restart() -> Vec<u8> {
    let mut bytes = Vec::new();
    system(SystemCode::Unset, RESTARTED, 1_000, &mut bytes);
    bytes
}

/// Returns the name of each instrument, and the sizes of its trades.
fn trades_of(symbols: &[(&str, u32, u32, &str)], records: &[Vec<u8>]) -> Vec<(String, Vec<i64>)> {
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let (from, events, outcome) = read(&with_symbols(3, symbols, &records));
    assert_eq!(outcome, Ok(()));
    let all = from.table.iter().map(|known| {
        let own = |event: &&Event| event.instrument == known.instrument;
        let own = events.iter().filter(own);
        let trades = own.filter(|event| event.kind == Kind::Trade);
        let sizes = trades.map(|trade| trade.size).collect();
        (known.definition.name.to_string(), sizes)
    });
    all.collect()
}

fn named(expected: &[(&str, &[i64])]) -> Vec<(String, Vec<i64>)> {
    let all = expected.iter();
    all.map(|(name, sizes)| ((*name).to_owned(), sizes.to_vec()))
        .collect()
}

/// Returns what is read of orders of two instruments that are defined behind their first ones.
fn heard_first(all: &[Schema]) -> (Read, Vec<Event>) {
    let mut table = Instruments::new(10);
    let id = |number: u32| SecurityId::Number(1_000 + u64::from(number));
    for number in 0..2 {
        let name = Name {
            id: id(number),
            ..Name::default()
        };
        table.see(&name).unwrap();
    }
    let mut to_dbn = ToDbn::new(schemas(all)).unwrap();
    let mut bytes = Vec::new();
    to_dbn.metadata("TEST", 0, &mut bytes);
    let of = |number: u32, kind: Kind, id: u64| Event {
        kind,
        id,
        instrument: InstrumentId(number),
        entry: entry::BID,
        action: Action::New,
        flags: Flags::LAST,
        ..event(1)
    };
    let mut write = |event: &Event, table: &Instruments| {
        to_dbn.write(event, 0, table, &mut bytes);
        assert_eq!(to_dbn.lost(), []);
    };
    for number in 0..2 {
        write(&of(number, Kind::Clear, 0), &table);
        write(&of(number, Kind::State, code::LIVE), &table);
        write(&of(number, Kind::Order, 1), &table);
    }
    for number in 0..2 {
        let symbol = format!("S{number}");
        let name = Name {
            symbol: symbol.as_bytes(),
            id: id(number),
            ..Name::default()
        };
        let definition = Definition::named(name);
        table.define(&definition).unwrap();
        write(&of(number, Kind::Definition, 1), &table);
    }
    for number in 0..2 {
        write(&of(number, Kind::Order, 2), &table);
    }
    let (from, events, outcome) = read(&bytes);
    assert_eq!(outcome, Ok(()));
    (from, events)
}

#[test]
fn a_symbol_that_has_no_place_takes_no_record_of_another_instrument() {
    let (one, two) = ((1, 1), (1, 2));
    let records = [
        mapping(one, "X", AT_NO_DAY),
        trade(one, 1),
        mapping(two, "Y", AT_NO_DAY),
        trade(two, 2),
        // From a day on the first number is that of a third instrument.
        mapping(one, "Z", 1_000),
        trade(two, 3),
        trade(one, 4),
        trade(two, 5),
    ];
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let bytes = with_symbols(3, &[], &records);
    let (mut from, mut table) = (FromDbn::new(1), Instruments::new(2));
    let (mut rest, mut trades, mut refused) = (&bytes[..], Vec::new(), 0);
    let mut take = |from: &FromDbn| {
        let all = from.events().iter();
        let of_trades = all.filter(|event| event.kind == Kind::Trade);
        trades.extend(of_trades.map(|event| (event.instrument.0, event.size)));
    };
    while !rest.is_empty() {
        let read = from.read(&mut table, rest);
        take(&from);
        rest = match read {
            Ok(len) => &rest[len.unwrap()..],
            Err(_) => {
                refused += 1;
                &rest[usize::from(rest[0]) * 4..]
            }
        };
    }
    from.pass_on(true);
    take(&from);
    assert_eq!(trades, [(0, 1), (1, 2), (1, 3), (1, 5)]);
    assert_eq!(refused, 2, "the symbol, and the record of its instrument");
}

#[test]
fn an_instrument_that_is_named_later_keeps_its_book() {
    for all in [&[Schema::Mbo, Schema::Definition][..], &[Schema::Mbo]] {
        let (from, events) = heard_first(all);
        assert_eq!(from.table.len(), 2);
        let said = |kind: Kind| {
            let all = events.iter().filter(move |event| event.kind == kind);
            all.map(|event| (event.instrument.0, event.id))
                .collect::<Vec<_>>()
        };
        assert_eq!(said(Kind::Clear), [(0, 0), (1, 0)]);
        assert_eq!(said(Kind::State), [(0, code::LIVE), (1, code::LIVE)]);
        assert_eq!(said(Kind::Order), [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(said(Kind::Definition), [(0, 1), (1, 1)]);
        for number in 0..2 {
            let found = from.table.by_symbol(format!("S{number}").as_bytes());
            assert_eq!(found, Some(InstrumentId(number)));
        }
    }
}

#[test]
fn instruments_of_one_symbol_are_told_apart() {
    let (one, two) = ((50_001, 0), (50_002, 1_000));
    let said = trades_of(
        &[],
        &[
            mapping(one, "X", AT_NO_DAY),
            trade(one, 1),
            mapping(two, "X", AT_NO_DAY),
            trade(two, 2),
            trade(one, 3),
        ],
    );
    assert_eq!(said, named(&[("X", &[1, 3]), ("X 50002:1000", &[2])]));
    // One that is renamed has the symbol of another one from then on.
    let said = trades_of(
        &[],
        &[
            mapping(one, "X", AT_NO_DAY),
            trade(one, 1),
            mapping(two, "Y", AT_NO_DAY),
            trade(two, 2),
            mapping(two, "X", AT_NO_DAY),
            trade(two, 3),
        ],
    );
    assert_eq!(said, named(&[("X", &[1]), ("X 50002:1000", &[2, 3])]));
}

#[test]
fn one_number_of_two_publishers_is_two_instruments() {
    let records = [trade((39, 1), 1), trade((40, 1), 2), trade((39, 1), 3)];
    let said = trades_of(&[], &records);
    assert_eq!(said, named(&[("1", &[1, 3]), ("40:1", &[2])]));
    let symbols = [("X", 19_700_101, 20_261_101, "1")];
    let said = trades_of(&symbols, &records);
    assert_eq!(said, named(&[("X", &[1, 3]), ("X 40:1", &[2])]));
}

#[test]
fn a_symbol_of_no_publisher_is_that_of_all() {
    let said = trades_of(
        &[],
        &[
            mapping((0, 1), "X", AT_NO_DAY),
            mapping((0, 2), "Y", AT_NO_DAY),
            trade((39, 1), 1),
            trade((39, 2), 2),
        ],
    );
    assert_eq!(said, named(&[("X", &[1]), ("Y", &[2])]));
}

#[test]
fn numbers_at_one_time_of_one_symbol_are_two_instruments() {
    let symbols = [
        ("X", 19_700_101, 19_700_103, "1"),
        ("X", 19_700_102, 19_700_103, "2"),
        ("X", 19_700_103, 19_700_104, "3"),
    ];
    let records = [trade((39, 1), 1), trade((39, 2), 2), trade((39, 3), 3)];
    let said = trades_of(&symbols, &records);
    assert_eq!(said, named(&[("X", &[1, 3]), ("X 0:2", &[2])]));
}

#[test]
fn a_symbol_of_certain_days_is_another_instrument() {
    let said = trades_of(
        &[],
        &[
            mapping((39, 1), "X", 5),
            trade((39, 1), 1),
            mapping((39, 1), "Y", 6),
            trade((39, 1), 2),
        ],
    );
    assert_eq!(said, named(&[("X", &[1]), ("Y", &[2])]));
}

#[test]
fn a_symbol_of_certain_days_for_all_is_that_of_a_publisher_that_comes_later() {
    let said = trades_of(
        &[],
        &[
            mapping((0, 1), "X", 5),
            trade((39, 1), 1),
            mapping((0, 1), "Y", 6),
            trade((39, 1), 2),
            trade((40, 1), 3),
        ],
    );
    assert_eq!(said, named(&[("X", &[1]), ("Y", &[2]), ("Y 40:1", &[3])]));
}

#[test]
fn numbers_begin_anew_behind_a_restart() {
    let (one, two) = ((50_001, 0), (50_001, 1));
    let said = trades_of(
        &[],
        &[
            mapping(one, "A", AT_NO_DAY),
            trade(one, 1),
            mapping(two, "B", AT_NO_DAY),
            trade(two, 2),
            restart(),
            mapping(one, "B", AT_NO_DAY),
            trade(one, 3),
            mapping(two, "A", AT_NO_DAY),
            trade(two, 4),
        ],
    );
    assert_eq!(said, named(&[("A", &[1, 4]), ("B", &[2, 3])]));
}

#[test]
fn the_time_of_arrival_stands_for_an_unknown_one() {
    let mut to_dbn = ToDbn::new(schemas(&[Schema::Trades])).unwrap();
    let mut bytes = Vec::new();
    to_dbn.metadata("TEST", 0, &mut bytes);
    let made = Event {
        kind: Kind::Trade,
        ts_event: Event::NO_TIME,
        flags: Flags::LAST,
        ..event(1)
    };
    let start = bytes.len();
    to_dbn.write(&made, 0, &Instruments::new(1), &mut bytes);
    assert_eq!(bytes[start + 8..start + 16], made.ts_recv.to_le_bytes());
    let (_, events, outcome) = read(&bytes);
    let times = (events[0].ts_event, events[0].ts_recv);
    assert_eq!((outcome, times), (Ok(()), (Event::NO_TIME, made.ts_recv)));
}

#[test]
fn the_time_of_a_record_without_flags_is_kept_if_that_of_arrival_is_unknown() {
    let mut to_dbn = ToDbn::new(schemas(&[Schema::Status])).unwrap();
    let mut bytes = Vec::new();
    to_dbn.metadata("TEST", 0, &mut bytes);
    let made = Event {
        kind: Kind::Status,
        id: 17,
        ts_recv: Event::NO_TIME,
        flags: Flags::LAST,
        ..event(1)
    };
    to_dbn.write(&made, 0, &Instruments::new(1), &mut bytes);
    let (_, events, outcome) = read(&bytes);
    assert_eq!((outcome, events[0].ts_event), (Ok(()), made.ts_event));
}

#[test]
fn an_instrument_of_the_metadata_is_for_its_numbers_there() {
    let symbols = [("X", 19_700_101, 19_700_102, "1")];
    let records = [
        mapping((39, 9), "X", AT_NO_DAY),
        trade((39, 9), 1),
        trade((39, 1), 2),
    ];
    let said = trades_of(&symbols, &records);
    assert_eq!(said, named(&[("X", &[2]), ("X 39:9", &[1])]));
    // The third number is of the time of the first one, which is not the last.
    let symbols = [
        ("X", 19_700_101, 19_700_104, "1"),
        ("X", 19_700_104, 19_700_105, "2"),
        ("X", 19_700_101, 19_700_102, "3"),
    ];
    let records = [trade((39, 1), 1), trade((39, 2), 2), trade((39, 3), 3)];
    let said = trades_of(&symbols, &records);
    assert_eq!(said, named(&[("X", &[1, 2]), ("X 0:3", &[3])]));
}

#[test]
fn a_symbol_of_certain_days_may_have_another_number() {
    for publisher in [0, 39] {
        let said = trades_of(
            &[],
            &[
                mapping((publisher, 1), "X", 5),
                trade((39, 1), 1),
                mapping((publisher, 2), "X", 6),
                trade((39, 2), 2),
            ],
        );
        assert_eq!(said, named(&[("X", &[1, 2])]));
    }
}

#[test]
fn an_event_has_the_symbol_of_its_time() {
    let one = (39, 1);
    let records = [
        trade(one, 1),
        mapping(one, "A", AT_NO_DAY),
        trade(one, 2),
        mapping(one, "B", AT_NO_DAY),
    ];
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let bytes = with_symbols(3, &[], &records);
    let (mut from, mut table) = (FromDbn::new(3), Instruments::new(10));
    let (mut at, mut said) = (0, Vec::new());
    loop {
        let read = from.read(&mut table, &bytes[at..]).unwrap();
        match read {
            Some(len) => at += len,
            None => from.finish(&mut table, &bytes[at..]).unwrap(),
        }
        let events = from.events().iter();
        for event in events.filter(|event| event.kind != Kind::State) {
            let known = table.get(event.instrument).unwrap();
            let symbol = String::from_utf8(known.definition.name.symbol.to_vec());
            said.push((event.kind, symbol.unwrap()));
        }
        if read.is_none() {
            break;
        }
    }
    let expected = [
        (Kind::Trade, ""),
        (Kind::Definition, "A"),
        (Kind::Trade, "A"),
        (Kind::Definition, "B"),
    ];
    assert_eq!(
        said,
        expected.map(|(kind, symbol)| (kind, symbol.to_owned()))
    );
}

#[test]
fn metadata_with_many_instruments_of_one_symbol_are_refused() {
    let numbers: Vec<String> = (0..257).map(|number| number.to_string()).collect();
    let symbols = numbers
        .iter()
        .map(|number| ("X", 19_700_101, 19_700_102, number.as_str()));
    let symbols: Vec<_> = symbols.collect();
    let begin = |symbols: &[(&str, u32, u32, &str)]| {
        let bytes = with_symbols(3, symbols, &[]);
        FromDbn::new(3).read(&mut Instruments::new(1_000), &bytes)
    };
    assert!(begin(&symbols[..256]).is_ok());
    let refused = begin(&symbols).unwrap_err();
    assert!(matches!(refused.why, Wrong::Metadata(_)), "{refused}");
}
