//! Times decoding and encoding of the generated feeds: nanoseconds a message, best of many
//! passes.
//!
//! `cargo run --release -p fanfare-fast --example decode_speed`, perhaps with `-- FEED KERNEL
//! PASSES`: simple, complex or all; scalar, avx2 or avx512

use std::hint::black_box;
use std::time::{Duration, Instant};

use fanfare_fast::builtin::{complex, simple};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::program::{Field, Program};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{CodecError, Decoder, Encoder, Ignore, Message, Options, Record, Visitor};
use fanfare_wire::Kernel;
use fanfare_wire::lanes::LaneKernel;

/// Adds up all integers: the least that a user of every field does.
#[derive(Default)]
struct Sum(u64);

impl Visitor for Sum {
    fn unsigned(&mut self, _: &Field, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }

    fn signed(&mut self, _: &Field, value: i64) {
        self.0 = self.0.wrapping_add(value as u64);
    }

    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.0 = self.0.wrapping_add(value.len() as u64);
    }
}

fn main() -> Result<(), CodecError> {
    let mut args = std::env::args().skip(1);
    let only = args.next().filter(|only| only != "all");
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only == name);
    let kernel = match args.next() {
        Some(name) => Kernel::from_name(&name).and_then(LaneKernel::new),
        None => LaneKernel::best(),
    };
    let options = Options {
        kernel,
        ..Options::default()
    };
    let passes = args.next().and_then(|n| n.parse().ok()).unwrap_or(100);
    println!("kernel: {kernel:?}");
    let simple = Generator::simple(Program::simple(), 30_000, PACKET_SIZE);
    if wanted("simple") {
        let packets = packets(simple)?;
        run("simple", Program::simple(), options, &packets, passes)?;
        generated::<simple::Messages>(options, &packets, passes)?;
    }
    let contents = ComplexOptions::default();
    let complex = Generator::complex(Program::complex(), 30_000, None, contents);
    if wanted("complex") {
        let packets = packets(complex)?;
        run("complex", Program::complex(), options, &packets, passes)?;
        generated::<complex::Messages>(options, &packets, passes)?;
    }
    Ok(())
}

fn packets(mut generator: Generator) -> Result<Vec<Vec<u8>>, CodecError> {
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet()? {
        packets.push(packet.to_vec());
    }
    Ok(packets)
}

/// Times the structs that `fanfare fast codegen` makes: decoding, and both less decoding.
fn generated<F>(options: Options, packets: &[Vec<u8>], passes: u32) -> Result<(), CodecError>
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed,
{
    let input = |_| CodecError::new(fanfare_fast::ErrorCode::Input, 0);
    let mut decoder = TypedDecoder::<F>::new(options).map_err(input)?;
    let mut encoder = TypedEncoder::new::<F>(options).map_err(input)?;
    let mut pass = |encodes: bool| {
        let (mut count, mut out) = (0, Vec::new());
        for packet in packets {
            decoder.reset();
            encoder.reset();
            out.clear();
            let mut at = 0;
            while at < packet.len() {
                let (len, decoded) = decoder.decode(&packet[at..])?;
                match decoded {
                    Some(message) if encodes => _ = encoder.encode(&message, &mut out)?,
                    decoded => _ = black_box(decoded.is_some()),
                }
                at += len;
                count += 1;
            }
        }
        Ok(count)
    };
    let decode = best(passes, || pass(false))?;
    let both = best(passes, || pass(true))?;
    let encode = both - decode;
    println!("  generated: decode {decode:.1}, encode {encode:.1} ns a message");
    Ok(())
}

fn run(
    name: &str,
    program: Program,
    options: Options,
    packets: &[Vec<u8>],
    passes: u32,
) -> Result<(), CodecError> {
    let mut decoder = Decoder::with_options(program, options);
    let empty = best(passes, || decode(&mut decoder, packets, &mut Ignore))?;
    let mut sum = Sum::default();
    let visitor = best(passes, || decode(&mut decoder, packets, &mut sum))?;
    let mut record = Record::new();
    let rows = best(passes, || {
        decode_records(&mut decoder, packets, &mut record)
    })?;
    let mut message = Message::new();
    let reused = best(passes, || decode(&mut decoder, packets, &mut message))?;
    let mut encoder = Encoder::with_options(decoder.program().clone(), options);
    let mut out = Vec::new();
    // Encoding alone would read messages from memory: so decode, encode, and subtract.
    let both = best(passes, || {
        each(&mut decoder, &mut encoder, packets, |d, e, bytes| {
            out.clear();
            let len = d.decode(bytes, &mut message)?;
            e.encode(&message, &mut out)?;
            Ok(len)
        })
    })?;
    let encode = both - reused;
    let encode_rows = best_of(passes, || {
        encode_records(&mut decoder, &mut encoder, packets, &mut out)
    })?;
    println!(
        "{name}: empty {empty:.1}, visitor {visitor:.1}, record {rows:.1}, message {reused:.1}, \
         encode record {encode_rows:.1}, message {encode:.1} ns a message (checksum {})",
        sum.0
    );
    Ok(())
}

fn decode<V: Visitor>(
    decoder: &mut Decoder,
    packets: &[Vec<u8>],
    visitor: &mut V,
) -> Result<usize, CodecError> {
    let mut count = 0;
    for packet in packets {
        decoder.reset();
        let mut at = 0;
        while at < packet.len() {
            at += decoder.decode(&packet[at..], visitor)?;
            count += 1;
        }
    }
    Ok(count)
}

/// Handles each message of all packets.
fn each(
    decoder: &mut Decoder,
    encoder: &mut Encoder,
    packets: &[Vec<u8>],
    mut message: impl FnMut(&mut Decoder, &mut Encoder, &[u8]) -> Result<usize, CodecError>,
) -> Result<usize, CodecError> {
    let mut count = 0;
    for packet in packets {
        decoder.reset();
        encoder.reset();
        let mut at = 0;
        while at < packet.len() {
            at += message(decoder, encoder, &packet[at..])?;
            count += 1;
        }
    }
    Ok(count)
}

fn decode_records(
    decoder: &mut Decoder,
    packets: &[Vec<u8>],
    record: &mut Record,
) -> Result<usize, CodecError> {
    let mut count = 0;
    for packet in packets {
        decoder.reset();
        let mut at = 0;
        while at < packet.len() {
            at += decoder.decode_record(&packet[at..], record)?;
            count += 1;
        }
    }
    Ok(count)
}

/// About how many messages are decoded before they are encoded: few enough to stay in the cache.
const CHUNK: usize = 64;

/// Decodes a few packets, and encodes them again; nanoseconds a message, of the encoding only.
fn encode_records(
    decoder: &mut Decoder,
    encoder: &mut Encoder,
    packets: &[Vec<u8>],
    out: &mut Vec<u8>,
) -> Result<f64, CodecError> {
    let mut records: Vec<Record> = Vec::new();
    let (mut timed, mut count, mut next) = (Duration::ZERO, 0, 0);
    while next < packets.len() {
        let (mut ends, mut used) = (Vec::new(), 0);
        while used < CHUNK && next < packets.len() {
            let (packet, mut at) = (&packets[next], 0);
            decoder.reset();
            while at < packet.len() {
                if used == records.len() {
                    records.push(Record::new());
                }
                at += decoder.decode_record(&packet[at..], &mut records[used])?;
                used += 1;
            }
            ends.push(used);
            next += 1;
        }
        out.clear();
        let (start, mut from) = (Instant::now(), 0);
        for end in ends {
            encoder.reset();
            for record in &records[from..end] {
                encoder.encode_record(record, out)?;
            }
            from = end;
        }
        timed += start.elapsed();
        count += used;
    }
    Ok(timed.as_nanos() as f64 / count as f64)
}

/// The least of many passes.
fn best_of(
    passes: u32,
    mut pass: impl FnMut() -> Result<f64, CodecError>,
) -> Result<f64, CodecError> {
    let mut best = f64::MAX;
    for _ in 0..passes {
        best = best.min(pass()?);
    }
    Ok(best)
}

fn best(
    passes: u32,
    mut pass: impl FnMut() -> Result<usize, CodecError>,
) -> Result<f64, CodecError> {
    let mut best = f64::MAX;
    for _ in 0..passes {
        let start = Instant::now();
        let count = pass()?;
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    Ok(best)
}
