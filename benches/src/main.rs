//! Fanfare beside its peers: the same work on the same bytes, in turns, on the same machine.
//!
//! `make bench-peers` fetches and builds the peers (versions are pinned), runs all contests, prints
//! a table of each, and writes `peers.json` and `peers.html`, or `peers-NAME.json` and `.html` with
//! `--only NAME`, after each contest. A peer that cannot be had is said to be absent, with the
//! reason.
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
use fanfare_engine::stop::Stop;
use peers::Peers;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The names of all contests.
const CONTESTS: [&str; 16] = [
    "fix_parse_order",
    "fix_parse_snapshot",
    "fix_parse_order_validate",
    "fix_typed",
    "fix_round_trip",
    "fix_round_trip_awake",
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
    /// A Markdown document whose tables are replaced by those of this run, or with `--only NAME` by
    /// those of its contests, unless Fanfare missed turns.
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
    /// Only contests whose names begin so: fix_parse, fix_typed, fix_round_trip, fix_kept,
    /// fan_out, fast, dds.
    #[arg(long, value_name = "NAME", default_value = "", value_parser = prefix)]
    only: String,
}

impl Args {
    /// Returns the name of the report without its extension. Some contests have a report of their
    /// own, so that they do not replace the report of all contests.
    fn report(&self) -> String {
        match self.only.as_str() {
            "" => "peers".to_owned(),
            only => format!("peers-{only}"),
        }
    }

    /// Returns the files of the report: JSON, and a page.
    fn files(&self) -> [PathBuf; 2] {
        [".json", ".html"].map(|ending| self.out.join(self.report() + ending))
    }

    /// Writes the report of these contests.
    fn write(&self, outcomes: &[Outcome]) -> Result<()> {
        let [json, html] = self.files();
        std::fs::write(json, format!("{:#}\n", report::json(outcomes)))?;
        std::fs::write(html, report::html(outcomes))?;
        Ok(())
    }

    /// Writes the tables of these contests into the document.
    fn write_tables(&self, file: &Path, outcomes: &[Outcome]) -> Result<()> {
        let name = || file.display().to_string();
        let document = std::fs::read_to_string(file).with_context(name)?;
        let document = match self.only.as_str() {
            "" => report::replaced(&document, outcomes),
            _ => report::renewed(&document, outcomes),
        };
        let document = document.with_context(|| format!("{}: no marks for tables", name()))?;
        std::fs::write(file, document).with_context(name)
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
    let mut contests = contests(&peers, &args.only)?;
    contests.retain(|contest| contest.id.starts_with(&args.only));
    ensure!(!contests.is_empty(), "there is no contest {}", args.only);
    // An interrupt ends the program until here, and the contests from here on.
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let mut outcomes = Vec::new();
    for contest in contests {
        let Some(outcome) = contest.run(args.rounds as usize, &stop) else {
            eprintln!("interrupted after {} contests", outcomes.len());
            return Ok(ExitCode::FAILURE);
        };
        println!("{}", report::text(&outcome));
        outcomes.push(outcome);
        args.write(&outcomes)?;
    }
    let [json, html] = args.files();
    println!("{}\n{}", json.display(), html.display());
    let is_whole = outcomes.iter().all(Outcome::is_whole);
    match &args.docs {
        Some(file) if is_whole => args.write_tables(file, &outcomes)?,
        Some(file) => eprintln!("{} is left as it is: Fanfare missed turns", file.display()),
        None => {}
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn contests(peers: &Peers, only: &str) -> Result<Vec<Contest>> {
    let mut all = parse::contests(peers)?;
    all.extend(round_trip::contests(peers));
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
    use crate::contest::Contestant;

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
    fn some_contests_replace_their_tables_of_a_document_alone() {
        let folder = std::env::temp_dir().join(format!("fanfare-benches-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("document.md");
        let outcomes = |title| {
            let ours = Contestant::new("Fanfare", "", || Ok(vec![1.0]));
            let held = Contest::of_a_test(title, vec![ours]).run(1, &Stop::new());
            Vec::from_iter(held)
        };
        std::fs::write(&file, [report::BEGIN, report::END].concat()).unwrap();
        let all = parsed(&["--docs", "document.md"]).unwrap();
        all.write_tables(&file, &outcomes("First")).unwrap();
        let some = parsed(&["--only", "fast", "--docs", "document.md"]).unwrap();
        some.write_tables(&file, &outcomes("Second")).unwrap();
        let document = std::fs::read_to_string(&file).unwrap();
        assert!(document.contains("### First\n") && document.contains("### Second\n"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
