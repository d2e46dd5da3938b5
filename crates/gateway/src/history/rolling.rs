//! Segments that end at the request of an operator.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The requests of operators to end the segments of all logs. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rolling(Arc<Logs>);

#[derive(Debug, Default)]
struct Logs {
    asked: AtomicU64,
    /// The last request that each log has completed.
    done: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Rolling {
    /// Adds a log.
    pub(crate) fn order(&self) -> RollOrder {
        let done = Arc::new(AtomicU64::new(self.0.asked.load(Ordering::Acquire)));
        let mut all = self.0.done.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::clone(&done));
        RollOrder {
            logs: Arc::clone(&self.0),
            done,
        }
    }

    /// Requests the end of the segments of all logs. Returns the number of the request.
    pub(crate) fn ask(&self) -> u64 {
        self.0.asked.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Returns how many logs there are, and whether all have completed this request.
    pub(crate) fn have_followed(&self, wish: u64) -> (usize, bool) {
        let all = self.0.done.lock().unwrap_or_else(PoisonError::into_inner);
        let all_have = all.iter().all(|done| done.load(Ordering::Acquire) >= wish);
        (all.len(), all_have)
    }
}

/// The end of a log's writer.
#[derive(Debug)]
pub(crate) struct RollOrder {
    logs: Arc<Logs>,
    done: Arc<AtomicU64>,
}

impl RollOrder {
    /// Returns the last request, if it was not completed yet.
    pub(crate) fn wish(&self) -> Option<u64> {
        let asked = self.logs.asked.load(Ordering::Acquire);
        (asked != self.done.load(Ordering::Relaxed)).then_some(asked)
    }

    /// Records that the segment has ended for this request.
    pub(crate) fn follow(&self, wish: u64) {
        self.done.store(wish, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_followed_once_all_logs_have() {
        let rolling = Rolling::default();
        assert_eq!(rolling.have_followed(rolling.ask()), (0, true));
        let logs = [rolling.order(), rolling.order()];
        assert_eq!(logs[0].wish(), None, "it was before the log");
        let wishes = [rolling.ask(), rolling.ask()];
        for log in &logs {
            assert_eq!(rolling.have_followed(wishes[0]), (2, false));
            assert_eq!(log.wish(), Some(wishes[1]), "several are one");
            log.follow(wishes[1]);
            assert_eq!(log.wish(), None);
        }
        assert_eq!(rolling.have_followed(wishes[1]), (2, true));
    }
}
