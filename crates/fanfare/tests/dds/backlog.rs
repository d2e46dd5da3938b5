//! A feed that is faster than the bus for a while.

use crate::{Running, done, fanfare, feed, signal};
use std::net::UdpSocket;
use std::process::Stdio;

const MESSAGES: u32 = 60_000;

#[test]
fn a_subscriber_that_hangs_for_a_while_costs_no_datagram() {
    let file = feed("complex", MESSAGES);
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    let group = format!("239.255.80.1:{port}");
    let domain = (std::process::id() % 100 + 33).to_string();
    let both = ["--keyed", "--no-echo", "--json", "--domain", &domain];
    let mut subscribe = fanfare();
    subscribe.args(["dds", "subscribe", "complex"]).args(both);
    subscribe.arg("--check").arg(&file).stdout(Stdio::piped());
    let subscriber = Running::start(&mut subscribe, "Finished subscribing");
    let mut publish = fanfare();
    publish.args(["dds", "publish", "complex"]).args(both);
    publish.args(["--multicast", &group, "--patience", "60"]);
    let mut publisher = Running::start(publish.stdout(Stdio::piped()), "receiving");
    signal(&subscriber.child, "STOP");
    let mut multicast = fanfare();
    multicast.args(["fast", "multicast", "-a", "239.255.80.1", "-p", &port]);
    // A pace that a busy machine keeps up with, where nothing but the bus is in the way.
    done(multicast.args(["-s", "20", "-f"]).arg(&file));
    publisher.told("a subscriber does not read");
    signal(&subscriber.child, "CONT");
    let (status, published) = publisher.finish();
    assert!(status.success(), "{published}");
    let whole = format!("\"messages\":{MESSAGES},\"samples\":84000");
    assert!(published.contains(&whole), "{published}");
    assert!(published.contains("\"kernel_drops\":0"), "{published}");
    let (status, received) = subscriber.finish();
    assert!(status.success(), "{received}");
    let whole = "\"equal\":84000,\"wrong\":0,\"not_received\":0";
    assert!(received.contains(whole), "{received}");
}
