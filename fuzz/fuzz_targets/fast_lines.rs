//! Any line as JSON and as FIX under any templates: an error, with its place in the line where that
//! does not parse, or a message that is written as a line which reads as the same message.
#![no_main]

use fanfare_fast::fix::FixError;
use fanfare_fast::program::Field;
use fanfare_fast::{Fields, Message, MessageView, Program, Value, fix, json};
use libfuzzer_sys::fuzz_target;
use std::collections::HashSet;

fuzz_target!(|input: (&str, &[u8])| {
    let (xml, line) = input;
    let Ok(program) = Program::parse(xml) else {
        return;
    };
    let mut message = Message::new();
    if let Ok(line) = std::str::from_utf8(line) {
        match json::read_line(&program, line, &mut message) {
            Ok(()) => {
                let written = as_json(&program, &message);
                let again = json::read_line(&program, &written, &mut message);
                again.expect("what was written reads");
                assert_eq!(as_json(&program, &message), written);
            }
            Err(error) => assert!(line.is_char_boundary(error.error.offset)),
        }
    }
    match fix::split_fields(line) {
        Ok(fields) => {
            if fix::read_message(&program, &fields, &mut message).is_ok() {
                check_fix(&program, message.view(&program).expect("a message"));
            }
        }
        Err(FixError::Syntax(at)) => assert!(at < line.len()),
        Err(error) => panic!("an error that is not of the syntax: {error}"),
    }
});

/// Checks that a message whose FIX is clear is read from it.
fn check_fix(program: &Program, message: MessageView<'_>) {
    let mut body = Vec::new();
    // A value with SOH in it is not FIX.
    if fix::write_body(message, &mut body).is_err() || !is_clear(program, message) {
        return;
    }
    let fields = fix::split_fields(&body).expect("what was written is fields");
    let mut again = Message::new();
    let read = fix::read_fields(program, message.template(), &fields, &mut again);
    read.expect("what was written reads");
    let mut same = Vec::new();
    let again = again.view(program).expect("a message");
    assert_eq!(fix::write_body(again, &mut same), Ok(()));
    assert_eq!(same, body);
}

/// Returns whether each tag says which field it is, and each entry says where it begins.
fn is_clear(program: &Program, message: MessageView<'_>) -> bool {
    let template = message.template().index();
    let own = program.fields().iter();
    let own = own.filter(|field| field.template() == template);
    let mut seen = HashSet::new();
    own.filter_map(Field::tag)
        .all(|tag| tag > 0 && seen.insert(tag))
        && begin_alike(message.fields())
}

/// Returns whether all entries begin with the first field of their sequence.
fn begin_alike(fields: Fields<'_>) -> bool {
    fields.into_iter().all(|(_, value)| match value {
        Value::Group(inside) | Value::Template(_, inside) => begin_alike(inside),
        Value::Sequence(mut entries) => entries.all(|mut entry| {
            let inside = entry;
            entry.next().is_some_and(|(field, value)| {
                let is_written = fix::write_value(value, &mut Vec::new());
                is_written && field.tag().is_some()
            }) && begin_alike(inside)
        }),
        _ => true,
    })
}

fn as_json(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).expect("a message"), &mut line);
    line
}
