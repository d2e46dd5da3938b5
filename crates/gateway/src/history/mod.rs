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
mod missing;
mod patience;
mod raw;
mod rescue;
mod rolling;
mod rolls;
mod writer;

use crate::config::Config;
use crate::counts::{HistoryCounts, KeeperCounts};
use crate::gateway::start_error::StartError;
use crate::kafka::{self, LogEnd};
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use crate::stages::{End, StagePlan};
use config::{History, WhenBehind};
use fanfare_engine::agent::Agent;
use fanfare_engine::clock;
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{RingLock, is_replaceable};
use fanfare_engine::stop::Stop;
use fanfare_history::{Claim, FeedInfo, LogError, Opened, Writer, WriterConfig};
use fanfare_market::book::BookConfig;
pub(crate) use inlet::{RawInlet, RawInlets};
use keeper::KeeperAgent;
pub(crate) use known::KnownInstruments;
pub(crate) use raw::RawLog;
use rescue::{Found, check_owner, rescue};
pub(crate) use rolling::{RollOrder, Rolling};
use std::io;
use std::path::PathBuf;
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
    /// The file of the ring, which is this gateway's until the log is closed.
    pub(crate) ring_file: RingLock,
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
        ring.own(self.writer.id());
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
        ring.wait_at_end_for(self.writer.committed(), plan.stop.clone());
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
            id: self.writer.id(),
            written: self.writer.committed(),
            writer: Arc::downgrade(&open),
        };
        let sinks = kafka::sinks(config, &log, plan.books, counters, notices);
        let parts = LogParts {
            writer: self.writer,
            ring_file: self.ring_file,
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
    let (mut known, mut found) = (KnownInstruments::default(), Found::default());
    let mut ring_file = None;
    let opened = Writer::open_with(folder, settings, feeds, now, |writer| {
        let own = ring_file.insert(lock_ring(history)?);
        found = rescue(folder, own.path(), writer)?;
        known = KnownInstruments::read(folder)?;
        Ok(())
    });
    let (writer, opened) = opened.map_err(StartError::History)?;
    // A new log has nothing to be rescued.
    let ring_file = ring_file.map_or_else(|| lock_ring(history), Ok);
    let ring_file = ring_file.map_err(StartError::History)?;
    if history.ring.is_some() {
        // By default the name is that of the folder, whose former log is gone.
        check_owner(ring_file.path(), &writer).map_err(StartError::History)?;
    }
    let mut lacks: Vec<String> = found.lacks.into_iter().collect();
    // What a kill left half-written is in the ring.
    if opened.torn > 0 && !found.is_killed {
        lacks.push(format!(
            "had {} bytes at its end that are no block: they were removed, and the events in them \
             are missing",
            opened.torn
        ));
    }
    Ok(Some(OpenLog {
        writer,
        ring_file,
        opened,
        known,
        lacks,
    }))
}

/// Locks the file of the ring, which another gateway must not have.
fn lock_ring(history: &History) -> Result<RingLock, LogError> {
    let path = history.ring_file();
    RingLock::take(&path).map_err(|error| LogError::Io { path, error })
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

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_peers::Scratch;

    #[test]
    fn a_log_does_not_begin_with_a_named_ring_of_another_one() {
        let folder = Scratch::new("history-rings");
        let named = |log: &str| {
            let (log, ring) = (folder.join(log), folder.join("ring"));
            let text = format!("folder = {log:?}\nring = {ring:?}");
            let history = Some(toml::from_str(&text).unwrap());
            let config = Config {
                history,
                ..Config::default()
            };
            open(&config, Vec::new(), 1)
        };
        let mut log = named("one").unwrap().unwrap();
        let waker = Waker::detached().unwrap();
        let ring = EventRing::in_file(&mut log.ring_file, 1, 1, waker, 1).unwrap();
        ring.own(log.writer.id());
        // A kill: the file stays.
        drop((ring, log));
        // At the second attempt, the other log is there.
        for _ in 0..2 {
            let Err(StartError::History(why)) = named("two") else {
                panic!("it is taken");
            };
            let why = why.to_string();
            assert!(why.contains("events of another log than"), "{why}");
        }
        assert!(named("one").is_ok());
    }
}
