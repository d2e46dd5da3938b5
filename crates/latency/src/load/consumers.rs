//! Consumers: sessions that receive the fan-out and check it.

use std::net::SocketAddr;
use std::time::Duration;

use fanfare_engine::stop::Stop;
use fanfare_fix::codec::tags::FANOUT_ID;
use fanfare_fix::session::{Event, SECOND, Version};

use super::LoadError;
use super::fleet::{Fleet, FleetOptions, Refused};
use super::order::{OrderCheck, OrderCounts};
use crate::figures::Figures;

/// Sleep between two turns. Asleep outside of the poller the thread is not woken by each
/// delivery, which would cost the gateway more than the delivery itself, and reads in batches.
const PAUSE: Duration = Duration::from_millis(10);
/// A turn that took so many bytes a session is followed by the next at once: the load is heavy,
/// and the kernel's buffers would fill in a pause.
const HEAVY: usize = 8 << 10;
/// After the last expected message: the time in which one too many would come.
const GRACE: u64 = SECOND / 5;

/// Who connects, and what is expected.
#[derive(Debug, Clone)]
pub struct ConsumerOptions {
    /// The gateway's port for consumers.
    pub address: SocketAddr,
    /// Sessions.
    pub clients: usize,
    /// CompIDs are this with a number behind.
    pub name: String,
    /// The number of the first.
    pub first: usize,
    /// TargetCompID(56).
    pub target: String,
    /// BeginString(8).
    pub version: Version,
    /// Progress is told every so many messages of all sessions together; 0 is never.
    pub progress: u64,
    /// Stop by itself after so many messages of all sessions together.
    pub messages: Option<u64>,
    /// The first mark of each producer must be its number 1: the consumers are there first.
    pub from_start: bool,
}

impl ConsumerOptions {
    /// `clients` sessions C1, C2 … of FIX.4.4, progress every 1,000 messages, until stopped.
    pub fn new(address: SocketAddr, clients: usize) -> Self {
        Self {
            address,
            clients,
            name: "C".to_owned(),
            first: 1,
            target: "FANFARE".to_owned(),
            version: Version::Fix44,
            progress: 1_000,
            messages: None,
            from_start: false,
        }
    }
}

/// What the consumers received.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsumerReport {
    /// Application messages of all sessions.
    pub received: u64,
    /// Those without a mark.
    pub unmarked: u64,
    /// What the check of the marks found, all sessions together.
    pub order: OrderCounts,
    /// Fewest and most messages that a session received: equal unless something was lost.
    pub per_session: (u64, u64),
    /// Sessions that ended before the run did, and why the first of them did.
    pub ended: usize,
    /// Session and reason of the first that ended.
    pub first_ended: Option<(String, String)>,
    /// Sessions that could not log on.
    pub refused: usize,
    /// Messages expected that have not come: of `ConsumerOptions::messages`.
    pub short: u64,
    /// Seconds from the first to the last message.
    pub seconds: f64,
}

impl ConsumerReport {
    /// Whether nothing was lost, repeated or out of order, and every session was let in and lived
    /// on.
    pub fn is_clean(&self) -> bool {
        self.order.is_clean() && self.ended + self.refused == 0 && self.short == 0
    }

    /// Messages a second, from the first to the last; 0 for fewer than two.
    pub fn rate(&self) -> f64 {
        let messages = self.received.saturating_sub(1) as f64;
        if self.seconds > 0.0 {
            messages / self.seconds
        } else {
            0.0
        }
    }

    /// The figures of `fanfare fanout consumers`.
    pub fn figures(&self) -> Figures {
        let mut figures = Figures::new("fanout consumers");
        figures.count("received", self.received);
        figures.add("rate_per_s", self.rate());
        figures.count("missing", self.order.missing);
        figures.count("reordered", self.order.reordered);
        figures.count("duplicates", self.order.duplicates);
        figures.count("unreadable_marks", self.order.unreadable);
        figures.count("unmarked", self.unmarked);
        figures.count("short", self.short);
        figures.count("sessions_ended", self.ended as u64);
        figures.count("sessions_refused", self.refused as u64);
        figures.set_ok(self.is_clean());
        figures
    }
}

/// Consumers' sessions, all logged on.
pub struct Consumers {
    options: ConsumerOptions,
    fleet: Fleet,
    tally: Tally,
}

/// What came so far.
#[derive(Default)]
struct Tally {
    received: u64,
    unmarked: u64,
    per_client: Vec<(u64, OrderCheck)>,
}

impl Consumers {
    /// Connects all sessions and logs them on. Those that are [refused](Self::refused) are left
    /// out.
    ///
    /// # Errors
    /// [`LoadError`] of the first that cannot connect, or if none can log on.
    pub fn connect(options: &ConsumerOptions) -> Result<Self, LoadError> {
        let fleet = FleetOptions {
            address: options.address,
            name: options.name.clone(),
            first: options.first,
            target: options.target.clone(),
            version: options.version,
            max_send: 4 << 10,
        };
        let fleet = Fleet::connect(&fleet, 0..options.clients)?;
        let clients = fleet.clients().len();
        if let (0, Some((session, why))) = (clients, fleet.refused().first.clone()) {
            return Err(LoadError::Logon { session, why });
        }
        let checks = (0..clients).map(|_| (0, OrderCheck::new(options.from_start)));
        let tally = Tally {
            per_client: checks.collect(),
            ..Tally::default()
        };
        Ok(Self {
            options: ConsumerOptions {
                clients,
                ..options.clone()
            },
            fleet,
            tally,
        })
    }

    /// Sessions that are logged on.
    pub fn sessions(&self) -> usize {
        self.fleet.clients().len()
    }

    /// Sessions that could not log on.
    pub fn refused(&self) -> &Refused {
        self.fleet.refused()
    }

    /// Receives until told to stop, until the expected number has come, or until all sessions are
    /// over; then logs out. `progress` is told the total each time it passes a multiple of
    /// [`ConsumerOptions::progress`].
    ///
    /// # Errors
    /// The reactor failed. Sessions that end are no error here: the report has them.
    pub fn run(
        mut self,
        stop: &Stop,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ConsumerReport, LoadError> {
        let (mut first, mut last) = (0, 0);
        let mut done_at = None;
        let mut told = 0;
        while !stop.is_raised() && self.fleet.ended() < self.options.clients {
            let before = self.tally.received;
            let tally = &mut self.tally;
            let bytes = self
                .fleet
                .turn(Duration::ZERO, &mut |i, event| tally.event(i, event))?;
            let (now, received) = (self.fleet.now().mono, self.tally.received);
            if received > before {
                first = if before == 0 { now } else { first };
                last = now;
                told = self.tell(told, progress);
            }
            if self
                .options
                .messages
                .is_some_and(|wanted| received >= wanted)
            {
                let end = *done_at.get_or_insert(now + GRACE);
                if now >= end {
                    break;
                }
            }
            if bytes < HEAVY * self.options.clients {
                std::thread::sleep(PAUSE);
            }
        }
        let (ended, first_ended) = (self.fleet.ended(), self.fleet.first_ended());
        let tally = &mut self.tally;
        self.fleet.logout(&mut |i, event| tally.event(i, event))?;
        self.tell(told, progress);
        let seconds = last.saturating_sub(first) as f64 / 1e9;
        Ok(self.report(ended, first_ended, seconds))
    }

    /// Tells every multiple of the progress step that the total has passed; the last one told.
    fn tell(&self, mut told: u64, progress: &mut dyn FnMut(u64)) -> u64 {
        let step = self.options.progress;
        while step > 0 && told + step <= self.tally.received {
            told += step;
            progress(told);
        }
        told
    }

    fn report(
        self,
        ended: usize,
        first_ended: Option<(String, String)>,
        seconds: f64,
    ) -> ConsumerReport {
        let Tally {
            received,
            unmarked,
            per_client,
        } = self.tally;
        let mut order = OrderCounts::default();
        for (_, check) in &per_client {
            order.add(check.counts());
        }
        let counts = || per_client.iter().map(|(count, _)| *count);
        let per_session = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let short = self
            .options
            .messages
            .map_or(0, |wanted| wanted.saturating_sub(received));
        ConsumerReport {
            refused: self.fleet.refused().count,
            received,
            unmarked,
            order,
            per_session,
            ended,
            first_ended,
            short,
            seconds,
        }
    }
}

impl Tally {
    fn event(&mut self, index: usize, event: &Event<'_>) {
        let Event::App(app) = event else { return };
        self.received += 1;
        let Some((count, check)) = self.per_client.get_mut(index) else {
            return;
        };
        *count += 1;
        match app.message.get(FANOUT_ID) {
            Some(mark) => check.mark(mark),
            None => self.unmarked += 1,
        }
    }
}
