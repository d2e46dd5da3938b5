//! Text of a peer, made safe for display.
//!
//! A value in a message may contain anything: an escape sequence that moves the cursor of a
//! terminal, a line end that forges a line of a log, or a mark that changes the direction of
//! writing. Text of a peer is printed only through [`Escaped`], [`JsonString`] or [`SafeJson`], and
//! text that another program has escaped through [`Shown`]. No other module has a list of unsafe
//! characters.

use core::fmt::{self, Display, Write};
use std::borrow::Cow;

/// Returns whether a character is more than visible in a line of text: C0, DEL and C1 controls,
/// ends of lines and paragraphs, marks that change the direction of writing, and characters without
/// a shape. The joiners U+200C and U+200D and the variation selectors U+FE00 to U+FE0F are parts of
/// words and of emoji, and are safe.
#[must_use]
pub const fn is_unsafe(char: char) -> bool {
    char.is_ascii_control()
        || matches!(char,
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
            | '\u{e0100}'..='\u{e01ef}')
}

/// Bytes as one line of text.
///
/// Valid UTF-8 is shown unchanged, with these exceptions: `\\` is a backslash, `\n`, `\r`, `\t` and
/// `\u{1b}` are [unsafe characters](is_unsafe), and `\xff` is a byte that belongs to no character.
/// Different bytes are shown differently. Formatting allocates nothing.
///
/// ```
/// use fanfare_wire::text::Escaped;
/// let shown = Escaped::new(b"a\x1b[2J\n\xffb\\").to_string();
/// assert_eq!(shown, r"a\u{1b}[2J\n\xffb\\");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Escaped<'a> {
    bytes: &'a [u8],
    /// Whether SOH is shown as `|`.
    bars: bool,
}

impl<'a> Escaped<'a> {
    /// Returns bytes of any kind for display.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, bars: false }
    }

    /// Returns text for display.
    #[must_use]
    pub const fn text(text: &'a str) -> Self {
        Self::new(text.as_bytes())
    }

    /// Returns the fields of a FIX message for display. SOH is shown as `|`, as is a `|` in a
    /// value.
    #[must_use]
    pub const fn fields(bytes: &'a [u8]) -> Self {
        Self { bytes, bars: true }
    }
}

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.bytes.utf8_chunks() {
            let is_plain = |char| char != '\\' && !is_unsafe(char);
            in_runs(f, chunk.valid(), is_plain, |f, char| match char {
                '\x01' if self.bars => f.write_char('|'),
                char => write!(f, "{}", char.escape_default()),
            })?;
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Returns bytes as text: valid UTF-8 unchanged, other bytes as [`Escaped`] displays them. The text
/// is not safe for display. Allocates for bytes that are not UTF-8.
///
/// ```
/// use fanfare_wire::text::readable;
/// assert_eq!(readable(b"a\\b"), "a\\b");
/// assert_eq!(readable(b"a\xff"), r"a\xff");
/// ```
#[must_use]
pub fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match core::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(Escaped::new(bytes).to_string()),
    }
}

/// Returns the text that [`Escaped::text`] displays as `shown`, or `None` if it displays none so:
/// `shown` has an unsafe character, or a backslash that begins no escape of [`Escaped`]. Allocates
/// the text.
///
/// ```
/// use fanfare_wire::text::unescape;
/// assert_eq!(unescape(r"a\u{1b}[2J\n\\").as_deref(), Some("a\x1b[2J\n\\"));
/// assert_eq!(unescape(r"a\b"), None);
/// ```
#[must_use]
pub fn unescape(shown: &str) -> Option<String> {
    let mut text = String::with_capacity(shown.len());
    let mut rest = shown;
    while let Some((plain, escape)) = rest.split_once('\\') {
        text.push_str(plain);
        let (char, behind) = escaped_char(escape)?;
        text.push(char);
        rest = behind;
    }
    text.push_str(rest);
    // A character has one form: neither `\u{41}` nor a control character as it is.
    (Escaped::text(&text).to_string() == shown).then_some(text)
}

/// Returns the beginning of a text, of at most `most` bytes, which ends with a whole character.
///
/// ```
/// use fanfare_wire::text::beginning;
/// assert_eq!(beginning("aé", 2), "a");
/// assert_eq!(beginning("aé", 3), "aé");
/// ```
#[must_use]
pub fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev();
    let mut end = end.filter(|&end| text.is_char_boundary(end));
    text.get(..end.next().unwrap_or(0)).unwrap_or_default()
}

/// Returns the character of an escape behind its backslash, and the text that follows.
fn escaped_char(escape: &str) -> Option<(char, &str)> {
    if let Some(number) = escape.strip_prefix("u{") {
        let (digits, behind) = number.split_once('}')?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        return Some((char::from_u32(number)?, behind));
    }
    let mut chars = escape.chars();
    let char = match chars.next()? {
        '\\' => '\\',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        _ => return None,
    };
    Some((char, chars.as_str()))
}

/// Text for display, whose [unsafe characters](is_unsafe) are escaped as by [`Escaped`].
/// Backslashes are unchanged, so that text that is already escaped stays the same.
///
/// ```
/// use fanfare_wire::text::{Escaped, Shown};
/// let once = Escaped::text("D\\1\n").to_string();
/// assert_eq!(Shown(&once).to_string(), once);
/// assert_eq!(Shown("a\u{1b}[2J").to_string(), r"a\u{1b}[2J");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown<'a>(
    /// The text.
    pub &'a str,
);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |char| !is_unsafe(char);
        in_runs(f, self.0, is_plain, |f, char| {
            write!(f, "{}", char.escape_default())
        })
    }
}

/// A JSON string with its quotes. [Unsafe characters](is_unsafe) are escaped, so that it can be
/// displayed. A parser reads the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonString<'a>(
    /// The text.
    pub &'a str,
);

impl Display for JsonString<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let is_plain = |char| char != '"' && char != '\\' && !is_unsafe(char);
        in_runs(f, self.0, is_plain, |f, char| match char {
            '"' => f.write_str("\\\""),
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '\r' => f.write_str("\\r"),
            '\t' => f.write_str("\\t"),
            char => utf16(f, char),
        })?;
        f.write_char('"')
    }
}

/// JSON of another writer, with the [unsafe characters](is_unsafe) in its strings escaped. A parser
/// reads the same values. Spaces and line ends between its parts are unchanged.
#[derive(Debug, Clone, Copy)]
pub struct SafeJson<T>(
    /// The value, which is displayed as JSON.
    pub T,
);

impl<T: Display> Display for SafeJson<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Filter(f), "{}", self.0)
    }
}

struct Filter<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Filter<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A string of JSON holds none of these three as they are.
        let is_plain = |char| matches!(char, '\n' | '\r' | '\t') || !is_unsafe(char);
        in_runs(self.0, text, is_plain, utf16)
    }
}

/// Writes plain characters unchanged, and passes every other character to `other`.
fn in_runs<W: Write>(
    to: &mut W,
    text: &str,
    is_plain: impl Fn(char) -> bool,
    mut other: impl FnMut(&mut W, char) -> fmt::Result,
) -> fmt::Result {
    let mut rest = text;
    while let Some((at, char)) = rest.char_indices().find(|&(_, char)| !is_plain(char)) {
        let (plain, behind) = rest.split_at(at);
        to.write_str(plain)?;
        other(to, char)?;
        rest = behind.split_at(char.len_utf8()).1;
    }
    to.write_str(rest)
}

/// Writes the JSON escape of a character: one code unit of UTF-16, or two.
fn utf16(to: &mut impl Write, char: char) -> fmt::Result {
    let mut room = [0; 2];
    let mut units = char.encode_utf16(&mut room).iter();
    units.try_for_each(|unit| write!(to, "\\u{unit:04x}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Parses what [`Escaped`] shows, in a slow and simple way.
    fn bytes_of(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            rest = &rest[char.len_utf8()..];
            if char != '\\' {
                bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
                continue;
            }
            let kind = rest.chars().next().unwrap();
            rest = &rest[1..];
            match kind {
                '\\' => bytes.push(b'\\'),
                'n' => bytes.push(b'\n'),
                'r' => bytes.push(b'\r'),
                't' => bytes.push(b'\t'),
                'x' => {
                    bytes.push(u8::from_str_radix(&rest[..2], 16).unwrap());
                    rest = &rest[2..];
                }
                'u' => {
                    let (number, behind) = rest[1..].split_once('}').unwrap();
                    let char = char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap();
                    bytes.extend(char.encode_utf8(&mut [0; 4]).bytes());
                    rest = behind;
                }
                other => panic!("\\{other}"),
            }
        }
        bytes
    }

    /// Returns text with more unsafe characters than chance would bring.
    fn nasty() -> impl Strategy<Value = String> {
        let few = "[\\\\\"n\u{1}\u{1b}\n\r\t\u{7f}\u{80}\u{9b}\u{9f}\u{a0}\u{61c}\u{200b}\u{200e}\
                   \u{2027}\u{2028}\u{2029}\u{202e}\u{2066}\u{2069}\u{feff}\u{e0041}é€𝄞|]{0,20}";
        prop_oneof![few, "\\PC*", any::<String>()]
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_shown_and_nothing_is_lost(
            bytes in prop_oneof![
                any::<Vec<u8>>(),
                nasty().prop_map(String::into_bytes),
            ]
        ) {
            let shown = Escaped::new(&bytes).to_string();
            prop_assert!(!shown.chars().any(is_unsafe), "{shown:?}");
            prop_assert_eq!(bytes_of(&shown), bytes);
        }

        #[test]
        fn what_is_escaped_is_read_again(text in nasty()) {
            let shown = Escaped::text(&text).to_string();
            prop_assert_eq!(unescape(&shown), Some(text));
        }

        #[test]
        fn what_is_escaped_is_shown_as_it_is(text in nasty()) {
            prop_assert!(!Shown(&text).to_string().chars().any(is_unsafe), "{text:?}");
            let escaped = Escaped::text(&text).to_string();
            prop_assert_eq!(Shown(&escaped).to_string(), escaped);
        }

        #[test]
        fn json_is_the_same_text_without_what_is_unsafe(text in nasty()) {
            let written = JsonString(&text).to_string();
            prop_assert!(!written.chars().any(is_unsafe), "{written:?}");
            let read: String = serde_json::from_str(&written).unwrap();
            prop_assert_eq!(&read, &text);
            let theirs = serde_json::to_string(&[&text]).unwrap();
            let filtered = SafeJson(&theirs).to_string();
            prop_assert!(!filtered.chars().any(is_unsafe), "{filtered:?}");
            let read: Vec<String> = serde_json::from_str(&filtered).unwrap();
            prop_assert_eq!(&read, &[text]);
        }
    }

    #[test]
    fn what_no_text_is_shown_as_is_not_read() {
        let escapes = r"\ a\ \b \' \x41 \u \u{ \u{} \u{1b \u{g} \u{a} \u{41} \u{01b} \u{1B} \u{+1b}
            \u{d800} \u{110000}";
        for wrong in escapes.split_whitespace().chain(["a\n", "\u{202e}"]) {
            assert_eq!(unescape(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn every_control_and_mark_of_direction_is_unsafe_and_letters_are_not() {
        for char in ('\0'..=char::MAX).filter(|char| char.is_control()) {
            assert!(is_unsafe(char), "{char:?}");
        }
        for char in
            "\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{ad}\u{3164}"
                .chars()
        {
            assert!(is_unsafe(char), "{char:?}");
        }
        for char in " ~|\u{a0}é\u{200d}€漢𝄞".chars() {
            assert!(!is_unsafe(char), "{char:?}");
        }
    }

    #[test]
    fn fields_have_bars() {
        let shown = Escaped::fields(b"58=a\x02\xc2\x9b|\x01").to_string();
        assert_eq!(shown, r"58=a\u{2}\u{9b}||");
        assert_eq!(Escaped::new(b"58=a\x01").to_string(), r"58=a\u{1}");
    }

    #[test]
    fn json_keeps_its_lines() {
        assert_eq!(
            SafeJson("[\n\t\"\u{9b}\u{e0041}\"\n]").to_string(),
            "[\n\t\"\\u009b\\udb40\\udc41\"\n]"
        );
    }
}
