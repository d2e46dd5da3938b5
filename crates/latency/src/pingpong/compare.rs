//! Plain sockets, two sessions, and two sessions with journals, in turns.
//!
//! Two threads, each on its processor, have one end of each. Only the pair whose turn it is is
//! polled, for a block of round trips that is over in a few milliseconds: a slow minute of the
//! machine meets all three.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Acceptor, Host, Initiator, StoreKind};
use fanfare_engine::{cpu, journal};
use fanfare_fix::session::{Config, SessionId, Version};

use super::PingPongError;
use super::orders::{COMP_IDS, Exchange, samples};
use super::plain::{Plain, connected, spin};
use super::trader::{Pace, Trader};
use crate::figures::Figures;
use crate::histogram::Histogram;

/// What is compared, and where.
#[derive(Debug, Clone, Copy)]
pub struct CompareOptions<'a> {
    /// Round trips of each pair that count.
    pub rounds: u64,
    /// Round trips of each pair before.
    pub warm_up: u64,
    /// Folder for the journals; both sides' go there.
    pub folder: &'a Path,
    /// Processors of the side that sends orders and of the side that answers; without, both
    /// threads yield while nothing has come.
    pub cpus: Option<(usize, usize)>,
}

/// Round trips in nanoseconds.
#[derive(Debug, Clone)]
pub struct Comparison {
    /// The same bytes over plain sockets.
    pub raw: Histogram,
    /// Through two sessions that keep their messages in memory.
    pub session: Histogram,
    /// Through two sessions that keep their messages in journals.
    pub stored: Histogram,
}

impl Comparison {
    /// Adds all figures under the names that they have in JSON.
    pub fn add_to(&self, figures: &mut Figures) {
        let us = |of: &Histogram, percent| of.percentile(percent).map_or(f64::NAN, micros);
        let all = [
            ("raw_", &self.raw),
            ("", &self.session),
            ("stored_", &self.stored),
        ];
        for (prefix, of) in all {
            figures.add(&format!("{prefix}p50_us"), us(of, 50.0));
            figures.add(&format!("{prefix}p99_us"), us(of, 99.0));
        }
        for (prefix, of) in [("ratio_", &self.session), ("ratio_stored_", &self.stored)] {
            figures.add(&format!("{prefix}p50"), us(of, 50.0) / us(&self.raw, 50.0));
            figures.add(&format!("{prefix}p99"), us(of, 99.0) / us(&self.raw, 99.0));
        }
        figures.count("rounds", self.session.len());
    }
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Round trips of a pair until the next one has its turn.
const BLOCK: u64 = 250;
/// How long a logon may take.
const LOGON: Duration = Duration::from_secs(10);

/// Whose turn it is, as the answering thread sees it.
const RAW: u8 = 0;
const SESSION: u8 = 1;
const STORED: u8 = 2;
const OVER: u8 = 3;

/// Measures; `stop` is asked between blocks, and ends the run with what there is so far.
///
/// # Errors
/// No port, folder or processor; a session ended.
pub fn compare(
    options: &CompareOptions<'_>,
    stop: impl Fn() -> bool,
) -> Result<Comparison, PingPongError> {
    let (order, report) = samples(100_000, Clock::new().read().utc)
        .map_err(|error| PingPongError::Session(error.to_string()))?;
    let (raw, raw_there) = connected(&order, &report)?;
    let journal = |name: &str| {
        let kept = journal::Options {
            max_segments: 8,
            ..journal::Options::default()
        };
        StoreKind::Journal(options.folder.join(name), kept)
    };
    let (session, session_there) = pair(options.warm_up, StoreKind::default, StoreKind::default)?;
    let (stored, stored_there) = pair(options.warm_up, || journal("client"), || journal("server"))?;
    let mut here = Here {
        raw,
        session,
        stored,
        clock: Clock::new(),
        idle: options.cpus.map_or(thread::yield_now, |_| spin),
    };
    let mut there = There {
        raw: raw_there,
        session: session_there,
        stored: stored_there,
    };
    let turn = AtomicU8::new(SESSION);
    thread::scope(|scope| {
        let answering = scope.spawn(|| there.run(&turn, options.cpus.map(|cpus| cpus.1)));
        let measured = here.run(options, &turn, &|| stop() || answering.is_finished());
        turn.store(OVER, Ordering::Release);
        let answered = answering
            .join()
            .map_err(|_| PingPongError::Session("the answering thread panicked".to_owned()))?;
        answered?;
        measured
    })
}

/// Two hosts with a session each, not connected yet.
fn pair(
    warm_up: u64,
    client: impl Fn() -> StoreKind,
    server: impl Fn() -> StoreKind,
) -> Result<(Host<Trader>, Host<Exchange>), PingPongError> {
    let (sender, target) = COMP_IDS;
    let config = |sender: &str, target: &str| {
        let mut config = Config::new(SessionId::new(Version::Fix44, sender, target));
        config.reset_on_logon = true;
        config
    };
    let mut there = Host::new(Exchange::default())?;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let acceptor = Acceptor::new(anywhere).session_with(config(target, sender), server());
    let address = there.listen(acceptor)?;
    let mut here = Host::new(Trader::new(Pace::PingPong, warm_up))?;
    here.initiate(Initiator::new(config(sender, target), vec![address]).store(client()))?;
    Ok((here, there))
}

/// The measuring ends.
struct Here {
    raw: Plain,
    session: Host<Trader>,
    stored: Host<Trader>,
    clock: Clock,
    idle: fn(),
}

impl Here {
    fn run(
        &mut self,
        options: &CompareOptions<'_>,
        turn: &AtomicU8,
        stop: &dyn Fn() -> bool,
    ) -> Result<Comparison, PingPongError> {
        if let Some((cpu, _)) = options.cpus {
            cpu::pin_to(cpu)?;
        }
        let Self { clock, idle, .. } = self;
        for (whose, host) in [(SESSION, &mut self.session), (STORED, &mut self.stored)] {
            turn.store(whose, Ordering::Release);
            let until = Instant::now() + LOGON;
            drive(host, clock, *idle, |trader| {
                trader.is_logged_on() || Instant::now() > until || stop()
            })?;
            if !host.handler().is_logged_on() && !stop() {
                return Err(PingPongError::Session("no logon in 10 s".to_owned()));
            }
        }
        let mut raw = Histogram::new();
        let (mut done, total) = (0, options.warm_up + options.rounds);
        while done < total && !stop() {
            // A block of the warm-up ends with it, so that all pairs warm up alike.
            let end = if done < options.warm_up {
                options.warm_up
            } else {
                total
            };
            let block = BLOCK.min(end - done);
            turn.store(RAW, Ordering::Release);
            if done == options.warm_up {
                raw.clear();
            }
            self.raw.round_trips(block, clock, &mut raw, *idle)?;
            for (whose, host) in [(SESSION, &mut self.session), (STORED, &mut self.stored)] {
                turn.store(whose, Ordering::Release);
                host.handler().allow(block);
                drive(host, clock, *idle, |trader| trader.is_done() || stop())?;
            }
            done += block;
        }
        Ok(Comparison {
            raw,
            session: self.session.handler().round_trips().clone(),
            stored: self.stored.handler().round_trips().clone(),
        })
    }
}

/// Duty cycles until `done`, which is asked while there is nothing to do.
fn drive(
    host: &mut Host<Trader>,
    clock: &mut Clock,
    idle: fn(),
    done: impl Fn(&Trader) -> bool,
) -> Result<(), PingPongError> {
    loop {
        let work = host.do_work(clock.read()).map_err(PingPongError::Agent)?;
        if work > 0 {
            continue;
        }
        if let Some(why) = host.handler().trouble() {
            return Err(PingPongError::Session(why.to_owned()));
        }
        if done(host.handler()) {
            return Ok(());
        }
        idle();
    }
}

/// The answering ends.
struct There {
    raw: Plain,
    session: Host<Exchange>,
    stored: Host<Exchange>,
}

impl There {
    fn run(&mut self, turn: &AtomicU8, cpu: Option<usize>) -> Result<(), PingPongError> {
        let idle = cpu.map_or(thread::yield_now as fn(), |_| spin);
        if let Some(cpu) = cpu {
            cpu::pin_to(cpu)?;
        }
        let mut clock = Clock::new();
        loop {
            let work = match turn.load(Ordering::Acquire) {
                RAW => self.raw.answer()?,
                SESSION => self
                    .session
                    .do_work(clock.read())
                    .map_err(PingPongError::Agent)?,
                STORED => self
                    .stored
                    .do_work(clock.read())
                    .map_err(PingPongError::Agent)?,
                _ => return Ok(()),
            };
            if work == 0 {
                idle();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn each_pair_makes_all_its_round_trips() {
        let folder = Folder::new("pingpong");
        let options = CompareOptions {
            rounds: 300,
            warm_up: 20,
            folder: folder.path(),
            cpus: None,
        };
        let comparison = compare(&options, || false).unwrap();
        for histogram in [&comparison.raw, &comparison.session, &comparison.stored] {
            assert_eq!(histogram.len(), 300);
        }
        let mut figures = Figures::new("bench latency");
        comparison.add_to(&mut figures);
        for name in [
            "raw_p50_us",
            "p99_us",
            "stored_p50_us",
            "ratio_p99",
            "ratio_stored_p50",
        ] {
            assert!(
                figures.value(name).is_some_and(|value| value > 0.0),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_asked_to_stop_stops() {
        let folder = Folder::new("pingpong-stop");
        let options = CompareOptions {
            rounds: u64::MAX / 2,
            warm_up: 0,
            folder: folder.path(),
            cpus: None,
        };
        assert!(compare(&options, || true).is_ok());
    }
}
