//! The keeper of the log, on a thread of its own: checkpoints, compaction, retention and syncing to
//! disk.

use super::config::History;
use crate::counts::KeeperCounts;
use crate::notice::{Notice, Notices};
use crate::retry::Retry;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fix::session::Now;
use fanfare_history::{Keeper, LogError};
use std::path::PathBuf;

/// The pause after an error, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// The nanoseconds of an hour.
const HOUR: u64 = 3_600_000_000_000;

/// The agent that keeps the log.
pub(crate) struct KeeperAgent {
    folder: PathBuf,
    keeper: Keeper,
    /// The interval at which the log is synced to the disk in nanoseconds, or 0 for never.
    sync: u64,
    synced: u64,
    /// Whether records were read that are not synced.
    is_unsynced: bool,
    retry: Retry,
    /// The counters of the log of market events.
    counts: Option<KeeperCounts>,
    /// Whether events are removed by their age.
    has_days: bool,
    /// Whether the clock was found to be set ahead, and is not believed yet.
    is_ahead: bool,
    notices: Notices,
}

impl KeeperAgent {
    pub(crate) fn open(
        history: &History,
        counts: Option<KeeperCounts>,
        notices: Notices,
    ) -> Result<Self, LogError> {
        Ok(Self {
            folder: history.folder.clone(),
            keeper: Keeper::open(&history.folder, history.keeper())?,
            sync: history.sync_ms * 1_000_000,
            synced: 0,
            is_unsynced: false,
            retry: Retry::new(PATIENCE),
            counts,
            has_days: history.keep_days.is_some(),
            is_ahead: false,
            notices,
        })
    }

    fn turn(&mut self, now: u64) -> Result<usize, LogError> {
        let worked = self.keeper.work();
        // Records may have been read before an error.
        self.is_unsynced |= !matches!(worked, Ok(0));
        let synced = self.sync(now);
        let read = worked?;
        synced.map(|()| read)
    }

    /// Syncs the log to the disk, if that is due.
    fn sync(&mut self, now: u64) -> Result<(), LogError> {
        let is_due = self.is_unsynced && now.saturating_sub(self.synced) >= self.sync;
        if self.sync > 0 && is_due {
            self.keeper.sync()?;
            self.synced = now;
            self.is_unsynced = false;
        }
        Ok(())
    }

    /// Reports once that the clock was set ahead, and that it is believed again.
    fn look_at_clock(&mut self) {
        let ahead = self.keeper.stats().clock_ahead;
        let was_ahead = std::mem::replace(&mut self.is_ahead, ahead > 0);
        if self.has_days
            && let Some(what) = change_of_clock(was_ahead, ahead)
        {
            self.report(what);
        }
    }

    fn report(&self, what: String) {
        let folder = self.folder.display().to_string();
        self.notices.send(Notice::History { folder, what });
    }

    fn count(&self) {
        let (stats, Some(counts)) = (self.keeper.stats(), &self.counts) else {
            return;
        };
        counts.checkpoints.set(stats.checkpoints);
        counts.compacted.set(stats.compacted);
        counts.removed.set(stats.removed);
        counts.damaged.set(stats.damaged);
        counts.number.set(self.keeper.number());
    }
}

impl Agent for KeeperAgent {
    fn name(&self) -> &str {
        "log-keeper"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.retry.waits(now) {
            return Ok(0);
        }
        match self.turn(now.mono) {
            Ok(read) => {
                self.retry.succeeded();
                self.count();
                self.look_at_clock();
                Ok(read)
            }
            Err(error) => {
                if self.retry.failed(now) {
                    self.report(format!("checkpoints and compaction wait: {error}"));
                }
                Ok(0)
            }
        }
    }
}

/// Returns the report of a clock that is ahead by so many nanoseconds, if it was not before, or of
/// one that is believed again.
fn change_of_clock(was_ahead: bool, ahead: u64) -> Option<String> {
    match (was_ahead, ahead) {
        (false, 1..) => Some(format!(
            "the system's clock was set ahead by about {} h: `keep_days` removes nothing because \
             of that until the machine has run for 24 h with it, or the gateway starts again",
            ahead.div_ceil(HOUR)
        )),
        (true, 0) => Some("`keep_days` goes by the system's clock again".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_ahead_is_reported_once_each_way() {
        let told = change_of_clock(false, 9_599 * HOUR + 1).unwrap();
        assert!(told.contains("set ahead by about 9600 h"), "{told}");
        assert!(
            told.contains("until the machine has run for 24 h with it"),
            "{told}"
        );
        assert_eq!(change_of_clock(true, HOUR), None);
        assert!(
            change_of_clock(true, 0)
                .unwrap()
                .contains("goes by the system's clock again")
        );
        assert_eq!(change_of_clock(false, 0), None);
    }
}
