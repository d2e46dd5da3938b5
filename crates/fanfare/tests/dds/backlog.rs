//! A feed that is faster than DDS for a while.

use crate::common::{Running, done, fanfare, groups, sending};
use crate::{domain, feed};

/// Twice as many as a publisher writes for a subscriber that does not read. The kernel's buffer of
/// a line has space for all of them while a busy machine runs other tasks.
const MESSAGES: u32 = 20_000;

/// Starts both sides, stops the subscriber, and sends a feed until the publisher waits.
fn hanging(domain: &str, both: &[&str], of_publisher: &[&str]) -> [Running; 2] {
    let file = feed("complex", MESSAGES);
    let [group, _] = groups();
    // The process hangs for as long as the messages take on a busy machine, and is not dropped.
    let always = ["--keyed", "--json", "--domain", domain, "--lease", "120000"];
    let both = [&always, both].concat();
    let mut subscribe = fanfare(&["dds", "subscribe", "complex"]);
    let mut subscriber = Running::start(subscribe.args(&both).arg("--check").arg(&file));
    subscriber.tells("Finished subscribing");
    let mut publish = fanfare(&["dds", "publish", "complex"]);
    publish.args(&both).args(["--multicast", &group]);
    let mut publisher = Running::start(publish.args(of_publisher));
    publisher.tells("receiving");
    subscriber.signal("STOP");
    done(sending(&file, &group).args(["-s", "200"]));
    publisher.tells("a subscriber does not read");
    [subscriber, publisher]
}

#[test]
fn a_subscriber_that_hangs_for_a_while_costs_no_datagram() {
    let [subscriber, publisher] = hanging(&domain(33), &["--no-echo"], &["--patience", "60"]);
    subscriber.signal("CONT");
    let published = publisher.end().succeeded().out;
    let whole = format!("\"messages\":{MESSAGES},\"samples\":28000");
    assert!(published.contains(&whole), "{published}");
    assert!(published.contains("\"kernel_drops\":0"), "{published}");
    let received = subscriber.end().succeeded().out;
    let whole = "\"equal\":28000,\"wrong\":0,\"not_received\":0";
    assert!(received.contains(whole), "{received}");
}

#[test]
fn ctrl_c_ends_the_wait_for_a_subscriber_that_hangs_with_the_figures() {
    let of_publisher = ["--patience", "120", "--in-flight", "0"];
    let [_subscriber, publisher] = hanging(&domain(34), &[], &of_publisher);
    publisher.interrupt();
    let said = publisher.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let samples = said.figures()["samples"].as_u64().unwrap();
    assert!((1..28_000).contains(&samples), "{samples}");
    for told in [
        "Writing Done token".to_owned(),
        "has not acknowledged everything".to_owned(),
        format!("{samples} of {samples} echoes did not come"),
    ] {
        assert!(said.err.contains(&told), "{told}: {}", said.err);
    }
}
