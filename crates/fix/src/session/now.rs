//! Time as an argument.

use fanfare_wire::UtcTimestamp;

/// A reading of both clocks, passed to everything that depends on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The time of a clock that never steps, in nanoseconds. Its zero has no meaning. Timers use
    /// it.
    pub mono: u64,
    /// The time of day, which may step. It is used only in messages and in checks of them.
    pub utc: UtcTimestamp,
}
