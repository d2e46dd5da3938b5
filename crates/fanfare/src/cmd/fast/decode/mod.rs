//! `fanfare fast decode`: FAST from a file or from multicast, as text, JSON or FIX.

mod capture;
pub(crate) mod feed;
mod live;
pub(crate) mod place;
pub(crate) mod recording;
mod report;
mod sequence;
pub(crate) mod sink;
mod streams;
mod two_files;

use super::options::{
    Framing, LoadError, Sequence, Strictness, TEMPLATES_HELP, check_preamble, load, socket_address,
};
use super::output::{Format, Output};
use super::packets::{ByteFile, PacketError, PacketFile, frame_code};
use crate::print::exit_code;
use crate::range::{rate, whole};
use crate::usage::misuse;
use anyhow::{Context, Result};
use fanfare_engine::stop::Stop;
use fanfare_fast::{Decoder, Program};
use fanfare_feed::channel::Datagram;
use fanfare_feed::{Arbiter, FrameErrorKind, Header, Line, SequenceField};
use feed::Feed;
use report::Report;
use sink::{Next, Sink, SinkOptions};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Decode FAST messages from a file, a packet capture or multicast.
///
/// With two --multicast (or two -f) the lines are arbitrated: a message on either is delivered
/// once, in order, and numbers that neither delivers in time are counted as a gap. Sequence numbers
/// come from --preamble or from a field of the messages. A message of the template `Done` ends a
/// multicast feed. Other messages without a number, such as heartbeats, cannot be compared: they
/// are delivered from each line, at once.
///
/// Two files with --header none are datagrams if a Reset begins each of them, and continuous
/// streams otherwise: each stream is decoded with dictionaries of its own, and an error ends it.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("source").required(true).multiple(true)
    .args(["file", "multicast", "pcap"])))]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    pub(crate) templates: String,
    /// File to decode, - for stdin; twice for the recordings of two lines.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// Multicast group to receive, ADDRESS:PORT; twice for two lines with the same feed.
    #[arg(
        long, value_name = "ADDRESS:PORT", value_parser = socket_address,
        conflicts_with = "file"
    )]
    pub(crate) multicast: Vec<SocketAddrV4>,
    /// Capture (pcap or pcapng) to read datagrams from instead of the network: those to the groups
    /// of --multicast, or to the only address in it.
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) pcap: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) framing: Framing,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
    /// Format of the messages; without it, and without --json or --empty, text.
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// BeginString(8) of the messages of --format fix.
    #[arg(
        long, value_name = "VERSION", default_value = "FIX.4.4", value_parser = begin_string
    )]
    pub(crate) begin_string: String,
    /// Decode and discard, and measure the time per message.
    #[arg(long)]
    pub(crate) empty: bool,
    /// Continue with the next packet after an error. The exit status is still 1.
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Stop after this many messages.
    #[arg(
        short = 'n', long, value_name = "COUNT",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) messages: Option<u64>,
    /// Field with the sequence number: none, auto (tag 34, or MsgSeqNum, or SequenceNumber), a tag,
    /// or a name.
    #[arg(long, value_name = "FIELD", default_value = "auto")]
    pub(crate) sequence: Sequence,
    #[command(flatten)]
    pub(crate) arbitration: Arbitration,
    #[command(flatten)]
    pub(crate) network: Network,
    /// Print the figures as JSON: on stdout, or on stderr with --format.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options of arbitration.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arbitration {
    /// Milliseconds to wait for a missing packet before it is a gap.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    pub(crate) gap_timeout: u64,
    /// Packets held back behind a hole at most, up to 65536; one more declares a gap at once.
    #[arg(
        long, value_name = "PACKETS", default_value_t = 4096,
        value_parser = whole::<u32>(1..=1 << 16)
    )]
    pub(crate) hold_back: u32,
    /// Silence of all lines, milliseconds, after which repeated numbers are a restart, not
    /// duplicates; 0: never. A restart that a SequenceReset announces needs no silence.
    #[arg(long, value_name = "MS", default_value_t = 1000)]
    pub(crate) restart_after: u64,
}

/// Parses a BeginString(8).
fn begin_string(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '=' | '|');
    match text {
        "" => Err("the value is empty".to_owned()),
        text if text.chars().all(is_plain) => Ok(text.to_owned()),
        _ => Err("must be printable ASCII characters without spaces, `=` and `|`".to_owned()),
    }
}

/// Options of reception.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Network {
    /// Address of the interface that receives.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) interface: Ipv4Addr,
    /// Receive buffer to request from the kernel, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 32 << 20)]
    pub(crate) buffer: usize,
    /// End after this many seconds without a packet; default: wait for Done or Ctrl-C.
    #[arg(long, value_name = "SECONDS", value_parser = rate(1e9))]
    pub(crate) idle: Option<f64>,
    /// Busy-poll for packets instead of sleeping.
    #[arg(long)]
    pub(crate) spin: bool,
}

impl Args {
    /// Returns the format of messages on stdout, if any.
    fn message_format(&self) -> Option<Format> {
        let quiet = self.json || self.empty;
        self.format.or((!quiet).then_some(Format::Text))
    }

    /// Checks that the arguments are consistent.
    pub(crate) fn check(&self) -> Result<()> {
        if self.file.len() > 2 || self.multicast.len() > 2 {
            misuse!("a feed has at most two lines");
        }
        if let [a, b] = &self.multicast[..]
            && a == b
        {
            misuse!("both lines are {a}");
        }
        if self.empty && self.format.is_some() {
            misuse!("--empty writes no messages: it cannot be combined with --format");
        }
        if !self.file.is_empty() {
            check_preamble(self.framing.of_file(), self.framing.preamble)?;
        }
        if self.framing.keep_dictionary && self.file.len() != 1 {
            misuse!(
                "--keep-dictionary needs one file: a packet that may be lost must not depend on \
                 others"
            );
        }
        Ok(())
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    args.check()?;
    let output = Output::new(args.message_format());
    let mut output = output.with_begin_string(&args.begin_string);
    let program = match load(&args.templates, args.strictness.reading()) {
        Ok(program) => program,
        Err(LoadError::Templates { text, error, .. }) if args.format == Some(Format::Json) => {
            output.template_error(&text, &error)?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    let sink = Sink::new(decoder(args, &program), output, sink_options(args));
    play(args, sink)?.print(args)
}

/// Plays the input that the arguments name to the sink.
pub(crate) fn play(args: &Args, sink: Sink) -> Result<Outcome> {
    Ok(match (&args.pcap, &args.file[..]) {
        (Some(capture), _) => capture::run(args, capture, sink)?,
        (_, [file]) if !is_sequenced(args) => one_file(args, file, sink)?,
        (_, [file]) if args.framing.of_file() == Header::None => streams::one(args, file, sink)?,
        (_, [file]) => two_files::run(args, &[file], sink)?,
        (_, files @ [_, _]) => {
            let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
            two_files::run(args, &files, sink)?
        }
        _ => live::run(args, &args.multicast, sink)?,
    })
}

/// Returns whether a single file's sequence is to be checked: on request only, since it takes time.
fn is_sequenced(args: &Args) -> bool {
    let field = match &args.sequence {
        Sequence::Field(field) => *field != SequenceField::Auto,
        Sequence::None => false,
    };
    field || !args.framing.preamble.is_empty()
}

pub(crate) fn decoder(args: &Args, program: &Arc<Program>) -> Decoder {
    Decoder::with_options(Arc::clone(program), args.strictness.options())
}

pub(crate) fn sink_options(args: &Args) -> SinkOptions {
    SinkOptions {
        keep_going: args.keep_going,
        limit: args.messages,
        timed: args.empty,
        last: args.file.is_empty().then(|| "Done".to_owned()),
    }
}

/// The outcome of a run.
pub(crate) struct Outcome {
    sink: Sink,
    /// The arbiter of lines whose numbers were checked.
    arbiter: Option<Box<Arbiter>>,
}

impl Outcome {
    /// Creates the outcome of messages in order of arrival.
    const fn plain(sink: Sink) -> Self {
        let arbiter = None;
        Self { sink, arbiter }
    }

    /// Creates the outcome of lines whose numbers were checked.
    pub(crate) fn arbitrated(sink: Sink, arbiter: Arbiter) -> Self {
        let arbiter = Some(Box::new(arbiter));
        Self { sink, arbiter }
    }

    /// Returns the number of errors.
    pub(crate) const fn errors(&self) -> u64 {
        self.sink.counts.errors
    }

    /// Writes buffered output.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }

    pub(crate) fn print(mut self, args: &Args) -> Result<ExitCode> {
        let sink = &mut self.sink;
        sink.flush()?;
        let (counts, decoding) = (sink.counts, sink.decoding);
        let report = Report {
            counts,
            decoding: args.empty.then_some(decoding),
            arbiter: self.arbiter.as_deref(),
        };
        report.print(args.json, args.message_format());
        Ok(exit_code(counts.errors == 0))
    }
}

/// Plays one file, its packets or messages in order.
fn one_file(args: &Args, file: &Path, mut sink: Sink) -> Result<Outcome> {
    let stop = Stop::on_interrupt()?;
    let name = || format!("cannot read `{}`", file.display());
    if args.framing.of_file() == Header::None {
        stream(&stop, file, &mut sink).with_context(name)?;
        return Ok(Outcome::plain(sink));
    }
    let mut feed = Feed::plain(args, sink)?;
    let mut packets = PacketFile::open(file, args.framing.of_file(), &stop)?;
    while !stop.is_raised() {
        if packets.must_read() {
            feed.sink().flush()?;
        }
        match packets.next() {
            Ok(None) => break,
            Ok(Some(packet)) => {
                let flow = feed.receive(Datagram {
                    line: Line::A,
                    now: 0,
                    received: 0,
                    offset: packet.offset,
                    bytes: packet.bytes,
                })?;
                if flow.is_break() {
                    break;
                }
            }
            Err(PacketError::Io(error)) => return Err(error).with_context(name),
            Err(PacketError::Frame(error)) => {
                let text = error.kind.to_string();
                let code = frame_code(error.kind);
                let flow = feed.sink().error(code, error.offset, &text)?;
                // A wrong packet length leaves no next packet to continue with.
                if error.kind != FrameErrorKind::ZeroBlock || flow.is_break() {
                    break;
                }
            }
        }
    }
    let (sink, _) = feed.finish()?;
    Ok(Outcome::plain(sink))
}

/// Decodes a continuous stream of messages that keeps its dictionaries; an error ends it.
fn stream(stop: &Stop, file: &Path, sink: &mut Sink) -> Result<()> {
    let mut input = ByteFile::open(file, stop)?;
    sink.counts.packets = 1;
    sink.counts.line_packets[0] = 1;
    while !stop.is_raised() && !sink.is_full() {
        let (offset, bytes, is_whole) = input.ready()?;
        let next = match (bytes, is_whole) {
            ([], true) => break,
            ([], false) => Next::Partial,
            _ => sink.next(bytes, offset, is_whole)?,
        };
        match next {
            Next::Message(len) => input.consume(len),
            Next::Error => break,
            Next::Partial => {
                sink.flush()?;
                if !input.read_more()? {
                    break;
                }
            }
        }
    }
    Ok(())
}
