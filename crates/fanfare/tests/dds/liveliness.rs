//! Who stops is found out by its silence, and those beside it go on.

use super::{Running, fanfare, feed, signal};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

fn command(what: &str, domain: u32, options: &[&str]) -> Command {
    let mut command = fanfare();
    let domain = (std::process::id() % 100 + domain).to_string();
    command.args(["dds", what, "simple", "--no-echo", "--domain", &domain]);
    command.args(["--lease", "1000"]).args(options);
    command
}

#[test]
fn a_subscriber_that_is_stopped_is_lost_and_the_other_gets_everything() {
    let file = feed("simple", 200_000);
    let mut reading = command("subscribe", 70, &["--json"]);
    let reading = Running::start(reading.stdout(Stdio::piped()), "Finished subscribing");
    let mut stopping = command("subscribe", 70, &["--format", "json"]);
    let mut stopping = Running::start(stopping.stdout(Stdio::piped()), "Finished subscribing");
    // In flight before it, so that both have met the publisher.
    let mut publish = command("publish", 70, &["--json", "-f"]);
    let publish = publish.arg(&file).stdout(Stdio::piped());
    let mut publisher = Running::start(publish, "waiting for a subscriber");
    let mut line = String::new();
    let mut lines = BufReader::new(stopping.stdout());
    lines.read_line(&mut line).unwrap();
    signal(&stopping.child, "STOP");
    publisher.told("readers gone");
    let (status, figures) = publisher.finish();
    assert!(status.success(), "{figures}");
    assert!(!figures.contains("\"readers_lost\":0"), "{figures}");
    let (status, figures) = reading.finish();
    assert!(status.success(), "{figures}");
    assert!(figures.contains("\"lost\":0"), "{figures}");
}

#[test]
fn a_publisher_that_is_stopped_is_gone_and_comes_back() {
    let mut subscriber = Running::start(&mut command("subscribe", 71, &[]), "Finished");
    let mut publisher = waiting(71, &[]);
    publisher.told("receiving");
    subscriber.told("a publisher is there");
    signal(&publisher.child, "STOP");
    subscriber.told("no publisher is left");
    subscriber.told("5 writers gone");
    signal(&publisher.child, "CONT");
    subscriber.told("a publisher is there");
    publisher.interrupt();
}

#[test]
fn a_writer_that_writes_nothing_is_lost_by_liveliness_if_writing_says_that_it_lives() {
    let by_writing = ["--liveliness", "participant"];
    let mut subscribe = command("subscribe", 72, &by_writing);
    let mut subscriber = Running::start(&mut subscribe, "Finished");
    let _publisher = waiting(72, &by_writing);
    subscriber.told("4 writers lost by liveliness");
}

/// A publisher of a group that nobody sends to: it waits, and lives.
fn waiting(domain: u32, options: &[&str]) -> Running {
    let group = format!("239.77.{}.{domain}:27181", std::process::id() % 200);
    let mut publish = command("publish", domain, &["--multicast", &group]);
    Running::start(publish.args(options), "waiting for a subscriber")
}
