//! What decodes, encodes; what was encoded decodes to the same; and from then on the bytes stay.
//! A record encodes to the same bytes as the message, and so does the encoder that goes op by op.
#![no_main]

use fanfare_fast::{Decoder, Encoder, Message, Options, Program, Record, json};
use fanfare_wire::lanes::LaneKernel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (xml, stream) = input;
    let Ok(program) = Program::parse(xml) else {
        return;
    };
    let oracle = Options {
        oracle: true,
        ..Options::default()
    };
    let mut decoder = Decoder::with_options(program.clone(), oracle);
    let mut by_ops = Encoder::with_options(program.clone(), oracle);
    let mut encoder = Encoder::new(program.clone());
    let mut again = Decoder::new(program.clone());
    let mut third = Encoder::new(program.clone());
    let (mut message, mut second) = (Message::new(), Message::new());
    let kernels = LaneKernel::all().map(Some).chain([None]);
    let lanes = kernels.map(|kernel| Lanes::new(&program, kernel));
    let mut lanes: Vec<_> = lanes.collect();
    let mut rest = stream;
    while let Ok(len) = decoder.decode(rest, &mut message) {
        let encoded = rest;
        rest = &rest[len..];
        let mut bytes = Vec::new();
        // The bytes may differ from the stream's, which need not leave out what it could.
        encoder
            .encode(&message, &mut bytes)
            .expect("what was decoded encodes");
        let mut expected = Vec::new();
        assert_eq!(by_ops.encode(&message, &mut expected), Ok(bytes.len()));
        assert_eq!(bytes, expected);
        for lanes in &mut lanes {
            assert_eq!(lanes.encoded_again(encoded), bytes);
        }
        assert_eq!(again.decode(&bytes, &mut second), Ok(bytes.len()));
        assert_eq!(line(&program, &message), line(&program, &second));
        let mut same = Vec::new();
        third
            .encode(&second, &mut same)
            .expect("what was decoded encodes");
        assert_eq!(same, bytes);
        if rest.is_empty() {
            return;
        }
    }
});

fn line(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).expect("decoded"), &mut line);
    line
}

/// Decodes to records, and encodes them again, with one kernel or none.
struct Lanes {
    decoder: Decoder,
    encoder: Encoder,
    record: Record,
}

impl Lanes {
    fn new(program: &Program, kernel: Option<LaneKernel>) -> Self {
        let options = Options {
            kernel,
            ..Options::default()
        };
        Self {
            decoder: Decoder::with_options(program.clone(), options),
            encoder: Encoder::with_options(program.clone(), options),
            record: Record::new(),
        }
    }

    fn encoded_again(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.decoder
            .decode_record(bytes, &mut self.record)
            .expect("it decodes to a message");
        self.encoder
            .encode_record(&self.record, &mut out)
            .expect("what was decoded encodes");
        out
    }
}
