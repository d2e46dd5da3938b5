//! The vectors of `tests/vectors`, with the scalar program and with every kernel for lanes.

use std::path::Path;

use fanfare_fast::{Decoder, Encoder, Message, Options, Program, Record, json};
use fanfare_wire::lanes::LaneKernel;

use crate::common::to_hex;
use crate::vectors_table::{Case, cases};

fn all() -> Vec<Case> {
    cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors"))
}

/// The scalar program, and with each kernel that this processor has.
fn ways() -> Vec<Options> {
    let kernels = LaneKernel::all().map(Some);
    std::iter::once(None)
        .chain(kernels)
        .map(|kernel| Options {
            kernel,
            ..Options::default()
        })
        .collect()
}

/// What decoding gives: lines, and the error as a case writes it.
fn decode(program: &Program, bytes: &[u8], options: Options) -> (Vec<String>, Option<String>) {
    let mut decoder = Decoder::with_options(program.clone(), options);
    let (mut message, mut at, mut lines) = (Message::new(), 0, Vec::new());
    while at < bytes.len() {
        match decoder.decode(&bytes[at..], &mut message) {
            Ok(len) => at += len,
            Err(error) => {
                let path = error.path(program).unwrap_or_default();
                let text = format!("{}@{} {path}", error.code, at + error.offset);
                return (lines, Some(text.trim_end().to_owned()));
            }
        }
        lines.push(String::new());
        json::write_line(message.view(program).unwrap(), lines.last_mut().unwrap());
    }
    (lines, None)
}

fn encode(program: &Program, lines: &[String], options: Options) -> (Vec<u8>, Option<String>) {
    let mut encoder = Encoder::with_options(program.clone(), options);
    let (mut message, mut bytes) = (Message::new(), Vec::new());
    for line in lines {
        let read = json::read_line(program, line, &mut message).map_err(|error| error.error);
        if let Err(error) = read.and_then(|()| encoder.encode(&message, &mut bytes)) {
            let path = error.path(program).unwrap_or_default();
            let text = format!("{}@{} {path}", error.code, error.offset);
            return (bytes, Some(text.trim_end().to_owned()));
        }
    }
    (bytes, None)
}

/// Bytes to records and back.
fn by_records(program: &Program, bytes: &[u8], options: Options) -> Vec<u8> {
    let mut decoder = Decoder::with_options(program.clone(), options);
    let mut encoder = Encoder::with_options(decoder.program().clone(), options);
    let (mut record, mut at, mut out) = (Record::new(), 0, Vec::new());
    while at < bytes.len() {
        at += decoder.decode_record(&bytes[at..], &mut record).unwrap();
        encoder.encode_record(&record, &mut out).unwrap();
    }
    out
}

fn program(case: &Case) -> Program {
    Program::parse(&case.document()).unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

#[test]
fn bytes_mean_these_messages() {
    for case in all().iter().filter(|case| case.decodes()) {
        let program = program(case);
        for options in ways() {
            let name = format!("{}, {:?}", case.name, options.kernel);
            let (lines, error) = decode(&program, &case.bytes, options);
            assert_eq!(lines, case.lines, "{name}");
            case.check_error(error.as_deref(), &name);
        }
    }
}

#[test]
fn messages_are_these_bytes() {
    for case in all().iter().filter(|case| case.encodes()) {
        let program = program(case);
        for options in ways() {
            let name = format!("{} {:?}", case.name, options.kernel);
            let (bytes, error) = encode(&program, &case.lines, options);
            assert_eq!(to_hex(&bytes), to_hex(&case.bytes), "{name}");
            case.check_error(error.as_deref(), &name);
            if case.decodes() {
                let bytes = by_records(&program, &case.bytes, options);
                assert_eq!(to_hex(&bytes), to_hex(&case.bytes), "{name}");
            }
        }
    }
}

#[test]
fn a_cut_at_any_byte_is_told_and_nothing_else() {
    for case in all().iter().filter(|case| case.decodes() && case.encodes()) {
        let program = program(case);
        for options in ways() {
            let mut whole = 0;
            for cut in 0..case.bytes.len() {
                let (lines, error) = decode(&program, &case.bytes[..cut], options);
                assert_eq!(
                    lines,
                    case.lines[..lines.len()],
                    "{} cut at {cut}",
                    case.name
                );
                match error {
                    None => whole += 1,
                    Some(error) => {
                        let told = error.split(' ').next().unwrap();
                        assert_eq!(told, format!("EOF@{cut}"), "{}", case.name);
                    }
                }
            }
            assert_eq!(whole, case.lines.len(), "{}", case.name);
        }
    }
}
