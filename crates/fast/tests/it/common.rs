//! Helpers: templates in short, bytes as hex, messages as JSON lines.

use fanfare_fast::{Decoder, Encoder, Message, Options, Program, json};

/// Bytes of hexadecimal digits; spaces between them are for the eye.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A program of one template, `T` with the id 1, of these fields.
pub(crate) fn program(fields: &str) -> Program {
    let xml = format!("<template name=\"T\" id=\"1\">{fields}</template>");
    Program::parse(&xml).unwrap_or_else(|error| panic!("{error} in {xml}"))
}

/// The fields of a message as JSON.
pub(crate) fn fields(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).unwrap(), &mut line);
    let start = line.find("\"fields\": ").unwrap() + 10;
    line[start..line.len() - 1].to_owned()
}

/// Decodes all messages of a stream: their fields, or `CODE@OFFSET path` of the error at the end.
pub(crate) fn decode_all(program: &Program, bytes: &[u8], strict: bool) -> Vec<String> {
    let options = Options {
        strict,
        ..Options::default()
    };
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut message, mut at, mut all) = (Message::new(), 0, Vec::new());
    while at < bytes.len() {
        match decoder.decode(&bytes[at..], &mut message) {
            Ok(len) => at += len,
            Err(error) => {
                let path = error.path(program).unwrap_or_default();
                all.push(format!("{}@{} {path}", error.code, at + error.offset));
                break;
            }
        }
        all.push(fields(program, &message));
    }
    all
}

/// Decodes a stream, expects these fields for each message, and the same bytes from the encoder:
/// from the decoded messages and from their JSON lines.
pub(crate) fn both_ways(program: &Program, bytes: &[u8], expected: &[&str]) {
    assert_eq!(
        decode_all(program, bytes, true),
        expected,
        "decoding {}",
        to_hex(bytes)
    );
    let mut decoder = Decoder::new(program.clone());
    let (mut encoder, mut from_json) =
        (Encoder::new(program.clone()), Encoder::new(program.clone()));
    let (mut message, mut again) = (Message::new(), Message::new());
    let (mut at, mut out, mut out_json) = (0, Vec::new(), Vec::new());
    while at < bytes.len() {
        at += decoder.decode(&bytes[at..], &mut message).unwrap();
        encoder.encode(&message, &mut out).unwrap();
        let mut line = String::new();
        json::write_line(message.view(program).unwrap(), &mut line);
        json::read_line(program, &line, &mut again).unwrap();
        from_json.encode(&again, &mut out_json).unwrap();
    }
    assert_eq!(to_hex(&out), to_hex(bytes), "encoding again");
    assert_eq!(to_hex(&out_json), to_hex(bytes), "encoding from JSON");
}

/// Encodes JSON objects of fields as consecutive messages: the bytes of each, or the code.
pub(crate) fn encode_all(program: &Program, messages: &[&str]) -> Vec<String> {
    let mut encoder = Encoder::new(program.clone());
    let mut message = Message::new();
    let encode = |fields: &&str| {
        let line = format!("{{\"template\": \"T\", \"fields\": {fields}}}");
        if let Err(error) = json::read_line(program, &line, &mut message) {
            return error.error.code.to_string();
        }
        let mut out = Vec::new();
        match encoder.encode(&message, &mut out) {
            Ok(_) => to_hex(&out),
            Err(error) => error.code.to_string(),
        }
    };
    messages.iter().map(encode).collect()
}
