//! How large a document may be. The limits are checked before it is parsed: the time to parse grows
//! with the square of the attributes of an element, and of the namespaces.

use std::collections::HashSet;

use super::Position;
use crate::error::{ErrorCode, TemplateError};

/// The longest document, bytes. Reading one takes up to 25 times as much memory.
pub const MAX_BYTES: usize = 16 << 20;

/// Most elements of a document.
pub const MAX_ELEMENTS: usize = 1 << 20;

/// Most attributes of an element.
pub const MAX_ATTRIBUTES: usize = 256;

/// Most namespaces of a document, each prefix with each URI.
pub const MAX_NAMESPACES: usize = 256;

/// The longest name, namespace, key or identifier, bytes.
pub const MAX_NAME: usize = 255;

/// The deepest nesting of groups and sequences in a document.
pub const MAX_NESTING: usize = 32;

/// Most elements in an enum; a set has 64 at most.
pub const MAX_VALUES: usize = 4096;

/// Most fields and references of a document, its definitions expanded; and most fields, and most
/// static references, of a program, in which these are expanded, too.
pub const MAX_FIELDS: usize = 1 << 18;

/// Most bytes of initial values that are strings or byte vectors, of a document and of a program.
pub const MAX_TEXTS: usize = 64 << 20;

/// Returns S1, with the place, if a document exceeds a limit. A malformed document passes: the
/// parser reports it.
pub(super) fn check(xml: &str) -> Result<(), TemplateError> {
    if xml.len() > MAX_BYTES {
        let position = Position { line: 1, column: 1 };
        let message = format!("the document has more than {MAX_BYTES} bytes");
        return Err(exceeded(position, message));
    }
    let mut scan = Scan {
        xml,
        at: 0,
        elements: 0,
        namespaces: HashSet::new(),
    };
    while let Some(found) = scan.rest().find('<') {
        scan.at += found;
        let rest = scan.rest();
        let other = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        let other = other.iter().find(|(begin, _)| rest.starts_with(begin));
        match other {
            Some((begin, end)) => scan.skip(begin.len(), end),
            None => scan.tag()?,
        }
    }
    Ok(())
}

struct Scan<'x> {
    xml: &'x str,
    at: usize,
    elements: usize,
    namespaces: HashSet<(&'x str, &'x str)>,
}

impl<'x> Scan<'x> {
    fn rest(&self) -> &'x str {
        self.xml.get(self.at..).unwrap_or_default()
    }

    /// Skips to behind the next `end` that begins `from` bytes or more from here.
    fn skip(&mut self, from: usize, end: &str) {
        let rest = self.rest();
        let found = rest.get(from..).and_then(|rest| rest.find(end));
        self.at += found.map_or(rest.len(), |found| from + found + end.len());
    }

    /// Skips to behind a tag, and checks it.
    fn tag(&mut self) -> Result<(), TemplateError> {
        let begin = self.at;
        if !self.rest().starts_with("</") {
            self.elements += 1;
        }
        if self.elements > MAX_ELEMENTS {
            let message = format!("more than {MAX_ELEMENTS} elements");
            return Err(exceeded(position(self.xml, begin), message));
        }
        let mut attributes = 0;
        self.at += 1;
        while let Some(found) = self.rest().find(['>', '"', '\'']) {
            let name = self.rest().get(..found).unwrap_or_default();
            let quote = self.xml.as_bytes().get(self.at + found).copied();
            self.at += found + 1;
            let end = match quote {
                Some(b'"') => self.rest().find('"'),
                Some(b'\'') => self.rest().find('\''),
                _ => return Ok(()),
            };
            let Some(end) = end else {
                break;
            };
            attributes += 1;
            let text = self.rest().get(..end).unwrap_or_default();
            self.at += end + 1;
            if attributes > MAX_ATTRIBUTES {
                let message = format!("an element with more than {MAX_ATTRIBUTES} attributes");
                return Err(exceeded(position(self.xml, begin), message));
            }
            let name = name.trim_end_matches(|c: char| c == '=' || c.is_whitespace());
            let name = name.rsplit(char::is_whitespace).next().unwrap_or_default();
            if name.starts_with("xmlns") {
                self.namespaces.insert((name, text));
                if self.namespaces.len() > MAX_NAMESPACES {
                    let message = format!("more than {MAX_NAMESPACES} namespaces");
                    return Err(exceeded(position(self.xml, begin), message));
                }
            }
        }
        self.at = self.xml.len();
        Ok(())
    }
}

/// Returns the line and column of the byte at this offset.
pub(super) fn position(xml: &str, at: usize) -> Position {
    let before = xml.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    Position {
        line: before.matches('\n').count() as u32 + 1,
        column: line.chars().count() as u32 + 1,
    }
}

fn exceeded(position: Position, message: String) -> TemplateError {
    TemplateError {
        code: ErrorCode::S1,
        line: position.line,
        column: position.column,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_told_with_its_place() {
        let many = |one: &dyn Fn(usize) -> String, count| (0..count).map(one).collect::<String>();
        let attributes =
            |count| format!("<t>\n <a{}/></t>", many(&|i| format!(" x{i}='>'"), count));
        let namespaces =
            |count| format!("<t{}/>", many(&|i| format!("><t xmlns:a{i}='u'/"), count));
        let elements = |count: usize| format!("<t>{}</t>", "<a/>".repeat(count - 1));
        for (fits, exceeds, place) in [
            (
                attributes(MAX_ATTRIBUTES),
                attributes(MAX_ATTRIBUTES + 1),
                (2, 2),
            ),
            (
                namespaces(MAX_NAMESPACES),
                namespaces(MAX_NAMESPACES + 1),
                (1, 4758),
            ),
            (
                elements(MAX_ELEMENTS),
                elements(MAX_ELEMENTS + 1),
                (1, 4_194_304),
            ),
        ] {
            assert_eq!(check(&fits), Ok(()));
            let error = check(&exceeds).unwrap_err();
            assert_eq!((error.line, error.column), place, "{error}");
        }
        assert!(check(&" ".repeat(MAX_BYTES)).is_ok());
        assert!(check(&" ".repeat(MAX_BYTES + 1)).is_err());
    }

    #[test]
    fn what_is_no_tag_is_not_counted() {
        let comment = format!("<t><!-- {} --></t>", "<a/>".repeat(MAX_ELEMENTS));
        let data = format!("<t><![CDATA[{}]]></t>", "<a>".repeat(MAX_ELEMENTS));
        for xml in [
            &comment,
            &data,
            "<",
            "<a b='",
            "<!--",
            "<a b",
            "\u{e9}<\u{e9}",
        ] {
            assert_eq!(check(xml), Ok(()));
        }
    }
}
