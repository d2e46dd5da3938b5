//! Time as an argument.

use fanfare_wire::UtcTimestamp;

/// One reading of both clocks, passed into everything that depends on time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that never steps; its zero means nothing. Timers count in it.
    pub mono: u64,
    /// The time of day, which may step. It only goes into messages and checks of them.
    pub utc: UtcTimestamp,
}
