//! The clock, read once a duty cycle.

use crate::sys::time;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// How long one measurement of the offset between the two clocks is used, in nanoseconds.
const REFRESH: u64 = 10_000_000;

/// The error of a measured offset that is accepted at once, in nanoseconds: more means that the
/// thread was interrupted between its readings.
const CLOSE: u64 = 1_000;

/// Measurements of the offset until one is close.
const TRIES: usize = 4;

/// A clock of monotonic time and UTC with one cheap reading: the monotonic clock is read each time,
/// and its offset to UTC at most every 10 ms. A step of the system's UTC shows within 10 ms in
/// `utc` and never in `mono`. A thread that is interrupted while it measures does not shift `utc`.
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
            self.offset = offset(time::monotonic, time::utc);
            self.refresh_at = mono + REFRESH;
        }
        Now {
            mono,
            utc: UtcTimestamp::from_nanos(self.offset.wrapping_add_unsigned(mono)),
        }
    }
}

/// Measures UTC less the monotonic time. Each reading of UTC is between two of the monotonic clock,
/// and the closest pair is used: a thread that loses its processor between two readings would
/// otherwise shift UTC by the time that it was away.
fn offset(mut mono: impl FnMut() -> u64, mut utc: impl FnMut() -> i64) -> i64 {
    let (mut closest, mut offset) = (u64::MAX, 0);
    let mut before = mono();
    for _ in 0..TRIES {
        let now = utc();
        let after = mono();
        let apart = after - before;
        if apart < closest {
            (closest, offset) = (apart, now.wrapping_sub_unsigned(before + apart / 2));
        }
        if closest <= CLOSE {
            break;
        }
        before = after;
    }
    offset
}

/// Reads the clock of [`Now::mono`], in nanoseconds, for intervals that end between two duty
/// cycles. A reading takes some 25 ns.
#[must_use]
pub fn monotonic() -> u64 {
    time::monotonic()
}

/// Reads UTC, in nanoseconds since 1970-01-01, outside of a duty cycle.
#[must_use]
pub fn utc() -> u64 {
    time::utc().max(0).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{SystemTime, UNIX_EPOCH};

    #[test]
    fn an_interruption_between_two_readings_shifts_nothing() {
        // Readings 40 ns apart, but for those that follow an interruption of 5 ms.
        for interrupted in 0..2 * TRIES {
            let (mut time, mut reading) = (1_000, 0);
            let mut next = || {
                reading += 1;
                time += if reading == interrupted {
                    5_000_000
                } else {
                    40
                };
                time
            };
            let next = std::cell::RefCell::new(&mut next);
            let measured = offset(|| next.borrow_mut()(), || 77 + next.borrow_mut()() as i64);
            assert!(
                (measured - 77).unsigned_abs() <= CLOSE,
                "{interrupted}: {measured}"
            );
        }
    }

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
