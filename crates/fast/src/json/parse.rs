//! JSON of a line as RFC 8259 defines it, and nothing beyond. Numbers stay text, because they must
//! become exact decimals, and each value has its place in the line.

use std::borrow::Cow;
use std::ops::Range;

use super::value::{Json, Members, Value};

/// The most levels of arrays and objects.
const DEPTH: usize = 128;

/// The most values, arrays and objects included. A value takes many times the bytes that it has in
/// its line.
const VALUES: usize = 4_194_304;

/// The reason why a line is no JSON, and the byte of the line where that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed {
    pub(super) at: usize,
    pub(super) message: &'static str,
}

/// Returns the one value that `line` holds.
pub(super) fn parse(line: &str) -> Result<Json<'_>, Malformed> {
    let mut parser = Parser {
        line,
        at: 0,
        values: 0,
    };
    let json = parser.value(0)?;
    parser.space();
    match parser.at == line.len() {
        true => Ok(json),
        false => parser.fail("trailing text after the message: a line holds one message"),
    }
}

struct Parser<'j> {
    line: &'j str,
    at: usize,
    /// The number of values that have begun.
    values: usize,
}

impl<'j> Parser<'j> {
    fn fail<T>(&self, message: &'static str) -> Result<T, Malformed> {
        let at = self.at;
        match at == self.line.len() {
            true => Err(Malformed {
                at,
                message: "the line ends inside the message",
            }),
            false => Err(Malformed { at, message }),
        }
    }

    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Takes this byte if it comes next, and returns whether it does.
    fn take(&mut self, byte: u8) -> bool {
        let comes = self.peek() == Some(byte);
        self.at += usize::from(comes);
        comes
    }

    /// Returns the text between two places, which are at ends of ASCII characters.
    fn text(&self, range: Range<usize>) -> &'j str {
        self.line.get(range).unwrap_or_default()
    }

    fn value(&mut self, depth: usize) -> Result<Json<'j>, Malformed> {
        self.space();
        let start = self.at;
        self.values += 1;
        if self.values > VALUES {
            return self.fail("more than 4194304 values");
        }
        let value = match self.peek() {
            Some(b'{' | b'[') if depth == DEPTH => return self.fail("more than 128 levels"),
            Some(b'{') => Value::Object(self.object(depth + 1)?),
            Some(b'[') => Value::Array(self.array(depth + 1)?),
            Some(b'"') => Value::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        let span = start..self.at;
        Ok(Json { span, value })
    }

    fn word(&mut self) -> Result<Value<'j>, Malformed> {
        let rest = self.text(self.at..self.line.len());
        let words = [
            ("null", Value::Null),
            ("true", Value::Bool),
            ("false", Value::Bool),
        ];
        for (word, value) in words {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        self.fail("not a JSON value")
    }

    fn number(&mut self) -> Result<Value<'j>, Malformed> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Value::Number(self.text(start..self.at)))
    }

    /// Takes digits, at least one.
    fn digits(&mut self) -> Result<(), Malformed> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        match self.at > start {
            true => Ok(()),
            false => self.fail("expected a digit"),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Json<'j>>, Malformed> {
        self.at += 1;
        let mut values = Vec::new();
        self.space();
        if self.take(b']') {
            return Ok(values);
        }
        loop {
            values.push(self.value(depth)?);
            self.space();
            if self.take(b']') {
                return Ok(values);
            }
            if !self.take(b',') {
                return self.fail("expected a comma or the end of the array");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Members<'j>, Malformed> {
        self.at += 1;
        let mut members = Members::default();
        self.space();
        if self.take(b'}') {
            return Ok(members);
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.fail("expected a name in quotation marks");
            }
            let name = self.string()?;
            self.space();
            if !self.take(b':') {
                return self.fail("expected a colon after the name");
            }
            members.push(name, self.value(depth)?);
            self.space();
            if self.take(b'}') {
                return Ok(members);
            }
            if !self.take(b',') {
                return self.fail("expected a comma or the end of the object");
            }
        }
    }

    /// Returns a string, unchanged if nothing in it is escaped.
    fn string(&mut self) -> Result<Cow<'j, str>, Malformed> {
        self.at += 1;
        let mut start = self.at;
        let mut unescaped = String::new();
        loop {
            let rest = self.line.as_bytes().get(self.at..).unwrap_or_default();
            let plain = |byte: &&u8| !matches!(**byte, b'"' | b'\\' | 0..0x20);
            self.at += rest.iter().take_while(plain).count();
            match self.peek() {
                Some(b'"') => {
                    let last = self.text(start..self.at);
                    self.at += 1;
                    if unescaped.is_empty() {
                        return Ok(Cow::Borrowed(last));
                    }
                    unescaped.push_str(last);
                    return Ok(Cow::Owned(unescaped));
                }
                Some(b'\\') => {
                    unescaped.push_str(self.text(start..self.at));
                    self.at += 1;
                    unescaped.push(self.escape()?);
                    start = self.at;
                }
                Some(_) => return self.fail("a control character in a string"),
                None => return self.fail(""),
            }
        }
    }

    /// Returns the character after a backslash.
    fn escape(&mut self) -> Result<char, Malformed> {
        let character = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return self.fail("unknown escape sequence"),
        };
        self.at += 1;
        Ok(character)
    }

    /// Reads `uXXXX`, or two of them that are one character beyond 16 bits.
    fn unicode(&mut self) -> Result<char, Malformed> {
        const HALF: &str = "unpaired surrogate";
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high).map_or_else(|| self.fail(HALF), Ok);
        }
        if !self.take(b'\\') || self.peek() != Some(b'u') {
            return self.fail(HALF);
        }
        let low = self.hex()?;
        if !(0xdc00..0xe000).contains(&low) {
            return self.fail(HALF);
        }
        let scalar = 0x1_0000 + ((high - 0xd800) << 10 | (low - 0xdc00));
        char::from_u32(scalar).map_or_else(|| self.fail(HALF), Ok)
    }

    /// Returns the number of the four digits after a `u`.
    fn hex(&mut self) -> Result<u32, Malformed> {
        self.at += 1;
        let mut value = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let Some(digit) = digit else {
                return self.fail("expected four hexadecimal digits");
            };
            value = value << 4 | digit;
            self.at += 1;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value as Theirs;

    /// Returns whether our value is the same as that of serde_json, the oracle.
    fn same(ours: &Json<'_>, theirs: &Theirs) -> bool {
        match (&ours.value, theirs) {
            (Value::Null, Theirs::Null) => true,
            (Value::Bool, Theirs::Bool(_)) => true,
            (Value::Number(a), Theirs::Number(b)) => {
                // Theirs is not rounded correctly: its last bit may be another.
                let (a, b) = (a.parse::<f64>().unwrap(), b.as_f64().unwrap());
                a == b || (a - b).abs() <= 2.0 * f64::EPSILON * b.abs()
            }
            (Value::Text(a), Theirs::String(b)) => a == b,
            (Value::Array(a), Theirs::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            (Value::Object(a), Theirs::Object(b)) => {
                // Theirs keeps the last one of a name.
                let last = |name: &str| a.iter().filter(|(n, _)| *n == name).last();
                let all = b
                    .iter()
                    .all(|(name, b)| last(name).is_some_and(|(_, a)| same(a, b)));
                all && a.iter().all(|(name, _)| b.contains_key(name))
            }
            _ => false,
        }
    }

    fn check(line: &str) -> Result<(), TestCaseError> {
        match (parse(line), serde_json::from_str::<Theirs>(line)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same(&ours, &theirs), "{line:?}"),
            (Err(error), Err(_)) => prop_assert!(line.is_char_boundary(error.at), "{line:?}"),
            // A number larger than any double is none of theirs.
            (Ok(_), Err(error)) if error.to_string().contains("out of range") => {}
            (Ok(_), Err(error)) => prop_assert!(false, "{line:?} is read, but {error}"),
            (Err(error), Ok(_)) => prop_assert!(false, "{line:?}: {error:?}"),
        }
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let deep = "[".repeat(200);
        let many = format!("[{}", "0,".repeat(VALUES));
        let cases: [(&str, usize, &str); 17] = [
            ("", 0, "the line ends inside the message"),
            ("hello", 0, "not a JSON value"),
            (r#"{"a":1,}"#, 7, "expected a name in quotation marks"),
            (r#"{"a" 1}"#, 5, "expected a colon after the name"),
            (
                r#"{"a":1 "b":2}"#,
                7,
                "expected a comma or the end of the object",
            ),
            (r#"{"a":"#, 5, "the line ends inside the message"),
            (r#"{"a":"b"#, 7, "the line ends inside the message"),
            ("[1 2]", 3, "expected a comma or the end of the array"),
            ("[1.]", 3, "expected a digit"),
            ("[-]", 2, "expected a digit"),
            (
                "01",
                1,
                "trailing text after the message: a line holds one message",
            ),
            (
                "{}{}",
                2,
                "trailing text after the message: a line holds one message",
            ),
            ("\"a\u{1}\"", 2, "a control character in a string"),
            (r#""\ud83d""#, 7, "unpaired surrogate"),
            (r#""\u12g4""#, 5, "expected four hexadecimal digits"),
            (&deep, 128, "more than 128 levels"),
            (&many, 2 * VALUES - 1, "more than 4194304 values"),
        ];
        for (line, at, message) in cases {
            assert_eq!(
                parse(line).unwrap_err(),
                Malformed { at, message },
                "{line}"
            );
        }
    }

    #[test]
    fn strings_and_numbers_are_what_they_say() {
        let json = parse(r#" ["\u0041\/\ud83d\ude00é\n", 12.50, -0.0e+1] "#).unwrap();
        let Value::Array(values) = json.value else {
            panic!("no array");
        };
        assert!(matches!(&values[0].value, Value::Text(text) if text == "A/😀é\n"));
        assert!(matches!(values[1].value, Value::Number("12.50")));
        assert!(matches!(values[2].value, Value::Number("-0.0e+1")));
        assert_eq!(values[1].span, 30..35);
    }

    const PARTS: &[&str] = &[
        "[", "]", "{", "}", ",", ":", " ", "\"", "\"a\"", "\"a\":", "\\ud83d", "\\udc3d", "\\n",
        "\\x", "\\\"", "-", "0", "7", "1.5", "e5", "E", "true", "null", "é",
    ];

    proptest! {
        #[test]
        fn whatever_comes_is_read_as_serde_json_reads_it(line in ".{0,40}") {
            check(&line)?;
        }

        #[test]
        fn what_looks_like_json_is_read_as_serde_json_reads_it(
            parts in prop::collection::vec(prop::sample::select(PARTS), 0..24),
        ) {
            check(&parts.concat())?;
        }

        #[test]
        fn json_with_one_byte_changed_is_read_as_serde_json_reads_it(
            at in 0usize..120, byte in 0x20u8..0x7f,
        ) {
            let line = r#"{"template": "A\u00e9", "id": 1, "fields": {"x": [1, -2.5e-3,
                {"hex": "ab"}], "y": null, "z": {"a": true, "a": ""}}}"#;
            let mut bytes = line.as_bytes().to_vec();
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
            check(line)?;
            check(std::str::from_utf8(&bytes).unwrap())?;
        }
    }
}
