//! Tests of the errors for malformed feeds and mappings, by the real binary.

use super::text;
use crate::common::{Folder, Said, fails, run};
use std::fs;
use std::path::PathBuf;

const TEMPLATES: &str = r#"<templates>
  <template name="Change" id="1"><uInt32 name="MsgSeqNum" id="34"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <uInt32 name="MDUpdateAction" id="279"/><string name="MDEntryType" id="269"/>
      <uInt32 name="SecurityID" id="48"/><uInt32 name="RptSeq" id="83"/>
      <decimal name="MDEntryPx" id="270"/><uInt32 name="MDEntrySize" id="271"/>
      <uInt32 name="MDPriceLevel" id="1023"/>
    </sequence></template>
  <template name="Snapshot" id="2"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="SecurityID" id="48"/><uInt32 name="RptSeq" id="83"/>
    <uInt32 name="LastMsgSeqNumProcessed" id="369"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/><decimal name="MDEntryPx" id="270"/>
      <uInt32 name="MDEntrySize" id="271"/><uInt32 name="MDPriceLevel" id="1023"/>
    </sequence></template>
</templates>"#;

const MAPPING: &str = r#"[instruments]
unknown = "add"
[[message]]
template = 1
does = "changes"
number = 34
entries = 268
instrument = { id = 48 }
[message.entry]
type = 269
action = 279
price = 270
size = 271
rpt-seq = 83
[[message.event]]
kind = "level"
level = 1023
[[message]]
template = 2
does = "snapshot"
number = 34
rpt-seq = 83
last = 369
entries = 268
instrument = { id = 48 }
[message.entry]
type = 269
price = 270
size = 271
[[message.event]]
kind = "level"
level = 1023
"#;

struct Files {
    folder: Folder,
    templates: PathBuf,
    mapping: PathBuf,
}

impl Files {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        let (templates, mapping) = (folder.path().join("t.xml"), folder.path().join("m.toml"));
        fs::write(&templates, TEMPLATES).unwrap();
        fs::write(&mapping, MAPPING).unwrap();
        Self {
            folder,
            templates,
            mapping,
        }
    }

    /// Writes messages, as lines of JSON, into a file.
    fn feed(&self, name: &str, messages: &[String]) -> PathBuf {
        let lines = self.folder.path().join(format!("{name}.jsonl"));
        let file = self.folder.path().join(name);
        fs::write(&lines, messages.join("\n") + "\n").unwrap();
        let encode = ["fast", "encode", "-t", text(&self.templates)];
        let mut args = encode.to_vec();
        args.extend(["-f", text(&lines), "-o", text(&file)]);
        run(&args).succeeded();
        file
    }

    fn run(&self, command: &str, more: &[&str]) -> Said {
        let mut args = vec!["market", command, "-t", text(&self.templates)];
        args.extend(["-m", text(&self.mapping)]);
        args.extend(more);
        run(&args)
    }

    /// Returns the book of instrument 7 after three good levels and this message.
    fn book_behind(&self, message: &str) -> Said {
        let mut messages = good();
        messages.push(message.to_owned());
        let file = self.feed("feed", &messages);
        self.run("book", &["--symbol", "7", "-f", text(&file)])
    }
}

/// Returns a change of one bid.
fn change(number: u32, instrument: u32, rpt_seq: u32, price: &str, level: u32) -> String {
    format!(
        r#"{{"template": "Change", "fields": {{"MsgSeqNum": {number}, "MDEntries": [
        {{"MDUpdateAction": 0, "MDEntryType": "0", "SecurityID": {instrument},
        "RptSeq": {rpt_seq}, "MDEntryPx": {price}, "MDEntrySize": 1,
        "MDPriceLevel": {level}}}]}}}}"#
    )
    .replace('\n', "")
}

fn good() -> Vec<String> {
    let levels = 1..=3;
    levels
        .map(|n| change(n, 7, n, &(100 - n).to_string(), n))
        .collect()
}

const RECOVERING: &str = "7  recovering: a snapshot is missing, after a fault";

#[test]
fn values_that_cannot_be_are_named_and_the_book_recovers() {
    let files = Files::new("market-bad-values");
    let above = "1000000000000000000 is out of range: a price must be below 9.2e9";
    let price = r#"{"mantissa": 1, "exponent": 18}"#;
    for (message, said) in [
        (
            change(4, 7, 4, "90", 0),
            "fanfare: Change(1): entry 0: MDPriceLevel(1023): instrument 7: the level is 0: \
             levels are counted from 1\n"
                .to_owned(),
        ),
        (
            change(4, 7, 4, price, 4),
            format!("fanfare: Change(1): entry 0: MDEntryPx(270): instrument 7: {above}\n"),
        ),
        (
            change(4, 7, 4, "90", 200),
            "  impossible changes of books: 1\n".to_owned(),
        ),
        (
            change(4, 7, 2, "98", 2),
            "  RptSeq that went back: 1\n".to_owned(),
        ),
    ] {
        let book = files.book_behind(&message).succeeded();
        assert!(book.out.starts_with(RECOVERING), "{message}: {}", book.out);
        assert!(book.err.contains(&said), "{message}: {}", book.err);
    }
}

#[test]
fn a_snapshot_older_than_the_changes_is_not_taken() {
    let files = Files::new("market-bad-snapshot");
    let changes = files.feed("changes", &good());
    let snapshot = r#"{"template": "Snapshot", "fields": {"MsgSeqNum": 1, "SecurityID": 7,
        "RptSeq": 2, "LastMsgSeqNumProcessed": 2, "MDEntries": [{"MDEntryType": "0",
        "MDEntryPx": 50, "MDEntrySize": 9, "MDPriceLevel": 1}]}}"#;
    let snapshots = files.feed("snapshots", &[snapshot.replace('\n', "")]);
    let args = [
        "--symbol",
        "7",
        "-f",
        text(&changes),
        "--snapshot",
        text(&snapshots),
    ];
    let book = files.run("book", &args).succeeded();
    assert!(book.out.starts_with("7  live  RptSeq 3\n"), "{}", book.out);
    assert!(!book.out.contains("50"), "{}", book.out);
    assert!(book.err.contains("0 taken of 1 snapshot"), "{}", book.err);
}

#[test]
fn packets_that_cannot_be_decoded_are_named_up_to_a_limit() {
    let files = Files::new("market-bad-packets");
    let file = files.feed("feed", &good());
    let mut bytes = fs::read(&file).unwrap();
    // No template has the number 126. A packet that comes again is not decoded again.
    bytes.extend((0..60_u8).flat_map(|number| [3, 0, 0, 0, 0xc0, 0xfe, 0x80 | number]));
    fs::write(&file, bytes).unwrap();
    let book = files.run("book", &["--symbol", "7", "-f", text(&file)]);
    assert_eq!(book.code, 1, "{}", book.err);
    let named = book.err.matches("fanfare: line A, byte ").count();
    assert_eq!(named, 50, "{}", book.err);
    let end = "further ones of this kind are only counted";
    assert_eq!(book.err.matches(end).count(), 1, "{}", book.err);
}

#[test]
fn instruments_that_were_never_defined_are_counted() {
    let files = Files::new("market-bad-instruments");
    let count = MAPPING.replace("unknown = \"add\"", "unknown = \"count\"");
    fs::write(&files.mapping, count).unwrap();
    let known = files.folder.path().join("known.csv");
    fs::write(&known, "id\n7\n").unwrap();
    let mut messages = good();
    messages.push(change(4, 8, 1, "100", 1));
    let file = files.feed("feed", &messages);
    let more = ["-f", text(&file), "--instruments", text(&known)];
    let events = files.run("events", &more).succeeded();
    assert_eq!(events.out.lines().count(), 3);
    assert!(
        events.err.contains("  unknown instrument: 1\n"),
        "{}",
        events.err
    );
    let mut more = more.to_vec();
    more.extend(["--symbol", "7"]);
    let book = files.run("book", &more).succeeded();
    let said = "  entries of instruments that were never defined: 1\n";
    assert!(book.err.contains(said), "{}", book.err);
    assert!(book.out.starts_with("7  live"), "{}", book.out);
}

#[test]
fn mappings_that_do_not_fit_are_refused_with_line_and_key() {
    let files = Files::new("market-bad-mapping");
    let refused = |from: &str, to: &str| {
        fs::write(&files.mapping, MAPPING.replacen(from, to, 1)).unwrap();
        let name = text(&files.mapping);
        let args = ["market", "check", name, "-t", text(&files.templates)];
        let error = fails(&args);
        let error = error.strip_prefix(&format!("fanfare: {name}:")).unwrap();
        error.trim_end().to_owned()
    };
    for (from, to, said) in [
        ("template = 1", "template = 9", "3: message: no template 9"),
        (
            "price = 270",
            "price = 9270",
            "12: message.entry.price: no field 9270 in Change(1)",
        ),
        (
            "price = 270",
            "price = 268",
            "12: message.entry.price: MDEntries(268) of Change(1) is a group or a sequence, which \
             cannot be a price",
        ),
        (
            "kind = \"level\"",
            "kind = \"lvl\"",
            "16: message.event.kind: unknown value `lvl`: expected one of level, order, trade, \
             statistic, status, clear, ignore",
        ),
    ] {
        assert_eq!(refused(from, to), said);
    }
}
