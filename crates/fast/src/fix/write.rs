//! FAST messages to FIX messages.

use std::fmt;

use fanfare_wire::{Decimal, byte_sum, int};

use crate::message::{Fields, MessageView, Value};

const SOH: u8 = 1;
pub(super) const MSG_TYPE: u32 = 35;

/// A value holds the separator of FIX fields, so that the message cannot be written as FIX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SohError {
    /// The tag of the field.
    pub tag: u32,
}

impl fmt::Display for SohError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value of field {} holds a SOH byte", self.tag)
    }
}

impl std::error::Error for SohError {}

/// Appends the fields as `tag=value`, each followed by SOH, in the order of the template but with
/// MsgType(35) first. Absent fields are left out. Nothing is allocated if `out` has room. Each
/// level of the message takes stack: see [`Message`](crate::Message) for the depth of one that no
/// decoder has filled.
///
/// # Errors
/// [`SohError`]; `out` is then as before.
pub fn write_body(message: MessageView<'_>, out: &mut Vec<u8>) -> Result<(), SohError> {
    let start = out.len();
    let msg_type = msg_type(message.fields());
    let result = msg_type.map_or(Ok(()), |value| scalar(MSG_TYPE, value, out));
    let result = result.and_then(|()| fields(message.fields(), true, out));
    if result.is_err() {
        out.truncate(start);
    }
    result
}

/// Appends a whole FIX message: BeginString(8), BodyLength(9), the body of [`write_body`] and
/// CheckSum(10).
///
/// # Errors
/// [`SohError`]; `out` is then as before.
pub fn write_message(
    message: MessageView<'_>,
    begin_string: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), SohError> {
    let start = out.len();
    write_body(message, out)?;
    let body = out.len() - start;
    let mut digits = [0; 20];
    let len = int::write_u64(body as u64, &mut digits);
    out.extend_from_slice(b"8=");
    out.extend_from_slice(begin_string);
    out.extend_from_slice(b"\x019=");
    out.extend_from_slice(&digits[..len]);
    out.push(SOH);
    // The header, which has the length of the body, was written after it: bring it to the front.
    out[start..].rotate_left(body);
    let sum = byte_sum(&out[start..]);
    let digit = |value: u8| b'0' + value % 10;
    out.extend_from_slice(b"10=");
    out.extend_from_slice(&[digit(sum / 100), digit(sum / 10), digit(sum), SOH]);
    Ok(())
}

/// Returns the MsgType(35) of a message, which may be in a group or in a referenced template.
fn msg_type(level: Fields<'_>) -> Option<Value<'_>> {
    let own = level.tag(MSG_TYPE).filter(|value| !value.is_absent());
    own.or_else(|| {
        level.into_iter().find_map(|(_, value)| match value {
            Value::Group(inside) | Value::Template(_, inside) => msg_type(inside),
            _ => None,
        })
    })
}

fn fields(level: Fields<'_>, top: bool, out: &mut Vec<u8>) -> Result<(), SohError> {
    for (field, value) in level {
        match value {
            Value::Absent => {}
            Value::Group(inside) | Value::Template(_, inside) => fields(inside, top, out)?,
            Value::Sequence(entries) => {
                let Some(tag) = field.tag() else { continue };
                number(tag, entries.len() as u64, out);
                for entry in entries {
                    fields(entry, false, out)?;
                }
            }
            _ => match field.tag() {
                Some(MSG_TYPE) if top => {}
                Some(tag) => scalar(tag, value, out)?,
                None => {}
            },
        }
    }
    Ok(())
}

fn scalar(tag: u32, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), SohError> {
    let start = out.len();
    begin(tag, out);
    if !write_value(value, out) {
        out.truncate(start);
        return match value.as_bytes() {
            Some(_) => Err(SohError { tag }),
            None => Ok(()),
        };
    }
    out.push(SOH);
    Ok(())
}

/// Appends the text of a field's value: digits, or the bytes of a string. Returns false, with
/// nothing appended, if the value is absent, has fields of its own, or holds the separator of FIX
/// fields. Nothing is allocated if `out` has room.
pub fn write_value(value: Value<'_>, out: &mut Vec<u8>) -> bool {
    match value {
        Value::Unsigned(value, _) => digits(value, out),
        Value::Signed(value, _) => {
            let mut digits = [0; 24];
            let len = int::write_i64(value, &mut digits);
            out.extend_from_slice(&digits[..len]);
        }
        Value::Decimal(value) => {
            let mut digits = [0; Decimal::MAX_LEN];
            let len = value.write(&mut digits);
            out.extend_from_slice(&digits[..len]);
        }
        Value::Ascii(text) | Value::Unicode(text) | Value::Bytes(text) => {
            if text.contains(&SOH) {
                return false;
            }
            out.extend_from_slice(text);
        }
        _ => return false,
    }
    true
}

fn digits(value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let len = int::write_u64(value, &mut digits);
    out.extend_from_slice(&digits[..len]);
}

fn number(tag: u32, value: u64, out: &mut Vec<u8>) {
    begin(tag, out);
    digits(value, out);
    out.push(SOH);
}

fn begin(tag: u32, out: &mut Vec<u8>) {
    digits(tag.into(), out);
    out.push(b'=');
}
