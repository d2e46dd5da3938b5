//! FIX messages as text, with `|` for SOH, in frames that the codec under test has not made.

/// Returns a message: these fields between BeginString(8) with BodyLength(9) and CheckSum(10).
#[must_use]
pub fn framed(begin_string: &str, fields: &str) -> String {
    let message = format!("8={begin_string}|9={}|{fields}", fields.len());
    let sum = check_sum(&message);
    format!("{message}10={sum:03}|")
}

/// Returns the CheckSum(10) of a text.
#[must_use]
pub fn check_sum(text: &str) -> u8 {
    let bytes = text.bytes().map(|byte| if byte == b'|' { 1 } else { byte });
    bytes.fold(0, u8::wrapping_add)
}

/// Returns the bytes of a text.
#[must_use]
pub fn wire(text: &str) -> Vec<u8> {
    text.replace('|', "\x01").into_bytes()
}
