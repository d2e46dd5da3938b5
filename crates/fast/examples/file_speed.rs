//! Times a file of messages without framing: decoded into a message, and encoded again, with and
//! without what it takes to restore previous values. Nanoseconds a message, medians of passes.
//!
//! `cargo run --release -p fanfare-fast --example file_speed -- TEMPLATES FILE [PASSES]`

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use fanfare_fast::{CodecError, Decoder, Encoder, Message, Program};

/// How many messages are decoded before they are encoded: few enough to stay in the cache.
const CHUNK: usize = 64;

type Encode = fn(&mut Encoder, &Message, &mut Vec<u8>) -> Result<usize, CodecError>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(templates), Some(file)) = (args.next(), args.next()) else {
        return Err("arguments: TEMPLATES FILE [PASSES]".into());
    };
    let passes: usize = args.next().map_or(Ok(25), |n| n.parse())?;
    let program = Program::parse(&std::fs::read_to_string(templates)?)?;
    let bytes = std::fs::read(&file)?;
    if bytes.is_empty() || passes == 0 {
        return Err("nothing to measure".into());
    }
    let encodes: [Encode; 2] = [Encoder::encode, Encoder::encode_or_restore];
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..passes {
        all[0].push(decoding(&program, &bytes)?);
        for (encode, kind) in encodes.into_iter().zip(1..) {
            all[kind].push(encoding(&program, &bytes, encode)?);
        }
    }
    let [decode, encode, restoring] = all.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!(
        "{file}: decode {decode:.1}, encode {encode:.1} ({:.2}), or restore {restoring:.1} ({:.2})",
        encode / decode,
        restoring / decode
    );
    Ok(())
}

/// One pass of decoding into a reused message.
#[inline(never)]
fn decoding(program: &Program, bytes: &[u8]) -> Result<f64, Box<dyn Error>> {
    let mut decoder = Decoder::new(program.clone());
    let (mut message, mut at, mut count) = (Message::new(), 0, 0);
    let start = Instant::now();
    while at < bytes.len() {
        at += decoder.decode(&bytes[at..], &mut message)?;
        count += 1;
        black_box(&mut message);
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
}

/// One pass that encodes all messages, of which only that is timed.
#[inline(never)]
fn encoding(program: &Program, bytes: &[u8], encode: Encode) -> Result<f64, Box<dyn Error>> {
    let mut decoder = Decoder::new(program.clone());
    let mut encoder = Encoder::new(program.clone());
    let mut messages = vec![Message::new(); CHUNK];
    let (mut at, mut count, mut timed) = (0, 0, Duration::ZERO);
    let mut out = Vec::new();
    while at < bytes.len() {
        let (start, mut used) = (at, 0);
        for message in &mut messages {
            if at == bytes.len() {
                break;
            }
            at += decoder.decode(&bytes[at..], message)?;
            used += 1;
        }
        out.clear();
        let clock = Instant::now();
        for message in &messages[..used] {
            encode(&mut encoder, message, &mut out)?;
        }
        timed += clock.elapsed();
        if out != bytes[start..at] {
            return Err(format!("other bytes between {start} and {at}").into());
        }
        count += used;
    }
    Ok(timed.as_nanos() as f64 / count as f64)
}
