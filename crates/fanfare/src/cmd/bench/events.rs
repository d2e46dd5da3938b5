//! `fanfare bench events`: the cost from a datagram to its events in the ring.

use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_feed::Header;
use fanfare_instruments::bench::events::{Feed, add_figures};
use fanfare_instruments::figures::Figures;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::cmd::fast::bench::read;
use crate::cmd::fast::options::{Framing, Strictness, TEMPLATES_HELP, check_preamble, load};
use crate::cmd::market::options::{MAPPING_HELP, mapping};
use crate::print::measured_out;
use crate::range::whole;

/// Measure mapping, the ring and books on top of decoding, on a file's messages, without any I/O.
///
/// In alternation, messages are decoded (`decode_ns`), also mapped to events (`map_ns`), written
/// into a ring as the gateway does (`ring_ns`), and ordered and applied to books before that
/// (`market_ns`). Figures are nanoseconds per message, the minimum over all runs for each hundred
/// packets.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    /// File of messages.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// File of snapshots that initialize the books, framed as --file. Without it, the books begin
    /// empty, and changes are ordered by the numbers of their messages.
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Mapping; default: the built-in one that fits the templates.
    #[arg(short, long, value_name = "MAPPING", long_help = MAPPING_HELP)]
    mapping: Option<String>,
    /// Levels of a side of a book.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = whole::<u32>(1..=1_000))]
    depth: u32,
    #[command(flatten)]
    framing: Framing,
    #[command(flatten)]
    strictness: Strictness,
    /// Passes of each kind, interleaved.
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = whole::<u32>(1..=1000))]
    runs: u32,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_preamble(args.framing.of_file(), args.framing.preamble)?;
    let stop = Stop::on_interrupt()?;
    let program = load(&args.templates, args.strictness.reading())?;
    let feed = args.feed(program, &stop)?;
    if stop.is_raised() {
        bail!("interrupted before anything was measured");
    }
    let mut figures = Figures::new("bench events");
    add_figures(&mut figures, &feed, args.runs, &stop)
        .with_context(|| format!("`{}`", args.file.display()))?;
    Ok(measured_out(figures, args.json, &stop))
}

impl Args {
    fn feed(&self, program: Arc<Program>, stop: &Stop) -> Result<Feed> {
        let read = |path: &Path| read(path, &self.framing, stop);
        Ok(Feed {
            mapping: mapping(self.mapping.as_deref(), &program)?,
            packets: read(&self.file)?,
            snapshots: match &self.snapshot {
                Some(path) => read(path)?,
                None => Vec::new(),
            },
            keeps: self.framing.keep_dictionary || self.framing.of_file() == Header::None,
            options: self.strictness.options(),
            depth: self.depth,
            program,
        })
    }
}
