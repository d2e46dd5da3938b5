//! Sessions that subscribe to market data, rebuild their books and check them.

mod asked;
mod churn;
mod clients;

use std::net::SocketAddr;
use std::time::Duration;

use fanfare_engine::stop::Stop;
use fanfare_fix::dict::Version;
use fanfare_fix::session::{Credentials, SECOND};

use super::LoadError;
use super::progress::Progress;
use super::sessions::{Refused, SessionOptions, Sessions};
use crate::figures::{Figures, rate};
use crate::subscriber::{Counts, Rights};
pub use asked::Asked;
use clients::Clients;

/// The sleep between two reads of the connections.
const PAUSE: Duration = Duration::from_millis(5);
/// The bytes per session in one read after which the next follows at once.
const HEAVY: usize = 8 << 10;
/// The largest message accepted, bytes.
const MOST_RECEIVED: usize = 1 << 20;
/// The shortest and the longest time until a session that has left reconnects.
const BACK: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(200));
/// The time limit for responses at the end, from a gateway that may be behind its feeds.
const ANSWERS: u64 = 60 * SECOND;
/// The time limit for responses after an interruption.
const INTERRUPTED: u64 = 10 * SECOND;

/// The options of subscribing sessions.
#[derive(Debug, Clone)]
pub struct SubscribeOptions {
    /// The gateway's port for consumers.
    pub address: SocketAddr,
    /// Sessions.
    pub clients: usize,
    /// The prefix of CompIDs, followed by a number.
    pub name: String,
    /// The number of the first CompID.
    pub first: usize,
    /// The version of FIX; FIX.5.0 and later over FIXT.1.1.
    pub version: Version,
    /// Username(553) and Password(554).
    pub credentials: Option<Credentials>,
    /// The subscription of each of them, or with `churn` its limit.
    pub asked: Asked,
    /// The number of instruments of the list that each session subscribes to, starting after those
    /// of the session before and wrapping around at the end. `None`: all of them. Not with `churn`.
    pub part: Option<usize>,
    /// The seed with which clients join, change their subscriptions, and leave.
    pub churn: Option<u64>,
    /// The rights of the user in the gateway's configuration: the checker verifies them, and with
    /// `churn` some requests exceed them. `None`: everything.
    pub rights: Option<Rights>,
    /// The interval of progress, in W and X of all sessions together; 0 is never.
    pub progress: u64,
    /// The number of W and X of all sessions together to stop after.
    pub messages: Option<u64>,
    /// The duration to stop after.
    pub duration: Option<Duration>,
}

impl SubscribeOptions {
    /// Returns the options of `clients` sessions C1, C2 … of FIX.4.4 that request this once, until
    /// stopped.
    #[must_use]
    pub fn new(address: SocketAddr, clients: usize, asked: Asked) -> Self {
        Self {
            address,
            clients,
            name: "C".to_owned(),
            first: 1,
            version: Version::Fix44,
            credentials: None,
            asked,
            part: None,
            churn: None,
            rights: None,
            progress: 1_000,
            messages: None,
            duration: None,
        }
    }
}

/// The results of the clients.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscribeReport {
    /// Sessions.
    pub sessions: usize,
    /// The counts of all sessions.
    pub counts: Counts,
    /// Books at the end, and the number of them that are live.
    pub books: usize,
    /// See `books`.
    pub live: usize,
    /// Logons, and sessions that left to reconnect.
    pub logons: u64,
    /// See `logons`.
    pub left: u64,
    /// V that subscribed.
    pub requests: u64,
    /// V that could not be sent.
    pub unsent: u64,
    /// Subscriptions to instruments by name without a response.
    pub unanswered: usize,
    /// Session and reason of the first fault.
    pub first_fault: Option<(String, String)>,
    /// Session and text of the first refusal.
    pub first_refusal: Option<(String, String)>,
    /// Sessions that ended before the run did.
    pub ended: usize,
    /// Session and reason of the first that ended.
    pub first_ended: Option<(String, String)>,
    /// Sessions that could not log on.
    pub refused: usize,
    /// Expected W and X that have not come: of [`SubscribeOptions::messages`].
    pub short: u64,
    /// Seconds from the first to the last message.
    pub seconds: f64,
}

impl SubscribeReport {
    /// Returns whether every book was right, every request was granted, and every session stayed
    /// up.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let Counts {
            faults,
            refused,
            rejected,
            ..
        } = self.counts;
        let sessions = self.ended + self.refused + self.unanswered;
        let is_right = faults + refused + rejected + self.unsent + self.short == 0;
        is_right && sessions == 0 && !self.is_silent()
    }

    /// Returns whether no request had a response.
    #[must_use]
    pub const fn is_silent(&self) -> bool {
        self.requests > 0 && self.counts.snapshots + self.counts.states + self.counts.refused == 0
    }

    /// Returns W and X per second, from the first to the last.
    #[must_use]
    pub fn rate(&self) -> f64 {
        rate(self.counts.snapshots + self.counts.changes, self.seconds)
    }

    /// Returns the figures of `fanfare fanout consumers --subscribe`.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let counts = &self.counts;
        let mut figures = Figures::new("fanout consumers");
        figures.count("sessions", self.sessions as u64);
        figures.count("received", counts.snapshots + counts.changes);
        figures.add("rate_per_s", self.rate());
        for (name, count) in [
            ("snapshots", counts.snapshots),
            ("changes", counts.changes),
            ("entries", counts.entries),
            ("books", self.books as u64),
            ("books_live", self.live as u64),
            ("checked", counts.checked),
            ("faults", counts.faults),
            ("skipped", counts.skipped),
            ("skipped_entries", counts.skipped_entries),
            ("trades_left_out", counts.trades_left_out),
            ("states", counts.states),
            ("statuses", counts.statuses),
            ("requests", self.requests),
            ("requests_refused", counts.refused),
            ("requests_denied", counts.denied),
            ("requests_unanswered", self.unanswered as u64),
            ("rejected", counts.rejected),
            ("unsent", self.unsent),
            ("late", counts.late),
            ("short", self.short),
            ("logons", self.logons),
            ("left", self.left),
            ("sessions_ended", self.ended as u64),
            ("sessions_refused", self.refused as u64),
        ] {
            figures.count(name, count);
        }
        figures.set_ok(self.is_clean());
        figures
    }
}

/// Sessions that subscribe, all logged on.
pub struct Subscribers {
    options: SubscribeOptions,
    sessions: Sessions<Clients>,
    clients: usize,
}

impl Subscribers {
    /// Connects all sessions and logs them on; each sends its first request at once. Those that are
    /// [refused](Self::refused) are omitted.
    ///
    /// # Errors
    /// [`LoadError`] of the first that cannot connect, if none can log on, or if `stop` is raised.
    pub fn connect(options: &SubscribeOptions, stop: &Stop) -> Result<Self, LoadError> {
        let SubscribeOptions {
            address, clients, ..
        } = *options;
        let room = options.asked.room();
        let who = SessionOptions {
            version: options.version,
            credentials: options.credentials.clone(),
            backoff: options.churn.map(|_| BACK),
            max_receive: MOST_RECEIVED,
            ..SessionOptions::new(address, &options.name, options.first, room)
        };
        let task = Clients::new(options);
        let mut sessions = Sessions::connect(&who, 0..clients, task, stop)?;
        let clients = sessions.members().count();
        if let (0, Some((session, why))) = (clients, sessions.refused().first.clone()) {
            return Err(LoadError::Logon { session, why });
        }
        Ok(Self {
            options: options.clone(),
            sessions,
            clients,
        })
    }

    /// Returns the number of sessions logged on.
    #[must_use]
    pub const fn sessions(&self) -> usize {
        self.clients
    }

    /// Returns the sessions that could not log on.
    #[must_use]
    pub const fn refused(&self) -> &Refused {
        self.sessions.refused()
    }

    /// Receives until `stop` is raised, until the time is up or the expected number has come, or
    /// until all sessions have ended; waits for the responses to all requests, and logs out.
    /// Sessions that reconnect end once none is connected and the gateway cannot be reached.
    /// `progress` is called with the total each time it passes a multiple of
    /// [`SubscribeOptions::progress`].
    ///
    /// # Errors
    /// The host failed. Sessions that end are not an error: the report has them.
    pub fn run(
        mut self,
        stop: &Stop,
        progress: &mut dyn FnMut(u64),
    ) -> Result<SubscribeReport, LoadError> {
        let began = self.sessions.now().mono;
        let end = self.options.duration.map(|time| began + nanos(time));
        let (mut first, mut last) = (began, began);
        let mut progress = Progress::new(self.options.progress, progress);
        let mut over = None;
        while self.sessions.ended() < self.clients {
            let before = self.sessions.task().received;
            self.sessions.task().bytes = 0;
            self.sessions.read(self.clients)?;
            let (now, received) = (self.sessions.now().mono, self.sessions.task().received);
            if received > before {
                first = if before == 0 { now } else { first };
                last = now;
                progress.pass(received);
            }
            let has_all = self.options.messages.is_some_and(|all| received >= all);
            if stop.is_raised() || has_all || end.is_some_and(|end| now >= end) {
                let over = *over.get_or_insert(now);
                let limit = match stop.is_raised() {
                    true => INTERRUPTED,
                    false => ANSWERS,
                };
                let clients = self.sessions.task();
                clients.is_settling = true;
                let is_settled = clients.unanswered() == 0 && !clients.are_away();
                if is_settled || now >= over + limit {
                    break;
                }
            }
            if self.sessions.task().bytes < HEAVY * self.clients {
                std::thread::sleep(PAUSE);
            }
        }
        progress.pass(self.sessions.task().received);
        let seconds = last.saturating_sub(first) as f64 / 1e9;
        Ok(self.report(seconds))
    }

    /// Returns the current results, and logs all sessions out.
    fn report(mut self, seconds: f64) -> SubscribeReport {
        let mut report = SubscribeReport {
            sessions: self.clients,
            ended: self.sessions.ended(),
            first_ended: self.sessions.first_ended(),
            refused: self.sessions.refused().count,
            seconds,
            ..SubscribeReport::default()
        };
        let (name, first) = (&self.options.name, self.options.first);
        let clients = self.sessions.task();
        for (number, client) in clients.all.iter().enumerate() {
            let judge = &client.judge;
            report.counts.add(judge.counts());
            report.books += judge.books().count();
            report.live += judge.books().filter(|book| book.is_live()).count();
            let named = |why: &str| (format!("{name}{}", first + number), why.to_owned());
            let first_of = |seen: &mut Option<_>, why: Option<&str>| {
                *seen = seen.take().or_else(|| why.map(named));
            };
            first_of(&mut report.first_fault, judge.first_fault());
            first_of(&mut report.first_refusal, judge.first_refusal());
        }
        report.unanswered = clients.unanswered();
        report.logons = clients.logons;
        report.left = clients.left;
        report.requests = clients.requests;
        report.unsent = clients.unsent;
        let wanted = self.options.messages.unwrap_or(0);
        report.short = wanted.saturating_sub(clients.received);
        self.sessions.close();
        report
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
