//! `fanfare fast explain`: the meaning of each byte of a message, to diagnose a garbled feed.

use super::options::{Framing, Strictness, TEMPLATES_HELP, check_preamble, load};
use super::packets::{ByteFile, PacketError, PacketFile, frame_code};
use super::templates::{decimal, kind};
use crate::plural::counted;
use crate::print::{note, say};
use anyhow::{Context, Result, bail};
use fanfare_engine::stop::Stop;
use fanfare_fast::program::{Field, FieldId, FieldKind, TemplateProgram};
use fanfare_fast::{CodecError, Decimal, Decoder, Ignore, Previous, Step, Visitor};
use fanfare_feed::{FrameErrorKind, Header, Packet};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show how messages are decoded: offset, bytes, presence map, operator, previous value, value.
///
/// The trace of a message that cannot be decoded ends at the error, and so does the run.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    /// File to explain, - for stdin.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Explain only this message of the file, counted from 1.
    #[arg(
        short, long, value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    message: Option<u64>,
    #[command(flatten)]
    framing: Framing,
    #[command(flatten)]
    strictness: Strictness,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_preamble(args.framing.of_file(), args.framing.preamble)?;
    let program = load(&args.templates, args.strictness.reading())?;
    let mut explaining = Explaining {
        args,
        decoder: Decoder::with_options(program, args.strictness.options()),
        trace: Trace::default(),
        message: 0,
    };
    let done = if args.framing.of_file() == Header::None {
        explaining.stream()?
    } else {
        explaining.packets()?
    };
    match (done, args.message) {
        (End::Error, _) => Ok(ExitCode::FAILURE),
        (End::File, Some(wanted)) if explaining.message < wanted => bail!(
            "`{}` has only {} messages",
            args.file.display(),
            explaining.message
        ),
        (End::File, None) if explaining.message == 0 => {
            note!("fanfare: `{}` has no messages", args.file.display());
            Ok(ExitCode::SUCCESS)
        }
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// The reason for the end of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    File,
    /// The wanted message was explained.
    Wanted,
    Error,
}

struct Explaining<'a> {
    args: &'a Args,
    decoder: Decoder,
    trace: Trace,
    /// Messages decoded so far.
    message: u64,
}

impl Explaining<'_> {
    fn stream(&mut self) -> Result<End> {
        let cannot = || format!("cannot read `{}`", self.args.file.display());
        let mut file = ByteFile::open(&self.args.file, &Stop::new())?;
        loop {
            let (offset, bytes, is_whole) = file.ready().with_context(cannot)?;
            let explained = match (bytes, is_whole) {
                ([], true) => return Ok(End::File),
                ([], false) => None,
                (_, true) => Some(self.one(bytes, offset)),
                (_, false) => self.one_if_whole(bytes, offset),
            };
            match explained {
                Some((_, Some(end))) => return Ok(end),
                Some((len, None)) => file.consume(len),
                None if file.read_more().with_context(cannot)? => {}
                None => return Ok(End::File),
            }
        }
    }

    /// Explains as [`one`](Self::one), unless the message continues behind `bytes`.
    fn one_if_whole(&mut self, bytes: &[u8], offset: u64) -> Option<(usize, Option<End>)> {
        let mut ahead = self.decoder.clone();
        let is_partial = matches!(ahead.decode_partial(bytes, &mut Ignore), Ok(None));
        (!is_partial).then(|| self.one(bytes, offset))
    }

    fn packets(&mut self) -> Result<End> {
        let header = self.args.framing.of_file();
        let mut file = PacketFile::open(&self.args.file, header, &Stop::new())?;
        for number in 1.. {
            let packet = match file.next() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(PacketError::Io(error)) => {
                    let name = format!("cannot read `{}`", self.args.file.display());
                    return Err(error).context(name);
                }
                Err(PacketError::Frame(error)) => {
                    let is_cut = matches!(error.kind, FrameErrorKind::Truncated { .. });
                    // The messages before the cut are of interest.
                    let there = file.cut().filter(|there| is_cut && !there.bytes.is_empty());
                    let explained = there.map(|there| self.packet(number, there));
                    if let Some(Ok(Some(End::Wanted))) = explained {
                        return Ok(End::Wanted);
                    }
                    say!("{} {error}", frame_code(error.kind));
                    return Ok(End::Error);
                }
            };
            if let Some(end) = self.packet(number, packet)? {
                return Ok(end);
            }
        }
        Ok(End::File)
    }

    /// Explains a packet, or the part of it that is present.
    fn packet(&mut self, number: u64, packet: Packet<'_>) -> Result<Option<End>> {
        let preamble = self.args.framing.preamble;
        let (sequence, body) = preamble.split(packet.bytes)?;
        if self.args.message.is_none() {
            let sequence = sequence.map_or(String::new(), |s| format!(", sequence {s}"));
            let (at, len) = (packet.offset, packet.bytes.len());
            say!("packet {number} at byte {at}, {len} bytes{sequence}");
        }
        if !self.args.framing.keep_dictionary {
            self.decoder.reset();
        }
        Ok(self.messages(body, packet.offset + preamble.len() as u64))
    }

    fn messages(&mut self, body: &[u8], start: u64) -> Option<End> {
        let mut at = 0;
        while let Some(rest) = body.get(at..).filter(|rest| !rest.is_empty()) {
            let (len, end) = self.one(rest, start + at as u64);
            if end.is_some() {
                return end;
            }
            at += len;
        }
        None
    }

    /// Explains the message at the front of `bytes`. Returns its length, and the end if the trace
    /// ends there.
    fn one(&mut self, bytes: &[u8], offset: u64) -> (usize, Option<End>) {
        self.trace.clear(offset);
        self.message += 1;
        let wanted = self
            .args
            .message
            .is_none_or(|wanted| wanted == self.message);
        let result = if wanted {
            self.decoder.decode(bytes, &mut self.trace)
        } else {
            self.decoder.decode(bytes, &mut Ignore)
        };
        if wanted || result.is_err() {
            say!("message {} at byte {offset}", self.message);
            self.trace.print();
        }
        match result {
            Ok(len) => {
                let last = self
                    .args
                    .message
                    .is_some_and(|wanted| wanted <= self.message);
                (len, last.then_some(End::Wanted))
            }
            Err(error) => {
                self.explain_error(&error, bytes, offset);
                (0, Some(End::Error))
            }
        }
    }

    fn explain_error(&self, error: &CodecError, bytes: &[u8], offset: u64) {
        say!("{}", error.describe(self.decoder.program(), offset));
        let from = error.offset.min(bytes.len());
        let near = bytes
            .get(from..bytes.len().min(from + 16))
            .unwrap_or_default();
        say!("bytes from there: {}", hex(near));
    }
}

/// The steps of a decoder as lines of a table.
#[derive(Debug, Default)]
struct Trace {
    /// The offset of the message in the file.
    base: u64,
    lines: Vec<String>,
    /// The depth of groups, sequences and templates around the next step.
    depth: usize,
    /// The field of the last step.
    last_step: Option<FieldId>,
}

impl Trace {
    fn clear(&mut self, base: u64) {
        self.base = base;
        self.lines.clear();
        self.depth = 0;
        self.last_step = None;
    }

    fn print(&self) {
        say!("{:>8}  {:<24}  what", "offset", "bytes");
        for line in &self.lines {
            say!("{}", line.trim_end());
        }
        say!("");
    }

    /// Adds a line for bytes; the first columns are empty if there are none.
    fn line(&mut self, offset: usize, bytes: &[u8], what: &str) {
        let place = if bytes.is_empty() {
            String::new()
        } else {
            (self.base + offset as u64).to_string()
        };
        let indent = 2 * self.depth;
        let bytes = hex(bytes);
        self.lines
            .push(format!("{place:>8}  {bytes:<24}  {:indent$}{what}", ""));
    }

    /// Adds the value to the line of the step before it.
    fn value(&mut self, value: &str) {
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        line.push_str(" = ");
        line.push_str(value);
    }

    /// Adds the value of a field; one in a bit group is no step of its own, and gets a line of its
    /// own.
    fn field(&mut self, field: &Field, value: &str) {
        if let Some(bits) = field.bits() {
            let tag = field.tag().map_or(String::new(), |tag| format!("({tag})"));
            let what = format!("{}{tag} {}", field.name(), counted(bits.into(), "bit"));
            self.line(0, &[], &what);
        }
        self.value(value);
    }

    fn text(&mut self, value: &[u8]) {
        self.value(&format!("{:?}", String::from_utf8_lossy(value)));
    }
}

impl Visitor for Trace {
    const TRACE: bool = true;

    fn unsigned(&mut self, field: &Field, value: u64) {
        self.field(field, &value.to_string());
    }

    fn signed(&mut self, field: &Field, value: i64) {
        self.field(field, &value.to_string());
    }

    fn decimal(&mut self, _: &Field, value: Decimal) {
        self.value(&decimal(value));
    }

    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.text(value);
    }

    fn unicode(&mut self, _: &Field, value: &[u8]) {
        self.text(value);
    }

    fn bytes(&mut self, _: &Field, value: &[u8]) {
        self.value(&hex(value));
    }

    fn absent(&mut self, field: &Field) {
        // Of groups, only those of bits are steps: the line before is another field's.
        if field.kind() == FieldKind::Group && self.last_step != Some(field.id()) {
            self.line(0, &[], &format!("group {}", field.name()));
        }
        self.field(field, "absent");
    }

    fn begin_group(&mut self, field: &Field) {
        self.line(0, &[], &format!("group {}", field.name()));
        self.depth += 1;
    }

    fn end_group(&mut self, _: &Field) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_sequence(&mut self, _: &Field, length: u32) {
        self.value(&format!("{length} entries"));
    }

    fn begin_entry(&mut self, field: &Field, index: u32) {
        self.line(0, &[], &format!("{}[{index}]", field.name()));
        self.depth += 1;
    }

    fn end_entry(&mut self, _: &Field) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn begin_template(&mut self, _: &Field, _: &TemplateProgram) {
        self.depth += 1;
    }

    fn end_template(&mut self, _: &Field) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::PresenceMap { offset, bytes } => {
                self.line(offset, bytes, &format!("presence map {}", bits(bytes)));
            }
            Step::Template {
                offset,
                bytes,
                template,
            } => {
                let id = template.id().unwrap_or_default();
                let how = if bytes.is_empty() { ", as before" } else { "" };
                self.line(
                    offset,
                    bytes,
                    &format!("template {} ({id}){how}", template.name()),
                );
            }
            Step::Field {
                field,
                part,
                operator,
                bit,
                previous,
                offset,
                bytes,
                ..
            } => {
                let mut what = field.name().to_owned();
                if let Some(tag) = field.tag() {
                    _ = write!(what, "({tag})");
                }
                if !part.is_empty() {
                    _ = write!(what, ".{part}");
                }
                _ = write!(what, " {} {}", kind(field.kind()), operator.name());
                match bit {
                    Some(true) => what.push_str(", bit 1"),
                    Some(false) => what.push_str(", bit 0"),
                    None => {}
                }
                if let Some(previous) = previous {
                    _ = write!(what, ", previous {}", shown(&previous));
                }
                self.line(offset, bytes, &what);
                self.last_step = Some(field.id());
            }
        }
    }
}

fn shown(previous: &Previous) -> String {
    match previous {
        Previous::Undefined => "undefined".to_owned(),
        Previous::Empty => "empty".to_owned(),
        Previous::Int(value) => value.to_string(),
        Previous::Decimal(value) => value.to_string(),
        Previous::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
    }
}

/// Formats bytes as `e0 87 aa`; more than eight are cut.
fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 8;
    let mut out = String::new();
    for (i, byte) in bytes.iter().take(SHOWN).enumerate() {
        let space = if i == 0 { "" } else { " " };
        _ = write!(out, "{space}{byte:02x}");
    }
    if bytes.len() > SHOWN {
        _ = write!(out, " +{}", bytes.len() - SHOWN);
    }
    out
}

/// Formats the seven bits of each byte.
fn bits(bytes: &[u8]) -> String {
    let groups: Vec<String> = bytes
        .iter()
        .map(|byte| format!("{:07b}", byte & 0x7f))
        .collect();
    groups.join(" ")
}
