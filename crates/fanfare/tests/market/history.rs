//! `fanfare history`: a log that is written here, looked at from outside.

use crate::common::{Folder, Running, fails, fanfare, run, told};
use fanfare_history::{FeedInfo, Writer, WriterConfig};
use fanfare_market::event::{Action, Flags, InstrumentId, Kind, entry};
use fanfare_market::instruments::{Definition, IdSource, Instrument, Name, SecurityId};
use fanfare_market::{BookConfig, Event, Price, View};
use serde_json::{Value, json};
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

/// The events of a log of `count` seconds, one message a second: levels of three instruments, and
/// trades.
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
            action: Action::Overlay,
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

/// Writes a log of two segments, the first of them compacted.
pub(crate) fn write(folder: &Path, messages: &[Vec<Event>]) {
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: books(),
    };
    let config = WriterConfig {
        segment_bytes: 1 << 20,
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

fn history(args: &[&str]) -> crate::common::Said {
    run(&[&["history"], args].concat()).succeeded()
}

#[test]
fn a_log_is_listed_printed_and_checked() {
    let folder = Folder::new("history-cat");
    let log = folder.file("log");
    let messages = events(60);
    let all: Vec<&Event> = messages.iter().flatten().collect();
    write(Path::new(&log), &messages);
    let segments = history(&["ls", &log, "--json"]).json_lines();
    assert_eq!(segments.len(), 2);
    assert_eq!(
        (&segments[0]["first"], &segments[1]["first"]),
        (&json!(1), &json!(39))
    );
    let info = history(&["info", &log, "--json"]).json();
    let expected = json!([75, 1, 76, "2026-11-23T12:00:00.000000000Z"]);
    let said = ["events", "first", "next", "from"].map(|name| info[name].clone());
    assert_eq!(Value::from(said.to_vec()), expected);
    assert_eq!(
        (&info["instruments"], &info["closed"]),
        (&json!(3), &json!(true))
    );
    assert!(
        history(&["info", &log])
            .out
            .contains("feed \"feed\": books by prices")
    );
    let verified = history(&["verify", &log, "--json"]).json();
    assert_eq!(
        (&verified["ok"], &verified["events"]),
        (&json!(true), &json!(75))
    );
    let lines = history(&["cat", &log, "--json"]).json_lines();
    assert_eq!(lines.len(), all.len());
    for (line, event) in lines.iter().zip(&all) {
        assert_eq!(line["number"], event.number);
        assert_eq!(line["symbol"], SYMBOLS[event.instrument.0 as usize]);
        assert_eq!(line["price"], event.price.to_string());
        assert_eq!(line["ts_recv"], event.ts_recv);
    }
    let text = history(&["cat", &log, "--to", "2"]).out;
    let line = "1 2026-11-23T12:00:00.000000000Z ALFA level action=overlay instrument=0 \
                security_id=1000 source=8 entry=0 price=100 size=1 rpt_seq=1 \
                ts_event=1795435199999999000\n";
    assert_eq!(text, line);
}

#[test]
fn a_part_of_a_log_is_from_a_moment_up_to_another() {
    let folder = Folder::new("history-part");
    let log = folder.file("log");
    let messages = events(60);
    write(Path::new(&log), &messages);
    let cat = |args: &[&str]| history(&[&["cat", &log, "--json"], args].concat()).json_lines();
    let numbers = |lines: &[Value]| -> Vec<u64> {
        lines
            .iter()
            .map(|line| line["number"].as_u64().unwrap())
            .collect()
    };
    let second = |second: usize| messages[second][0].number;
    let expected: Vec<u64> = (second(10)..second(20)).collect();
    let dates = [
        "--from",
        "2026-11-23T12:00:10Z",
        "--to",
        "2026-11-23T15:00:20+03:00",
    ];
    assert_eq!(numbers(&cat(&dates)), expected);
    assert_eq!(
        numbers(&cat(&["--from", "12:00:10", "--to", "12:00:20"])),
        expected
    );
    assert_eq!(numbers(&cat(&["--from", "+9.5", "--to", "+20"])), expected);
    let [from, to] = [second(10), second(20)].map(|number| number.to_string());
    assert_eq!(numbers(&cat(&["--from", &from, "--to", &to])), expected);
    let trades = cat(&["--kind", "trade", "--symbol", "BETA,1002"]);
    let wanted = |event: &&Event| event.kind == Kind::Trade && event.instrument.0 != 0;
    let wanted = messages
        .iter()
        .flatten()
        .filter(wanted)
        .map(|event| event.number);
    assert_eq!(numbers(&trades), wanted.collect::<Vec<_>>());
    assert_eq!(cat(&["--symbol", "*"]).len(), 75);
    let none = history(&["cat", &log, "--symbol", "NONE,AL*"]);
    assert!(none.err.contains("no event of `NONE`") && !none.err.contains("AL*"));
    assert!(cat(&["--from", "23:00", "--to", "+1"]).is_empty());
}

#[test]
fn a_book_is_as_it_was_at_each_moment() {
    let folder = Folder::new("history-book");
    let log = folder.file("log");
    let messages = events(60);
    write(Path::new(&log), &messages);
    let mut view: View = View::new(vec![books()]);
    for (second, message) in messages.iter().enumerate() {
        message.iter().for_each(|event| view.apply(event));
        if second % 13 != 5 {
            continue;
        }
        let at = format!("+{second}.5");
        let args = [
            "book", &log, "--symbol", "BETA", "--depth", "2", "--json", "--at", &at,
        ];
        let said = history(&args).json();
        assert_eq!(said["number"], message.last().unwrap().number);
        let book = view.get(InstrumentId(1)).unwrap().book.as_ref().unwrap();
        for (name, side) in ["bids", "offers"]
            .into_iter()
            .zip(fanfare_market::Side::BOTH)
        {
            let levels = book.depth(side).take(2);
            let levels = levels.map(|level| {
                let mut object = json!({"price": level.price.to_string(), "size": level.size});
                if level.orders != 0 {
                    object["orders"] = level.orders.into();
                }
                object
            });
            assert_eq!(
                said[name],
                Value::from(levels.collect::<Vec<_>>()),
                "{at} {name}"
            );
        }
    }
    let text = history(&["book", &log, "--symbol", "1001"]).out;
    assert!(
        text.starts_with("as of event 75, 2026-11-23T12:00:59.000000000Z\nBETA 1001"),
        "{text}"
    );
    let early = fails(&[
        "history", "book", &log, "--symbol", "GAMMA", "--at", "11:00:00",
    ]);
    assert!(
        early.contains("no instrument \"GAMMA\" at this moment"),
        "{early}"
    );
}

#[test]
fn a_log_that_is_none_or_damaged_is_told_with_where() {
    let folder = Folder::new("history-bad");
    let log = folder.file("log");
    write(Path::new(&log), &events(60));
    for (args, why) in [
        (&["ls", "nowhere"][..], "nowhere"),
        (&["cat", folder.path().to_str().unwrap()], "has no log"),
        (
            &["cat", &log, "--from", "77"],
            "event 77 is not there yet: the next is 76",
        ),
        (
            &["book", &log, "--symbol", "NONE"],
            "it has ALFA 1000, BETA 1001, GAMMA 1002",
        ),
        (
            &["book", &log, "--symbol", "BETA", "--at", "1000"],
            "not there yet",
        ),
    ] {
        let said = fails(&[&["history"], args].concat());
        assert!(said.contains(why), "{why}: {said}");
    }
    for wrong in [["--from", "noon"], ["--kind", "deal"], ["--to", "+x"]] {
        told(&[&["history", "cat", &log], &wrong[..]].concat(), 2);
    }
    let first = history(&["ls", &log, "--json"]).json_lines()[0]["path"].clone();
    let path = first.as_str().unwrap();
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(path, bytes).unwrap();
    let said = run(&["history", "verify", &log, "--json"]);
    assert_eq!((said.code, &said.json()["damage"][0]["path"]), (1, &first));
    assert!(run(&["history", "verify", &log]).out.contains("byte "));
    let lost = history(&["cat", &log, "--json"]).json_lines();
    assert!(
        lost.iter().any(|line| line["lost"]["last"].is_u64()),
        "{lost:?}"
    );
}

#[test]
fn a_log_is_followed_while_it_is_written() {
    let folder = Folder::new("history-follow");
    let log = folder.file("log");
    let messages = events(40);
    write(Path::new(&log), &messages[..20]);
    let mut cat = Running::start(&mut fanfare(&[
        "history", "cat", &log, "--follow", "--json",
    ]));
    let last = messages[19].last().unwrap().number;
    cat.prints(&format!("{{\"number\":{last},"));
    write(Path::new(&log), &messages[20..]);
    cat.prints("restart");
    let last = messages[39].last().unwrap().number;
    cat.prints(&format!("{{\"number\":{last},"));
    cat.interrupt();
    cat.end().succeeded();
}
