//! The retries of writers of logs after an error of the system, and their reports.

use crate::notice::{Limit, Notice, Notices};
use fanfare_engine::counters::Counter;
use fanfare_fix::session::Now;
use fanfare_history::LogError;
use std::path::Path;

/// The pause before a log that cannot be written is retried, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

pub(super) struct Patience {
    /// The folder of the log.
    folder: String,
    /// The monotonic time of the next retry.
    retry: Option<u64>,
    limit: Limit,
    notices: Notices,
}

impl Patience {
    pub(super) fn new(folder: &Path, notices: Notices) -> Self {
        Self {
            folder: folder.display().to_string(),
            retry: None,
            limit: Limit::default(),
            notices,
        }
    }

    /// Returns whether it is too early to retry.
    pub(super) fn waits(&self, now: Now) -> bool {
        self.retry.is_some_and(|at| now.mono < at)
    }

    /// Records the result of a turn, and returns the work that it did.
    pub(super) fn take(
        &mut self,
        now: Now,
        outcome: Result<usize, LogError>,
        failures: &Counter,
    ) -> usize {
        let had_failed = self.retry.take().is_some();
        match outcome {
            Ok(read) => {
                if had_failed {
                    self.limit = Limit::default();
                    self.report(now, "is written again".to_owned());
                }
                read
            }
            Err(error) => {
                failures.increment(1);
                self.retry = Some(now.mono + PATIENCE);
                self.report(
                    now,
                    format!("cannot be written, the next attempt follows: {error}"),
                );
                0
            }
        }
    }

    /// Reports that the log could not be closed.
    pub(super) fn end(&mut self, now: Now, error: &LogError) {
        self.limit = Limit::default();
        self.report(now, format!("could not be ended: {error}"));
    }

    fn report(&mut self, now: Now, what: String) {
        if self.limit.lets(now.utc.nanos()) {
            let folder = self.folder.clone();
            self.notices.send(Notice::History { folder, what });
        }
    }
}

/// Calls `turn` until it finds no more work.
pub(super) fn drain(mut turn: impl FnMut() -> Result<usize, LogError>) -> Result<(), LogError> {
    while turn()? > 0 {}
    Ok(())
}
