//! Tests of multicast on loopback: two lines, losses on both, arbitrated by the receiver.

use crate::common::{Folder, Running, Said, done, fanfare, figure, groups, sending};
use crate::run::{receiving, run};

/// Sends a generated feed over two lines that each lose `loss`, and returns the receiver's output.
fn exchange(feed: &str, loss: &str, more: &[&str], format: &[&str]) -> (Said, Said) {
    let [a, b] = groups();
    let folder = Folder::new(&a);
    let file = folder.file("feed.dat");
    run(&["generate", feed, "-n", "5000", "-o", &file]).succeeded();
    let templates = format!("builtin:{feed}");
    let decode = [
        "decode",
        "-t",
        &templates,
        "--multicast",
        &a,
        "--multicast",
        &b,
    ];
    // The sender may be delayed between its lines, and between their last packets.
    let patient = ["--idle", "60", "--gap-timeout", "2000"];
    let receiver = receiving(&[&decode[..], &patient, more, format].concat(), 2);
    let losses = ["--second", &b, "--loss-a", loss, "--loss-b", loss];
    let mut send = sending(&file, &a);
    let sent = done(send.args(losses).arg("--json").args(more));
    (sent, receiver.end().succeeded())
}

/// Checks that no packet is lost that one line had: each packet sent is delivered or a duplicate.
fn nothing_lost(sent: &Said, received: &Said) {
    let (s, r) = (sent.figures(), received.figures());
    let number = |v: &serde_json::Value| v.as_u64().unwrap();
    assert_eq!(r["kernel_drops"], 0);
    for line in ["line_a_packets", "line_b_packets"] {
        assert_eq!(r[line], s[line], "{line}");
    }
    let first = number(&r["line_a_first"]) + number(&r["line_b_first"]);
    let unnumbered = number(&r["line_a_packets"]) + number(&r["line_b_packets"])
        - first
        - number(&r["duplicates"]);
    assert!(unnumbered <= 2, "only Done has no number");
    assert_eq!((&r["late"], &r["errors"]), (&0.into(), &0.into()));
    let left_out = |line: &str| number(&s[format!("{line}_left_out")]);
    let neither = number(&s["both_left_out"]);
    assert!(neither <= left_out("line_a").min(left_out("line_b")));
    assert_eq!(first + neither + unnumbered.min(1), number(&s["packets"]));
}

#[test]
fn without_loss_everything_comes_once() {
    let format = ["--format", "json"];
    let (sent, received) = exchange("complex", "0", &[], &format);
    assert_eq!(sent.figures()["line_a_packets"], 5_001);
    let mut numbers = received.out.lines().map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).unwrap();
        message["fields"]["MsgSeqNum"].as_u64()
    });
    for i in 1..=5_000 {
        assert_eq!(numbers.next(), Some(Some(i)));
    }
    assert_eq!((numbers.next(), numbers.next()), (Some(None), None), "Done");
}

#[test]
fn complex_with_loss_loses_only_what_both_lines_lost() {
    let (sent, received) = exchange("complex", "0.05", &[], &["--json"]);
    nothing_lost(&sent, &received);
    let r = received.figures();
    let messages = r["messages"].as_u64().unwrap();
    let missing = r["missing"].as_u64().unwrap();
    assert!(missing > 0, "some of 5,000 are lost on both lines");
    // All except those lost on both lines before the first or after the last one.
    assert!((4_990..=5_001).contains(&(messages + missing)), "{r}");
}

#[test]
fn simple_with_loss_is_arbitrated_by_the_numbers_of_its_messages() {
    let (sent, received) = exchange("simple", "0.2", &[], &["--json"]);
    nothing_lost(&sent, &received);
}

#[test]
fn a_preamble_serves_as_well() {
    let (sent, received) = exchange("simple", "0.2", &["--preamble", "cme"], &["--json"]);
    nothing_lost(&sent, &received);
}

#[test]
fn one_line_shows_its_gaps() {
    let folder = Folder::new("multicast-one");
    let file = folder.file("feed.dat");
    run(&["generate", "complex", "-n", "1000", "-o", &file]).succeeded();
    let [a, _] = groups();
    let decode = [
        "decode",
        "-t",
        "builtin:complex",
        "--multicast",
        &a,
        "--json",
        "--idle",
        "60",
    ];
    let receiver = receiving(&decode, 1);
    let losses = ["--loss-a", "0.1", "--seed", "7"];
    done(sending(&file, &a).args(losses).args(["-s", "20"]));
    let f = receiver.end().succeeded().figures();
    assert_eq!(f["line_a_lost"], f["missing"]);
    assert!(f["missing"].as_u64().unwrap() > 50);
}

#[test]
fn ctrl_c_ends_with_the_report_so_far() {
    let [a, _] = groups();
    let decode = [
        "decode",
        "-t",
        "builtin:simple",
        "--multicast",
        &a,
        "--json",
    ];
    let receiver = receiving(&decode, 1);
    receiver.interrupt();
    let said = receiver.end().succeeded();
    assert_eq!(said.figures()["messages"], 0);
}

#[test]
fn the_bench_loses_nothing() {
    let bench = ["bench", "feed", "-n", "300", "--runs", "2", "--json"];
    let f = crate::common::run(&bench).succeeded().figures();
    assert_eq!((&f["lost"], &f["errors"]), (&0.into(), &0.into()));
    assert!(f["ratio_rate"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_bench_that_is_interrupted_while_it_makes_its_feed_reports_what_it_has() {
    let bench = ["bench", "feed", "-n", "10000000", "--json"];
    let bench = Running::start(&mut fanfare(&bench));
    bench.interrupt();
    let said = bench.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let end = "interrupted: these are the figures so far";
    assert!(said.err.contains(end), "{}", said.err);
    let figures = said.json();
    assert_eq!(figures["ok"], false);
    assert_eq!(figure(&figures, "lost"), 0.0);
}
