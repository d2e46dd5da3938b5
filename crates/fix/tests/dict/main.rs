//! Dictionaries from outside: the validation pass against an obvious one, violations by hand, and
//! the loaders of XML.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail"
)]

mod generate;
mod groups;
mod load;
mod oracle;
mod random;
mod violations;

/// A whole message of fields that are written with `|`, from MsgType(35) on.
fn message(begin_string: &str, fields: &str) -> Vec<u8> {
    whole(begin_string, fields.replace('|', "\x01").as_bytes())
}

/// A whole message around `fields`, which begin with MsgType(35).
fn whole(begin_string: &str, fields: &[u8]) -> Vec<u8> {
    let mut bytes = format!("8={begin_string}\x019={}\x01", fields.len()).into_bytes();
    bytes.extend_from_slice(fields);
    let sum = bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    bytes.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    bytes
}
