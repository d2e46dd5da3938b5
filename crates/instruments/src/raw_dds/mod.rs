//! A plain C program on the same Cyclone DDS, with typed `dds_write`, `dds_take` and listeners: the
//! baseline of `fanfare_dds`.

#[allow(unsafe_code, reason = "a C program is called")]
mod sys;

pub use sys::CProgram;

/// The role of one end of the C program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends a quote and waits for it to come back.
    Ping = 0,
    /// Sends samples back.
    Pong = 1,
    /// Writes quotes as fast as possible.
    Source = 2,
    /// Takes and counts quotes.
    Sink = 3,
}
