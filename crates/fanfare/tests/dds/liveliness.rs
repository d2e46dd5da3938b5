//! A stopped participant is detected by its silence, and the others continue.

use crate::common::{Folder, Running, fanfare, groups};
use crate::{Piecemeal, feed};
use std::io::BufRead;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// The lease of participants whose silence is waited for, and of publishers that they subscribe to:
/// long enough that one on a busy machine does not seem silent.
const LEASE: &str = "10000";
/// The lease of subscribers that are never silent. It must not be shorter than a publisher's.
const LONG: &str = "60000";

fn command(what: &str, domain: u32, lease: &str, options: &[&str]) -> Command {
    let mut command = fanfare(&["dds", what, "simple", "--no-echo", "--lease", lease]);
    command
        .args(["--domain", &crate::domain(domain)])
        .args(options);
    command
}

#[test]
fn a_subscriber_that_is_stopped_is_lost_and_the_other_gets_everything() {
    let file = feed("simple", 200_000);
    let mut reading = Running::start(&mut command("subscribe", 70, LONG, &["--json"]));
    reading.tells("Finished subscribing");
    let mut publish = command("publish", 70, LEASE, &["--json", "-f", "/dev/stdin"]);
    let (mut publisher, mut messages) = Piecemeal::start(&mut publish, &file);
    // More than a pipe holds: the write succeeds only after the first subscriber was matched.
    messages.some(200_000);
    let mut stopping = command("subscribe", 70, LEASE, &["--format", "json"]);
    let (stopping, mut lines) = Running::start_unread(&mut stopping);
    let first = thread::spawn(move || {
        lines.read_line(&mut String::new()).unwrap();
        lines
    });
    while !first.is_finished() {
        messages.some(1_000);
        thread::sleep(Duration::from_millis(10));
    }
    stopping.signal("STOP");
    let _unread = first.join().unwrap();
    messages.rest();
    publisher.tells("readers gone");
    let figures = publisher.end().succeeded().out;
    assert!(figures.contains("\"readers_left\":5"), "{figures}");
    let figures = reading.end().succeeded().out;
    assert!(figures.contains("\"lost\":0"), "{figures}");
}

#[test]
fn a_publisher_that_is_stopped_is_gone_and_comes_back() {
    let mut subscriber = Running::start(&mut command("subscribe", 71, LONG, &[]));
    subscriber.tells("Finished");
    let mut publisher = waiting(71, &[]);
    publisher.tells("receiving");
    subscriber.tells("a publisher is there");
    publisher.signal("STOP");
    subscriber.tells("no publisher is left");
    subscriber.tells("5 writers gone");
    publisher.signal("CONT");
    subscriber.tells("a publisher is there");
    publisher.interrupt();
    publisher.end().succeeded();
}

/// Cyclone DDS reports the writers of a participant that leaves as not alive first.
#[test]
fn a_publisher_that_ends_is_gone_and_not_lost_by_liveliness() {
    let folder = Folder::new("ends");
    let no_feed = folder.with("no-feed.dat", "x".repeat(64));
    let mut subscriber = Running::start(&mut command("subscribe", 73, LONG, &[]));
    subscriber.tells("Finished");
    // A publisher that fails writes no Done.
    let mut publish = command("publish", 73, LONG, &["-f", &no_feed]);
    assert_eq!(Running::start(&mut publish).end().code, 1);
    let told = subscriber.tells(" writers ");
    assert!(told.contains("5 writers gone"), "{told}");
}

#[test]
fn a_writer_that_writes_nothing_is_lost_by_liveliness_if_writing_says_that_it_lives() {
    let by_writing = ["--liveliness", "participant"];
    let mut subscriber = Running::start(&mut command("subscribe", 72, LONG, &by_writing));
    subscriber.tells("Finished");
    let _publisher = waiting(72, &by_writing);
    subscriber.tells("4 writers lost by liveliness");
}

/// Starts a publisher of a group without a sender: it waits, and stays alive.
fn waiting(domain: u32, options: &[&str]) -> Running {
    let [group, _] = groups();
    let mut publish = command("publish", domain, LEASE, &["--multicast", &group]);
    let mut publisher = Running::start(publish.args(options));
    publisher.tells("waiting for a subscriber");
    publisher
}
