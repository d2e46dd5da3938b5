//! `fanfare fast encode`: lines of JSON or FIX to FAST, the inverse of `decode --format`.

use super::generate::{cannot_write, create};
use super::lines::{LINE_LIMIT, Line, LineFile};
use super::options::{LoadError, Strictness, TEMPLATES_HELP, check_preamble, load};
use super::output::{Format, Output};
use crate::input::is_standard;
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::range::whole;
use crate::usage::misuse;
use anyhow::{Context, Result};
use clap::ValueEnum;
use fanfare_engine::stop::Stop;
use fanfare_fast::fix::{self, FixError, KnownTags};
use fanfare_fast::{CodecError, Encoder, ErrorCode, Message, Program, json};
use fanfare_feed::{Header, Preamble};
use fanfare_instruments::figures::Figures;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The most tags that are named.
const TOLD: usize = 100;

/// Encode lines of JSON or FIX messages, as `decode --format` writes them, into FAST.
///
/// An error is a line on stdout, as `decode --format json` writes them, with the number of the
/// line; it goes to stderr if stdout has the packets or the figures. Its offset is a byte of the
/// line if the line is malformed, and otherwise the byte of the message at which a value could not
/// be encoded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    /// Lines to encode, - for stdin.
    #[arg(short, long, value_name = "LINES.jsonl")]
    file: PathBuf,
    /// Format of the lines.
    #[arg(long, value_enum, default_value = "json")]
    format: LineFormat,
    /// File to write, - for stdout.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Length header in front of each packet: none, u8, u16le, u16be, u32le, u32be or fast.
    #[arg(long, value_name = "HEADER", default_value = "u32le")]
    header: Header,
    /// Sequence number in front of each packet's messages, counted from 1: none, seq32le, seq32be
    /// or cme.
    #[arg(long, value_name = "PREAMBLE", default_value = "none")]
    preamble: Preamble,
    /// Most messages in a packet. Default: 1, or with --packet-size as many as fit.
    #[arg(
        long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    packet_messages: Option<u64>,
    /// Most bytes of a packet's messages; a longer message gets a packet of its own.
    #[arg(
        short = 'p',
        long,
        value_name = "BYTES",
        value_parser = whole::<usize>(1..=1 << 30),
        conflicts_with = "keep_dictionary"
    )]
    packet_size: Option<usize>,
    /// Keep previous values from packet to packet; each packet still begins with a template
    /// identifier. With --header none there are no packets, and all values are kept.
    #[arg(long)]
    keep_dictionary: bool,
    #[command(flatten)]
    strictness: Strictness,
    /// Continue with the next line after an error. The exit status is still 1.
    #[arg(long)]
    keep_going: bool,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LineFormat {
    /// JSON objects.
    Json,
    /// FIX messages (SOH between the fields); the template is the one that has their MsgType(35) as
    /// a constant, or otherwise the only one with exactly their fields. Tags that the template does
    /// not have are omitted; those that no template has are named on stderr, and their fields
    /// counted.
    Fix,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_preamble(args.header, args.preamble)?;
    if args.header == Header::None && args.packet_size.is_some() {
        misuse!("--packet-size needs packets: --header none has none");
    }
    let mut errors = Output::new(Some(Format::Json));
    if args.json || is_standard(&args.output) {
        errors = errors.on_stderr();
    }
    let program = match load(&args.templates, args.strictness.reading()) {
        Ok(program) => program,
        Err(LoadError::Templates { text, error, .. }) => {
            errors.template_error(&text, &error)?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    };
    let stop = Stop::on_interrupt()?;
    let mut input = LineFile::open(&args.file, &stop)?;
    let mut encoding = Encoding::new(args, program)?;
    while !stop.is_raised() {
        let line = input.next(|| {
            errors.flush()?;
            encoding.flush()
        })?;
        encoding.counts.lines += u64::from(line != Line::End);
        let goes_on = match line {
            Line::End => break,
            Line::Text => encoding.line(input.text(), &mut errors)?,
            Line::TooLong => {
                let text = format!("the line has more than {LINE_LIMIT} bytes");
                let error = CodecError::new(ErrorCode::Limit, LINE_LIMIT);
                encoding.error(&error, Some(&text), &mut errors)?
            }
        };
        if !goes_on {
            break;
        }
    }
    encoding.end_packet()?;
    encoding.flush()?;
    errors.flush()?;
    encoding.counts.report(args);
    Ok(exit_code(encoding.counts.errors == 0))
}

#[derive(Debug, Default)]
struct Counts {
    lines: u64,
    messages: u64,
    packets: u64,
    bytes: u64,
    errors: u64,
    /// Fields of FIX whose tag no template has.
    unknown: u64,
}

impl Counts {
    fn report(&self, args: &Args) {
        if !args.json {
            let Self {
                messages,
                packets,
                bytes,
                errors,
                unknown,
                ..
            } = self;
            let left_out = match *unknown {
                0 => String::new(),
                n => format!(", {} of no template left out", counted(n, "field")),
            };
            note!(
                "{} in {}, {}, {}{left_out}",
                counted(*messages, "message"),
                counted(*packets, "packet"),
                counted(*bytes, "byte"),
                counted(*errors, "error")
            );
            return;
        }
        let mut figures = Figures::new("fast encode");
        figures.set_ok(self.errors == 0);
        figures.count("messages", self.messages);
        figures.count("packets", self.packets);
        figures.count("bytes", self.bytes);
        figures.count("unknown_fields", self.unknown);
        figures.count("errors", self.errors);
        let line = figures.to_json();
        if is_standard(&args.output) {
            note!("{line}");
        } else {
            say!("{line}");
        }
    }
}

struct Encoding<'a> {
    args: &'a Args,
    encoder: Encoder,
    message: Message,
    packet: Vec<u8>,
    in_packet: u64,
    framed: Vec<u8>,
    out: Box<dyn Write>,
    counts: Counts,
    known: KnownTags,
    /// Tags of no template that have been named.
    told: BTreeSet<u32>,
}

impl<'a> Encoding<'a> {
    fn new(args: &'a Args, program: Arc<Program>) -> Result<Self> {
        let known = match args.format {
            LineFormat::Fix => KnownTags::new(&program),
            LineFormat::Json => KnownTags::default(),
        };
        Ok(Self {
            known,
            told: BTreeSet::new(),
            args,
            encoder: Encoder::with_options(program, args.strictness.options()),
            message: Message::new(),
            packet: Vec::new(),
            in_packet: 0,
            framed: Vec::new(),
            out: create(&args.output, &[&args.file, Path::new(&args.templates)])?,
            counts: Counts::default(),
        })
    }

    /// Encodes one line. Returns whether to continue.
    fn line(&mut self, line: &[u8], errors: &mut Output) -> Result<bool> {
        if line.trim_ascii().is_empty() {
            return Ok(true);
        }
        let program = self.encoder.program();
        let read = match self.args.format {
            LineFormat::Json => read_json(program, line, &mut self.message),
            LineFormat::Fix => {
                let read = read_fix(program, line, &mut self.message);
                read.map(|fields| self.tell_unknown(&fields))
            }
        };
        if let Err((error, text)) = read {
            return self.error(&error, text.as_deref(), errors);
        }
        if let Err(error) = self.message()? {
            return self.error(&error, None, errors);
        }
        self.counts.messages += 1;
        self.in_packet += 1;
        let most = match (self.args.packet_messages, self.args.packet_size) {
            (Some(most), _) => most,
            (None, None) => 1,
            (None, Some(_)) => u64::MAX,
        };
        if self.in_packet >= most || self.args.header == Header::None {
            self.end_packet()?;
        }
        Ok(true)
    }

    /// Counts the fields whose tag no template has, and names each tag once on stderr.
    fn tell_unknown(&mut self, fields: &[(u32, &[u8])]) {
        for tag in self.known.unknown(fields) {
            self.counts.unknown += 1;
            if self.told.len() < TOLD && self.told.insert(tag) {
                let line = self.counts.lines;
                note!("line {line}: no template has tag {tag}: such fields are left out");
            }
        }
    }

    /// Encodes the current message: into the packet, or into the next one if the packet would
    /// become too large.
    fn message(&mut self) -> Result<Result<(), CodecError>> {
        let before = self.packet.len();
        let encoder = &mut self.encoder;
        let encoded = encoder.encode_or_restore(&self.message, &mut self.packet);
        let is_full = self.args.packet_size.is_some_and(|p| self.packet.len() > p);
        if encoded.is_err() || before == 0 || !is_full {
            return Ok(encoded.map(|_| ()));
        }
        self.packet.truncate(before);
        self.end_packet()?;
        let encoded = self
            .encoder
            .encode_or_restore(&self.message, &mut self.packet);
        Ok(encoded.map(|_| ()))
    }

    /// Writes the encoded packets, except the one that is not full.
    fn flush(&mut self) -> Result<()> {
        let flushed = self.out.flush();
        flushed.with_context(|| cannot_write(&self.args.output))
    }

    fn error(
        &mut self,
        error: &CodecError,
        text: Option<&str>,
        errors: &mut Output,
    ) -> Result<bool> {
        self.counts.errors += 1;
        errors.line_error(error, self.encoder.program(), self.counts.lines, text)?;
        Ok(self.args.keep_going)
    }

    /// Writes the current packet, with its header.
    fn end_packet(&mut self) -> Result<()> {
        if self.packet.is_empty() {
            return Ok(());
        }
        let Self {
            args,
            packet,
            framed,
            ..
        } = self;
        self.counts.packets += 1;
        framed.clear();
        let len = args.preamble.len() + packet.len();
        args.header
            .write(len, framed)
            .context("the packet is too long for its header")?;
        args.preamble.write(self.counts.packets as u32, framed);
        framed.extend_from_slice(packet);
        self.counts.bytes += framed.len() as u64;
        self.out
            .write_all(framed)
            .with_context(|| cannot_write(&args.output))?;
        packet.clear();
        self.in_packet = 0;
        match (args.header, args.keep_dictionary) {
            (Header::None, _) => {}
            (_, true) => self.encoder.reset_template(),
            (_, false) => self.encoder.reset(),
        }
        Ok(())
    }
}

/// The error of a line; without a text, the text of the code applies.
type LineError = (CodecError, Option<String>);

fn read_json(program: &Program, line: &[u8], message: &mut Message) -> Result<(), LineError> {
    let line = std::str::from_utf8(line).map_err(|error| {
        let code = CodecError::new(ErrorCode::Input, error.valid_up_to());
        (code, Some("not UTF-8".to_owned()))
    })?;
    json::read_line(program, line, message).map_err(|error| (error.error, Some(error.message)))
}

/// Parses the fields of a FIX message.
fn read_fix<'l>(
    program: &Program,
    line: &'l [u8],
    message: &mut Message,
) -> Result<Vec<(u32, &'l [u8])>, LineError> {
    // Logs show SOH as `|`: unconverted, the whole line would be one field.
    if !line.contains(&1) && line.contains(&b'|') {
        let text = "fields end with SOH (0x01), not with |".to_owned();
        return Err((CodecError::new(ErrorCode::Input, 0), Some(text)));
    }
    let read = fix::split_fields(line).and_then(|fields| {
        fix::read_message(program, &fields, message)?;
        Ok(fields)
    });
    read.map_err(|error| match error {
        FixError::Value(error) => (error, None),
        FixError::NoTemplate => (CodecError::new(ErrorCode::D9, 0), Some(error.to_string())),
        FixError::Syntax(at) => (
            CodecError::new(ErrorCode::Input, at),
            Some(error.to_string()),
        ),
        _ => (
            CodecError::new(ErrorCode::Input, 0),
            Some(error.to_string()),
        ),
    })
}
