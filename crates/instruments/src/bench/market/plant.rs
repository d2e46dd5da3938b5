//! A gateway with a feed, and its subscribers.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::agent::Agent;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, ConfigError, Gateway, Idle};

use super::super::fanout::Receivers;
use super::super::fanout::orders::Subject;
use super::super::fanout::rounds::{Target, saturate};
use super::super::fanout::sessions::{connect, log_on, subscribe};
use super::super::{BenchError, Processors};
use super::feed::{BUSY, Feed, QUIET, group};

/// The time limit for the books to be live.
const PATIENCE: Duration = Duration::from_secs(20);

/// The most sessions before those that are measured.
const BEFORE: usize = 3;

/// The gateway with all its subscribers.
pub(super) struct Plant {
    pub(super) gateway: Gateway,
    pub(super) feed: Feed,
    /// The subscribers of the instrument that changes.
    pub(super) busy: Receivers,
    /// The subscribers of the one that does not change.
    quiet: Option<Receivers>,
}

impl Plant {
    /// Starts a gateway with these numbers of subscribers of the instrument that changes, and of
    /// the other.
    pub(super) fn start(
        (busy, quiet): (usize, usize),
        idle: Idle,
        processors: Processors,
        guests: Vec<Box<dyn Agent>>,
    ) -> Result<Self, BenchError> {
        let who = (busy.max(quiet), busy + quiet);
        let (gateway, feed) = open(who, (idle, processors), guests, "")?;
        let busy = subscribers(&gateway, busy, "BUSY", BUSY)?;
        let quiet = (quiet > 0).then(|| subscribers(&gateway, quiet, "QUIET", QUIET));
        Ok(Self {
            gateway,
            feed,
            busy,
            quiet: quiet.transpose()?,
        })
    }

    /// Starts a gateway that sleeps between messages, with a log in `folder` if one is given, and
    /// `busy` subscribers of the instrument that changes.
    pub(super) fn start_logged(
        busy: usize,
        processors: Processors,
        folder: Option<&Path>,
    ) -> Result<Self, BenchError> {
        let log = folder.map(|folder| format!("[history]\nfolder = {folder:?}\n"));
        let log = log.unwrap_or_default();
        let (gateway, feed) = open((busy, busy), (Idle::Park, processors), Vec::new(), &log)?;
        let busy = subscribers(&gateway, busy, "BUSY", BUSY)?;
        Ok(Self {
            gateway,
            feed,
            busy,
            quiet: None,
        })
    }

    /// Starts a gateway that sleeps between messages, and calls `first`, which opens sessions.
    /// Sends `messages` to these and one more session, or fewer if `stop` is raised, then opens
    /// `busy` sessions that subscribe to the instrument that changes.
    pub(super) fn start_behind<T>(
        busy: usize,
        processors: Processors,
        (messages, stop): (u64, &Stop),
        first: impl FnOnce(&Gateway) -> Result<T, BenchError>,
    ) -> Result<(Self, T), BenchError> {
        let (most, idle) = (busy + BEFORE, (Idle::Park, processors));
        let (gateway, mut feed) = open((busy, most), idle, Vec::new(), "")?;
        let others = first(&gateway)?;
        let mut pace = subscribers(&gateway, 1, "PACE", BUSY)?;
        let sent = saturate(&mut feed, &mut pace, messages, || stop.is_raised())?;
        if sent.lost > 0 {
            let lost = format!("{} messages were lost before the first round", sent.lost);
            return Err(BenchError::Missing(lost));
        }
        drop(pace);
        let busy = subscribers(&gateway, busy, "BUSY", BUSY)?;
        let plant = Self {
            gateway,
            feed,
            busy,
            quiet: None,
        };
        Ok((plant, others))
    }

    /// Returns a change as the first subscriber receives it, for the baseline to send.
    pub(super) fn sample(&mut self) -> Result<Vec<u8>, BenchError> {
        self.feed.trigger()?;
        let mut sample = Vec::new();
        self.busy
            .each_has_one(|_, message| sample = message.to_vec())?;
        Ok(sample)
    }
}

impl Subject for Plant {
    fn ends(&mut self) -> (&mut dyn Target, &mut Receivers) {
        (&mut self.feed, &mut self.busy)
    }

    fn stop(self) -> Result<(), BenchError> {
        // The gateway does not wait for Logouts of connections that are closed.
        drop((self.busy, self.quiet));
        self.gateway.stop().raise();
        self.gateway.join()?;
        Ok(())
    }
}

/// Starts a gateway for at most `most` sessions, `at_once` of which connect together, with `more`
/// as further configuration, and sends the first datagram.
fn open(
    (at_once, most): (usize, usize),
    (idle, processors): (Idle, Processors),
    guests: Vec<Box<dyn Agent>>,
    more: &str,
) -> Result<(Gateway, Feed), BenchError> {
    let line = group()?;
    let text = format!(
        "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"{line}\"]\n\
         mapping = \"builtin:spectra\"\n{more}"
    );
    let wrong = |error: ConfigError| BenchError::Feed(error.to_string());
    let mut config = Config::from_toml(&text).map_err(wrong)?;
    config.producers.port = 0;
    config.consumers.port = 0;
    config.consumers.max_sessions = most.max(config.consumers.max_sessions);
    // All of them connect before the first one logs on.
    let at_once = at_once.max(config.limits.not_logged_on);
    config.limits.not_logged_on = at_once;
    config.limits.not_logged_on_per_address = at_once;
    config.pin = processors.there.into_iter().collect();
    config.idle = idle;
    let gateway = Gateway::start_with(&config, Stop::new(), guests)?;
    let mut feed = Feed::new(line)?;
    feed.trigger()?;
    live(&gateway)?;
    Ok((gateway, feed))
}

fn live(gateway: &Gateway) -> Result<(), BenchError> {
    let until = Instant::now() + PATIENCE;
    while gateway.count("instruments_live") < 2 {
        if Instant::now() > until {
            return Err(BenchError::Missing("the books are not live".to_owned()));
        }
        thread::yield_now();
    }
    Ok(())
}

fn subscribers(
    gateway: &Gateway,
    count: usize,
    name: &str,
    symbol: &str,
) -> Result<Receivers, BenchError> {
    let cannot = |error: io::Error| BenchError::Missing(format!("{name} cannot log on: {error}"));
    let streams = connect(gateway.consumers(), count)?;
    let mut receivers = log_on(streams, name).map_err(cannot)?;
    for (number, stream) in receivers.streams().enumerate() {
        subscribe(stream, &format!("{name}{number}"), symbol, None)?;
    }
    let mut refused = None;
    receivers.each_has_one(|_, message| {
        if !message.windows(6).any(|field| field == b"\x0135=W\x01") {
            refused = Some(message.escape_ascii().to_string());
        }
    })?;
    match refused {
        None => Ok(receivers),
        Some(message) => Err(BenchError::Missing(format!("no snapshot: {message}"))),
    }
}
