//! The memory of generated structs: what fits into it takes no more, and there is a bound to it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use fanfare_counting::{allocations, live_bytes_here};
use fanfare_fast::typed::{Dynamic, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{Message, Options, Program};

mod builtin;

#[allow(unreachable_pub, dead_code)]
mod every {
    include!("every.generated");
}

const EVERY: &str = include_str!("every.xml");

/// By straight-line code, and op by op.
fn decoders() -> [TypedDecoder<every::Messages>; 2] {
    [false, true].map(|oracle| {
        let options = Options {
            oracle,
            ..Options::default()
        };
        TypedDecoder::new(options).unwrap()
    })
}

fn encoder() -> TypedEncoder<every::Messages> {
    TypedEncoder::new(Options::default()).unwrap()
}

fn message(entries: u32) -> every::EveryType {
    let mut message = every::EveryType {
        ascii: "a string that has memory of its own".into(),
        uni: "größer".into(),
        ..every::EveryType::default()
    };
    for id in 0..entries {
        message.entries.add().id = id;
    }
    message
}

#[test]
fn dynamic_references_keep_their_memory() {
    let program = Program::parse(EVERY).unwrap();
    let mut inner = Message::new();
    message(5).write(&program, &mut inner);
    let mut carrier = every::Carrier {
        number: 5,
        template_ref: Dynamic(inner.clone()),
        ..every::Carrier::default()
    };
    for _ in 0..3 {
        carrier.more.add().template_ref = Dynamic(inner.clone());
    }
    let mut bytes = Vec::new();
    encoder().encode(&carrier, &mut bytes).unwrap();
    for mut decoder in decoders() {
        let mut decode = || {
            decoder.reset();
            let (len, decoded) = decoder.decode(&bytes).unwrap();
            assert_eq!(len, bytes.len());
            assert_eq!(decoded, Some(every::Decoded::Carrier(&carrier)));
        };
        decode();
        assert_eq!(allocations(decode), 0);
    }
}

/// In each message another entry has 200 long strings: no message is large, but all of them
/// together are.
#[test]
fn a_feed_cannot_make_structs_ever_larger() {
    const MIB: i64 = 1 << 20;
    let long = [b'x'; 60_000];
    for mut decoder in decoders() {
        let mut encoder = encoder();
        let (mut bytes, before) = (Vec::new(), live_bytes_here());
        for number in 0..12 {
            let mut message = message(number + 1);
            let legs = message.entries.last_mut().unwrap().legs.insert();
            for _ in 0..200 {
                legs.add().note.insert().set(&long);
            }
            encoder.reset();
            decoder.reset();
            bytes.clear();
            encoder.encode(&message, &mut bytes).unwrap();
            let (_, decoded) = decoder.decode(&bytes).unwrap();
            assert_eq!(decoded, Some(every::Decoded::EveryType(&message)));
            drop(message);
            assert!(live_bytes_here() - before < 96 * MIB, "after {number}");
        }
    }
}
