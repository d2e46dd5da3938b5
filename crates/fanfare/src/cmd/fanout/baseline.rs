//! `fanfare fanout baseline`: what plain sockets do with the same bytes.

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::agent::Crew;
use fanfare_engine::idle::Idle;
use fanfare_engine::limits::raise_open_files;
use fanfare_engine::stop::Stop;
use fanfare_instruments::bench::fanout::{Raw, Rounds, sample_message};
use fanfare_instruments::figures::Figures;
use std::process::ExitCode;

use crate::cmd::bench::processors;
use crate::print::figures_out;
use crate::range::whole;

/// Options of `fanfare fanout baseline`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Plain loopback connections.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = whole::<usize>(1..=20_000))]
    consumers: usize,
    /// Messages, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    #[arg(value_parser = whole::<usize>(1..=1_000_000))]
    rounds: usize,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

/// Rounds that warm up and do not count.
const WARM_UP: usize = 100;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let wanted = 2 * args.consumers as u64 + 100;
    let files = raise_open_files(wanted)?;
    ensure!(
        files >= wanted,
        "{} connections need {wanted} open files, the system allows {files}",
        args.consumers
    );
    let mut figures = Figures::new("fanout baseline");
    let stop = Stop::on_interrupt()?;
    let (here, there) = processors()?;
    let (mut raw, agent, mut crowd) = Raw::new(args.consumers)?;
    let _ = agent.message().set(sample_message()?);
    let mut crew = Crew::new(Stop::new());
    crew.spawn(
        agent,
        if there.is_some() {
            Idle::Spin
        } else {
            Idle::Yield
        },
        there,
    )?;
    if let Some(cpu) = here {
        fanfare_engine::cpu::pin_to(cpu)?;
    }
    let mut rounds = Rounds::default();
    for round in 0..WARM_UP + args.rounds {
        if stop.is_raised() {
            break;
        }
        if round == WARM_UP {
            rounds = Rounds::default();
        }
        rounds.one(&mut raw, &mut crowd)?;
    }
    crew.stop().raise();
    crew.join()?;
    figures.count("consumers", args.consumers as u64);
    figures.count("lost", rounds.lost);
    for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
        figures.add(&format!("raw_median_{name}_us"), rounds.median_us(percent));
        figures.add(&format!("raw_last_{name}_us"), rounds.last_us(percent));
    }
    figures.set_ok(rounds.lost == 0);
    Ok(figures_out(&figures, args.json))
}
