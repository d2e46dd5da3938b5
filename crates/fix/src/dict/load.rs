//! Errors and limits of the loaders of dictionary texts.

use std::fmt;

use fanfare_wire::xml::{Limit, Limits};
use roxmltree::{Document, Node, ParsingOptions};

use super::kind::DataType;
use super::schema::SchemaError;

/// The size of the largest text that a loader reads, in bytes. FIX Latest in Orchestra has 9
/// million.
pub const MAX_TEXT: usize = 64 << 20;

/// The most XML elements and texts of a document.
const MAX_NODES: u32 = 4_000_000;

/// The limits on a document. Each element with a namespace of its own costs the square of all
/// namespaces around it; dictionaries have about ten.
const LIMITS: Limits = Limits {
    elements: MAX_NODES as usize,
    attributes: 256,
    namespaces: 64,
};

/// The deepest nesting of groups in a text.
pub(super) const MAX_DEPTH: usize = 32;

/// The reason why a dictionary text cannot be loaded, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The line, from 1; 0 if the error belongs to no line.
    pub line: usize,
    /// The column, from 1; 0 if the error belongs to no line.
    pub column: usize,
    /// The cause of the error.
    pub cause: Cause,
}

/// The cause of an error in a dictionary text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The text is larger than [`MAX_TEXT`].
    #[error("the text has more than {MAX_TEXT} bytes")]
    TextTooLarge,
    /// The text has more elements, attributes or namespaces than a loader reads.
    #[error("{0}")]
    TooMuch(Limit),
    /// The text is not well-formed. The parser's message is included.
    #[error("{0}")]
    Syntax(String),
    /// The root element is not that of a dictionary.
    #[error("<{root}> is neither <fix> nor <repository>")]
    NotADictionary {
        /// The name of the root element.
        root: String,
    },
    /// An element lacks a required attribute.
    #[error("<{element}> has no {attribute}")]
    MissingAttribute {
        /// The name of the element.
        element: String,
        /// The name of the attribute.
        attribute: &'static str,
    },
    /// An attribute has a value of the wrong kind.
    #[error("invalid value {attribute}=\"{value}\"")]
    BadValue {
        /// The name of the attribute.
        attribute: &'static str,
        /// The value of the attribute.
        value: String,
    },
    /// A required element is missing.
    #[error("<{0}> is missing")]
    MissingElement(&'static str),
    /// A tag is declared twice.
    #[error("tag {0} is declared twice")]
    DuplicateTag(u32),
    /// A name or MsgType(35) is declared twice.
    #[error("{what} {name} is declared twice")]
    DuplicateName {
        /// The kind of the declaration.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A field, component, group or code set is used but not declared.
    #[error("{what} {name} is not declared")]
    Unknown {
        /// The kind of the missing declaration.
        what: &'static str,
        /// The name or number that is used.
        name: String,
    },
    /// Groups are nested too deeply.
    #[error("groups are nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The declarations do not fit together.
    #[error("{0}")]
    Schema(SchemaError),
}

impl LoadError {
    pub(super) fn new(line: usize, column: usize, cause: Cause) -> Self {
        Self {
            line,
            column,
            cause,
        }
    }

    /// Returns the error that an element uses something that is not declared.
    pub(super) fn unknown(node: Node, what: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self::at(node, Cause::Unknown { what, name })
    }

    /// Returns the error that an element declares something that was declared before.
    pub(super) fn twice(node: Node, what: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self::at(node, Cause::DuplicateName { what, name })
    }

    /// Returns the error that an attribute has this value, which is of the wrong kind.
    pub(super) fn bad_value(node: Node, attribute: &'static str, value: &str) -> Self {
        let value = value.to_owned();
        Self::at(node, Cause::BadValue { attribute, value })
    }

    /// Returns an error at the start of an element.
    pub(super) fn at(node: Node, cause: Cause) -> Self {
        let at = node.document().text_pos_at(node.range().start);
        Self::new(at.row as usize, at.col as usize, cause)
    }
}

impl From<SchemaError> for LoadError {
    fn from(error: SchemaError) -> Self {
        Self::new(0, 0, Cause::Schema(error))
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        self.cause.fmt(f)
    }
}

impl std::error::Error for LoadError {}

/// Parses XML within the limits. Document type definitions are refused.
pub(super) fn parse_xml(text: &str) -> Result<Document<'_>, LoadError> {
    if text.len() > MAX_TEXT {
        return Err(LoadError::new(0, 0, Cause::TextTooLarge));
    }
    LIMITS.check(text).map_err(|exceeded| {
        let (line, column) = (exceeded.line as usize, exceeded.column as usize);
        LoadError::new(line, column, Cause::TooMuch(exceeded.limit))
    })?;
    let options = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_NODES,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        // The parser's text ends in the position once more.
        let text = error.to_string();
        let bare = text.strip_suffix(&format!(" at {at}")).unwrap_or(&text);
        let cause = Cause::Syntax(bare.to_owned());
        LoadError::new(at.row as usize, at.col as usize, cause)
    })
}

/// Returns whether this is the name of a type. Files of QuickFIX have `MONTH-YEAR`, too, and those
/// made from the standard's repository some types that are text.
pub(super) fn is_type(name: &str) -> bool {
    let plain = name.replace('-', "");
    let is_text = ["PATTERN", "TENOR", "XID", "XIDREF"]
        .iter()
        .any(|text| text.eq_ignore_ascii_case(name));
    is_text || DataType::from_name(&plain) != DataType::Other
}

/// Returns a required attribute of an element.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &'static str) -> Result<&'a str, LoadError> {
    node.attribute(name).ok_or_else(|| {
        let cause = Cause::MissingAttribute {
            element: node.tag_name().name().to_owned(),
            attribute: name,
        };
        LoadError::at(node, cause)
    })
}

/// Returns a tag number from an attribute. The number must be from 1 to [`MAX_TAG`].
pub(super) fn tag_attribute(node: Node, name: &'static str) -> Result<u32, LoadError> {
    let text = attribute(node, name)?;
    match text.parse() {
        Ok(tag) if (1..=MAX_TAG).contains(&tag) => Ok(tag),
        _ => Err(LoadError::bad_value(node, name, text)),
    }
}

/// The largest tag that the codec reads.
const MAX_TAG: u32 = 999_999_999;
