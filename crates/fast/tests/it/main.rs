//! Tests of the crate from outside, one binary.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bits;
mod common;
mod drawn;
mod fix;
mod generated;
mod json;
mod lanes;
mod level;
mod limits;
mod messages;
mod moex;
mod operators;
mod properties;
mod specification;
mod spectra;
mod templates;
mod trace;
mod vectors;
#[path = "../vectors/mod.rs"]
mod vectors_table;
mod visit;
