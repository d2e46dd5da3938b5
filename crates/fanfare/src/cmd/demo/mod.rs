//! `fanfare demo`: the whole plant, small, on this machine alone, ending with one report.

mod engine;
mod fanout;
mod feed;

use anyhow::{Context, Result};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::page::Page;
use std::path::PathBuf;
use std::process::ExitCode;

use crate::print::{note, say};
use crate::scratch::Scratch;

/// Options of `fanfare demo`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Where the page with the plots goes.
    #[arg(long, value_name = "FILE", default_value = "fanfare-demo.html")]
    html: PathBuf,
    /// Print the figures as one JSON object; the report goes to stderr.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let scratch = Scratch::new("demo").context("cannot make a folder for temporary files")?;
    let mut figures = Figures::new("demo");
    let stop = Stop::on_interrupt().context("cannot catch Ctrl-C")?;
    let mut page = Page::new("Fanfare", "The plant, small, on one machine: fanfare demo");
    for part in [fanout::run, feed::run, engine::run] {
        if !stop.is_raised() {
            let text = part(&scratch, &mut figures, &mut page, &stop)?;
            tell(args, &text);
        }
    }
    page.environment(figures.environment());
    match std::fs::write(&args.html, page.to_html()) {
        Ok(()) => tell(
            args,
            &format!("Page with the plots: {}", absolute(&args.html)),
        ),
        Err(e) => note!("warning: cannot write {}: {e}", args.html.display()),
    }
    if args.json {
        say!("{}", figures.to_json());
    }
    Ok(if figures.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The report's text, where `--json` leaves room for it.
fn tell(args: &Args, text: &str) {
    if args.json {
        note!("{text}");
    } else {
        say!("{text}");
    }
}

fn absolute(path: &std::path::Path) -> String {
    std::path::absolute(path)
        .unwrap_or_else(|_| path.to_path_buf())
        .display()
        .to_string()
}
