//! `fanfare bench book`: the cost of an update of a book, compared with other libraries' books.

use anyhow::{Context, Result, ensure};
use clap::Args as ClapArgs;
use fanfare_instruments::bench::book::{Options, Others, Shape, Streams, add_figures};
use fanfare_instruments::figures::{Figures, Printed};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::print::figures_out;
use crate::range::whole;

/// Options of `fanfare bench book`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Levels of a side at the start.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = whole::<u32>(50..=10_000))]
    levels: u32,
    /// Orders at the start.
    #[arg(long, value_name = "N", default_value_t = 20_000,
          value_parser = whole::<u32>(1_000..=1_000_000))]
    orders: u32,
    /// Levels of a side in the book of numbered levels.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<u32>(1..=1_000))]
    depth: u32,
    /// Operations that are measured: 45 % adds, 10 % changes, 40 % cancels, 5 % trades; nine of
    /// ten near the top.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200_000,
          value_parser = whole::<u32>(1_000..=10_000_000))]
    count: u32,
    /// The seed of the operations.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Runs of each book, interleaved; the figures are the minimum.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = whole::<u32>(1..=1000))]
    runs: u32,
    /// Program that measures these books beside those of hftbacktest and nautilus-model: `make
    /// bench-books` builds it. Without it, the comparison is with books of the standard library's
    /// maps alone.
    #[arg(long, value_name = "PROGRAM")]
    peers: Option<PathBuf>,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut figures = Figures::new("bench book");
    match &args.peers {
        Some(program) => figures.absorb("", &with_peers(program, args)?, &[]),
        None => {
            let options = args.options();
            let streams = Streams::new(options.shape, options.seed);
            let others = Others::default();
            add_figures(&mut figures, &streams, options, others)?;
        }
    }
    Ok(figures_out(&figures, args.json))
}

impl Args {
    fn options(&self) -> Options {
        Options {
            shape: Shape {
                levels: self.levels.into(),
                orders: self.orders as usize,
                depth: self.depth as usize,
                operations: self.count as usize,
            },
            seed: self.seed,
            rounds: self.runs,
        }
    }
}

/// Returns the figures of the program, which takes its numbers in this order.
fn with_peers(program: &Path, args: &Args) -> Result<Printed> {
    let numbers = [args.levels, args.orders, args.depth, args.count, args.runs];
    let output = Command::new(program)
        .args(numbers.map(|number| number.to_string()))
        .arg(args.seed.to_string())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        program.display(),
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    Printed::parse(&text).with_context(|| format!("{} printed no figures", program.display()))
}
