//! Tests of server, consumers, producers and report together.

use crate::common::gateway::Gateway;
use crate::common::{
    Folder, Running, eventually, fanfare, fanfare_at_terminal, figure, run, said, with_program,
};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[test]
fn each_marked_message_reaches_each_consumer_once_and_in_order() {
    let ports = ["--producer-port", "0", "--consumer-port", "0"];
    let mut server = fanfare(&["fanout", "server", "--workers", "2"]);
    let server = Gateway::start(server.args(ports));
    let mut consumers = fanfare(&["fanout", "consumers", "127.0.0.1", "7", "0", "--json"]);
    consumers.args(["--messages", "350", "--from-start"]);
    let mut consumers = Running::start(consumers.args(["--port", &server.consumers]));
    consumers.tells("7 sessions logged on");
    let sending = ["fanout", "producers", "localhost", "5", "50", "200", "5"];
    let options = ["--port", &server.producers, "--json"];
    let sent = run(&[&sending[..], &options].concat()).json();
    assert_eq!(
        (figure(&sent, "sent"), figure(&sent, "marked")),
        (250.0, 50.0)
    );
    let received = consumers.end().succeeded().json();
    for (name, value) in [
        ("received", 350.0),
        ("missing", 0.0),
        ("duplicates", 0.0),
        ("reordered", 0.0),
    ] {
        assert_eq!(figure(&received, name), value, "{name}");
    }
    let told = server.stop().out;
    let sum = "250 messages received, 50 marked: 350 deliveries";
    assert!(told.lines().any(|line| line == sum), "{told}");
}

/// The whole demo prints one JSON object, nothing is lost, and only the page is left; and the next
/// one works in the same folder.
#[test]
fn the_demo_works_cleans_up_and_works_again() {
    let folder = Folder::new("demo");
    let page = folder.file("demo.html");
    let mut demo = fanfare(&["demo", "--json", "--html", &page]);
    // A busy machine takes some milliseconds for each of its 42,000 round trips over DDS.
    let limit = Duration::from_secs(600);
    let said = Running::start(demo.env("TMPDIR", folder.path())).end_within(limit);
    let said = said.succeeded();
    let figures = said.json();
    assert_eq!(figure(&figures, "fanout_lost"), 0.0);
    assert!(figure(&figures, "fanout_in_rate_per_s") > 0.0);
    assert!(figure(&figures, "fanout_out_rate_per_s") > 0.0);
    assert_eq!(files(&folder), ["demo.html"]);
    if said.err.contains("without a capture") {
        fanfare_peers::skipped(&"no right to capture, the latency part");
    } else {
        assert!(figure(&figures, "fanout_p50_us") > 0.0);
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg") && !html.contains("src=\"http"));
    }
    let text = cut_short(&folder, &["producers send", "simple feed"], "INT");
    assert!(text.contains(NOTHING_LOST), "{text}");
}

#[test]
fn an_interrupted_demo_reports_what_it_has() {
    let text = cut_short(&Folder::new("interrupted"), &["producers send"], "INT");
    assert!(text.contains(NOTHING_LOST), "{text}");
}

#[test]
fn a_demo_whose_terminal_ends_while_its_consumers_start_cleans_up() {
    cut_short(&Folder::new("hung-up"), &["gateway: producers on"], "HUP");
}

const NOTHING_LOST: &str = ", 0 lost, doubled or out of order";

/// Starts a demo, and sends it a signal once it has told `marks`. Returns its report; the page is
/// all that is left.
fn cut_short(folder: &Folder, marks: &[&str], signal: &str) -> String {
    let page = folder.file("demo.html");
    let mut demo = fanfare_at_terminal(&["demo", "--html", &page]);
    let mut demo = Running::start(demo.env("TMPDIR", folder.path()));
    for mark in marks {
        demo.tells(mark);
    }
    demo.signal(signal);
    let said = demo.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let end = "interrupted: this is the report so far";
    assert!(said.out.contains(end), "{}{}", said.out, said.err);
    let told = format!("Page with the plots: {page}");
    assert!(said.out.contains(&told), "{}", said.out);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("Beside plain sockets"), "{html}");
    assert_eq!(files(folder), ["demo.html"]);
    said.out
}

fn files(folder: &Folder) -> Vec<OsString> {
    let files = std::fs::read_dir(folder.path()).unwrap().flatten();
    files.map(|file| file.file_name()).collect()
}

#[test]
fn a_saturation_that_would_take_long_ends_when_asked_to() {
    let args = ["bench", "fanout", "--consumers", "3", "--saturate"];
    let long = ["--messages", "1000000", "--json"];
    let mut running = Running::start(&mut fanfare(&[&args[..], &long].concat()));
    running.tells("five times 1000000 messages");
    running.interrupt();
    assert_eq!(cut_off(running), 0.0);
}

/// Returns the lost deliveries of an interrupted benchmark, which fails with its figures so far.
fn cut_off(benchmark: Running) -> f64 {
    let said = benchmark.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let end = "interrupted: these are the figures so far";
    assert!(said.err.contains(end), "{}", said.err);
    let figures = said.json();
    assert_eq!(figures["ok"], false, "{figures}");
    figure(&figures, "lost")
}

#[test]
fn an_interrupted_benchmark_has_failed() {
    for command in [["bench", "fanout"], ["fanout", "baseline"]] {
        let long = ["--consumers", "3", "--rounds", "1000000", "--json"];
        let running = Running::start(&mut fanfare(&[&command[..], &long].concat()));
        running.interrupt();
        assert_eq!(cut_off(running), 0.0, "{command:?}");
    }
}

#[test]
fn a_watched_gateway_is_measured() {
    let args = ["bench", "fanout", "--watched", "--consumers", "3"];
    let figures = run(&[&args[..], &["--rounds", "20", "--json"]].concat())
        .succeeded()
        .json();
    assert_eq!(figure(&figures, "lost"), 0.0);
    for name in ["ratio_on_last_p50", "ratio_none_last_p50"] {
        assert!(figure(&figures, name) > 0.0, "{name}");
    }
}

/// A script that stands in for a browser. It connects as the page does, and writes its process
/// number to a file beside it.
const BROWSER: &str = r#"#!/bin/bash
port="${!#}"
port="${port##*:}"
port="${port%/}"
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
echo $$ >"$0.number"
exec sleep 300
"#;

#[test]
fn a_benchmark_that_is_killed_leaves_no_browser() {
    let folder = Folder::new("bench-browser");
    let (program, number) = (folder.file("browser"), folder.file("browser.number"));
    // The shell writes the program: a file that this process has open cannot be run.
    let make = r#"printf %s "$0" >"$1" && chmod +x "$1""#;
    let args = ["-c", make, BROWSER, &program];
    said(&mut with_program(Command::new("sh"), &args)).succeeded();
    let args = ["bench", "fanout", "--watched", "--browser", &program];
    let long = ["--consumers", "3", "--rounds", "1000000"];
    let mut bench = fanfare(&[&args[..], &long].concat());
    let mut bench = Running::start(bench.env("TMPDIR", folder.path()));
    let mut browser = String::new();
    eventually("a browser", || {
        browser = std::fs::read_to_string(&number).unwrap_or_default();
        browser.ends_with('\n')
    });
    bench.kill();
    let state = format!("/proc/{}/stat", browser.trim_end());
    eventually("the end of the browser", || {
        // It may wait for its new parent as a zombie.
        !std::fs::read_to_string(&state).is_ok_and(|state| !state.contains(") Z "))
    });
}

/// The script of `make bench`.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/bench.sh");

/// A program in the place of the binary, which prints its arguments and fails as `bench book`.
const STAND_IN: &str = r#"#!/bin/sh
echo "$*"
case "$*" in "bench book "*) exit 1 ;; esac
"#;

#[test]
fn a_benchmark_that_fails_ends_no_other() {
    let folder = Folder::new("bench-script");
    let (program, out) = (folder.file("program"), folder.file("out"));
    std::fs::create_dir(&out).unwrap();
    let left = folder.with("out/book.json", "of a run before");
    // The shell writes the program: a file that this process has open cannot be run.
    let make = r#"printf %s "$0" >"$1" && chmod +x "$1" && exec "$2" "$1" "$3""#;
    let args = ["-c", make, STAND_IN, &program, SCRIPT, &out];
    let said = said(&mut with_program(Command::new("sh"), &args));
    assert_eq!(said.code, 1);
    assert_eq!(said.err, "bench: failed: book\n");
    assert!(said.out.contains("\nbench book --json\n"), "{}", said.out);
    assert!(!Path::new(&left).exists());
    // The first benchmark, and the last.
    for (name, command) in [("codec", "bench codec"), ("events-spectra", "bench events")] {
        let figures = folder.read(&format!("out/{name}.json"));
        assert!(figures.starts_with(command.as_bytes()), "{name}");
    }
}

#[test]
fn make_bench_runs_every_benchmark() {
    let script = std::fs::read_to_string(SCRIPT).unwrap();
    let words: Vec<&str> = script.split_whitespace().collect();
    let help = run(&["bench", "--help"]).succeeded().out;
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\nOptions:").unwrap();
    // Further lines of a description are indented more.
    let names = commands
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !["", "help"].contains(name)).collect();
    assert!(names.contains(&"history"), "{help}");
    for name in names {
        let is_run = words.windows(2).any(|pair| pair == ["bench", name]);
        assert!(is_run, "{name}");
    }
}
