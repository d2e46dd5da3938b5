//! The log that the writer of the ring of market events waits for.

use fanfare_engine::stop::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The longest wait for a log without progress, so that a disk that hangs does not stop the feeds.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A log that the writer waits for when it is behind.
pub(super) struct Awaited {
    /// The number after its last event.
    committed: Arc<AtomicU64>,
    /// The most events that it may be behind.
    most: u64,
    /// The value of `committed` when the last wait ran out. No event waits until it changes.
    given_up: Option<u64>,
    longest: Duration,
    /// The end of all waits for the log at the end of the plant, once one has begun.
    last: Option<Instant>,
    stop: Stop,
}

impl Awaited {
    /// Creates one that may be behind by up to `most` events. A raised `stop` ends every wait.
    pub(super) fn new(committed: Arc<AtomicU64>, most: u64, stop: Stop) -> Self {
        Self {
            committed,
            most,
            given_up: None,
            longest: LONGEST_WAIT,
            last: None,
            stop,
        }
    }

    /// Waits until the log is close enough to the event with the number `next`.
    #[inline]
    pub(super) fn wait(&mut self, next: u64) {
        if self.is_behind(next) {
            self.wait_long(next);
        }
    }

    fn committed(&self) -> u64 {
        self.committed.load(Ordering::Acquire)
    }

    fn is_behind(&self, next: u64) -> bool {
        next.saturating_sub(self.committed()) > self.most
    }

    /// Waits at the end of the plant until the log is behind by at most half of what it may be. All
    /// of these waits together take a few seconds at most. A raised `stop` does not end them, as
    /// the plant stops by then.
    #[cold]
    pub(super) fn wait_at_end(&mut self, next: u64) {
        let longest = self.longest;
        let last = self.last.get_or_insert_with(|| Instant::now() + longest);
        let last = *last;
        while self.is_half_behind(next) {
            if Instant::now() >= last {
                self.given_up = Some(self.committed());
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Returns whether the log is behind by more than half of what it may be.
    pub(super) fn is_half_behind(&self, next: u64) -> bool {
        next.saturating_sub(self.committed()) > self.most / 2
    }

    /// Returns whether the log has made no progress since a wait ran out.
    pub(super) fn has_given_up(&self) -> bool {
        self.given_up == Some(self.committed())
    }

    #[cold]
    fn wait_long(&mut self, next: u64) {
        if self.has_given_up() {
            return;
        }
        let begun = Instant::now();
        while self.is_behind(next) && !self.stop.is_raised() {
            if begun.elapsed() >= self.longest {
                self.given_up = Some(self.committed());
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a log that may be behind by ten events and whose waits run out at once, and the
    /// number after its last event.
    fn log() -> (Awaited, Arc<AtomicU64>) {
        let committed = Arc::new(AtomicU64::new(1));
        let log = Awaited {
            longest: Duration::ZERO,
            ..Awaited::new(Arc::clone(&committed), 10, Stop::new())
        };
        (log, committed)
    }

    #[test]
    fn a_log_without_progress_is_waited_for_once() {
        let (mut log, committed) = log();
        log.wait(11);
        assert!(!log.has_given_up(), "it is not behind");
        log.wait(12);
        assert!(log.has_given_up());
        // Another wait would not end.
        log.longest = Duration::MAX;
        log.wait(12);
        log.wait(13);
        committed.store(2, Ordering::Release);
        assert!(!log.has_given_up(), "it has made progress");
        log.longest = Duration::ZERO;
        log.wait(13);
        assert!(log.has_given_up(), "it is waited for again");
    }

    #[test]
    fn the_waits_at_the_end_have_one_limit() {
        let (mut log, committed) = log();
        log.stop.raise();
        log.wait_at_end(6);
        assert!(!log.has_given_up(), "it is not behind");
        log.longest = Duration::MAX;
        committed.store(2, Ordering::Release);
        log.wait_at_end(8);
        assert!(log.has_given_up(), "the limit is that of the first wait");
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let (mut log, _committed) = log();
        log.longest = Duration::MAX;
        log.stop.raise();
        log.wait(12);
        assert!(!log.has_given_up());
    }
}
