//! Tests of `fanfare dds bridge`: two gateways as two processes, producers at the first, consumers
//! at the second, which check that each message comes once and in order.

use crate::common::gateway::Gateway;
use crate::common::{Folder, Running, done, fanfare, figure, said};
use std::process::Command;

fn bridge(domain: u32, options: &[&str]) -> Command {
    let mut command = fanfare(&["dds", "bridge", "--producer-port", "0"]);
    command.args(["--consumer-port", "0", "--domain", &crate::domain(domain)]);
    command.args(options);
    command
}

#[test]
fn what_producers_send_to_one_gateway_reaches_the_consumers_of_another() {
    let mut first = Gateway::start(&mut bridge(24, &["--no-subscribe"]));
    let mut second = Gateway::start(&mut bridge(24, &["--no-publish"]));
    first.tells("DDS topic Fix_W: matched with 1 (+1)");
    second.tells("DDS topic Fix_W: matched with 1 (+1)");
    let listening = ["fanout", "consumers", "127.0.0.1", "7", "0", "--json"];
    let mut consumers = fanfare(&listening);
    consumers.args(["--messages", "350", "--from-start"]);
    let mut consumers = Running::start(consumers.args(["--port", &second.consumers]));
    consumers.tells("7 sessions logged on");
    let mut producers = fanfare(&["fanout", "producers", "127.0.0.1", "5", "50", "200", "5"]);
    let sent = done(producers.args(["--json", "--port", &first.producers])).json();
    assert_eq!(figure(&sent, "marked"), 50.0, "{sent}");
    let received = consumers.end().succeeded().json();
    for (name, wanted) in [
        ("received", 350.0),
        ("missing", 0.0),
        ("duplicates", 0.0),
        ("reordered", 0.0),
    ] {
        assert_eq!(figure(&received, name), wanted, "{name}");
    }
    let told = first.stop().out;
    assert!(
        told.contains("dds: 50 published (0 relayed), 0 unsent, 0 overrun"),
        "{told}"
    );
    let told = second.stop().out;
    assert!(
        told.contains("dds: 50 taken, 0 missing, 0 own, 0 seen before"),
        "{told}"
    );
}

#[test]
fn policies_that_do_not_fit_are_told() {
    let mut first = Gateway::start(&mut bridge(25, &["--no-subscribe", "--qos", "best-effort"]));
    let mut second = Gateway::start(&mut bridge(25, &["--no-publish", "--quiet"]));
    for gateway in [&mut first, &mut second] {
        gateway.tells("no match: the other side's reliability does not fit");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let told = |options: &[&str], status| {
        let said = said(&mut bridge(26, options));
        assert_eq!(said.code, status, "{options:?}");
        said.err
    };
    let fails = |options: &[&str]| told(options, 1);
    let misused = |options: &[&str]| told(options, 2);
    let told = misused(&["--relay"]);
    assert!(told.contains("--subscribe-domain is missing"), "{told}");
    let told = fails(&["--msg-types", "W,A"]);
    assert!(told.contains("is a message of the session layer"), "{told}");
    let told = misused(&["--transport", "tcp"]);
    assert!(told.contains("--peer or --tcp-port"), "{told}");
    let told = fails(&["--interface", "nosuch0"]);
    assert!(told.contains("nosuch0"), "{told}");
    let folder = Folder::new("bridge");
    let file = folder.with("dds.toml", "[dds.publish]\ndomain = 26\n");
    let told = fails(&["--config", &file, "--partition", "paris"]);
    assert!(told.contains("the configuration has [dds]"), "{told}");
}
