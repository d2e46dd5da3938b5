//! The structs of the built-in templates: no allocation after warm-up, in decode and in encode.

use fanfare_counting::allocations;
use fanfare_fast::builtin::{complex, spectra};
use fanfare_fast::generate::{ComplexOptions, Generator, SpectraOptions};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{Options, Program};

fn pass<F>(
    packets: &[Vec<u8>],
    decoder: &mut TypedDecoder<F>,
    encoder: &mut TypedEncoder<F>,
    out: &mut Vec<u8>,
) where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    for packet in packets {
        decoder.reset();
        encoder.reset();
        out.clear();
        let mut rest = &packet[..];
        while !rest.is_empty() {
            let (len, decoded) = decoder.decode(rest).unwrap();
            encoder.encode(&decoded.unwrap(), out).unwrap();
            rest = &rest[len..];
        }
        assert_eq!(out, packet);
    }
}

/// Allocations of a pass over a feed behind the first one.
fn allocated<F>(mut generator: Generator, options: Options) -> u64
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    let mut decoder = TypedDecoder::<F>::new(options).unwrap();
    let mut encoder = TypedEncoder::<F>::new(options).unwrap();
    let mut out = Vec::new();
    pass(&packets, &mut decoder, &mut encoder, &mut out);
    allocations(|| pass(&packets, &mut decoder, &mut encoder, &mut out)) as u64
}

#[test]
fn structs_keep_their_memory() {
    let scalar = Options {
        kernel: None,
        ..Options::default()
    };
    for options in [Options::default(), scalar] {
        let contents = ComplexOptions::default();
        let generator = Generator::complex(Program::complex(), 500, None, contents);
        assert_eq!(allocated::<complex::Messages>(generator, options), 0);
        for snapshots in [false, true] {
            let contents = SpectraOptions {
                snapshots,
                trades: 10,
                ..SpectraOptions::default()
            };
            let generator = Generator::spectra(Program::spectra(), 500, None, contents);
            assert_eq!(allocated::<spectra::Messages>(generator, options), 0);
        }
    }
}
