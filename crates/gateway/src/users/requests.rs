//! The requests of a session in a second, which the limit of its user bounds.

use fanfare_fix::session::SECOND;

/// The requests of a session in the current second, which began with the first of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    /// The monotonic time at which the second began, in nanoseconds.
    since: u64,
    /// The number of requests in it.
    pub(crate) count: u32,
}

impl Requests {
    /// Counts a request. Returns the number of requests in this second beyond `most`.
    pub(crate) fn beyond(&mut self, most: u32, now: u64) -> u32 {
        if now.saturating_sub(self.since) >= SECOND {
            *self = Self {
                since: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        self.count.saturating_sub(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_limit_are_counted_until_the_second_ends() {
        let mut requests = Requests::default();
        let mut beyond = |now| requests.beyond(2, 5 * SECOND + now);
        assert_eq!([0, 1, 2, SECOND - 1].map(&mut beyond), [0, 0, 1, 2]);
        assert_eq!([SECOND, SECOND + 9].map(&mut beyond), [0, 0]);
        // The next second begins with its first request.
        assert_eq!(
            [3 * SECOND - 1, 3 * SECOND, 4 * SECOND - 2].map(beyond),
            [0, 0, 1]
        );
    }
}
