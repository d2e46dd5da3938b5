//! The retries of an agent after an error of the system.

use crate::notice::Limit;
use fanfare_fix::session::Now;

/// The time of the next attempt after an error, and a limit on the reports of errors.
pub(crate) struct Retry {
    /// The monotonic time of the next attempt, or `None` unless the last one failed.
    pub(crate) at: Option<u64>,
    /// The pause after an error, in nanoseconds.
    pause: u64,
    limit: Limit,
}

impl Retry {
    /// Creates the retries of an agent that waits `pause` nanoseconds after each error.
    pub(crate) fn new(pause: u64) -> Self {
        Self {
            at: None,
            pause,
            limit: Limit::default(),
        }
    }

    /// Returns whether it is too early for the next attempt.
    pub(crate) fn waits(&self, now: Now) -> bool {
        self.at.is_some_and(|at| now.mono < at)
    }

    /// Records that an attempt failed. Returns whether the error is to be reported.
    pub(crate) fn failed(&mut self, now: Now) -> bool {
        self.at = Some(now.mono + self.pause);
        self.limit.lets(now.utc.nanos())
    }

    /// Records that an attempt succeeded, after which the next error is reported. Returns whether
    /// the attempt before it had failed.
    pub(crate) fn succeeded(&mut self) -> bool {
        let had_failed = self.at.take().is_some();
        if had_failed {
            self.limit = Limit::default();
        }
        had_failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_wire::UtcTimestamp;

    fn at(mono: u64) -> Now {
        Now {
            mono,
            utc: UtcTimestamp::from_nanos(mono as i64),
        }
    }

    #[test]
    fn an_attempt_waits_after_an_error_and_a_success_ends_the_wait() {
        let mut retry = Retry::new(100);
        assert!(!retry.waits(at(0)) && !retry.succeeded());
        assert!(retry.failed(at(5)));
        assert_eq!(retry.at, Some(105));
        assert!(retry.waits(at(104)) && !retry.waits(at(105)));
        assert!(retry.succeeded() && !retry.succeeded());
        assert!(!retry.waits(at(0)));
    }

    #[test]
    fn many_errors_are_reported_in_part_until_a_success() {
        let mut retry = Retry::new(1);
        let reported = |retry: &mut Retry| (0..100).filter(|time| retry.failed(at(*time))).count();
        let first = reported(&mut retry);
        assert!((1..100).contains(&first), "{first}");
        assert_eq!(reported(&mut retry), 0);
        assert!(retry.succeeded());
        assert_eq!(reported(&mut retry), first);
    }
}
