//! The missing messages to request from a replay, when, and how often. Sans-I/O: the caller sends
//! the requests (MarketDataRequest(V) with ApplBegSeqNum(1182) and ApplEndSeqNum(1183), an
//! ApplMessageRequest(BW), or those of a feed) and reports their outcome.
//!
//! One request is under way at a time, until the caller reports its outcome. Messages that a
//! response left out, or that did not arrive, are requested again, up to a number of attempts; then
//! they are left to snapshots.

use crate::missing::Missing;
use std::ops::Range;

/// A request without an outcome is given up after this many times the timeout. The caller reports
/// an outcome earlier: it waits at most for a connection, a logon and a response, and to write each
/// of its messages.
const LAST_RESORT: u64 = 8;

/// Limits of a [`Replay`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayConfig {
    /// Most messages in a request.
    pub most: u64,
    /// The timeout with which the caller waits for a connection, a logon and each further message,
    /// in nanoseconds. A request of which the caller reports no outcome is given up after eight
    /// times this, from the request or the last message of its range on.
    pub timeout: u64,
    /// Most requests of the same messages.
    pub attempts: u32,
    /// The pause after a refusal or a lost connection, in nanoseconds; doubled with each one, up to
    /// 64 times.
    pub pause: u64,
}

impl Default for ReplayConfig {
    /// Returns limits of 1,000 messages, 2 s, 3 attempts, 1 s.
    fn default() -> Self {
        Self {
            most: 1_000,
            timeout: 2_000_000_000,
            attempts: 3,
            pause: 1_000_000_000,
        }
    }
}

/// The counters of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayStats {
    /// Requests that [`Replay::poll_request`] returned.
    pub requests: u64,
    /// Requests that brought all their messages.
    pub answered: u64,
    /// Requests that were refused, or whose connection was lost.
    pub refused: u64,
    /// Requests whose response was incomplete, or that had no outcome.
    pub unanswered: u64,
    /// Messages that were requested as often as configured, and given up.
    pub given_up: u64,
}

#[derive(Debug, Clone)]
struct Request {
    range: Range<u64>,
    /// The time at which the request is given up, unless a message of the range arrives.
    deadline: u64,
    /// The number of messages that may still extend the deadline.
    extensions: u64,
}

/// The requests of one channel to its replay.
#[derive(Debug)]
pub struct Replay {
    config: ReplayConfig,
    under_way: Option<Request>,
    /// The range requested last, and how often.
    last: Range<u64>,
    attempts: u32,
    refusals: u32,
    /// The time before which no request is made; 0 without a pause.
    not_before: u64,
    /// The number below which messages are no longer requested.
    given_up_below: u64,
    stats: ReplayStats,
}

impl Replay {
    /// Returns a replay without requests so far.
    pub fn new(config: ReplayConfig) -> Self {
        Self {
            config: ReplayConfig {
                most: config.most.max(1),
                ..config
            },
            under_way: None,
            last: 0..0,
            attempts: 0,
            refusals: 0,
            not_before: 0,
            given_up_below: 0,
            stats: ReplayStats::default(),
        }
    }

    /// Returns the counters of the replay.
    pub const fn stats(&self) -> ReplayStats {
        self.stats
    }

    /// Returns the next request: the missing messages, in extended numbers. `None` while a request
    /// is under way, nothing is missing, or during a pause. Each request that is returned counts as
    /// an attempt: a caller that cannot make one now does not call this.
    pub fn poll_request(&mut self, now: u64, missing: &Missing) -> Option<Range<u64>> {
        while self.under_way.is_none() && now >= self.not_before {
            let range = self.next_range(missing)?;
            if range != self.last {
                (self.last, self.attempts) = (range.clone(), 0);
            }
            if self.attempts < self.config.attempts {
                self.attempts += 1;
                self.not_before = 0;
                self.stats.requests += 1;
                self.under_way = Some(Request {
                    range: range.clone(),
                    deadline: self.last_resort(now),
                    extensions: range.end - range.start,
                });
                return Some(range);
            }
            self.given_up_below = range.end;
            self.stats.given_up += range.end - range.start;
        }
        None
    }

    const fn last_resort(&self, now: u64) -> u64 {
        now.saturating_add(self.config.timeout.saturating_mul(LAST_RESORT))
    }

    fn next_range(&self, missing: &Missing) -> Option<Range<u64>> {
        let mut ranges = missing.ranges();
        let range = ranges.find(|range| range.end > self.given_up_below)?;
        let start = range.start.max(self.given_up_below);
        Some(start..range.end.min(start + self.config.most))
    }

    /// Returns whether a message was requested and is still missing; others are not to be
    /// delivered. As many messages as were requested extend the time for the response.
    pub fn expects(&mut self, now: u64, sequence: u64, missing: &Missing) -> bool {
        let deadline = self.last_resort(now);
        let Some(request) = &mut self.under_way else {
            return false;
        };
        if !request.range.contains(&sequence) {
            return false;
        }
        if request.extensions > 0 {
            request.extensions -= 1;
            request.deadline = deadline;
        }
        missing.contains(sequence)
    }

    /// Notes that the response is complete: messages that it did not bring may be requested again.
    pub fn answered(&mut self, missing: &Missing) {
        let Some(request) = self.under_way.take() else {
            return;
        };
        self.refusals = 0;
        match missing.has(request.range) {
            true => self.stats.unanswered += 1,
            false => self.stats.answered += 1,
        }
    }

    /// Notes that the request was refused, or its connection lost: a pause follows.
    pub fn refused(&mut self, now: u64) {
        if self.under_way.take().is_none() {
            return;
        }
        self.stats.refused += 1;
        let pause = self.config.pause << self.refusals.min(6);
        self.refusals += 1;
        self.not_before = now.saturating_add(pause);
    }

    /// Returns when to call [`Self::handle_timeout`], in nanoseconds.
    pub fn poll_timeout(&self) -> Option<u64> {
        match &self.under_way {
            Some(request) => Some(request.deadline),
            None => Some(self.not_before).filter(|end| *end > 0),
        }
    }

    /// Gives up a request of which the caller has reported no outcome for too long, and ends a
    /// pause: a request may be due.
    pub fn handle_timeout(&mut self, now: u64) {
        let is_late = |request: &Request| now >= request.deadline;
        if self.under_way.as_ref().is_some_and(is_late) {
            self.under_way = None;
            self.stats.unanswered += 1;
        }
        if now >= self.not_before {
            self.not_before = 0;
        }
    }

    /// Notes that messages from this number on were requested before it was known whether they had
    /// been sent: earlier requests of them do not count.
    pub fn ask_again(&mut self, from: u64) {
        if self.last.end > from {
            (self.last, self.attempts) = (0..0, 0);
        }
        self.given_up_below = self.given_up_below.min(from);
    }

    /// Notes that the channel restarted: earlier messages are not requested, and no response to an
    /// earlier request is expected. The caller cancels it.
    pub fn reset(&mut self) {
        (self.under_way, self.last) = (None, 0..0);
        (self.attempts, self.given_up_below) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ReplayConfig = ReplayConfig {
        most: 10,
        timeout: 100,
        attempts: 2,
        pause: 50,
    };

    fn missing(ranges: &[(u64, u64)]) -> Missing {
        let mut missing = Missing::new(16);
        for (from, to) in ranges {
            missing.push(*from..*to);
        }
        missing
    }

    #[test]
    fn ranges_are_bounded_and_asked_for_one_after_the_other() {
        let mut missing = missing(&[(5, 20), (30, 31)]);
        let mut replay = Replay::new(CONFIG);
        for expected in [5..15, 15..20, 30..31] {
            assert_eq!(replay.poll_request(0, &missing), Some(expected.clone()));
            assert_eq!(replay.poll_request(0, &missing), None, "one at a time");
            for sequence in expected {
                assert!(replay.expects(0, sequence, &missing));
                missing.take(sequence..sequence + 1);
                assert!(!replay.expects(0, sequence, &missing), "it came already");
            }
            replay.answered(&missing);
        }
        assert_eq!(replay.poll_request(0, &missing), None);
        let stats = replay.stats();
        assert_eq!((stats.requests, stats.answered, stats.given_up), (3, 3, 0));
    }

    #[test]
    fn what_is_never_brought_is_given_up() {
        let missing = missing(&[(5, 8), (9, 10)]);
        let mut replay = Replay::new(CONFIG);
        assert_eq!(replay.poll_request(0, &missing), Some(5..8));
        replay.answered(&missing);
        assert_eq!(replay.poll_request(1, &missing), Some(5..8));
        assert_eq!(replay.poll_timeout(), Some(801));
        replay.handle_timeout(800);
        assert_eq!(replay.poll_request(800, &missing), None);
        replay.handle_timeout(801);
        assert_eq!(replay.poll_request(801, &missing), Some(9..10));
        let stats = replay.stats();
        assert_eq!((stats.unanswered, stats.given_up), (2, 3));
    }

    #[test]
    fn refusals_are_followed_by_longer_and_longer_pauses() {
        let missing = missing(&[(5, 8)]);
        let config = ReplayConfig {
            attempts: 100,
            ..CONFIG
        };
        let (mut replay, mut now) = (Replay::new(config), 0);
        for pause in [50, 100, 200, 400, 800, 1_600, 3_200, 3_200] {
            assert_eq!(replay.poll_request(now, &missing), Some(5..8));
            replay.refused(now);
            assert_eq!(replay.poll_request(now + pause - 1, &missing), None);
            assert_eq!(replay.poll_timeout(), Some(now + pause));
            now += pause;
        }
        replay.handle_timeout(now);
        assert_eq!(replay.poll_timeout(), None, "nothing need be missing");
        assert_eq!(replay.poll_request(now, &missing), Some(5..8));
        assert_eq!(replay.poll_timeout(), Some(now + 800));
    }

    #[test]
    fn a_request_without_an_answer_is_one_attempt() {
        let mut missing = missing(&[(5, 8)]);
        let (mut replay, mut now) = (Replay::new(CONFIG), 0);
        assert_eq!(replay.poll_request(now, &missing), Some(5..8));
        // The caller notices a timeout some time after it.
        for late in [100, 150, 200, 300] {
            replay.handle_timeout(now + late);
            assert_eq!(replay.poll_request(now + late, &missing), None);
        }
        now += 300;
        replay.refused(now);
        now += 50;
        assert_eq!(replay.poll_request(now, &missing), Some(5..8));
        // A message that comes after the timeout is taken, as the request is not over.
        assert!(replay.expects(now + 200, 5, &missing));
        missing.take(5..8);
        replay.answered(&missing);
        let stats = replay.stats();
        assert_eq!((stats.requests, stats.refused, stats.answered), (2, 1, 1));
        assert_eq!((stats.unanswered, stats.given_up), (0, 0));
    }

    #[test]
    fn a_response_that_repeats_itself_is_given_up() {
        let mut missing = missing(&[(5, 8)]);
        let mut replay = Replay::new(CONFIG);
        replay.poll_request(0, &missing);
        assert!(replay.expects(60, 5, &missing));
        missing.take(5..6);
        // As many messages as were requested extend the time, whichever they are.
        for (now, end) in [(90, 890), (120, 920), (150, 920), (180, 920)] {
            assert!(!replay.expects(now, 5, &missing));
            assert_eq!(replay.poll_timeout(), Some(end));
        }
        replay.handle_timeout(920);
        assert_eq!(replay.stats().unanswered, 1);
        assert_eq!(replay.poll_request(920, &missing), Some(6..8));
    }

    #[test]
    fn messages_that_were_not_asked_for_are_not_expected() {
        let missing = missing(&[(5, 8), (50, 60)]);
        let mut replay = Replay::new(CONFIG);
        assert!(!replay.expects(0, 5, &missing));
        replay.poll_request(0, &missing);
        assert!(!replay.expects(0, 50, &missing));
        assert!(!replay.expects(0, 4, &missing));
        replay.reset();
        assert!(!replay.expects(0, 5, &missing));
    }
}
