//! A running program over HTTP: `/metrics` for Prometheus, and the operators' commands as JSON
//! (docs/console.md).
//!
//! The console has a thread of its own, which reads counters and calls the program's
//! [`Operator`](fanfare_operator::Operator); no session waits for it.
#![forbid(unsafe_code)]

mod api;
mod changes;
mod error;
mod listen;
mod metrics;
mod openapi;
mod page;
mod patient;
mod refusals;
mod server;
mod token;

pub use error::ConsoleError;
pub use fanfare_gateway::ConsoleConfig;
pub use server::Console;
