//! Messages and errors to lines of JSON.

use std::fmt::Write as _;

use fanfare_wire::text::JsonString;

use crate::error::CodecError;
use crate::message::{Fields, MessageView, Value};
use crate::program::{Program, TemplateProgram};

/// Appends a message as one line, without a line break. Each level of the message takes stack: see
/// [`Message`](crate::Message) for the depth of one that no decoder has filled.
pub fn write_line(message: MessageView<'_>, out: &mut String) {
    template(message.template(), message.fields(), out);
}

/// Appends an error as one line, without a line break. `base` is the offset in the file of the
/// bytes that were decoded, and is added to that of the error.
pub fn write_error(error: &CodecError, program: &Program, base: usize, out: &mut String) {
    out.push_str("{\"error\": ");
    string(error.code.as_str(), out);
    _ = write!(out, ", \"offset\": {}, \"template\": ", base + error.offset);
    optional(error.template_name(program), out);
    out.push_str(", \"field\": ");
    optional(error.path(program).as_deref(), out);
    out.push_str(", \"message\": ");
    string(&error.text(), out);
    out.push('}');
}

fn template(template: &TemplateProgram, content: Fields<'_>, out: &mut String) {
    out.push_str("{\"template\": ");
    string(template.name(), out);
    out.push_str(", \"id\": ");
    match template.id() {
        Some(id) => _ = write!(out, "{id}"),
        None => out.push_str("null"),
    }
    out.push_str(", \"fields\": ");
    fields(content, out);
    out.push('}');
}

fn fields(fields: Fields<'_>, out: &mut String) {
    out.push('{');
    let mut first = true;
    for (field, content) in fields {
        if !std::mem::take(&mut first) {
            out.push_str(", ");
        }
        string(&field.member(), out);
        out.push_str(": ");
        value(content, out);
    }
    out.push('}');
}

fn value(value: Value<'_>, out: &mut String) {
    match value {
        Value::Absent => out.push_str("null"),
        Value::Unsigned(value, _) => _ = write!(out, "{value}"),
        Value::Signed(value, _) => _ = write!(out, "{value}"),
        Value::Decimal(value) => {
            let (mantissa, exponent) = (value.mantissa, value.exponent);
            _ = write!(
                out,
                "{{\"mantissa\": {mantissa}, \"exponent\": {exponent}}}"
            );
        }
        Value::Ascii(text) | Value::Unicode(text) => match std::str::from_utf8(text) {
            Ok(text) => string(text, out),
            Err(_) => digits("raw", text, out),
        },
        Value::Bytes(bytes) => digits("hex", bytes, out),
        Value::Group(content) => fields(content, out),
        Value::Sequence(entries) => {
            out.push('[');
            for (index, entry) in entries.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                fields(entry, out);
            }
            out.push(']');
        }
        Value::Template(inner, content) => template(inner, content, out),
    }
}

/// Appends an object whose only member has the bytes as hexadecimal digits.
fn digits(name: &str, bytes: &[u8], out: &mut String) {
    _ = write!(out, "{{\"{name}\": \"");
    for byte in bytes {
        _ = write!(out, "{byte:02x}");
    }
    out.push_str("\"}");
}

fn optional(text: Option<&str>, out: &mut String) {
    match text {
        Some(text) => string(text, out),
        None => out.push_str("null"),
    }
}

fn string(text: &str, out: &mut String) {
    _ = write!(out, "{}", JsonString(text));
}
