//! The types of the layer that hold nothing of the C library.

use crate::discovery::{Endpoint, Participant};
use crate::guid::Guid;
use std::time::Duration;

/// The end of an instance.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// The instance is disposed of.
    Dispose,
    /// This writer no longer writes it.
    Unregister,
}

/// The metadata of a sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawInfo {
    pub(crate) valid: bool,
    pub(crate) alive: bool,
    pub(crate) disposed: bool,
    pub(crate) source_nanos: i64,
    pub(crate) instance: u64,
    pub(crate) writer: u64,
    /// The handle of the reader that took the sample.
    pub(crate) reader: i32,
}

/// A function that is called with warnings of the library.
pub(crate) type OnWarning = dyn Fn(&str) + Send + Sync;

/// One announcement.
pub(crate) enum Announced {
    Participant(Participant),
    Endpoint(Endpoint),
    /// The participant or endpoint is gone.
    Gone(Guid),
}

/// Returns a duration in the library's form; one that is too long is infinite.
pub(crate) fn nanos(d: Duration) -> i64 {
    i64::try_from(d.as_nanos()).unwrap_or(i64::MAX)
}
