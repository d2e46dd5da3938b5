//! The rings between sources and outlets.

use crate::config::Config;
use crate::fanout::versions::Versions;
use crate::gateway::start_error::StartError;
use crate::history::{LogThreads, RawInlets, RawLog, Rolling};
use crate::notice::Notices;
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy};
use fanfare_history::FeedInfo;

/// The rings, while their ends are handed out.
pub(crate) struct Rings {
    /// The rings to the workers, one for each source.
    pub(crate) sources: Vec<Broadcast>,
    pub(crate) wakers: Vec<Waker>,
    /// The reading ends of the rings to DDS.
    pub(crate) to_dds: Vec<BroadcastReader>,
    /// The versions of the consumers.
    pub(crate) versions: Versions,
    /// The raw log, if it is configured.
    raw: Option<RawLog>,
}

impl Rings {
    /// Opens the rings for the producers, DDS and the feeds, and the raw log, if it is configured.
    /// `markets` are the feeds that are markets.
    pub(crate) fn open(
        config: &Config,
        markets: &[FeedInfo],
        counters: &Counters,
    ) -> Result<Self, StartError> {
        let ring = || Broadcast::new(config.ring_bytes, config.workers, Policy::Gate);
        let sources = 1 + usize::from(config.dds.subscribe.is_some()) + config.feeds.len();
        Ok(Self {
            sources: (0..sources).map(|_| ring()).collect(),
            wakers: Vec::new(),
            to_dds: Vec::new(),
            versions: Versions::default(),
            raw: RawLog::open(config, markets, counters)?,
        })
    }

    /// Returns the factory of the raw log's producers.
    pub(crate) fn inlets(&mut self) -> Option<&mut RawInlets> {
        self.raw.as_mut().map(|raw| &mut raw.inlets)
    }

    /// Returns the agents of the raw log, once all of its producers were created.
    pub(crate) fn start_raw(
        &mut self,
        notices: &Notices,
        rolling: &Rolling,
    ) -> Result<LogThreads, StartError> {
        match self.raw.take() {
            Some(raw) => raw.start(notices, rolling.order()),
            None => Ok(Vec::new()),
        }
    }
}
