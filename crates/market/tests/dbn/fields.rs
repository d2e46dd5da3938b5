//! The fields of each record, and the values that DBN cannot represent.

use crate::{Stream, event, schemas, table};
use dbn::{
    InstrumentDefMsg, MboMsg, Mbp1Msg, Mbp10Msg, StatMsg, StatusMsg, SymbolMappingMsg, TradeMsg,
};
use fanfare_feed::recovery::State;
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn, Why};
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, IdSource, Name, SecurityId};
use fanfare_market::{Action, BookConfig, Event, Flags, InstrumentId, Kind, Price, state};

const BAD_TS_RECV: u8 = dbn::flags::BAD_TS_RECV;
const MAYBE_BAD: u8 = dbn::flags::MAYBE_BAD_BOOK;

fn order(rpt_seq: u32, action: Action, id: u64, size: i64) -> Event {
    Event {
        kind: Kind::Order,
        action,
        id,
        size,
        entry: entry::OFFER,
        flags: Flags::LAST,
        ..event(rpt_seq)
    }
}

type Mbo = (u32, char, char, u64, i64, u32, u8);

/// Returns symbols and orders, each with its contents.
fn orders_of(stream: &Stream) -> (Vec<(u32, String)>, Vec<Mbo>) {
    let mut seen = Vec::new();
    let mut symbols = Vec::new();
    stream.read(|record| {
        if let Some(mapping) = record.get::<SymbolMappingMsg>() {
            let symbol = mapping.stype_out_symbol().unwrap().to_owned();
            assert_eq!(mapping.stype_in_symbol().unwrap(), "0");
            symbols.push((mapping.hd.instrument_id, symbol));
            return;
        }
        let mbo = record.get::<MboMsg>().unwrap();
        assert_eq!((mbo.hd.publisher_id, mbo.hd.instrument_id), (50_003, 0));
        assert_eq!(mbo.hd.ts_event, 1_000 + u64::from(mbo.sequence));
        assert_eq!((mbo.channel_id, mbo.ts_in_delta), (0, 0));
        let late = mbo.ts_recv != 1_000 + mbo.hd.ts_event;
        assert_eq!(late, mbo.flags.raw() & BAD_TS_RECV != 0);
        seen.push((
            mbo.sequence,
            char::from(mbo.action as u8),
            char::from(mbo.side as u8),
            mbo.order_id,
            mbo.price,
            mbo.size,
            mbo.flags.raw(),
        ));
    });
    (symbols, seen)
}

#[test]
fn orders_are_mbo() {
    let mut stream = Stream::new(schemas(&[Schema::Mbo]), table(1));
    assert_eq!(
        stream.write(&order(1, Action::New, 11, 7)),
        2,
        "and its symbol"
    );
    let change = Event {
        price: Price::from_units(6_000_000_000),
        ..order(2, Action::Change, 11, 5)
    };
    assert_eq!(stream.write(&change), 1);
    assert_eq!(stream.write(&order(3, Action::Fill, 11, 2)), 2);
    // A deletion may have no more than the number of its order.
    let delete = Event {
        entry: 0,
        price: Price::UNDEFINED,
        ..order(4, Action::Delete, 11, Event::NO_SIZE)
    };
    assert_eq!(stream.write(&delete), 1);
    let trade = Event {
        kind: Kind::Trade,
        entry: entry::TRADE,
        ts_recv: 0,
        ..order(5, Action::New, 77, 9)
    };
    assert_eq!(stream.write(&trade), 1);
    // A gap: 6 is missing.
    assert_eq!(stream.write(&order(7, Action::New, 12, 1)), 1);
    let clear = Event {
        kind: Kind::Clear,
        ..event(8)
    };
    assert_eq!(stream.write(&clear), 1);
    let (symbols, seen) = orders_of(&stream);
    assert_eq!(symbols, [(0, "S0".to_owned())]);
    let undefined = dbn::UNDEF_PRICE;
    let last = dbn::flags::LAST;
    assert_eq!(
        seen,
        [
            (1, 'A', 'A', 11, 5_000_000_000, 7, last),
            (2, 'M', 'A', 11, 6_000_000_000, 5, last),
            (3, 'F', 'A', 11, 5_000_000_000, 2, 0),
            (3, 'C', 'A', 11, 5_000_000_000, 2, last),
            (4, 'C', 'A', 11, 6_000_000_000, 3, last),
            (5, 'T', 'N', 77, 5_000_000_000, 9, last | BAD_TS_RECV),
            (7, 'A', 'A', 12, 5_000_000_000, 1, last | MAYBE_BAD),
            (8, 'R', 'N', 0, undefined, 0, 0),
        ]
    );
}

#[test]
fn states_and_ends_of_messages_are_records_without_a_change() {
    let mut stream = Stream::new(schemas(&[Schema::Mbp1]), table(1));
    let level = |rpt_seq, level, flags| Event {
        kind: Kind::Level,
        entry: entry::BID,
        level,
        flags,
        price: Price::from_units(100 - i64::from(level)),
        ..event(rpt_seq)
    };
    assert_eq!(stream.write(&level(1, 1, Flags::NONE)), 2);
    // Below the levels of the record, but it ends the message.
    assert_eq!(stream.write(&level(2, 2, Flags::LAST)), 1);
    assert_eq!(stream.write(&level(3, 3, Flags::LAST)), 0, "nothing to end");
    let stale = Event {
        flags: Flags::LAST,
        ..state::to_event(State::Stale)
    };
    assert_eq!(stream.write(&stale), 1);
    let mut seen = Vec::new();
    stream.read(|record| {
        if let Some(mbp) = record.get::<Mbp1Msg>() {
            assert_eq!((mbp.levels[0].bid_px, mbp.levels[0].bid_sz), (99, 7));
            assert_eq!((mbp.levels[0].ask_px, mbp.levels[0].ask_ct), (i64::MAX, 0));
            seen.push((char::from(mbp.action as u8), mbp.depth, mbp.flags.raw()));
        }
    });
    let last = dbn::flags::LAST;
    let bad = last | MAYBE_BAD | BAD_TS_RECV;
    assert_eq!(seen, [('A', 0, 0), ('N', 0, last), ('N', 0, bad)]);
    assert_eq!(stream.to_dbn.counts().too_deep, 2);
}

#[test]
fn trades_statistics_and_statuses_have_records_of_their_own() {
    let mut stream = Stream::new(DbnConfig::new(Schemas::MIXED), table(2));
    let of = |kind, entry, rpt_seq| Event {
        kind,
        entry,
        ..event(rpt_seq)
    };
    stream.write(&of(Kind::Trade, entry::TRADE, 1));
    stream.write(&of(Kind::Statistic, b'6', 2));
    let volume = Event {
        price: Price::UNDEFINED,
        size: 5_000_000_000,
        action: Action::Delete,
        ..of(Kind::Statistic, b'B', 3)
    };
    stream.write(&volume);
    let halt = Event {
        id: 2,
        ..of(Kind::Status, 0, 0)
    };
    stream.write(&halt);
    let session = Event {
        instrument: InstrumentId::ALL,
        ..halt
    };
    assert_eq!(
        stream.write(&session),
        3,
        "of two instruments, one of them new"
    );
    let mut seen = Vec::new();
    stream.read(|record| {
        if let Some(trade) = record.get::<TradeMsg>() {
            assert_eq!(
                (trade.price, trade.size, trade.sequence),
                (5_000_000_000, 7, 1)
            );
            assert_eq!((trade.action as u8, trade.side as u8), (b'T', b'N'));
            seen.push("trade".to_owned());
        } else if let Some(stat) = record.get::<StatMsg>() {
            let what = (stat.stat_type, stat.stat_flags, stat.update_action);
            assert_eq!(stat.ts_ref, dbn::UNDEF_TIMESTAMP);
            seen.push(format!("{what:?} {} {}", stat.price, stat.quantity));
        } else if let Some(status) = record.get::<StatusMsg>() {
            assert_eq!(status.ts_recv, 2_000);
            let trading = char::from(status.is_trading as u8);
            seen.push(format!("{} {trading}", status.action));
        }
    });
    let none = i64::MAX;
    assert_eq!(
        seen,
        [
            "trade".to_owned(),
            "(3, 0, 1) 5000000000 7".to_owned(),
            format!("(10001, {}, 2) {none} 5000000000", b'B'),
            "8 N".to_owned(),
            "7 Y".to_owned(),
            "7 Y".to_owned(),
        ]
    );
}

fn riu3() -> Definition<'static> {
    Definition {
        name: Name {
            symbol: b"RIU3",
            id: SecurityId::Number(49_634_118),
            source: IdSource::NONE,
        },
        security_type: b"FUT",
        cfi: b"FXXXXX",
        currency: b"RUB",
        market: b"RTSX",
        segment: b"12",
        underlying: b"RTSI",
        maturity_month: b"20230921",
        tick: Price::from_units(10_000_000_000),
        multiplier: Price::from_units(2),
        strike: Price::from_units(3),
        low_limit: Price::from_units(4),
        high_limit: Price::from_units(5),
        maturity: 6,
        depth: 20,
        ..Definition::default()
    }
}

#[test]
fn a_definition_has_what_is_known() {
    let mut table = table(0);
    let of = riu3();
    table.define(&of).unwrap();
    let mut stream = Stream::new(schemas(&[Schema::Definition]), table);
    let defined = Event {
        kind: Kind::Definition,
        ..event(0)
    };
    assert_eq!(stream.write(&defined), 2);
    // A text that is too long is reported, and left out.
    let long = Definition {
        security_type: b"FUTURE7",
        segment: b"F",
        ..of
    };
    stream.table.define(&long).unwrap();
    stream.write(&defined);
    let lost = stream
        .to_dbn
        .lost()
        .iter()
        .map(|lost| (lost.field, lost.why));
    let lost: Vec<_> = lost.collect();
    let text = Why::Text;
    assert_eq!(lost, [("market_segment_id", text), ("security_type", text)]);
    let mut read = Vec::new();
    stream.read(|record| read.extend(record.get::<InstrumentDefMsg>().cloned()));
    let (first, second) = (&read[0], &read[1]);
    assert_eq!(first.raw_symbol().unwrap(), "RIU3");
    assert_eq!(first.raw_instrument_id, 49_634_118);
    assert_eq!(first.security_type().unwrap(), "FUT");
    assert_eq!(first.cfi().unwrap(), "FXXXXX");
    assert_eq!(first.currency().unwrap(), "RUB");
    assert_eq!(first.exchange().unwrap(), "RTSX");
    assert_eq!(first.underlying().unwrap(), "RTSI");
    assert_eq!(
        first.instrument_class().unwrap(),
        dbn::InstrumentClass::Future
    );
    assert_eq!(first.min_price_increment, 10_000_000_000);
    assert_eq!((first.unit_of_measure_qty, first.strike_price), (2, 3));
    assert_eq!((first.low_limit_price, first.high_limit_price), (4, 5));
    assert_eq!((first.expiration, first.market_depth), (6, 20));
    assert_eq!((first.maturity_year, first.maturity_month), (2023, 9));
    assert_eq!((first.maturity_day, first.maturity_week), (21, 0));
    assert_eq!(first.market_segment_id, 12);
    assert_eq!(first.security_update_action as u8, b'A');
    assert_eq!(second.security_update_action as u8, b'M');
    assert_eq!(second.security_type().unwrap(), "");
    assert_eq!(*first, as_in_the_crate(first));
}

#[test]
fn the_end_of_an_instrument_is_a_definition_that_deletes_it() {
    let mut table = table(0);
    table.define(&riu3()).unwrap();
    let mut stream = Stream::new(schemas(&[Schema::Definition]), table);
    let defined = Event {
        kind: Kind::Definition,
        ..event(0)
    };
    let in_state = |state| Event {
        flags: Flags::LAST,
        ..state::to_event(state)
    };
    let [live, closed] = [State::Live, State::Closed].map(in_state);
    let events = [defined, live, closed, closed, defined, closed];
    let counts = events.map(|event| stream.write(&event));
    assert_eq!(counts, [2, 0, 1, 0, 2, 1], "with symbols");
    let mut actions = Vec::new();
    stream.read(|record| {
        if let Some(of) = record.get::<InstrumentDefMsg>() {
            assert_eq!(of.raw_symbol().unwrap(), "RIU3");
            actions.push(of.security_update_action as u8);
        }
    });
    assert_eq!(actions, b"ADAD");
}

/// Sets the fields that Fanfare's instruments do not have as in the crate.
fn as_in_the_crate(first: &InstrumentDefMsg) -> InstrumentDefMsg {
    InstrumentDefMsg {
        hd: first.hd,
        ts_recv: first.ts_recv,
        min_price_increment: first.min_price_increment,
        expiration: first.expiration,
        high_limit_price: first.high_limit_price,
        low_limit_price: first.low_limit_price,
        unit_of_measure_qty: first.unit_of_measure_qty,
        strike_price: first.strike_price,
        raw_instrument_id: first.raw_instrument_id,
        market_depth: first.market_depth,
        market_segment_id: first.market_segment_id,
        maturity_year: first.maturity_year,
        currency: first.currency,
        raw_symbol: first.raw_symbol,
        exchange: first.exchange,
        cfi: first.cfi,
        security_type: first.security_type,
        underlying: first.underlying,
        instrument_class: first.instrument_class,
        maturity_month: first.maturity_month,
        maturity_day: first.maturity_day,
        maturity_week: first.maturity_week,
        security_update_action: first.security_update_action,
        ..InstrumentDefMsg::default()
    }
}

#[test]
fn a_size_that_dbn_cannot_hold_counts_once_for_its_event() {
    let mut stream = Stream::new(schemas(&[Schema::Mbp10]), table(1));
    for (rpt_seq, size, flags) in [(1, 7, Flags::NONE), (2, 1 << 32, Flags::LAST)] {
        stream.write(&Event {
            kind: Kind::Level,
            action: Action::New,
            entry: entry::BID,
            size,
            flags,
            price: Price::from_units(rpt_seq.into()),
            ..event(rpt_seq)
        });
    }
    assert_eq!(stream.to_dbn.counts().lost, 1);
}

#[test]
fn what_dbn_cannot_hold_is_named_and_makes_the_book_doubtful() {
    let mut stream = Stream::new(schemas(&[Schema::Mbo]), table(1));
    stream.write(&order(1, Action::New, 11, 7));
    for (rpt_seq, size) in [(2, 1 << 32), (3, (1 << 32) - 1), (4, -1)] {
        let id = u64::from(rpt_seq);
        assert_eq!(stream.write(&order(rpt_seq, Action::New, id, size)), 0);
        let lost = stream.to_dbn.lost()[0];
        assert_eq!((lost.field, lost.why), ("size", Why::Range(size.into())));
        let what = format!("instrument S0 1000: event {rpt_seq} (order): size: {size}");
        let said = lost.describe(&stream.table);
        assert_eq!(said, what + " is not from 0 to 4294967294");
    }
    stream.write(&order(5, Action::New, 12, 7));
    let clear = Event {
        kind: Kind::Clear,
        flags: Flags::SNAPSHOT,
        ..event(5)
    };
    stream.write(&clear);
    stream.write(&order(6, Action::New, 13, 7));
    let mut flags = Vec::new();
    stream.read(|record| flags.extend(record.get::<MboMsg>().map(|mbo| mbo.flags.raw())));
    let last = dbn::flags::LAST;
    let snapshot = dbn::flags::SNAPSHOT;
    assert_eq!(flags, [last, last | MAYBE_BAD, snapshot, last]);
    assert_eq!(stream.to_dbn.counts().lost, 3);
}

#[test]
fn a_level_that_dbn_cannot_hold_costs_its_record_alone() {
    let mut stream = Stream::new(schemas(&[Schema::Mbp10]), table(1));
    let level = |rpt_seq, size, id| Event {
        kind: Kind::Level,
        entry: entry::BID,
        level: 1,
        size,
        id,
        action: if rpt_seq == 1 {
            Action::New
        } else {
            Action::Change
        },
        ..event(rpt_seq)
    };
    for (rpt_seq, size, id, field) in [
        (1, 1 << 40, 1, "size"),
        (2, 1, 1 << 40, "bid_ct"),
        (3, 5, 5, ""),
    ] {
        let written = stream.write(&level(rpt_seq, size, id));
        let lost = stream.to_dbn.lost().first();
        assert_eq!(lost.map_or("", |lost| lost.field), field);
        assert_eq!(written, if field.is_empty() { 2 } else { 0 });
    }
    stream.read(|record| {
        if let Some(mbp) = record.get::<Mbp10Msg>() {
            assert_eq!((mbp.levels[0].bid_sz, mbp.levels[0].bid_ct), (5, 5));
            assert_eq!(mbp.flags.raw(), 0, "it has all of the book");
        }
    });
}

#[test]
fn statuses_trades_and_symbols_that_dbn_does_not_have_are_named() {
    let mut stream = Stream::new(DbnConfig::new(Schemas::MIXED), table(1));
    let of = |kind, id, action| Event {
        kind,
        id,
        action,
        ..event(0)
    };
    stream.write(&of(Kind::Status, 119, Action::New));
    assert_eq!(stream.to_dbn.lost()[0].why, Why::Status(119));
    stream.write(&of(Kind::Trade, 1, Action::Delete));
    assert_eq!(stream.to_dbn.lost()[0].why, Why::Trade);
    let symbol = [b'x'; 71];
    let name = Name::of_symbol(&symbol);
    let instrument = stream.table.see(&name).unwrap();
    let trade = Event {
        instrument,
        ..of(Kind::Trade, 1, Action::New)
    };
    assert_eq!(stream.write(&trade), 1);
    assert_eq!(stream.to_dbn.lost()[0].why, Why::Text);
    stream.read(|record| assert!(record.has::<TradeMsg>()));
}

#[test]
fn a_trade_that_ends_a_message_shows_that_its_book_is_in_disorder() {
    let mut stream = Stream::new(schemas(&[Schema::Mbp10]), table(1));
    for number in 1..=2 {
        let level = Event {
            kind: Kind::Level,
            entry: entry::BID,
            level: number,
            price: Price::from_units(number.into()),
            ..event(number.into())
        };
        stream.write(&level);
    }
    let trade = Event {
        kind: Kind::Trade,
        flags: Flags::LAST,
        ..event(3)
    };
    stream.write(&trade);
    let mut flags = Vec::new();
    stream.read(|record| flags.extend(record.get::<Mbp10Msg>().map(|mbp| mbp.flags.raw())));
    assert_eq!(flags, [0, 0, dbn::flags::LAST | MAYBE_BAD]);
    assert_eq!(stream.to_dbn.counts().faults, 1);
}

#[test]
fn books_have_a_limit() {
    let config = DbnConfig {
        most_memory: 1,
        ..schemas(&[Schema::Mbp10])
    };
    let mut stream = Stream::new(config, table(2));
    let level = |instrument| Event {
        kind: Kind::Level,
        instrument: InstrumentId(instrument),
        entry: entry::BID,
        ..event(1)
    };
    assert_eq!(stream.write(&level(0)), 2);
    assert_eq!(stream.write(&level(1)), 0);
    assert_eq!(stream.to_dbn.lost()[0].why, Why::NoBook);
    assert_eq!(stream.write(&level(1_000_000)), 0, "not in the table");
    let lost = stream.to_dbn.lost().last().unwrap();
    assert_eq!(lost.why, Why::Unknown);
    let text = lost.to_string();
    assert!(
        text.ends_with("book: the instrument is not known"),
        "{text}"
    );
    // The books of known feeds have none.
    let feeds = vec![BookConfig::by_price(5).unwrap(); 3];
    stream.to_dbn = ToDbn::new(config).unwrap().with_books(feeds);
    for instrument in 0..2 {
        assert_eq!(stream.write(&level(instrument)), 2);
    }
}

#[test]
fn books_of_known_feeds_begin_with_their_clear_in_a_mixed_stream_too() {
    let config = schemas(&[Schema::Mbo, Schema::Mbp10]);
    let clear = Event {
        kind: Kind::Clear,
        ..event(1)
    };
    let mut stream = Stream::new(config, table(1));
    assert_eq!(stream.write(&clear), 0, "its kind is not known");
    let books = [BookConfig::by_order(5, 10), BookConfig::by_price(5)];
    for (books, expected) in books.into_iter().zip([(1, 0), (0, 1)]) {
        let feeds = vec![books.unwrap(); 3];
        let mut stream = Stream::new(config, table(1));
        stream.to_dbn = ToDbn::new(config).unwrap().with_books(feeds);
        assert_eq!(stream.write(&clear), 2);
        let (mut orders, mut levels) = (0, 0);
        stream.read(|record| {
            orders += usize::from(record.has::<MboMsg>());
            levels += usize::from(record.has::<Mbp10Msg>());
        });
        assert_eq!((orders, levels), expected);
    }
}

#[test]
fn a_book_that_is_open_begins_with_its_clear_in_a_mixed_stream() {
    let clear = Event {
        kind: Kind::Clear,
        ..event(1)
    };
    let mut stream = Stream::new(schemas(&[Schema::Mbo, Schema::Mbp10]), table(2));
    let level = Event {
        kind: Kind::Level,
        instrument: InstrumentId(1),
        ..clear
    };
    for change in [order(2, Action::New, 1, 5), level] {
        stream.to_dbn.open_book(&change, &stream.table);
        let instrument = change.instrument;
        assert_eq!(
            stream.write(&Event {
                instrument,
                ..clear
            }),
            2
        );
    }
    let mut cleared = Vec::new();
    stream.read(|record| {
        let orders = record.get::<MboMsg>().map(|mbo| mbo.action as u8);
        let levels = record.get::<Mbp10Msg>().map(|mbp| mbp.action as u8);
        cleared.extend(orders.map(|action| (b'O', action)));
        cleared.extend(levels.map(|action| (b'L', action)));
    });
    assert_eq!(cleared, [(b'O', b'R'), (b'L', b'R')]);
}

#[test]
fn a_clear_of_a_book_of_unknown_kind_is_written_in_front_of_its_first_change() {
    let config = schemas(&[Schema::Mbo, Schema::Mbp10]);
    let mut stream = Stream::new(config, table(2));
    for instrument in [0, 1] {
        // It is alone in its message.
        let clear = Event {
            kind: Kind::Clear,
            flags: Flags::LAST.with(Flags::SNAPSHOT),
            instrument: InstrumentId(instrument),
            ..event(1)
        };
        assert_eq!(stream.write(&clear), 0);
    }
    assert_eq!(stream.to_dbn.counts().other_schemas, 2);
    let level = Event {
        kind: Kind::Level,
        instrument: InstrumentId(1),
        entry: entry::BID,
        ..event(2)
    };
    // Its symbol, the clear, and the change.
    assert_eq!(stream.write(&order(2, Action::New, 1, 5)), 3);
    assert_eq!(stream.write(&level), 3);
    assert_eq!(stream.write(&order(3, Action::New, 2, 5)), 1);
    assert_eq!(stream.to_dbn.counts().other_schemas, 0);
    let mut seen = Vec::new();
    stream.read(|record| {
        if let Some(mbo) = record.get::<MboMsg>() {
            seen.push(('O', mbo.action as u8, mbo.sequence, mbo.flags.raw()));
        } else if let Some(mbp) = record.get::<Mbp10Msg>() {
            assert_eq!(
                mbp.levels[0].bid_px == i64::MAX,
                mbp.action as u8 == b'R',
                "{mbp:?}"
            );
            seen.push(('L', mbp.action as u8, mbp.sequence, mbp.flags.raw()));
        }
    });
    let last = dbn::flags::LAST;
    assert_eq!(
        seen,
        [
            ('O', b'R', 2, 0),
            ('O', b'A', 2, last),
            ('L', b'R', 2, 0),
            ('L', b'A', 2, 0),
            ('O', b'A', 3, last),
        ]
    );
}

/// Returns the action and the flags of each record of a book.
fn actions_of(stream: &Stream) -> Vec<(char, u8)> {
    let mut seen = Vec::new();
    stream.read(|record| {
        if let Some(mbo) = record.get::<MboMsg>() {
            seen.push((mbo.action as u8 as char, mbo.flags.raw()));
        } else if let Some(mbp) = record.get::<Mbp1Msg>() {
            seen.push((mbp.action as u8 as char, mbp.flags.raw()));
        }
    });
    seen
}

#[test]
fn a_message_whose_first_change_is_lost_behind_its_late_clear_ends() {
    let clear = Event {
        kind: Kind::Clear,
        flags: Flags::LAST,
        ..event(1)
    };
    // Its size has no room.
    let large = order(2, Action::New, 1, 5_000_000_000);
    // Without a first level there is no second, and it is below the levels of the record.
    let deep = Event {
        kind: Kind::Level,
        level: 2,
        entry: entry::BID,
        flags: Flags::LAST,
        ..event(2)
    };
    let ended = dbn::flags::LAST | MAYBE_BAD;
    for (levels, change, lost) in [(Schema::Mbp10, large, 1), (Schema::Mbp1, deep, 0)] {
        for is_last in [true, false] {
            let mut stream = Stream::new(schemas(&[Schema::Mbo, levels]), table(1));
            assert_eq!(stream.write(&clear), 0, "its kind is not known");
            let flags = match is_last {
                true => Flags::LAST,
                false => Flags::NONE,
            };
            // Its symbol, the clear, and the end of a message that has ended.
            let written = stream.write(&Event { flags, ..change });
            assert_eq!(written, if is_last { 3 } else { 2 });
            let counts = stream.to_dbn.counts();
            assert_eq!((counts.lost, counts.too_deep), (lost, 1 - lost));
            let expected = [('R', 0), ('N', ended)];
            let count = if is_last { 2 } else { 1 };
            assert_eq!(actions_of(&stream), expected[..count]);
        }
    }
}

#[test]
fn schemas_have_names() {
    for schema in Schema::ALL {
        assert_eq!(schema.name().parse(), Ok(schema));
        let theirs: dbn::Schema = schema.name().parse().unwrap();
        assert_eq!(theirs.as_str(), schema.name());
    }
    assert!("mbp-5".parse::<Schema>().is_err());
    assert_eq!(Schemas::new(&[Schema::Mbp1, Schema::Mbp10]), None);
    assert_eq!(Schemas::new(&[]), None);
}

#[test]
fn the_status_of_a_session_is_one_of_each_instrument_of_its_feed() {
    let of_status = || schemas(&[Schema::Status]);
    let session = |source| Event {
        kind: Kind::Status,
        instrument: InstrumentId::ALL,
        id: 2,
        source,
        ..event(0)
    };
    let mut stream = Stream::new(of_status(), table(3));
    stream.to_dbn = stream.to_dbn.with_bases(vec![0, 1]);
    // Each with its symbol, the first time.
    let written = [1, 2, 1].map(|source| stream.write(&session(source)));
    assert_eq!(written, [2, 4, 1]);
    let mut seen = Vec::new();
    stream.read(|record| {
        if let Some(status) = record.get::<StatusMsg>() {
            seen.push((status.hd.publisher_id, status.hd.instrument_id));
        }
    });
    assert_eq!(seen, [(50_001, 0), (50_002, 1), (50_002, 2), (50_001, 0)]);
    // Where the instruments of feeds are unknown, the status of a session does not say them.
    let mut stream = Stream::new(of_status(), table(2));
    assert_eq!(stream.write(&session(1)), 4);
    let own = Event {
        instrument: InstrumentId(1),
        ..session(2)
    };
    assert_eq!(stream.write(&own), 1);
    let written = [1, 2].map(|source| stream.write(&session(source)));
    assert_eq!(written, [1, 2]);
}
