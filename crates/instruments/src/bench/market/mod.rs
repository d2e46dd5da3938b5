//! Market data as a service: from a datagram to the X of its subscribers, in turns with a raw
//! program that receives the same datagram and sends as many bytes; and what the sessions cost
//! that do not want it.

mod feed;
mod plant;
mod raw;

use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_gateway::Idle;

use super::fanout::rounds::{Rounds, compare};
use super::{BenchError, Processors};
use crate::figures::Figures;
use feed::{Feed, group};
use plant::Plant;
use raw::RawAgent;

/// Rounds that warm up and do not count.
const WARM_UP: usize = 200;

/// What is measured, and where.
#[derive(Debug, Clone, Copy)]
pub struct MarketBench {
    /// Datagrams through each, in turns.
    pub rounds: usize,
    /// Where subscribers and gateway run.
    pub processors: Processors,
}

impl MarketBench {
    /// Adds the figures of one subscriber: `raw_p50_us`, `p50_us`, `ratio_p50`, and of p99.
    ///
    /// # Errors
    /// Connections or the gateway cannot be had, or break.
    pub fn add_one(&self, figures: &mut Figures, stop: &Stop) -> Result<(), BenchError> {
        let (raw, ours) = self.beside_raw(1, stop)?;
        add(figures, "", &raw, &ours);
        Ok(())
    }

    /// Adds the figures of the last of many subscribers, beside as many raw sends: the same with
    /// `last_` in front.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one).
    pub fn add_last(
        &self,
        figures: &mut Figures,
        subscribers: usize,
        stop: &Stop,
    ) -> Result<(), BenchError> {
        let (raw, ours) = self.beside_raw(subscribers, stop)?;
        figures.count("subscribers", subscribers as u64);
        add(figures, "last_", &raw, &ours);
        Ok(())
    }

    /// Measures two gateways in turns, asleep in between: one has `sessions`, `wanting` of which
    /// want the instrument that changes, and the other these alone. Adds the times to the last of
    /// them, `alone_p50_us` and `among_p50_us`, and `one_of_1000_ratio`, the second to the first.
    ///
    /// # Errors
    /// As [`add_one`](Self::add_one).
    pub fn add_among(
        &self,
        figures: &mut Figures,
        (wanting, sessions): (usize, usize),
        stop: &Stop,
    ) -> Result<(), BenchError> {
        raise_limit(2 * (wanting + sessions))?;
        let start = |others| {
            let who = (wanting, others);
            Plant::start(who, Idle::Park, self.processors, Vec::new())
        };
        let mut alone = start(0)?;
        let mut among = start(sessions.saturating_sub(wanting))?;
        self.processors.pin_here()?;
        let (one, other) = compare(
            (&mut alone.feed, &mut alone.busy),
            (&mut among.feed, &mut among.busy),
            (WARM_UP.min(self.rounds), self.rounds),
            || stop.is_raised(),
        )?;
        figures.count("sessions", sessions as u64);
        figures.add("alone_p50_us", one.last_us(50.0));
        figures.add("among_p50_us", other.last_us(50.0));
        let ratio = other.last_us(50.0) / one.last_us(50.0);
        figures.add("one_of_1000_ratio", ratio);
        lost(figures, &one, &other);
        alone.stop()?;
        among.stop()
    }

    /// Rounds of the raw program and of the gateway, on one thread.
    fn beside_raw(&self, subscribers: usize, stop: &Stop) -> Result<(Rounds, Rounds), BenchError> {
        raise_limit(4 * subscribers)?;
        let line = group()?;
        let (agent, mut far) = RawAgent::new(line, subscribers)?;
        let message = agent.message();
        let idle = match self.processors.are_two() {
            true => Idle::Spin,
            false => Idle::Park,
        };
        let guests: Vec<Box<dyn fanfare_engine::agent::Agent>> = vec![Box::new(agent)];
        let mut plant = Plant::start((subscribers, 0), idle, self.processors, guests)?;
        let mut raw = Feed::new(line)?;
        // The raw program sends the same bytes.
        let _ = message.set(plant.sample()?);
        self.processors.pin_here()?;
        let rounds = compare(
            (&mut raw, &mut far),
            (&mut plant.feed, &mut plant.busy),
            (WARM_UP.min(self.rounds), self.rounds),
            || stop.is_raised(),
        )?;
        plant.stop()?;
        Ok(rounds)
    }
}

fn raise_limit(connections: usize) -> Result<(), BenchError> {
    let wanted = 2 * connections as u64 + 200;
    let files = raise_open_files(wanted)?;
    match files >= wanted {
        true => Ok(()),
        false => Err(BenchError::Missing(format!(
            "{wanted} open files are needed, the system allows {files}"
        ))),
    }
}

fn add(figures: &mut Figures, prefix: &str, raw: &Rounds, ours: &Rounds) {
    let percentiles = [("p50", 50.0), ("p99", 99.0)];
    for (name, percent) in percentiles {
        figures.add(&format!("raw_{prefix}{name}_us"), raw.last_us(percent));
        figures.add(&format!("{prefix}{name}_us"), ours.last_us(percent));
    }
    for (name, percent) in percentiles {
        let ratio = ours.last_us(percent) / raw.last_us(percent);
        figures.add(&format!("ratio_{prefix}{name}"), ratio);
    }
    lost(figures, raw, ours);
}

/// Adds to the messages that did not come.
fn lost(figures: &mut Figures, raw: &Rounds, ours: &Rounds) {
    let lost = raw.lost + ours.lost;
    let before = figures.value("lost").unwrap_or(0.0) as u64;
    figures.count("lost", before + lost);
    figures.set_ok(figures.is_ok() && lost == 0 && ours.last_us(50.0).is_finite());
}
