use super::*;
use crate::price::Price;
use proptest::prelude::*;

fn name<'a>(symbol: &'a str, id: &'a str) -> Name<'a> {
    Name {
        symbol: symbol.as_bytes(),
        id: SecurityId::parse(id.as_bytes()),
        source: IdSource::parse(b"8").unwrap(),
    }
}

fn of<'a>(symbol: &'a str, id: &'a str) -> Definition<'a> {
    Definition::named(name(symbol, id))
}

#[test]
fn instruments_are_found_by_their_names() {
    let mut table = Instruments::new(10);
    let first = table.define(&of("RIU3", "49634118")).unwrap();
    assert_eq!((first.change, first.revision), (Change::New, 1));
    let second = table.see(&name("", "7")).unwrap();
    let third = table.see(&name("SBER", "")).unwrap();
    assert_eq!(
        [first.instrument, second, third],
        [0, 1, 2].map(InstrumentId)
    );
    assert_eq!(table.by_symbol(b"RIU3"), Some(first.instrument));
    assert_eq!(table.find(&name("", "49634118")), Some(first.instrument));
    let other_source = IdSource::parse(b"4").unwrap();
    assert_eq!(table.by_id(SecurityId::Number(7), other_source), None);
    assert_eq!(table.by_symbol(b""), None);
    // The definition of an instrument first seen by its ID, and of one first seen by its symbol.
    assert_eq!(table.define(&of("GAZP", "7")).unwrap().instrument, second);
    assert_eq!(table.define(&of("SBER", "X9")).unwrap().instrument, third);
    assert_eq!(table.by_symbol(b"GAZP"), Some(second));
    assert_eq!(table.find(&name("", "X9")), Some(third));
    // A different ID is a different instrument, whatever its symbol.
    let fourth = table.define(&of("SBER", "8")).unwrap().instrument;
    assert_eq!(fourth, InstrumentId(3));
    assert_eq!(table.by_symbol(b"SBER"), Some(third));
    assert_eq!(table.see(&Name::default()), Err(Refused::NoName));
}

#[test]
fn an_instrument_that_is_defined_by_its_number_may_have_another_name() {
    let mut table = Instruments::new(10);
    let first = table.define(&of("A", "1")).unwrap().instrument;
    let second = table.define(&of("B", "2")).unwrap().instrument;
    let defined = table.define_at(second, &of("A", "3")).unwrap();
    assert_eq!((defined.instrument, defined.revision), (second, 2));
    let all: Vec<_> = table.of_symbol(b"A").collect();
    assert_eq!(all, [first, second]);
    assert_eq!(table.by_symbol(b"B"), None);
    assert_eq!(table.find(&name("", "2")), None);
    assert_eq!(table.find(&name("", "3")), Some(second));
}

#[test]
fn an_instrument_is_found_by_a_symbol_that_another_one_no_longer_has() {
    let mut table = Instruments::new(10);
    let mut places = |names: &[&str]| {
        for (symbol, id) in names.iter().map(|name| name.split_at(1)) {
            table.define(&of(symbol, id)).unwrap();
        }
        [b"A", b"B", b"C", b"D", b"E"].map(|symbol| {
            let found = table.by_symbol(symbol);
            found.map(|instrument| instrument.0)
        })
    };
    let all = places(&["A1", "B2", "A3", "A4", "B5"]);
    assert_eq!(all, [Some(0), Some(1), None, None, None]);
    // One that was not found by its symbol leaves the others as they are.
    assert_eq!(places(&["C3"]), [Some(0), Some(1), Some(2), None, None]);
    assert_eq!(places(&["C1"]), [Some(3), Some(1), Some(2), None, None]);
    let all = places(&["D4"]);
    assert_eq!(all, [None, Some(1), Some(2), Some(3), None]);
    let all = places(&["E2", "E5", "A3"]);
    assert_eq!(all, [Some(2), None, Some(0), Some(3), Some(1)]);
}

const fn at(sequence: u64) -> Place {
    Place {
        sequence,
        is_numbered: true,
    }
}

#[test]
fn a_status_or_a_definition_of_an_earlier_place_is_known() {
    let mut table = Instruments::new(10);
    let known = table.define(&of("A", "1")).unwrap().instrument;
    assert_eq!(table.set_status_at(known, 17, at(5)), Some(true));
    assert_eq!(table.set_status_at(known, 18, at(4)), None);
    assert_eq!(table.set_status_at(known, 17, at(5)), Some(false));
    assert_eq!(table.get(known).unwrap().status, 17);
    table.set_defined_at(known, Columns::ALL, at(7));
    table.define(&of("B", "1")).unwrap();
    assert_eq!(table.due(known, Columns::ALL, at(6)), Columns::NONE);
    assert_eq!(table.due(known, Columns::ALL, at(7)), Columns::ALL);
    assert_eq!(table.set_status_at(known, 18, at(4)), None);
    for (place, is_set) in [(3, Some(true)), (2, None), (3, Some(true))] {
        assert_eq!(table.set_status_at(InstrumentId::ALL, 2, at(place)), is_set);
    }
}

#[test]
fn a_status_without_a_number_is_of_its_place_only_if_it_is_another_one() {
    let mut table = Instruments::new(10);
    let known = table.define(&of("A", "1")).unwrap().instrument;
    let unnumbered = Place {
        sequence: 9,
        is_numbered: false,
    };
    for instrument in [known, InstrumentId::ALL] {
        table.set_status_at(instrument, 17, at(5));
        assert!(table.set_status_at(instrument, 17, unnumbered).is_some());
        assert_eq!(table.set_status_at(instrument, 18, at(6)), Some(true));
        assert!(table.set_status_at(instrument, 18, at(7)).is_some());
        assert_eq!(table.set_status_at(instrument, 17, at(6)), None);
        assert_eq!(table.set_status_at(instrument, 19, unnumbered), Some(true));
        assert_eq!(table.set_status_at(instrument, 18, at(8)), None);
    }
}

#[test]
fn a_definition_that_says_nothing_new_is_no_revision() {
    let mut table = Instruments::new(10);
    let mut definition = of("RIU3", "1");
    definition.tick = Price::from_units(5);
    table.define(&definition).unwrap();
    assert_eq!(table.define(&definition).unwrap().change, Change::Same);
    definition.description = "a longer text than it had, about futures on RTS".as_bytes();
    definition.name.symbol = b"RTS-9.13";
    let again = table.define(&definition).unwrap();
    assert_eq!((again.change, again.revision), (Change::Changed, 2));
    assert_eq!(table.by_symbol(b"RIU3"), None);
    assert_eq!(table.by_symbol(b"RTS-9.13"), Some(again.instrument));
    assert_eq!(table.get(again.instrument).unwrap().definition, definition);
    assert!(table.set_status(again.instrument, 17));
    assert!(!table.set_status(again.instrument, 17));
    // One that was closed is defined anew.
    table.set_closed(again.instrument, true);
    let anew = table.define(&definition).unwrap();
    assert_eq!((anew.change, anew.revision), (Change::New, 3));
    // By its symbol alone it is the same instrument, and keeps its ID.
    definition.name.id = SecurityId::None;
    assert_eq!(table.define(&definition).unwrap().change, Change::Same);
    assert_eq!(table.get(again.instrument).unwrap().status, 17);
}

#[test]
fn the_table_has_a_limit() {
    let mut table = Instruments::new(1000);
    for number in 0..100_000_u64 {
        let made_up = Name {
            id: SecurityId::Number(number * 7919),
            ..Name::default()
        };
        assert_eq!(table.see(&made_up).is_ok(), number < 1000);
    }
    assert_eq!((table.len(), table.refused()), (1000, 99_000));
    let long = "x".repeat(MAX_TEXT + 1);
    assert_eq!(table.define(&of(&long, "1")), Err(Refused::TooLong));
}

#[test]
fn a_csv_file_defines_instruments() {
    let mut table = Instruments::new(10);
    let text = "id,symbol,source,description,tick,maturity,status\r\n\
                49634118,RIU3,8,\"Futures, \"\"RTS\"\"\nSeptember\",10,20130916,17\r\n\
                \n7,SBER,8,,0.01,20130916-12:30:00,";
    assert_eq!(table.read_csv("a.csv", text), Ok(2));
    let found = table.get(InstrumentId(0)).unwrap();
    assert_eq!(found.definition.description, b"Futures, \"RTS\"\nSeptember");
    assert_eq!(found.definition.tick, Price::from_units(10_000_000_000));
    assert_eq!(found.definition.maturity, 1_379_289_600_000_000_000);
    assert_eq!((found.status, found.revision), (17, 1));
    let second = table.get(InstrumentId(1)).unwrap();
    assert_eq!(second.definition.maturity, 1_379_334_600_000_000_000);
    assert_eq!(table.read_csv("a.csv", text), Ok(0));
}

#[test]
fn errors_of_files_say_where() {
    let told = |text: &str| {
        let error = Instruments::new(2).read_csv("a.csv", text).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        told(""),
        "a.csv:1: the header line with the names of the columns is missing"
    );
    assert_eq!(told("symbol,sybol\n"), "a.csv:1: sybol: no such column");
    assert_eq!(told("id,id\n"), "a.csv:1: id: the column occurs twice");
    assert_eq!(
        told("symbol,id\nA,1\nB\n"),
        "a.csv:3: expected 2 values, one per column, found 1"
    );
    assert_eq!(
        told("symbol,tick\nA,x\n"),
        "a.csv:2: tick: `x` is not a number"
    );
    let large = told("symbol,tick\nA,1000000000000000000\n");
    assert_eq!(
        large,
        "a.csv:2: tick: 1000000000000000000 is out of range: a price must be below 9.2e9"
    );
    assert_eq!(told("symbol\nA\nA\n"), "a.csv:3: A occurs twice");
    assert_eq!(
        told("symbol\nA\nB\nC\n"),
        "a.csv:4: the table of instruments is full"
    );
    assert_eq!(
        told("symbol\n\"A\n"),
        "a.csv:2: a quoted value has no closing quote"
    );
    let toml = |text: &str| {
        let error = Instruments::new(2).read_toml("a.toml", text).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        toml("[[instrument]]\nsymbol = 'A'\n\n[[instrument]]\nsymbl = 'A'\n"),
        "a.toml:4: instrument: the instrument has neither Symbol(55) nor SecurityID(48)"
    );
    assert_eq!(
        toml("[[instrument]]\nsymbol = 'A'\ntik = 1\n"),
        "a.toml:3: instrument.tik: no such key"
    );
    assert_eq!(
        toml("[[instrument]]\nsymbol = 'A'\ntick = 'x'\n"),
        "a.toml:3: instrument.tick: `x` is not a number"
    );
    let mut table = Instruments::new(2);
    let text = "[[instrument]]\nsymbol = 'A'\nid = 12\ntick = 0.5\n";
    assert_eq!(table.read_toml("a.toml", text), Ok(1));
    let definition = table.get(InstrumentId(0)).unwrap().definition;
    assert_eq!(definition.tick, Price::from_units(500_000_000));
    assert_eq!(definition.name.id, SecurityId::Number(12));
}

proptest! {
    /// Compares the table with a list that is searched linearly.
    #[test]
    fn as_a_list(steps in proptest::collection::vec((0..6_usize, 0..6_usize, 0..40_usize), 1..60)) {
        let mut table = Instruments::new(1000);
        let mut list: Vec<(String, String, String)> = Vec::new();
        for (symbol, id, text) in steps {
            let symbol = ["", "A", "B", "C", "D", "E"][symbol];
            let id = ["", "1", "2", "01", "X", "Y"][id];
            if symbol.is_empty() && id.is_empty() {
                continue;
            }
            let text = "t".repeat(text * text);
            let by_id = list.iter().position(|(_, other, _)| !id.is_empty() && other == id);
            let is_it = |(other, ..): &(String, String, String)| other == symbol;
            let by_symbol = list.iter().position(is_it).filter(|_| !symbol.is_empty());
            let found = match id.is_empty() {
                true => by_symbol,
                false => by_id.or(by_symbol.filter(|at| list[*at].1.is_empty())),
            };
            // Names are assigned once here. The effect of a later one on a symbol that two have is
            // tested elsewhere.
            let is_taken = by_symbol.is_some() && by_symbol != found;
            if is_taken || found.is_some_and(|at| !symbol.is_empty() && list[at].0 != symbol) {
                continue;
            }
            let mut definition = of(symbol, id);
            definition.description = text.as_bytes();
            let defined = table.define(&definition).unwrap();
            let at = found.unwrap_or(list.len());
            prop_assert_eq!(defined.instrument, InstrumentId(at as u32));
            if at == list.len() {
                list.push(Default::default());
            }
            let entry = &mut list[at];
            entry.0 = if symbol.is_empty() { entry.0.clone() } else { symbol.to_owned() };
            entry.1 = if id.is_empty() { entry.1.clone() } else { id.to_owned() };
            entry.2 = text;
        }
        for (known, (symbol, id, text)) in table.iter().zip(&list) {
            prop_assert_eq!(known.definition.name.symbol, symbol.as_bytes());
            prop_assert_eq!(known.definition.name.id, SecurityId::parse(id.as_bytes()));
            prop_assert_eq!(known.definition.description, text.as_bytes());
        }
        prop_assert_eq!(table.len(), list.len());
    }

    /// Compares the instruments that are found by symbols that several have, and lose, with a list
    /// that is searched linearly.
    #[test]
    fn doubled_symbols_as_a_list(
        steps in proptest::collection::vec((0..3_usize, 0..8_usize), 1..80),
    ) {
        const SYMBOLS: [&str; 3] = ["A", "B", "C"];
        let mut table = Instruments::new(100);
        // The IDs and the places of the symbols.
        let mut list: Vec<(usize, usize)> = Vec::new();
        let mut found = [None; SYMBOLS.len()];
        for (symbol, id) in steps {
            table.define(&of(SYMBOLS[symbol], &(id + 1).to_string())).unwrap();
            let known = list.iter().position(|(own, _)| *own == id);
            let at = known.unwrap_or(list.len());
            match known {
                Some(at) if list[at].1 != symbol => {
                    let old = std::mem::replace(&mut list[at].1, symbol);
                    if found[old] == Some(at) {
                        found[old] = list.iter().position(|(_, other)| *other == old);
                    }
                }
                Some(_) => {}
                None => list.push((id, symbol)),
            }
            found[symbol] = found[symbol].or(Some(at));
            for (symbol, found) in SYMBOLS.iter().zip(found) {
                let found = found.map(|at| InstrumentId(at as u32));
                prop_assert_eq!(table.by_symbol(symbol.as_bytes()), found);
            }
        }
    }

    #[test]
    fn any_file_is_harmless(
        csv in "(symbol|id|tick|,|\"|\n|[A-C0-9 ]|\r){0,60}", toml in ".{0,60}",
    ) {
        let mut table = Instruments::new(20);
        let _ = table.read_csv("x", &csv);
        let _ = table.read_toml("x", &toml);
        let _ = table.read_toml("x", &format!("[[instrument]]\nsymbol={toml}"));
    }
}
