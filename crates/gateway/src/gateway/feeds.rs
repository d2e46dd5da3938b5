//! The feeds of a gateway: its sources, edges, files and replay.

use super::{Builder, Events};
use crate::edges::edge_feed::{EdgeFeed, EdgeStart};
use crate::edges::publish::{self, EdgesPublisher};
use crate::edges::relay::Relay;
use crate::fanout::rings::Rings;
use crate::feed::config::Feed;
use crate::feed::publish::{SampleRing, TopicsPublisher};
use crate::feed::session::{self, SessionMarket};
use crate::feed::{self, FeedError, FeedSource, Feeds, Outlets, Watermarks};
use crate::gateway::plan::Plan;
use crate::gateway::start_error::StartError;
use crate::history::KnownInstruments;
use crate::market::error::MarketError;
use crate::market::{Held, MarketFeed};
use crate::replay::{DbnPlace, FileMarket, ReplaySource, live};
use fanfare_engine::agent::Agent;
use fanfare_engine::poll::Waker;
use fanfare_fast::Program;
use fanfare_market::Instruments;
use fanfare_market::book::BookConfig;
use std::sync::Arc;

impl Builder<'_> {
    /// Opens the feeds. Agents that publish on topics of the feeds' own are added to `alone`.
    pub(super) fn feeds(
        &self,
        rings: &mut Rings,
        alone: &mut Vec<Box<dyn Agent>>,
        events: Option<Events>,
        plan: Plan<'_>,
    ) -> Result<Option<Feeds>, StartError> {
        let feeds = &self.config.feeds;
        if feeds.is_empty() && !self.config.has_market() {
            return Ok(None);
        }
        let books = events.as_ref().map(|events| events.books.clone());
        let books = books.unwrap_or_default();
        let (ring, waker, known, replay) = match events {
            Some(events) => (Some(events.ring), events.waker, events.known, events.replay),
            None => (None, Waker::detached()?, KnownInstruments::default(), None),
        };
        let mut sources = Vec::new();
        for (feed, &place) in feeds.iter().zip(&self.numbering.feeds) {
            let program = Arc::new(feed::templates(feed, plan.notices)?);
            let market = match place {
                Some(place) => {
                    let (relay, publisher) = self.relay(feed, &waker, plan)?;
                    alone.extend(publisher.map(|agent| Box::new(agent) as Box<dyn Agent>));
                    let held = Held {
                        waker: &waker,
                        mappings: &self.mappings,
                        known: &known,
                    };
                    let market = MarketFeed::open(feed, &program, place, held, relay, plan);
                    Some(market.map_err(FeedError::from)?)
                }
                None => None,
            };
            let source_rings = self.source_rings(rings, self.config.dds.publish.is_some())?;
            let (to_topics, publisher) = self.feed_topics(feed, &program, plan)?;
            alone.extend(publisher.map(|agent| Box::new(agent) as Box<dyn Agent>));
            let outlets = Outlets {
                source_rings,
                versions: rings.versions.clone(),
                to_topics,
                ring_bytes: self.config.ring_bytes,
            };
            let mut source = FeedSource::open(feed, program, outlets, market, plan)?;
            if let Some(log) = rings.inlets() {
                source.log_to(log, place.map_or(0, |place| place.source));
            }
            sources.push(source);
        }
        let edges = self.edges(&known, &waker, plan)?;
        let replay = match self.config.replay.as_ref().zip(replay) {
            Some((settings, part)) => Some(ReplaySource::open(settings, part, &waker, plan)?),
            None => None,
        };
        // The log keeps them for a replay of it by a gateway with DBN. A log that is replayed has
        // watermarks of its own.
        let has_readers = self.config.dbn.is_some() || self.config.history.is_some();
        let has_watermarks = has_readers && self.config.replay.is_none();
        Ok(Some(Feeds {
            watermarks: has_watermarks.then(|| Watermarks::new(!edges.is_empty())),
            feeds: sources,
            edges,
            files: self.files(&books, &waker, plan)?,
            sessions: self.sessions(&known, &waker, alone, plan)?,
            replay,
            events: ring,
            waker,
        }))
    }

    /// Opens the feeds that other gateways receive. Instruments in a log keep their numbers.
    fn edges(
        &self,
        known: &KnownInstruments,
        waker: &Waker,
        plan: Plan<'_>,
    ) -> Result<Vec<EdgeFeed>, StartError> {
        let mut edges = Vec::new();
        for (edge, place) in self.config.edges.iter().zip(&self.numbering.edges) {
            let config = edge.follower(place.source).map_err(MarketError::from);
            let config = config.map_err(FeedError::from)?;
            let mut table = Instruments::new(edge.book.most_instruments as usize);
            known.define(&edge.channel, &mut table);
            let start = EdgeStart {
                config,
                table,
                base: place.base,
            };
            edges.push(EdgeFeed::open(edge, start, waker, plan)?);
        }
        Ok(edges)
    }

    /// Opens the feeds that are FIX sessions. Their agents are added to `alone`.
    fn sessions(
        &self,
        known: &KnownInstruments,
        waker: &Waker,
        alone: &mut Vec<Box<dyn Agent>>,
        plan: Plan<'_>,
    ) -> Result<Vec<SessionMarket>, StartError> {
        let mut sessions = Vec::new();
        for (feed, place) in self.config.sessions.iter().zip(&self.numbering.sessions) {
            let ring = (self.config.ring_bytes, waker);
            let (market, agent) = session::open(feed, *place, known, ring, plan)?;
            alone.push(agent);
            sessions.push(market);
        }
        Ok(sessions)
    }

    /// Opens the feeds that are files, or gateways of DBN's live protocol.
    fn files(
        &self,
        books: &[BookConfig],
        waker: &Waker,
        plan: Plan<'_>,
    ) -> Result<Vec<FileMarket>, StartError> {
        let mut files = Vec::new();
        for (file, place) in self.config.files.iter().zip(&self.numbering.files) {
            let place = DbnPlace::new(place.source, place.base, file.source.most_instruments);
            files.push(FileMarket::open(file, place, books, waker, plan)?);
        }
        for (feed, place) in self.config.live.iter().zip(&self.numbering.live) {
            let place = DbnPlace::new(place.source, place.base, feed.source.most_instruments);
            files.push(live::open(feed, place, books, waker, plan)?);
        }
        Ok(files)
    }

    /// Opens the relay of a feed's market events to edges, and the agent that publishes them.
    fn relay(
        &self,
        feed: &Feed,
        waker: &Waker,
        plan: Plan<'_>,
    ) -> Result<(Option<Relay>, Option<EdgesPublisher>), StartError> {
        let Some(edges) = &feed.edges else {
            return Ok((None, None));
        };
        let size = self.config.ring_bytes;
        let (relay, publisher) = publish::open(feed, edges, size, waker, plan)?;
        Ok((Some(relay), Some(publisher)))
    }

    /// Opens the ring of a feed's samples, and the agent that publishes them on topics of their
    /// own.
    fn feed_topics(
        &self,
        feed: &Feed,
        program: &Arc<Program>,
        plan: Plan<'_>,
    ) -> Result<(Option<SampleRing>, Option<TopicsPublisher>), StartError> {
        let Some(topics) = &feed.publish else {
            return Ok((None, None));
        };
        let waker = Waker::detached()?;
        let mapping = Arc::new(feed::mapping(topics, Arc::clone(program))?);
        let size = self.config.ring_bytes;
        let ends = SampleRing::new(topics, &mapping, size, waker.clone());
        let (writer, reader) = ends.ok_or(StartError::Ring)?;
        let channel = feed.channel();
        let publisher = TopicsPublisher::open(&channel, topics, mapping, reader, waker, plan)?;
        Ok((Some(writer), Some(publisher)))
    }
}
