//! Generated structs: the same messages and errors as from the decoder that goes op by op, and the
//! same bytes and errors from encoding them.
#![no_main]

use fanfare_fast::builtin::{complex, simple, spectra};
use fanfare_fast::typed::{Feed, Typed, TypedDecoder, TypedEncoder};
use fanfare_fast::{Decoder, Encoder, Message, Options, Program};
use fanfare_wire::lanes::LaneKernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, bool, &[u8])| {
    let (strict, lanes, stream) = input;
    let kernel = LaneKernel::best().filter(|_| lanes);
    let options = Options {
        strict,
        kernel,
        ..Options::default()
    };
    let Some((which, stream)) = stream.split_first() else {
        return;
    };
    match which % 3 {
        0 => both::<simple::Messages>(options, stream),
        1 => both::<complex::Messages>(options, stream),
        _ => both::<spectra::Messages>(options, stream),
    }
});

fn both<F>(options: Options, mut rest: &[u8])
where
    F: Feed,
    for<'m> F::Decoded<'m>: Typed<Feed = F>,
{
    let by_ops = Options {
        oracle: true,
        kernel: None,
        ..options
    };
    let program = Program::parse(F::TEMPLATES).expect("it was generated from them");
    let mut oracle = Decoder::with_options(program.clone(), by_ops);
    let mut typed = TypedDecoder::<F>::new(options).expect("the same");
    // The second ones' previous values are those of other messages.
    let mut encoders = [(); 2].map(|()| {
        let typed = TypedEncoder::<F>::new(options).expect("the same");
        (Encoder::with_options(program.clone(), by_ops), typed)
    });
    let (mut message, mut again) = (Message::new(), Message::new());
    while !rest.is_empty() {
        let result = oracle.decode(rest, &mut message);
        let typed = typed.decode(rest).map(|(len, decoded)| {
            let decoded = decoded.expect("all documents have a Reset");
            decoded.write(&program, &mut again);
            assert_eq!(again, message);
            for (by_ops, typed) in &mut encoders[..1 + len % 2] {
                let (mut bytes, mut expected) = (Vec::new(), Vec::new());
                let result = by_ops.encode(&message, &mut expected);
                assert_eq!(typed.encode(&decoded, &mut bytes), result);
                assert_eq!(bytes, expected);
                if result.is_err() {
                    by_ops.reset();
                    typed.reset();
                }
            }
            len
        });
        assert_eq!(typed, result);
        match result {
            Ok(len) => rest = rest.get(len..).unwrap_or_default(),
            Err(_) => return,
        }
    }
}
