//! All feeds of a gateway, as one agent.

use super::session::SessionMarket;
use super::source::FeedSource;
use super::watermarks::Watermarks;
use crate::edges::edge_feed::EdgeFeed;
use crate::market::MarketFeed;
use crate::market::ring::EventRing;
use crate::replay::{FileMarket, ReplaySource};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::session::Now;
use std::os::fd::{AsFd, BorrowedFd};

/// All feeds, which share one ring of market events.
pub(crate) struct Feeds {
    /// The feeds that this gateway receives itself.
    pub(crate) feeds: Vec<FeedSource>,
    /// The feeds that other gateways receive.
    pub(crate) edges: Vec<EdgeFeed>,
    /// The feeds that are files, or gateways of DBN's live protocol.
    pub(crate) files: Vec<FileMarket>,
    /// The feeds that are FIX sessions.
    pub(crate) sessions: Vec<SessionMarket>,
    /// The log that replaces them.
    pub(crate) replay: Option<ReplaySource>,
    /// The ring of market events, if one of them is a market.
    pub(crate) events: Option<EventRing>,
    /// The waker of their thread, for edges, files, replays, reloads and readers of the ring.
    pub(crate) waker: Waker,
    /// The watermarks that are written to the ring, if its readers need them.
    pub(crate) watermarks: Option<Watermarks>,
}

impl Feeds {
    /// Hands the instruments that are known before the feeds bring anything to all readers of the
    /// ring. A file of DBN brings its own as it goes. Called before the readers' threads start.
    pub(crate) fn introduce(&mut self) {
        let Some(ring) = &mut self.events else {
            return;
        };
        for market in self.feeds.iter_mut().filter_map(FeedSource::market) {
            market.introduce(ring);
        }
        for edge in &mut self.edges {
            edge.introduce(ring);
        }
        for session in &mut self.sessions {
            session.introduce(ring);
        }
        if let Some(replay) = &mut self.replay {
            replay.introduce(ring);
        }
        ring.share_introduced();
    }

    /// Shows instruments again, as requested by a reader of market events that has lost some.
    fn show(&mut self, now: Now) -> usize {
        let Some(ring) = &mut self.events else {
            return 0;
        };
        let feeds = self.feeds.iter_mut().filter_map(FeedSource::market);
        let feeds = feeds.map(Market::Feed);
        let markets = feeds.chain(self.edges.iter_mut().map(Market::Edge));
        let markets = markets.chain(self.files.iter_mut().map(Market::File));
        let markets = markets.chain(self.sessions.iter_mut().map(Market::Session));
        let markets = markets.chain(self.replay.iter_mut().map(Market::Replay));
        if ring.is_asked() {
            let mut is_showing = false;
            markets.for_each(|mut market| {
                market.show_all();
                is_showing |= market.is_showing();
            });
            if !is_showing {
                ring.put_shown();
            }
            return 1;
        }
        let mut showing = markets.filter_map(|mut market| {
            let is_showing = market.is_showing();
            is_showing.then_some(market)
        });
        let Some(mut market) = showing.next() else {
            return 0;
        };
        if !ring.wants_more() {
            return 0;
        }
        let shown = market.show(now, ring);
        if !market.is_showing() && showing.next().is_none() {
            ring.put_shown();
        }
        shown
    }
}

/// A feed with market events.
enum Market<'a> {
    Feed(&'a mut MarketFeed),
    Edge(&'a mut EdgeFeed),
    File(&'a mut FileMarket),
    Session(&'a mut SessionMarket),
    Replay(&'a mut ReplaySource),
}

impl Market<'_> {
    fn show_all(&mut self) {
        match self {
            Self::Feed(feed) => feed.outlet().show_all(),
            Self::Edge(edge) => edge.outlet().show_all(),
            Self::File(file) => file.show_all(),
            Self::Session(session) => session.outlet().show_all(),
            Self::Replay(replay) => replay.show_all(),
        }
    }

    const fn is_showing(&mut self) -> bool {
        match self {
            Self::Feed(feed) => feed.outlet().is_showing(),
            Self::Edge(edge) => edge.outlet().is_showing(),
            Self::File(file) => file.is_showing(),
            Self::Session(session) => session.outlet().is_showing(),
            Self::Replay(replay) => replay.is_showing(),
        }
    }

    fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        match self {
            Self::Feed(feed) => feed.show(now, ring),
            Self::Edge(edge) => edge.show(now, ring),
            Self::File(file) => file.show(now, ring),
            Self::Session(session) => session.show(now, ring),
            Self::Replay(replay) => replay.show(ring),
        }
    }
}

impl Agent for Feeds {
    fn name(&self) -> &str {
        "feed"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = 0;
        for feed in &mut self.feeds {
            work += feed.turn(now, self.events.as_mut())?;
        }
        if let Some(events) = &mut self.events {
            for edge in &mut self.edges {
                work += edge.turn(now, events)?;
            }
            for file in &mut self.files {
                work += file.turn(now, events);
            }
            for session in &mut self.sessions {
                work += session.turn(now, events);
            }
            if let Some(replay) = &mut self.replay {
                work += replay.turn(now, events);
            }
        }
        work += self.show(now);
        if let Some(events) = &mut self.events {
            if let Some(watermarks) = &mut self.watermarks {
                let is_behind = self.feeds.iter().any(FeedSource::is_behind)
                    || self.sessions.iter().any(SessionMarket::is_behind);
                watermarks.turn(now, is_behind, events);
            }
            events.wake();
        }
        Ok(work)
    }

    fn on_close(&mut self, now: Now) {
        for feed in &mut self.feeds {
            feed.close(now, self.events.as_mut());
        }
        for edge in &mut self.edges {
            edge.close(self.events.as_mut());
        }
        for session in &mut self.sessions {
            session.close(self.events.as_mut());
        }
        // The log reads the ring until its thread ends, which is later.
        if let Some(events) = &mut self.events {
            events.wake();
        }
        self.files.iter().for_each(FileMarket::count);
        self.replay.iter().for_each(ReplaySource::count);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.waker.as_fd());
        for feed in &self.feeds {
            feed.wait_for(descriptors);
        }
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }

    fn next_timer(&self) -> Option<u64> {
        let feeds = self.feeds.iter().filter_map(FeedSource::next_timer);
        let edges = self.edges.iter().filter_map(EdgeFeed::next_timer);
        let replay = self.replay.as_ref().and_then(ReplaySource::next_timer);
        let files = self.files.iter().filter_map(FileMarket::next_timer);
        let all = feeds.chain(edges).chain(files);
        let watermark = self.watermarks.as_ref().map(Watermarks::next_timer);
        all.chain(replay).chain(watermark).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::clock::Clock;

    #[test]
    fn a_reader_that_was_overtaken_is_answered_although_there_is_no_instrument() {
        let waker = Waker::detached().unwrap();
        let mut ring = EventRing::new(1, 1, waker.clone(), 1);
        let mut reader = ring.reader(Waker::detached().unwrap()).unwrap();
        let mut feeds = Feeds {
            feeds: Vec::new(),
            edges: Vec::new(),
            files: Vec::new(),
            sessions: Vec::new(),
            replay: None,
            events: Some(ring),
            waker,
            watermarks: None,
        };
        reader.ask();
        reader.read(9, |_| {});
        assert!(reader.may_lack_some());
        feeds.do_work(Clock::new().read()).unwrap();
        reader.read(9, |_| {});
        assert!(!reader.may_lack_some());
    }
}
