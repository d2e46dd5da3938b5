//! The writer of the ring to the log, on a thread of its own.

use super::config::History;
use super::missing::Missing;
use super::patience::{Patience, drain};
use super::rolling::RollOrder;
use super::rolls::Roll;
use crate::counts::HistoryCounts;
use crate::market::ring::{self, Record, RecordReader};
use crate::notice::{Limit, Notices};
use crate::stages::OutletStages;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::ring::RingLock;
use fanfare_fix::session::Now;
use fanfare_history::{Claim, LogError, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The components of the agent.
pub(super) struct LogParts {
    pub(super) writer: Writer,
    /// The file of the ring, locked until the log is closed.
    pub(super) ring_file: RingLock,
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

/// The most bytes of the ring that further turns without an event keep for a rescue, although the
/// log has read them, because a watermark in front of them waits for its event. The smallest ring
/// has 16 times as many, which the log may be behind.
const KEPT: u64 = 1 << 14;

/// The most events of one record.
const MOST: u64 = ring::MOST as u64;

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
    /// The file of the ring, or `None` once the log was closed.
    ring_file: Option<RingLock>,
    patience: Patience,
    /// The number of the first event that is counted.
    first: u64,
    /// The number of events appended so far, and of those that are written.
    seen: u64,
    stored: u64,
    /// The position of the ring up to which it is released.
    released: u64,
    /// Whether events are missing because the log was behind, and not in a log that is replayed.
    is_behind: bool,
    /// The events that the log lacks, until a notice names them.
    missing: Missing,
    limit: Limit,
    counts: HistoryCounts,
    stages: Option<OutletStages>,
    /// Held until the log is closed.
    open: Option<Arc<()>>,
}

impl LogAgent {
    pub(super) fn new(history: &History, parts: LogParts) -> Self {
        Self {
            released: parts.ring.position(),
            ring: parts.ring,
            number: parts.number,
            roll: Roll::new(history.calendar(), parts.order),
            ring_file: Some(parts.ring_file),
            patience: Patience::new(&history.folder, parts.notices),
            first: parts.writer.next(),
            seen: 0,
            stored: 0,
            is_behind: false,
            missing: Missing::default(),
            limit: Limit::default(),
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
        // While the disk is full, the numbers of the ring go on. All events below this one are in
        // the ring, or were.
        let number = self.number.load(Ordering::Acquire);
        let claim = self.claim.as_mut();
        let next = number.max(writer.next());
        let claimed = claim.map_or(Ok(()), |claim| claim.extend(next));
        // Records that could not be written before come first.
        writer.commit()?;
        self.stored = self.seen;
        let start = self.ring.position();
        let (mut failed, mut seen) = (None, 0);
        let (mut is_new_run, mut is_marked) = (false, false);
        let (stages, missing) = (&mut self.stages, &mut self.missing);
        let mut read = self.ring.read(TURN, |record, continues| {
            if let (Record::Events(_, Some(mark)), Some(stages)) = (&record, stages.as_mut()) {
                stages.take(*mark, now.mono);
            }
            is_new_run |= matches!(record, Record::Restart(_));
            is_marked |= matches!(record, Record::Watermark(_));
            match append(writer, record, continues, missing) {
                Ok(events) => seen += events as u64,
                Err(error) => failed = Some(error),
            }
        });
        self.seen += seen;
        let is_overtaken = self.ring.take_overtaken();
        self.is_behind |= is_overtaken;
        if let Some(error) = failed {
            // The numbers show which events are lost. Instruments have no numbers, so all are
            // requested again.
            self.ring.ask();
            self.is_behind = true;
            return Err(error);
        }
        if self.ring.is_at_end() && number > writer.next() {
            // No event behind them shows that they are missing, and none may follow.
            let first = writer.next();
            writer.lost(first, number - 1)?;
            self.missing.add(first, number - 1);
            read += 1;
        }
        if read > 0 {
            writer.commit()?;
            self.stored = self.seen;
            self.counts.commits.increment(1);
            let position = self.ring.position();
            // A watermark takes the place of those of earlier turns.
            let kept = if is_marked { start } else { self.released };
            // A restart that is rescued again is one more.
            let is_kept = writer.has_watermark()
                && !(is_new_run || is_overtaken)
                && (is_marked || position - kept <= KEPT);
            self.released = if is_kept { kept } else { position };
            self.ring.release(self.released);
        }
        claimed?;
        self.roll.turn(now, writer)?;
        Ok(read)
    }

    /// Reports the events that the log has gone on behind, or `all` of them, however many notices
    /// there were of late.
    fn report_missing(&mut self, now: Now, all: bool) {
        if self.missing.is_none() || !(all || self.limit.lets(now.utc.nanos())) {
            return;
        }
        let missing = std::mem::take(&mut self.missing);
        if std::mem::take(&mut self.is_behind) {
            self.patience.lacks(missing);
        }
    }

    fn count(&self) {
        let Some(writer) = &self.writer else {
            return;
        };
        // The log goes on with the last record of the ring.
        let lost = match self.ring.is_overtaken() {
            true => self.number.load(Ordering::Relaxed).saturating_sub(MOST),
            false => 0,
        };
        let numbers = lost.max(writer.next()).saturating_sub(self.first);
        self.counts.events.set(self.stored.min(numbers));
        self.counts.lost.set(numbers.saturating_sub(self.seen));
        self.counts.bytes.set(writer.written());
    }

    /// Counts what the log lacks that cannot be closed. Returns how many events the next start
    /// finds in the ring's file.
    fn count_left(&mut self) -> u64 {
        let is_whole = !self.ring.is_overwritten(self.released);
        let (mut rest, mut last) = (0, 0);
        // Nothing is released: the file keeps all of it.
        loop {
            let mut len = 0;
            let read = self.ring.read(1, |record, _| {
                if let Record::Events(events, _) = record {
                    len = events.len() as u64;
                    rest += len;
                }
            });
            if read == 0 {
                break;
            }
            last = len;
        }
        let numbers = self.number.load(Ordering::Acquire);
        let numbers = numbers.saturating_sub(self.first);
        let left = match is_whole {
            true => self.seen - self.stored + rest,
            // The last record alone is whole.
            false => last,
        };
        self.counts.events.set(self.stored);
        let lost = numbers.saturating_sub(self.stored + left);
        self.counts.lost.set(lost);
        left
    }
}

/// Appends a record of the ring to the log, and adds the events to `missing` that are missing in
/// front of its own. Returns the number of its events.
pub(super) fn append(
    writer: &mut Writer,
    record: Record<'_>,
    continues: bool,
    missing: &mut Missing,
) -> Result<usize, LogError> {
    match record {
        Record::Events(events, _) => {
            let next = writer.next();
            writer.part(events, continues)?;
            let first = events.first().map_or(0, |event| ring::number(event));
            if first > next {
                missing.add(next, first - 1);
            }
            return Ok(events.len());
        }
        Record::Instrument(bytes) => writer.instrument(bytes)?,
        Record::Restart(time) => writer.restart(time)?,
        Record::Watermark(mark) => writer.watermark(mark),
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
        let is_written = outcome.is_ok();
        let read = self.patience.take(now, outcome, &self.counts.failures);
        if is_written {
            self.report_missing(now, false);
        }
        Ok(read)
    }

    fn on_close(&mut self, now: Now) {
        let outcome = drain(|| self.turn(now));
        self.count();
        // After an error, too: the ring does not have these events any more.
        self.report_missing(now, true);
        let outcome = outcome.and_then(|()| self.writer.take().map_or(Ok(()), Writer::close));
        // The claim first: a claim without a ring is that of a machine that has crashed.
        let outcome = outcome.and_then(|()| self.claim.take().map_or(Ok(()), Claim::end));
        let ring_file = self.ring_file.take();
        match outcome {
            Ok(()) => {
                // Nothing is left to recover, and a file that remains has only events of the log.
                drop(ring_file.map(|file| std::fs::remove_file(file.path())));
            }
            Err(error) => {
                let left = self.count_left();
                self.patience.end(&error, left);
            }
        }
        self.open = None;
    }
}

#[cfg(test)]
mod tests;
