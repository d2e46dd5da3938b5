//! `fanfare bench dds --stalled`: what a reader that stops does to the others.
//!
//! A third process reads what the ping writes, and is stopped (SIGSTOP) in the middle. Three
//! figures of the same round trip: nobody beside, a reader beside that reads, and one that does
//! not.

use super::dds::{Args, config, median_of, on, wait};
use super::dds_ends::{Child, End, Ours};
use anyhow::{Result, bail};
use clap::ValueEnum;
use fanfare_dds::{DomainConfig, History, Qos};
use fanfare_instruments::figures::{Figures, median};
use std::thread;
use std::time::{Duration, Instant};

/// What becomes of the reader that stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stalled {
    /// It loses the oldest samples.
    Drop,
    /// It is forgotten when it has been silent for its lease.
    Disconnect,
}

/// Samples that wait for a reader that is behind.
const KEPT: u32 = 64;
/// The lease of a reader that is to be forgotten.
const LEASE: Duration = Duration::from_millis(300);
/// The kernel's buffer of a reader: small, or all of a round waits there.
const BUFFER: usize = 64 << 10;

impl Stalled {
    /// The policies of all ends.
    pub(super) fn qos(self) -> Qos {
        match self {
            Self::Drop => Qos::reliable().history(History::KeepLast(KEPT)),
            Self::Disconnect => Qos::reliable(),
        }
    }

    pub(super) fn config(self, config: &DomainConfig) -> DomainConfig {
        let config = config.clone().receive_buffer(BUFFER);
        match self {
            // Whoever is stopped for a whole round is still one of them.
            Self::Drop => config.lease(Duration::from_secs(60)),
            Self::Disconnect => config.lease(LEASE),
        }
    }
}

/// Of each round: p50 and p99, nanoseconds.
#[derive(Debug, Default)]
struct Trips {
    p50: Vec<f64>,
    p99: Vec<f64>,
}

#[derive(Debug, Default)]
struct Sums {
    without: Trips,
    reading: Trips,
    stalled: Trips,
    /// To the reader beside.
    written: u64,
    received: u64,
    dropped: u64,
    gone_ms: Vec<f64>,
}

/// Runs it; `ok` in the figures says that the policy took hold and that the counts are right.
pub(super) fn figures(args: &Args, policy: Stalled, figures: &mut Figures) -> Result<()> {
    let (here, there) = super::processors()?;
    let mut sums = Sums::default();
    for _ in 0..args.rounds {
        on(here, || round(args, policy, there, &mut sums))?;
    }
    let ratio = |a: &[f64], b: &[f64]| median(a.iter().zip(b).map(|(a, b)| a / b).collect());
    let (stalled, without) = (&sums.stalled, &sums.without);
    figures.add("ratio_stalled_p50", ratio(&stalled.p50, &without.p50));
    figures.add("ratio_stalled_p99", ratio(&stalled.p99, &without.p99));
    for (name, trips) in [
        ("without", sums.without),
        ("reading", sums.reading),
        ("stalled", sums.stalled),
    ] {
        figures.add(&format!("{name}_roundtrip_p50_us"), median(trips.p50) / 1e3);
        figures.add(&format!("{name}_roundtrip_p99_us"), median(trips.p99) / 1e3);
    }
    match policy {
        Stalled::Drop => {
            figures.count("stalled_written", sums.written);
            figures.count("stalled_received", sums.received);
            figures.count("stalled_dropped", sums.dropped);
            figures.set_ok(sums.dropped > 0 && sums.written == sums.received + sums.dropped);
        }
        Stalled::Disconnect => {
            figures.set_ok(sums.gone_ms.len() == args.rounds);
            figures.add("stalled_gone_ms", median(sums.gone_ms));
        }
    }
    Ok(())
}

fn round(args: &Args, policy: Stalled, there: Option<usize>, sums: &mut Sums) -> Result<()> {
    let start = |end| Child::start_with(end, args.domain, there, Some(policy));
    let _pong = start(End::PolicyPong)?;
    let own = policy.config(&config(args.domain));
    let ours = Ours::ping_with(&own, &policy.qos())?;
    wait("the other process", || ours.is_matched())?;
    let ends = ours.matched();
    trips(&ours, args.round_trips, &mut Trips::default())?;
    trips(&ours, args.round_trips, &mut sums.without)?;
    let mut beside = start(End::Beside)?;
    wait("the reader beside", || ours.matched() > ends)?;
    super::dds::settle();
    let before = ours.written();
    trips(&ours, args.round_trips, &mut sums.reading)?;
    beside.halt(true)?;
    let stopped = Instant::now();
    trips(&ours, args.round_trips, &mut sums.stalled)?;
    match policy {
        Stalled::Drop => count(&mut beside, ours.written() - before, sums),
        Stalled::Disconnect => {
            wait("the end of the lease", || ours.gone() > 0)?;
            sums.gone_ms.push(stopped.elapsed().as_secs_f64() * 1e3);
            Ok(())
        }
    }
}

/// Lets the reader beside go on, until it has the last sample: what it then counts as dropped, by
/// the numbers in the samples, must be what was written and did not arrive.
fn count(beside: &mut Child, written: u64, sums: &mut Sums) -> Result<()> {
    beside.halt(false)?;
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let (received, dropped) = beside.ask()?;
        if received + dropped >= written {
            sums.written += written;
            sums.received += received;
            sums.dropped += dropped;
            return Ok(());
        }
        if Instant::now() > end {
            bail!("of {written} samples {received} came and {dropped} were counted as dropped");
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn trips(ours: &Ours, n: u32, into: &mut Trips) -> Result<()> {
    ours.start(n);
    wait("the echoes", || ours.done() >= n)?;
    let mut nanos = ours.round_trips();
    into.p50.push(median_of(&nanos));
    nanos.sort_unstable();
    let p99 = nanos.get(nanos.len() * 99 / 100);
    into.p99.push(p99.map_or(f64::NAN, |n| *n as f64));
    Ok(())
}
