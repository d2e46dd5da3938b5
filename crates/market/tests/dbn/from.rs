//! DBN as events: records that Fanfare wrote are restored, and those of others are read.

use crate::{event, schemas, table};
use dbn::RecordRef;
use fanfare_market::dbn::{FromDbn, FromDbnError, Schema, ToDbn, Wrong};
use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind, entry};
use fanfare_market::state::{code, lack};
use fanfare_market::{Book, BookConfig, Instruments, Price, Side};
use fastrand::Rng;

/// The state that was read besides events.
pub(crate) struct Read {
    pub(crate) table: Instruments,
    version: Option<u8>,
}

/// Reads a stream in pieces. Returns the events, and the fault.
pub(crate) fn read(bytes: &[u8]) -> (Read, Vec<Event>, Result<(), FromDbnError>) {
    let (mut from, mut table) = (FromDbn::new(3), Instruments::new(100));
    let (mut all, mut at) = (Vec::new(), 0);
    let outcome = loop {
        match from.read(&mut table, &bytes[at..]) {
            Ok(None) => {
                let outcome = from.finish(&mut table, &bytes[at..]);
                all.extend_from_slice(from.events());
                break outcome;
            }
            Ok(Some(len)) => {
                at += len;
                all.extend_from_slice(from.events());
            }
            Err(error) => {
                all.extend_from_slice(from.events());
                break Err(error);
            }
        }
    };
    let version = from.version();
    (Read { table, version }, all, outcome)
}

fn written(events: &[Event], all: &[Schema], table: &Instruments) -> Vec<u8> {
    let mut to_dbn = ToDbn::new(schemas(all)).unwrap();
    let mut bytes = Vec::new();
    to_dbn.metadata("TEST", 0, &mut bytes);
    for event in events {
        to_dbn.write(event, 0, table, &mut bytes);
        assert_eq!(to_dbn.lost(), []);
    }
    bytes
}

/// Returns the events of two instruments with empty, live books.
fn beginning() -> impl Iterator<Item = Event> {
    let both = (0..2).flat_map(|number| [(number, Kind::Clear, 0), (number, Kind::State, 1)]);
    both.map(|(number, kind, id)| Event {
        kind,
        id,
        price: Price::UNDEFINED,
        size: Event::NO_SIZE,
        instrument: InstrumentId(number),
        flags: Flags::LAST,
        rpt_seq: u32::from(kind == Kind::Clear),
        ..event(1)
    })
}

/// Returns a change of an order in the book, or a new one.
fn order(rng: &mut Rng, book: &Book, base: Event) -> Event {
    let id = rng.u64(1..30);
    let known = book.order(id);
    let (action, size) = match known {
        None => (Action::New, base.size),
        Some((_, _, size)) if rng.bool() => (Action::Delete, size),
        Some((_, _, size)) if rng.bool() => (Action::Fill, rng.i64(1..=size)),
        Some(_) => (Action::Change, base.size),
    };
    let (entry, price) = match known {
        Some((side, price, _)) => (side.entry(), price),
        None => (base.entry, base.price),
    };
    Event {
        id,
        action,
        size,
        price,
        entry,
        ..base
    }
}

/// Returns a change of a level in the book, or a new one.
fn level(rng: &mut Rng, book: &Book, side: Side, base: Event) -> Event {
    let known = book.depth(side).find(|level| level.price == base.price);
    let action = match known {
        None => Action::New,
        Some(_) if rng.bool() => Action::Delete,
        Some(_) => Action::Change,
    };
    let id = match action {
        Action::Delete => 0,
        _ => rng.u64(0..4),
    };
    // A change without effect is none.
    let is_same = known.is_some_and(|own| (own.size, own.orders) == (base.size, id));
    let size = base.size + i64::from(is_same);
    Event {
        action,
        id,
        size,
        ..base
    }
}

/// Returns random changes of two books, valid for a [`Book`], with trades.
fn walk(seed: u64, kind: Kind) -> Vec<Event> {
    let mut rng = Rng::with_seed(seed);
    let config = match kind {
        Kind::Order => BookConfig::by_order(1_000, 1_000).unwrap(),
        _ => BookConfig::by_price(10).unwrap(),
    };
    let mut books = [(); 2].map(|()| Book::new(&config.may_cross(true)));
    let mut all: Vec<_> = beginning().collect();
    let mut numbers = [1, 1];
    for _ in 0..400 {
        let at = rng.usize(..2);
        numbers[at] += 1;
        let side = Side::BOTH[rng.usize(..2)];
        let offset = 100 * i64::from(side == Side::Offer);
        let base = Event {
            instrument: InstrumentId(at as u32),
            entry: side.entry(),
            price: Price::from_units((offset + rng.i64(0..9)) * 1_000_000_000),
            size: rng.i64(1..50),
            flags: if rng.bool() { Flags::LAST } else { Flags::NONE },
            kind,
            ..event(numbers[at])
        };
        let event = match kind {
            _ if rng.u8(..6) == 0 => Event {
                kind: Kind::Trade,
                entry: entry::TRADE,
                ..base
            },
            Kind::Order => order(&mut rng, &books[at], base),
            _ => level(&mut rng, &books[at], side, base),
        };
        let _ = books[at].apply(&event);
        all.push(event);
    }
    for (number, event) in (1..).zip(&mut all) {
        event.number = number;
    }
    all
}

#[test]
fn what_was_written_comes_back() {
    let table = table(2);
    for seed in 0..20 {
        for kind in [Kind::Order, Kind::Level] {
            let events = walk(seed, kind);
            let schema = match kind {
                Kind::Order => Schema::Mbo,
                _ => Schema::Mbp10,
            };
            let bytes = written(&events, &[schema, Schema::Trades], &table);
            let (from, back, outcome) = read(&bytes);
            assert_eq!(outcome, Ok(()));
            // Books begin with their first change, and earlier state is not in the stream.
            let changes = |events: &[Event]| {
                let no_state = events
                    .iter()
                    .filter(|event| !matches!(event.kind, Kind::State | Kind::Clear));
                no_state
                    .map(|event| Event {
                        number: 0,
                        ..*event
                    })
                    .collect::<Vec<_>>()
            };
            let (back_changes, mut expected) = (changes(&back), changes(&events));
            // Instruments are numbered in the order of their appearance.
            let name =
                |id: InstrumentId| from.table.get(id).unwrap().definition.name.symbol.to_vec();
            for event in &mut expected {
                let symbol = format!("S{}", event.instrument.0);
                event.instrument = from.table.by_symbol(symbol.as_bytes()).unwrap();
                assert_eq!(name(event.instrument), symbol.as_bytes());
                if event.kind == Kind::Trade {
                    // Records of trades have neither a side of Fanfare's nor an ID.
                    event.id = 0;
                }
            }
            assert_eq!(back_changes.len(), expected.len(), "seed {seed} {kind:?}");
            for (back, expected) in back_changes.iter().zip(&expected) {
                assert_eq!(back, expected, "seed {seed}");
            }
            assert!(
                back.iter()
                    .zip(1..)
                    .all(|(event, number)| event.number == number)
            );
        }
    }
}

#[test]
fn definitions_statuses_and_values_come_back() {
    let mut table = Instruments::new(10);
    let name = fanfare_market::instruments::Name {
        symbol: b"RIU3",
        id: fanfare_market::instruments::SecurityId::Number(49_634_118),
        ..Default::default()
    };
    let definition = fanfare_market::instruments::Definition {
        name,
        currency: b"RUB",
        cfi: b"FFXXXX",
        security_type: b"FUT",
        market: b"MOEX",
        segment: b"12",
        underlying: b"RTS",
        maturity_month: b"202609w3",
        tick: Price::from_units(10_000_000_000),
        multiplier: Price::from_units(1_500_000_000),
        strike: Price::from_units(7),
        low_limit: Price::from_units(-5),
        high_limit: Price::from_units(900),
        maturity: 1_700_000_000_000_000_000,
        depth: 20,
        ..Default::default()
    };
    table.define(&definition).unwrap();
    let of = |kind, id| Event {
        kind,
        id,
        price: Price::UNDEFINED,
        size: Event::NO_SIZE,
        rpt_seq: 0,
        flags: Flags::LAST,
        ..event(1)
    };
    let mut events = vec![of(Kind::Definition, 1)];
    events.extend([1, 2, 5, 17, 18, 21, 22, 24, 25, 26].map(|code| of(Kind::Status, code)));
    for entry in [
        b'4', b'6', b'8', b'7', b'O', b'N', b'C', b'5', b'9', b'Q', b'x',
    ] {
        events.push(Event {
            entry,
            price: Price::from_units(5),
            rpt_seq: 9,
            ..of(Kind::Statistic, 0)
        });
    }
    events.push(Event {
        entry: b'B',
        size: 1 << 40,
        action: Action::Delete,
        ..of(Kind::Statistic, 0)
    });
    // It ends, and is traded again.
    let [mut again, mut unknown] = [of(Kind::Definition, 2), of(Kind::State, code::RECOVERING)];
    (again.flags, unknown.level) = (Flags::NONE, lack::SNAPSHOT);
    events.extend([of(Kind::State, code::CLOSED), again, unknown]);
    for (number, event) in (1..).zip(&mut events) {
        event.number = number;
    }
    let all = [Schema::Definition, Schema::Status, Schema::Statistics];
    let (from, back, outcome) = read(&written(&events, &all, &table));
    assert_eq!((outcome, back), (Ok(()), events));
    let known = from.table.get(InstrumentId(0)).unwrap();
    assert_eq!((known.definition, known.status), (definition, 26));
}

#[test]
fn an_end_that_is_written_again_defines_nothing() {
    let mut table = table(0);
    let definition = fanfare_market::instruments::Definition {
        name: fanfare_market::instruments::Name {
            symbol: b"RIU3",
            ..Default::default()
        },
        ..Default::default()
    };
    table.define(&definition).unwrap();
    let of = |kind, id| Event {
        kind,
        id,
        flags: Flags::LAST,
        rpt_seq: 0,
        ..event(1)
    };
    let [defined, end] = [(Kind::Definition, 1), (Kind::State, code::CLOSED)];
    for all in [
        &[Schema::Definition][..],
        &[Schema::Definition, Schema::Mbo],
    ] {
        let mut to_dbn = ToDbn::new(schemas(all)).unwrap();
        let mut bytes = Vec::new();
        to_dbn.metadata("TEST", 0, &mut bytes);
        for (kind, id) in [defined, end] {
            to_dbn.write(&of(kind, id), 0, &table, &mut bytes);
        }
        to_dbn.lose_all();
        to_dbn.write(&of(end.0, end.1), 0, &table, &mut bytes);
        let (from, events, outcome) = read(&bytes);
        let said: Vec<_> = events.iter().map(|event| (event.kind, event.id)).collect();
        assert_eq!((outcome, said), (Ok(()), vec![defined, end, end]));
        assert_eq!(from.table.get(InstrumentId(0)).unwrap().revision, 1);
    }
}

/// Returns a stream of a version with these records, and the symbol of instrument 5482 in its
/// metadata, which the crate `dbn` reads too.
fn of_version(version: u8, records: &[&[u8]]) -> Vec<u8> {
    let symbols = [("ESH1", 20_261_101, 20_261_130, "5482")];
    let bytes = with_symbols(version, &symbols, records);
    let decoder = dbn::decode::DbnDecoder::new(&bytes[..]).unwrap();
    let metadata = dbn::decode::DbnMetadata::metadata(&decoder);
    assert_eq!(metadata.mappings[0].raw_symbol, "ESH1");
    bytes
}

/// Returns a stream of a version with these records, and in its metadata symbols with the first
/// day, the day behind the last one, and the number.
pub(crate) fn with_symbols(
    version: u8,
    symbols: &[(&str, u32, u32, &str)],
    records: &[&[u8]],
) -> Vec<u8> {
    let room = if version == 1 { 22 } else { 71 };
    let text = |text: &str, room: usize| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(room, 0);
        bytes
    };
    let mut body = text("OTHERS", 16);
    body.extend(u16::MAX.to_le_bytes());
    body.extend([0; 24]);
    if version == 1 {
        body.extend([0; 8]);
    }
    // By raw symbol, to the number of the instrument.
    body.extend([1, 0, 0]);
    if version > 1 {
        body.extend(71u16.to_le_bytes());
    }
    body.resize(100, 0);
    body.extend([0; 16]);
    body.extend((symbols.len() as u32).to_le_bytes());
    for &(symbol, from, to, number) in symbols {
        body.extend(text(symbol, room));
        for part in [1, from, to] {
            body.extend(part.to_le_bytes());
        }
        body.extend(text(number, room));
    }
    let mut bytes = b"DBN".to_vec();
    bytes.push(version);
    bytes.extend((body.len() as u32).to_le_bytes());
    bytes.extend(body);
    for record in records {
        bytes.extend_from_slice(record);
    }
    bytes
}

#[test]
fn a_number_is_the_instrument_of_its_day() {
    let symbols = [
        ("AA", 20_261_101, 20_261_102, "1"),
        ("AA", 20_261_102, 20_261_103, "2"),
        ("BB", 20_261_101, 20_261_102, "2"),
        ("BB", 20_261_102, 20_261_103, "1"),
    ];
    let (first, day) = (1_793_491_200_000_000_000, 86_400_000_000_000);
    // The sizes of AA are 10, those of BB 20.
    let records = [
        (1, first, 10),
        (2, first + day - 1, 20),
        (1, first + day, 20),
        (2, first + 2 * day - 1, 10),
        // No symbol is of this day, and the numbers stay what they are.
        (2, first + 2 * day, 10),
    ];
    let records = records.map(|(number, ts_recv, size)| {
        let mut trade = dbn::MboMsg::default();
        (trade.hd.instrument_id, trade.action) = (number, b'T' as _);
        (trade.ts_recv, trade.size) = (ts_recv, size);
        RecordRef::from(&trade).as_ref().to_vec()
    });
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let (from, events, outcome) = read(&with_symbols(3, &symbols, &records));
    assert_eq!(outcome, Ok(()));
    let trades = events.iter().filter(|event| event.kind == Kind::Trade);
    let trades: Vec<_> = trades
        .map(|trade| {
            let known = from.table.get(trade.instrument).unwrap();
            (known.definition.name.symbol, trade.size)
        })
        .collect();
    let (aa, bb) = ((&b"AA"[..], 10), (&b"BB"[..], 20));
    assert_eq!(trades, [aa, bb, bb, aa, aa]);
}

/// Returns a definition and a value of a version.
macro_rules! records {
    ($version:ident) => {{
        let text = |text: &str| {
            let mut room = [0; 80];
            for (place, byte) in room.iter_mut().zip(text.bytes()) {
                *place = byte as _;
            }
            room
        };
        let mut of = dbn::$version::InstrumentDefMsg::default();
        (of.hd.instrument_id, of.hd.ts_event, of.ts_recv) = (5482, 6, 7);
        (of.min_price_increment, of.expiration, of.strike_price) = (250_000_000, 99, 4);
        (
            of.high_limit_price,
            of.low_limit_price,
            of.unit_of_measure_qty,
        ) = (9, 8, 50);
        (of.raw_instrument_id, of.market_depth, of.market_segment_id) = (77, 10, 64);
        (of.maturity_year, of.maturity_month) = (2021, 3);
        let room = of.raw_symbol.len();
        of.raw_symbol.copy_from_slice(&text("ESH1")[..room]);
        of.currency.copy_from_slice(&text("USD")[..4]);
        of.exchange.copy_from_slice(&text("XCME")[..5]);
        of.cfi.copy_from_slice(&text("FFIXSX")[..7]);
        of.security_type.copy_from_slice(&text("FUT")[..7]);
        of.underlying.copy_from_slice(&text("ES")[..21]);
        let mut value = dbn::$version::StatMsg::default();
        (value.hd.instrument_id, value.stat_type, value.quantity) = (5482, 9, 12);
        (value.sequence, value.update_action, value.price) = (5, 1, i64::MAX);
        let bytes = |record: RecordRef<'_>| record.as_ref().to_vec();
        [bytes(RecordRef::from(&of)), bytes(RecordRef::from(&value))]
    }};
}

#[test]
fn all_versions_say_the_same() {
    let all = [(1, records!(v1)), (2, records!(v2)), (3, records!(v3))];
    for (version, [definition, value]) in all {
        let bytes = of_version(version, &[&definition, &value]);
        let (from, events, outcome) = read(&bytes);
        assert_eq!((outcome, from.version), (Ok(()), Some(version)));
        let known = from.table.get(InstrumentId(0)).unwrap().definition;
        assert_eq!(from.table.len(), 1);
        let texts = [
            known.name.symbol,
            known.currency,
            known.market,
            known.cfi,
            known.security_type,
            known.underlying,
            known.maturity_month,
            known.segment,
        ];
        let expected: [&[u8]; 8] = [
            b"ESH1", b"USD", b"XCME", b"FFIXSX", b"FUT", b"ES", b"202103", b"64",
        ];
        assert_eq!(texts, expected, "version {version}");
        assert_eq!(
            (known.name.id.to_string(), known.depth),
            ("77".to_owned(), 10)
        );
        let prices = [
            known.tick,
            known.strike,
            known.high_limit,
            known.low_limit,
            known.multiplier,
        ];
        assert_eq!(
            prices.map(Price::units),
            [250_000_000, 4, 9, 8, 50],
            "version {version}"
        );
        let [of, value] = &events[..] else {
            panic!("{events:?}");
        };
        assert_eq!((of.kind, of.ts_recv, of.ts_event), (Kind::Definition, 7, 6));
        assert_eq!((value.entry, value.size, value.rpt_seq), (b'C', 12, 5));
        assert!(!value.price.is_defined());
    }
}

/// Returns a record of an order.
fn mbo(action: u8, size: u32, flags: u8) -> Vec<u8> {
    let mut of = dbn::MboMsg::default();
    (of.hd.instrument_id, of.order_id, of.size) = (5482, 9, size);
    (of.action, of.side, of.price) = (action as _, b'B' as _, 5);
    of.flags.set_raw(flags);
    RecordRef::from(&of).as_ref().to_vec()
}

/// Returns the events of a stream of these records.
fn events_of(records: &[Vec<u8>]) -> Vec<Event> {
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    let (_, events, outcome) = read(&of_version(3, &records));
    assert_eq!(outcome, Ok(()));
    events
}

#[test]
fn cancelled_parts_leave_the_rest_and_fills_take_from_it() {
    let events = events_of(&[
        mbo(b'R', 0, 0x28),
        mbo(b'A', 10, 0x80),
        mbo(b'C', 4, 0x80),
        mbo(b'F', 2, 0),
        mbo(b'C', 2, 0x80),
        mbo(b'T', 2, 0x80),
        mbo(b'C', 4, 0x84),
    ]);
    let said: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.action, event.size, event.id))
        .collect();
    let none = Event::NO_SIZE;
    let expected = [
        (Kind::Clear, Action::New, none, 0),
        (Kind::State, Action::New, none, 1),
        (Kind::Order, Action::New, 10, 9),
        (Kind::Order, Action::Change, 6, 9),
        (Kind::Order, Action::Fill, 2, 9),
        (Kind::Trade, Action::New, 2, 9),
        (Kind::State, Action::New, none, 2),
        (Kind::Order, Action::Delete, 4, 9),
    ];
    assert_eq!(said, expected);
    assert_eq!(events[0].ts_recv, Event::NO_TIME, "BAD_TS_RECV");
}

#[test]
fn a_book_begins_with_a_clear() {
    let level = |size| {
        let mut of = dbn::Mbp1Msg::default();
        (of.hd.instrument_id, of.action) = (5482, b'A' as _);
        (of.levels[0].bid_px, of.levels[0].bid_sz) = (5, size);
        of.flags.set_raw(0x80);
        RecordRef::from(&of).as_ref().to_vec()
    };
    let (live, unknown) = ((Kind::State, code::LIVE), (Kind::State, code::RECOVERING));
    let (clear, order) = ((Kind::Clear, 0), (Kind::Order, 9));
    for (records, expected) in [
        (
            vec![level(1), level(2)],
            vec![clear, live, (Kind::Level, 0), (Kind::Level, 0)],
        ),
        (
            vec![mbo(b'A', 1, 0xa0), mbo(b'M', 2, 0xa0)],
            vec![clear, live, order, order],
        ),
        // Orders that begin in the middle have no beginning until they are cleared.
        (
            vec![mbo(b'A', 1, 0x80), mbo(b'R', 0, 0x80)],
            vec![unknown, order, clear, live],
        ),
    ] {
        let events = events_of(&records);
        let said: Vec<_> = events.iter().map(|event| (event.kind, event.id)).collect();
        assert_eq!(said, expected);
        let lasts = events.iter().map(|event| event.flags.has(Flags::LAST));
        let is_last = |at: usize| at == 3 || matches!(expected[at].0, Kind::Level | Kind::Order);
        assert!(lasts.eq((0..4).map(is_last)), "{events:?}");
    }
}

/// Returns a definition that ends its instrument.
fn ended(definition: &[u8]) -> Vec<u8> {
    let mut end = definition.to_vec();
    end[std::mem::offset_of!(dbn::InstrumentDefMsg, security_update_action)] = b'D';
    end
}

#[test]
fn what_comes_first_after_the_end_of_an_instrument_opens_it() {
    let [definition, _] = records!(v3);
    let end = ended(&definition);
    let mut clear = dbn::MboMsg::default();
    (clear.hd.instrument_id, clear.action) = (5482, b'R' as _);
    clear.flags.set_raw(0x80);
    let clear = RecordRef::from(&clear).as_ref().to_vec();
    let state = |code| (Kind::State, code);
    let (book, defined) = ((Kind::Clear, 0), (Kind::Definition, 2));
    let of_book = vec![book, state(code::LIVE), defined];
    let of_definition = vec![defined, state(code::RECOVERING), book, state(code::LIVE)];
    for (first, second, expected) in [
        (&clear, &definition, of_book),
        (&definition, &clear, of_definition),
    ] {
        let (_, events, outcome) = read(&of_version(3, &[&definition, &end, first, second]));
        assert_eq!(outcome, Ok(()));
        let said: Vec<_> = events.iter().map(|event| (event.kind, event.id)).collect();
        assert_eq!(said[..2], [(Kind::Definition, 1), state(code::CLOSED)]);
        assert_eq!(said[2..], expected);
    }
}

#[test]
fn a_doubtful_record_after_the_end_of_an_instrument_does_not_open_it() {
    let [definition, _] = records!(v3);
    let end = ended(&definition);
    let mut note = dbn::MboMsg::default();
    (note.hd.instrument_id, note.action) = (5482, b'N' as _);
    note.flags.set_raw(0x84);
    let note = RecordRef::from(&note).as_ref().to_vec();
    let (_, events, outcome) = read(&of_version(3, &[&definition, &end, &note]));
    assert_eq!(outcome, Ok(()));
    let said: Vec<_> = events.iter().map(|event| (event.kind, event.id)).collect();
    let expected = [(Kind::Definition, 1), (Kind::State, code::CLOSED)];
    assert_eq!(said, expected);
}

#[test]
fn what_is_damaged_is_told_with_its_byte() {
    let [definition, value] = records!(v3);
    let bytes = of_version(3, &[&definition, &value]);
    let metadata = bytes.len() - 600;
    for end in 0..bytes.len() {
        let (_, events, outcome) = read(&bytes[..end]);
        let at = match end {
            _ if end < metadata => 0,
            _ if end < metadata + 520 => metadata,
            _ => metadata + 520,
        };
        let is_whole = end == metadata || end == metadata + 520;
        let why = Wrong::Cut(end - at);
        let cut = Err(FromDbnError { at: at as u64, why });
        assert_eq!(outcome, if is_whole { Ok(()) } else { cut });
        assert_eq!(events.len(), usize::from(at == metadata + 520));
    }
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        read(&bytes).2.unwrap_err().to_string()
    };
    assert_eq!(
        with(3, 4),
        "byte 0: unsupported version 4 of DBN, expected 1 to 3"
    );
    assert_eq!(
        with(3, 0),
        "byte 0: unsupported version 0 of DBN, expected 1 to 3"
    );
    assert_eq!(
        with(0, b'X'),
        "byte 0: not DBN: the file does not begin with `DBN` and a version"
    );
    let short = format!(
        "byte {metadata}: the record is damaged: type 0x13 needs at least 520 bytes, found 400"
    );
    assert_eq!(with(metadata, 100), short);
    assert!(with(metadata, 0).contains("found 0"));
    // The event of the record in front of the damage, which might have ended its message.
    let mut damaged = bytes.clone();
    damaged[metadata + 520] = 0;
    let (_, events, outcome) = read(&damaged);
    assert!(outcome.is_err() && events.len() == 1, "{events:?}");
    assert!(with(7, 0xff).contains("the length is out of range"));
    let mut rng = Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut damaged = bytes.clone();
        for _ in 0..rng.usize(1..4) {
            let at = rng.usize(..damaged.len());
            damaged[at] = rng.u8(..);
        }
        let _ = read(&damaged);
    }
}
