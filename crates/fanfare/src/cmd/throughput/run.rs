//! `fanfare throughput run`: both sides as two processes, for each number of sessions.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::throughput::{MOST_RUNS, Orders, Plan, Summary};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use super::options::{Load, Store, sessions};
use super::pair;
use crate::cmd::fast::lines::refuse_input;
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::range::{seconds, whole};
use crate::scratch::Scratch;

/// Options of `fanfare throughput run`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Numbers of sessions, one row of the table each.
    #[arg(
        long,
        value_name = "N,N,…",
        default_value = "1,2,5,10,50,100,200",
        value_delimiter = ',',
        value_parser = sessions()
    )]
    sessions: Vec<usize>,
    /// Runs of each, interleaved; the table has their mean.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u64>(1..=MOST_RUNS))]
    runs: u64,
    /// Measure each number of sessions for at least this long, in further runs, up to 1000 in all;
    /// 0: --runs only.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds(3600.0))]
    at_least: f64,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    store: Store,
    /// Write the table as a chart.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    if let (Some(svg), Some(orders)) = (&args.svg, &args.load.orders) {
        refuse_input(svg, &[orders])?;
    }
    // A malformed line is reported before anything is started.
    let orders = args.load.orders()?;
    let scratch = match &args.store.store {
        Some(folder) if !args.store.is_none() => std::fs::create_dir_all(folder)
            .and_then(|()| Scratch::inside(folder, "throughput"))
            .with_context(|| format!("cannot make a folder in {}", folder.display())),
        _ => Scratch::new("throughput").context("cannot make a folder for the journals"),
    }?;
    let mut summary = Summary::new(&args.sessions, !args.store.is_none());
    let plan = Plan {
        runs: args.runs,
        at_least: args.at_least,
    };
    let talks = std::io::stderr().is_terminal();
    let outcome = summary.measure(plan, &stop, |run, row, sessions| {
        let base = scratch.file(&row.to_string());
        let counted = counted(sessions as u64, "session");
        let outcome = pair::run(sessions, &args.load, &args.store, &orders, &base, &stop)
            .with_context(|| format!("run {run} with {counted}"))?;
        if let Some(outcome) = outcome.filter(|_| talks) {
            note!("run {run}: {counted}, {:.0} messages/s", outcome.rate);
        }
        Ok::<_, anyhow::Error>(outcome)
    });
    let complete = matches!(outcome, Ok(true));
    let code = report(args, &orders, &summary, complete)?;
    outcome.map(|_| code)
}

fn report(args: &Args, orders: &Orders, summary: &Summary, complete: bool) -> Result<ExitCode> {
    let messages = args.load.messages;
    let sent = summary.sessions * messages;
    // True if the journals hold every message of every run.
    let mut sessions = args.sessions.iter();
    let holds = sessions.all(|&sessions| args.store.holds(orders, messages, sessions));
    let ok = complete && summary.is_whole(messages, holds);
    let mut figures = Figures::new("throughput run");
    summary.add_to(&mut figures);
    figures.set_ok(ok);
    if args.load.json {
        say!("{}", figures.to_json());
    } else {
        say!("{}", summary.table());
        say!(
            "{}, {} sent, {} lost, {} wrong{}",
            counted(summary.runs, "run"),
            counted(sent, "order"),
            summary.lost,
            summary.wrong,
            summary.persisted.map_or_else(
                || "; nothing was kept".to_owned(),
                |found| format!("; {found} found in the journals afterwards")
            )
        );
        if summary.rows.len() > 1 && summary.ratio().is_finite() {
            say!("last row to first: {:.2}", summary.ratio());
        }
    }
    if !complete {
        note!("not all runs were made: the report is of those that were");
    }
    // The figures are printed first: a chart that cannot be written costs none of them.
    if let Some(path) = &args.svg {
        std::fs::write(path, summary.chart())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(exit_code(ok))
}
