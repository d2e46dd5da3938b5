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
use std::fs::File;
use std::path::{Path, PathBuf};
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
    fn new(stop: Stop) -> Result<Self> {
        Ok(Self {
            scratch: Scratch::new("demo").context("cannot make a folder for temporary files")?,
            stop,
            figures: Figures::new("demo"),
            page: Page::new("Fanfare", "The plant, small, on one machine: fanfare demo"),
            text: String::new(),
        })
    }

    /// Runs the parts, up to one that fails or is interrupted, and passes the text of each to
    /// `tell`.
    ///
    /// # Errors
    /// That of the part that failed. What was measured until then is in figures and page.
    fn play(&mut self, parts: &[Part], mut tell: impl FnMut(&str)) -> Result<()> {
        for part in parts {
            self.text = format!("\n{}\n", part.title);
            let mut outcome = (part.run)(self);
            let is_interrupted = self.stop.is_raised();
            if is_interrupted {
                // A process that ends because of Ctrl-C has not failed.
                outcome = Ok(());
                self.text
                    .push_str("interrupted: this is the report so far\n");
            }
            tell(&self.text);
            if is_interrupted || outcome.is_err() {
                self.figures.set_ok(false);
                return outcome;
            }
        }
        Ok(())
    }

    fn write_page(&mut self, file: &Path) -> Result<()> {
        self.page.environment(self.figures.environment());
        let written = std::fs::write(file, self.page.to_html());
        written.with_context(|| cannot_write(file))
    }

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
    prepare(&args.html)?;
    let mut demo = Demo::new(Stop::on_interrupt().context("cannot catch Ctrl-C")?)?;
    let parts = [fanout::PART, feed::PART, engine::PART];
    let played = demo.play(&parts, |text| tell(args, text));
    let written = demo.write_page(&args.html);
    if written.is_ok() {
        let page = absolute(&args.html);
        tell(args, &format!("Page with the plots: {page}"));
    }
    if args.json {
        say!("{}", demo.figures.to_json());
    }
    played.and(written)?;
    Ok(exit_code(demo.figures.is_ok()))
}

/// Opens the file of the page before the parts run, so that an error is reported at once. An
/// existing page is kept until the new one is written.
fn prepare(file: &Path) -> Result<()> {
    let opened = File::options().append(true).create(true).open(file);
    opened.with_context(|| cannot_write(file))?;
    Ok(())
}

fn cannot_write(file: &Path) -> String {
    format!("cannot write {}", file.display())
}

/// Prints the report's text: to stdout, or with `--json` to stderr.
fn tell(args: &Args, text: &str) {
    if args.json {
        note!("{text}");
    } else {
        say!("{text}");
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path)
        .unwrap_or_else(|_| path.to_path_buf())
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(demo: &mut Demo) -> Result<()> {
        let name = demo.text.trim().to_lowercase();
        demo.page.part(&name, "");
        demo.figures.count(&name, 1);
        Ok(())
    }

    const fn part(title: &'static str, run: fn(&mut Demo) -> Result<()>) -> Part {
        let about = "";
        Part { title, about, run }
    }

    /// Plays a part that measures, `second`, and another one that measures. Returns the outcome,
    /// the demo and its text.
    fn played(second: fn(&mut Demo) -> Result<()>) -> (Result<()>, Demo, String) {
        let parts = [
            part("First", measure),
            part("Second", second),
            part("Third", measure),
        ];
        let (mut demo, mut told) = (Demo::new(Stop::new()).unwrap(), String::new());
        let outcome = demo.play(&parts, |text| told += text);
        (outcome, demo, told)
    }

    /// Checks that the demo reports the first part alone.
    fn reports_the_first(mut demo: Demo) {
        assert!(!demo.figures.is_ok());
        assert_eq!(demo.figures.value("first"), Some(1.0));
        assert_eq!(demo.figures.value("third"), None);
        let page = demo.scratch.file("page.html");
        demo.write_page(&page).unwrap();
        assert!(std::fs::read_to_string(&page).unwrap().contains("first"));
    }

    #[test]
    fn an_interrupted_part_ends_the_demo_with_the_report_so_far() {
        let (outcome, demo, told) = played(|demo| {
            demo.text.push_str("half of it\n");
            demo.stop.raise();
            bail!("the measured process printed no figure")
        });
        outcome.unwrap();
        let end = "Second\nhalf of it\ninterrupted: this is the report so far\n";
        assert!(told.ends_with(end), "{told}");
        reports_the_first(demo);
    }

    #[test]
    fn a_part_that_fails_ends_the_demo_behind_the_report() {
        let (outcome, demo, told) = played(|_| bail!("no port is left"));
        assert_eq!(outcome.unwrap_err().to_string(), "no port is left");
        assert!(told.ends_with("\nSecond\n"), "{told}");
        reports_the_first(demo);
    }

    #[test]
    fn a_page_that_cannot_be_written_is_an_error() {
        let mut demo = Demo::new(Stop::new()).unwrap();
        let file = Path::new("/no/x.html");
        for error in [demo.write_page(file), prepare(file)].map(Result::unwrap_err) {
            assert_eq!(error.to_string(), "cannot write /no/x.html");
        }
        let page = demo.scratch.file("page.html");
        demo.write_page(&page).unwrap();
        prepare(&page).unwrap();
        let kept = std::fs::read_to_string(&page).unwrap();
        assert!(kept.contains("Fanfare"), "{kept}");
    }
}
