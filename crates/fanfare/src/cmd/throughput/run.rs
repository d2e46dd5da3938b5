//! `fanfare throughput run`: both sides as two processes, for each number of sessions.

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::throughput::{Orders, Row, Summary};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use super::options::{Load, Store, sessions};
use super::pair;
use crate::print::{counted, note, say};
use crate::range::whole;
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
    /// Runs of each; the table has their mean. They take turns.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = whole::<u64>(1..=MOST_RUNS))]
    runs: u64,
    /// Measure each number of sessions for at least this long, in further runs, up to 1000 in all;
    /// 0: --runs and no more.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
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
    // A line that is wrong is told before anything is started.
    let orders = args.load.orders()?;
    let scratch = match &args.store.store {
        Some(folder) if !args.store.is_none() => std::fs::create_dir_all(folder)
            .and_then(|()| Scratch::inside(folder, "throughput"))
            .with_context(|| format!("cannot make a folder in {}", folder.display())),
        _ => Scratch::new("throughput").context("cannot make a folder for the journals"),
    }?;
    let rows = args.sessions.iter().map(|&sessions| Row {
        sessions,
        ..Row::default()
    });
    let mut summary = Summary {
        rows: rows.collect(),
        persisted: (!args.store.is_none()).then_some(0),
        ..Summary::default()
    };
    let outcome = measure(args, &orders, &scratch, &stop, &mut summary);
    let complete = matches!(outcome, Ok(true));
    let code = report(args, &summary, complete)?;
    outcome.map(|_| code)
}

/// Most runs of a number of sessions.
const MOST_RUNS: u64 = 1000;

/// Parses seconds from 0 to an hour.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "no number of seconds".to_owned())?;
    match (0.0..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("must be 0 to 3600".to_owned()),
    }
}

/// All runs; false if it was interrupted. What was measured before is in `summary` in any case.
fn measure(
    args: &Args,
    orders: &Orders,
    scratch: &Scratch,
    stop: &Stop,
    summary: &mut Summary,
) -> Result<bool> {
    let talks = std::io::stderr().is_terminal();
    for run in 1..=MOST_RUNS {
        let wants = |row: &Row| run <= args.runs || row.measured() < args.at_least;
        if !summary.rows.iter().any(wants) {
            break;
        }
        for (index, &sessions) in args.sessions.iter().enumerate() {
            if stop.is_raised() {
                return Ok(false);
            }
            if !summary.rows.get(index).is_some_and(wants) {
                continue;
            }
            let base = scratch.file(&index.to_string());
            let outcome = pair::run(sessions, &args.load, &args.store, orders, &base, stop)
                .with_context(|| {
                    format!("run {run} with {}", counted(sessions as u64, "session"))
                })?;
            let Some(outcome) = outcome else {
                return Ok(false);
            };
            if talks {
                note!(
                    "run {run}: {}, {:.0} messages/s",
                    counted(sessions as u64, "session"),
                    outcome.rate
                );
            }
            summary.add(index, &outcome);
        }
    }
    Ok(true)
}

/// Whether no journal gives anything up.
fn holds_all(args: &Args) -> bool {
    let mut all = args.sessions.iter();
    all.all(|&sessions| args.store.holds(args.load.messages, sessions))
}

fn report(args: &Args, summary: &Summary, complete: bool) -> Result<ExitCode> {
    let sent = summary.sessions * args.load.messages;
    let kept = match summary.persisted {
        Some(persisted) if holds_all(args) => persisted == sent,
        _ => true,
    };
    let ok = complete && summary.lost == 0 && summary.wrong == 0 && kept;
    let mut figures = Figures::new("throughput run");
    summary.add_to(&mut figures);
    figures.set_ok(ok);
    if let Some(path) = &args.svg {
        std::fs::write(path, summary.chart())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.load.json {
        say!("{}", figures.to_json());
    } else {
        say!("{}", summary.table());
        say!(
            "{} runs, {sent} orders sent, {} lost, {} wrong{}",
            summary.runs,
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
    Ok(if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
