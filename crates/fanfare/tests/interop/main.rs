//! Interoperation with FIX engines that others made: QuickFIX C++, QuickFIX/J and a client on
//! simplefix, against the real binary and against the library.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

#[path = "../common/mod.rs"]
mod common;
mod differential;
mod engines;
mod feed;
mod ours;
mod scenario;
mod simplefix;
mod wire;
