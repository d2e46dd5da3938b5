//! Tests of `fanfare history` with a log that the test writes.

use crate::common::log::{NOON, SYMBOLS, books, events, others, write, write_raw};
use crate::common::{Folder, Running, Said, fails, fanfare, run, told};
use fanfare_history::{Keeper, KeeperConfig, Writer, WriterConfig};
use fanfare_market::event::{InstrumentId, Kind};
use fanfare_market::{Event, View};
use serde_json::{Value, json};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;

pub(crate) fn history(args: &[&str]) -> Said {
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
    let line = "1 2026-11-23T12:00:00.000000000Z ALFA level action=new instrument=0 \
                feed=1 security_id=1000 source=8 entry=0 price=100 size=1 rpt_seq=1 \
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
    let late: Vec<u64> = (second(50)..=75).collect();
    assert_eq!(numbers(&cat(&["--from", "-9.5"])), late);
    assert_eq!(
        numbers(&cat(&["--from", "-9", "--to", "-0"]))[0],
        second(50)
    );
    assert_eq!(cat(&["--from", "day"]).len(), 75);
    let args = ["book", &log, "--symbol", "BETA", "--json", "--at", "-9"];
    let book = history(&args).json();
    assert_eq!(book["number"], second(51) - 1);
    // A log of two days: only the second one.
    let mut next = events(1);
    for event in &mut next[0] {
        event.number += 75;
        event.ts_recv += 86_400_000_000_000;
    }
    write(Path::new(&log), &next);
    assert_eq!(numbers(&cat(&["--from", "day"])), [76, 77]);
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
        assert_eq!((&said["feed"], &said["instrument"]), (&json!(1), &json!(1)));
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
        text.starts_with(
            "as of event 75, 2026-11-23T12:00:59.000000000Z, feed 1, instrument 1\nBETA 1001"
        ),
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
        (&["cat", folder.path().to_str().unwrap()], "is not a log"),
        (
            &["cat", &log, "--from", "77"],
            "event 77 is not written yet: the next event is 76",
        ),
        (
            &["book", &log, "--symbol", "NONE"],
            "it has ALFA 1000, BETA 1001, GAMMA 1002",
        ),
        (
            &["book", &log, "--symbol", "BETA", "--at", "1000"],
            "is not written yet",
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
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let said = run(&["history", "verify", &log, "--json"]);
    assert_eq!((said.code, &said.json()["damage"][0]["path"]), (1, &first));
    assert!(run(&["history", "verify", &log]).out.contains("byte "));
    let lost = history(&["cat", &log, "--json"]).json_lines();
    assert!(
        lost.iter().any(|line| line["lost"]["last"].is_u64()),
        "{lost:?}"
    );
    let mended = history(&["repair", &log, "--json"]).json();
    assert_eq!(mended["mended"][0]["path"], first);
    let kept = mended["mended"][0]["kept"].as_str().unwrap();
    assert!(fs::exists(kept).unwrap());
    assert_eq!(history(&["verify", &log, "--json"]).json()["ok"], true);
    assert_eq!(history(&["cat", &log, "--json"]).json_lines(), lost);
    assert!(history(&["repair", &log]).out.contains("nothing to mend"));
}

#[test]
fn events_whose_instruments_damage_hides_are_counted() {
    let folder = Folder::new("history-nameless");
    let log = folder.file("log");
    write(Path::new(&log), &events(60));
    let path = format!("{log}/0000000001.log");
    let mut bytes = fs::read(&path).unwrap();
    // All but the header: the rest of the log has no instrument.
    bytes[64..].fill(0);
    fs::write(&path, bytes).unwrap();
    let why = "37 events left out: damage hides the names of their instruments";
    let to = folder.file("out");
    let part = ["--from", "39", "--symbol", "BETA"];
    let cat = history(&[&["cat", &log][..], &part[..]].concat());
    assert!(cat.out.is_empty() && cat.err.contains(why), "{}", cat.err);
    let export = ["history", "export", &log, "--format", "csv", "-o", &to];
    let said = run(&[&export[..], &part[..]].concat());
    assert_eq!(said.code, 1);
    assert!(said.err.contains(why), "{}", said.err);
    told(&["history", "cat", &log, "--symbol", ""], 2);
}

#[test]
fn what_arrived_is_printed_and_captured() {
    let folder = Folder::new("history-raw");
    let log = folder.file("raw");
    write_raw(Path::new(&log));
    let lines = history(&["raw", &log, "--json"]).json_lines();
    let bytes: Vec<_> = lines.iter().map(|line| &line["bytes"]).collect();
    assert_eq!(bytes, ["c081", "c082", "8=FIX.4.4|35=W|"]);
    let text = history(&["raw", &log, "--from", "+1", "--to", "+2"]).out;
    let end = " feed=1 snapshots=B 239.255.0.1:9000 2 c082\n";
    assert!(text.starts_with("2 ") && text.ends_with(end), "{text}");
    let file = folder.file("raw.pcap");
    let said = history(&["raw", &log, "-o", &file]).err;
    assert!(
        said.contains("2 datagrams written") && said.contains("1 message of FIX"),
        "{said}"
    );
    let messages = folder.file("raw.fix");
    let said = history(&["raw", &log, "--fix", "-o", &messages]).err;
    assert!(
        said.contains("1 message of FIX written") && said.contains("2 datagrams left out"),
        "{said}"
    );
    assert_eq!(folder.read("raw.fix"), b"8=FIX.4.4\x0135=W\x01");
    // The capture, and the log itself: to a socket of the test.
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let line = format!("239.255.0.1:9000={}", receiver.local_addr().unwrap());
    for (from, more) in [(&file, ""), (&log, "1 message of FIX left out")] {
        let sent = run(&["replay", from, "--speed", "1000", "--line", &line]).succeeded();
        assert!(sent.err.contains("2 datagrams"), "{}", sent.err);
        assert!(sent.err.contains(more), "{}", sent.err);
        for expected in [[0xc0, 0x81], [0xc0, 0x82]] {
            let mut room = [0; 16];
            let len = receiver.recv(&mut room).unwrap();
            assert_eq!(room[..len], expected);
        }
    }
    let args = [
        "replay", &log, "--from", "+0.5", "--to", "+1.5", "--line", &line, "--json",
    ];
    assert_eq!(run(&args).succeeded().figures()["datagrams"], 1);
    let misused = told(&["replay", &log, "--port", "0"], 2);
    assert!(misused.contains("--port needs a log or DBN"), "{misused}");
    assert!(
        history(&["verify", &log])
            .out
            .contains("3 datagrams and messages")
    );
    let info = history(&["info", &log]).out;
    assert!(
        info.starts_with("3 datagrams and messages from 1 to 3, "),
        "{info}"
    );
    // A log of the other kind is reported.
    let to = folder.file("none");
    for args in [
        &["cat", &log][..],
        &["book", &log, "--symbol", "BETA"],
        &["export", &log, "--format", "csv", "-o", &to],
    ] {
        let told = fails(&[&["history"], args].concat());
        assert!(told.contains("`fanfare history raw` prints it"), "{told}");
    }
    assert!(!fs::exists(to).unwrap());
    let events = whole(&folder);
    let told = fails(&["history", "raw", &events]);
    assert!(told.contains("`fanfare history cat` prints it"), "{told}");
}

#[test]
fn a_capture_of_a_log_that_lacks_datagrams_is_written_and_fails() {
    let folder = Folder::new("history-raw-lost");
    let log = folder.file("raw");
    write_raw(Path::new(&log));
    let config = WriterConfig::default();
    let (mut writer, opened) = Writer::open(Path::new(&log), config, Vec::new(), NOON).unwrap();
    writer.lost(opened.next, opened.next + 1).unwrap();
    writer.close().unwrap();
    let file = folder.file("raw.pcap");
    let raw = ["history", "raw", &log, "-o", &file, "--fix"];
    for (args, written) in [
        (&raw[..5], "2 datagrams written"),
        (&raw[..], "1 message of FIX written"),
    ] {
        let said = run(args);
        assert_eq!(said.code, 1, "{}", said.err);
        for part in [written, "2 are missing"] {
            assert!(said.err.contains(part), "{}", said.err);
        }
    }
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

#[test]
fn a_reader_of_what_was_removed_is_told_from_where_it_can_be_had() {
    let folder = Folder::new("history-gone");
    let log = folder.file("log");
    write(Path::new(&log), &events(60));
    let config = KeeperConfig {
        keep_bytes: Some(1),
        ..KeeperConfig::default()
    };
    let mut keeper = Keeper::open(log.as_ref(), config).unwrap();
    while keeper.work().unwrap() > 0 {}
    assert_eq!(keeper.stats().removed, 1);
    let told = fails(&["history", "cat", &log, "--from", "7"]);
    let why = "event 7 was removed by retention: the log begins with event 39 of 2026-11-23T12:00:";
    assert!(told.contains(why), "{told}");
    let numbers = |from: &str| {
        let lines = history(&["cat", &log, "--json", "--from", from]).json_lines();
        let numbers = lines.iter().map(|line| line["number"].as_u64().unwrap());
        numbers.collect::<Vec<_>>()
    };
    let rest: Vec<u64> = (39..=75).collect();
    assert_eq!(numbers("39"), rest);
    assert_eq!(numbers("+0"), rest);
    assert_eq!(numbers("11:00"), rest);
    // Books of the remaining events are known, and no earlier ones.
    let book = |at| {
        let log = log.as_str();
        [
            "history", "book", log, "--symbol", "BETA", "--json", "--at", at,
        ]
    };
    assert!(
        run(&book("39")).succeeded().json()["bids"]
            .as_array()
            .is_some_and(|bids| !bids.is_empty())
    );
    for at in ["7", "11:00", "12:00:01"] {
        let told = fails(&book(at));
        assert!(told.contains("the log begins with event 39"), "{told}");
    }
}

/// Writes a log with all kinds of events.
pub(crate) fn whole(folder: &Folder) -> String {
    let log = folder.file("log");
    let mut messages = events(60);
    messages.push(others(&messages));
    write(Path::new(&log), &messages);
    log
}
