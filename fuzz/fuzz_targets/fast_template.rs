//! Any text as a template document: an error with a place in it, or a program that decodes
//! something without a panic.
#![no_main]

use fanfare_fast::{Decoder, Ignore, Program};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|xml: &str| {
    match Program::parse(xml) {
        Ok(program) => {
            let mut decoder = Decoder::new(program);
            let _ = decoder.decode(&[0xc0, 0x81, 0x80, 0x80, 0x80, 0x80], &mut Ignore);
        }
        Err(error) => assert!(error.line > 0 && error.column > 0),
    }
});
