//! Samples as JSON lines, for echo.

use std::fmt::{self, Write};

use super::{CdrError, Value, Visitor, walk};
use crate::types::{Member, StructType};
use fanfare_wire::text::JsonString;

/// Prints `sample`, a `t`, as one JSON object on one line: members in order, integers and floats
/// as numbers, strings as strings (bytes that are not UTF-8 become U+FFFD), octets as
/// `{"hex": "…"}`, an absent optional member as null, an enumeration by name where it has one,
/// not-a-number and infinities as strings.
///
/// # Errors
/// Those of the first byte that contradicts the type; `out` then holds the members before it.
pub fn print_json(t: &StructType, sample: &[u8], out: &mut String) -> Result<(), CdrError> {
    let mut printer = Printer {
        out,
        first: true,
        in_list: Vec::new(),
    };
    walk(t, sample, &mut printer)
}

/// Prints as [`print_json`] does, into a new string.
///
/// # Errors
/// The first byte that contradicts the type.
pub fn to_json(t: &StructType, sample: &[u8]) -> Result<String, CdrError> {
    let mut out = String::new();
    print_json(t, sample, &mut out)?;
    Ok(out)
}

struct Printer<'a> {
    out: &'a mut String,
    /// Whether the innermost structure or list is still empty.
    first: bool,
    /// For each open structure or list, whether it is a list.
    in_list: Vec<bool>,
}

impl Printer<'_> {
    fn element(&mut self) {
        if self.in_list.last() == Some(&true) {
            self.comma();
        }
    }

    fn comma(&mut self) {
        if !self.first {
            self.out.push_str(", ");
        }
        self.first = false;
    }

    fn open(&mut self, bracket: char, list: bool) {
        self.element();
        self.out.push(bracket);
        self.in_list.push(list);
        self.first = true;
    }

    fn close(&mut self, bracket: char) {
        self.out.push(bracket);
        self.in_list.pop();
        self.first = false;
    }

    fn string(&mut self, text: &str) {
        self.print(format_args!("{}", JsonString(text)));
    }

    fn print(&mut self, what: fmt::Arguments<'_>) {
        // The formatter of a String cannot fail.
        let _ = self.out.write_fmt(what);
    }
}

impl Visitor for Printer<'_> {
    fn begin_struct(&mut self) {
        self.open('{', false);
    }

    fn end_struct(&mut self) {
        self.close('}');
    }

    fn member(&mut self, member: &Member) {
        self.comma();
        self.string(&member.name);
        self.out.push_str(": ");
    }

    fn begin_list(&mut self, _: u32) {
        self.open('[', true);
    }

    fn end_list(&mut self) {
        self.close(']');
    }

    fn value(&mut self, value: Value<'_>) {
        self.element();
        match value {
            Value::Bool(b) => self.print(format_args!("{b}")),
            Value::Int(n) => self.print(format_args!("{n}")),
            Value::UInt(n) => self.print(format_args!("{n}")),
            Value::Float32(x) if x.is_finite() => self.print(format_args!("{x:?}")),
            Value::Float32(x) => self.print(format_args!("\"{x}\"")),
            Value::Float(x) if x.is_finite() => self.print(format_args!("{x:?}")),
            Value::Float(x) => self.print(format_args!("\"{x}\"")),
            Value::Char(c) => self.string(char::from(c).encode_utf8(&mut [0; 4])),
            Value::String(text) => self.string(&String::from_utf8_lossy(text)),
            Value::Enum(_, Some(name)) => self.string(name),
            Value::Enum(n, None) => self.print(format_args!("{n}")),
            Value::Octets(bytes) => {
                self.out.push_str("{\"hex\": \"");
                for b in bytes {
                    self.print(format_args!("{b:02x}"));
                }
                self.out.push_str("\"}");
            }
            Value::Absent => self.out.push_str("null"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdrBuffer;
    use super::*;
    use crate::types::Kind;

    #[test]
    fn a_sample_with_a_sequence_of_structures_prints_on_one_line() {
        let entry = StructType::new("E")
            .member("px", Kind::Float64)
            .member("flags", Kind::Sequence(Box::new(Kind::Byte), None));
        let t = StructType::new("M")
            .member("name", Kind::String(None))
            .member("entries", Kind::sequence_of(entry))
            .member("side", Kind::Int8);
        let mut b = CdrBuffer::with_capacity(128);
        b.string(b"a\"b");
        let count = b.count();
        for px in [1.5, -2.0] {
            b.f64(px);
            b.octets(&[0xab]);
        }
        b.set_count(count, 2);
        b.i8(-1);
        let json = to_json(&t, b.finish().unwrap()).unwrap();
        let entry = r#"{"px": 1.5, "flags": {"hex": "ab"}}"#;
        let other = r#"{"px": -2.0, "flags": {"hex": "ab"}}"#;
        let expected = format!(r#"{{"name": "a\"b", "entries": [{entry}, {other}], "side": -1}}"#);
        assert_eq!(json, expected);
    }
}
