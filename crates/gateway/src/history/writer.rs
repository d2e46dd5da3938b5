//! The writer of the ring to the log, on a thread of its own.

use super::config::History;
use super::patience::{Patience, drain};
use super::rolling::RollOrder;
use super::rolls::Roll;
use crate::counts::HistoryCounts;
use crate::market::ring::{Record, RecordReader};
use crate::notice::Notices;
use crate::stages::OutletStages;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fix::session::Now;
use fanfare_history::{Claim, LogError, Writer};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The components of the agent.
pub(super) struct LogParts {
    pub(super) writer: Writer,
    pub(super) claim: Claim,
    pub(super) ring: RecordReader,
    /// The number of the next event of the ring.
    pub(super) number: Arc<AtomicU64>,
    pub(super) order: RollOrder,
    pub(super) notices: Notices,
    pub(super) counts: HistoryCounts,
    pub(super) stages: Option<OutletStages>,
    /// Held until the log is closed.
    pub(super) open: Arc<()>,
}

/// The most records of one turn, which are committed together.
const TURN: usize = 512;

/// The agent that reads the ring and writes the log.
pub(crate) struct LogAgent {
    ring: RecordReader,
    /// The writer, or `None` once it was closed.
    writer: Option<Writer>,
    /// The claimed numbers, or `None` once the log was closed.
    claim: Option<Claim>,
    /// The number of the next event of the ring, which outlets may have sent.
    number: Arc<AtomicU64>,
    roll: Roll,
    /// The file of the ring.
    ring_file: PathBuf,
    patience: Patience,
    /// The number of the first event that is counted.
    first: u64,
    /// The number of events appended so far.
    seen: u64,
    counts: HistoryCounts,
    stages: Option<OutletStages>,
    /// Held until the log is closed.
    open: Option<Arc<()>>,
}

impl LogAgent {
    pub(super) fn new(history: &History, parts: LogParts) -> Self {
        Self {
            ring: parts.ring,
            number: parts.number,
            roll: Roll::new(history.calendar(), parts.order),
            ring_file: history.ring_file(),
            patience: Patience::new(&history.folder, parts.notices),
            first: parts.writer.next(),
            seen: 0,
            writer: Some(parts.writer),
            claim: Some(parts.claim),
            counts: parts.counts,
            stages: parts.stages,
            open: Some(parts.open),
        }
    }

    /// Appends the records of the ring, and commits them. Returns how many records there were.
    fn turn(&mut self, now: Now) -> Result<usize, LogError> {
        let Some(writer) = &mut self.writer else {
            return Ok(0);
        };
        // While the disk is full, the numbers of the ring go on.
        let next = self.number.load(Ordering::Relaxed).max(writer.next());
        let claim = self.claim.as_mut();
        let claimed = claim.map_or(Ok(()), |claim| claim.extend(next));
        // Records that could not be written before come first.
        writer.commit()?;
        let (mut failed, mut seen) = (None, 0);
        let stages = &mut self.stages;
        let read = self.ring.read(TURN, |record, continues| {
            if let (Record::Events(_, Some(mark)), Some(stages)) = (&record, stages.as_mut()) {
                stages.take(*mark, now.mono);
            }
            match append(writer, record, continues) {
                Ok(events) => seen += events as u64,
                Err(error) => failed = Some(error),
            }
        });
        self.seen += seen;
        if let Some(error) = failed {
            // The numbers show which events are lost. Instruments have no numbers, so all are
            // requested again.
            self.ring.ask();
            return Err(error);
        }
        if read > 0 {
            writer.commit()?;
            self.ring.release();
            self.counts.commits.increment(1);
        }
        claimed?;
        self.roll.turn(now, writer)?;
        Ok(read)
    }

    fn count(&self) {
        let Some(writer) = &self.writer else {
            return;
        };
        let numbers = writer.next().saturating_sub(self.first);
        self.counts.events.set(self.seen.min(numbers));
        self.counts.lost.set(numbers.saturating_sub(self.seen));
        self.counts.bytes.set(writer.written());
    }
}

/// Appends a record of the ring to the log. Returns the number of its events.
pub(super) fn append(
    writer: &mut Writer,
    record: Record<'_>,
    continues: bool,
) -> Result<usize, LogError> {
    match record {
        Record::Events(events, _) => {
            writer.part(events, continues)?;
            return Ok(events.len());
        }
        Record::Instrument(bytes) => writer.instrument(bytes)?,
        Record::Restart(time) => writer.restart(time)?,
        Record::Watermark(time) => writer.watermark(time),
    }
    Ok(0)
}

impl Agent for LogAgent {
    fn name(&self) -> &str {
        "log"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.patience.waits(now) {
            return Ok(0);
        }
        let outcome = self.turn(now);
        if let Some(stages) = &mut self.stages {
            stages.end(outcome.is_ok());
        }
        self.count();
        Ok(self.patience.take(now, outcome, &self.counts.failures))
    }

    fn on_close(&mut self, now: Now) {
        let outcome = drain(|| self.turn(now));
        self.count();
        let outcome = outcome.and_then(|()| self.writer.take().map_or(Ok(()), Writer::close));
        // The claim first: a claim without a ring is that of a machine that has crashed.
        let outcome = outcome.and_then(|()| self.claim.take().map_or(Ok(()), Claim::end));
        match outcome {
            // Nothing is left to recover, and a file that remains has only events of the log.
            Ok(()) => drop(std::fs::remove_file(&self.ring_file)),
            Err(error) => self.patience.end(&error),
        }
        self.open = None;
    }
}
