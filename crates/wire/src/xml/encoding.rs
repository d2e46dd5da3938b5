//! The character encodings of XML documents.

use core::fmt;

/// The reason why the bytes of a document are not text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingError {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The reason.
    pub message: String,
}

impl fmt::Display for EncodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl core::error::Error for EncodingError {}

/// The number of bytes that are searched for an XML declaration.
const DECLARATION: usize = 256;
/// The declarations of documents that are read as ISO-8859-1: its names at the IANA.
const LATIN_1: [&str; 9] = [
    "ISO-8859-1",
    "ISO_8859-1:1987",
    "ISO_8859-1",
    "iso-ir-100",
    "latin1",
    "l1",
    "IBM819",
    "CP819",
    "csISOLatin1",
];
/// The declarations of documents that are read as UTF-8. One that was UTF-16 often keeps its
/// declaration when it is written as UTF-8.
const UTF_8: [&str; 7] = [
    "UTF-8", "UTF8", "US-ASCII", "ASCII", "UTF-16", "UTF-16LE", "UTF-16BE",
];

/// Returns the text of a document: UTF-8, UTF-16 (with its mark, or beginning with `<`), or
/// ISO-8859-1 if it declares that. One that declares another encoding must be ASCII, which most
/// encodings contain.
///
/// # Errors
/// Returns the place of the first byte that is no character, or of the name of another encoding.
pub fn decode(bytes: &[u8]) -> Result<String, EncodingError> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [b'<', 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0, b'<', ..] => utf16(bytes, u16::from_be_bytes),
        _ => match declared(bytes) {
            Some((_, name)) if is_one_of(name, &LATIN_1) => {
                Ok(bytes.iter().copied().map(char::from).collect())
            }
            Some((before, name)) if !bytes.is_ascii() && !is_one_of(name, &UTF_8) => {
                let message = format!(
                    "the encoding {name:?} is not supported: UTF-8, UTF-16 and ISO-8859-1 are"
                );
                Err(fault(before, message))
            }
            _ => utf8(bytes),
        },
    }
}

fn is_one_of(name: &str, all: &[&str]) -> bool {
    all.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn utf8(bytes: &[u8]) -> Result<String, EncodingError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            Err(wrong(&String::from_utf8_lossy(before), "UTF-8"))
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, EncodingError> {
    let (pairs, rest) = bytes.as_chunks();
    let mut text = String::with_capacity(pairs.len());
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        text.push(character.map_err(|_| wrong(&text, "UTF-16"))?);
    }
    match rest {
        [] => Ok(text),
        _ => Err(wrong(&text, "UTF-16")),
    }
}

/// Returns the encoding that an XML declaration names, and the text in front of the name.
fn declared(bytes: &[u8]) -> Option<(&str, &str)> {
    let start = bytes.get(..DECLARATION).unwrap_or(bytes);
    let end = start.windows(2).position(|two| two == b"?>")?;
    let text = std::str::from_utf8(start.get(..end)?).ok()?;
    let content = text.strip_prefix("<?xml")?;
    let value = content.split_once("encoding")?.1.trim_start();
    let value = value.strip_prefix('=')?.trim_start();
    let quote = value.chars().next()?;
    let (name, behind) = value.get(1..)?.split_once(quote)?;
    let before = text.len() - behind.len() - quote.len_utf8() - name.len();
    Some((text.get(..before)?, name))
}

fn wrong(before: &str, encoding: &str) -> EncodingError {
    fault(before, format!("not valid {encoding}"))
}

/// Returns an error at the character behind `before`.
fn fault(before: &str, message: String) -> EncodingError {
    let line = before.rsplit('\n').next().unwrap_or_default();
    EncodingError {
        line: before.matches('\n').count() as u32 + 1,
        column: line.chars().count() as u32 + 1,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_in_one_of_three_encodings() {
        let text = "<?xml version='1.0' encoding='ISO-8859-1'?><a b='\u{e9}'/>";
        let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(decode(&latin).as_deref(), Ok(text));
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(decode(&wide).as_deref(), Ok(text));
        assert_eq!(decode(b"<a/>").as_deref(), Ok("<a/>"));
        let error = decode(b"<a>\n\xe9</a>").unwrap_err();
        assert_eq!(error.to_string(), "line 2, column 1: not valid UTF-8");
    }
}
