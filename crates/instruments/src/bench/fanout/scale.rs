//! The cost of many consumers: start, memory, deliveries at saturation, and latency below it.

use std::io;
use std::time::Instant;

use fanfare_engine::stop::Stop;
use fanfare_gateway::Gateway;

use super::Receivers;
use super::orders::Subject;
use super::plant::{FanoutBench, Plant, TIMES, baseline};
use super::receivers::ROUND;
use super::rounds::{Target, saturate};
use crate::bench::{BenchError, memory_kib, on};
use crate::figures::{Figures, median};
use crate::histogram::Histogram;

/// Shares of the highest rate at which the latency is measured, in percent.
const SHARES: [u64; 3] = [50, 80, 95];

/// Deliveries of a measurement of the highest rate.
const DELIVERIES: u64 = 2_000_000;

/// Most messages under way below the highest rate, which keeps the queues of the gateway from
/// filling while the thread that also receives is late. A message that is sent late for it is still
/// timed from the moment at which it was due.
const UNDER_WAY: u64 = 1_024;

/// The duration of a measurement below the highest rate, in nanoseconds.
const RUN: f64 = 2e9;

impl FanoutBench {
    /// Raises the limit of open files to what [`add_scale`](Self::add_scale) needs.
    ///
    /// # Errors
    /// The system allows fewer.
    pub fn allow_files(&self) -> Result<(), BenchError> {
        self.allow_files_each(2)
    }

    /// Measures as many plain connections, a gateway with its consumers, and the plain connections
    /// again. They do not alternate, since each of them may need all descriptors. Adds, with
    /// `prefix` before each name:
    ///
    /// - `start_ms`: from nothing to a gateway that listens; `logon_ms`: until all are logged on.
    /// - `session_kib`: resident memory by which the process grows for a session, both of its
    ///   ends, without the buffers of the kernel.
    /// - `delivery_ns`, `raw_delivery_ns`: the time of a delivery at the highest rate, 64 messages
    ///   under way, through the gateway and by plain sends.
    /// - `raw_drift`: the second of the two times of plain sends, divided by the first.
    /// - `at_50_p50_us`, `p99` and `p99_9`: from the moment at which a message was due to its
    ///   delivery, of all deliveries, at half of that rate; the same at 80 and 95 %. The producer
    ///   sends by the clock whether or not messages have arrived, so that no delay is left out.
    ///
    /// Returns whether all was measured before `stop` was raised.
    ///
    /// # Errors
    /// A connection or the gateway fails, or the system allows too few open files.
    pub fn add_scale(
        &self,
        figures: &mut Figures,
        prefix: &str,
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        let messages = (DELIVERIES / self.consumers as u64).clamp(200, 20_000);
        // Measuring pins threads of its own: those of the gateway inherit nothing from this one.
        let here = self.processors.here;
        let (first, lost_first) = on(here, || self.plain(messages, stop))?;
        if stop.is_raised() {
            figures.set_ok(false);
            return Ok(false);
        }

        let began = Instant::now();
        let gateway = Gateway::start_with(&self.spinning(), Stop::new(), Vec::new())?;
        let started = began.elapsed();
        let before = memory_kib("VmRSS")?;
        let mut plant = on(here, || Plant::log_on(gateway, self.consumers))?;
        let logon = began.elapsed() - started;
        let sessions = memory_kib("VmRSS")?.saturating_sub(before);
        figures.add(&format!("{prefix}start_ms"), started.as_secs_f64() * 1e3);
        figures.add(&format!("{prefix}logon_ms"), logon.as_secs_f64() * 1e3);
        let session = sessions as f64 / self.consumers as f64;
        figures.add(&format!("{prefix}session_kib"), session);
        let lost = on(here, || {
            self.add_load(figures, (prefix, messages), &mut plant, stop)
        })?;
        plant.stop()?;
        let (second, lost_second) = on(here, || self.plain(messages, stop))?;
        let plain = (1e9 / first + 1e9 / second) / 2.0;
        figures.add(&format!("{prefix}raw_delivery_ns"), plain);
        figures.add(&format!("{prefix}raw_drift"), first / second);
        let lost = lost + lost_first + lost_second;
        figures.count(&format!("{prefix}lost"), lost);
        let is_whole = !stop.is_raised();
        figures.set_ok(figures.is_ok() && lost == 0 && is_whole);
        Ok(is_whole)
    }

    /// Returns the highest rate of plain sends, and the number of deliveries that did not come.
    fn plain(&self, messages: u64, stop: &Stop) -> Result<(f64, u64), BenchError> {
        let (mut raw, mut plain, crew) = baseline(self.consumers, self.processors)?;
        let measured = highest(&mut raw, &mut plain, messages, stop)?;
        crew.stop().raise();
        crew.join()?;
        Ok(measured)
    }

    /// Adds the times of deliveries at the highest rate and below it. Returns the number of
    /// deliveries that did not come.
    fn add_load(
        &self,
        figures: &mut Figures,
        (prefix, messages): (&str, u64),
        plant: &mut Plant,
        stop: &Stop,
    ) -> Result<u64, BenchError> {
        let (target, receivers) = plant.ends();
        let (rate, mut lost) = highest(target, receivers, messages, stop)?;
        figures.add(&format!("{prefix}delivery_ns"), 1e9 / rate);
        for share in SHARES {
            let interval = 1e9 * self.consumers as f64 / (rate * share as f64 / 100.0);
            let messages = (RUN / interval).ceil() as u64;
            let schedule = Schedule {
                interval: interval as u64,
                messages,
                warm_up: messages / 10,
            };
            let (target, receivers) = plant.ends();
            let run = schedule.run(target, receivers, || stop.is_raised())?;
            lost += run.lost;
            for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9)] {
                let name = format!("{prefix}at_{share}_{name}_us");
                figures.add(&name, run.times.micros(percent));
            }
        }
        Ok(lost)
    }
}

/// Returns the median of several measurements of the highest rate, in deliveries per second, and
/// the number of deliveries that did not come.
fn highest(
    target: &mut dyn Target,
    receivers: &mut Receivers,
    messages: u64,
    stop: &Stop,
) -> io::Result<(f64, u64)> {
    let (mut rates, mut lost) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let run = saturate(target, receivers, messages, || stop.is_raised())?;
        rates.push(run.rate);
        lost += run.lost;
    }
    Ok((median(rates), lost))
}

/// Messages that are due at fixed intervals, in nanoseconds. The first ones do not count.
struct Schedule {
    interval: u64,
    messages: u64,
    warm_up: u64,
}

/// The result of a schedule: times from due to delivery, and deliveries that did not come.
struct Scheduled {
    times: Histogram,
    lost: u64,
}

impl Schedule {
    fn due(&self, start: u64, message: u64) -> u64 {
        start + message * self.interval
    }

    /// Sends each message when it is due, or as soon after as the thread can. Ends early if `stop`
    /// is raised.
    fn run(
        &self,
        target: &mut dyn Target,
        receivers: &mut Receivers,
        stop: impl Fn() -> bool,
    ) -> io::Result<Scheduled> {
        let count = receivers.len() as u64;
        let mut received = vec![0_u64; receivers.len()];
        let mut times = Histogram::new();
        let start = receivers.now();
        let (mut sent, mut delivered, mut progress) = (0, 0, start);
        let mut messages = self.messages;
        while delivered < messages * count {
            if stop() {
                messages = sent;
            }
            // The mean is as good a measure as the slowest, and at hand.
            let end = messages.min(delivered / count + UNDER_WAY);
            while sent < end && receivers.now() >= self.due(start, sent) {
                target.trigger()?;
                sent += 1;
            }
            let before = delivered;
            receivers.turn(|receiver, _, at| {
                if let Some(message) = received.get_mut(receiver) {
                    if *message >= self.warm_up {
                        times.record(at.saturating_sub(self.due(start, *message)));
                    }
                    *message += 1;
                    delivered += 1;
                }
            })?;
            let now = receivers.now();
            if delivered > before || delivered == sent * count {
                progress = now;
            } else if now - progress > ROUND.as_nanos() as u64 {
                break;
            }
        }
        let lost = (sent * count).saturating_sub(delivered);
        Ok(Scheduled { times, lost })
    }
}
