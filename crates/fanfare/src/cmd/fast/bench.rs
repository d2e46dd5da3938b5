//! `fanfare fast bench`: nanoseconds per message, decoded and encoded, in memory.

use super::options::{Framing, Strictness, TEMPLATES_HELP, check_preamble, load_with_text};
use super::packets::{ByteFile, PacketError, PacketFile, check_size};
use super::structs::measure::{self, Held};
use super::structs::{self, Built, Structs};
use crate::print::{exit_code, is_cut_short, note, say};
use anyhow::{Context, Result, anyhow, bail};
use fanfare_engine::stop::Stop;
use fanfare_fast::program::Field;
use fanfare_fast::{
    CodecError, Decimal, Decoder, Encoder, Ignore, Message, Options, Program, Record, Visitor,
};
use fanfare_feed::Header;
use fanfare_instruments::figures::{Figures, median};
use fanfare_wire::Kernel;
use fanfare_wire::lanes::LaneKernel;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Measure decoding and encoding of a file's messages, without any I/O.
///
/// Each figure is the median of passes over the whole file; the kinds of passes alternate. Encoded
/// bytes are compared with the file's, and a difference in the encoder's choices is reported.
/// Generated structs (`fanfare fast codegen`) are measured with the builtin templates, whose
/// structs are part of the program, and with any other templates if --structs is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(short, long, value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    /// File of messages.
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    framing: Framing,
    #[command(flatten)]
    strictness: Strictness,
    /// Passes of each kind; default: as many as fit into four seconds, five at least.
    #[arg(
        long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    passes: Option<u32>,
    /// Kernel that decodes and encodes: scalar (field by field), avx2 or avx512 [default: the
    /// fastest here].
    #[arg(long, value_name = "NAME", value_parser = kernel)]
    kernel: Option<Kernel>,
    /// Build generated structs for templates that are not builtin, with the installed cargo and the
    /// source that this program was built from, in the user's cache folder: the first build takes a
    /// minute.
    #[arg(long)]
    structs: bool,
    /// Print the figures as one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    check_preamble(args.framing.of_file(), args.framing.preamble)?;
    let stop = Stop::on_interrupt()?;
    let (program, text) = load_with_text(&args.templates, args.strictness.reading())?;
    let packets = read(&args.file, &args.framing, &stop)?;
    let options = options(args);
    let mut bench = Bench::new(options, args.framing.keep_dictionary, &program, &packets);
    let messages = bench.check()?;
    if messages == 0 {
        bail!("`{}` has no messages", args.file.display());
    }
    let mut structs = structs(args, (&program, &text), options, &packets)?;
    let mut passes = Passes::default();
    let start = Instant::now();
    let enough = |done: u32| match args.passes {
        Some(wanted) => done >= wanted,
        None => done >= 5 && start.elapsed() >= Duration::from_secs(4),
    };
    let mut done = 0;
    while !enough(done) && !stop.is_raised() {
        passes.empty.push(bench.decode(&mut Ignore)?);
        passes
            .visitor
            .push(bench.decode(&mut EachField::default())?);
        passes.typed.push(bench.decode_records()?);
        passes.message.push(bench.decode(&mut Message::new())?);
        passes.encode.push(bench.encode::<Record>()?);
        passes.encode_message.push(bench.encode::<Message>()?);
        if let Some(structs) = &mut structs {
            passes.generated(&bench, structs.as_mut())?;
        }
        done += 1;
    }
    if done == 0 {
        bail!("interrupted before anything was measured");
    }
    let is_whole = !is_cut_short(&stop);
    passes.report(args, &packets, (messages, is_whole));
    if bench.differs {
        note!("the encoded messages differ from the bytes in the file");
    }
    Ok(exit_code(is_whole))
}

/// Returns the structs of the templates, if the binary has them or `--structs` is given.
fn structs(
    args: &Args,
    (program, text): (&Program, &str),
    options: Options,
    packets: &[Vec<u8>],
) -> Result<Option<Box<dyn Structs>>> {
    let found = structs::find(text, options)?;
    if found.is_some() || !args.structs {
        return Ok(found);
    }
    note!("building structs for `{}`", args.templates);
    let kernel = args.kernel.map(Kernel::name);
    let keeps = args.framing.keep_dictionary;
    let built = Built::new((program, text), options, kernel, keeps, packets)?;
    Ok(Some(Box::new(built)))
}

/// Parses a kernel that this processor supports, or the scalar program.
fn kernel(name: &str) -> Result<Kernel> {
    let kernel =
        Kernel::from_name(name).filter(|kernel| !matches!(kernel, Kernel::Swar | Kernel::Sse2));
    let kernel = kernel.ok_or_else(|| anyhow!("expected scalar, avx2 or avx512"))?;
    if kernel != Kernel::Scalar && LaneKernel::new(kernel).is_none() {
        bail!("this processor does not support the kernel");
    }
    Ok(kernel)
}

/// Reads the file's packets; without a header all of it is one.
pub(crate) fn read(path: &Path, framing: &Framing, stop: &Stop) -> Result<Vec<Vec<u8>>> {
    let name = || format!("cannot read `{}`", path.display());
    let mut packets = Vec::new();
    let mut total = 0;
    if framing.of_file() == Header::None {
        let mut file = ByteFile::open(path, stop)?;
        let mut all = Vec::new();
        loop {
            let (_, bytes) = file.window().with_context(name)?;
            if bytes.is_empty() {
                return Ok(vec![all]);
            }
            all.extend_from_slice(bytes);
            let len = bytes.len();
            file.consume(len);
            total += len;
            check_size(total)?;
        }
    }
    let mut file = PacketFile::open(path, framing.of_file(), stop)?;
    loop {
        match file.next() {
            Ok(None) => return Ok(packets),
            Ok(Some(packet)) => {
                let (_, body) = framing.preamble.split(packet.bytes)?;
                total += body.len();
                check_size(total)?;
                packets.push(body.to_vec());
            }
            Err(PacketError::Io(error)) => return Err(error).with_context(name),
            Err(PacketError::Frame(error)) => return Err(error).with_context(name),
        }
    }
}

struct Bench<'a> {
    packets: &'a [Vec<u8>],
    decoder: Decoder,
    encoder: Encoder,
    keeps: bool,
    /// Whether the encoder chose bytes other than the file's.
    differs: bool,
}

fn options(args: &Args) -> Options {
    let mut options = args.strictness.options();
    if let Some(kernel) = args.kernel {
        options.kernel = LaneKernel::new(kernel);
    }
    options
}

impl<'a> Bench<'a> {
    fn new(options: Options, keeps: bool, program: &Arc<Program>, packets: &'a [Vec<u8>]) -> Self {
        Self {
            packets,
            decoder: Decoder::with_options(Arc::clone(program), options),
            encoder: Encoder::with_options(Arc::clone(program), options),
            keeps,
            differs: false,
        }
    }

    /// Makes a pass that locates any error, and returns the number of messages.
    fn check(&mut self) -> Result<u64> {
        self.decoder.reset();
        let mut messages = 0;
        for (number, packet) in (1..).zip(self.packets) {
            if !self.keeps {
                self.decoder.reset();
            }
            let mut at = 0;
            while let Some(rest) = packet.get(at..).filter(|rest| !rest.is_empty()) {
                at += self.decoder.decode(rest, &mut Ignore).map_err(|error| {
                    let text = error.describe(self.decoder.program(), at as u64);
                    anyhow!("packet {number}: {text}")
                })?;
                messages += 1;
            }
        }
        Ok(messages)
    }

    /// Decodes all packets into the visitor, once.
    #[inline(never)]
    fn decode<V: Visitor>(&mut self, visitor: &mut V) -> Result<f64> {
        self.decoder.reset();
        let start = Instant::now();
        for packet in self.packets {
            if !self.keeps {
                self.decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let len = self.decoder.decode(rest, visitor).map_err(failed)?;
                rest = rest.get(len..).unwrap_or_default();
            }
            black_box(&mut *visitor);
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    /// Decodes all packets into a reused record, once. Passes are functions of their own, so that
    /// their loops do not depend on the other measurements.
    #[inline(never)]
    fn decode_records(&mut self) -> Result<f64> {
        self.decoder.reset();
        let mut record = Record::new();
        let start = Instant::now();
        for packet in self.packets {
            if !self.keeps {
                self.decoder.reset();
            }
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let result = self.decoder.decode_record(rest, &mut record);
                rest = rest.get(result.map_err(failed)?..).unwrap_or_default();
                black_box(&mut record);
            }
        }
        Ok(start.elapsed().as_nanos() as f64)
    }

    /// Encodes all messages, once; only the encoding is timed.
    fn encode<H: Holder>(&mut self) -> Result<f64> {
        let (packets, keeps) = (self.packets, self.keeps);
        let mut held = Both {
            bench: self,
            held: Vec::<H>::new(),
        };
        let (nanos, same) = measure::encode(&mut held, packets, keeps).map_err(failed)?;
        self.differs |= !same;
        Ok(nanos)
    }
}

/// A holder of messages between the decoder and the encoder.
struct Both<'b, 'a, H> {
    bench: &'b mut Bench<'a>,
    held: Vec<H>,
}

impl<H: Holder> Held for Both<'_, '_, H> {
    fn reset_decoder(&mut self) {
        self.bench.decoder.reset();
    }

    fn decode(&mut self, bytes: &[u8], place: usize) -> Result<usize, CodecError> {
        if place == self.held.len() {
            self.held.push(H::default());
        }
        match self.held.get_mut(place) {
            Some(one) => one.decode(&mut self.bench.decoder, bytes),
            None => Ok(bytes.len()),
        }
    }

    fn reset_encoder(&mut self, keeps: bool) {
        match keeps {
            true => self.bench.encoder.reset_template(),
            false => self.bench.encoder.reset(),
        }
    }

    #[inline(always)]
    fn encode(&mut self, place: usize, out: &mut Vec<u8>) -> Result<(), CodecError> {
        if let Some(one) = self.held.get(place) {
            one.encode(&mut self.bench.encoder, out)?;
        }
        Ok(())
    }
}

/// A type that holds a message between the decoder and the encoder.
trait Holder: Default {
    fn decode(&mut self, decoder: &mut Decoder, bytes: &[u8]) -> Result<usize, CodecError>;

    fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<usize, CodecError>;
}

impl Holder for Record {
    fn decode(&mut self, decoder: &mut Decoder, bytes: &[u8]) -> Result<usize, CodecError> {
        decoder.decode_record(bytes, self)
    }

    #[inline(always)]
    fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        encoder.encode_record(self, out)
    }
}

impl Holder for Message {
    fn decode(&mut self, decoder: &mut Decoder, bytes: &[u8]) -> Result<usize, CodecError> {
        decoder.decode(bytes, self)
    }

    #[inline(always)]
    fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        encoder.encode(self, out)
    }
}

fn failed(error: CodecError) -> anyhow::Error {
    anyhow!("{error}")
}

/// A visitor that reads every value.
#[derive(Debug, Default)]
struct EachField {
    sum: u64,
}

impl Visitor for EachField {
    #[inline]
    fn unsigned(&mut self, _: &Field, value: u64) {
        self.sum = self.sum.wrapping_add(value);
    }

    #[inline]
    fn signed(&mut self, _: &Field, value: i64) {
        self.sum = self.sum.wrapping_add(value as u64);
    }

    #[inline]
    fn decimal(&mut self, _: &Field, value: Decimal) {
        self.sum = self.sum.wrapping_add(value.mantissa as u64);
    }

    #[inline]
    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.sum = self.sum.wrapping_add(value.len() as u64);
    }

    #[inline]
    fn unicode(&mut self, _: &Field, value: &[u8]) {
        self.sum = self.sum.wrapping_add(value.len() as u64);
    }

    #[inline]
    fn bytes(&mut self, _: &Field, value: &[u8]) {
        self.sum = self.sum.wrapping_add(value.len() as u64);
    }

    #[inline]
    fn absent(&mut self, _: &Field) {
        self.sum = self.sum.wrapping_add(1);
    }
}

/// The nanoseconds of each pass.
#[derive(Debug, Default)]
struct Passes {
    empty: Vec<f64>,
    visitor: Vec<f64>,
    typed: Vec<f64>,
    message: Vec<f64>,
    encode: Vec<f64>,
    encode_message: Vec<f64>,
    /// Empty without structs.
    generated_decode: Vec<f64>,
    generated_encode: Vec<f64>,
}

impl Passes {
    fn generated(&mut self, bench: &Bench<'_>, structs: &mut dyn Structs) -> Result<()> {
        let (packets, keeps) = (bench.packets, bench.keeps);
        self.generated_decode.push(structs.decode(packets, keeps)?);
        let (nanos, same) = structs.encode(packets, keeps)?;
        if same == bench.differs {
            bail!("the encoded structs differ from the encoded records");
        }
        self.generated_encode.push(nanos);
        Ok(())
    }

    fn report(&mut self, args: &Args, packets: &[Vec<u8>], (messages, is_whole): (u64, bool)) {
        let bytes: usize = packets.iter().map(Vec::len).sum();
        let passes = self.empty.len();
        let each = |nanos: &mut Vec<f64>| median(std::mem::take(nanos)) / messages as f64;
        let has_structs = !self.generated_decode.is_empty();
        let mut kinds = vec![
            ("empty_ns", "empty visitor", each(&mut self.empty)),
            ("visitor_ns", "visitor, each field", each(&mut self.visitor)),
            ("typed_ns", "reused record", each(&mut self.typed)),
            ("message_ns", "reused message", each(&mut self.message)),
            ("encode_ns", "encode a record", each(&mut self.encode)),
        ];
        let encode = each(&mut self.encode_message);
        kinds.push(("encode_message_ns", "encode a message", encode));
        if has_structs {
            let (decode, encode) = (&mut self.generated_decode, &mut self.generated_encode);
            kinds.push(("generated_decode_ns", "generated structs", each(decode)));
            kinds.push(("generated_encode_ns", "encode structs", each(encode)));
        }
        if !args.json {
            let packets = packets.len();
            note!("{messages} messages, {packets} packets, {bytes} bytes; median of {passes}");
            for (_, name, nanos) in kinds {
                say!("{name:<20} {nanos:8.1} ns a message");
            }
            if !has_structs {
                let name = "generated structs";
                say!("{name:<20} only with builtin templates or --structs");
            }
            return;
        }
        let mut figures = Figures::new("fast bench");
        figures.count("messages", messages);
        figures.count("packets", packets.len() as u64);
        figures.count("bytes", bytes as u64);
        figures.count("passes", passes as u64);
        for (name, _, nanos) in kinds {
            figures.add(name, nanos);
        }
        figures.set_ok(is_whole);
        say!("{}", figures.to_json());
    }
}
