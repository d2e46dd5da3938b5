//! FAST decoding beside the crate `fastlib`, on the same bytes, in turns in one run.
//!
//! `cargo run --release --manifest-path benches/Cargo.toml`, or `make bench-peers`: one JSON
//! object on stdout. Both decode into a visitor that adds up every integer and the length of
//! every string, so that neither can leave a field out: the sums must be equal. The structs that
//! `build.rs` generates are filled from the same bytes; what they hold must add up to the same.

#![forbid(unsafe_code)]

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::program::{Field, Program};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder};
use fanfare_fast::{Decimal, Decoder, Options, Visitor};
use fanfare_instruments::figures::{Figures, median};
use fastlib::{MessageFactory, Value};

mod simple {
    include!(concat!(env!("OUT_DIR"), "/simple.rs"));
}
mod complex {
    include!(concat!(env!("OUT_DIR"), "/complex.rs"));
}

/// Passes of each over the whole feed, in turns.
const PASSES: usize = 15;
const MESSAGES: u64 = 30_000;

fn main() -> Result<()> {
    let mut figures = Figures::new("fast peers");
    let simple = Generator::simple(Program::simple(), MESSAGES, PACKET_SIZE);
    compare::<simple::Messages>("simple", simple, &mut figures)?;
    let options = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), MESSAGES, None, options);
    compare::<complex::Messages>("complex", complex, &mut figures)?;
    println!("{}", figures.to_json());
    Ok(())
}

/// Adds up what a message holds, for both libraries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    messages: u64,
    values: u64,
}

impl Sum {
    fn add(&mut self, value: u64) {
        self.values = self.values.wrapping_add(value);
    }
}

impl Visitor for Sum {
    fn unsigned(&mut self, _: &Field, value: u64) {
        self.add(value);
    }

    fn signed(&mut self, _: &Field, value: i64) {
        self.add(value as u64);
    }

    fn decimal(&mut self, _: &Field, value: Decimal) {
        self.add(value.mantissa as u64);
        self.add(i64::from(value.exponent) as u64);
    }

    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.add(value.len() as u64);
    }
}

impl MessageFactory for Sum {
    fn start_template(&mut self, _: u32, _: &str) {}
    fn stop_template(&mut self) {}

    fn set_value(&mut self, _: u32, _: &str, value: Option<Value>) {
        match value {
            Some(Value::UInt32(v)) => self.add(v.into()),
            Some(Value::UInt64(v)) => self.add(v),
            Some(Value::Int32(v)) => self.add(i64::from(v) as u64),
            Some(Value::Int64(v)) => self.add(v as u64),
            Some(Value::Decimal(v)) => {
                self.add(v.mantissa as u64);
                self.add(i64::from(v.exponent) as u64);
            }
            Some(Value::ASCIIString(v)) => self.add(v.len() as u64),
            _ => {}
        }
    }

    fn start_sequence(&mut self, _: u32, _: &str, _: u32) {}
    fn start_sequence_item(&mut self, _: u32) {}
    fn stop_sequence_item(&mut self) {}
    fn stop_sequence(&mut self) {}
    fn start_group(&mut self, _: &str) {}
    fn stop_group(&mut self) {}
    fn start_template_ref(&mut self, _: &str, _: bool) {}
    fn stop_template_ref(&mut self) {}
}

fn compare<F>(name: &str, mut generator: Generator, figures: &mut Figures) -> Result<()>
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed,
{
    let templates = F::TEMPLATES;
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet()? {
        packets.push(packet.to_vec());
    }
    let mut ours = Decoder::new(Program::parse(templates)?);
    let mut theirs =
        fastlib::Decoder::new_from_xml(&for_fastlib(templates)).context("fastlib: templates")?;
    let mut structs = TypedDecoder::<F>::new(Options::default())?;
    let mut told = Sum::default();
    decode_structs(&mut structs, &packets, |message, program| {
        message.write(program, &mut told);
        told.messages += 1;
    })?;
    let (mut our_passes, mut their_passes) = (Vec::new(), Vec::new());
    let mut struct_passes = Vec::new();
    for _ in 0..PASSES {
        let (our_sum, nanos) = timed(|sum| decode(&mut ours, &packets, sum))?;
        our_passes.push(nanos);
        let (their_sum, nanos) = timed(|sum| decode_with_fastlib(&mut theirs, &packets, sum))?;
        their_passes.push(nanos);
        ensure!(
            our_sum == their_sum && our_sum == told,
            "{name}: {our_sum:?} here, {told:?} in structs, {their_sum:?} with fastlib"
        );
        let (_, nanos) = timed(|sum| {
            decode_structs(&mut structs, &packets, |message, _| {
                black_box(message);
                sum.messages += 1;
            })
        })?;
        struct_passes.push(nanos);
    }
    let (ours, theirs) = (median(our_passes), median(their_passes));
    figures.add(&format!("{name}_generated_ns"), median(struct_passes));
    figures.add(&format!("{name}_visitor_ns"), ours);
    figures.add(&format!("{name}_fastlib_ns"), theirs);
    figures.add(&format!("{name}_ratio"), theirs / ours);
    Ok(())
}

/// The same templates as far as this feed goes, as fastlib takes them: no comment in front of the
/// root element, no integers below 32 bits (they look the same on the wire), and no optional
/// exponent without a default value (NetChgPrevDay(451) is always present here).
fn for_fastlib(templates: &str) -> String {
    let root = templates.find("<templates").unwrap_or_default();
    let body = templates.get(root..).unwrap_or_default();
    let exponent = ("<exponent><default/>", "<exponent><default value=\"0\"/>");
    let changes = [("uInt8", "uInt32"), ("uInt16", "uInt32"), exponent];
    let change = |text: String, (from, to)| text.replace(from, to);
    changes.into_iter().fold(body.to_owned(), change)
}

/// A pass: what it added up, and its nanoseconds a message.
fn timed(mut pass: impl FnMut(&mut Sum) -> Result<()>) -> Result<(Sum, f64)> {
    let mut sum = Sum::default();
    let start = Instant::now();
    pass(&mut sum)?;
    let nanos = start.elapsed().as_nanos() as f64;
    let messages = sum.messages as f64;
    Ok((sum, nanos / messages))
}

fn decode(decoder: &mut Decoder, packets: &[Vec<u8>], sum: &mut Sum) -> Result<()> {
    for packet in packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let len = decoder.decode(rest, sum)?;
            rest = rest.get(len..).unwrap_or_default();
            sum.messages += 1;
        }
    }
    Ok(())
}

/// Decodes into generated structs, each of which `message` is given.
fn decode_structs<F: Feed>(
    decoder: &mut TypedDecoder<F>,
    packets: &[Vec<u8>],
    mut message: impl FnMut(F::Decoded<'_>, &Program),
) -> Result<()> {
    let program = decoder.program().clone();
    for packet in packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let (len, decoded) = decoder.decode(rest)?;
            message(decoded.context("no template's")?, &program);
            rest = rest.get(len..).unwrap_or_default();
        }
    }
    Ok(())
}

fn decode_with_fastlib(
    decoder: &mut fastlib::Decoder,
    packets: &[Vec<u8>],
    sum: &mut Sum,
) -> Result<()> {
    for packet in packets {
        decoder.reset();
        let mut rest = packet.as_slice();
        while !rest.is_empty() {
            let len = decoder.decode_buffer(rest, sum).context("fastlib")?;
            rest = rest.get(len as usize..).unwrap_or_default();
            sum.messages += 1;
        }
    }
    Ok(())
}
