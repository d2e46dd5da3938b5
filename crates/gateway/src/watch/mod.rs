//! The state that operators view besides counters: the market as an outlet sees it, changes, and
//! rates.
//!
//! A thread of its own reads the ring of market events as every other outlet does, and samples the
//! counters once a second. It starts with the first query, or with the console. Nothing waits for
//! it: if it is overtaken it reports so, and requests the snapshots of all instruments again, at
//! most every ten seconds. Queries read on by themselves, up to the end of the ring.

mod books;
mod catch_up;
mod error;
mod instruments;
mod lines;
mod log;
mod market;
mod notices;
mod page;
mod places;
mod render;
mod samples;
mod subscriptions;

pub(crate) use books::WantedBook;
pub(crate) use error::NoBook;
pub(crate) use instruments::WantedInstruments;
pub(crate) use notices::NoticeBoard;
pub(crate) use page::Page;
pub use render::{lacks, state_name};
pub(crate) use subscriptions::NoList;

use crate::config::Config;
use crate::market::ring::EventReader;
use crate::notice::NoticeReceiver;
use crate::service::Inspector;
use books::Past;
use fanfare_engine::clock;
use fanfare_engine::counters::Counters;
use fanfare_engine::stop::Stop;
use fanfare_history::FeedInfo;
use fanfare_history::moment::utc;
use fanfare_operator::Changes;
use lines::LineWatch;
use market::Market;
use places::Places;
use samples::Samples;
use serde_json::{Map, Value};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The sleep of the thread when the ring is empty. The ring holds the events that arrive in the
/// meantime.
const SLEEP: Duration = Duration::from_millis(5);
/// The interval at which the counters are sampled.
const SAMPLE: Duration = Duration::from_secs(1);

/// The kinds of changes.
const KINDS: &[&str] = &[
    "instrument",
    "instruments",
    "line",
    "session",
    "notice",
    "restart",
    "lapped",
];

/// The parts of the market that are watched.
pub(crate) struct WatchedMarket {
    pub(crate) events: EventReader,
    /// The feeds that are markets, in the order of their numbers.
    pub(crate) feeds: Vec<FeedInfo>,
    /// The number of the next event.
    pub(crate) next: Arc<AtomicU64>,
}

/// The log of market events.
pub(crate) struct WatchedLog {
    pub(crate) folder: PathBuf,
    /// The number after its last event.
    pub(crate) committed: Arc<AtomicU64>,
}

/// The parts of a gateway that are watched.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) market: Option<WatchedMarket>,
    pub(crate) log: Option<WatchedLog>,
    /// The inspectors of the workers, in their order.
    pub(crate) inspectors: Vec<Inspector>,
}

/// The view of operators, for any thread. Clones share it.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Inner>);

struct Inner {
    config: Config,
    counters: Counters,
    stop: Stop,
    begun: AtomicBool,
    market: Option<Mutex<Market>>,
    /// The places of queries that wait for the market.
    waiting: Places,
    /// The number of the next event.
    next: Option<Arc<AtomicU64>>,
    log: Option<WatchedLog>,
    inspectors: Vec<Inspector>,
    past: Past,
    changes: Changes,
    notices: NoticeBoard,
    samples: Mutex<Samples>,
}

impl Watch {
    /// Creates the view of a gateway with this configuration, until `stop`. The thread is not
    /// started.
    pub(crate) fn new(config: &Config, counters: &Counters, stop: &Stop, watched: Watched) -> Self {
        // Numbers above those of all earlier runs, and exact in JSON.
        let changes = Changes::from_base(clock::utc() / 1_000).with_kinds(KINDS);
        let next = watched.market.as_ref().map(|own| Arc::clone(&own.next));
        let market = watched.market.map(|own| {
            let market = Market::new(own.events, own.feeds, changes.clone(), counters);
            Mutex::new(market)
        });
        Self(Arc::new(Inner {
            config: config.clone(),
            counters: counters.clone(),
            stop: stop.clone(),
            begun: AtomicBool::new(false),
            market,
            waiting: Places::new(catch_up::WAITING),
            next,
            log: watched.log,
            inspectors: watched.inspectors,
            past: Past::default(),
            notices: NoticeBoard::new(changes.clone()),
            changes,
            samples: Mutex::default(),
        }))
    }

    /// Keeps the notices received for later queries if there is a console or a control socket, and
    /// starts the thread if there is a console.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub(crate) fn attach(&self, received: &mut NoticeReceiver) -> io::Result<()> {
        let config = &self.0.config;
        if config.console.is_some() || config.control.is_some() {
            let board = self.0.notices.clone();
            received.tell_also(move |taken| board.take(taken));
        }
        match config.console {
            Some(_) => self.begin(),
            None => Ok(()),
        }
    }

    /// Starts the thread, if it is not started.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub(crate) fn begin(&self) -> io::Result<()> {
        if self.0.begun.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let own = self.clone();
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let started = thread.spawn(move || own.0.run());
        if started.is_err() {
            self.0.begun.store(false, Ordering::Relaxed);
        }
        started.map(drop)
    }

    /// Returns the changes.
    pub(crate) fn changes(&self) -> &Changes {
        &self.0.changes
    }

    /// Returns the notices.
    pub(crate) fn notices(&self) -> &NoticeBoard {
        &self.0.notices
    }

    /// Returns the number of the next event, and the recent rate per second, or `None` without a
    /// market.
    pub(crate) fn events(&self) -> Option<(u64, Option<f64>)> {
        let next = self.0.next.as_ref()?.load(Ordering::Relaxed);
        let rate = self.0.samples().rate_of("market_events");
        Some((next, rate))
    }
}

impl Inner {
    fn run(&self) {
        let mut lines = LineWatch::new(&self.config);
        let mut due = Instant::now();
        while !self.stop.is_raised() {
            let now = Instant::now();
            let mut is_behind = false;
            if let Some(mut market) = self.market() {
                is_behind = market.read(now);
            }
            if now >= due {
                due = now + SAMPLE;
                let mut samples = self.samples();
                samples.take(now, &self.counters);
                if let [.., (_, before), (_, latest)] = samples.all() {
                    lines.look(clock::utc(), [before, latest], &self.changes);
                }
            }
            match is_behind {
                // Queries take the market in between.
                true => std::thread::yield_now(),
                false => std::thread::sleep(SLEEP),
            }
        }
    }

    fn market(&self) -> Option<MutexGuard<'_, Market>> {
        let market = self.market.as_ref()?;
        Some(market.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Reports a change, with the time before its fields.
fn tell(changes: &Changes, kind: &'static str, fields: Map<String, Value>) {
    let mut object = render::object([("time", utc(clock::utc()).into())]);
    object.extend(fields);
    changes.push(kind, object);
}
