//! The gateway as seen by its counterparties, over loopback sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod behind;
mod client;
mod contracts;
mod control;
mod dbn;
mod dds;
mod edges;
mod fanout;
mod feed;
mod framing;
mod history;
mod holes;
mod hostile;
mod late;
mod mappings;
mod market;
mod ports;
mod redundant;
mod rights;
mod service;
mod session_feed;
mod slow;
mod steering;
mod users;
mod versions;

use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, Notice};
use std::time::{Duration, Instant};

/// Starts a gateway on ports that the kernel picks.
fn start(change: impl FnOnce(&mut Config)) -> Gateway {
    let mut config = Config::default();
    config.producers.port = 0;
    config.consumers.port = 0;
    change(&mut config);
    Gateway::start(&config, Stop::new()).unwrap()
}

/// Waits until `holds`, for events on other threads. Fails after a minute.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "{what} did not happen");
        std::thread::yield_now();
    }
}

/// Returns the next notice of an end that `wanted` accepts.
fn ended(gateway: &Gateway, wanted: impl Fn(&Notice) -> bool) {
    eventually("the notice", || {
        gateway.notices().any(|notice| wanted(&notice))
    });
}

fn stop(gateway: Gateway) {
    gateway.stop().raise();
    gateway.join().unwrap();
}
