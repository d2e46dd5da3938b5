//! Generated structs: no heap allocation after warm-up, in decode and in encode.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_counting::allocations;
use fanfare_fast::builtin::complex::Messages;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_fast::typed::{TypedDecoder, TypedEncoder};
use fanfare_fast::{Options, Program};

fn pass(
    packets: &[Vec<u8>],
    decoder: &mut TypedDecoder<Messages>,
    encoder: &mut TypedEncoder,
    out: &mut Vec<u8>,
) {
    for packet in packets {
        decoder.reset();
        encoder.reset();
        out.clear();
        let (_, decoded) = decoder.decode(packet).unwrap();
        encoder.encode(&decoded.unwrap(), out).unwrap();
        assert_eq!(out, packet);
    }
}

#[test]
fn structs_keep_their_memory() {
    let options = ComplexOptions::default();
    let mut generator = Generator::complex(Program::complex(), 500, None, options);
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    let mut decoder = TypedDecoder::<Messages>::new(Options::default()).unwrap();
    let mut encoder = TypedEncoder::new::<Messages>(Options::default()).unwrap();
    let mut out = Vec::new();
    pass(&packets, &mut decoder, &mut encoder, &mut out);
    let again = || pass(&packets, &mut decoder, &mut encoder, &mut out);
    assert_eq!(allocations(again), 0);
}
