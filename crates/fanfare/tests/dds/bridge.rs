//! `fanfare dds bridge`: two gateways as two processes, producers at the first, consumers at the
//! second, which check that each message comes once and in order.

use crate::{Running, done, fanfare};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{ChildStdout, Command, Stdio};

/// A gateway, the ports of producers and consumers, and the rest of its stdout.
pub(crate) struct Gateway {
    running: Running,
    pub(crate) producers: String,
    pub(crate) consumers: String,
    out: BufReader<ChildStdout>,
}

impl Gateway {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut running = Running::start(command.stdout(Stdio::piped()), "");
        let mut out = BufReader::new(running.stdout());
        let mut port_after = |prefix: &str| {
            let mut line = String::new();
            while !line.starts_with(prefix) {
                line.clear();
                assert!(out.read_line(&mut line).unwrap() > 0, "the gateway ended");
            }
            line.trim().rsplit(':').next().unwrap().to_owned()
        };
        let producers = port_after("Listening for producers on ");
        let consumers = port_after("Listening for consumers on ");
        Self {
            running,
            producers,
            consumers,
            out,
        }
    }

    /// Waits for a line on stderr with this in it.
    pub(crate) fn told(&mut self, what: &str) {
        self.running.told(what);
    }

    /// Ctrl-C; what it prints at the end.
    pub(crate) fn stop(mut self) -> String {
        self.running.interrupt();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        rest
    }
}

fn bridge(domain: u32, options: &[&str]) -> Command {
    let mut command = fanfare();
    command.args([
        "dds",
        "bridge",
        "--producer-port",
        "0",
        "--consumer-port",
        "0",
    ]);
    command.args(["--domain", &(std::process::id() % 100 + domain).to_string()]);
    command.args(options);
    command
}

#[test]
fn what_producers_send_to_one_gateway_reaches_the_consumers_of_another() {
    let mut first = Gateway::start(&mut bridge(24, &["--no-subscribe"]));
    let mut second = Gateway::start(&mut bridge(24, &["--no-publish"]));
    first.told("bus topic Fix_W: matched with 1 (+1)");
    second.told("bus topic Fix_W: matched with 1 (+1)");
    let listening = [
        "fanout",
        "consumers",
        "127.0.0.1",
        "7",
        "0",
        "--messages",
        "350",
    ];
    let mut consumers = fanfare();
    consumers.args(listening).args(["--from-start", "--json"]);
    consumers
        .args(["--port", &second.consumers])
        .stdout(Stdio::piped());
    let consumers = Running::start(&mut consumers, "7 sessions logged on");
    let sending = [
        "fanout",
        "producers",
        "127.0.0.1",
        "5",
        "50",
        "200",
        "5",
        "--json",
    ];
    let sent = done(fanfare().args(sending).args(["--port", &first.producers]));
    let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(sent["figures"]["marked"], 50.0, "{sent}");
    let (status, received) = consumers.finish();
    assert!(status.success(), "{received}");
    let received: Value = serde_json::from_str(&received).unwrap();
    for (name, wanted) in [
        ("received", 350),
        ("missing", 0),
        ("duplicates", 0),
        ("reordered", 0),
    ] {
        assert_eq!(
            received["figures"][name].as_f64(),
            Some(f64::from(wanted)),
            "{name}"
        );
    }
    let told = first.stop();
    assert!(
        told.contains("bus: 50 published (0 relayed), 0 unsent, 0 overrun"),
        "{told}"
    );
    let told = second.stop();
    assert!(
        told.contains("bus: 50 taken, 0 missing, 0 own, 0 seen before"),
        "{told}"
    );
}

#[test]
fn policies_that_do_not_fit_are_told() {
    let mut first = Gateway::start(&mut bridge(25, &["--no-subscribe", "--qos", "best-effort"]));
    let mut second = Gateway::start(&mut bridge(25, &["--no-publish", "--quiet"]));
    for gateway in [&mut first, &mut second] {
        gateway.told("no match: the other side's reliability does not fit");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let fails = |options: &[&str]| {
        let out = bridge(26, options).output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{options:?}");
        String::from_utf8(out.stderr).unwrap()
    };
    let told = fails(&["--relay"]);
    assert!(told.contains("give --subscribe-domain"), "{told}");
    let told = fails(&["--msg-types", "W,A"]);
    assert!(told.contains("is a message of the session"), "{told}");
    let told = fails(&["--transport", "tcp"]);
    assert!(told.contains("--peer or --tcp-port"), "{told}");
    let told = fails(&["--interface", "nosuch0"]);
    assert!(told.contains("nosuch0"), "{told}");
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/bridge-bus.toml");
    std::fs::write(file, "[bus.publish]\ndomain = 26\n").unwrap();
    let told = fails(&["--config", file, "--partition", "paris"]);
    assert!(told.contains("the configuration has a [bus]"), "{told}");
}
