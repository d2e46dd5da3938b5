//! The counts that the threads of one side share with each other and the main thread.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts over all threads. Threads add to it at most once a duty cycle.
#[derive(Debug, Default)]
pub(super) struct Board {
    logged_on: AtomicUsize,
    ended: AtomicUsize,
    /// Threads that have sent everything.
    done: AtomicUsize,
    messages: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Board {
    /// Returns the number of logons so far.
    pub(super) fn logged_on(&self) -> usize {
        self.logged_on.load(Ordering::Relaxed)
    }

    /// Returns the number of sessions that had logged on and have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns the number of threads that have finished.
    pub(super) fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the number of messages sent or received.
    pub(super) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    pub(super) fn log_on(&self) {
        self.logged_on.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn finish(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn add(&self, messages: u64) {
        if messages > 0 {
            self.messages.fetch_add(messages, Ordering::Relaxed);
        }
    }

    /// Records the first failure.
    pub(super) fn trouble(&self, what: impl FnOnce() -> String) {
        if let Ok(mut place) = self.trouble.lock() {
            place.get_or_insert_with(what);
        }
    }

    /// Returns the first failure, if there was one.
    pub(super) fn first_trouble(&self) -> Option<String> {
        self.trouble.lock().ok().and_then(|place| place.clone())
    }
}
