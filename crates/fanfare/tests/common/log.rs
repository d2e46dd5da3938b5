//! A log that a test writes.

use fanfare_history::{FeedInfo, Raw, RawLine, Source, Writer, WriterConfig};
use fanfare_market::event::{Action, Flags, InstrumentId, Kind, entry};
use fanfare_market::instruments::{Definition, IdSource, Instrument, Name, SecurityId};
use fanfare_market::{BookConfig, Event, Price};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;

/// 2026-11-23T12:00:00Z.
pub(crate) const NOON: u64 = 1_795_435_200_000_000_000;
const SECOND: u64 = 1_000_000_000;
pub(crate) const SYMBOLS: [&str; 3] = ["ALFA", "BETA", "GAMMA"];

pub(crate) fn instrument(number: u32) -> Vec<u8> {
    let known = Instrument {
        instrument: InstrumentId(number),
        definition: Definition {
            name: Name {
                symbol: SYMBOLS[number as usize].as_bytes(),
                id: SecurityId::Number(1_000 + u64::from(number)),
                source: IdSource::parse(b"8").unwrap(),
            },
            tick: Price::from_units(10_000_000),
            ..Definition::default()
        },
        revision: 1,
        status: 0,
    };
    let mut out = Vec::new();
    known.write(&mut out);
    out
}

pub(crate) fn books() -> BookConfig {
    BookConfig::by_price(20).unwrap()
}

/// Returns the events of a log of `count` seconds, one message per second: levels of three
/// instruments, and trades.
pub(crate) fn events(count: u64) -> Vec<Vec<Event>> {
    let mut number = 0;
    let message = |second: u64| {
        let instrument = InstrumentId((second % 3) as u32);
        let side = [entry::BID, entry::OFFER][(second / 3 % 2) as usize];
        let step = (second / 6 % 5) as i64;
        let price = if side == entry::BID {
            100 - step
        } else {
            101 + step
        };
        let base = Event {
            instrument,
            source: 1,
            ts_recv: NOON + second * SECOND,
            ts_event: NOON + second * SECOND - 1_000,
            price: Price::from_units(price * SECOND as i64),
            size: second as i64 + 1,
            rpt_seq: (second / 3) as u32 + 1,
            ..Event::EMPTY
        };
        let level = Event {
            kind: Kind::Level,
            // Each of five prices of a side is added once in 30 seconds.
            action: if second < 30 {
                Action::New
            } else {
                Action::Change
            },
            entry: side,
            ..base
        };
        let trade = Event {
            kind: Kind::Trade,
            entry: entry::TRADE,
            id: second,
            ..base
        };
        let mut events = vec![level];
        events.extend(second.is_multiple_of(4).then_some(trade));
        for event in &mut events {
            number += 1;
            event.number = number;
        }
        events.last_mut().unwrap().flags = Flags::LAST;
        events
    };
    (0..count).map(message).collect()
}

/// Returns the same, with the states of the instruments before them, which are live.
pub(crate) fn live(count: u64) -> Vec<Vec<Event>> {
    let state = |instrument| Event {
        instrument: InstrumentId(instrument),
        kind: Kind::State,
        id: 1,
        source: 1,
        ts_recv: NOON,
        flags: Flags::LAST,
        ..Event::EMPTY
    };
    let states = (0..3).map(|instrument| vec![state(instrument)]);
    let mut all: Vec<_> = states.chain(events(count)).collect();
    for (number, event) in (1..).zip(all.iter_mut().flatten()) {
        event.number = number;
    }
    all
}

/// Returns messages after those of [`events`] with the other kinds: a definition, a status,
/// statistics of the session, a snapshot of a book, a state; a gap of five numbers precedes them.
pub(crate) fn others(messages: &[Vec<Event>]) -> Vec<Event> {
    let mut number = messages.iter().map(Vec::len).sum::<usize>() as u64 + 5;
    let of = |kind, id| Event {
        kind,
        id,
        source: 1,
        ts_recv: NOON + 3_600 * SECOND,
        ..Event::EMPTY
    };
    let high = Event {
        entry: b'7',
        price: Price::from_units(-2_500_000_000),
        ..of(Kind::Statistic, 0)
    };
    let volume = Event {
        entry: b'B',
        size: 1 << 30,
        ..of(Kind::Statistic, 0)
    };
    let session = Event {
        instrument: InstrumentId::ALL,
        ..of(Kind::Status, 2)
    };
    let clear = Event {
        flags: Flags::SNAPSHOT,
        rpt_seq: 77,
        ..of(Kind::Clear, 0)
    };
    let all = [
        of(Kind::Definition, 1),
        of(Kind::Status, 17),
        session,
        high,
        volume,
        clear,
        Event {
            flags: Flags::LAST,
            ..of(Kind::State, 1)
        },
    ];
    let numbered = all.map(|event| {
        number += 1;
        Event { number, ..event }
    });
    numbered.to_vec()
}

/// Writes a raw log: a datagram each of two lines, and a FIX message.
pub(crate) fn write_raw(folder: &Path) {
    let (mut writer, _) = Writer::open(folder, WriterConfig::default(), Vec::new(), NOON).unwrap();
    let address = SocketAddrV4::new(Ipv4Addr::new(239, 255, 0, 1), 9000);
    let pieces: [(Source, u16, &[u8]); 3] = [
        (Source::Line, 0, &[0xc0, 0x81]),
        (Source::Snapshots, 1, &[0xc0, 0x82]),
        (Source::Fix, 0, b"8=FIX.4.4\x0135=W\x01"),
    ];
    for (at, (source, line, bytes)) in pieces.into_iter().enumerate() {
        let line = RawLine {
            source,
            feed: 1,
            line,
            address,
        };
        let raw = Raw {
            number: 0,
            received: NOON + at as u64 * 1_000_000_000,
            line,
            bytes,
        };
        writer.raw(&raw).unwrap();
    }
    writer.close().unwrap();
}

/// Writes a log of two segments.
pub(crate) fn write(folder: &Path, messages: &[Vec<Event>]) {
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: books(),
    };
    let config = WriterConfig {
        segment_bytes: 1 << 20,
        first: 1,
    };
    let (mut writer, _) = Writer::open(folder, config, vec![feed], NOON).unwrap();
    for (at, message) in messages.iter().enumerate() {
        if at < SYMBOLS.len() {
            writer.instrument(&instrument(at as u32)).unwrap();
        }
        if at == messages.len() / 2 {
            writer.roll().unwrap();
        }
        let bytes: Vec<_> = message.iter().map(Event::to_bytes).collect();
        writer.events(&bytes).unwrap();
    }
    writer.close().unwrap();
}
