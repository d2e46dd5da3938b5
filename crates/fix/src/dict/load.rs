//! Errors and limits that the loaders of dictionary texts share.

use std::fmt;

use roxmltree::{Document, Node, ParsingOptions};

use super::schema::SchemaError;

/// Largest text that a loader takes, in bytes; FIX Latest in Orchestra has 9 million.
pub const MAX_TEXT: usize = 64 << 20;

/// Most XML elements, attributes and texts of a document.
const MAX_NODES: u32 = 4_000_000;

/// Deepest nesting of groups in the text.
pub(super) const MAX_DEPTH: usize = 32;

/// Why a dictionary text can not be loaded, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// Line, from 1; 0 if the error belongs to no line.
    pub line: usize,
    /// Column, from 1; 0 if the error belongs to no line.
    pub column: usize,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong with a dictionary text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The text is larger than [`MAX_TEXT`].
    #[error("the text has more than {MAX_TEXT} bytes")]
    TextTooLarge,
    /// The text is not well-formed, with the words of the parser.
    #[error("{0}")]
    Syntax(String),
    /// The root element belongs to no dictionary.
    #[error("<{root}> is neither <fix> nor <repository>")]
    NotADictionary {
        /// The root element's name.
        root: String,
    },
    /// An element without an attribute that it has to have.
    #[error("<{element}> has no {attribute}")]
    MissingAttribute {
        /// The element's name.
        element: String,
        /// The attribute's name.
        attribute: &'static str,
    },
    /// An attribute whose value is not of the right kind.
    #[error("invalid value {attribute}=\"{value}\"")]
    BadValue {
        /// The attribute's name.
        attribute: &'static str,
        /// Its value.
        value: String,
    },
    /// An element that has to be there is missing.
    #[error("<{0}> is missing")]
    MissingElement(&'static str),
    /// A tag is declared twice.
    #[error("tag {0} is declared twice")]
    DuplicateTag(u32),
    /// A name or MsgType(35) is declared twice.
    #[error("{what} {name} is declared twice")]
    DuplicateName {
        /// What kind of thing has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A field, component, group or code set is used that nothing declares.
    #[error("{what} {name} is not declared")]
    Unknown {
        /// What kind of thing is used.
        what: &'static str,
        /// Its name or number.
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

    /// Something is used at an element that nothing declares.
    pub(super) fn unknown(node: Node, what: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self::at(node, Cause::Unknown { what, name })
    }

    /// Something is declared at an element that was declared before.
    pub(super) fn twice(node: Node, what: &'static str, name: &str) -> Self {
        let name = name.to_owned();
        Self::at(node, Cause::DuplicateName { what, name })
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

/// Parses XML within the limits; document type definitions are refused.
pub(super) fn parse_xml(text: &str) -> Result<Document<'_>, LoadError> {
    if text.len() > MAX_TEXT {
        return Err(LoadError::new(0, 0, Cause::TextTooLarge));
    }
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

/// Returns an attribute that has to be there.
pub(super) fn attribute<'a>(node: Node<'a, '_>, name: &'static str) -> Result<&'a str, LoadError> {
    node.attribute(name).ok_or_else(|| {
        let cause = Cause::MissingAttribute {
            element: node.tag_name().name().to_owned(),
            attribute: name,
        };
        LoadError::at(node, cause)
    })
}

/// Returns a tag number from 1 on in an attribute.
pub(super) fn tag_attribute(node: Node, name: &'static str) -> Result<u32, LoadError> {
    let text = attribute(node, name)?;
    match text.parse() {
        Ok(tag) if (1..=MAX_TAG).contains(&tag) => Ok(tag),
        _ => {
            let cause = Cause::BadValue {
                attribute: name,
                value: text.to_owned(),
            };
            Err(LoadError::at(node, cause))
        }
    }
}

/// The largest tag that the codec reads.
const MAX_TAG: u32 = 999_999_999;
