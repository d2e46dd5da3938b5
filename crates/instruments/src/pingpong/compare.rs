//! Alternates plain sockets, two sessions, and two sessions with journals.
//!
//! Two threads, each on its processor, have one end of each. Only one pair at a time is polled, for
//! a block of round trips that ends within a millisecond: a slow minute of the machine affects all
//! three. A block's first round trips find the other pairs' data in the caches and do not count,
//! for none of the three.
//!
//! The figures are medians over slices of 1,000 round trips of each pair, and a ratio is the median
//! of the slices' own ratios. An interrupt takes as long as a round trip, and the number of them in
//! a run decides its p99: near 1 % the p99 of two whole runs differ by half without a cause in the
//! programs. The median over slices compares two neighbours each time.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Acceptor, Host, Initiator, StoreKind};
use fanfare_engine::{cpu, journal};
use fanfare_fix::session::{Config, MemoryLimits, SessionId, Version};

use super::PingPongError;
use super::orders::{COMP_IDS, Exchange, samples};
use super::plain::{Plain, connected, spin};
use super::trader::{Pace, Trader};
use crate::figures::{Figures, median};
use crate::histogram::Histogram;

/// The options of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct CompareOptions<'a> {
    /// Round trips of each pair that count.
    pub rounds: u64,
    /// Round trips of each pair before those, which do not count.
    pub warm_up: u64,
    /// The folder for the journals of both sides.
    pub folder: &'a Path,
    /// Processors of the side that sends orders and of the side that responds; without, both
    /// threads yield while idle.
    pub cpus: Option<(usize, usize)>,
}

/// The results of a comparison.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// The same bytes over plain sockets.
    pub raw: Measured,
    /// Two sessions that keep their messages in memory.
    pub session: Measured,
    /// Two sessions that keep their messages in journals.
    pub stored: Measured,
}

/// The round trips of one pair, in nanoseconds.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// All round trips.
    pub all: Histogram,
    /// Median and 99th percentile of each slice.
    slices: Vec<(f64, f64)>,
}

impl Measured {
    fn add_slice(&mut self, slice: &Histogram) {
        let percentile = |percent| slice.percentile(percent).map(|ns| ns as f64);
        if let Some(both) = percentile(50.0).zip(percentile(99.0)) {
            self.slices.push(both);
            self.all.merge(slice);
        }
    }

    fn median(&self, of: fn(&(f64, f64)) -> f64) -> f64 {
        median(self.slices.iter().map(of).collect())
    }

    fn ratio(&self, to: &Self, of: fn(&(f64, f64)) -> f64) -> f64 {
        let slices = self.slices.iter().zip(&to.slices);
        median(slices.map(|(ours, theirs)| of(ours) / of(theirs)).collect())
    }
}

impl Comparison {
    /// Adds all figures under their names in JSON.
    pub fn add_to(&self, figures: &mut Figures) {
        const P50: fn(&(f64, f64)) -> f64 = |slice| slice.0;
        const P99: fn(&(f64, f64)) -> f64 = |slice| slice.1;
        let all = [
            ("raw_", &self.raw),
            ("", &self.session),
            ("stored_", &self.stored),
        ];
        for (prefix, of) in all {
            figures.add(&format!("{prefix}p50_us"), of.median(P50) / 1e3);
            figures.add(&format!("{prefix}p99_us"), of.median(P99) / 1e3);
        }
        for (prefix, of) in [("ratio_", &self.session), ("ratio_stored_", &self.stored)] {
            figures.add(&format!("{prefix}p50"), of.ratio(&self.raw, P50));
            figures.add(&format!("{prefix}p99"), of.ratio(&self.raw, P99));
        }
        for (prefix, of) in all {
            for (name, percent) in POOLED {
                let value = of.all.micros(percent);
                figures.add(&format!("{prefix}pooled_{name}_us"), value);
            }
        }
        figures.count("rounds", self.session.all.len());
        figures.count("slices", self.session.slices.len() as u64);
    }
}

/// Percentiles over all slices together: they show where the curves differ, and the noise of the
/// machine.
const POOLED: [(&str, f64); 5] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
];

/// Round trips of a pair before the next one.
const BLOCK: u64 = 100;
/// The first round trips of each block, which do not count.
const SETTLE: u64 = 10;
/// Blocks of each pair in a slice.
const BLOCKS: u64 = 10;
/// Round trips of each pair, interleaved, that make one slice.
const SLICE: u64 = BLOCKS * BLOCK;
/// The time limit of a logon.
const LOGON: Duration = Duration::from_secs(10);

/// The active pair, as the responding thread reads it.
const RAW: u8 = 0;
const SESSION: u8 = 1;
const STORED: u8 = 2;
const OVER: u8 = 3;

/// Measures, and returns the results. `stop` is called between blocks. If it returns true, the run
/// ends early.
///
/// # Errors
/// A port, folder or processor is not available, or a session ended.
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
        StoreKind::Journal(options.folder.join(name), kept.full_from_the_start())
    };
    let (session, session_there) = pair(in_memory(), in_memory())?;
    let (stored, stored_there) = pair(journal("client"), journal("server"))?;
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

/// Returns a store whose memory is resident from the start: no page fault occurs while messages are
/// measured.
fn in_memory() -> StoreKind {
    let limits = MemoryLimits::default();
    let ready = limits.bytes;
    StoreKind::Memory(MemoryLimits { ready, ..limits })
}

/// Creates two hosts with a session each, not connected yet.
fn pair(
    client: StoreKind,
    server: StoreKind,
) -> Result<(Host<Trader>, Host<Exchange>), PingPongError> {
    let (sender, target) = COMP_IDS;
    let config = |sender: &str, target: &str| {
        let mut config = Config::new(SessionId::new(Version::Fix44, sender, target));
        config.reset_on_logon = true;
        config
    };
    let mut there = Host::new(Exchange::default())?;
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let acceptor = Acceptor::new(anywhere).session_with(config(target, sender), server);
    let address = there.listen(acceptor)?;
    let mut here = Host::new(Trader::new(Pace::PingPong))?;
    here.initiate(Initiator::new(config(sender, target), vec![address]).store(client))?;
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
        self.log_on(turn, stop)?;
        let mut comparison = Comparison::default();
        let mut raw = Histogram::new();
        for (total, counts) in [(options.warm_up, false), (options.rounds, true)] {
            let mut done = 0;
            while done < total && !stop() {
                let slice = SLICE.min(total - done);
                self.slice(slice, &mut raw, turn, stop)?;
                let Self {
                    session, stored, ..
                } = self;
                if counts && !stop() {
                    comparison.raw.add_slice(&raw);
                    comparison
                        .session
                        .add_slice(session.handler().round_trips());
                    comparison.stored.add_slice(stored.handler().round_trips());
                }
                raw.clear();
                session.handler().clear();
                stored.handler().clear();
                done += slice;
            }
        }
        Ok(comparison)
    }

    fn log_on(&mut self, turn: &AtomicU8, stop: &dyn Fn() -> bool) -> Result<(), PingPongError> {
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
        Ok(())
    }

    /// Runs `rounds` counted round trips of each pair, block by block.
    fn slice(
        &mut self,
        count: u64,
        raw: &mut Histogram,
        turn: &AtomicU8,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), PingPongError> {
        let Self { clock, idle, .. } = self;
        let mut done = 0;
        while done < count && !stop() {
            let block = BLOCK.min(count - done);
            turn.store(RAW, Ordering::Release);
            self.raw
                .round_trips(SETTLE + block, SETTLE, clock, raw, *idle)?;
            for (whose, host) in [(SESSION, &mut self.session), (STORED, &mut self.stored)] {
                turn.store(whose, Ordering::Release);
                host.handler().allow(SETTLE + block, SETTLE);
                drive(host, clock, *idle, |trader| trader.is_done() || stop())?;
            }
            done += block;
        }
        Ok(())
    }
}

/// Runs duty cycles until `done`, which is checked while they are idle.
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

/// The responding ends.
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
            assert_eq!(histogram.all.len(), 300);
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
    fn figures_are_medians_over_slices_and_of_their_ratios() {
        let slice = |p50, tail| {
            let mut slice = Histogram::new();
            (0..980).for_each(|_| slice.record(p50));
            (0..20).for_each(|_| slice.record(tail));
            slice
        };
        let mut comparison = Comparison::default();
        // The slices: a slow minute, an interrupt more on one side, then on the other.
        for (raw, session) in [
            ((100, 200), (110, 210)),
            ((200, 400), (220, 420)),
            ((100, 200), (110, 900)),
            ((100, 900), (110, 210)),
            ((100, 200), (110, 210)),
        ] {
            comparison.raw.add_slice(&slice(raw.0, raw.1));
            comparison.session.add_slice(&slice(session.0, session.1));
        }
        let mut figures = Figures::new("bench latency");
        comparison.add_to(&mut figures);
        assert_eq!(figures.value("ratio_p50"), Some(1.1));
        assert_eq!(figures.value("ratio_p99"), Some(1.05));
        assert_eq!(figures.value("raw_p99_us"), Some(0.2));
        assert_eq!(figures.value("p99_us"), Some(0.21));
        assert_eq!(figures.value("rounds"), Some(5000.0));
        assert_eq!(
            figures.value("ratio_stored_p50"),
            None,
            "nothing was measured"
        );
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
