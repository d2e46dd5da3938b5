//! A DBN port without the rest of a gateway.

use super::config::DbnConfig;
use super::{DbnAgent, DbnError, Parts};
use crate::counts::DbnCounts;
use crate::market::ring::EventRing;
use crate::notice;
use crate::notice::audit::Audit;
use crate::users::roster::Roster;
use crate::users::{UserBook, UserSet};
use fanfare_engine::agent::{Crew, CrewError};
use fanfare_engine::counters::Counters;
use fanfare_engine::idle::Idle;
use fanfare_engine::poll::Waker;
use fanfare_engine::stop::Stop;
use fanfare_market::Event;
use fanfare_market::book::BookConfig;
use fanfare_market::instruments::Instrument;
use std::net::SocketAddr;
use std::time::Duration;

/// The longest sleep of an idle thread.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// A DBN port whose events the caller provides. It has no users. Dropping it stops it and joins its
/// thread.
pub struct DbnServer {
    ring: EventRing,
    crew: Crew,
    counters: Counters,
    address: SocketAddr,
}

impl DbnServer {
    /// Listens, and starts the thread, pinned to a processor if given. `ring_bytes` is a quarter of
    /// the size of the ring of events, a power of two. `books` are those of the feeds, from
    /// [`Event::source`] 1 on.
    ///
    /// # Errors
    /// Returns an error if the port cannot be opened.
    pub fn start(
        config: &DbnConfig,
        ring_bytes: usize,
        books: Vec<BookConfig>,
        processor: Option<usize>,
    ) -> Result<Self, DbnError> {
        let counters = Counters::new();
        let mut ring = EventRing::new(ring_bytes, 1, Waker::detached()?, 1);
        let full = || std::io::Error::other("the ring has no room for another reader");
        let events = ring.reader(Waker::detached()?).ok_or_else(full)?;
        let (notices, _) = notice::channel();
        let agent = DbnAgent::open(Parts {
            config: config.clone(),
            events,
            books,
            bases: Vec::new(),
            users: UserBook::new(UserSet::default()),
            roster: Roster::default(),
            audit: Audit::default(),
            notices,
            counts: DbnCounts::new(&counters, ""),
            log: None,
        })?;
        let address = agent.address()?;
        let mut crew = Crew::new(Stop::new());
        crew.spawn(agent, Idle::Wait(LONGEST_SLEEP), processor)?;
        Ok(Self {
            ring,
            crew,
            counters,
            address,
        })
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Writes an instrument, which must precede its events.
    pub fn put_instrument(&mut self, instrument: &Instrument<'_>) {
        self.ring.put_instrument(instrument);
    }

    /// Numbers the events of a message and writes them. Does not wait: events that the thread has
    /// not read may be overwritten, which is reported to its clients.
    pub fn put(&mut self, events: &mut [Event]) {
        self.ring.put(events);
    }

    /// Writes the time at which or after which every later trade arrives, in nanoseconds since
    /// 1970: intervals up to it are complete. Without it an interval ends at the first event that
    /// is a second later.
    pub fn put_watermark(&mut self, time: u64) {
        self.ring.put_watermark(time);
    }

    /// Wakes the thread, once for all events written.
    pub fn wake(&mut self) {
        self.ring.wake();
    }

    /// Returns the current [`total`](crate::total) of a counter.
    #[must_use]
    pub fn count(&self, name: &str) -> u64 {
        crate::total(&self.counters, name)
    }

    /// Stops the thread and joins it.
    ///
    /// # Errors
    /// Returns the error with which the thread failed.
    pub fn stop(self) -> Result<(), CrewError> {
        self.crew.stop().raise();
        self.crew.join()
    }
}
