//! Tests of a log that is replayed through a gateway: its outlets have the events of the log.

use crate::common::gateway::Gateway;
use crate::common::log::{SYMBOLS, events, live, others, write};
use crate::common::{Folder, fails, fanfare, run, told};
use crate::lines;
use fanfare_market::Event;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Writes a gateway's configuration that replays `log` into a file of events and a log of its own.
fn config(folder: &Folder, log: &str, name: &str, more: &str) -> String {
    let (own, events) = (folder.file(name), folder.file(&format!("{name}.jsonl")));
    let ring = folder.file(&format!("{name}.ring"));
    let text = format!(
        "events = \"{events}\"\nmode = \"subscriptions\"\n[producers]\nport = 0\n\
         [consumers]\nport = 0\n[history]\nfolder = \"{own}\"\nring = \"{ring}\"\n\
         checkpoint_events = 1000\n[replay]\nlog = \"{log}\"\n{more}\n"
    );
    folder.with(&format!("{name}.toml"), text)
}

/// Replays to the end. Returns the text of the file of events, and the gateway's own log.
fn replay(folder: &Folder, log: &str, name: &str, more: &str) -> (String, String) {
    let config = config(folder, log, name, more);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    // In good order, which is no trouble.
    gateway.tells(&format!(" INFO history: replay of {log}: has ended"));
    gateway.stop();
    let events = String::from_utf8(folder.read(&format!("{name}.jsonl"))).unwrap();
    (events, folder.file(name))
}

fn cat(log: &str, more: &[&str]) -> String {
    run(&[&["history", "cat", log, "--json"], more].concat())
        .succeeded()
        .out
}

fn books(log: &str) -> Vec<Value> {
    let book = |symbol| {
        let args = ["history", "book", log, "--symbol", symbol, "--json"];
        let mut book = run(&args).succeeded().json();
        book.as_object_mut().unwrap().remove("number");
        book
    };
    SYMBOLS.map(book).to_vec()
}

/// Writes a log of two runs with all kinds of events, and a gap.
fn whole(folder: &Folder) -> String {
    let log = folder.file("log");
    let mut messages = events(60);
    messages.push(others(&messages));
    write(Path::new(&log), &messages[..40]);
    write(Path::new(&log), &messages[40..]);
    log
}

#[test]
fn what_is_replayed_has_the_same_events_with_the_same_numbers() {
    let folder = Folder::new("market-replay");
    let log = whole(&folder);
    let original = cat(&log, &[]);
    for what in [r#"{"lost":{"first":76,"last":80}}"#, r#"{"restart":true}"#] {
        assert!(original.contains(what), "{what}: {original}");
    }
    let (events, own) = replay(&folder, &log, "copy", "speed = \"max\"");
    assert_eq!(events, original);
    assert_eq!(cat(&own, &[]), original);
    assert_eq!(books(&own), books(&log));
    let of = |log: &str| run(&["history", "info", log, "--json"]).succeeded().json();
    let (copy, log) = (of(&own), of(&log));
    for key in ["first", "next", "from", "to", "run", "instruments", "feeds"] {
        assert_eq!(copy[key], log[key], "{key}");
    }
    // A copy of the copy, at a thousand times the speed.
    let (events, again) = replay(&folder, &own, "again", "speed = 1000000");
    assert_eq!((&events, &cat(&again, &[])), (&original, &original));
}

#[test]
fn a_part_begins_with_what_is_known_and_is_repeated() {
    let folder = Folder::new("market-replay-part");
    let log = folder.file("log");
    let messages = live(60);
    write(Path::new(&log), &messages);
    let number = |second: usize| messages[second + 3][0].number;
    let (from, to) = (number(30), number(50));
    let (events, own) = replay(
        &folder,
        &log,
        "part",
        "speed = \"max\"\nfrom = \"+30\"\nto = \"12:00:50\"\nloop = 2",
    );
    assert_eq!(cat(&own, &[]), events);
    let said = lines(&events);
    let part = lines(&cat(&log, &["--from", "+30", "--to", "+50"]));
    assert_eq!(part.len() as u64, to - from);
    let turns: Vec<_> = said.split(|line| line["restart"] == true).collect();
    assert_eq!(turns.len(), 2);
    let shown = turns[0].len() - part.len();
    assert!(shown > 6, "{shown}");
    let is_trade = |line: &&Value| line["kind"] == "trade";
    let mut trades = turns[0][..shown].iter().filter(is_trade).peekable();
    assert!(trades.peek().is_some(), "{said:?}");
    assert!(trades.all(|line| line["snapshot"] == true), "not new");
    let numbers = said.iter().filter_map(|line| line["number"].as_u64());
    let numbers: Vec<u64> = numbers.collect();
    let first = from - shown as u64;
    assert_eq!(
        numbers,
        (first..first + numbers.len() as u64).collect::<Vec<_>>()
    );
    assert_eq!(turns[0][shown..], part);
    let without = |lines: &[Value]| -> Vec<Value> {
        let mut lines = lines.to_vec();
        for line in &mut lines {
            line.as_object_mut().unwrap().remove("number");
        }
        lines
    };
    assert_eq!(
        without(turns[1]),
        without(turns[0]),
        "but for their numbers"
    );
    // The books are those of the log, in both passes.
    let book = |log: &str, number: u64| {
        let number = number.to_string();
        let args = [
            "history", "book", log, "--symbol", "BETA", "--json", "--at", &number,
        ];
        let book = run(&args).succeeded().json();
        ["bids", "offers", "state"].map(|key| book[key].clone())
    };
    for turn in 1..=2 {
        let last = first + turn * turns[0].len() as u64 - 2;
        assert_eq!(book(&own, last), book(&log, to - 2), "turn {turn}");
    }
    // The next replay into the same log continues after it.
    let (_, own) = replay(&folder, &log, "part", "speed = \"max\"");
    let all: Vec<Event> = messages.concat();
    let behind = lines(&cat(&own, &[]));
    let last = behind[behind.len() - all.len()..].to_vec();
    assert_eq!(without(&last), without(&lines(&cat(&log, &[]))));
    assert_eq!(last[0]["number"], first + numbers.len() as u64);
}

#[test]
fn sessions_are_served_what_is_replayed() {
    let folder = Folder::new("market-replay-served");
    let log = folder.file("log");
    write(Path::new(&log), &live(60));
    let command = ["replay", &log, "--speed", "240", "--loop", "--port", "0"];
    let gateway = Gateway::start(&mut fanfare(&command));
    let consumers = [
        "fanout",
        "consumers",
        "127.0.0.1",
        "2",
        "0",
        "--json",
        "--port",
        &gateway.consumers,
        "--subscribe",
        "*",
        "--depth",
        "5",
        "--checksum-every",
        "1",
        "--messages",
        "400",
    ];
    let said = run(&consumers).succeeded().json();
    gateway.stop();
    let count = |name: &str| {
        said["figures"][name]
            .as_f64()
            .unwrap_or_else(|| panic!("{said}"))
    };
    assert!(
        count("snapshots") >= 12.0,
        "each turn begins with them: {said}"
    );
    assert!(count("checked") > 200.0 && count("faults") == 0.0, "{said}");
}

#[test]
fn a_replay_that_cannot_be_is_told_with_why() {
    let folder = Folder::new("market-replay-bad");
    let log = folder.file("log");
    write(Path::new(&log), &live(60));
    let file = |name: &str, text: String| folder.with(name, text);
    let feed = "[[feed]]\ntemplates = \"builtin:complex\"\nlines = [\"239.1.1.1:5000\"]\n\
                mapping = \"builtin:complex\"\n";
    let ports = "[producers]\nport = 0\n[consumers]\nport = 0\n";
    for (text, why) in [
        (format!("[replay]\nlog = \"{log}/none\"\n{ports}"), "none"),
        (
            format!("[replay]\nlog = \"{log}\"\n{feed}{ports}"),
            "the only source",
        ),
        (
            format!("[replay]\nlog = \"{log}\"\n[history]\nfolder = \"{log}\"\n{ports}"),
            "must be different folders",
        ),
        (
            format!("[replay]\nlog = \"{log}\"\nfrom = 500\n{ports}"),
            "is not written yet",
        ),
        (
            format!("[replay]\nlog = \"{log}\"\nfrom = 70\nto = 70\n{ports}"),
            "no events",
        ),
        (
            format!("[replay]\nlog = \"{log}\"\nspeed = -1\n{ports}"),
            "line 3",
        ),
    ] {
        let config = file("bad.toml", text);
        let said = fails(&["gateway", &config]);
        assert!(said.contains(why), "{why}: {said}");
    }
    for (args, why) in [
        (&["--line", "239.1.1.1:5000"][..], "a gateway replays"),
        (&["x.pcap"], "which must be the only file"),
        (&["--speed", "1e9"], "--speed of a log"),
    ] {
        let said = told(&[&["replay", &log], args].concat(), 2);
        assert!(said.contains(why), "{why}: {said}");
    }
    // Damage is reported as missing events.
    let first = run(&["history", "ls", &log, "--json"])
        .succeeded()
        .json_lines()[0]["path"]
        .clone();
    let path = first.as_str().unwrap();
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let (events, own) = replay(&folder, &log, "copy", "speed = \"max\"");
    assert!(events.contains("\"lost\""), "{events}");
    assert_eq!((&events, &cat(&own, &[])), (&cat(&log, &[]), &events));
}

#[test]
fn dbn_is_served_as_a_log_is() {
    let folder = Folder::new("market-replay-dbn");
    let [log, file] = ["log", "day.dbn"].map(|name| folder.file(name));
    write(Path::new(&log), &live(60));
    run(&["history", "export", &log, "--format", "dbn", "-o", &file]).succeeded();
    let config = config(&folder, &log, "dbn", "speed = \"max\"\nloop = 2");
    let text = fs::read_to_string(&config).unwrap();
    let text = text.replace(&format!("log = \"{log}\""), &format!("dbn = \"{file}\""));
    let config = folder.with("dbn.toml", text);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    gateway.tells(&format!("replay of {file}: has ended"));
    gateway.stop();
    let events = String::from_utf8(folder.read("dbn.jsonl")).unwrap();
    let own = folder.file("dbn");
    assert_eq!(cat(&own, &[]), events);
    let mut said = lines(&events);
    for line in &mut said {
        // `market events` has no feeds.
        line.as_object_mut().unwrap().remove("feed");
    }
    let turns: Vec<_> = said.split(|line| line["restart"] == true).collect();
    let printed = lines(&run(&["market", "events", "--dbn", &file]).succeeded().out);
    assert_eq!((turns.len(), turns[0].len()), (2, printed.len()));
    assert_eq!(turns[0], printed);
    let numbers = said.iter().filter_map(|line| line["number"].as_u64());
    assert!(numbers.eq(1..=2 * printed.len() as u64));
    for (own, other) in books(&own).iter().zip(books(&log)) {
        let of = |book: &Value| [book["bids"].clone(), book["offers"].clone()];
        assert_eq!(of(own), of(&other));
    }
}
