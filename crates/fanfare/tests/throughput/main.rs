//! `fanfare throughput` from outside: two real processes on loopback.
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

use common::{Running, fanfare};
use std::io::{BufRead, BufReader};

/// An acceptor, and the port that it listens on.
fn start_acceptor(args: &[&str]) -> (Running, String) {
    let all = [&["throughput", "acceptor", "--port", "0"], args].concat();
    let mut child = fanfare(&all).spawn().unwrap();
    let mut line = String::new();
    // Unbuffered behind the line: the rest is read at the end.
    let err = child.stderr.as_mut().unwrap();
    BufReader::with_capacity(1, err)
        .read_line(&mut line)
        .unwrap();
    let port = line.trim().rsplit(':').next().unwrap().to_owned();
    assert!(line.starts_with("listening on ") && port != "0", "{line}");
    (Running(child), port)
}
