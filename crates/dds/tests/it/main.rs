//! Domains, topics, writers and readers against Cyclone DDS itself, on loopback.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod close;
mod distribute;
mod exchange;
mod flood;
mod hostile;
mod policies;
mod strangers;
mod support;
mod wide;
