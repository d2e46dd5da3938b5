//! The character encodings of documents.

use fanfare_wire::xml;

use crate::error::{ErrorCode, TemplateError};

/// Returns the text of a document, as [`xml::decode`] does.
///
/// # Errors
/// S1 at the first byte that is no character, and at the name of another encoding.
pub fn decode(bytes: &[u8]) -> Result<String, TemplateError> {
    xml::decode(bytes).map_err(|error| TemplateError {
        code: ErrorCode::S1,
        line: error.line,
        column: error.column,
        message: error.message,
    })
}
