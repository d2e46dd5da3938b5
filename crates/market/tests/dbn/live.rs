//! Live streams: records of all schemas, read with the crate `dbn`.

use dbn::decode::{DbnDecoder, DbnMetadata, DecodeRecordRef};
use dbn::{ErrorMsg, InstrumentDefMsg, MboMsg, Mbp1Msg, Mbp10Msg, RecordRef, StatusMsg, SystemMsg};
use fanfare_market::book::BookConfig;
use fanfare_market::dbn::live::{
    Batch, Encoder, ErrorCode, LiveSchema, LiveSchemas, SystemCode, error, metadata, with_ts_out,
};
use fanfare_market::dbn::{DbnConfig, Schemas};
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, Instrument, Lookup, Name};
use fanfare_market::state::{code, lack};
use fanfare_market::{Action, Event, Flags, InstrumentId, Instruments, Kind, Price, Watermark};

pub(crate) const SECOND: u64 = 1_000_000_000;

/// Returns an encoder of one feed with orders, and a table of two instruments.
pub(crate) fn encoder() -> (Encoder, Instruments) {
    encoder_of(BookConfig::by_order(100, 100).unwrap(), 0)
}

/// Returns an encoder of one feed with these books, and a table of two instruments whose
/// definitions have this MarketDepth(264).
fn encoder_of(books: BookConfig, depth: u16) -> (Encoder, Instruments) {
    let encoder = Encoder::new(vec![books], DbnConfig::new(Schemas::MIXED)).unwrap();
    let mut table = Instruments::new(10);
    for symbol in ["A", "B"] {
        let name = Name::of_symbol(symbol.as_bytes());
        let definition = Definition {
            name,
            depth,
            ..Definition::default()
        };
        table.define(&definition).unwrap();
    }
    (encoder, table)
}

pub(crate) fn event(kind: Kind, second: u64) -> Event {
    Event {
        kind,
        source: 1,
        ts_event: second * SECOND,
        ts_recv: second * SECOND + 7,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

pub(crate) fn trade(second: u64, price: i64, size: i64) -> Event {
    Event {
        price: Price::from_units(price),
        size,
        entry: entry::TRADE,
        ..event(Kind::Trade, second)
    }
}

pub(crate) fn order(id: u64, side: u8, price: i64, size: i64) -> Event {
    Event {
        id,
        entry: side,
        price: Price::from_units(price),
        size,
        ..event(Kind::Order, 1)
    }
}

/// Reads the records of a batch that have one of these schemas, with the crate `dbn`.
pub(crate) fn read(
    batch: &Batch,
    schemas: LiveSchemas,
    ts_out: bool,
    mut each: impl FnMut(RecordRef<'_>),
) {
    let mut bytes = Vec::new();
    assert!(metadata("FANFARE", 5, ts_out, &mut bytes));
    for (tag, record) in batch.records() {
        if tag.schemas.meets(schemas) {
            match ts_out {
                true => with_ts_out(record, 99, &mut bytes),
                false => bytes.extend_from_slice(record),
            }
        }
    }
    let mut decoder = DbnDecoder::new(bytes.as_slice()).unwrap();
    assert_eq!(
        (decoder.metadata().start, decoder.metadata().ts_out),
        (5, ts_out)
    );
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        each(record);
    }
}

#[test]
fn a_schema_that_is_wanted_late_has_the_books() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    let orders = [
        live(),
        order(1, entry::BID, 90, 5),
        order(2, entry::BID, 91, 6),
        order(3, entry::OFFER, 95, 7),
    ];
    for event in &orders {
        encoder.event(event, &table, &mut batch);
    }
    assert_eq!(batch.tags().len(), 1, "the symbol alone");
    batch.clear();
    let wanted = [LiveSchema::Mbo, LiveSchema::Tbbo].into_iter().collect();
    encoder.want(wanted, &table);
    let mut out = Vec::new();
    assert_eq!(encoder.write_orders(InstrumentId(0), &mut out), 4);
    assert_eq!(encoder.write_orders(InstrumentId(1), &mut out), 0);
    // Only a deletion without a size needs the order.
    let gone = Event {
        action: Action::Delete,
        size: Event::NO_SIZE,
        price: Price::UNDEFINED,
        ..order(2, entry::BID, 0, 0)
    };
    encoder.event(&gone, &table, &mut batch);
    encoder.event(&trade(2, 95, 1), &table, &mut batch);
    let mut seen = Vec::new();
    read(&batch, LiveSchemas::ALL, false, |record| {
        if let Some(order) = record.get::<MboMsg>() {
            seen.push((order.action as u8 as char, order.price, order.size));
            assert_eq!(order.flags.raw() & dbn::flags::MAYBE_BAD_BOOK, 0);
        }
        if let Some(trade) = record.get::<Mbp1Msg>() {
            let level = &trade.levels[0];
            assert_eq!((level.bid_px, level.ask_px, trade.price), (90, 95, 95));
            seen.push(('t', 0, 0));
        }
    });
    assert_eq!(seen, [('C', 91, 6), ('T', 95, 1), ('t', 0, 0)]);
    let mut snapshot = Vec::new();
    metadata("FANFARE", 0, false, &mut snapshot);
    snapshot.extend(out);
    error(ErrorCode::InternalError, "why", 3, &mut snapshot);
    let mut decoder = DbnDecoder::new(snapshot.as_slice()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(order) = record.get::<MboMsg>() {
            let flags = order.flags.raw() & (dbn::flags::SNAPSHOT | dbn::flags::LAST);
            all.push((order.action as u8 as char, order.order_id, flags));
        } else {
            let error = record.get::<ErrorMsg>().unwrap();
            assert_eq!((error.err().unwrap(), error.code), ("why", 6));
        }
    }
    assert_eq!(
        all,
        [('R', 0, 32), ('A', 2, 32), ('A', 1, 32), ('A', 3, 160)]
    );
}

#[test]
fn a_snapshot_without_an_order_that_has_no_room_is_doubtful() {
    let (mut encoder, table) = encoder();
    for event in [
        live(),
        order(1, entry::BID, 90, 5),
        order(2, entry::BID, 91, u32::MAX.into()),
        order(3, entry::OFFER, 95, 7),
    ] {
        encoder.event(&event, &table, &mut Batch::default());
    }
    let mut out = Vec::new();
    assert_eq!(encoder.write_orders(InstrumentId(0), &mut out), 3);
    assert_eq!(out.len(), 3 * 56);
    for record in out.chunks(56) {
        assert_ne!(record[36] & dbn::flags::MAYBE_BAD_BOOK, 0);
    }
    assert_eq!(encoder.lost(), 1);
}

fn live() -> Event {
    Event {
        id: code::LIVE,
        ..event(Kind::State, 1)
    }
}

#[test]
fn what_is_lost_makes_books_doubtful_until_they_are_shown() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Mbp1.alone(), &table);
    for event in [&live(), &order(1, entry::BID, 90, 5)] {
        encoder.event(event, &table, &mut batch);
    }
    encoder.lose_all();
    batch.clear();
    batch.notice(SystemCode::Unset, "lost", 1);
    encoder.event(&order(2, entry::BID, 91, 5), &table, &mut batch);
    for event in [&event(Kind::Clear, 1), &order(2, entry::BID, 92, 5)] {
        encoder.event(event, &table, &mut batch);
    }
    let mut doubts = Vec::new();
    read(&batch, LiveSchema::Mbp1.alone(), false, |record| {
        if let Some(level) = record.get::<Mbp1Msg>() {
            doubts.push(level.flags.raw() & dbn::flags::MAYBE_BAD_BOOK != 0);
        } else {
            assert_eq!(record.get::<SystemMsg>().unwrap().msg().unwrap(), "lost");
        }
    });
    assert_eq!(doubts, [true, false, false]);
}

#[test]
fn a_book_that_was_lost_before_the_start_is_doubtful_until_it_is_shown() {
    let (mut encoder, table) = encoder();
    let recovering = Event {
        id: code::RECOVERING,
        level: lack::SNAPSHOT,
        ..event(Kind::State, 1)
    };
    encoder.seed(&recovering);
    encoder.seed_lost(InstrumentId(0));
    encoder.want(LiveSchema::Mbp1.alone(), &table);
    let mut batch = Batch::default();
    encoder.event(&live(), &table, &mut batch);
    batch.clear();
    encoder.event(&order(2, entry::BID, 91, 5), &table, &mut batch);
    for event in [&event(Kind::Clear, 1), &order(2, entry::BID, 92, 5)] {
        encoder.event(event, &table, &mut batch);
    }
    let mut doubts = Vec::new();
    read(&batch, LiveSchema::Mbp1.alone(), false, |record| {
        if let Some(level) = record.get::<Mbp1Msg>() {
            doubts.push(level.flags.raw() & dbn::flags::MAYBE_BAD_BOOK != 0);
        }
    });
    assert_eq!(doubts, [true, false, false]);
}

#[test]
fn a_book_that_began_in_lost_events_is_doubtful_until_it_is_shown() {
    for is_late in [false, true] {
        let (mut encoder, table) = encoder();
        let mut batch = Batch::default();
        if !is_late {
            encoder.want(LiveSchema::Mbp1.alone(), &table);
        }
        match is_late {
            true => encoder.seed_lost(InstrumentId::ALL),
            false => encoder.lose_all(),
        }
        encoder.event(&live(), &table, &mut batch);
        encoder.want(LiveSchema::Mbp1.alone(), &table);
        batch.clear();
        // The first number is no beginning.
        let first = Event {
            rpt_seq: 1,
            ..order(1, entry::BID, 90, 5)
        };
        for event in [
            first,
            event(Kind::Clear, 1),
            order(2, entry::BID, 92, 5),
            order(3, entry::BID, 93, 5),
        ] {
            encoder.event(&event, &table, &mut batch);
        }
        let mut doubts = Vec::new();
        read(&batch, LiveSchema::Mbp1.alone(), false, |record| {
            if let Some(level) = record.get::<Mbp1Msg>() {
                doubts.push(level.flags.raw() & dbn::flags::MAYBE_BAD_BOOK != 0);
            }
        });
        assert_eq!(doubts, [true, false, false, false]);
    }
}

#[test]
fn a_book_that_is_live_again_after_a_loss_is_doubtful_until_it_is_shown() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    for event in [&live(), &order(1, entry::BID, 90, 5)] {
        encoder.event(event, &table, &mut batch);
    }
    encoder.lose_all();
    encoder.event(&live(), &table, &mut batch);
    // The books of schemas that were not wanted before are no better.
    encoder.want(LiveSchemas::ALL, &table);
    let doubts = |encoder: &mut Encoder, id: u64| {
        let (mut batch, mut all) = (Batch::default(), Vec::new());
        let mut snapshot = Vec::new();
        encoder.event(&order(id, entry::BID, 91, 5), &table, &mut batch);
        encoder.write_orders(InstrumentId(0), &mut snapshot);
        let mbo = LiveSchema::Mbo.alone();
        let mut orders = snapshot;
        for (tag, record) in batch.records() {
            if tag.schemas.meets(mbo) && record[1] == 0xa0 {
                orders.extend_from_slice(record);
            }
        }
        while let Some(record) = orders.get(..56) {
            // The flags of an order's record.
            all.push(record[36] & dbn::flags::MAYBE_BAD_BOOK != 0);
            orders.drain(..56);
        }
        all
    };
    let before = doubts(&mut encoder, 2);
    assert!(
        before.len() > 2 && before.iter().all(|doubt| *doubt),
        "{before:?}"
    );
    encoder.event(&event(Kind::Clear, 1), &table, &mut batch);
    let after = doubts(&mut encoder, 3);
    assert!(
        after.len() > 2 && after.iter().all(|doubt| !doubt),
        "{after:?}"
    );
}

fn closed() -> Event {
    Event {
        id: code::CLOSED,
        ..event(Kind::State, 1)
    }
}

/// Returns `security_update_action` of the definitions in a batch.
fn updates(batch: &Batch) -> Vec<u8> {
    let mut actions = Vec::new();
    read(batch, LiveSchema::Definition.alone(), false, |record| {
        let known = record.get::<InstrumentDefMsg>();
        actions.extend(known.map(|known| known.security_update_action as u8));
    });
    actions
}

#[test]
fn an_instrument_that_has_ended_has_a_definition_that_deletes_it() {
    let (mut encoder, table) = encoder();
    let definition = LiveSchema::Definition.alone();
    let mut actions = Vec::new();
    for events in [&[live(), closed(), closed()][..], &[closed()]] {
        // The second time, the end precedes the request.
        encoder.want(definition, &table);
        let mut batch = Batch::default();
        for event in events {
            encoder.event(event, &table, &mut batch);
        }
        encoder.want(LiveSchemas::NONE, &table);
        actions.extend(updates(&batch));
    }
    assert_eq!(actions, b"D");
    let mut known = Vec::new();
    for instrument in [0, 1].map(InstrumentId) {
        encoder.write_known(LiveSchema::Definition, instrument, 9, &table, &mut known);
    }
    let action = std::mem::offset_of!(InstrumentDefMsg, security_update_action);
    assert_eq!([known[action], known[520 + action]], *b"DA");
}

#[test]
fn an_end_that_is_shown_again_after_a_loss_has_its_definition_again() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Definition.alone(), &table);
    encoder.event(&closed(), &table, &mut batch);
    encoder.lose_all();
    encoder.event(&closed(), &table, &mut batch);
    assert_eq!(updates(&batch), b"DD");
}

/// A table whose other instruments do not matter.
struct OfOne<'a>(&'a Instruments);

impl Lookup for OfOne<'_> {
    fn instrument(&self, number: InstrumentId) -> Option<Instrument<'_>> {
        self.0.instrument(number)
    }

    fn bound(&self) -> u32 {
        panic!("the number of instruments does not matter");
    }
}

#[test]
fn what_is_known_of_an_instrument_has_a_cost_without_regard_to_others() {
    let (mut encoder, table) = encoder();
    let status = Event {
        id: 17,
        ..event(Kind::Status, 1)
    };
    encoder.event(&status, &table, &mut Batch::default());
    let table = OfOne(&table);
    for (schema, len) in [(LiveSchema::Definition, 520), (LiveSchema::Status, 40)] {
        let mut known = Vec::new();
        encoder.write_known(schema, InstrumentId(0), 9, &table, &mut known);
        assert_eq!(known.len(), len);
    }
}

#[test]
fn what_is_shown_again_has_a_record_only_if_it_is_news() {
    let (mut encoder, table) = encoder();
    let mut batch = Batch::default();
    encoder.want(LiveSchemas::ALL, &table);
    let value = Event {
        entry: b'4',
        ..trade(1, 90, 0)
    };
    let all = |id: u64, price: i64| {
        let price = Price::from_units(price);
        [
            Event {
                id,
                ..event(Kind::Status, 1)
            },
            Event {
                price,
                ..trade(1, 90, 5)
            },
            Event {
                kind: Kind::Statistic,
                price,
                ..value
            },
        ]
    };
    for event in all(2, 90) {
        encoder.event(&event, &table, &mut batch);
    }
    let mut shown = |events: [Event; 3]| {
        encoder.lose_all();
        batch.clear();
        for event in events {
            let event = Event {
                flags: Flags::SNAPSHOT,
                ts_recv: 9 * SECOND,
                rpt_seq: 7,
                ..event
            };
            encoder.event(&event, &table, &mut batch);
        }
        let of = |schema: LiveSchema| {
            let tags = batch.tags().iter();
            tags.filter(|tag| tag.schemas.meets(schema.alone())).count()
        };
        [
            LiveSchema::Status,
            LiveSchema::Trades,
            LiveSchema::Statistics,
        ]
        .map(of)
    };
    assert_eq!(shown(all(2, 90)), [0, 0, 0]);
    assert_eq!(shown(all(17, 91)), [1, 1, 1]);
    assert_eq!(shown(all(17, 91)), [0, 0, 0]);
}

/// Returns a change of a bid.
fn bid(action: Action, number: u16, price: i64) -> Event {
    Event {
        action,
        level: number,
        entry: entry::BID,
        price: Price::from_units(price),
        size: 5,
        ..event(Kind::Level, 1)
    }
}

/// Returns the bids of the last record of `mbp-10`, and whether a book of any may be wrong.
fn bids(batch: &Batch) -> (Vec<i64>, bool) {
    let (mut bids, mut is_doubtful) = (Vec::new(), false);
    read(batch, LiveSchema::Mbp10.alone(), false, |record| {
        if let Some(book) = record.get::<Mbp10Msg>() {
            let prices = book.levels.iter().map(|level| level.bid_px);
            bids = prices.filter(|price| *price != dbn::UNDEF_PRICE).collect();
            is_doubtful |= book.flags.raw() & dbn::flags::MAYBE_BAD_BOOK != 0;
        }
    });
    (bids, is_doubtful)
}

/// Returns the texts of the notices for a schema.
fn notices(batch: &Batch, schema: LiveSchema) -> Vec<String> {
    let mut texts = Vec::new();
    read(batch, schema.alone(), false, |record| {
        if let Some(notice) = record.get::<SystemMsg>() {
            let text = notice.msg().unwrap();
            // The header tells those in the place of a record.
            let publisher = match text.starts_with("no record: ") {
                true => 50_001,
                false => 0,
            };
            assert_eq!(notice.hd.publisher_id, publisher, "{text}");
            assert_eq!(notice.hd.instrument_id, 0, "the first one, or none");
            texts.push(text.to_owned());
        }
    });
    texts
}

#[test]
fn what_has_no_record_has_a_notice_for_those_who_lack_it() {
    let (mut encoder, table) = encoder_of(BookConfig::by_price(5).unwrap(), 0);
    let wanted = [LiveSchema::Mbp10, LiveSchema::Trades, LiveSchema::Bbo1S];
    encoder.want(wanted.into_iter().collect(), &table);
    let mut batch = Batch::default();
    const HUGE: i64 = 1 << 32;
    let level = |action, price, size| Event {
        size,
        ..bid(action, 0, price)
    };
    let cancelled = Event {
        action: Action::Delete,
        ..trade(1, 90, 5)
    };
    for event in [
        level(Action::New, 90, 5),
        level(Action::New, 100, HUGE),
        level(Action::Change, 90, 6),
        trade(1, 90, HUGE),
        cancelled,
    ] {
        encoder.event(&event, &table, &mut batch);
    }
    encoder.watermark(Watermark::unknown(2 * SECOND), &mut batch);
    let no_room = "size: 4294967296 is not from 0 to 4294967294";
    let of_level = format!("no record: instrument A: event 0 (level): {no_room}");
    let of_trades = [
        format!("no record: instrument A: event 0 (trade): {no_room}"),
        "no record: instrument A: event 0 (trade): action: DBN cannot change or cancel a trade"
            .to_owned(),
    ];
    assert_eq!(notices(&batch, LiveSchema::Trades), of_trades);
    let [size, cancel] = of_trades;
    // The change of another level has no notice within the second.
    let of_levels = [of_level.clone(), size, cancel];
    assert_eq!(notices(&batch, LiveSchema::Mbp10), of_levels);
    let of_quotes = [
        "no record: instrument_id 0: bbo-1s: a size of the best level is not from 0 to 4294967294",
        "End of interval for bbo-1s",
    ];
    assert_eq!(notices(&batch, LiveSchema::Bbo1S), of_quotes);
    batch.clear();
    for size in [7, HUGE] {
        encoder.event(&level(Action::Change, 100, size), &table, &mut batch);
    }
    assert_eq!(bids(&batch).0, [100, 90], "the book has a record again");
    assert_eq!(notices(&batch, LiveSchema::Mbp10), [of_level]);
    assert_eq!(encoder.lost(), 8);
}

#[test]
fn levels_are_as_many_as_those_of_the_feed_whatever_the_definition_says() {
    for is_late in [false, true] {
        let (mut encoder, table) = encoder_of(BookConfig::by_level(5).unwrap(), 20);
        let mut batch = Batch::default();
        if !is_late {
            encoder.want(LiveSchema::Mbp10.alone(), &table);
        }
        encoder.event(&live(), &table, &mut batch);
        for number in 1..=5_u16 {
            let event = bid(Action::New, number, 100 - i64::from(number));
            encoder.event(&event, &table, &mut batch);
        }
        encoder.want(LiveSchema::Mbp10.alone(), &table);
        let mut after = |action| {
            encoder.event(&bid(action, 1, 100), &table, &mut batch);
            bids(&batch)
        };
        assert_eq!(after(Action::New), (vec![100, 99, 98, 97, 96], false));
        assert_eq!(after(Action::Delete), (vec![99, 98, 97, 96], false));
    }
}

#[test]
fn levels_are_as_many_as_those_of_the_feed_without_a_definition() {
    let (mut encoder, table) = encoder_of(BookConfig::by_level(20).unwrap(), 0);
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Mbp10.alone(), &table);
    encoder.event(&live(), &table, &mut batch);
    for number in 1..=12_u16 {
        let event = bid(Action::New, number, 100 - i64::from(number));
        encoder.event(&event, &table, &mut batch);
    }
    assert_eq!(bids(&batch), ((90..=99).rev().collect::<Vec<i64>>(), false));
    encoder.event(&bid(Action::Delete, 1, 99), &table, &mut batch);
    assert_eq!(bids(&batch), ((89..=98).rev().collect::<Vec<i64>>(), false));
}

#[test]
fn numbers_of_levels_do_not_matter_to_books_by_price() {
    let (mut encoder, table) = encoder_of(BookConfig::by_price(20).unwrap(), 5);
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Mbp10.alone(), &table);
    encoder.event(&live(), &table, &mut batch);
    for (number, price) in [(1, 99), (30, 98), (1, 97)] {
        encoder.event(&bid(Action::New, number, price), &table, &mut batch);
    }
    assert_eq!(bids(&batch), (vec![99, 98, 97], false));
    encoder.event(&bid(Action::Delete, 30, 99), &table, &mut batch);
    assert_eq!(bids(&batch), (vec![98, 97], false));
}

#[test]
fn books_have_as_many_orders_as_those_of_the_feed() {
    let books = BookConfig::by_order(2_000, 20_000).unwrap();
    let (mut encoder, table) = encoder_of(books, 0);
    let mut batch = Batch::default();
    encoder.want(LiveSchema::Mbp10.alone(), &table);
    encoder.event(&live(), &table, &mut batch);
    for id in 1..=10_000_u64 {
        let price = (id % 1_000) as i64;
        encoder.event(&order(id, entry::BID, price, 5), &table, &mut batch);
        batch.clear();
    }
    // One more order than by default, and one more price.
    encoder.event(&order(10_001, entry::BID, 1_000, 5), &table, &mut batch);
    let expected = (991..=1_000).rev().collect::<Vec<i64>>();
    assert_eq!(bids(&batch), (expected, false));
}

#[test]
fn the_last_status_of_an_instrument_is_its_own_or_that_of_its_session() {
    let (encoder, table) = encoder();
    let mut encoder = encoder.with_bases(vec![0, 1]);
    encoder.want(LiveSchema::Status.alone(), &table);
    let status = |number: u64, instrument, source, id| Event {
        number,
        instrument,
        source,
        id,
        ..event(Kind::Status, number)
    };
    let [a, b, all] = [InstrumentId(0), InstrumentId(1), InstrumentId::ALL];
    let closes = status(2, all, 1, 3);
    let shown = Event {
        number: 5,
        flags: Flags::SNAPSHOT.with(Flags::LAST),
        ..closes
    };
    let last = |encoder: &Encoder, instrument| {
        let mut known = Vec::new();
        encoder.write_known(LiveSchema::Status, instrument, 9, &table, &mut known);
        let action = known.get(std::mem::offset_of!(StatusMsg, action)..);
        action.map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    };
    let (trading, halt, close) = (7, 8, 12);
    let mut batch = Batch::default();
    // The second feed's instrument has no event of its own.
    for (event, expected) in [
        (status(1, a, 1, 17), (trading, 0)),
        (closes, (close, 0)),
        (status(3, all, 2, 2), (close, trading)),
        (status(4, a, 1, 2), (halt, trading)),
        (shown, (halt, trading)),
    ] {
        encoder.event(&event, &table, &mut batch);
        assert_eq!((last(&encoder, a), last(&encoder, b)), expected);
    }
    let mut seen = Vec::new();
    read(&batch, LiveSchema::Status.alone(), false, |record| {
        if let Some(status) = record.get::<StatusMsg>() {
            let of = (status.hd.instrument_id, status.hd.publisher_id);
            seen.push((of, status.action));
        }
    });
    let (own, other) = ((0, 50_001), (1, 50_002));
    let expected = [(own, trading), (own, close), (other, trading), (own, halt)];
    assert_eq!(seen, expected);
}
