//! A plain C program on the same Cyclone DDS, with typed `dds_write`, `dds_take` and listeners:
//! what `fanfare_dds` is measured against.

#[allow(unsafe_code, reason = "a C program is called")]
mod sys;

pub use sys::CProgram;

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
