//! Measures decoding a message and making its samples, in lanes where the processor supports them
//! and field by field, and decoding alone: nanoseconds a message, medians of many passes.
//!
//! `cargo bench -p fanfare-dds --bench convert_speed`

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Options, Program, Record};

const PASSES: usize = 60;

fn main() -> Result<(), Box<dyn Error>> {
    let simple = Generator::simple(Program::simple(), 30_000, PACKET_SIZE);
    run("simple", Program::simple(), simple)?;
    let options = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), 30_000, None, options);
    run("complex", Program::complex(), complex)
}

fn run(name: &str, program: Program, mut feed: Generator) -> Result<(), Box<dyn Error>> {
    let mut packets = Vec::new();
    while let Some(packet) = feed.next_packet()? {
        packets.push(packet.to_vec());
    }
    let program = Arc::new(program);
    let mapping = Mapping::new(Arc::clone(&program), &TypeOptions::default())?;
    let mut converter = Converter::new(Arc::new(mapping), 1 << 16);
    let (mut decoder, mut record) = (Decoder::new(program), Record::new());
    let both = median(&packets, &mut decoder, |decoder, bytes| {
        let len = decoder.decode_record(bytes, &mut record)?;
        converter.samples(&record, |s| _ = black_box(s.cdr))?;
        Ok(len)
    })?;
    let options = Options {
        kernel: None,
        ..Options::default()
    };
    let mut scalar = Decoder::with_options(Arc::clone(decoder.program()), options);
    let by_field = median(&packets, &mut scalar, |decoder, bytes| {
        let len = decoder.decode_record(bytes, &mut record)?;
        converter.samples(&record, |s| _ = black_box(s.cdr))?;
        Ok(len)
    })?;
    let alone = median(&packets, &mut decoder, |decoder, bytes| {
        Ok(decoder.decode_record(bytes, &mut record)?)
    })?;
    println!("{name}: {both:.1} ns, field by field {by_field:.1}, decoding alone {alone:.1}");
    Ok(())
}

fn median(
    packets: &[Vec<u8>],
    decoder: &mut Decoder,
    mut message: impl FnMut(&mut Decoder, &[u8]) -> Result<usize, Box<dyn Error>>,
) -> Result<f64, Box<dyn Error>> {
    let mut passes = Vec::new();
    for _ in 0..PASSES {
        let (begin, mut messages) = (Instant::now(), 0_u32);
        for packet in packets {
            decoder.reset();
            let mut rest = &packet[..];
            while !rest.is_empty() {
                let len = message(decoder, rest)?;
                rest = rest.get(len..).unwrap_or_default();
                messages += 1;
            }
        }
        passes.push(begin.elapsed().as_nanos() as f64 / f64::from(messages));
    }
    passes.sort_by(f64::total_cmp);
    Ok(passes[PASSES / 2])
}
