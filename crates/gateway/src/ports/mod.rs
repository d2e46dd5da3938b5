//! The ports of FIX: who may connect, and what is known and reported of each session.

pub(crate) mod agent;
pub(crate) mod config;
pub(crate) mod handle;
mod lag;
pub(crate) mod registry;
pub(crate) mod reports;
pub(crate) mod rules;
pub(crate) mod seats;
