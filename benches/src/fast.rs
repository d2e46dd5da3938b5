//! FAST decoding beside the crate `fastlib` and OpenFAST, on the same bytes.
//!
//! All add up every integer and the length of every string, so that none can leave a field out: the
//! sums must be equal. The structs that `build.rs` generates are filled from the same bytes; what
//! they hold must add up to the same.

mod crates;
mod programs;

use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::program::{Field, Program};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder};
use fanfare_fast::{Decimal, Decoder, Options, Visitor};
use fanfare_instruments::figures::median;

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::Peers;

mod simple {
    include!(concat!(env!("OUT_DIR"), "/simple.rs"));
}
mod complex {
    include!(concat!(env!("OUT_DIR"), "/complex.rs"));
}

const MESSAGES: u64 = 30_000;

/// Passes of a turn warm up for this long.
const WARM_UP: Duration = Duration::from_millis(50);
/// The passes that are measured, and the fewest of them, of a decoder that takes longer than
/// `LONGEST` for all.
const PASSES: usize = 21;
const FEWEST: usize = 3;
const LONGEST: Duration = Duration::from_secs(1);

/// Both feeds.
///
/// # Errors
/// A decoder refuses the feed, or the sums differ.
pub(crate) fn contests(peers: &Peers) -> Result<Vec<Contest>> {
    let simple = Generator::simple(Program::simple(), MESSAGES, PACKET_SIZE);
    let options = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), MESSAGES, None, options);
    Ok(vec![
        contest::<simple::Messages>(peers, "simple", simple)?,
        contest::<complex::Messages>(peers, "complex", complex)?,
    ])
}

/// Adds up what messages hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

fn contest<F>(peers: &Peers, name: &str, mut generator: Generator) -> Result<Contest>
where
    F: Feed + 'static,
    for<'m> F::Decoded<'m>: Typed,
{
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet()? {
        packets.push(packet.to_vec());
    }
    let packets = Rc::new(packets);
    let (structs, sum) = generated_structs::<F>(Rc::clone(&packets))?;
    let visitor = visitor(F::TEMPLATES, Rc::clone(&packets), sum)?;
    let fastlib = crates::fastlib(F::TEMPLATES, Rc::clone(&packets), sum)?;
    let mut contest = Contest {
        id: format!("fast_{name}"),
        title: format!("FAST: decoding the {name} feed"),
        what: format!(
            "Each decoder makes several passes over {MESSAGES} messages of a generated feed in \
             memory. The figure is the median of the passes after the warm-up. The visitors of \
             Fanfare and fastlib sum up all values of a message, and so does a walk through the \
             objects of OpenFAST, which allocates one for each message and each value. The structs \
             that Fanfare generates contain the values; nothing is summed up there. OpenFAST \
             accepts the templates as they are; fastlib does not support integers below 32 bits, \
             or an exponent without a default value."
        ),
        source: "benches/src/fast.rs, benches/peers",
        figures: vec![Figure::lower("message", "ns")],
        contestants: vec![visitor, structs, fastlib],
        absent: Vec::new(),
    };
    let feed = programs::Packets {
        name,
        templates: F::TEMPLATES,
        packets: &packets,
        sum,
    };
    programs::join(&mut contest, peers, &feed)?;
    Ok(contest)
}

/// Fanfare's decoder with a visitor, which must add up to `sum`.
fn visitor(templates: &str, packets: Rc<Vec<Vec<u8>>>, sum: Sum) -> Result<Contestant> {
    let mut decoder = Decoder::new(Program::parse(templates)?);
    let pass = move |sum: &mut Sum| decode(&mut decoder, &packets, sum);
    contestant("Fanfare", "visitor", sum, pass)
}

/// Fanfare's generated structs, and what they add up to.
fn generated_structs<F>(packets: Rc<Vec<Vec<u8>>>) -> Result<(Contestant, Sum)>
where
    F: Feed + 'static,
    for<'m> F::Decoded<'m>: Typed,
{
    let mut decoder = TypedDecoder::<F>::new(Options::default())?;
    let mut told = Sum::default();
    decode_structs(&mut decoder, &packets, |message, program| {
        message.write(program, &mut told);
        told.messages += 1;
    })?;
    // Here the messages alone are counted.
    let counted = Sum { values: 0, ..told };
    let pass = move |sum: &mut Sum| {
        decode_structs(&mut decoder, &packets, |message, _| {
            black_box(message);
            sum.messages += 1;
        })
    };
    let name = "Fanfare, generated structs";
    let contestant = contestant(name, "by a build script", counted, pass)?;
    Ok((contestant, told))
}

/// A contestant each of whose passes must add up to `sum`.
fn contestant(
    name: &'static str,
    how: &str,
    sum: Sum,
    mut pass: impl FnMut(&mut Sum) -> Result<()> + 'static,
) -> Result<Contestant> {
    checked(&mut pass, sum).context(name)?;
    Ok(Contestant::new(name, how, move || {
        Ok(vec![timed(&mut pass, sum)?])
    }))
}

/// The median of passes in nanoseconds a message, after others that warm up.
fn timed(pass: &mut impl FnMut(&mut Sum) -> Result<()>, sum: Sum) -> Result<f64> {
    let begun = Instant::now();
    while begun.elapsed() < WARM_UP {
        checked(pass, sum)?;
    }
    let (begun, mut nanos) = (Instant::now(), Vec::new());
    while nanos.len() < PASSES && (nanos.len() < FEWEST || begun.elapsed() < LONGEST) {
        nanos.push(checked(pass, sum)?);
    }
    Ok(median(nanos))
}

/// A pass, which must add up to `sum`, in nanoseconds a message.
fn checked(pass: &mut impl FnMut(&mut Sum) -> Result<()>, sum: Sum) -> Result<f64> {
    let mut found = Sum::default();
    let start = Instant::now();
    pass(&mut found)?;
    let nanos = start.elapsed().as_nanos() as f64;
    ensure!(found == sum, "{found:?} came, {sum:?} was expected");
    Ok(nanos / sum.messages as f64)
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
