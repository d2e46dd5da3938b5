//! Round trips of one order: a NewOrderSingle(D) and its ExecutionReport(8), through complete
//! sessions, and the same bytes over a plain socket.

mod client;
mod compare;
mod lenient;
mod orders;
mod plain;
mod trader;

use std::io;

use fanfare_engine::agent::AgentError;
use fanfare_engine::host::HostError;

pub use client::{ClientOptions, ClientReport, measure};
pub use compare::{CompareOptions, Comparison, compare};
pub use lenient::{LenientServer, Tell};
pub use orders::{Exchange, write_order, write_report};
pub use trader::{Pace, Trader};

/// The percentiles that are printed.
pub const PERCENTILES: [f64; 8] = [1.0, 5.0, 10.0, 50.0, 90.0, 95.0, 99.0, 99.9];

/// The error of a measurement of round trips.
#[derive(Debug, thiserror::Error)]
pub enum PingPongError {
    /// A session cannot be hosted: its store or its port.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host failed.
    #[error("{0}")]
    Agent(AgentError),
    /// A socket, a folder or a processor is not available.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The session ended, or could not log on.
    #[error("{0}")]
    Session(String),
}
