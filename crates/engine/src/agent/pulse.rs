//! The pulse of a thread that runs an agent.

use crate::pad::Padded;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time at which a thread began its last turn, so that another thread sees whether it goes on.
#[derive(Debug, Clone, Default)]
pub(super) struct Pulse(Arc<Padded<AtomicU64>>);

impl Pulse {
    /// Notes that a turn begins at `now`, monotonic, in nanoseconds.
    pub(super) fn beat(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Returns the time of the last turn; `None` before the first.
    pub(super) fn last(&self) -> Option<u64> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            at => Some(at),
        }
    }
}
