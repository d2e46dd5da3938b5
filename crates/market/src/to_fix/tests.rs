use super::*;
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Definition, Instruments, Lookup};
use crate::mapping::Mapping;
use crate::price::Price;
use fanfare_fix::codec::{Decoder, Encoder};
use fanfare_fix::dict::Switches;
use fanfare_fix::tag;
use proptest::prelude::*;

const VERSIONS: [Version; 5] = [
    Version::Fix42,
    Version::Fix43,
    Version::Fix44,
    Version::Fix50,
    Version::Fix50Sp2,
];

fn table() -> Instruments {
    let mut table = Instruments::new(10);
    let definition = Definition {
        name: Name {
            symbol: b"RIU3",
            id: SecurityId::Number(49_634_118),
            source: IdSource::parse(b"8").unwrap(),
        },
        description: "Futures on RTS".as_bytes(),
        security_type: b"FUT",
        cfi: b"FXXXXX",
        currency: b"RUB",
        market: b"RTSX",
        segment: b"D",
        tick: Price::from_units(10_000_000_000),
        multiplier: Price::from_units(2_500_000_000),
        maturity: 1_379_334_600_000_000_000,
        maturity_month: b"201309",
        ..Definition::default()
    };
    table.define(&definition).unwrap();
    let unnamed = Name {
        id: SecurityId::Text(b"X-1"),
        ..Name::default()
    };
    table.see(&unnamed).unwrap();
    table
}

/// Returns the dictionary with which a whole message of a version is checked.
fn judge(version: Version) -> Dictionary {
    let dictionary = Dictionary::built_in(version);
    match version.name().starts_with("FIX.5") {
        true => dictionary
            .over(&Dictionary::built_in(Version::Fixt11))
            .unwrap(),
        false => (*dictionary).clone(),
    }
}

/// Puts a body into a message and validates it. Returns the body, and its text with `|`.
fn validated(version: Version, msg_type: &[u8], body: &[u8]) -> (Vec<u8>, String) {
    let mut room = vec![0; body.len() + 300];
    let begin = match version.name().starts_with("FIX.5") {
        true => "FIXT.1.1",
        false => version.name(),
    };
    let mut message = Encoder::new(&mut room, begin.as_bytes(), msg_type);
    message
        .str(tag::SENDER_COMP_ID, "E")
        .str(tag::TARGET_COMP_ID, "C");
    message
        .u64(tag::MSG_SEQ_NUM, 1)
        .str(52, "20261120-12:34:56")
        .raw(body);
    let range = message.finish().unwrap();
    let bytes = room[range].to_vec();
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    let checked = judge(version).validate(&message, Switches::default());
    let text = String::from_utf8_lossy(body).replace('\x01', "|");
    assert!(checked.is_ok(), "{version:?}: {checked:?}: {text}");
    (bytes, text)
}

fn write(
    body: impl FnOnce(&mut FieldWriter<'_>) -> Result<(), WriteError>,
) -> Result<Vec<u8>, WriteError> {
    let mut room = vec![0; 1 << 16];
    let mut out = FieldWriter::new(&mut room);
    body(&mut out)?;
    Ok(out.written().unwrap().to_vec())
}

const TIME: u64 = 1_795_178_096_123_456_789;

fn level(entry: u8, level: u16, units: i64) -> Event {
    Event {
        kind: Kind::Level,
        entry,
        level,
        price: Price::from_units(units),
        size: 7,
        id: 3,
        rpt_seq: 11,
        ts_event: TIME,
        ..Event::EMPTY
    }
}

#[test]
fn definitions_lists_and_states_are_valid_in_each_version() {
    let table = table();
    let request = Request {
        id: b"q1",
        response: b"a1",
        total: Some(2),
        is_last: true,
    };
    let all = [InstrumentId(0), InstrumentId(1)];
    for version in VERSIONS {
        let to = ToFix::new(version);
        for instrument in all {
            let body = write(|out| to.definition(&table, &request, instrument, out).map(drop));
            let (_, text) = validated(version, b"d", &body.unwrap());
            assert!(text.contains("320=q1|322=a1|"), "{text}");
            let symbol = ["55=RIU3|48=49634118|22=8|", "55=[N/A]|48=X-1|"];
            assert!(text.contains(symbol[instrument.0 as usize]), "{text}");
        }
        let list = write(|out| to.list(&table, &request, &all, out).map(drop));
        match version {
            Version::Fix42 => assert_eq!(list, Err(WriteError::NoMessage)),
            _ => _ = validated(version, b"y", &list.unwrap()),
        }
        let text = |id: InstrumentId| (id.0 == 1).then_some(&b"feed=two"[..]);
        let list = write(|out| to.list_with(&table, &request, &all, text, out).map(drop));
        if let Ok(list) = list {
            let (_, text) = validated(version, b"y", &list);
            assert!(text.ends_with("|58=feed=two|"), "{text}");
        }
        let mut status = Event {
            kind: Kind::Status,
            id: 2,
            ..Event::EMPTY
        };
        let body = write(|out| to.status(&table, b"r", &status, out)).unwrap();
        let (_, text) = validated(version, b"f", &body);
        assert_eq!(text, "324=r|55=RIU3|48=49634118|22=8|326=2|");
        let body = write(|out| to.session_status(b"", b"1", &status, out)).unwrap();
        validated(version, b"h", &body);
        status.id = 9_999;
        let body = write(|out| to.status(&table, b"r", &status, out));
        assert_eq!(body, Err(WriteError::Value { tag: 326 }));
    }
    let left_out = |version| {
        let mut room = [0; 1000];
        let mut out = FieldWriter::new(&mut room);
        let to = ToFix::new(version);
        to.definition(&table, &request, InstrumentId(0), &mut out)
    };
    assert_eq!(left_out(Version::Fix50Sp2), Ok(0));
    // It has no MarketSegmentID(1300).
    assert_eq!(left_out(Version::Fix50), Ok(1));
    // CFICode(461) too, the tick, and the maturity's date and time.
    assert_eq!(left_out(Version::Fix42), Ok(5));
}

#[test]
fn the_limits_of_prices_are_those_of_the_market_where_the_version_has_them_there() {
    let mut table = Instruments::new(10);
    let mut definition = Definition {
        name: Name::of_symbol(b"RIU3"),
        market: b"RTSX",
        segment: b"D",
        low_limit: Price::from_units(-1_500_000_000),
        high_limit: Price::from_units(0),
        ..Definition::default()
    };
    let request = Request {
        id: b"q1",
        response: b"a1",
        total: None,
        is_last: true,
    };
    let to = ToFix::new(Version::Fix50Sp2);
    let mut text = |definition: &Definition<'_>| {
        table.define(definition).unwrap();
        let first = InstrumentId(0);
        let body = write(|out| to.definition(&table, &request, first, out).map(drop));
        validated(Version::Fix50Sp2, b"d", &body.unwrap())
    };
    let (bytes, limited) = text(&definition);
    let of_market = "|207=RTSX|1310=1|1301=RTSX|1300=D|1148=-1.5|1149=0|";
    assert!(limited.ends_with(of_market), "{limited}");
    let mut read = Instruments::new(10);
    let mapping = Mapping::built_in("builtin:fix").unwrap();
    let mut mapper = mapping.for_fix(&judge(Version::Fix50Sp2), 0).unwrap();
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    mapper.message(&mut read, 0, &message).unwrap();
    let known = read.instrument(InstrumentId(0)).unwrap();
    assert_eq!(known.definition, definition);
    // An entry has to begin with the market.
    definition.market = b"";
    assert!(!text(&definition).1.contains("1310="));
}

#[test]
fn levels_of_implied_orders_are_no_values_of_the_session() {
    let body = b"268=3\x01279=0\x01269=E\x0155=RIU3\x01270=99\x011023=1\x01\
        279=0\x01269=E\x0155=RIU3\x01270=98\x011023=2\x01279=0\x01269=F\x0155=RIU3\x01270=102\x01";
    let (bytes, _) = validated(Version::Fix50Sp2, b"X", body);
    let mapping = Mapping::built_in("builtin:fix").unwrap();
    let mut mapper = mapping.for_fix(&judge(Version::Fix50Sp2), 0).unwrap();
    let mut decoder = Decoder::new();
    let message = decoder.decode(&bytes).unwrap();
    mapper.message(&mut table(), 0, &message).unwrap();
    let read = mapper.events().iter();
    let read: Vec<_> = read.map(|event| (event.kind, event.entry)).collect();
    assert_eq!(read, [(Kind::Statistic, b'F')]);
    assert_eq!(mapper.counts().ignored, 2);
}

#[test]
fn a_book_that_is_empty_is_said_where_the_version_can() {
    let table = table();
    let clear = Event {
        flags: Flags::SNAPSHOT,
        ..Event::EMPTY
    };
    for version in VERSIONS {
        let to = ToFix::new(version);
        let snapshot = write(|out| to.snapshot(&table, b"r", InstrumentId(0), &[clear], out));
        let change = write(|out| to.changes(&table, b"r", &[clear], out));
        let (_, text) = validated(version, b"W", &snapshot.unwrap());
        match change {
            Ok(change) => {
                assert!(text.ends_with("268=1|269=J|"), "{text}");
                validated(version, b"X", &change);
            }
            Err(error) => {
                assert_eq!(error, WriteError::Value { tag: 269 });
                assert!(text.ends_with("|268=0|"), "{text}");
                assert!(version.name() < "FIX.5", "{version:?}");
            }
        }
    }
}

#[test]
fn times_have_milliseconds_before_the_version_with_finer_ones() {
    let table = table();
    for version in [&VERSIONS[..], &[Version::Fix50Sp1]].concat() {
        let to = ToFix::new(version);
        let bid = level(b'0', 1, 5_000_000_000);
        let body = write(|out| to.changes(&table, b"r1", &[bid], out)).unwrap();
        let text = String::from_utf8_lossy(&body).replace('\x01', "|");
        let time = match version {
            Version::Fix50Sp2 => "|273=12:34:56.123456789|",
            _ => "|273=12:34:56.123|",
        };
        assert!(text.contains(time), "{version:?}: {text}");
    }
}

#[test]
fn what_is_no_entry_is_an_error() {
    let table = table();
    let to = ToFix::new(Version::Fix42);
    let of = |event: Event| write(|out| to.changes(&table, b"r", &[event], out));
    let level = level(b'0', 1, 5);
    let status = Event {
        kind: Kind::Status,
        ..level
    };
    assert_eq!(of(status), Err(WriteError::Kind));
    let through = Event {
        action: Action::DeleteThru,
        ..level
    };
    assert_eq!(of(through), Err(WriteError::Value { tag: 279 }));
    let volume = Event {
        entry: b'B',
        ..level
    };
    assert_eq!(of(volume), Err(WriteError::Value { tag: 269 }));
    let nobody = Event {
        instrument: InstrumentId(9),
        ..level
    };
    assert_eq!(of(nobody), Err(WriteError::Instrument));
    let snapshot = write(|out| to.snapshot(&table, b"r", InstrumentId(1), &[level], out));
    assert_eq!(snapshot, Err(WriteError::Mixed));
    let unpriced = Event {
        price: Price::UNDEFINED,
        ..level
    };
    let snapshot = write(|out| to.snapshot(&table, b"r", InstrumentId(0), &[unpriced], out));
    assert_eq!(snapshot, Err(WriteError::Missing { tag: 270 }));
}

fn any_event() -> impl Strategy<Value = Event> {
    let kinds = prop_oneof![
        Just((Kind::Level, b'0')),
        Just((Kind::Level, b'1')),
        Just((Kind::Order, b'0')),
        Just((Kind::Trade, b'2')),
        Just((Kind::Statistic, b'4')),
    ];
    let numbers = (
        1..200_u16,
        -1_000_000_000_000..1_000_000_000_000_i64,
        0..1000_i64,
        1..99_u64,
    );
    (
        kinds,
        numbers,
        0..3_u8,
        0..2_u32,
        1..99_u32,
        0..86_400_000_000_000_u64,
    )
        .prop_map(
            |((kind, entry), (number, units, size, id), action, instrument, rpt_seq, time)| Event {
                kind,
                entry,
                level: if kind == Kind::Level { number } else { 0 },
                price: Price::from_units(units),
                size,
                id: if kind == Kind::Statistic { 0 } else { id },
                action: [Action::New, Action::Change, Action::Delete][usize::from(action)],
                instrument: InstrumentId(instrument),
                rpt_seq,
                ts_event: TIME - TIME % 86_400_000_000_000 + time - time % 1_000_000,
                ..Event::EMPTY
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Checks that messages of all versions are valid, and that the standard mapping reads the same
    /// events.
    #[test]
    fn what_is_written_is_valid_and_read_as_it_was(
        events in proptest::collection::vec(any_event(), 1..12), is_snapshot: bool,
    ) {
        for version in VERSIONS {
            let (to, mut table) = (ToFix::new(version), table());
            let mut events = events.clone();
            if is_snapshot {
                for event in &mut events {
                    (event.instrument, event.action) = (InstrumentId(0), Action::New);
                }
            }
            let body = write(|out| match is_snapshot {
                true => to.snapshot(&table, b"r1", InstrumentId(0), &events, out),
                false => to.changes(&table, b"r1", &events, out),
            });
            let msg_type: &[u8] = if is_snapshot { b"W" } else { b"X" };
            let (bytes, text) = validated(version, msg_type, &body.unwrap());
            let mapping = Mapping::built_in("builtin:fix").unwrap();
            let mut mapper = mapping.for_fix(&judge(version), 0).unwrap();
            let mut decoder = Decoder::new();
            let message = decoder.decode(&bytes).unwrap();
            mapper.message(&mut table, 0, &message).unwrap();
            let read = mapper.events().iter().filter(|event| event.kind != Kind::Clear);
            let read: Vec<Event> = read.copied().collect();
            prop_assert_eq!(read.len(), events.len(), "{}", text);
            let judge = judge(version);
            let group = judge.body(msg_type).and_then(|body| body.group(268)).unwrap();
            for (read, event) in read.iter().zip(&events) {
                let has = |tag: &str| text.contains(&format!("|{tag}="));
                let mut expected = Event { flags: read.flags, ts_recv: 0, ..*event };
                // Fields that a version does not have are not read.
                expected.rpt_seq *= u32::from(has("83"));
                let has_id = match expected.kind {
                    Kind::Level => has("346"),
                    // Some versions of W have no MDEntryID(278).
                    Kind::Trade => group.has(278) || group.has(1003),
                    _ => true,
                };
                expected.id *= u64::from(has_id);
                prop_assert_eq!(*read, expected, "{:?} {}", version, text);
            }
        }
    }
}
