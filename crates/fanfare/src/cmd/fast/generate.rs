//! `fanfare fast generate`: the three generated feeds for trials, tests and benchmarks.

use super::lines::refuse_input;
use super::options::{TEMPLATES_HELP, TemplateReading, check_preamble, load};
use crate::input::is_standard;
use crate::plural::counted;
use crate::print::{Stdout, note, say};
use crate::usage::misuse;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use fanfare_engine::stop::Stop;
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE, SpectraOptions};
use fanfare_feed::{Header, Preamble};
use fanfare_instruments::figures::Figures;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Generate a file of FAST packets: orders (simple) or market data (complex, spectra).
///
/// The same options always produce the same bytes. Each packet starts with empty dictionaries; the
/// last message is Done. A Reset precedes each message of spectra, so that its packets need no
/// --header; spectra accepts other templates of the same names, even those without Done.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The feed.
    #[arg(value_enum)]
    feed: FeedKind,
    #[arg(
        short, long, value_name = "TEMPLATES",
        help = format!("{TEMPLATES_HELP}; default: the feed's own")
    )]
    templates: Option<String>,
    #[command(flatten)]
    reading: TemplateReading,
    /// File to write, - for stdout.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Messages to generate, not counting Done and the Resets of spectra.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 30_000)]
    count: u64,
    /// Most bytes of a packet; a longer message gets a packet of its own. Default: 1024 for simple,
    /// one message per packet for complex and spectra.
    #[arg(short = 'p', long, value_name = "BYTES")]
    packet_size: Option<usize>,
    /// Mean number of entries in a message of complex [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sequence_length: Option<u32>,
    /// All entries of a message of complex belong to one security.
    #[arg(long)]
    no_split: bool,
    /// Seed of the market of spectra [default: 1]
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Generate the snapshots of spectra instead of its increments; they agree if the seed and the
    /// trades are the same.
    #[arg(long)]
    snapshots: bool,
    /// Percentage of trades among the changes in spectra's market [default: 0]
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(..=100))]
    trades: Option<u32>,
    /// Length header in front of each packet.
    #[arg(long, value_name = "HEADER", default_value = "u32le")]
    header: Header,
    /// Sequence number in front of each packet's messages, counted from 1.
    #[arg(long, value_name = "PREAMBLE", default_value = "none")]
    preamble: Preamble,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FeedKind {
    /// Orders: many small messages in a packet.
    Simple,
    /// Market data with repeating groups: one message per packet.
    Complex,
    /// Market data in the shapes of a real exchange's templates (MOEX SPECTRA): price levels,
    /// trades, snapshots.
    Spectra,
}

impl FeedKind {
    fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Complex => "complex",
            Self::Spectra => "spectra",
        }
    }
}

impl Args {
    /// Refuses options of another feed.
    fn check(&self) -> Result<()> {
        let own = self.feed.name();
        let (complex, spectra) = (FeedKind::Complex, FeedKind::Spectra);
        for (option, is_given, feed) in [
            ("--sequence-length", self.sequence_length.is_some(), complex),
            ("--no-split", self.no_split, complex),
            ("--seed", self.seed.is_some(), spectra),
            ("--snapshots", self.snapshots, spectra),
            ("--trades", self.trades.is_some(), spectra),
        ] {
            if is_given && self.feed != feed {
                misuse!("{option} is an option of {}, not of {own}", feed.name());
            }
        }
        check_preamble(self.header, self.preamble)
    }

    fn generator(&self, program: Arc<Program>) -> Generator {
        match self.feed {
            FeedKind::Simple => {
                let size = self.packet_size.unwrap_or(PACKET_SIZE);
                Generator::simple(program, self.count, size)
            }
            FeedKind::Complex => {
                let options = ComplexOptions {
                    sequence_length: self.sequence_length.unwrap_or(3),
                    split: !self.no_split,
                };
                Generator::complex(program, self.count, self.packet_size, options)
            }
            FeedKind::Spectra => {
                let options = SpectraOptions {
                    seed: self.seed.unwrap_or(1),
                    snapshots: self.snapshots,
                    trades: self.trades.unwrap_or(0),
                };
                Generator::spectra(program, self.count, self.packet_size, options)
            }
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.check()?;
    let own = format!("builtin:{}", args.feed.name());
    let program = load(
        args.templates.as_deref().unwrap_or(&own),
        args.reading.reading(),
    )?;
    let mut generator = args.generator(program);
    let stop = Stop::on_interrupt()?;
    let templates = Path::new(args.templates.as_deref().unwrap_or(&own));
    let mut out = create(&args.output, &[templates])?;
    let (mut packets, mut bytes) = (0u32, 0);
    let mut framed = Vec::new();
    let unfit = "the templates do not fit the feed";
    while let Some(packet) = generator.next_packet().context(unfit)? {
        packets = packets.wrapping_add(1);
        framed.clear();
        args.header
            .write(args.preamble.len() + packet.len(), &mut framed)?;
        args.preamble.write(packets, &mut framed);
        framed.extend_from_slice(packet);
        bytes += framed.len();
        out.write_all(&framed)
            .with_context(|| cannot_write(&args.output))?;
        if stop.is_raised() {
            break;
        }
    }
    out.flush().with_context(|| cannot_write(&args.output))?;
    let complete = generator.is_complete();
    report(args, complete, generator.messages(), packets, bytes);
    if !complete {
        bail!("interrupted: the feed is not complete");
    }
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args, complete: bool, messages: u64, packets: u32, bytes: usize) {
    if !args.json {
        note!(
            "{} in {}, {bytes} bytes",
            counted(messages, "message"),
            counted(packets.into(), "packet")
        );
        return;
    }
    let mut figures = Figures::new("fast generate");
    figures.set_ok(complete);
    figures.count("messages", messages);
    figures.count("packets", u64::from(packets));
    figures.count("bytes", bytes as u64);
    let line = figures.to_json();
    if is_standard(&args.output) {
        note!("{line}");
    } else {
        say!("{line}");
    }
}

/// Creates a file, or opens stdout for `-`; refuses a file that is also read.
pub(in crate::cmd) fn create(path: &Path, read: &[&Path]) -> Result<Box<dyn Write>> {
    if is_standard(path) {
        return Ok(Box::new(BufWriter::new(Stdout)));
    }
    refuse_input(path, read)?;
    let file = File::create(path).with_context(|| cannot_write(path))?;
    Ok(Box::new(BufWriter::new(file)))
}

pub(in crate::cmd) fn cannot_write(path: &Path) -> String {
    format!("cannot write `{}`", path.display())
}
