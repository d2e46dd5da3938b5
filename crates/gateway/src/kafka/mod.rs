//! Kafka as an outlet: market events from the log to a topic, exactly once.
//!
//! A thread for each topic reads the log, so it holds up no other thread and may lag by as much as
//! the disk holds. It writes in transactions, whose messages have the numbers of their events, so
//! that the topic itself shows where to continue after any restart.

pub(crate) mod config;
#[cfg(any(test, feature = "kafka"))]
mod form;
mod options;
#[cfg(feature = "kafka")]
pub(crate) mod producer;
#[cfg(feature = "kafka")]
mod read_back;
#[cfg(any(test, feature = "kafka"))]
pub(crate) mod sink;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "kafka"))]
#[cfg_attr(
    not(feature = "kafka"),
    allow(dead_code, reason = "a broker would read it")
)]
mod topic;

use crate::config::Config;
use crate::notice::Notices;
use fanfare_engine::agent::Agent;
use fanfare_engine::counters::Counters;
use fanfare_market::book::BookConfig;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};

/// The log that is being written, as a reader sees it.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(any(test, feature = "kafka")),
    allow(dead_code, reason = "nobody reads it")
)]
pub(crate) struct LogEnd {
    pub(crate) folder: PathBuf,
    /// The number that tells it from others, except copies of its folder.
    pub(crate) id: u64,
    /// The number after the last event.
    pub(crate) written: Arc<AtomicU64>,
    /// Alive until the log is closed.
    pub(crate) writer: Weak<()>,
}

/// Builds the agents of all topics.
#[cfg(feature = "kafka")]
pub(crate) fn sinks(
    config: &Config,
    log: &LogEnd,
    books: &[BookConfig],
    counters: &Counters,
    notices: &Notices,
) -> Vec<Box<dyn Agent>> {
    let sink = |own: &config::Kafka| {
        let source = sink::Source {
            log: log.clone(),
            books: books.to_vec(),
            notices: notices.clone(),
        };
        let counts = crate::counts::KafkaCounts::new(counters, &own.topic);
        let topic = producer::KafkaTopic::new(own.clone(), log.id);
        Box::new(sink::KafkaSink::new(own.clone(), source, topic, counts)) as Box<dyn Agent>
    };
    config.kafka.iter().map(sink).collect()
}

/// Returns no agents, because a configuration with a topic was refused.
#[cfg(not(feature = "kafka"))]
pub(crate) fn sinks(
    _: &Config,
    _: &LogEnd,
    _: &[BookConfig],
    _: &Counters,
    _: &Notices,
) -> Vec<Box<dyn Agent>> {
    Vec::new()
}
