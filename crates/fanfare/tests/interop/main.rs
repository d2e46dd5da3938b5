//! Interoperation tests with third-party software, against the real binary and against the library:
//! FIX engines (QuickFIX C++, QuickFIX/J, a client on simplefix), a reader of DBN.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

#[path = "../common/mod.rs"]
mod common;
mod dbn;
mod differential;
mod engines;
mod feed;
mod history;
mod market;
mod ours;
mod scenario;
mod simplefix;
mod stores;
mod wire;
