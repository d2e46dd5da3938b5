//! Tests of server, consumers, producers and report together.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, fanfare, figure, run};
use std::ffi::OsString;
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
    let left = files(&folder);
    if said.err.contains("without a capture") {
        fanfare_peers::skipped(&"no right to capture, the latency part");
        assert!(left.is_empty(), "{left:?}");
    } else {
        assert!(figure(&figures, "fanout_p50_us") > 0.0);
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg") && !html.contains("src=\"http"));
        assert_eq!(left, ["demo.html"]);
    }
    interrupt_demo(&folder);
}

#[test]
fn an_interrupted_demo_reports_what_it_has() {
    interrupt_demo(&Folder::new("interrupted"));
}

/// Starts a demo and interrupts it when its producers send.
fn interrupt_demo(folder: &Folder) {
    let page = folder.file("demo.html");
    let mut demo = fanfare(&["demo", "--html", &page]);
    let mut demo = Running::start(demo.env("TMPDIR", folder.path()));
    demo.tells("producers send");
    demo.interrupt();
    let said = demo.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let text = said.out;
    assert!(
        text.contains("interrupted: this is the report so far"),
        "{text}{}",
        said.err
    );
    assert!(text.contains(", 0 lost, doubled or out of order"), "{text}");
    let mut left = files(folder);
    left.retain(|name| name != "demo.html");
    assert!(left.is_empty(), "{left:?}");
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
    let said = running.end();
    assert_eq!(figure(&said.json(), "lost"), 0.0);
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
