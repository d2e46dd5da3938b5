//! The age of the bytes queued for a peer, estimated from samples of its queue.

/// The number of samples that are remembered. Their ages grow by a factor, so that within an hour
/// of four samples a second, one neighbour is about twice as old as the other.
const MARKS: usize = 16;

/// A memory of the end of a queue at some times. Has a fixed size and allocates nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lag {
    /// The times, and the bytes that the queue had taken until then, oldest first.
    marks: [(u64, u64); MARKS],
    len: usize,
}

impl Lag {
    /// Samples a queue that has taken `passed` bytes so far, of which `waits` are still queued.
    /// Returns a lower bound of the age of the oldest of these, in the unit of `now`: the time
    /// since the first remembered sample that includes it.
    pub(crate) fn look(&mut self, now: u64, passed: u64, waits: u64) -> u64 {
        let sent = passed.saturating_sub(waits);
        let marks = self.marks.get(..self.len).unwrap_or_default();
        let gone = marks.iter().take_while(|(_, end)| *end <= sent).count();
        self.marks.copy_within(gone..self.len, 0);
        self.len -= gone;
        if waits == 0 {
            return 0;
        }
        self.mark(now, passed);
        self.marks
            .first()
            .map_or(0, |(at, _)| now.saturating_sub(*at))
    }

    fn mark(&mut self, now: u64, passed: u64) {
        let last = self
            .len
            .checked_sub(1)
            .and_then(|last| self.marks.get(last));
        // Nothing was queued since, so the earlier mark says more.
        if last.is_some_and(|(_, end)| *end == passed) {
            return;
        }
        if self.len == MARKS {
            self.forget(now);
        }
        if let Some(place) = self.marks.get_mut(self.len) {
            *place = (now, passed);
            self.len += 1;
        }
    }

    /// Forgets the sample whose removal leaves the smallest gap, relative to its age. The first and
    /// the last stay.
    fn forget(&mut self, now: u64) {
        let gap = |place: usize| {
            let [(before, _), (behind, _)] = [self.marks[place - 1], self.marks[place + 1]];
            (behind - before) as f64 / now.saturating_sub(before).max(1) as f64
        };
        let least = (1..MARKS - 1).min_by(|a, b| gap(*a).total_cmp(&gap(*b)));
        let least = least.unwrap_or(1);
        self.marks.copy_within(least + 1.., least);
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_queue_that_moves_is_as_old_as_its_oldest_byte() {
        let mut lag = Lag::default();
        assert_eq!(lag.look(10, 0, 0), 0);
        assert_eq!(
            lag.look(20, 100, 100),
            0,
            "it was not there at the last look"
        );
        assert_eq!(lag.look(30, 150, 150), 10);
        assert_eq!(lag.look(40, 200, 60), 10, "the bytes up to 100 are gone");
        assert_eq!(lag.look(50, 200, 0), 0);
        assert_eq!(lag.look(60, 300, 1), 0);
        assert_eq!(lag.look(1_060, 300, 1), 1_000, "it stands still");
    }

    proptest! {
        #[test]
        fn it_is_never_more_than_the_age_of_the_oldest_byte(
            steps in prop::collection::vec((1u64..50, 0u64..40, 0u64..40), 1..200),
        ) {
            let (mut lag, mut queue) = (Lag::default(), VecDeque::new());
            let (mut now, mut passed) = (0, 0);
            for (wait, queued, sent) in steps {
                now += wait;
                queue.extend((0..queued).map(|_| now));
                passed += queued;
                queue.drain(..(sent as usize).min(queue.len()));
                let seen = lag.look(now, passed, queue.len() as u64);
                let oldest = queue.front().map_or(0, |at| now - at);
                prop_assert!(seen <= oldest, "{seen} > {oldest}");
                // The next sample sees a byte up to 50 later.
                prop_assert!(seen >= (oldest / 2).saturating_sub(50), "{seen} of {oldest}");
            }
        }
    }
}
