//! End-to-end tests of `fanfare throughput`: two real processes on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod places;
mod whole;

use common::gateway::port;
use common::{Running, fanfare};

/// Starts an acceptor. Returns it with its port.
fn start_acceptor(args: &[&str]) -> (Running, String) {
    let all = [&["throughput", "acceptor", "--port", "0"], args].concat();
    let mut acceptor = Running::start(&mut fanfare(&all));
    let port = port(&acceptor.tells("listening on "));
    (acceptor, port)
}
