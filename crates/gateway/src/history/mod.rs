//! The log of market events: one thread writes the ring to segments on disk, and a second one makes
//! checkpoints, compacts and removes segments.
//!
//! The writing thread reads the ring as every other outlet does. When it is a whole ring behind,
//! the configuration decides whether the log loses events, and records which ones, or the feeds
//! wait for some seconds first.
//!
//! The ring is in a file, in memory that outlives the process. A start after a kill finds there the
//! events that outlets may have sent and the log had not written.

pub(crate) mod config;
mod inlet;
mod keeper;
mod known;
mod patience;
mod raw;
mod rolling;
mod rolls;
mod writer;

use crate::config::Config;
use crate::counts::{HistoryCounts, KeeperCounts};
use crate::gateway::start_error::StartError;
use crate::kafka::{self, LogEnd};
use crate::market::ring::{self, EventRing};
use crate::notice::{Notice, Notices};
use crate::stages::{End, StagePlan};
use config::{History, WhenBehind};
use fanfare_engine::agent::Agent;
use fanfare_engine::clock;
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Rescued, is_replaceable};
use fanfare_engine::stop::Stop;
use fanfare_history::{Claim, FeedInfo, LogError, Opened, Writer, WriterConfig};
use fanfare_market::book::BookConfig;
pub(crate) use inlet::{RawInlet, RawInlets};
use keeper::KeeperAgent;
pub(crate) use known::KnownInstruments;
pub(crate) use raw::RawLog;
pub(crate) use rolling::{RollOrder, Rolling};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use writer::{LogAgent, LogParts};

/// The sleep of the threads of a log when idle. Events that arrive in the meantime are in the
/// rings, which hold more than any feed delivers in that time.
const WRITER_SLEEP: Duration = Duration::from_millis(1);
const KEEPER_SLEEP: Duration = Duration::from_millis(10);

/// The agents that have threads of their own, and the sleep of each when idle.
pub(crate) type LogThreads = Vec<(Box<dyn Agent>, Duration)>;

/// The parts of a gateway that its log uses.
pub(crate) struct LogPlan<'a> {
    pub(crate) config: &'a Config,
    /// The settings of the log, which are of `config`.
    pub(crate) history: &'a History,
    /// The books of the feeds that are markets.
    pub(crate) books: &'a [BookConfig],
    pub(crate) counters: &'a Counters,
    pub(crate) notices: &'a Notices,
    /// The requests to end a segment.
    pub(crate) order: RollOrder,
    /// The flag that ends the gateway. The feeds do not wait for the log once it is raised.
    pub(crate) stop: &'a Stop,
}

/// A log that was opened, before its threads start.
pub(crate) struct OpenLog {
    writer: Writer,
    pub(crate) opened: Opened,
    /// The instruments of the previous runs.
    known: KnownInstruments,
    /// What the log lacks, in the words of a notice.
    lacks: Vec<String>,
}

impl OpenLog {
    /// Returns its folder, and the number after its last event.
    pub(crate) fn place(&self) -> (PathBuf, Arc<AtomicU64>) {
        (self.writer.folder().to_owned(), self.writer.committed())
    }

    /// Subscribes to the ring. Returns the agents that write and keep the log and copy it to Kafka,
    /// and the instruments in the log.
    pub(crate) fn start(
        self,
        plan: LogPlan<'_>,
        ring: &mut EventRing,
    ) -> Result<(LogThreads, KnownInstruments), StartError> {
        let LogPlan {
            config,
            history,
            counters,
            notices,
            ..
        } = plan;
        // The thread is not woken, because that would cost the feeds' thread a system call.
        let records = ring.record_reader(Waker::detached()?);
        let records = records.ok_or(StartError::Ring)?;
        if history.when_behind == WhenBehind::Wait {
            ring.wait_for(self.writer.committed(), plan.stop.clone());
        }
        let counts = KeeperCounts::new(counters, "");
        let keeper = KeeperAgent::open(history, Some(counts), notices.clone());
        let keeper = keeper.map_err(StartError::History)?;
        let counts = HistoryCounts::new(counters, "");
        let stages = StagePlan::new(counters, config.stages).outlet("log", End::Log);
        for what in self.lacks {
            let folder = history.folder.display().to_string();
            notices.send(Notice::History { folder, what });
        }
        // After the ring's file: a claim without one is that of a machine that has crashed.
        let claim = Claim::make(&history.folder, self.writer.next());
        let claim = claim.map_err(StartError::History)?;
        let open = Arc::new(());
        let log = LogEnd {
            folder: history.folder.clone(),
            written: self.writer.committed(),
            writer: Arc::downgrade(&open),
        };
        let sinks = kafka::sinks(config, &log, plan.books, counters, notices);
        let parts = LogParts {
            writer: self.writer,
            claim,
            ring: records,
            number: ring.number(),
            order: plan.order,
            notices: notices.clone(),
            counts,
            stages,
            open,
        };
        let writer = LogAgent::new(history, parts);
        let mut threads: LogThreads = vec![
            (Box::new(writer), WRITER_SLEEP),
            (Box::new(keeper), KEEPER_SLEEP),
        ];
        threads.extend(sinks.into_iter().map(|sink| (sink, KEEPER_SLEEP)));
        Ok((threads, self.known))
    }
}

/// Opens the log, if configured, and appends the events that a kill has left in the ring. A new log
/// begins with the number `first`.
pub(crate) fn open(
    config: &Config,
    feeds: Vec<FeedInfo>,
    first: u64,
) -> Result<Option<OpenLog>, StartError> {
    let Some(history) = &config.history else {
        return Ok(None);
    };
    check_ring(history)?;
    let now = clock::utc();
    let settings = WriterConfig {
        first,
        ..history.writer()
    };
    let folder = &history.folder;
    let (mut known, mut lacks) = (KnownInstruments::default(), Vec::new());
    let mut is_killed = false;
    let opened = Writer::open_with(folder, settings, feeds, now, |writer| {
        let found = rescue(&history.ring_file(), writer)?;
        let left = Claim::left(folder)?;
        is_killed = found != Rescued::Nothing && left.as_ref().is_some_and(Claim::is_of_this_boot);
        if let Some(left) = left.filter(|_| !is_killed) {
            lacks.extend(pass_over(&left, writer)?);
        }
        known = KnownInstruments::read(folder)?;
        Ok(())
    });
    let (writer, opened) = opened.map_err(StartError::History)?;
    // What a kill left half-written is in the ring.
    if opened.torn > 0 && !is_killed {
        lacks.push(format!(
            "had {} bytes at its end that are no block: they were removed, and the events in them \
             are missing",
            opened.torn
        ));
    }
    Ok(Some(OpenLog {
        writer,
        opened,
        known,
        lacks,
    }))
}

/// Checks that the file of the ring, if the user has named one, holds nothing else.
fn check_ring(history: &History) -> Result<(), StartError> {
    let Some(path) = &history.ring else {
        return Ok(());
    };
    let outcome = is_replaceable(path).and_then(|is_replaceable| match is_replaceable {
        true => Ok(()),
        false => Err(io::Error::other("it holds something else, and is kept")),
    });
    outcome.map_err(|error| StartError::RingFile(path.clone(), error))
}

/// Appends the events that the log lacks from the ring of a killed process.
fn rescue(file: &Path, writer: &mut Writer) -> Result<Rescued, LogError> {
    let mut failed = None;
    let rescued = ring::rescue(file, |record, continues| {
        let taken = writer::append(writer, record, continues);
        failed = failed.take().or(taken.err());
    });
    let rescued = rescued.map_err(|error| LogError::Io {
        path: file.to_owned(),
        error,
    })?;
    failed.map_or_else(|| writer.commit(), Err)?;
    Ok(rescued)
}

/// Skips all numbers that clients may have seen, as the ring was lost with the machine. Returns
/// what the log lacks, if anything.
fn pass_over(left: &Claim, writer: &mut Writer) -> Result<Option<String>, LogError> {
    if left.below() <= writer.next() {
        return Ok(None);
    }
    let (first, last) = (writer.next(), left.below() - 1);
    writer.lost(first, last)?;
    Ok(Some(format!(
        "lacks its end, as the machine has crashed: events {first} to {last} are missing as far as \
         there were any, and numbers go on behind them"
    )))
}
