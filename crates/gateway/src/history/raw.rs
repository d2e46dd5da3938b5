//! The raw log: datagrams of the feeds' lines and messages of producers.
//!
//! Each receiving thread writes to a ring of its own, and never waits. One more thread writes the
//! rings' records to the log.

use super::config::History;
use super::inlet::{LACK, RawInlets};
use super::keeper::KeeperAgent;
use super::patience::{Patience, drain};
use super::rolling::RollOrder;
use super::rolls::Roll;
use super::{KEEPER_SLEEP, LogThreads, WRITER_SLEEP};
use crate::config::Config;
use crate::counts::RawCounts;
use crate::gateway::start_error::StartError;
use crate::notice::Notices;
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::clock;
use fanfare_engine::counters::Counters;
use fanfare_engine::ring::Consumer;
use fanfare_fix::session::Now;
use fanfare_history::{FeedInfo, LogError, Raw, Writer};

/// The most records of one ring that are written in a turn.
const TURN: usize = 512;

/// The raw log, before its threads start.
pub(crate) struct RawLog {
    settings: History,
    writer: Writer,
    pub(crate) inlets: RawInlets,
    counters: Counters,
}

impl RawLog {
    /// Opens the log, if it is configured. `feeds` are those that are markets.
    pub(crate) fn open(
        config: &Config,
        feeds: &[FeedInfo],
        counters: &Counters,
    ) -> Result<Option<Self>, StartError> {
        let raw = config.history.as_ref().and_then(History::of_raw);
        let Some((settings, ring_bytes)) = raw else {
            return Ok(None);
        };
        let now = clock::utc();
        let opened = Writer::open(&settings.folder, settings.writer(), feeds.to_vec(), now);
        let (writer, _) = opened.map_err(StartError::History)?;
        Ok(Some(Self {
            settings,
            writer,
            inlets: RawInlets::new(ring_bytes, counters.clone()),
            counters: counters.clone(),
        }))
    }

    /// Returns the agents that write and keep the log.
    pub(crate) fn start(
        self,
        notices: &Notices,
        order: RollOrder,
    ) -> Result<LogThreads, StartError> {
        let keeper = KeeperAgent::open(&self.settings, None, notices.clone());
        let keeper = keeper.map_err(StartError::History)?;
        let counts = RawCounts::new(&self.counters, "");
        let writer = RawAgent {
            rings: self.inlets.rings,
            roll: Roll::new(self.settings.calendar(), order),
            writer: Some(self.writer),
            patience: Patience::new(&self.settings.folder, notices.clone()),
            lack: 0,
            counts,
        };
        Ok(vec![
            (Box::new(writer), WRITER_SLEEP),
            (Box::new(keeper), KEEPER_SLEEP),
        ])
    }
}

/// The agent that reads the rings and writes the log.
struct RawAgent {
    rings: Vec<Consumer>,
    roll: Roll,
    /// The writer, or `None` once it was closed.
    writer: Option<Writer>,
    patience: Patience,
    /// The dropped records that the log does not show yet.
    lack: u64,
    counts: RawCounts,
}

impl RawAgent {
    /// Appends the records of the rings, and commits them. Returns how many records there were.
    fn turn(&mut self, now: Now) -> Result<usize, LogError> {
        let Some(writer) = &mut self.writer else {
            return Ok(0);
        };
        // Records that could not be written before come first.
        writer.commit()?;
        let (mut failed, mut read, mut written) = (None, 0, 0);
        for ring in &mut self.rings {
            read += ring.read(TURN, |record| {
                let Some((lack, record)) = record.bytes.split_first_chunk::<LACK>() else {
                    return;
                };
                self.lack += u64::from_le_bytes(*lack);
                match append(writer, &mut self.lack, record) {
                    Ok(is_written) => written += u64::from(is_written),
                    Err(error) => {
                        self.lack += 1;
                        self.counts.lost.increment(1);
                        failed = Some(error);
                    }
                }
            });
        }
        self.counts.pieces.increment(written);
        if let Some(error) = failed {
            return Err(error);
        }
        if read > 0 {
            writer.commit()?;
        }
        self.roll.turn(now, writer)?;
        Ok(read)
    }
}

impl Agent for RawAgent {
    fn name(&self) -> &str {
        "log-raw"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if self.patience.waits(now) {
            return Ok(0);
        }
        let outcome = self.turn(now);
        Ok(self.patience.take(now, outcome, &self.counts.failures))
    }

    fn on_close(&mut self, now: Now) {
        let outcome = drain(|| self.turn(now));
        let outcome = outcome.and_then(|()| self.writer.take().map_or(Ok(()), Writer::close));
        if let Err(error) = outcome {
            self.patience.end(&error, 0);
        }
    }
}

/// Appends a record after the count of dropped ones. Returns false if it is not a record.
fn append(writer: &mut Writer, lack: &mut u64, record: &[u8]) -> Result<bool, LogError> {
    if *lack > 0 {
        let first = writer.next();
        writer.lost(first, first + *lack - 1)?;
        *lack = 0;
    }
    match Raw::read(record) {
        Some(raw) => writer.raw(&raw).map(|()| true),
        None => Ok(false),
    }
}
