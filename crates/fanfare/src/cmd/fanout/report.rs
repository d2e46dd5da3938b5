//! `fanfare fanout report`: latency and rates from a capture of the fan-out's traffic.

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use fanfare_instruments::fanout::{Options, Report, analyse};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::cmd::fast::lines::refuse_input;
use crate::print::{note, say};
use crate::progress;

/// Options of `fanfare fanout report`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Capture of the traffic: pcap or pcapng, from `fanout server`, tcpdump or others.
    #[arg(value_name = "PCAP")]
    capture: PathBuf,
    /// Deliveries at the start that are omitted as warm-up.
    #[arg(value_name = "SKIP", default_value_t = 1000)]
    skip: u64,
    /// Port that producers send to.
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    producer_port: u16,
    /// Port that consumers receive from.
    #[arg(long, value_name = "PORT", default_value_t = 3001)]
    consumer_port: u16,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
    /// Write a page with the plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let options = Options {
        in_port: args.producer_port,
        out_port: args.consumer_port,
        skip: args.skip,
    };
    let report = read(&args.capture, options)?;
    report
        .warnings
        .iter()
        .for_each(|warning| note!("warning: {warning}"));
    if let Some(all) = report.all_skipped() {
        let (capture, skip) = (args.capture.display(), args.skip);
        bail!("nothing to measure: {capture} has {all} deliveries, SKIP leaves out {skip}");
    }
    if let Some(path) = &args.html {
        write_page(&report, &args.capture, path)?;
        note!("page written to {}", path.display());
    }
    if args.json {
        say!("{}", report.figures().to_json());
    } else {
        say!("{report}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a capture file and analyses it.
pub(crate) fn read(capture: &Path, options: Options) -> Result<Report> {
    let name = || capture.display().to_string();
    let file = File::open(capture).with_context(|| format!("cannot open {}", name()))?;
    analyse(
        BufReader::with_capacity(1 << 20, progress::watch(file)),
        options,
    )
    .with_context(name)
}

/// Writes the page of a report.
pub(crate) fn write_page(report: &Report, capture: &Path, page: &Path) -> Result<()> {
    refuse_input(page, &[capture])?;
    let source = capture
        .file_name()
        .unwrap_or(capture.as_os_str())
        .to_string_lossy();
    std::fs::write(page, report.to_html(&source))
        .with_context(|| format!("cannot write {}", page.display()))
}
