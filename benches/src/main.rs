//! Fanfare beside its peers: the same work on the same bytes, in turns, on the same machine.
//!
//! `make bench-peers` fetches and builds the peers (versions are pinned), runs all contests, prints
//! a table of each, and writes `peers.json` and `peers.html`. A peer that cannot be had is said to
//! be absent, with the reason.
#![forbid(unsafe_code)]

mod contest;
mod dds;
mod dds_ends;
mod fan_out;
mod fast;
mod kept;
mod parse;
mod peers;
mod report;
mod round_trip;
mod settings;

use anyhow::{Context, Result};
use clap::Parser;
use contest::{Contest, Outcome};
use peers::Peers;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Measures Fanfare beside its peers, in turns.
#[derive(Parser)]
struct Args {
    /// The program that is measured.
    #[arg(long, value_name = "FILE", default_value = "target/release/fanfare")]
    fanfare: PathBuf,
    /// The folder for `peers.json` and `peers.html`.
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// The folder in which peers are built.
    #[arg(long, value_name = "DIR", default_value = "target/peers")]
    home: PathBuf,
    /// Turns of each contestant.
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// A Markdown document whose tables are replaced by those of this run of all contests, unless
    /// Fanfare missed turns.
    #[arg(long, value_name = "FILE", conflicts_with = "only")]
    docs: Option<PathBuf>,
    /// Only contests whose names begin so: fix_parse, fix_typed, fix_round_trip, fix_kept,
    /// fan_out, fast, dds.
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    std::fs::create_dir_all(&args.out).context("the folder for the report")?;
    let peers = Peers::new(&args.home, &args.fanfare)?;
    let mut outcomes = Vec::new();
    for contest in contests(&peers, &args.only)? {
        if contest.id.starts_with(&args.only) {
            let outcome = contest.run(args.rounds as usize);
            println!("{}", report::text(&outcome));
            outcomes.push(outcome);
        }
    }
    let (json, html) = (args.out.join("peers.json"), args.out.join("peers.html"));
    std::fs::write(&json, format!("{:#}\n", report::json(&outcomes)))?;
    std::fs::write(&html, report::html(&outcomes))?;
    println!("{}\n{}", json.display(), html.display());
    let is_whole = !outcomes.is_empty() && outcomes.iter().all(Outcome::is_whole);
    match &args.docs {
        Some(file) if is_whole => write_tables(file, &report::markdown(&outcomes))?,
        Some(file) => eprintln!("{} is left as it is: Fanfare missed turns", file.display()),
        None => {}
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn write_tables(file: &Path, tables: &str) -> Result<()> {
    let name = || file.display().to_string();
    let document = std::fs::read_to_string(file).with_context(name)?;
    let document = report::replaced(&document, tables);
    let document = document.with_context(|| format!("{}: no marks for tables", file.display()))?;
    std::fs::write(file, document).with_context(name)
}

fn contests(peers: &Peers, only: &str) -> Result<Vec<Contest>> {
    let mut all = parse::contests(peers)?;
    all.push(round_trip::contest(peers));
    all.push(kept::contest(peers));
    // Cyclone DDS and the other peers of these take minutes to build.
    let is_wanted = |name: &str| only.starts_with(name) || name.starts_with(only);
    if is_wanted("fan_out") {
        all.push(fan_out::contest(peers));
    }
    all.extend(fast::contests(peers)?);
    if is_wanted("dds") {
        all.extend(dds::contests(peers));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_tables_of_all_contests() {
        let parsed = |words: &[&str]| Args::try_parse_from([&["benches"][..], words].concat());
        assert!(parsed(&["--docs", "a.md"]).is_ok_and(|args| args.only.is_empty()));
        assert!(parsed(&["--only", "fast"]).is_ok());
        assert!(parsed(&["--only", "fast", "--docs", "a.md"]).is_err());
    }
}
