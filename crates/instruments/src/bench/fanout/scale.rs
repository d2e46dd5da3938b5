//! The cost of many consumers: start, memory, deliveries at saturation, and latency below it.

use std::fs;
use std::io;
use std::time::Instant;

use fanfare_engine::stop::Stop;
use fanfare_gateway::Gateway;

use super::orders::Subject;
use super::plant::{FanoutBench, Plant, TIMES};
use super::rounds::{ROUND, Target, saturate};
use super::{Raw, Receivers};
use crate::bench::BenchError;
use crate::figures::{Figures, median};
use crate::histogram::Histogram;

/// Shares of the highest rate at which the latency is measured, in percent.
const SHARES: [u64; 3] = [50, 80, 95];

/// Deliveries of a measurement of the highest rate.
const DELIVERIES: u64 = 2_000_000;

/// The duration of a measurement below the highest rate, in nanoseconds.
const RUN: f64 = 2e9;

impl FanoutBench {
    /// Measures a gateway with its consumers and as many plain connections, and adds with `prefix`
    /// before each name:
    ///
    /// - `start_ms`: from nothing to a gateway that listens; `logon_ms`: until all are logged on.
    /// - `session_kib`: resident memory of a session, without the buffers of the kernel.
    /// - `delivery_ns`, `raw_delivery_ns`: the time of a delivery at the highest rate, 64 messages
    ///   under way, through the gateway and by plain sends.
    /// - `at_50_p50_us`, `p99` and `p99_9`: from the moment at which a message was due to its delivery, of all
    ///   deliveries, at half of that rate; the same at 80 and 95 %. The producer sends by the clock
    ///   whether or not messages have arrived, so that no delay is left out.
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
        self.raise_limit()?;
        let before = resident_kib()?;
        let (mut raw, agent, mut plain) = Raw::new(self.consumers)?;
        let of_receivers = resident_kib()?.saturating_sub(before);
        let message = agent.message();
        let began = Instant::now();
        let gateway = Gateway::start_with(&self.spinning(), Stop::new(), vec![Box::new(agent)])?;
        let started = began.elapsed();
        let before = resident_kib()?;
        let mut plant = Plant::log_on(gateway, self.consumers)?;
        let sessions = resident_kib()?.saturating_sub(before + of_receivers);
        figures.add(&format!("{prefix}start_ms"), started.as_secs_f64() * 1e3);
        let logon = began.elapsed() - started;
        figures.add(&format!("{prefix}logon_ms"), logon.as_secs_f64() * 1e3);
        let session = sessions as f64 / self.consumers as f64;
        figures.add(&format!("{prefix}session_kib"), session);
        let _ = message.set(plant.sample()?);
        self.processors.pin_here()?;
        let measured =
            self.add_load(figures, prefix, ((&mut raw, &mut plain), &mut plant), stop)?;
        plant.stop()?;
        Ok(measured)
    }

    /// Adds the times of deliveries at the highest rate and below it.
    fn add_load(
        &self,
        figures: &mut Figures,
        prefix: &str,
        ((raw, plain), plant): ((&mut Raw, &mut Receivers), &mut Plant),
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        let consumers = self.consumers as u64;
        let messages = (DELIVERIES / consumers).clamp(200, 20_000);
        let mut rates = (Vec::new(), Vec::new());
        let mut lost = 0;
        for _ in 0..TIMES {
            let of_raw = saturate(raw, plain, messages, || stop.is_raised())?;
            let (target, receivers) = plant.ends();
            let ours = saturate(target, receivers, messages, || stop.is_raised())?;
            lost += of_raw.lost + ours.lost;
            rates.0.push(of_raw.rate);
            rates.1.push(ours.rate);
        }
        let (of_raw, rate) = (median(rates.0), median(rates.1));
        figures.add(&format!("{prefix}raw_delivery_ns"), 1e9 / of_raw);
        figures.add(&format!("{prefix}delivery_ns"), 1e9 / rate);
        for share in SHARES {
            let interval = 1e9 * consumers as f64 / (rate * share as f64 / 100.0);
            let schedule = Schedule {
                interval: interval as u64,
                messages: (RUN / interval).ceil() as u64,
            };
            let (target, receivers) = plant.ends();
            let run = schedule.run(target, receivers, || stop.is_raised())?;
            lost += run.lost;
            for (name, percent) in [("p50", 50.0), ("p99", 99.0), ("p99_9", 99.9)] {
                let name = format!("{prefix}at_{share}_{name}_us");
                figures.add(&name, run.times.micros(percent));
            }
        }
        figures.count(&format!("{prefix}lost"), lost);
        let is_whole = !stop.is_raised();
        figures.set_ok(figures.is_ok() && lost == 0 && is_whole);
        Ok(is_whole)
    }
}

/// Messages that are due at fixed intervals, in nanoseconds.
struct Schedule {
    interval: u64,
    messages: u64,
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
        let mut received = vec![0; receivers.len()];
        let mut times = Histogram::new();
        let start = receivers.now();
        let (mut sent, mut progress) = (0, start);
        let mut messages = self.messages;
        while times.len() < messages * count {
            if stop() {
                messages = sent;
            }
            while sent < messages && receivers.now() >= self.due(start, sent) {
                target.trigger()?;
                sent += 1;
            }
            let before = times.len();
            receivers.turn(|receiver, _, at| {
                if let Some(message) = received.get_mut(receiver) {
                    times.record(at.saturating_sub(self.due(start, *message)));
                    *message += 1;
                }
            })?;
            let now = receivers.now();
            if times.len() > before || sent * count == times.len() {
                progress = now;
            } else if now - progress > ROUND.as_nanos() as u64 {
                break;
            }
        }
        let lost = (sent * count).saturating_sub(times.len());
        Ok(Scheduled { times, lost })
    }
}

/// Returns the resident memory of this process.
fn resident_kib() -> Result<u64, BenchError> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    kib.ok_or_else(|| BenchError::Missing("no VmRSS in /proc/self/status".to_owned()))
}
