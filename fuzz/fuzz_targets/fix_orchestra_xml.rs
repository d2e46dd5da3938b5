//! Any text as a dictionary in FIX Orchestra: an error with its place, or a dictionary that
//! validates messages without a panic and gives back what it was made of.
#![no_main]

use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Cause, Dictionary, Switches};
use libfuzzer_sys::fuzz_target;

const MESSAGES: [&[u8]; 3] = [
    b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01",
    b"8=FIX.4.4\x019=44\x0135=D\x0134=2\x0111=a\x0178=2\x0179=x\x0180=1\x0179=y\x0180=0\x0158=\x01\
      10=109\x01",
    b"8=FIX.4.4\x019=40\x0135=C\x0134=2\x0133=1\x0158=a\x0195=1\x0196=\x01\x01453=0\x0193=1\x01\
      89=b\x0110=216\x01",
];

fuzz_target!(|xml: &str| {
    match Dictionary::from_xml(xml) {
        Ok(dictionary) => {
            let mut decoder = Decoder::new();
            for message in MESSAGES {
                if let Ok(message) = decoder.decode(message) {
                    let _ = dictionary.validate(&message, Switches::default());
                }
            }
            for (tag, field) in &dictionary.schema().fields {
                assert_eq!(dictionary.field_name(*tag), Some(&*field.name));
            }
            let again = Dictionary::new(dictionary.schema().clone());
            assert!(again.is_ok(), "its own schema");
        }
        Err(error) => {
            let is_whole = matches!(error.cause, Cause::Schema(_) | Cause::TextTooLarge);
            assert!(is_whole || error.line > 0 && error.column > 0, "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
});
