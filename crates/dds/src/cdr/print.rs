//! Samples as JSON lines, for echo.

use std::fmt::{self, Write};

use super::{CdrError, CdrFault, Value, Visitor, walk};
use crate::types::{Member, StructType};
use fanfare_wire::text::JsonString;

/// The longest JSON of one sample, in bytes. One byte of a sample may stand for thousands of names
/// of its type.
pub const LONGEST_JSON: usize = 16 << 20;

/// Prints `sample`, a `t`, as one JSON object on one line: members in order, integers and floats
/// as numbers, strings as strings (bytes that are not UTF-8 become U+FFFD), octets as
/// `{"hex": "…"}`, an absent optional member as null, an enumeration by name where it has one,
/// not-a-number and infinities as strings.
///
/// # Errors
/// Those of the first byte that contradicts the type, and [`CdrFault::TooLong`] where the JSON
/// would exceed [`LONGEST_JSON`]; `out` then holds the members before it.
pub fn print_json(t: &StructType, sample: &[u8], out: &mut String) -> Result<(), CdrError> {
    print_within(LONGEST_JSON, t, sample, out)
}

/// Prints as [`print_json`] does, into a new string.
///
/// # Errors
/// Those of [`print_json`].
pub fn to_json(t: &StructType, sample: &[u8]) -> Result<String, CdrError> {
    let mut out = String::new();
    print_json(t, sample, &mut out)?;
    Ok(out)
}

fn print_within(
    longest: usize,
    t: &StructType,
    sample: &[u8],
    out: &mut String,
) -> Result<(), CdrError> {
    let mut printer = Printer {
        most: out.len().saturating_add(longest),
        out,
        is_full: false,
        first: true,
        in_list: Vec::new(),
    };
    walk(t, sample, &mut printer)?;
    match printer.is_full {
        false => Ok(()),
        true => Err(CdrError {
            offset: sample.len(),
            why: CdrFault::TooLong,
        }),
    }
}

struct Printer<'a> {
    out: &'a mut String,
    /// The most bytes of `out`.
    most: usize,
    /// Whether something did not fit; nothing more is printed then.
    is_full: bool,
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
            self.push(", ");
        }
        self.first = false;
    }

    fn open(&mut self, bracket: &str, list: bool) {
        self.element();
        self.push(bracket);
        self.in_list.push(list);
        self.first = true;
    }

    fn close(&mut self, bracket: &str) {
        self.push(bracket);
        self.in_list.pop();
        self.first = false;
    }

    fn string(&mut self, text: &str) {
        self.print(format_args!("{}", JsonString(text)));
    }

    fn print(&mut self, what: fmt::Arguments<'_>) {
        // An error means that nothing more fits, which `is_full` has noted.
        let _ = self.write_fmt(what);
    }

    fn push(&mut self, text: &str) {
        self.is_full |= text.len() > self.left();
        if !self.is_full {
            self.out.push_str(text);
        }
    }

    /// Returns the number of bytes that still fit.
    fn left(&self) -> usize {
        self.most.saturating_sub(self.out.len())
    }
}

impl Write for Printer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        match self.is_full {
            true => Err(fmt::Error),
            false => Ok(()),
        }
    }
}

impl Visitor for Printer<'_> {
    fn begin_struct(&mut self) {
        self.open("{", false);
    }

    fn end_struct(&mut self) {
        self.close("}");
    }

    fn member(&mut self, member: &Member) {
        self.comma();
        self.string(&member.name);
        self.push(": ");
    }

    fn begin_list(&mut self, _: u32) {
        self.open("[", true);
    }

    fn end_list(&mut self) {
        self.close("]");
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
            // Checked before the text is copied.
            Value::String(text) if text.len() > self.left() => self.is_full = true,
            Value::String(text) => self.string(&String::from_utf8_lossy(text)),
            Value::Enum(_, Some(name)) => self.string(name),
            Value::Enum(n, None) => self.print(format_args!("{n}")),
            Value::Octets(bytes) => {
                self.push("{\"hex\": \"");
                for b in bytes {
                    if self.is_full {
                        break;
                    }
                    self.print(format_args!("{b:02x}"));
                }
                self.push("\"}");
            }
            Value::Absent => self.push("null"),
        }
    }

    fn is_full(&self) -> bool {
        self.is_full
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

    #[test]
    fn what_is_too_long_to_print_ends_at_the_limit() {
        let entry = StructType::new("E")
            .member("a_name_that_is_longer_than_its_value", Kind::Int8)
            .member("text", Kind::String(None))
            .member("octets", Kind::Array(Box::new(Kind::Byte), 3));
        let t = StructType::new("M").member("entries", Kind::sequence_of(entry));
        let mut b = CdrBuffer::with_capacity(1 << 12);
        let count = b.count();
        for n in 0..20 {
            b.i8(n);
            b.string(b"\x01\xff");
            (0..3).for_each(|n| b.u8(n));
        }
        b.set_count(count, 20);
        let sample = b.finish().unwrap();
        let whole = to_json(&t, sample).unwrap();
        for longest in 0..whole.len() {
            let mut out = "kept".to_owned();
            let error = print_within(longest, &t, sample, &mut out).unwrap_err();
            assert_eq!(error.why, CdrFault::TooLong, "{longest}");
            let printed = out.strip_prefix("kept").unwrap();
            assert!(
                printed.len() <= longest && whole.starts_with(printed),
                "{out}"
            );
        }
        let mut out = String::new();
        print_within(whole.len(), &t, sample, &mut out).unwrap();
        assert_eq!(out, whole);
        let text = CdrError {
            offset: 9,
            why: CdrFault::TooLong,
        };
        let expected = "too long to print: 16 MiB of JSON end before byte 9";
        assert_eq!(text.to_string(), expected);
    }
}
