//! `fanfare bench fanout`: one message to every consumer, through the gateway and by plain sends,
//! in turns.

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::cpu;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_gateway::{Config, Gateway, Idle};
use fanfare_latency::bench::fanout::{
    Crowd, Producer, Raw, RawAgent, Target, add_figures, compare, connect, log_on, saturate,
};
use fanfare_latency::figures::Figures;
use std::io;
use std::process::ExitCode;

use super::processors;
use crate::print::figures_out;

/// Options of `fanfare bench fanout`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Consumers, and plain connections of the baseline.
    #[arg(long, value_name = "N", default_value_t = 200)]
    consumers: usize,
    /// Messages through each, in turns.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    rounds: usize,
    /// Instead: as many messages a second as go through.
    #[arg(long)]
    saturate: bool,
    /// Messages of --saturate.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    messages: u64,
    /// Fan-out workers of the gateway.
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Rounds that warm up and do not count.
const WARM_UP: usize = 100;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(
        (1..=20_000).contains(&args.consumers),
        "--consumers must be 1 to 20000"
    );
    ensure!(
        (1..=1_000_000).contains(&args.rounds),
        "--rounds must be 1 to 1000000"
    );
    let files = raise_open_files(4 * args.consumers as u64 + 100)?;
    ensure!(
        files >= 4 * args.consumers as u64 + 100,
        "{} consumers need more open files than the {files} that the system allows",
        args.consumers
    );
    let stop = Stop::on_interrupt()?;
    let (here, there) = processors()?;
    let figures = Figures::new("bench fanout");
    let (mut raw, agent, mut plain) = Raw::new(args.consumers)?;
    let message = agent.message();
    let mut plant = Plant::start(args, there, agent)?;
    // The baseline sends the same bytes.
    let _ = message.set(plant.sample()?);
    if let Some(cpu) = here {
        cpu::pin_to(cpu)?;
    }
    let figures = if args.saturate {
        saturation(args, figures, &mut plant, (&mut raw, &mut plain))?
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
    fn start(args: &Args, cpu: Option<usize>, guest: RawAgent) -> Result<Self> {
        let mut config = Config::default();
        config.producers.port = 0;
        config.consumers.port = 0;
        config.consumers.max_sessions = args.consumers.max(config.consumers.max_sessions);
        config.workers = args.workers;
        config.idle = if cpu.is_some() {
            Idle::Spin
        } else {
            Idle::Park
        };
        config.pin = cpu.into_iter().collect();
        let gateway = Gateway::start_with(&config, Stop::new(), vec![Box::new(guest)])?;
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
) -> Result<Figures> {
    let mut rates = (Vec::new(), Vec::new());
    let mut lost = 0;
    // In turns, and the median of five: the machine's moods meet both.
    for _ in 0..5 {
        let of_raw = saturate(raw, plain, args.messages)?;
        let ours = saturate(&mut plant.producer, &mut plant.crowd, args.messages)?;
        rates.0.push(of_raw.rate);
        rates.1.push(ours.rate);
        lost += of_raw.lost + ours.lost;
    }
    let (raw, rate) = (median(rates.0), median(rates.1));
    figures.count("consumers", args.consumers as u64);
    figures.count("lost", lost);
    figures.add("raw_rate_per_s", raw);
    figures.add("rate_per_s", rate);
    figures.add("ratio_rate", rate / raw);
    figures.set_ok(lost == 0);
    Ok(figures)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
