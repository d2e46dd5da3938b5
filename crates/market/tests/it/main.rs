//! Tests of the crate from outside, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod books;
mod fix_replay;
mod mapped;
mod partial;
mod walk;
