//! `fanfare bench fanout`: one message to every consumer, through the gateway and by plain sends,
//! in turns.

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::agent::Agent;
use fanfare_engine::cpu;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, Idle, SlowPolicy};
use fanfare_instruments::bench::fanout::{
    Crowd, Producer, Raw, Target, add_figures, compare, connect, log_on, saturate,
};
use fanfare_instruments::figures::{Figures, median};
use std::io;
use std::process::ExitCode;

use super::processors;
use crate::print::{figures_out, note};
use crate::range::whole;

/// Options of `fanfare bench fanout`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Consumers, and plain connections of the baseline.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=20_000))]
    consumers: usize,
    /// Messages through each, in turns.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Instead: as many messages a second as go through.
    #[arg(long)]
    saturate: bool,
    /// Messages of --saturate.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    #[arg(value_parser = whole::<u64>(1..=1_000_000))]
    messages: u64,
    /// Instead: the other consumers' latency with one more that never reads, against a gateway
    /// without one; under this policy.
    #[arg(long, value_name = "POLICY", value_enum, conflicts_with = "saturate")]
    stalled: Option<Stalled>,
    /// Fan-out workers of the gateway.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>(1..=64))]
    workers: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// What happens to the consumer that never reads.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Stalled {
    Drop,
    Disconnect,
}

/// Rounds that warm up and do not count.
const WARM_UP: usize = 100;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let files = raise_open_files(4 * args.consumers as u64 + 200)?;
    ensure!(
        files >= 4 * args.consumers as u64 + 100,
        "{} consumers need more open files than the {files} that the system allows",
        args.consumers
    );
    let stop = Stop::on_interrupt()?;
    let (here, there) = processors()?;
    let figures = Figures::new("bench fanout");
    if let Some(policy) = args.stalled {
        let figures = stalled(args, policy, figures, (here, there), &stop)?;
        return Ok(figures_out(&figures, args.json));
    }
    let (mut raw, agent, mut plain) = Raw::new(args.consumers)?;
    let message = agent.message();
    let mut config = plant_config(args, there);
    config.idle = if there.is_some() {
        Idle::Spin
    } else {
        Idle::Park
    };
    let mut plant = Plant::start(args, &config, vec![Box::new(agent)])?;
    // The baseline sends the same bytes.
    let _ = message.set(plant.sample()?);
    if let Some(cpu) = here {
        cpu::pin_to(cpu)?;
    }
    let figures = if args.saturate {
        saturation(args, figures, &mut plant, (&mut raw, &mut plain), &stop)?
    } else {
        let rounds = (WARM_UP.min(args.rounds), args.rounds);
        let raw = (&mut raw as &mut dyn Target, &mut plain);
        let Plant {
            producer, crowd, ..
        } = &mut plant;
        let other = (producer as &mut dyn Target, crowd);
        let (raw, other) = compare(raw, other, rounds, || stop.is_raised())?;
        add_figures(figures, args.consumers, &raw, &other)
    };
    plant.gateway.stop().raise();
    plant.gateway.join()?;
    Ok(figures_out(&figures, args.json))
}

/// The gateway with everybody logged on.
struct Plant {
    gateway: Gateway,
    producer: Marked,
    crowd: Crowd,
}

impl Plant {
    fn start(args: &Args, config: &Config, guests: Vec<Box<dyn Agent>>) -> Result<Self> {
        let gateway = Gateway::start_with(config, Stop::new(), guests)?;
        let streams = connect(gateway.consumers(), args.consumers)?;
        let crowd = log_on(streams, "CONSUMER").context("consumers cannot log on")?;
        let producer =
            Producer::log_on(gateway.producers()).context("the producer cannot log on")?;
        Ok(Self {
            gateway,
            producer: Marked { producer, began: 0 },
            crowd,
        })
    }

    /// A message as the first consumer gets it, for the baseline to send.
    fn sample(&mut self) -> Result<Vec<u8>> {
        let mut sample = Vec::new();
        let mut count = 0;
        self.producer.trigger()?;
        let until = self.crowd.now() + 1_000_000_000;
        while count < self.crowd.len() {
            self.crowd.turn(|member, message, _| {
                count += 1;
                if member == 0 {
                    sample = message.to_vec();
                }
            })?;
            ensure!(self.crowd.now() < until, "the gateway does not fan out");
        }
        Ok(sample)
    }
}

/// Ports that the kernel picks, all on one thread.
fn plant_config(args: &Args, cpu: Option<usize>) -> Config {
    let mut config = Config::default();
    config.producers.port = 0;
    config.consumers.port = 0;
    config.consumers.max_sessions = (args.consumers + 1).max(config.consumers.max_sessions);
    config.workers = args.workers;
    config.pin = cpu.into_iter().collect();
    config
}

/// Two gateways in turns, asleep between: one has a consumer that never reads and whose queue
/// has filled before the first round that counts.
fn stalled(
    args: &Args,
    policy: Stalled,
    mut figures: Figures,
    (here, there): (Option<usize>, Option<usize>),
    stop: &Stop,
) -> Result<Figures> {
    let mut config = plant_config(args, there);
    config.slow_consumer.policy = match policy {
        Stalled::Drop => SlowPolicy::Drop,
        Stalled::Disconnect => SlowPolicy::Disconnect,
    };
    let mut without = Plant::start(args, &config, Vec::new())?;
    let mut with = Plant::start(args, &config, Vec::new())?;
    let _never_read = log_on(connect(with.gateway.consumers(), 1)?, "STALLED")?;
    if let Some(cpu) = here {
        cpu::pin_to(cpu)?;
    }
    for plant in [&mut without, &mut with] {
        let (producer, crowd) = (&mut plant.producer, &mut plant.crowd);
        let filled = saturate(producer, crowd, 4 * args.messages, || stop.is_raised())?;
        ensure!(
            filled.lost == 0,
            "{} messages were lost before the first round",
            filled.lost
        );
    }
    let (one, other) = (&mut without, &mut with);
    let (one, other) = compare(
        (&mut one.producer, &mut one.crowd),
        (&mut other.producer, &mut other.crowd),
        (WARM_UP.min(args.rounds), args.rounds),
        || stop.is_raised(),
    )?;
    figures.count("consumers", args.consumers as u64);
    figures.count("lost", one.lost + other.lost);
    figures.count("stalled_dropped", with.gateway.count("dropped"));
    figures.count("stalled_disconnected", with.gateway.count("slow_consumers"));
    for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
        figures.add(&format!("without_last_{name}_us"), one.last_us(percent));
        figures.add(&format!("with_last_{name}_us"), other.last_us(percent));
        let ratio = other.last_us(percent) / one.last_us(percent);
        figures.add(&format!("ratio_stalled_last_{name}"), ratio);
    }
    let noticed = with.gateway.count("dropped") + with.gateway.count("slow_consumers") > 0;
    if !noticed {
        note!("the queue of the consumer that never reads did not fill");
    }
    figures.set_ok(one.lost + other.lost == 0 && noticed);
    Ok(figures)
}

/// Through the gateway: a producer's marked message.
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

fn saturation(
    args: &Args,
    mut figures: Figures,
    plant: &mut Plant,
    (raw, plain): (&mut Raw, &mut Crowd),
    stop: &Stop,
) -> Result<Figures> {
    let mut rates = (Vec::new(), Vec::new());
    let mut lost = 0;
    note!(
        "five times {} messages, plain and through the gateway",
        args.messages
    );
    // In turns, and the median of five: the machine's moods meet both.
    for _ in 0..5 {
        let of_raw = saturate(raw, plain, args.messages, || stop.is_raised())?;
        let (producer, crowd) = (&mut plant.producer, &mut plant.crowd);
        let ours = saturate(producer, crowd, args.messages, || stop.is_raised())?;
        lost += of_raw.lost + ours.lost;
        if stop.is_raised() {
            // What was cut short may have met only one of the two.
            break;
        }
        rates.0.push(of_raw.rate);
        rates.1.push(ours.rate);
    }
    let measured = !rates.1.is_empty();
    if !measured {
        note!("stopped before the first of five was measured");
    }
    let (raw, rate) = (median(rates.0), median(rates.1));
    figures.count("consumers", args.consumers as u64);
    figures.count("lost", lost);
    figures.add("raw_rate_per_s", raw);
    figures.add("rate_per_s", rate);
    figures.add("ratio_rate", rate / raw);
    figures.set_ok(lost == 0 && measured);
    Ok(figures)
}
