//! The character encodings of XML documents, and their limits, checked before a document is parsed:
//! the time to parse one grows with the square of the attributes of an element, and of the
//! namespaces.

mod encoding;

pub use encoding::{EncodingError, decode};

use core::fmt::{self, Display};
use std::collections::HashSet;

/// The limits on a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most elements of the document.
    pub elements: usize,
    /// The most attributes of an element.
    pub attributes: usize,
    /// The most namespaces of the document, each prefix with each URI.
    pub namespaces: usize,
}

/// The error that a document exceeds a limit, with the place of the tag that exceeds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The limit that is exceeded.
    pub limit: Limit,
}

/// A limit with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The most elements of a document.
    Elements(usize),
    /// The most attributes of an element.
    Attributes(usize),
    /// The most namespaces of a document.
    Namespaces(usize),
}

impl Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Elements(most) => write!(f, "more than {most} elements"),
            Self::Attributes(most) => write!(f, "an element with more than {most} attributes"),
            Self::Namespaces(most) => write!(f, "more than {most} namespaces"),
        }
    }
}

impl Limits {
    /// Checks a document. A malformed document passes, because the parser reports it.
    ///
    /// # Errors
    /// Returns the first limit that the document exceeds.
    ///
    /// ```
    /// use fanfare_wire::xml::{Limit, Limits};
    /// let limits = Limits { elements: 2, attributes: 8, namespaces: 8 };
    /// assert_eq!(limits.check("<a><b/></a>"), Ok(()));
    /// let exceeded = limits.check("<a><b/>\n <c/></a>").unwrap_err();
    /// assert_eq!((exceeded.line, exceeded.column), (2, 2));
    /// assert_eq!(exceeded.limit, Limit::Elements(2));
    /// ```
    pub fn check(self, xml: &str) -> Result<(), Exceeded> {
        let mut scan = Scan {
            xml,
            limits: self,
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
}

struct Scan<'x> {
    xml: &'x str,
    limits: Limits,
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
    fn tag(&mut self) -> Result<(), Exceeded> {
        let begin = self.at;
        if !self.rest().starts_with("</") {
            self.elements += 1;
        }
        let most = self.limits;
        self.within(self.elements, begin, Limit::Elements(most.elements))?;
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
            self.within(attributes, begin, Limit::Attributes(most.attributes))?;
            let name = name.trim_end_matches(|c: char| c == '=' || c.is_whitespace());
            let name = name.rsplit(char::is_whitespace).next().unwrap_or_default();
            if name.starts_with("xmlns") {
                self.namespaces.insert((name, text));
                let count = self.namespaces.len();
                self.within(count, begin, Limit::Namespaces(most.namespaces))?;
            }
        }
        self.at = self.xml.len();
        Ok(())
    }

    /// Returns an error, at the tag that begins there, if there are more than the limit.
    fn within(&self, count: usize, begin: usize, limit: Limit) -> Result<(), Exceeded> {
        let (Limit::Elements(most) | Limit::Attributes(most) | Limit::Namespaces(most)) = limit;
        if count <= most {
            return Ok(());
        }
        let (line, column) = position(self.xml, begin);
        Err(Exceeded {
            line,
            column,
            limit,
        })
    }
}

/// Returns the line and the column, from 1, of the byte at an offset of a document.
#[must_use]
pub fn position(xml: &str, at: usize) -> (u32, u32) {
    let before = xml.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let lines = before.matches('\n').count() as u32 + 1;
    (lines, line.chars().count() as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        elements: 300,
        attributes: 20,
        namespaces: 30,
    };

    #[test]
    fn each_limit_is_told_with_its_place() {
        let many = |one: &dyn Fn(usize) -> String, count| (0..count).map(one).collect::<String>();
        let attributes =
            |count| format!("<t>\n <a{}/></t>", many(&|i| format!(" x{i}='>'"), count));
        let namespaces =
            |count| format!("<t{}/>", many(&|i| format!("><t xmlns:a{i}='u'/"), count));
        let elements = |count: usize| format!("<t>{}</t>", "<a/>".repeat(count - 1));
        for (fits, exceeds, line, column, limit) in [
            (
                attributes(20),
                attributes(21),
                2,
                2,
                "an element with more than 20 attributes",
            ),
            (
                namespaces(30),
                namespaces(31),
                1,
                534,
                "more than 30 namespaces",
            ),
            (
                elements(300),
                elements(301),
                1,
                1200,
                "more than 300 elements",
            ),
        ] {
            assert_eq!(LIMITS.check(&fits), Ok(()));
            let exceeded = LIMITS.check(&exceeds).unwrap_err();
            assert_eq!((exceeded.line, exceeded.column), (line, column));
            assert_eq!(exceeded.limit.to_string(), limit);
        }
    }

    #[test]
    fn a_namespace_that_is_declared_again_is_not_counted_again() {
        let again = format!("<t>{}</t>", "<a xmlns:b='u'/>".repeat(100));
        assert_eq!(LIMITS.check(&again), Ok(()));
    }

    #[test]
    fn what_is_no_tag_is_not_counted() {
        let comment = format!("<t><!-- {} --></t>", "<a/>".repeat(300));
        let data = format!("<t><![CDATA[{}]]></t>", "<a>".repeat(300));
        for xml in [
            &comment,
            &data,
            "<",
            "<a b='",
            "<!--",
            "<a b",
            "\u{e9}<\u{e9}",
        ] {
            assert_eq!(LIMITS.check(xml), Ok(()));
        }
    }
}
