//! Any text as a mapping file: an error with its line, or a mapping that templates and a dictionary
//! refuse with its line, or that maps what they hold without a panic.
#![no_main]

use fanfare_fast::generate::{Generator, SpectraOptions};
use fanfare_fast::{Decoder, Program, Record};
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::event::Flags;
use fanfare_market::{Instruments, Mapping, TextError};
use fanfare_wire::byte_sum;
use libfuzzer_sys::fuzz_target;
use std::sync::{Arc, OnceLock};

const BODIES: [&str; 3] = [
    "35=X|34=2|52=20261120-12:34:56|268=2|279=0|269=0|55=A|270=1|271=2|279=2|269=2|",
    "35=W|34=2|55=A|48=7|22=8|268=1|269=J|",
    "35=d|34=2|320=a|322=b|323=1|55=A|15=EUR|541=20261120|",
];

/// Packets of a feed of `builtin:spectra`.
fn feed() -> &'static (Arc<Program>, Vec<Vec<u8>>) {
    static FEED: OnceLock<(Arc<Program>, Vec<Vec<u8>>)> = OnceLock::new();
    FEED.get_or_init(|| {
        let mut packets = Vec::new();
        for snapshots in [false, true] {
            let options = SpectraOptions {
                snapshots,
                trades: 30,
                ..SpectraOptions::default()
            };
            let mut feed = Generator::spectra(Program::spectra(), 8, None, options);
            while let Some(packet) = feed.next_packet().expect("its own templates") {
                packets.push(packet.to_vec());
            }
        }
        (Arc::new(Program::spectra()), packets)
    })
}

fuzz_target!(|text: &str| {
    let mapping = match Mapping::parse("m.toml", text) {
        Ok(mapping) => mapping,
        Err(error) => return check(&error),
    };
    let (program, packets) = feed();
    match mapping.for_templates(program, 0) {
        Err(error) => check(&error),
        Ok(mut mapper) => {
            let mut table = Instruments::new(20);
            let (mut decoder, mut record) = (Decoder::new(program.clone()), Record::new());
            for packet in packets {
                decoder.reset();
                let mut bytes = &packet[..];
                while let Ok(len) = decoder.decode_record(bytes, &mut record) {
                    bytes = &bytes[len..];
                    if let Err(error) = mapper.record(&mut table, 1, &record) {
                        assert!(!mapper.describe(&error, &table).is_empty());
                    }
                    let last = mapper.events().last();
                    assert!(last.is_none_or(|event| event.flags.has(Flags::LAST)));
                    if bytes.is_empty() {
                        break;
                    }
                }
            }
            let _ = mapper.report();
        }
    }
    match mapping.for_fix(&Dictionary::built_in(Version::Fix44), 0) {
        Err(error) => check(&error),
        Ok(mut mapper) => {
            let (mut table, mut decoder) = (Instruments::new(20), FixDecoder::new());
            for body in BODIES {
                let message = framed(body);
                let message = decoder.decode(&message).expect("a right message");
                let _ = mapper.message(&mut table, 1, &message);
            }
        }
    }
});

fn check(error: &TextError) {
    assert!(error.line > 0 && !error.why.is_empty(), "{error}");
}

/// `body`, with `|` for the separator, behind a right header and in front of a right trailer.
fn framed(body: &str) -> Vec<u8> {
    let front = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
    let sum = byte_sum(front.as_bytes());
    format!("{front}10={sum:03}\x01").into_bytes()
}
