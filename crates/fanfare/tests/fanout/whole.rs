//! Server, consumers, producers and report together.

use crate::common::{Running, fanfare, figure, json, run, scratch};
use std::io::{BufRead, BufReader};
use std::process::ChildStdout;

/// A server on ports that the kernel picks, and its stdout behind the lines that name them.
fn server(extra: &[&str]) -> (Running, String, String, BufReader<ChildStdout>) {
    let args = [
        "fanout",
        "server",
        "--producer-port",
        "0",
        "--consumer-port",
        "0",
    ];
    let mut child = fanfare(&[&args[..], extra].concat()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let running = Running(child);
    let mut port_after = |prefix: &str| {
        let mut line = String::new();
        while !line.starts_with(prefix) {
            line.clear();
            assert!(out.read_line(&mut line).unwrap() > 0, "the server ended");
        }
        line.trim().rsplit(':').next().unwrap().to_owned()
    };
    let producers = port_after("Listening for producers on 127.0.0.1:");
    let consumers = port_after("Listening for consumers on 127.0.0.1:");
    (running, producers, consumers, out)
}

#[test]
fn each_marked_message_reaches_each_consumer_once_and_in_order() {
    let (server, producers, consumers, out) = server(&["--workers", "2"]);
    let listening = [
        "fanout",
        "consumers",
        "127.0.0.1",
        "7",
        "0",
        "--port",
        &consumers,
    ];
    let rest = ["--messages", "350", "--from-start", "--json"];
    let mut receiving = fanfare(&[&listening[..], &rest[..]].concat())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(receiving.stderr.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "7 sessions logged on");
    let sent = run(&[
        "fanout",
        "producers",
        "localhost",
        "5",
        "50",
        "200",
        "5",
        "--port",
        &producers,
        "--json",
    ]);
    let sent = json(&sent);
    assert_eq!(
        (figure(&sent, "sent"), figure(&sent, "marked")),
        (250.0, 50.0)
    );
    let received = receiving.wait_with_output().unwrap();
    assert!(received.status.success());
    let received = json(&received);
    for (name, value) in [
        ("received", 350.0),
        ("missing", 0.0),
        ("duplicates", 0.0),
        ("reordered", 0.0),
    ] {
        assert_eq!(figure(&received, name), value, "{name}");
    }
    server.interrupt();
    assert!(server.end().status.success());
    let told: Vec<String> = out.lines().map_while(Result::ok).collect();
    assert!(
        told.iter()
            .any(|l| l == "250 messages received, 50 marked: 350 deliveries"),
        "{told:?}"
    );
}

/// The whole demo, twice in a row, in one folder: what it prints is one JSON object, nothing is
/// lost, and no file but the page is left.
#[test]
fn the_demo_works_twice_in_a_row_and_cleans_up() {
    let folder = scratch("demo");
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("demo.html");
    for _ in 0..2 {
        let args = ["demo", "--json", "--html", page.to_str().unwrap()];
        let output = fanfare(&args).env("TMPDIR", &folder).output().unwrap();
        let figures = json(&output);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{figures} {told}");
        assert_eq!(figure(&figures, "fanout_lost"), 0.0);
        assert!(figure(&figures, "fanout_in_rate_per_s") > 0.0);
        assert!(figure(&figures, "fanout_out_rate_per_s") > 0.0);
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().collect();
        if told.contains("without a capture") {
            fanfare_peers::skipped(&"no right to capture, the latency part");
            assert!(left.is_empty(), "{left:?}");
            continue;
        }
        assert!(figure(&figures, "fanout_p50_us") > 0.0);
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg") && !html.contains("src=\"http"));
        assert_eq!(left.len(), 1, "{left:?}");
    }
}

#[test]
fn an_interrupted_demo_reports_what_it_has() {
    let folder = scratch("interrupted");
    std::fs::create_dir_all(&folder).unwrap();
    let page = folder.join("demo.html");
    let args = ["demo", "--html", page.to_str().unwrap()];
    let mut command = fanfare(&args);
    let mut demo = Running(command.env("TMPDIR", &folder).spawn().unwrap());
    let mut told = BufReader::new(demo.0.stderr.take().unwrap()).lines();
    let under_way = told.any(|line| line.unwrap().contains("producers send"));
    assert!(under_way);
    demo.interrupt();
    let rest: Vec<String> = told.map_while(Result::ok).collect();
    let output = demo.end();
    assert_eq!(output.status.code(), Some(1), "{rest:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("interrupted: this is the report so far"),
        "{text}"
    );
    assert!(text.contains(", 0 lost, doubled or out of order"), "{text}");
    let left = std::fs::read_dir(&folder).unwrap().flatten();
    assert!(left.map(|file| file.path()).all(|file| file == page));
}

#[test]
fn a_saturation_that_would_take_long_ends_when_asked_to() {
    let args = ["bench", "fanout", "--consumers", "3", "--saturate"];
    let long = ["--messages", "1000000", "--json"];
    let mut child = fanfare(&[&args[..], &long].concat()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let begun = lines.next().unwrap().unwrap();
    assert!(begun.starts_with("five times 1000000 messages"), "{begun}");
    let running = Running(child);
    running.interrupt();
    let output = running.end();
    assert_eq!(figure(&json(&output), "lost"), 0.0);
}
