//! Fanfare beside its peers: the same work on the same bytes, in turns, on the same machine.
//!
//! `make bench-peers` fetches and builds the peers (versions are pinned), runs all contests, prints
//! a table of each, and writes `peers.json` and `peers.html`, or `peers-NAME.json` and `.html` with
//! `--only NAME`. A peer that cannot be had is said to be absent, with the reason.
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

use anyhow::{Context, Result, ensure};
use clap::Parser;
use contest::{Contest, Outcome};
use peers::Peers;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The names of all contests.
const CONTESTS: [&str; 15] = [
    "fix_parse_order",
    "fix_parse_snapshot",
    "fix_parse_order_validate",
    "fix_typed",
    "fix_round_trip",
    "fix_kept",
    "fan_out",
    "fast_simple",
    "fast_complex",
    "dds_round_trip_128",
    "dds_round_trip_8192",
    "dds_throughput",
    "dds_shm_round_trip_128",
    "dds_shm_round_trip_8192",
    "dds_shm_throughput",
];

/// Measures Fanfare beside its peers, in turns.
#[derive(Parser)]
struct Args {
    /// The program that is measured.
    #[arg(long, value_name = "FILE", default_value = "target/release/fanfare")]
    fanfare: PathBuf,
    /// The folder for `peers.json` and `peers.html`, or with `--only NAME` `peers-NAME.json` and
    /// `peers-NAME.html`.
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
    #[arg(long, value_name = "NAME", default_value = "", value_parser = prefix)]
    only: String,
}

impl Args {
    /// Returns the name of the report without its extension. A report of some contests does not
    /// replace that of all.
    fn report(&self) -> String {
        match self.only.as_str() {
            "" => "peers".to_owned(),
            only => format!("peers-{only}"),
        }
    }
}

/// Accepts what begins the name of a contest.
fn prefix(text: &str) -> Result<String, String> {
    match CONTESTS.iter().any(|name| name.starts_with(text)) {
        true => Ok(text.to_owned()),
        false => Err(format!("the contests are {}", CONTESTS.join(", "))),
    }
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
    ensure!(!outcomes.is_empty(), "there is no contest {}", args.only);
    let file = |ending: &str| args.out.join(args.report() + ending);
    let (json, html) = (file(".json"), file(".html"));
    std::fs::write(&json, format!("{:#}\n", report::json(&outcomes)))?;
    std::fs::write(&html, report::html(&outcomes))?;
    println!("{}\n{}", json.display(), html.display());
    let is_whole = outcomes.iter().all(Outcome::is_whole);
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

    fn parsed(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from([&["benches"][..], words].concat())
    }

    #[test]
    fn a_contest_that_is_unknown_is_wrong_usage() {
        let refused = parsed(&["--only", "fixparse"]).err().unwrap();
        assert_eq!(refused.exit_code(), 2);
        assert!(refused.to_string().contains("fix_parse_order, "));
    }

    #[test]
    fn some_contests_have_a_report_of_their_own() {
        let report = |words: &[&str]| parsed(words).unwrap().report();
        assert_eq!(report(&[]), "peers");
        assert_eq!(report(&["--only", "fast"]), "peers-fast");
    }

    #[test]
    fn a_document_has_the_tables_of_all_contests() {
        assert!(parsed(&["--docs", "a.md"]).is_ok_and(|args| args.only.is_empty()));
        assert!(parsed(&["--only", "fast"]).is_ok());
        assert!(parsed(&["--only", "fast", "--docs", "a.md"]).is_err());
    }
}
