//! Sessions from outside: conformance scripts, and two sessions on a bad network.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail"
)]

mod damage;
mod endings;
mod fields;
mod net;
mod ops;
mod pace;
mod scripts;
mod shared;
mod storm;
