//! Any bytes under a template document of the input's own: no panic, nothing is lost where the
//! stream is cut, and the slow way of decoding finds the same.
#![no_main]

use fanfare_fast::{Decoder, ErrorCode, Message, Options, Program};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, bool, u8, &[u8])| {
    let (xml, strict, cut, stream) = input;
    let Ok(program) = Program::parse(xml) else {
        return;
    };
    let options = Options {
        strict,
        ..Options::default()
    };
    let oracle = Options {
        oracle: true,
        ..options
    };
    let mut whole = Decoder::with_options(program.clone(), oracle);
    let mut pieces = Decoder::with_options(program, options);
    let (mut message, mut other) = (Message::new(), Message::new());
    let mut rest = stream;
    while !rest.is_empty() {
        let result = whole.decode(rest, &mut message);
        let first = &rest[..usize::from(cut).min(rest.len())];
        let cut_off = match pieces.decode_partial(first, &mut other) {
            Ok(None) => pieces.decode_partial(rest, &mut other),
            done => done,
        };
        match result {
            Ok(len) => {
                assert_eq!(cut_off, Ok(Some(len)));
                assert_eq!(message, other);
                rest = &rest[len..];
            }
            Err(error) => {
                let partial = error.code == ErrorCode::Truncated;
                assert_eq!(cut_off, if partial { Ok(None) } else { Err(error) });
                return;
            }
        }
    }
});
