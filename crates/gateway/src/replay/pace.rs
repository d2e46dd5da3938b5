//! The times at which the messages of a replay are due.

use super::config::Speed;

/// The clock of a replay.
#[derive(Debug)]
pub(super) struct Pace {
    speed: Speed,
    /// A time of the source, and the monotonic time at which it was due.
    begun: Option<(u64, u64)>,
}

impl Pace {
    pub(super) const fn new(speed: Speed) -> Self {
        Self { speed, begun: None }
    }

    /// Resets the clock, for times that begin again.
    pub(super) const fn begin_again(&mut self) {
        self.begun = None;
    }

    /// Returns the monotonic time at which a message of this time is due. The first message, and
    /// one of time 0, are due immediately.
    pub(super) fn due(&mut self, time: u64, now: u64) -> u64 {
        let Speed::Thousandths(speed) = self.speed else {
            return now;
        };
        if time == 0 {
            return now;
        }
        let (first, begun) = *self.begun.get_or_insert((time, now));
        let behind = u128::from(time.saturating_sub(first)) * 1_000 / u128::from(speed.max(1));
        begun.saturating_add(u64::try_from(behind).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_at_their_distances_from_the_first() {
        let mut pace = Pace::new(Speed::Thousandths(10_000));
        assert_eq!(pace.due(1_000, 7), 7);
        assert_eq!(pace.due(1_500, 99), 57);
        assert_eq!(pace.due(900, 99), 7, "a clock that was set back");
        pace.begin_again();
        assert_eq!(pace.due(900, 99), 99);
        let mut slow = Pace::new(Speed::Thousandths(500));
        slow.due(10, 0);
        assert_eq!((slow.due(60, 0), slow.due(0, 5)), (100, 5));
        let mut all = Pace::new(Speed::Max);
        all.due(0, 0);
        assert_eq!(all.due(u64::MAX, 5), 5);
    }
}
