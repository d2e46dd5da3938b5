//! The gateway compared with the baseline, and with one without a consumer that never reads.

use std::io;

use fanfare_engine::agent::{Agent, Crew};
use fanfare_engine::idle;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, Idle, SlowPolicy};

use super::orders::{Pairs, Subject};
use super::rounds::{Rounds, Target, add_figures, compare, saturate};
use super::sessions::{Producer, connect, connect_and_log_on, log_on, sample_message};
use super::{Raw, Receivers, WARM_UP};
use crate::bench::{BenchError, Processors, allow_files};
use crate::figures::{Figures, median};

/// Open files besides those of the consumers.
const OTHER_FILES: u64 = 100;

/// Measurements of a rate, of which the median counts.
pub(super) const TIMES: usize = 5;

/// The parameters of the benchmark.
#[derive(Debug, Clone, Copy)]
pub struct FanoutBench {
    /// Consumers, and plain connections of the baseline.
    pub consumers: usize,
    /// Fan-out workers of the gateway.
    pub workers: usize,
    /// The processors of consumers and gateway.
    pub processors: Processors,
}

/// A client that a gateway is measured with.
pub trait Watcher: Send {
    /// Ends it.
    ///
    /// # Errors
    /// It did not watch the gateway all the time.
    fn end(self) -> Result<(), BenchError>;
}

impl FanoutBench {
    /// Measures `rounds` messages through both, in alternation, and adds all figures.
    ///
    /// # Errors
    /// A connection or the gateway fails.
    pub fn add_latency(
        &self,
        figures: &mut Figures,
        rounds: usize,
        stop: &Stop,
    ) -> Result<(), BenchError> {
        self.beside_baseline(|raw, plain, plant| {
            let rounds = (WARM_UP.min(rounds), rounds);
            let ours = (&mut plant.producer as &mut dyn Target, &mut plant.receivers);
            let (raw, ours) = compare((raw, plain), ours, rounds, || stop.is_raised())?;
            add_figures(figures, self.consumers, &raw, &ours);
            Ok(())
        })
    }

    /// Measures the highest rate of `messages` messages through both, five times in alternation,
    /// and adds the medians. Returns whether anything was measured before `stop` was raised.
    ///
    /// # Errors
    /// As [`add_latency`](Self::add_latency).
    pub fn add_rates(
        &self,
        figures: &mut Figures,
        messages: u64,
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        self.beside_baseline(|raw, plain, plant| {
            let mut rates = (Vec::new(), Vec::new());
            let mut lost = 0;
            // The alternation and the median even out fluctuations of the machine.
            for _ in 0..TIMES {
                let of_raw = saturate(raw, plain, messages, || stop.is_raised())?;
                let (producer, receivers) = (&mut plant.producer, &mut plant.receivers);
                let ours = saturate(producer, receivers, messages, || stop.is_raised())?;
                lost += of_raw.lost + ours.lost;
                if stop.is_raised() {
                    // An interrupted pair may have measured one of the two only.
                    break;
                }
                rates.0.push(of_raw.rate);
                rates.1.push(ours.rate);
            }
            let measured = !rates.1.is_empty();
            let (raw, rate) = (median(rates.0), median(rates.1));
            figures.count("consumers", self.consumers as u64);
            figures.count("lost", lost);
            figures.add("raw_rate_per_s", raw);
            figures.add("rate_per_s", rate);
            figures.add("ratio_rate", rate / raw);
            figures.set_ok(lost == 0 && measured);
            Ok(measured)
        })
    }

    /// Measures two gateways in alternation, which sleep in between: one has a consumer that never
    /// reads and whose queue has filled with four times `messages` before the first round that
    /// counts. Adds all figures. Returns whether that queue was full.
    ///
    /// # Errors
    /// As [`add_latency`](Self::add_latency), or messages were lost before the first round.
    pub fn add_stalled(
        &self,
        figures: &mut Figures,
        policy: SlowPolicy,
        (rounds, messages): (usize, u64),
        stop: &Stop,
    ) -> Result<bool, BenchError> {
        self.allow_files_each(4)?;
        let mut config = self.config();
        config.slow_consumer.policy = policy;
        let mut without = self.start(&config, Vec::new())?;
        let mut with = self.start(&config, Vec::new())?;
        let _never_read = log_on(connect(with.gateway.consumers(), 1)?, "STALLED")?;
        self.processors.pin_here()?;
        for plant in [&mut without, &mut with] {
            let (producer, receivers) = (&mut plant.producer, &mut plant.receivers);
            let filled = saturate(producer, receivers, 4 * messages, || stop.is_raised())?;
            if filled.lost > 0 {
                let lost = format!("{} messages were lost before the first round", filled.lost);
                return Err(BenchError::Missing(lost));
            }
        }
        let (one, other) = compare(
            (&mut without.producer, &mut without.receivers),
            (&mut with.producer, &mut with.receivers),
            (WARM_UP.min(rounds), rounds),
            || stop.is_raised(),
        )?;
        let (dropped, cut_off) = (
            with.gateway.count("dropped"),
            with.gateway.count("slow_consumers"),
        );
        figures.count("consumers", self.consumers as u64);
        figures.count("lost", one.lost + other.lost);
        figures.count("stalled_dropped", dropped);
        figures.count("stalled_disconnected", cut_off);
        for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
            figures.add(&format!("without_last_{name}_us"), one.last_us(percent));
            figures.add(&format!("with_last_{name}_us"), other.last_us(percent));
            let ratio = other.last_us(percent) / one.last_us(percent);
            figures.add(&format!("ratio_stalled_last_{name}"), ratio);
        }
        let filled = dropped + cut_off > 0;
        figures.set_ok(one.lost + other.lost == 0 && filled);
        Ok(filled)
    }

    /// Measures two gateways in alternation, which sleep in between, one of which measures its
    /// stages; and two that do not, as the noise of the measurement. Adds the times to the last
    /// consumer without and with it, `off_last_p50_us` and `on_last_p50_us`; `ratio_on_last_p50`,
    /// the second to the first, and `ratio_none_last_p50`; the same of p99.
    ///
    /// # Errors
    /// As [`add_latency`](Self::add_latency).
    pub fn add_stages(
        &self,
        figures: &mut Figures,
        rounds: usize,
        stop: &Stop,
    ) -> Result<(), BenchError> {
        self.add_pairs(figures, (rounds, stop), |with| {
            let config = Config {
                stages: with,
                ..self.config()
            };
            self.start(&config, Vec::new())
        })
    }

    /// Measures two gateways in alternation, which sleep in between, one of which is monitored by
    /// the value that `watch` returns, until it is dropped; and two that are not. Adds the figures
    /// of [`add_stages`](Self::add_stages).
    ///
    /// # Errors
    /// As `watch`, [`Watcher::end`] and [`add_latency`](Self::add_latency).
    pub fn add_watched<W: Watcher>(
        &self,
        figures: &mut Figures,
        rounds: usize,
        stop: &Stop,
        watch: impl Fn(&Gateway) -> Result<W, BenchError>,
    ) -> Result<(), BenchError> {
        self.add_pairs(figures, (rounds, stop), |with| {
            let plant = self.start(&self.config(), Vec::new())?;
            let watcher = with.then(|| watch(&plant.gateway)).transpose()?;
            Ok(Watched { plant, watcher })
        })
    }

    fn add_pairs<S: Subject>(
        &self,
        figures: &mut Figures,
        (rounds, stop): (usize, &Stop),
        start: impl Fn(bool) -> Result<S, BenchError>,
    ) -> Result<(), BenchError> {
        self.allow_files_each(4)?;
        let [with, none] = Pairs::beside_noise(self.processors, rounds, stop, start)?;
        let lost = with.lost() + none.lost();
        figures.count("consumers", self.consumers as u64);
        figures.count("lost", lost);
        for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
            let names = ["off", "on"].map(|side| format!("{side}_last_{name}_us"));
            with.add_times(figures, (&names[0], &names[1]), percent);
            figures.add(&format!("ratio_on_last_{name}"), with.ratio(percent));
            figures.add(&format!("ratio_none_last_{name}"), none.ratio(percent));
        }
        figures.set_ok(lost == 0 && with.ratio(50.0).is_finite());
        Ok(())
    }

    /// Calls `measure` with the baseline, its receivers and the gateway, all on one thread.
    fn beside_baseline<T>(
        &self,
        measure: impl FnOnce(&mut Raw, &mut Receivers, &mut Plant) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.allow_files_each(4)?;
        let (mut raw, agent, mut plain) = Raw::new(self.consumers)?;
        let message = agent.message();
        let mut plant = self.start(&self.spinning(), vec![Box::new(agent)])?;
        // The baseline sends the same bytes.
        let _ = message.set(plant.sample()?);
        self.processors.pin_here()?;
        let measured = measure(&mut raw, &mut plain, &mut plant)?;
        plant.stop()?;
        Ok(measured)
    }

    /// Raises the limit of open files for this many of each consumer.
    pub(super) fn allow_files_each(&self, files: usize) -> Result<(), BenchError> {
        allow_files((files * self.consumers) as u64 + OTHER_FILES)
    }

    /// Returns a configuration with ports that the kernel chooses, all on one thread.
    fn config(&self) -> Config {
        let mut config = Config::default();
        config.producers.port = 0;
        config.consumers.port = 0;
        config.consumers.max_sessions = (self.consumers + 1).max(config.consumers.max_sessions);
        config.workers = self.workers;
        config.pin = self.processors.there.into_iter().collect();
        config
    }

    /// Returns the same for a gateway that does not sleep if it has a processor of its own.
    pub(super) fn spinning(&self) -> Config {
        let idle = if self.processors.are_two() {
            Idle::Spin
        } else {
            Idle::Park
        };
        Config {
            idle,
            ..self.config()
        }
    }

    fn start(&self, config: &Config, guests: Vec<Box<dyn Agent>>) -> Result<Plant, BenchError> {
        let gateway = Gateway::start_with(config, Stop::new(), guests)?;
        Plant::log_on(gateway, self.consumers)
    }
}

/// The gateway with all its sessions logged on.
pub(super) struct Plant {
    gateway: Gateway,
    producer: Marked,
    receivers: Receivers,
}

impl Plant {
    /// Logs on `consumers` sessions and one producer.
    pub(super) fn log_on(gateway: Gateway, consumers: usize) -> Result<Self, BenchError> {
        let cannot = |who: &str, error: io::Error| {
            BenchError::Missing(format!("{who} cannot log on: {error}"))
        };
        let receivers = connect_and_log_on(gateway.consumers(), consumers, "CONSUMER");
        let receivers = receivers.map_err(|e| cannot("consumers", e))?;
        let producer = Producer::log_on(gateway.producers());
        let producer = producer.map_err(|e| cannot("the producer", e))?;
        Ok(Self {
            gateway,
            producer: Marked { producer, began: 0 },
            receivers,
        })
    }

    /// Returns a message as the first consumer receives it, for the baseline to send.
    pub(super) fn sample(&mut self) -> Result<Vec<u8>, BenchError> {
        let mut sample = Vec::new();
        self.producer.trigger()?;
        self.receivers.each_has_one(|receiver, message| {
            if receiver == 0 {
                sample = message.to_vec();
            }
        })?;
        Ok(sample)
    }
}

impl Subject for Plant {
    fn ends(&mut self) -> (&mut dyn Target, &mut Receivers) {
        (&mut self.producer, &mut self.receivers)
    }

    fn stop(self) -> Result<(), BenchError> {
        // The gateway does not wait for Logouts of connections that are closed.
        drop((self.producer, self.receivers));
        self.gateway.stop().raise();
        self.gateway.join()?;
        Ok(())
    }
}

/// A gateway, and its monitor, if there is one.
struct Watched<W> {
    plant: Plant,
    watcher: Option<W>,
}

impl<W: Watcher> Subject for Watched<W> {
    fn ends(&mut self) -> (&mut dyn Target, &mut Receivers) {
        self.plant.ends()
    }

    fn stop(self) -> Result<(), BenchError> {
        self.watcher.map_or(Ok(()), Watcher::end)?;
        self.plant.stop()
    }
}

/// The target that sends a producer's marked message through the gateway.
struct Marked {
    producer: Producer,
    began: u64,
}

impl Target for Marked {
    fn trigger(&mut self) -> io::Result<()> {
        self.began = self.producer.send()?;
        Ok(())
    }

    fn began(&mut self) -> u64 {
        self.began
    }
}

/// Starts the baseline alone, on a thread of its own.
pub(super) fn baseline(
    consumers: usize,
    processors: Processors,
) -> Result<(Raw, Receivers, Crew), BenchError> {
    allow_files(2 * consumers as u64 + OTHER_FILES)?;
    let (raw, agent, receivers) = Raw::new(consumers)?;
    let _ = agent.message().set(sample_message()?);
    let mut crew = Crew::new(Stop::new());
    let idle = if processors.are_two() {
        idle::Idle::Spin
    } else {
        idle::Idle::Yield
    };
    crew.spawn(agent, idle, processors.there)?;
    processors.pin_here()?;
    Ok((raw, receivers, crew))
}

/// Measures the baseline alone: plain connections and the same bytes, on a thread of its own.
///
/// # Errors
/// A connection fails.
pub fn add_baseline(
    figures: &mut Figures,
    consumers: usize,
    rounds: usize,
    processors: Processors,
    stop: &Stop,
) -> Result<(), BenchError> {
    let (mut raw, mut receivers, crew) = baseline(consumers, processors)?;
    let mut of_raw = Rounds::default();
    for round in 0..WARM_UP + rounds {
        if stop.is_raised() {
            break;
        }
        if round == WARM_UP {
            of_raw = Rounds::default();
        }
        of_raw.one(&mut raw, &mut receivers)?;
    }
    crew.stop().raise();
    crew.join()?;
    figures.count("consumers", consumers as u64);
    figures.count("lost", of_raw.lost);
    of_raw.add_times(figures, "raw_");
    figures.set_ok(of_raw.lost == 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::tag;

    /// Returns a message with other digits in the values that tell the time and the sum.
    fn without_times(message: &[u8]) -> String {
        let text = String::from_utf8_lossy(message);
        let times = [tag::SENDING_TIME, tag::CHECK_SUM].map(|tag| format!("{tag}="));
        let masked = text.split('\x01').map(|field| {
            match times.iter().any(|time| field.starts_with(time.as_str())) {
                true => field.replace(|c: char| c.is_ascii_digit(), "0"),
                false => field.to_owned(),
            }
        });
        masked.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn the_baseline_alone_sends_what_the_gateway_does() {
        let bench = FanoutBench {
            consumers: 1,
            workers: 1,
            processors: Processors::default(),
        };
        let mut plant = bench.start(&bench.config(), Vec::new()).unwrap();
        let sample = plant.sample().unwrap();
        plant.stop().unwrap();
        assert_eq!(
            without_times(&sample_message().unwrap()),
            without_times(&sample)
        );
    }
}
