//! End-to-end tests of `fanfare fast`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod bad_input;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod files;
mod inspect;
mod multicast;
mod pipes;
mod replay;
mod run;
mod vectors;
#[path = "../../../fast/tests/vectors/mod.rs"]
mod vectors_table;
