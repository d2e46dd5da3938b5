//! The character encodings of documents.

use crate::error::{ErrorCode, TemplateError};

/// The number of bytes that are searched for an XML declaration.
const DECLARATION: usize = 256;

/// Returns the text of a document: UTF-8, UTF-16 (with its mark, or beginning with `<`), or
/// ISO-8859-1 if it declares that.
///
/// # Errors
/// S1 at the first byte that is no character.
pub fn decode(bytes: &[u8]) -> Result<String, TemplateError> {
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [b'<', 0, ..] => utf16(bytes, u16::from_le_bytes),
        [0, b'<', ..] => utf16(bytes, u16::from_be_bytes),
        _ if declares_latin_1(bytes) => Ok(bytes.iter().copied().map(char::from).collect()),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Err(wrong(&String::from_utf8_lossy(before), "UTF-8"))
            }
        },
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, TemplateError> {
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

fn declares_latin_1(bytes: &[u8]) -> bool {
    let start = bytes.get(..DECLARATION).unwrap_or(bytes);
    let declaration = start.strip_prefix(b"<?xml").and_then(|rest| {
        let end = rest.windows(2).position(|two| two == b"?>")?;
        std::str::from_utf8(rest.get(..end)?).ok()
    });
    let name = declaration.and_then(|text| {
        let value = text.split_once("encoding")?.1.trim_start();
        let value = value.strip_prefix('=')?.trim_start();
        let quote = value.chars().next()?;
        value.get(1..)?.split_once(quote).map(|(name, _)| name)
    });
    name.is_some_and(|name| name.eq_ignore_ascii_case("iso-8859-1"))
}

fn wrong(before: &str, encoding: &str) -> TemplateError {
    let line = before.rsplit('\n').next().unwrap_or_default();
    TemplateError {
        code: ErrorCode::S1,
        line: before.matches('\n').count() as u32 + 1,
        column: line.chars().count() as u32 + 1,
        message: format!("not valid {encoding}"),
    }
}
