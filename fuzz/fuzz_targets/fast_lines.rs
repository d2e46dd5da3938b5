//! Any line as JSON and as FIX under any templates: an error with its place in the line, or a
//! message that is written as a line which reads as the same message.
#![no_main]

use fanfare_fast::{Message, Program, fix, json};
use libfuzzer_sys::fuzz_target;

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
    let Ok(fields) = fix::split_fields(line) else {
        return;
    };
    if fix::read_message(&program, &fields, &mut message).is_ok() {
        let mut body = Vec::new();
        // A value with SOH in it is not FIX.
        let _ = fix::write_body(message.view(&program).expect("a message"), &mut body);
    }
});

fn as_json(program: &Program, message: &Message) -> String {
    let mut line = String::new();
    json::write_line(message.view(program).expect("a message"), &mut line);
    line
}
