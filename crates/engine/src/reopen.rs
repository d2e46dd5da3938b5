//! When a log opens the file at its path again.

use crate::stop::Reload;
use fanfare_fix::session::SECOND;

/// The attempts of a log to open the file at its path again: one at each request, and after a
/// failed one another each minute, until one succeeds. Meanwhile the log continues in the open
/// file. Times are monotonic, in nanoseconds.
///
/// ```
/// use fanfare_engine::reopen::Reopen;
/// use fanfare_engine::stop::Reload;
/// let requests = Reload::new();
/// let mut reopen = Reopen::new(requests.clone());
/// requests.request();
/// if reopen.is_due(0) {
///     match std::fs::File::open("/dev/null") {
///         Ok(_) => reopen.done(),
///         Err(error) if reopen.is_requested() => eprintln!("{error}; the old file stays open"),
///         Err(_) => {}
///     }
/// }
/// assert!(!reopen.is_due(Reopen::INTERVAL));
/// ```
#[derive(Debug, Default)]
pub struct Reopen {
    requests: Reload,
    /// Whether the last attempt is the response to a request.
    is_requested: bool,
    /// The time of the next attempt, unless the last one succeeded.
    again: Option<u64>,
}

impl Reopen {
    /// The interval of attempts after a failed one.
    pub const INTERVAL: u64 = 60 * SECOND;

    /// Makes a `Reopen` whose first attempt is due at the first of these requests.
    #[must_use]
    pub const fn new(requests: Reload) -> Self {
        Self {
            requests,
            is_requested: false,
            again: None,
        }
    }

    /// Returns whether an attempt is due at `now`. The caller makes it at once; the next one is due
    /// after [`INTERVAL`](Self::INTERVAL), unless [`done`](Self::done) is called or a request comes
    /// before.
    #[must_use]
    pub fn is_due(&mut self, now: u64) -> bool {
        self.is_requested = self.requests.is_due();
        let is_due = self.is_requested || self.again.is_some_and(|at| now >= at);
        if is_due {
            self.again = Some(now.saturating_add(Self::INTERVAL));
        }
        is_due
    }

    /// Returns whether the attempt that is due is the response to a request. A log reports the
    /// failure of such an attempt only.
    #[must_use]
    pub const fn is_requested(&self) -> bool {
        self.is_requested
    }

    /// Notes that the log has the file at its path: no attempt is due until the next request.
    pub const fn done(&mut self) {
        self.again = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopen() -> (Reload, Reopen) {
        let requests = Reload::new();
        (requests.clone(), Reopen::new(requests))
    }

    /// Returns whether an attempt is due, and whether it is the response to a request.
    fn at(reopen: &mut Reopen, now: u64) -> (bool, bool) {
        (reopen.is_due(now), reopen.is_requested())
    }

    /// Notes that an attempt has succeeded, and checks that no other one is due.
    fn succeed(reopen: &mut Reopen) {
        reopen.done();
        assert_eq!(at(reopen, u64::MAX), (false, false));
    }

    #[test]
    fn without_a_request_nothing_is_due() {
        let (_, mut reopen) = reopen();
        assert_eq!(at(&mut reopen, 0), (false, false));
        assert_eq!(at(&mut reopen, u64::MAX), (false, false));
    }

    #[test]
    fn a_request_is_one_attempt_if_it_succeeds() {
        let (requests, mut reopen) = reopen();
        for now in [5, 6] {
            requests.request();
            requests.request();
            assert_eq!(at(&mut reopen, now), (true, true));
            succeed(&mut reopen);
        }
    }

    #[test]
    fn a_failed_attempt_is_repeated_each_minute_until_one_succeeds() {
        let (requests, mut reopen) = reopen();
        requests.request();
        assert_eq!(at(&mut reopen, 5), (true, true));
        for minutes in 1..4 {
            let due = 5 + minutes * Reopen::INTERVAL;
            assert_eq!(at(&mut reopen, due - 1), (false, false));
            assert_eq!(at(&mut reopen, due), (true, false));
        }
        succeed(&mut reopen);
    }

    #[test]
    fn a_request_between_attempts_is_one_and_the_minute_begins_anew() {
        let (requests, mut reopen) = reopen();
        for now in [5, 7] {
            requests.request();
            assert_eq!(at(&mut reopen, now), (true, true));
        }
        assert_eq!(at(&mut reopen, 6 + Reopen::INTERVAL), (false, false));
        assert_eq!(at(&mut reopen, 7 + Reopen::INTERVAL), (true, false));
    }
}
