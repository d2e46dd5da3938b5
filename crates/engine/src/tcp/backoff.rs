//! The back-off between connection attempts.

use std::time::Duration;

use fastrand::Rng;

/// Exponential back-off with jitter: the n-th wait is drawn from the upper half of `initial * 2^n`,
/// never beyond `max`. It is deterministic from its seed and reads no clock.
#[derive(Debug, Clone)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    failures: u32,
    random: Rng,
}

impl Backoff {
    /// Makes a back-off. `seed` spreads clients that lost their connections at the same moment, so
    /// it must differ between them.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration, seed: u64) -> Self {
        Self {
            initial,
            max,
            failures: 0,
            random: Rng::with_seed(seed),
        }
    }

    /// Returns the time to wait after one more failure.
    pub fn next_wait(&mut self) -> Duration {
        let factor = 1u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let full = self.initial.saturating_mul(factor).min(self.max);
        let half = full / 2;
        half + half.mul_f64(self.random.f64())
    }

    /// Starts over after a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_maximum_and_start_over() {
        let (initial, max) = (Duration::from_millis(100), Duration::from_secs(5));
        let mut backoff = Backoff::new(initial, max, 1);
        for n in 0..100 {
            let full = initial.saturating_mul(1 << n.min(20)).min(max);
            let wait = backoff.next_wait();
            assert!(wait >= full / 2 && wait <= full, "wait {n}: {wait:?}");
        }
        backoff.reset();
        assert!(backoff.next_wait() <= initial);
    }

    #[test]
    fn two_seeds_do_not_wait_alike() {
        let waits = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(9), seed);
            [backoff.next_wait(), backoff.next_wait()]
        };
        assert_ne!(waits(1), waits(2));
        assert_eq!(waits(1), waits(1));
    }
}
