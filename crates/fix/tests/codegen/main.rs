//! Typed messages: the generator writes the code that is compiled here, and that reads and writes
//! what the untyped codec does. `RENEW=1 cargo test -p fanfare-fix --test codegen renew` writes the
//! files anew; empty a file first whose code does not compile any more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

#[path = "../dict/generate.rs"]
#[allow(dead_code)]
mod generate;
mod get;
#[path = "../dict/oracle.rs"]
#[allow(dead_code)]
mod oracle;
mod round;

use std::path::{Path, PathBuf};

use fanfare_fix::codegen::{self, CodegenError};
use fanfare_fix::dict::{Dictionary, Version};

include!("../../messages/fix44.generated");

mod odd {
    include!("odd.generated");
}

/// Messages of FIX.4.4, which the examples and the benchmark use too.
const FIX44: [&str; 4] = ["NewOrderSingle", "8", "MarketDataRequest", "W"];

fn odd() -> Dictionary {
    Dictionary::from_xml(include_str!("odd.xml")).unwrap()
}

fn newer() -> Dictionary {
    let own = Dictionary::from_xml(include_str!("newer.xml")).unwrap();
    own.over(&Dictionary::built_in(Version::Fixt11)).unwrap()
}

/// A whole message around `fields`, which are written with `|` and begin with MsgType(35).
fn message(begin_string: &str, fields: &str) -> Vec<u8> {
    let fields = fields.replace('|', "\x01");
    let text = format!("8={begin_string}\x019={}\x01{fields}", fields.len());
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    format!("{text}10={sum:03}\x01").into_bytes()
}

#[test]
fn renewed_files_are_those_that_are_compiled_here() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dictionary = Dictionary::built_in(Version::Fix44);
    let files: [(PathBuf, String); 2] = [
        (
            home.join("messages/fix44.generated"),
            codegen::generate(&[(&*dictionary, &FIX44)]).unwrap(),
        ),
        (
            home.join("tests/codegen/odd.generated"),
            codegen::generate(&[(&odd(), &[]), (&newer(), &[])]).unwrap(),
        ),
    ];
    for (path, code) in files {
        if std::env::var_os("RENEW").is_some() {
            std::fs::write(&path, &code).unwrap();
        }
        let compiled = std::fs::read_to_string(&path).unwrap();
        assert!(
            code == compiled,
            "{} is of another generator",
            path.display()
        );
    }
}

#[test]
fn what_cannot_be_generated_is_named() {
    let fault =
        |parts: &[(&Dictionary, &[&str])]| codegen::generate(parts).unwrap_err().to_string();
    let fix44 = &*Dictionary::built_in(Version::Fix44);
    assert_eq!(fault(&[]), "no dictionary to generate code from");
    assert_eq!(
        fault(&[(fix44, &["D", "Order"])]),
        "the dictionary of FIX.4.4 has no message with the name or MsgType(35) Order"
    );
    assert_eq!(
        fault(&[(fix44, &["D"]), (&odd(), &[])]),
        "two dictionaries describe FIX.4.4"
    );
    let named = |version: &str, messages: bool| {
        let mut schema = odd().schema().clone();
        schema.version = version.to_owned();
        if !messages {
            schema.messages.clear();
        }
        Dictionary::new(schema).unwrap()
    };
    assert_eq!(
        fault(&[(&named("FIX.9.9", false), &[])]),
        "the dictionary of FIX.9.9 has no messages"
    );
    assert_eq!(
        fault(&[(fix44, &["D"]), (&named("FIX.9.9", true), &[])]),
        "messages do not name version FIX.9.9: generate its code alone"
    );
    let alone = named("FIX.9.9\n}", true);
    let code = codegen::generate(&[(&alone, &["U2"])]).unwrap();
    assert!(code.contains("\n/// Messages of FIX.9.9.\n") && code.contains("pub mod fix99 {"));
    assert_eq!(
        codegen::generate(&[(&alone, &["U9"])]),
        Err(CodegenError::UnknownMessage {
            name: "U9".to_owned(),
            version: "FIX.9.9\n}".to_owned()
        })
    );
}
