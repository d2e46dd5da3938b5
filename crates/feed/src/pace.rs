//! The time of an arbiter whose packets are read from sockets.

/// The arbiter's time. A packet that waits in a socket because this process was slow is not
/// missing. After a duty cycle that took datagrams the time advances by at most an eighth of the
/// time-out, so that each line is read several times before a gap is declared. While a line has
/// more than a batch the time stands still.
///
/// Times are nanoseconds of any monotonic clock.
#[derive(Debug, Clone, Default)]
pub struct Pace {
    timeout: u64,
    time: u64,
    previous: Option<u64>,
    was_busy: bool,
    is_behind: bool,
}

impl Pace {
    /// Makes the time of an arbiter with this time-out.
    #[must_use]
    pub fn new(timeout: u64) -> Self {
        Self {
            timeout,
            ..Self::default()
        }
    }

    /// Begins a duty cycle at `now`, and returns the arbiter's time, which is 0 in the first one.
    pub fn time(&mut self, now: u64) -> u64 {
        let elapsed = now.saturating_sub(self.previous.unwrap_or(now));
        self.time += match (self.is_behind, self.was_busy) {
            (true, _) => 0,
            (false, true) => elapsed.min(self.timeout / 8),
            (false, false) => elapsed,
        };
        self.previous = Some(now);
        self.time
    }

    /// Notes how many datagrams the duty cycle took, and whether a line had as many as it may.
    pub const fn took(&mut self, datagrams: usize, is_behind: bool) {
        self.was_busy = datagrams > 0;
        self.is_behind = is_behind;
    }

    /// Returns whether a line had as many datagrams as it may in the last duty cycle.
    #[must_use]
    pub const fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Returns when the arbiter's time is `time`, if nothing is received.
    #[must_use]
    pub fn real(&self, time: u64) -> u64 {
        let left = time.saturating_sub(self.time);
        self.previous.unwrap_or_default().saturating_add(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_slowly_while_there_is_work() {
        let mut pace = Pace::new(80);
        assert_eq!(pace.time(1_000), 0);
        assert_eq!(pace.time(1_030), 30);
        assert_eq!(pace.real(50), 1_050);
        pace.took(3, false);
        assert_eq!(pace.time(1_530), 40, "an eighth of the time-out");
        pace.took(64, true);
        assert_eq!(pace.time(9_000), 40, "more waits in the socket");
        assert!(pace.is_behind());
        pace.took(0, false);
        assert!(!pace.is_behind());
        assert_eq!(pace.time(9_005), 45);
        assert_eq!(pace.real(45), 9_005);
        assert_eq!(pace.real(0), 9_005, "what is over is now");
    }
}
