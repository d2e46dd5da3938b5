//! The ring of market events, with its readers and the agents of its log.

use super::Builder;
use super::descriptors::dbn_clients;
use crate::counts::DbnCounts;
use crate::dbn::config::DbnConfig;
use crate::dbn::{self, DbnAgent};
use crate::gateway::start_error::StartError;
use crate::history::{self, KnownInstruments, LogPlan, LogThreads, OpenLog};
use crate::market::ring::EventRing;
use crate::replay::OpenReplay;
use crate::service::{Service, ServiceConfig};
use crate::stages::End;
use crate::watch::{Watched, WatchedLog, WatchedMarket};
use fanfare_engine::poll::Waker;
use fanfare_history::Run;
use fanfare_market::book::BookConfig;

/// The ring of market events, while its readers are handed out.
pub(super) struct Events {
    pub(super) ring: EventRing,
    /// The waker of the thread of the feeds.
    pub(super) waker: Waker,
    /// The books of the feeds that are markets.
    pub(super) books: Vec<BookConfig>,
    /// The run of the plant that is written to the log, if there is one.
    run: Run,
    /// The instruments in the log.
    pub(super) known: KnownInstruments,
    /// The log that replaces the feeds.
    pub(super) replay: Option<OpenReplay>,
    /// The state that operators view.
    pub(super) watched: Watched,
}

impl Builder<'_> {
    /// Builds the ring of market events, if a feed is a market, and the agents of its log.
    pub(super) fn events(&self) -> Result<(Option<Events>, LogThreads), StartError> {
        let config = self.config;
        if !config.has_market() {
            return Ok((None, Vec::new()));
        }
        let waker = Waker::detached()?;
        let mut replay = config.open_replay()?;
        let feeds = match &replay {
            Some(replay) => replay.run().feeds.clone(),
            None => self.numbering.infos.clone(),
        };
        let books = feeds.iter().map(|feed| feed.book).collect();
        let first = replay.as_ref().map_or(1, OpenReplay::number);
        // The readers are each worker, the taker of the events, operators, the DBN outlet, and the
        // log.
        let is_watched = config.console.is_some() || config.control.is_some();
        let optional = [config.dbn.is_some(), is_watched];
        let optional = optional.into_iter().filter(|is_there| *is_there).count();
        let readers = self.config.workers + 2 + optional;
        let infos = feeds.clone();
        let mut log = history::open(config, feeds, first)?;
        let mut next = log.as_ref().map_or(1, |log| log.opened.next);
        if let Some(replay) = &mut replay {
            replay.number_from(next);
            next = replay.number();
        }
        let mut events = Events {
            ring: self.event_ring(readers, &waker, next, log.as_mut())?,
            waker,
            books,
            run: Run {
                number: log.as_ref().map_or(0, |log| log.opened.run),
                feeds: infos,
                ..Run::default()
            },
            known: KnownInstruments::default(),
            replay,
            watched: Watched::default(),
        };
        if is_watched {
            let reader = events.ring.reader(Waker::detached()?);
            events.watched.market = Some(WatchedMarket {
                events: reader.ok_or(StartError::Ring)?,
                next: events.ring.number(),
                feeds: events.run.feeds.clone(),
            });
            let place = log.as_ref().map(OpenLog::place);
            events.watched.log = place.map(|(folder, committed)| WatchedLog { folder, committed });
        }
        let mut history = Vec::new();
        if let (Some(log), Some(settings)) = (log, &config.history) {
            let Events { ring, books, .. } = &mut events;
            let plan = LogPlan {
                config,
                history: settings,
                books,
                counters: self.counters,
                notices: &self.notices,
                order: self.rolling.order(),
                stop: self.stop,
            };
            (history, events.known) = log.start(plan, ring)?;
        }
        Ok((Some(events), history))
    }

    /// Opens the ring, with the number of its first event. It is in a file if there is a log.
    fn event_ring(
        &self,
        readers: usize,
        feeds: &Waker,
        next: u64,
        log: Option<&mut OpenLog>,
    ) -> Result<EventRing, StartError> {
        let (bytes, feeds) = (self.config.ring_bytes, feeds.clone());
        let Some(OpenLog { ring_file, .. }) = log else {
            return Ok(EventRing::new(bytes, readers, feeds, next));
        };
        EventRing::in_file(ring_file, bytes, readers, feeds, next)
            .map_err(|error| StartError::RingFile(ring_file.path().to_owned(), error))
    }

    /// Builds the market data service of a worker.
    pub(super) fn service(&self, worker: &str, events: &mut Events) -> Result<Service, StartError> {
        let reader = events.ring.reader(Waker::detached()?);
        let mut reader = reader.ok_or(StartError::Ring)?;
        let of = format!("{worker} market");
        reader.measure(self.stages().outlet(&of, End::Socket));
        let config = ServiceConfig {
            books: events.books.clone(),
            feeds: events.run.feeds.clone(),
            users: self.users.clone(),
            audit: self.audit.clone(),
            queue_bytes: self.config.slow_consumer.queue_bytes,
        };
        Ok(Service::new(config, reader))
    }

    /// Opens the DBN port, if there is one.
    pub(super) fn dbn(&self, events: &mut Option<Events>) -> Result<Option<DbnAgent>, StartError> {
        let (Some(config), Some(events)) = (&self.config.dbn, events) else {
            return Ok(None);
        };
        let reader = events.ring.reader(Waker::detached()?);
        let mut reader = reader.ok_or(StartError::Ring)?;
        reader.measure(self.stages().outlet("dbn", End::Socket));
        let log = self.config.history.as_ref();
        let agent = DbnAgent::open(dbn::Parts {
            config: DbnConfig {
                max_clients: dbn_clients(self.config).unwrap_or(config.max_clients),
                ..config.clone()
            },
            events: reader,
            books: events.books.clone(),
            bases: events.run.bases(),
            users: self.users.clone(),
            roster: self.roster.clone(),
            audit: self.audit.clone(),
            notices: self.notices.clone(),
            counts: DbnCounts::new(self.counters, ""),
            log: log.map(|log| (log.folder.clone(), events.run.clone())),
        })?;
        Ok(Some(agent))
    }
}
