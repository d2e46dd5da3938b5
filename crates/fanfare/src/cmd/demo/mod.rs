//! `fanfare demo`: the whole plant at a small scale, on this machine alone, with one report at the
//! end.

mod engine;
mod fanout;
mod feed;
mod live;
mod plain;
mod stages;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use fanfare_engine::stop::Stop;
use fanfare_instruments::figures::Figures;
use fanfare_instruments::page::Page;
use fanfare_instruments::plot::CategoryChart;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::children::Fanfare;
use crate::print::{exit_code, note, say};
use crate::scratch::Scratch;

/// Options of `fanfare demo`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// File for the page with the plots.
    #[arg(long, value_name = "FILE", default_value = "fanfare-demo.html")]
    html: PathBuf,
    /// Print the figures as one JSON object; the report goes to stderr.
    #[arg(long)]
    json: bool,
    /// Run the plant under load, with its console open to browsers, until Ctrl-C.
    #[arg(long, conflicts_with_all = ["html", "json"])]
    live: bool,
    /// Open the console's page in the desktop's browser.
    #[arg(long, requires = "live")]
    open: bool,
}

/// The state that the parts of the demo share.
struct Demo {
    scratch: Scratch,
    stop: Stop,
    figures: Figures,
    page: Page,
    /// The part's text on the terminal.
    text: String,
}

/// A part: processes that it starts, waits for and reports on.
struct Part {
    title: &'static str,
    /// The description in the page, under the title.
    about: &'static str,
    /// Adds its figures, its text and its charts.
    run: fn(&mut Demo) -> Result<()>,
}

/// The time limit for a process to become ready, and to end, also on a busy machine.
const READY: Duration = Duration::from_secs(60);
const RUN: Duration = Duration::from_secs(600);

impl Demo {
    /// Starts this binary with these arguments, concatenated.
    fn start(&self, args: &[&[&str]]) -> Result<Fanfare> {
        Fanfare::start(&args.concat(), &self.stop)
    }

    /// Begins a part of the page.
    fn begin_page(&mut self, part: &Part) {
        self.page.part(part.title, part.about);
    }

    fn chart(&mut self, title: &str, about: &str, chart: &CategoryChart<'_>) {
        self.page.chart(title, about, &chart.to_svg());
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.live {
        return live::run(args.open);
    }
    if !cfg!(feature = "dds") {
        bail!("the demo publishes to DDS, and this program is built without it: `make demo`");
    }
    let mut demo = Demo {
        scratch: Scratch::new("demo").context("cannot make a folder for temporary files")?,
        stop: Stop::on_interrupt().context("cannot catch Ctrl-C")?,
        figures: Figures::new("demo"),
        page: Page::new("Fanfare", "The plant, small, on one machine: fanfare demo"),
        text: String::new(),
    };
    for part in [fanout::PART, feed::PART, engine::PART] {
        if demo.stop.is_raised() {
            break;
        }
        demo.text = format!("\n{}\n", part.title);
        (part.run)(&mut demo)?;
        if demo.stop.is_raised() {
            demo.text
                .push_str("interrupted: this is the report so far\n");
        }
        tell(args, &demo.text);
    }
    let Demo {
        figures, mut page, ..
    } = demo;
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
    Ok(exit_code(figures.is_ok()))
}

/// Prints the report's text: to stdout, or with `--json` to stderr.
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
