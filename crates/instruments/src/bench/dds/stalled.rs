//! The effect of a stopped reader on the others.
//!
//! A third process reads the samples of the ping, and is stopped (SIGSTOP) in the middle. Three
//! figures of the same round trip are compared: without a third process, with one that reads, and
//! with one that is stopped.

use std::time::{Duration, Instant};

use fanfare_dds::{DomainConfig, History, Qos};
use fanfare_gateway::SlowPolicy;

use super::ends::Ours;
use super::other::{Child, End, Other};
use super::{DdsBench, ask_until, settle, wait};
use crate::bench::{BenchError, on};
use crate::figures::{Figures, median, percentile};

/// Samples that are kept for a slow reader.
const KEPT: u32 = 64;
/// The lease of a reader that is to be dropped.
const LEASE: Duration = Duration::from_millis(300);
/// The kernel's buffer of a reader: small, so that a round does not fit into it.
const BUFFER: usize = 64 << 10;

/// Returns the policies of all ends.
pub(super) fn qos(policy: SlowPolicy) -> Qos {
    match policy {
        SlowPolicy::Drop => Qos::reliable().history(History::KeepLast(KEPT)),
        SlowPolicy::Disconnect => Qos::reliable(),
    }
}

pub(super) fn config(policy: SlowPolicy, config: &DomainConfig) -> DomainConfig {
    DomainConfig {
        receive_buffer: BUFFER,
        lease: Some(match policy {
            // A reader that is stopped for a whole round stays a participant.
            SlowPolicy::Drop => Duration::from_secs(60),
            SlowPolicy::Disconnect => LEASE,
        }),
        ..config.clone()
    }
}

/// For each round, p50 and p99 in nanoseconds.
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
    /// Samples written to the second reader.
    written: u64,
    received: u64,
    dropped: u64,
    gone_ms: Vec<f64>,
}

impl DdsBench<'_> {
    /// Adds the effect of a stopped reader on the round trip, under this policy: it loses the
    /// oldest samples, or it is dropped after a silence of its lease. `ok` in the figures means
    /// that the policy took effect and that the counts are right.
    ///
    /// # Errors
    /// A process or an end of DDS cannot be opened, or does not take part.
    pub fn add_stalled(&self, policy: SlowPolicy, figures: &mut Figures) -> Result<(), BenchError> {
        let mut sums = Sums::default();
        for _ in self.turns(self.rounds) {
            on(self.processors.here, || {
                self.stalled_round(policy, &mut sums)
            })?;
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
            SlowPolicy::Drop => {
                figures.count("stalled_written", sums.written);
                figures.count("stalled_received", sums.received);
                figures.count("stalled_dropped", sums.dropped);
                figures.set_ok(sums.dropped > 0 && sums.written == sums.received + sums.dropped);
            }
            SlowPolicy::Disconnect => {
                figures.set_ok(sums.gone_ms.len() == self.rounds);
                figures.add("stalled_gone_ms", median(sums.gone_ms));
            }
        }
        Ok(())
    }

    fn stalled_round(&self, policy: SlowPolicy, sums: &mut Sums) -> Result<(), BenchError> {
        let start = |end| {
            self.child_as(&Other {
                end,
                domain: self.domain,
                cpu: self.processors.there,
                policy,
            })
        };
        let _pong = start(End::PolicyPong)?;
        let own = config(policy, &super::config(self.domain));
        let ours = Ours::ping(&own, &qos(policy))?;
        wait("the other process", || ours.is_matched())?;
        let ends = ours.matched();
        let n = self.round_trips;
        trips(&ours, n, &mut Trips::default())?;
        trips(&ours, n, &mut sums.without)?;
        let mut beside = start(End::Beside)?;
        wait("the reader beside", || ours.matched() > ends)?;
        settle();
        let before = ours.written();
        trips(&ours, n, &mut sums.reading)?;
        beside.halt(true)?;
        let stopped = Instant::now();
        trips(&ours, n, &mut sums.stalled)?;
        match policy {
            SlowPolicy::Drop => count(&mut beside, ours.written() - before, sums),
            SlowPolicy::Disconnect => {
                wait("the end of the lease", || ours.gone().is_some())?;
                // The lease may have ended while trips were made.
                let gone = ours.gone();
                let took = gone.and_then(|at| at.checked_duration_since(stopped));
                let millis = took.map(|took| took.as_secs_f64() * 1e3);
                sums.gone_ms.extend(millis);
                Ok(())
            }
        }
    }
}

/// Continues the second reader, until it has the last sample. Its count of dropped samples, by
/// their numbers, must equal the samples written that did not arrive.
fn count(beside: &mut Child, written: u64, sums: &mut Sums) -> Result<(), BenchError> {
    beside.halt(false)?;
    let (received, dropped) = ask_until(
        beside,
        Duration::from_millis(5),
        |received, dropped| (received + dropped >= written).then_some((received, dropped)),
        |received, dropped| {
            format!("of {written} samples {received} came and {dropped} were counted as dropped")
        },
    )?;
    sums.written += written;
    sums.received += received;
    sums.dropped += dropped;
    Ok(())
}

fn trips(ours: &Ours, n: u32, into: &mut Trips) -> Result<(), BenchError> {
    let nanos = super::trips::of(ours, n)?;
    into.p50.push(percentile(&nanos, 50.0));
    into.p99.push(percentile(&nanos, 99.0));
    Ok(())
}
