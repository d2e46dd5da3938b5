//! The retries of writers of logs after an error of the system, and their reports.

use super::missing::Missing;
use crate::notice::{Notice, Notices};
use crate::retry::Retry;
use fanfare_engine::counters::Counter;
use fanfare_fix::session::Now;
use fanfare_history::LogError;
use std::path::Path;

/// The pause before a log that cannot be written is retried, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

pub(super) struct Patience {
    /// The folder of the log.
    folder: String,
    retry: Retry,
    notices: Notices,
}

impl Patience {
    pub(super) fn new(folder: &Path, notices: Notices) -> Self {
        Self {
            folder: folder.display().to_string(),
            retry: Retry::new(PATIENCE),
            notices,
        }
    }

    /// Returns whether it is too early to retry.
    pub(super) fn waits(&self, now: Now) -> bool {
        self.retry.waits(now)
    }

    /// Records the result of a turn, and returns the work that it did.
    pub(super) fn take(
        &mut self,
        now: Now,
        outcome: Result<usize, LogError>,
        failures: &Counter,
    ) -> usize {
        match outcome {
            Ok(read) => {
                if self.retry.succeeded() {
                    self.report("is written again".to_owned());
                }
                read
            }
            Err(error) => {
                failures.increment(1);
                if self.retry.failed(now) {
                    self.report(format!(
                        "cannot be written, the next attempt follows: {error}"
                    ));
                }
                0
            }
        }
    }

    /// Reports the events behind which the log goes on.
    pub(super) fn lacks(&self, missing: Missing) {
        self.report(format!(
            "lacks {missing}: it was behind by the whole ring, and goes on behind them"
        ));
    }

    /// Reports that the log could not be closed. `left` events are in the file of its ring.
    pub(super) fn end(&self, error: &LogError, left: u64) {
        let what = match left {
            0 => format!("could not be ended: {error}"),
            _ => format!(
                "could not be ended, and the next start takes {left} events from the file of the \
                 ring: {error}"
            ),
        };
        self.report(what);
    }

    fn report(&self, what: String) {
        let folder = self.folder.clone();
        self.notices.send(Notice::History { folder, what });
    }
}

/// Calls `turn` until it finds no more work.
pub(super) fn drain(mut turn: impl FnMut() -> Result<usize, LogError>) -> Result<(), LogError> {
    while turn()? > 0 {}
    Ok(())
}
