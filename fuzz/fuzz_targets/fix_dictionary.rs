//! Any text as a dictionary, in QuickFIX's XML or in FIX Orchestra: an error with its place, or a
//! dictionary that validates messages without a panic and gives back what it was made of.
#![no_main]

use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Cause, Dictionary, Switches};
use fanfare_wire::byte_sum;
use libfuzzer_sys::fuzz_target;

/// With groups, data, fields out of order, an empty value.
const BODIES: [&str; 3] = [
    "35=0|",
    "35=D|34=2|11=a|78=2|79=x|80=1|79=y|80=0|58=|",
    "35=C|34=2|33=1|58=a|95=1|96=||453=0|93=1|89=b|",
];

fuzz_target!(|xml: &str| {
    match Dictionary::from_xml(xml) {
        Ok(dictionary) => {
            let mut decoder = Decoder::new();
            for body in BODIES {
                let message = framed(body);
                let message = decoder.decode(&message).expect("a right message");
                let _ = dictionary.validate(&message, Switches::default());
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

/// `body`, with `|` for the separator, behind a right header and in front of a right trailer.
fn framed(body: &str) -> Vec<u8> {
    let front = format!("8=FIX.4.4|9={}|{body}", body.len()).replace('|', "\x01");
    let sum = byte_sum(front.as_bytes());
    format!("{front}10={sum:03}\x01").into_bytes()
}
