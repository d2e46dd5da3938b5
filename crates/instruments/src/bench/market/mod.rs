//! Market data as a service: from a datagram to the X of its subscribers, alternating with a raw
//! program that receives the same datagram and sends as many bytes; and the cost of sessions that
//! do not subscribe to it.

mod feed;
mod plant;
mod raw;
mod slow;

use std::cell::Cell;
use std::path::Path;

use fanfare_engine::agent::Agent;
use fanfare_engine::stop::Stop;
use fanfare_gateway::Idle;

use super::fanout::Receivers;
use super::fanout::orders::{Pairs, Subject as _};
use super::fanout::rounds::{Rounds, Target, compare};
use super::{BenchError, Processors, allow_files};
use crate::figures::Figures;
use crate::subscriber::Counts;
use feed::{Feed, group};
use plant::Plant;
use raw::RawAgent;
use slow::SlowOnes;

/// Rounds of warm-up, which do not count.
const WARM_UP: usize = 200;

/// Messages before the first round with slow clients: more than the buffers of the kernel and the
/// gateway's queue hold for one of them.
const BEHIND: u64 = 40_000;

const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p98", 98.0), ("p99", 99.0)];

/// The parameters of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct MarketBench {
    /// Datagrams through each, in alternation.
    pub rounds: usize,
    /// The processors of subscribers and gateway.
    pub processors: Processors,
}

impl MarketBench {
    /// Adds the figures of one subscriber: `raw_p50_us`, `p50_us`, `ratio_p50`, and of p99. They
    /// are medians over slices of 250 rounds, and a ratio is the median of the slices' own. The
    /// ratios of two alternating raw programs, `ratio_raw_p50` and `ratio_raw_p99`, are the noise
    /// of the measurement.
    ///
    /// # Errors
    /// A connection or the gateway fails.
    pub fn add_one(&self, figures: &mut Figures, stop: &Stop) -> Result<(), BenchError> {
        add(figures, "", &self.beside_raw(1, stop)?);
        Ok(())
    }

    /// Adds the figures of the last of many subscribers, compared with as many raw sends: the same
    /// with the prefix `last_`.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one).
    pub fn add_last(
        &self,
        figures: &mut Figures,
        subscribers: usize,
        stop: &Stop,
    ) -> Result<(), BenchError> {
        let rounds = self.beside_raw(subscribers, stop)?;
        figures.count("subscribers", subscribers as u64);
        add(figures, "last_", &rounds);
        Ok(())
    }

    /// Measures two gateways in alternation, which sleep in between: one has `sessions`, `wanting`
    /// of which subscribe to the instrument that changes, and the other these alone. Adds the times
    /// to the last of them, `alone_p50_us` and `among_p50_us`, and `one_of_1000_ratio`, the second
    /// to the first.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one).
    pub fn add_among(
        &self,
        figures: &mut Figures,
        (wanting, sessions): (usize, usize),
        stop: &Stop,
    ) -> Result<(), BenchError> {
        allow_connections(2 * (wanting + sessions))?;
        let start = |others| {
            let who = (wanting, others);
            Plant::start(who, Idle::Park, self.processors, Vec::new())
        };
        let pairs = Pairs::measure(self.processors, self.rounds, stop, |among| {
            start(if among {
                sessions.saturating_sub(wanting)
            } else {
                0
            })
        })?;
        figures.count("sessions", sessions as u64);
        pairs.add_times(figures, ("alone_p50_us", "among_p50_us"), 50.0);
        figures.add("one_of_1000_ratio", pairs.ratio(50.0));
        count_lost(figures, pairs.lost());
        figures.set_ok(figures.is_ok() && pairs.ratio(50.0).is_finite());
        Ok(())
    }

    /// Measures two gateways in alternation, which sleep in between: both have subscribers of the
    /// instrument that changes, and one has two more, for a total of `sessions`: one that never
    /// reads, whose changes are merged, and one that reads a thousand bytes per second, and is
    /// notified of the changes it misses. Both are behind before the first round. Adds
    /// `slow_ratio_p99` of the last of the others, and the counts of the two: their messages are
    /// read and checked at the end, unless `stop` is raised before.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one), or a message to the two was wrong, or the newest is missing.
    pub fn add_slow(
        &self,
        figures: &mut Figures,
        sessions: usize,
        stop: &Stop,
    ) -> Result<(), BenchError> {
        allow_connections(4 * sessions)?;
        let others = sessions.saturating_sub(2).max(1);
        let behind = (BEHIND, stop);
        let (mut without, ()) = Plant::start_behind(others, self.processors, behind, |_| Ok(()))?;
        if stop.is_raised() {
            return without.stop();
        }
        let (mut with, slow) =
            Plant::start_behind(others, self.processors, behind, SlowOnes::join)?;
        let (one, other) = self.in_turns(&mut without, &mut with, stop)?;
        figures.count("slow_sessions", sessions as u64);
        for (name, percent) in PERCENTILES {
            figures.add(&format!("slow_without_{name}_us"), one.slice_us(percent));
            figures.add(&format!("slow_with_{name}_us"), other.slice_us(percent));
        }
        for (name, percent) in PERCENTILES {
            let ratio = other.slice_ratio(&one, percent);
            figures.add(&format!("slow_ratio_{name}"), ratio);
        }
        lost(figures, &one, &other);
        if stop.is_raised() {
            slow.leave()?;
        } else {
            add_judged(figures, slow.judge(with.feed.newest())?);
        }
        without.stop()?;
        with.stop()
    }

    /// Measures two gateways in alternation, which sleep in between, one of which writes a log into
    /// `folder`, and two without a log. Adds the times of both to the last of `subscribers`,
    /// `log_off_p50_us` and `log_on_p50_us`, and `append_ratio_p50`, the second to the first; the
    /// same of p98 and p99; and `append_ratio_none_p50`, the noise of the measurement.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one).
    pub fn add_logged(
        &self,
        figures: &mut Figures,
        (subscribers, folder): (usize, &Path),
        stop: &Stop,
    ) -> Result<(), BenchError> {
        allow_connections(4 * subscribers)?;
        let starts = Cell::new(0);
        let start = |with: bool| {
            starts.set(starts.get() + 1);
            let folder = folder.join(starts.get().to_string());
            Plant::start_logged(subscribers, self.processors, with.then_some(&folder))
        };
        let [log, none] = Pairs::beside_noise(self.processors, self.rounds, stop, start)?;
        for (name, percent) in PERCENTILES {
            let names = ["off", "on"].map(|side| format!("log_{side}_{name}_us"));
            log.add_times(figures, (&names[0], &names[1]), percent);
        }
        for (name, percent) in PERCENTILES {
            figures.add(&format!("append_ratio_{name}"), log.ratio(percent));
            figures.add(&format!("append_ratio_none_{name}"), none.ratio(percent));
        }
        count_lost(figures, log.lost() + none.lost());
        figures.set_ok(figures.is_ok() && log.ratio(50.0).is_finite());
        Ok(())
    }

    /// Measures rounds of two gateways.
    fn in_turns(
        &self,
        one: &mut Plant,
        other: &mut Plant,
        stop: &Stop,
    ) -> Result<Pair, BenchError> {
        self.processors.pin_here()?;
        Ok(compare(
            (&mut one.feed, &mut one.busy),
            (&mut other.feed, &mut other.busy),
            (WARM_UP.min(self.rounds), self.rounds),
            || stop.is_raised(),
        )?)
    }

    /// Measures rounds of the raw program and of the gateway, and of two raw programs, all on one
    /// thread.
    fn beside_raw(&self, subscribers: usize, stop: &Stop) -> Result<[Pair; 2], BenchError> {
        allow_connections(4 * subscribers)?;
        let (agent, mut raw) = baseline(subscribers)?;
        let (again, mut same) = baseline(subscribers)?;
        let messages = [agent.message(), again.message()];
        let idle = match self.processors.are_two() {
            true => Idle::Spin,
            false => Idle::Park,
        };
        let guests: Vec<Box<dyn Agent>> = vec![Box::new(agent), Box::new(again)];
        let mut plant = Plant::start((subscribers, 0), idle, self.processors, guests)?;
        // The raw programs send the same bytes.
        let sample = plant.sample()?;
        for message in messages {
            let _ = message.set(sample.clone());
        }
        self.processors.pin_here()?;
        let rounds = (WARM_UP.min(self.rounds), self.rounds);
        let is_over = || stop.is_raised();
        let ours = (&mut plant.feed as &mut dyn Target, &mut plant.busy);
        let beside = compare((&mut raw.0, &mut raw.1), ours, rounds, is_over)?;
        let same = (&mut same.0 as &mut dyn Target, &mut same.1);
        let alike = compare((&mut raw.0, &mut raw.1), same, rounds, is_over)?;
        plant.stop()?;
        Ok([beside, alike])
    }
}

/// Rounds of two programs that alternated.
type Pair = (Rounds, Rounds);

/// Starts the raw program with this number of connections. Returns it, its feed and the receiving
/// ends of the connections.
fn baseline(count: usize) -> Result<(RawAgent, (Feed, Receivers)), BenchError> {
    let line = group()?;
    let (agent, far) = RawAgent::new(line, count)?;
    Ok((agent, (Feed::new(line)?, far)))
}

/// Open files besides those of the connections.
const OTHER_FILES: u64 = 200;

/// Raises the limit of open files for both ends of this many connections.
fn allow_connections(count: usize) -> Result<(), BenchError> {
    allow_files(2 * count as u64 + OTHER_FILES)
}

fn add(figures: &mut Figures, prefix: &str, [(raw, ours), (one, other)]: &[Pair; 2]) {
    for (name, percent) in PERCENTILES {
        figures.add(&format!("raw_{prefix}{name}_us"), raw.slice_us(percent));
        figures.add(&format!("{prefix}{name}_us"), ours.slice_us(percent));
    }
    for (name, percent) in PERCENTILES {
        let ratio = ours.slice_ratio(raw, percent);
        figures.add(&format!("ratio_{prefix}{name}"), ratio);
    }
    for (name, percent) in PERCENTILES {
        let ratio = other.slice_ratio(one, percent);
        figures.add(&format!("ratio_raw_{prefix}{name}"), ratio);
    }
    lost(figures, raw, ours);
    lost(figures, one, other);
}

/// Adds the counts of the two slow clients, which are behind in a valid measurement.
fn add_judged(figures: &mut Figures, [stopped, slow]: [Counts; 2]) {
    figures.count("stopped_snapshots", stopped.snapshots);
    figures.count("slow_skipped", slow.skipped);
    figures.count("slow_skipped_entries", slow.skipped_entries);
    let were_behind = stopped.snapshots > 1 && slow.skipped > 0;
    figures.set_ok(figures.is_ok() && were_behind);
}

/// Adds the number of lost messages.
fn lost(figures: &mut Figures, raw: &Rounds, ours: &Rounds) {
    count_lost(figures, raw.lost + ours.lost);
    figures.set_ok(figures.is_ok() && ours.last_us(50.0).is_finite());
}

fn count_lost(figures: &mut Figures, lost: u64) {
    let before = figures.value("lost").unwrap_or(0.0) as u64;
    figures.count("lost", before + lost);
    figures.set_ok(figures.is_ok() && lost == 0);
}
