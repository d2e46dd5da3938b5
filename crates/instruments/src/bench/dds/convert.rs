//! The cost of decoding a message and making its samples.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use fanfare_dds::fast::{Converted, Converter, Mapping, TypeOptions};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program, Record};

use crate::bench::BenchError;
use crate::figures::{Figures, median};

/// Messages of a converted feed.
const MESSAGES: u64 = 30_000;
/// Passes over a converted feed: some tenths of a second, the first of which warm up.
const PASSES: usize = 60;

/// Adds the nanoseconds to decode a message of the built-in feeds and convert it to its samples:
/// the medians of all passes.
///
/// # Errors
/// None is expected.
pub fn add_conversion(figures: &mut Figures) -> Result<(), BenchError> {
    let simple = Generator::simple(Program::simple(), MESSAGES, PACKET_SIZE);
    let options = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), MESSAGES, None, options);
    for (name, program, feed) in [
        ("convert_simple_ns", Program::simple(), simple),
        ("convert_complex_ns", Program::complex(), complex),
    ] {
        figures.add(name, convert(program, feed)?);
    }
    Ok(())
}

/// Returns a converter of this program's messages to samples of at most `room` bytes.
pub(super) fn converter(program: &Arc<Program>, room: usize) -> Result<Converter, BenchError> {
    let mapping = Mapping::new(Arc::clone(program), &TypeOptions::default()).map_err(told)?;
    Ok(Converter::new(Arc::new(mapping), room))
}

/// Returns the error of a built-in feed.
pub(super) fn told(error: impl ToString) -> BenchError {
    BenchError::Feed(error.to_string())
}

fn convert(program: Program, mut feed: Generator) -> Result<f64, BenchError> {
    let program = Arc::new(program);
    let mut converter = converter(&program, 1 << 16)?;
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet().map_err(told)? {
        packets.push(packet.to_vec());
    }
    let (mut decoder, mut record) = (Decoder::new(program), Record::new());
    let mut passes = Vec::new();
    for _ in 0..PASSES {
        let begin = Instant::now();
        let (mut messages, mut bytes) = (0_u64, 0_usize);
        for packet in &packets {
            decoder.reset();
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let len = decoder.decode_record(rest, &mut record).map_err(told)?;
                rest = rest.get(len..).unwrap_or_default();
                let take = |s: Converted<'_>| bytes += black_box(s.cdr).len();
                converter.samples(&record, take).map_err(told)?;
                messages += 1;
            }
        }
        black_box(bytes);
        passes.push(begin.elapsed().as_nanos() as f64 / messages as f64);
    }
    Ok(median(passes))
}
