//! The clock that times decoding.

use std::sync::OnceLock;
use std::time::Instant;

/// Returns the nanoseconds since the first call.
pub(crate) fn stopwatch() -> u64 {
    static BEGIN: OnceLock<Instant> = OnceLock::new();
    let elapsed = BEGIN.get_or_init(Instant::now).elapsed();
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}
