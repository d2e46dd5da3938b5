//! Writes the ring to the log, on a thread of its own.

use super::config::{History, Rolls};
use crate::counts::HistoryCounts;
use crate::market::ring::{Record, RecordReader};
use crate::notice::{Limit, Notice, Notices};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use fanfare_history::{LogError, Writer};
use std::path::PathBuf;

/// Records of one turn, which are committed together.
const TURN: usize = 512;

/// How long a log that cannot be written waits before it tries again, in nanoseconds.
const PATIENCE: u64 = 100_000_000;

/// Reads the ring and writes the log.
pub(crate) struct LogAgent {
    ring: RecordReader,
    /// `None` once it was closed.
    writer: Option<Writer>,
    rolls: Option<Rolls>,
    /// A new segment is to begin as soon as it can.
    is_roll_due: bool,
    /// The file of the ring.
    ring_file: PathBuf,
    /// The folder of the log.
    folder: String,
    /// Wakes the thread that follows the log.
    keeper: Waker,
    /// The monotonic time at which the log is to be tried again.
    retry: Option<u64>,
    /// What was counted so far.
    first: u64,
    seen: u64,
    limit: Limit,
    counts: HistoryCounts,
    notices: Notices,
}

impl LogAgent {
    pub(crate) fn new(
        history: &History,
        writer: Writer,
        ring: RecordReader,
        keeper: Waker,
        counts: HistoryCounts,
        notices: Notices,
    ) -> Self {
        Self {
            ring,
            rolls: history.rolls(),
            is_roll_due: false,
            ring_file: history.ring_file(),
            folder: history.folder.display().to_string(),
            keeper,
            retry: None,
            first: writer.next(),
            seen: 0,
            writer: Some(writer),
            limit: Limit::default(),
            counts,
            notices,
        }
    }

    /// Takes what the ring has, and commits it. Returns how many records there were.
    fn turn(&mut self, now: Now) -> Result<usize, LogError> {
        let Some(writer) = &mut self.writer else {
            return Ok(0);
        };
        // What could not be written before comes first.
        writer.commit()?;
        let (mut failed, mut seen) = (None, 0);
        let read = self.ring.read(TURN, |record| {
            let taken = match record {
                Record::Events(events) => {
                    seen += events.len() as u64;
                    writer.events(events)
                }
                Record::Instrument(bytes) => writer.instrument(bytes),
                Record::Restart(time) => writer.restart(time),
            };
            if let Err(error) = taken {
                failed = Some(error);
            }
        });
        if let Some(error) = failed {
            // The numbers say which events are lost, but instruments have none.
            self.ring.ask();
            return Err(error);
        }
        self.seen += seen;
        if read > 0 {
            writer.commit()?;
            self.ring.release();
            self.counts.commits.increment(1);
            self.keeper.wake();
        }
        if let Some(rolls) = &mut self.rolls {
            self.is_roll_due |= rolls.is_due(now.utc.nanos());
        }
        if self.is_roll_due {
            writer.roll()?;
            self.is_roll_due = false;
            self.keeper.wake();
        }
        Ok(read)
    }

    fn count(&self) {
        let Some(writer) = &self.writer else {
            return;
        };
        let numbers = writer.next().saturating_sub(self.first);
        self.counts.events.set(self.seen.min(numbers));
        self.counts.lost.set(numbers.saturating_sub(self.seen));
    }

    fn report(&mut self, now: Now, what: String) {
        if self.limit.lets(now.utc.nanos()) {
            let folder = self.folder.clone();
            self.notices.send(Notice::History { folder, what });
        }
    }
}

impl Agent for LogAgent {
    fn name(&self) -> &str {
        "log"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.retry.is_some_and(|at| now.mono < at) {
            return Ok(0);
        }
        let had_failed = self.retry.take().is_some();
        match self.turn(now) {
            Ok(read) => {
                if had_failed {
                    self.limit = Limit::default();
                    self.report(now, "is written again".to_owned());
                }
                self.count();
                Ok(read)
            }
            Err(error) => {
                self.counts.failures.increment(1);
                self.retry = Some(now.mono + PATIENCE);
                self.report(now, format!("cannot be written, and tries again: {error}"));
                Ok(0)
            }
        }
    }

    fn on_close(&mut self, now: Now) {
        let outcome = loop {
            match self.turn(now) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        self.count();
        let outcome = outcome.and_then(|()| match self.writer.take() {
            Some(writer) => writer.close(),
            None => Ok(()),
        });
        match outcome {
            // Nothing is left to be rescued; a file that stays holds what the log has.
            Ok(()) => drop(std::fs::remove_file(&self.ring_file)),
            Err(error) => {
                self.limit = Limit::default();
                self.report(now, format!("could not be ended: {error}"));
            }
        }
    }

    fn waker(&self) -> Option<&Waker> {
        Some(self.ring.waker())
    }

    fn next_timer(&self) -> Option<u64> {
        self.retry
    }
}
