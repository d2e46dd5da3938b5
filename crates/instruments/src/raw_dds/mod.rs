//! A plain C program on the same Cyclone DDS, with typed `dds_write`, `dds_take` and listeners:
//! what `fanfare_dds` is measured against.

#[allow(unsafe_code, reason = "a C program is called")]
mod sys;

use fanfare_dds::{DomainConfig, Error};
use sys::Raw;

/// What one end of the C program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends a quote and waits for it to come back.
    Ping = 0,
    /// Sends back what comes.
    Pong = 1,
    /// Writes quotes as fast as it can.
    Source = 2,
    /// Takes and counts them.
    Sink = 3,
}

/// One end of the C program, in this process.
#[derive(Debug)]
pub struct CProgram(Raw);

impl CProgram {
    /// Opens it. `batching` is that of writers.
    ///
    /// # Errors
    /// [`Error::Config`] with what Cyclone DDS says.
    pub fn open(config: &DomainConfig, role: Role, batching: bool) -> Result<Self, Error> {
        Raw::open(config, role as u8, batching).map(Self)
    }

    /// Whether the other end is there.
    pub fn is_matched(&self) -> bool {
        self.0.is_matched()
    }

    /// Begins `n` round trips (at most 65,536), one after the other.
    pub fn ping(&mut self, n: u32) {
        self.0.ping(n);
    }

    /// The round trips that are over, in nanoseconds.
    pub fn round_trips(&mut self) -> &[u64] {
        self.0.done()
    }

    /// Writes quotes for so long; how many.
    pub fn flow(&mut self, nanos: u64) -> u64 {
        self.0.flow(nanos)
    }

    /// Writes `n` quotes; the nanoseconds that this takes, 0 if it fails.
    pub fn burst(&mut self, n: u32) -> u64 {
        self.0.burst(n)
    }

    /// Quotes taken, and the nanoseconds from the first to the last.
    pub fn count(&self) -> (u64, u64) {
        self.0.count()
    }
}
