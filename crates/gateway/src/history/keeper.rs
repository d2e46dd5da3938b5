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
                Ok(read)
            }
            Err(error) => {
                if self.retry.failed(now) {
                    let folder = self.folder.display().to_string();
                    let what = format!("checkpoints and compaction wait: {error}");
                    self.notices.send(Notice::History { folder, what });
                }
                Ok(0)
            }
        }
    }
}
