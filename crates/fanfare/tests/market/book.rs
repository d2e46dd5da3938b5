//! Tests of `fanfare market book`: files, snapshots, loss, multicast, malformed input.

use crate::common::{
    Folder, Running, Said, done, fails, fanfare, fanfare_at_terminal, groups, run, sending, told,
    with_program,
};
use fanfare_instruments::pcap::{LinkType, Writer};
use serde_json::{Value, json};
use std::io::BufRead;
use std::process::Command;

const SECURITY: u64 = 49_634_118;

pub(crate) fn entry(
    action: u8,
    ty: &str,
    rpt_seq: u64,
    level: u64,
    price: u64,
    size: i64,
) -> Value {
    json!({
        "MDUpdateAction": action, "MDEntryType": ty, "SecurityID": SECURITY, "Symbol": "RIU3",
        "RptSeq": rpt_seq, "MarketDepth": 5, "MDPriceLevel": level,
        "MDEntryPx": {"mantissa": price, "exponent": 0}, "MDEntrySize": size,
        "MDEntryTime": 101_500_000,
    })
}

pub(crate) fn changes(number: u64, entries: &[Value]) -> String {
    json!({"template": "DefaultIncrementalRefreshMessage", "fields": {
        "MsgSeqNum": number, "SendingTime": 20_130_801_101_500_000_u64, "MDEntries": entries,
    }})
    .to_string()
}

pub(crate) fn snapshot(rpt_seq: u64, last: u64, entries: &[Value]) -> String {
    let mut entries = entries.to_vec();
    for entry in &mut entries {
        let entry = entry.as_object_mut().unwrap();
        entry.retain(|name, _| name.starts_with("MDE") || name.starts_with("MDP"));
    }
    json!({"template": "DefaultSnapshotMessage", "fields": {
        "MsgSeqNum": 1, "SendingTime": 20_130_801_101_500_000_u64, "RptSeq": rpt_seq,
        "TotNumReports": 1, "LastMsgSeqNumProcessed": last, "SecurityID": SECURITY,
        "Symbol": "RIU3", "MDEntries": entries,
    }})
    .to_string()
}

/// Returns three messages from RptSeq 1 on.
pub(crate) fn day() -> Vec<String> {
    vec![
        changes(
            1,
            &[entry(0, "0", 1, 1, 100, 5), entry(0, "1", 2, 1, 102, 7)],
        ),
        changes(2, &[entry(0, "0", 3, 1, 101, 1)]),
        changes(
            3,
            &[entry(2, "0", 4, 2, 100, 0), entry(1, "1", 5, 1, 102, 9)],
        ),
    ]
}

/// Writes messages as a file of packets, one each.
pub(crate) fn packets(folder: &Folder, name: &str, lines: &[String]) -> String {
    let from = folder.with(&format!("{name}.jsonl"), lines.join("\n"));
    let to = folder.file(name);
    let encode = crate::spectra(&["fast", "encode"], from.as_ref(), &["-o", &to]);
    run(&encode).succeeded();
    to
}

/// The beginning of the arguments that print the book of the feed's instrument.
const BOOK: [&str; 6] = [
    "market",
    "book",
    "-t",
    "builtin:spectra",
    "--symbol",
    "RIU3",
];

fn book(args: &[&str]) -> Said {
    run(&[&BOOK[..], args].concat())
}

fn of(json: &Value) -> (&str, u64, Vec<String>) {
    let side = |name: &str| {
        let levels = json[name].as_array().unwrap().iter();
        let text = levels.map(|level| format!("{}x{}", level["size"], level["price"]));
        text.collect::<Vec<_>>().join(" ")
    };
    let sides = vec![side("bids"), side("offers")];
    (
        json["state"].as_str().unwrap(),
        json["rpt_seq"].as_u64().unwrap(),
        sides,
    )
}

#[test]
fn a_book_that_begins_with_the_day_is_live() {
    let folder = Folder::new("book-day");
    let file = packets(&folder, "feed", &day());
    let said = book(&["-f", &file]).succeeded();
    let lines: Vec<_> = said.out.lines().collect();
    assert_eq!(lines[0], "RIU3 49634118  live  RptSeq 5");
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>(),
        ["1", "101", "|", "102", "9"]
    );
    assert_eq!(lines.len(), 3);
    let all = book(&["-f", &file, "--json"]).succeeded().json_lines();
    let states: Vec<_> = all.iter().map(of).collect();
    assert_eq!(
        states[0],
        ("live", 2, vec!["5x\"100\"".into(), "7x\"102\"".into()])
    );
    assert_eq!(
        states[2],
        ("live", 5, vec!["1x\"101\"".into(), "9x\"102\"".into()])
    );
    assert_eq!(states.len(), 3);
}

#[test]
fn what_is_missing_is_said_until_a_snapshot_comes() {
    let folder = Folder::new("book-loss");
    let mut lines = day();
    lines.remove(1);
    let file = packets(&folder, "feed", &lines);
    let said = book(&["-f", &file, "--gap-timeout", "0"]).succeeded();
    let head = said.out.lines().next().unwrap().to_owned();
    assert_eq!(
        head,
        "RIU3 49634118  recovering: RptSeq 3 is missing  RptSeq 2"
    );
    assert!(said.err.contains("1 missing"), "{}", said.err);
    let whole = [
        entry(0, "0", 0, 1, 101, 1),
        entry(0, "0", 0, 2, 100, 5),
        entry(0, "1", 0, 1, 102, 7),
    ];
    let snapshot = packets(&folder, "snapshot", &[snapshot(3, 2, &whole)]);
    let args = [
        "-f",
        &file,
        "--gap-timeout",
        "0",
        "--snapshot",
        &snapshot,
        "--once",
        "--json",
    ];
    let last = book(&args).succeeded().json();
    assert_eq!(
        of(&last),
        ("live", 5, vec!["1x\"101\"".into(), "9x\"102\"".into()])
    );
}

#[test]
fn two_lines_bring_what_either_has() {
    let folder = Folder::new("book-lines");
    let lines = day();
    let a = packets(&folder, "a", &[lines[0].clone(), lines[2].clone()]);
    let b = packets(&folder, "b", &lines[1..]);
    let last = book(&["-f", &a, "-f", &b, "--once", "--json"])
        .succeeded()
        .json();
    assert_eq!(of(&last).0, "live");
    assert_eq!(of(&last).1, 5);
}

#[test]
fn a_book_is_followed_over_multicast() {
    let [group, snapshots] = groups();
    let folder = Folder::new("book-multicast");
    let mut lines = day();
    lines.remove(0);
    let file = packets(&folder, "feed", &lines);
    let whole = [entry(0, "0", 0, 1, 100, 5), entry(0, "1", 0, 1, 102, 7)];
    let snapshot = packets(&folder, "snapshot", &[snapshot(2, 1, &whole)]);
    let lines = ["--multicast", &group, "--snapshot", &snapshots];
    let ends = ["--once", "--json", "--idle", "60"];
    let args = [&BOOK[..], &lines, &ends].concat();
    let mut running = Running::start(&mut fanfare(&args));
    running.tells(&format!("receiving {group}"));
    running.tells(&format!("receiving {snapshots}"));
    send(&file, &group);
    send(&snapshot, &snapshots);
    let last = running.end().succeeded().json();
    assert_eq!(
        of(&last),
        ("live", 5, vec!["1x\"101\"".into(), "9x\"102\"".into()])
    );
}

/// Returns the arguments that follow the book of a group.
fn follow(group: &str) -> Vec<&str> {
    let line = ["--multicast", group, "--idle", "600", "--json"];
    [&BOOK[..], &line].concat()
}

/// Sends a file of packets to a group.
pub(crate) fn send(file: &str, group: &str) {
    done(&mut sending(file, group));
}

#[test]
fn the_end_of_the_terminal_ends_it_unless_it_is_ignored() {
    let [group, _] = groups();
    let folder = Folder::new("book-hangup");
    let file = packets(&folder, "feed", &day());
    let mut running = Running::start(&mut fanfare_at_terminal(&follow(&group)));
    running.tells(&format!("receiving {group}"));
    running.signal("HUP");
    let said = running.end();
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("no instrument"), "{}", said.err);
    // As nohup starts it.
    let script = "trap '' HUP; exec \"$@\"";
    let mut ignoring = with_program(Command::new("sh"), &["-c", script, "sh"]);
    ignoring.arg(fanfare(&[]).get_program());
    let mut running = Running::start(ignoring.args(follow(&group)).arg("--once"));
    running.tells(&format!("receiving {group}"));
    running.signal("HUP");
    send(&file, &group);
    assert_eq!(of(&running.end().succeeded().json()).0, "live");
}

#[test]
fn it_ends_once_nobody_reads_it() {
    let [group, _] = groups();
    let folder = Folder::new("book-unread");
    let file = packets(&folder, "feed", &day());
    let (mut running, mut unread) = Running::start_unread(&mut fanfare(&follow(&group)));
    running.tells(&format!("receiving {group}"));
    send(&file, &group);
    let mut line = String::new();
    unread.read_line(&mut line).unwrap();
    assert!(line.starts_with('{'), "{line}");
    drop(unread);
    let more = [changes(4, &[entry(0, "0", 6, 2, 99, 1)])];
    send(&packets(&folder, "more", &more), &group);
    running.end().succeeded();
}

/// Returns an IPv4 packet with a datagram to a group of 224.1.2.0, port 13014.
pub(crate) fn datagram(group: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() + 8) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((len + 20).to_be_bytes());
    ip.extend([
        0, 1, 0x40, 0, 1, 17, 0, 0, 10, 0, 0, 1, 224, 1, 2, group, 0x9c, 0x40,
    ]);
    ip.extend(13_014_u16.to_be_bytes());
    ip.extend(len.to_be_bytes());
    ip.extend([0, 0]);
    ip.extend(payload);
    ip
}

#[test]
fn a_book_is_followed_in_a_capture() {
    let folder = Folder::new("book-capture");
    let mut lines = day();
    lines.remove(0);
    let whole = [entry(0, "0", 0, 1, 100, 5), entry(0, "1", 0, 1, 102, 7)];
    let files = [
        (133, packets(&folder, "feed", &lines)),
        (140, packets(&folder, "snapshot", &[snapshot(2, 1, &whole)])),
    ];
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    for (group, file) in files {
        let bytes = std::fs::read(file).unwrap();
        let mut rest = &bytes[..];
        while let Some((header, body)) = rest.split_first_chunk::<4>() {
            let (packet, after) = body.split_at(u32::from_le_bytes(*header) as usize);
            let ip = datagram(group, packet);
            writer
                .packet(1_700_000_000_000_000_000, &ip, ip.len() as u32)
                .unwrap();
            rest = after;
        }
    }
    let capture = folder.with("lines.pcap", writer.into_inner());
    let groups = [
        "--multicast",
        "224.1.2.133:13014",
        "--snapshot",
        "224.1.2.140:13014",
    ];
    let last = book(&[&["--pcap", &capture, "--once", "--json"], &groups[..]].concat());
    let last = last.succeeded().json();
    assert_eq!(
        of(&last),
        ("live", 5, vec!["1x\"101\"".into(), "9x\"102\"".into()])
    );
    let unnamed = told(&[&BOOK[..], &["--pcap", &capture]].concat(), 2);
    assert!(unnamed.contains("--multicast"), "{unnamed}");
}

#[test]
fn nonsense_is_refused_with_the_reason() {
    let folder = Folder::new("book-nonsense");
    let file = packets(&folder, "feed", &day());
    let feed = ["market", "book", "-t", "builtin:spectra", "-f", &file];
    let with = |more: &[&'static str]| [&feed[..], more].concat();
    let unknown = fails(&with(&["--symbol", "NOPE"]));
    assert!(
        unknown.contains("no instrument \"NOPE\" (it has RIU3 49634118)"),
        "{unknown}"
    );
    assert!(told(&with(&[]), 2).contains("--symbol"));
    assert!(told(&with(&["--symbol", "RIU3", "--depth", "0"]), 2).contains("1..=65535"));
    for unfit in [
        ["--book", "prices"],
        ["--numbers", "channel"],
        ["--depth", "65"],
    ] {
        let refresh = [&["--symbol", "RIU3", "--natural-refresh"][..], &unfit].concat();
        assert!(told(&with(&refresh), 2).contains("--natural-refresh needs"));
    }
    let no_file = fails(&with(&["--symbol", "RIU3", "--snapshot", "/nowhere/x"]));
    assert!(no_file.contains("/nowhere/x"), "{no_file}");
    let three = [
        "--symbol",
        "RIU3",
        "--snapshot",
        "a",
        "--snapshot",
        "b",
        "--snapshot",
        "c",
    ];
    assert!(told(&with(&three), 2).contains("at most two lines"));
    let lines = ["--multicast", "239.255.1.1:5000", "--snapshot", "a file"];
    let group = [&BOOK[..], &lines].concat();
    assert!(told(&group, 2).contains("expected ADDRESS:PORT"));
    // A level beyond the depth is a fault, not a wrong book.
    let deep = [day(), vec![changes(4, &[entry(0, "0", 6, 9, 50, 1)])]].concat();
    let deep = packets(&folder, "deep", &deep);
    let said = book(&["-f", &deep]).succeeded();
    assert!(
        said.out
            .starts_with("RIU3 49634118  recovering: a snapshot is missing, after a fault")
    );
    assert!(
        said.err.contains("impossible changes of books: 1"),
        "{}",
        said.err
    );
}
