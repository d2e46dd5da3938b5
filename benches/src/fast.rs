//! FAST decoding beside the crate `fastlib`, on the same bytes.
//!
//! Both decode into a visitor that adds up every integer and the length of every string, so that
//! neither can leave a field out: the sums must be equal. The structs that `build.rs` generates are
//! filled from the same bytes; what they hold must add up to the same.

use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::program::{Field, Program};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder};
use fanfare_fast::{Decimal, Decoder, Options, Visitor};
use fastlib::{MessageFactory, Value};

use crate::contest::{Contest, Contestant, Figure};

mod simple {
    include!(concat!(env!("OUT_DIR"), "/simple.rs"));
}
mod complex {
    include!(concat!(env!("OUT_DIR"), "/complex.rs"));
}

const MESSAGES: u64 = 30_000;

/// Both feeds.
///
/// # Errors
/// A decoder refuses the feed, or the sums differ.
pub(crate) fn contests() -> Result<Vec<Contest>> {
    let simple = Generator::simple(Program::simple(), MESSAGES, PACKET_SIZE);
    let options = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), MESSAGES, None, options);
    Ok(vec![
        contest::<simple::Messages>("simple", simple)?,
        contest::<complex::Messages>("complex", complex)?,
    ])
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

fn contest<F>(name: &str, mut generator: Generator) -> Result<Contest>
where
    F: Feed + 'static,
    for<'m> F::Decoded<'m>: Typed,
{
    let templates = F::TEMPLATES;
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet()? {
        packets.push(packet.to_vec());
    }
    let packets = Rc::new(packets);
    let mut ours = Decoder::new(Program::parse(templates)?);
    let mut theirs =
        fastlib::Decoder::new_from_xml(&for_fastlib(templates)).context("fastlib: templates")?;
    let mut structs = TypedDecoder::<F>::new(Options::default())?;
    let mut told = Sum::default();
    decode_structs(&mut structs, &packets, |message, program| {
        message.write(program, &mut told);
        told.messages += 1;
    })?;
    for (who, sum) in [
        ("Fanfare", timed(|sum| decode(&mut ours, &packets, sum))?.0),
        (
            "fastlib",
            timed(|sum| decode_with_fastlib(&mut theirs, &packets, sum))?.0,
        ),
    ] {
        ensure!(sum == told, "{name}: {sum:?} by {who}, {told:?} in structs");
    }
    let [one, two, three] = [(); 3].map(|()| Rc::clone(&packets));
    Ok(Contest {
        id: format!("fast_{name}"),
        title: format!("FAST: decoding the {name} feed"),
        what: format!(
            "{MESSAGES} messages of a generated feed are decoded from packets in memory, into a \
             visitor that adds up every value. Beside the visitors, the structs that Fanfare \
             generates."
        ),
        source: "benches/src/fast.rs",
        figures: vec![Figure::lower("message", "ns")],
        contestants: vec![
            Contestant::new("Fanfare", "visitor", move || {
                Ok(vec![timed(|sum| decode(&mut ours, &one, sum))?.1])
            }),
            Contestant::new(
                "Fanfare, generated structs",
                "by a build script",
                move || {
                    let (_, nanos) = timed(|sum| {
                        decode_structs(&mut structs, &two, |message, _| {
                            black_box(message);
                            sum.messages += 1;
                        })
                    })?;
                    Ok(vec![nanos])
                },
            ),
            Contestant::new("fastlib", "0.3.8 of crates.io, visitor", move || {
                let pass = |sum: &mut Sum| decode_with_fastlib(&mut theirs, &three, sum);
                Ok(vec![timed(pass)?.1])
            }),
        ],
        absent: Vec::new(),
    })
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
