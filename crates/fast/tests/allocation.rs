//! No allocation after warm-up: decoding into a visitor, a message, FIX fields, and encoding.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use fanfare_counting::allocations;
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE, SpectraOptions};
use fanfare_fast::{Decoder, Encoder, Ignore, Message, Program, Record, fix};

/// Everything that a hot path does with a stream, in one pass.
struct Paths {
    decoder: Decoder,
    encoder: Encoder,
    message: Message,
    record: Record,
    out: Vec<u8>,
}

impl Paths {
    fn pass(&mut self, packets: &[Vec<u8>]) {
        for packet in packets {
            for path in 0..5 {
                self.decoder.reset();
                self.encoder.reset();
                let mut at = 0;
                while at < packet.len() {
                    at += self.one(path, &packet[at..]);
                }
            }
        }
    }

    fn one(&mut self, path: u32, bytes: &[u8]) -> usize {
        match path {
            0 => return self.decoder.decode(bytes, &mut Ignore).unwrap(),
            1 => {
                return self
                    .decoder
                    .decode_partial(bytes, &mut Ignore)
                    .unwrap()
                    .unwrap();
            }
            2 => return self.record(bytes),
            _ => {}
        }
        let len = self.decoder.decode(bytes, &mut self.message).unwrap();
        self.out.clear();
        let (encoder, message) = (&mut self.encoder, &self.message);
        let encoded = match path {
            3 => encoder.encode(message, &mut self.out),
            _ => encoder.encode_or_restore(message, &mut self.out),
        };
        assert_eq!(encoded, Ok(len));
        assert_eq!(self.out, bytes[..len]);
        self.out.clear();
        let view = self.message.view(self.decoder.program()).unwrap();
        fix::write_message(view, b"FIX.4.4", &mut self.out).unwrap();
        len
    }

    fn record(&mut self, bytes: &[u8]) -> usize {
        let len = self.decoder.decode_record(bytes, &mut self.record).unwrap();
        self.out.clear();
        self.encoder
            .encode_record(&self.record, &mut self.out)
            .unwrap();
        assert_eq!(self.out, bytes[..len]);
        len
    }
}

fn check(program: Program, mut generator: Generator) {
    let mut packets = Vec::new();
    while let Some(packet) = generator.next_packet().unwrap() {
        packets.push(packet.to_vec());
    }
    let mut paths = Paths {
        decoder: Decoder::new(program.clone()),
        encoder: Encoder::new(program),
        message: Message::new(),
        record: Record::new(),
        out: Vec::new(),
    };
    assert!(
        allocations(|| paths.pass(&packets)) > 0,
        "the counter counts"
    );
    assert_eq!(allocations(|| paths.pass(&packets)), 0);
}

#[test]
fn orders_need_no_memory_after_warm_up() {
    check(
        Program::simple(),
        Generator::simple(Program::simple(), 1000, PACKET_SIZE),
    );
}

#[test]
fn market_data_needs_no_memory_after_warm_up() {
    let options = ComplexOptions::default();
    check(
        Program::complex(),
        Generator::complex(Program::complex(), 1000, None, options),
    );
}

#[test]
fn data_of_real_shapes_needs_no_memory_after_warm_up() {
    for snapshots in [false, true] {
        let options = SpectraOptions {
            snapshots,
            ..SpectraOptions::default()
        };
        check(
            Program::spectra(),
            Generator::spectra(Program::spectra(), 1000, None, options),
        );
    }
}

#[test]
fn strings_of_all_operators_need_no_memory_after_warm_up() {
    let fields: String = ["copy", "tail", "delta", "default value='abc'"]
        .iter()
        .enumerate()
        .map(|(index, operator)| {
            format!("<string name='S{index}' presence='optional'><{operator}/></string>")
        })
        .collect();
    let xml = format!("<template name='T' id='1'>{fields}</template>");
    let program = Program::parse(&xml).unwrap();
    let mut encoder = Encoder::new(program.clone());
    let mut message = Message::new();
    let mut packet = Vec::new();
    for number in 0..100 {
        let text = format!("{}", 1_000_000_u64 * number * number + 10_000_000_000_000);
        let line = format!(
            "{{\"id\": 1, \"fields\": {{\"S0\": \"{text}\", \"S1\": \"{text}\", \
             \"S2\": \"{text}\", \"S3\": null}}}}"
        );
        fanfare_fast::json::read_line(&program, &line, &mut message).unwrap();
        encoder.encode(&message, &mut packet).unwrap();
    }
    let mut paths = Paths {
        decoder: Decoder::new(program.clone()),
        encoder: Encoder::new(program),
        message,
        record: Record::new(),
        out: Vec::new(),
    };
    let packets = [packet];
    paths.pass(&packets);
    assert_eq!(allocations(|| paths.pass(&packets)), 0);
}
