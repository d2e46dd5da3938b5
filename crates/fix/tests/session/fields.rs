//! Messages as text, put together and taken apart without the codec under test.

use std::fmt::Write as _;

/// `35=D|34=2|…` with the frame around it: BeginString, BodyLength, CheckSum.
pub(crate) fn framed(begin_string: &str, fields: &str) -> Vec<u8> {
    let mut body = fields.trim_end_matches('|').replace('|', "\x01");
    body.push('\x01');
    let mut text = format!("8={begin_string}\x019={}\x01{body}", body.len());
    let sum = text.bytes().fold(0_u8, u8::wrapping_add);
    let _ = write!(text, "10={sum:03}\x01");
    text.into_bytes()
}

/// All fields of a message (no data fields), frame included.
pub(crate) fn split(message: &[u8]) -> Vec<(u32, String)> {
    String::from_utf8_lossy(message)
        .split_terminator('\x01')
        .map(|field| {
            let (tag, value) = field.split_once('=').expect("tag=value");
            (tag.parse().expect("tag number"), value.to_owned())
        })
        .collect()
}

/// The first whole message of `bytes`, and the rest.
pub(crate) fn first_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let trailer = bytes.windows(4).position(|w| w == b"\x0110=")?;
    bytes.split_at_checked(trailer + 8)
}

pub(crate) fn shown(message: &[u8]) -> String {
    String::from_utf8_lossy(message).replace('\x01', "|")
}
