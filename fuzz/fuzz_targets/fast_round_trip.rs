//! What decodes, encodes; what was encoded decodes to the same; and from then on the bytes stay.
#![no_main]

use fanfare_fast::{Decoder, Encoder, Message, Program, json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &[u8])| {
    let (xml, stream) = input;
    let Ok(program) = Program::parse(xml) else { return };
    let mut decoder = Decoder::new(program.clone());
    let mut encoder = Encoder::new(program.clone());
    let mut again = Decoder::new(program.clone());
    let mut third = Encoder::new(program.clone());
    let (mut message, mut second) = (Message::new(), Message::new());
    let mut rest = stream;
    while let Ok(len) = decoder.decode(rest, &mut message) {
        rest = &rest[len..];
        let mut bytes = Vec::new();
        // The bytes may differ from the stream's, which need not leave out what it could.
        encoder.encode(&message, &mut bytes).expect("what was decoded encodes");
        assert_eq!(again.decode(&bytes, &mut second), Ok(bytes.len()));
        assert_eq!(line(&program, &message), line(&program, &second));
        let mut same = Vec::new();
        third.encode(&second, &mut same).expect("what was decoded encodes");
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
