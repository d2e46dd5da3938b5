//! Tests of the fan-out commands, end to end: the real binary, loopback, ports that the kernel
//! chooses.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod bad_input;
#[path = "../common/mod.rs"]
mod common;
mod console;
mod control;
mod logs;
mod operation;
mod sessions;
mod supervisor;
mod whole;
