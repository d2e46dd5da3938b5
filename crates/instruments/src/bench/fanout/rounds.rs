//! Rounds: one message to all receivers; and the highest rate of messages.

use super::receivers::{ROUND, Receivers};
use crate::figures::{Figures, median, percentile};
use std::io;

/// Messages in flight when throughput is measured.
const WINDOW: u64 = 64;

/// Rounds of a slice.
const SLICE: usize = 250;

/// A sender of one message to all receivers.
pub(in crate::bench) trait Target {
    /// Sends the next message, or has it sent.
    ///
    /// # Errors
    /// It cannot be sent.
    fn trigger(&mut self) -> io::Result<()>;

    /// Returns the time at which the last message was sent, in monotonic nanoseconds: for the
    /// baseline before the first send, for a gateway before the send that brings the message to it.
    /// Called when all receivers have it.
    fn began(&mut self) -> u64;
}

/// The percentiles of times that are figures, by the suffixes of their names.
pub const PERCENTILES: [(&str, f64); 6] = [
    ("p25", 25.0),
    ("p50", 50.0),
    ("p75", 75.0),
    ("p90", 90.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
];

/// Times of many rounds: from the send of the message to its delivery to the first, the median and
/// the last receiver.
#[derive(Debug, Default, Clone)]
pub(in crate::bench) struct Rounds {
    first: Vec<u64>,
    median: Vec<u64>,
    last: Vec<u64>,
    /// Deliveries that did not come within 20 s.
    pub(in crate::bench) lost: u64,
}

impl Rounds {
    /// Runs one more round.
    ///
    /// # Errors
    /// A connection broke.
    pub(in crate::bench) fn one(
        &mut self,
        target: &mut dyn Target,
        receivers: &mut Receivers,
    ) -> io::Result<()> {
        let mut arrivals: Vec<u64> = Vec::with_capacity(receivers.len());
        let until = receivers.now() + ROUND.as_nanos() as u64;
        target.trigger()?;
        while arrivals.len() < receivers.len() {
            receivers.turn(|_, _, at| arrivals.push(at))?;
            if arrivals.len() < receivers.len() && receivers.now() > until {
                self.lost += (receivers.len() - arrivals.len()) as u64;
                return Ok(());
            }
        }
        let began = target.began();
        // The times are in the order of the reads.
        let took = |at: Option<&u64>| at.map_or(0, |at| at.saturating_sub(began));
        self.first.push(took(arrivals.first()));
        self.median.push(took(arrivals.get(arrivals.len() / 2)));
        self.last.push(took(arrivals.last()));
        Ok(())
    }

    /// Returns the times by receiver.
    fn times(&self) -> [(&'static str, &[u64]); 3] {
        [
            ("first", &self.first),
            ("median", &self.median),
            ("last", &self.last),
        ]
    }

    /// Adds percentiles of the times to the first, the median and the last receiver, each with
    /// `prefix` before its name: `first_p50_us`.
    pub(in crate::bench) fn add_times(&self, figures: &mut Figures, prefix: &str) {
        for (receiver, times) in self.times() {
            for (name, percent) in PERCENTILES {
                let name = format!("{prefix}{receiver}_{name}_us");
                figures.add(&name, percentile(times, percent) / 1e3);
            }
        }
    }

    /// Returns a percentile of the times to the last receiver, in microseconds.
    pub(in crate::bench) fn last_us(&self, percent: f64) -> f64 {
        percentile(&self.last, percent) / 1e3
    }

    /// Returns a percentile of the times to the last receiver in a slice of 250 rounds, in
    /// microseconds: the median of all slices.
    pub(in crate::bench) fn slice_us(&self, percent: f64) -> f64 {
        let slices = self.last.chunks(SLICE);
        median(slices.map(|slice| percentile(slice, percent)).collect()) / 1e3
    }

    /// Returns the median, over all slices, of the ratio of a percentile to that of `base` in the
    /// same slice.
    pub(in crate::bench) fn slice_ratio(&self, base: &Self, percent: f64) -> f64 {
        let slices = self.last.chunks(SLICE).zip(base.last.chunks(SLICE));
        let ratios =
            slices.map(|(ours, theirs)| percentile(ours, percent) / percentile(theirs, percent));
        median(ratios.collect())
    }
}

/// Alternates between both, `rounds` rounds each after `warm_up` that do not count. Ends early if
/// `stop` is raised.
///
/// # Errors
/// A connection broke.
pub(in crate::bench) fn compare(
    raw: (&mut dyn Target, &mut Receivers),
    other: (&mut dyn Target, &mut Receivers),
    (warm_up, rounds): (usize, usize),
    stop: impl Fn() -> bool,
) -> io::Result<(Rounds, Rounds)> {
    let (mut of_raw, mut of_other) = (Rounds::default(), Rounds::default());
    for round in 0..warm_up + rounds {
        if stop() {
            break;
        }
        if round == warm_up {
            (of_raw, of_other) = (Rounds::default(), Rounds::default());
        }
        of_raw.one(raw.0, raw.1)?;
        of_other.one(other.0, other.1)?;
    }
    Ok((of_raw, of_other))
}

/// Adds the figures of both and their ratios.
pub(in crate::bench) fn add_figures(
    figures: &mut Figures,
    consumers: usize,
    raw: &Rounds,
    other: &Rounds,
) {
    figures.count("consumers", consumers as u64);
    figures.count("rounds", other.last.len() as u64);
    figures.count("lost", raw.lost + other.lost);
    raw.add_times(figures, "raw_");
    other.add_times(figures, "");
    for ((receiver, ours), (_, plain)) in other.times().into_iter().zip(raw.times()) {
        for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
            let ratio = percentile(ours, percent) / percentile(plain, percent);
            figures.add(&format!("ratio_{receiver}_{name}"), ratio);
        }
    }
    figures.set_ok(raw.lost + other.lost == 0 && !other.last.is_empty());
}

/// The result of a run at full speed.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::bench) struct Saturation {
    /// Deliveries per second.
    pub(in crate::bench) rate: f64,
    /// Deliveries that did not come.
    pub(in crate::bench) lost: u64,
}

/// Sends `messages` as fast as the receivers take them, with at most 64 in flight to each. Stops
/// sending if `stop` is raised; messages in flight still count.
///
/// # Errors
/// A connection broke.
pub(in crate::bench) fn saturate(
    target: &mut dyn Target,
    receivers: &mut Receivers,
    messages: u64,
    stop: impl Fn() -> bool,
) -> io::Result<Saturation> {
    let count = receivers.len() as u64;
    let mut received = vec![0u64; receivers.len()];
    let (mut sent, mut slowest, mut total) = (0, 0, 0u64);
    let start = receivers.now();
    let mut progress = start;
    loop {
        while sent < messages && sent - slowest < WINDOW && !stop() {
            target.trigger()?;
            sent += 1;
        }
        if total == sent * count {
            break;
        }
        let before = total;
        receivers.turn(|receiver, _, _| {
            total += 1;
            if let Some(count) = received.get_mut(receiver) {
                *count += 1;
            }
        })?;
        let now = receivers.now();
        if total > before {
            progress = now;
            slowest = received.iter().copied().min().unwrap_or(0);
        } else if now - progress > ROUND.as_nanos() as u64 {
            break;
        }
    }
    let seconds = (progress - start) as f64 / 1e9;
    Ok(Saturation {
        rate: total as f64 / seconds,
        lost: sent * count - total,
    })
}
