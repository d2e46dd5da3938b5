//! The clock, read once a duty cycle.

use crate::sys::time;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// How long one measurement of the offset between the two clocks is used, in nanoseconds.
const REFRESH: u64 = 10_000_000;

/// A clock of monotonic time and UTC with one cheap reading: the monotonic clock is read each time,
/// and its offset to UTC at most every 10 ms. A step of the system's UTC shows within 10 ms in
/// `utc` and never in `mono`.
#[derive(Debug, Default)]
pub struct Clock {
    offset: i64,
    refresh_at: u64,
}

impl Clock {
    /// Makes a clock that measures the offset at its first reading.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            offset: 0,
            refresh_at: 0,
        }
    }

    /// Reads the time. `mono` counts from boot, the same for all processes of this machine.
    pub fn read(&mut self) -> Now {
        let mono = time::monotonic();
        if mono >= self.refresh_at {
            self.offset = time::utc().wrapping_sub_unsigned(mono);
            self.refresh_at = mono + REFRESH;
        }
        Now {
            mono,
            utc: UtcTimestamp::from_nanos(self.offset.wrapping_add_unsigned(mono)),
        }
    }
}

/// Reads the clock of [`Now::mono`], in nanoseconds, for intervals that end between two duty
/// cycles. A reading takes some 25 ns.
#[must_use]
pub fn monotonic() -> u64 {
    time::monotonic()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn monotonic_never_goes_back_and_utc_is_the_systems() {
        let mut clock = Clock::new();
        let system = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_nanos() as i64;
        let first = clock.read();
        let apart = first.utc.nanos() - system;
        assert!((0..3_600_000_000_000).contains(&apart), "{apart} ns apart");
        let mut last = first;
        for _ in 0..1000 {
            let now = clock.read();
            assert!(now.mono >= last.mono);
            last = now;
        }
    }
}
