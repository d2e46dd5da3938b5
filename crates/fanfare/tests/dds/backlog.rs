//! A feed that is faster than DDS for a while.

use crate::common::{Running, done, fanfare, groups};
use crate::{domain, feed};

/// Twice as many as a publisher writes for a subscriber that does not read. The kernel's buffer of
/// a line has space for all of them while a busy machine runs other tasks.
const MESSAGES: u32 = 20_000;

#[test]
fn a_subscriber_that_hangs_for_a_while_costs_no_datagram() {
    let file = feed("complex", MESSAGES);
    let ([group, _], domain) = (groups(), domain(33));
    let both = ["--keyed", "--no-echo", "--json", "--domain", &domain];
    // The process hangs for as long as the messages take on a busy machine, and is not dropped.
    let both = [&both[..], &["--lease", "120000"]].concat();
    let mut subscribe = fanfare(&["dds", "subscribe", "complex"]);
    let mut subscriber = Running::start(subscribe.args(&both).arg("--check").arg(&file));
    subscriber.tells("Finished subscribing");
    let mut publish = fanfare(&["dds", "publish", "complex"]);
    publish.args(&both).args(["--multicast", &group]);
    let mut publisher = Running::start(publish.args(["--patience", "60"]));
    publisher.tells("receiving");
    subscriber.signal("STOP");
    let (address, port) = group.split_once(':').unwrap();
    let mut multicast = fanfare(&["fast", "multicast", "-a", address, "-p", port]);
    done(multicast.args(["-s", "200", "-f"]).arg(&file));
    publisher.tells("a subscriber does not read");
    subscriber.signal("CONT");
    let published = publisher.end().succeeded().out;
    let whole = format!("\"messages\":{MESSAGES},\"samples\":28000");
    assert!(published.contains(&whole), "{published}");
    assert!(published.contains("\"kernel_drops\":0"), "{published}");
    let received = subscriber.end().succeeded().out;
    let whole = "\"equal\":28000,\"wrong\":0,\"not_received\":0";
    assert!(received.contains(whole), "{received}");
}
