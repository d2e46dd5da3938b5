//! The limits of a document. They are checked before it is parsed, because the time to parse grows
//! with the square of the attributes of an element, and of the namespaces.

use fanfare_wire::xml::Limits;

use super::Position;
use crate::error::{ErrorCode, TemplateError};

/// The maximum length of a document in bytes. Reading one takes up to 25 times as much memory.
pub const MAX_BYTES: usize = 16 << 20;

/// The maximum number of elements of a document.
pub const MAX_ELEMENTS: usize = 1 << 20;

/// The maximum number of attributes of an element.
pub const MAX_ATTRIBUTES: usize = 256;

/// The maximum number of namespaces of a document, each prefix with each URI.
pub const MAX_NAMESPACES: usize = 256;

const LIMITS: Limits = Limits {
    elements: MAX_ELEMENTS,
    attributes: MAX_ATTRIBUTES,
    namespaces: MAX_NAMESPACES,
};

/// The maximum length of a name, namespace, key or identifier in bytes.
pub const MAX_NAME: usize = 255;

/// The maximum nesting of groups and sequences in a document.
pub const MAX_NESTING: usize = 32;

/// The maximum number of bits of a bit group.
pub const MAX_BITS: u32 = 64;

/// The maximum number of elements of an enum. A set has 64 at most.
pub const MAX_VALUES: usize = 4096;

/// The maximum number of fields and references of a document with its definitions expanded. It is
/// also that of fields, and of static references, of a program, in which these are expanded too.
pub const MAX_FIELDS: usize = 1 << 18;

/// The maximum length in bytes of all initial values that are strings or byte vectors, of a
/// document and of a program.
pub const MAX_TEXTS: usize = 64 << 20;

/// Returns S1 with the place if a document exceeds a limit. A malformed document passes, because
/// the parser reports it.
pub(super) fn check(xml: &str) -> Result<(), TemplateError> {
    if xml.len() > MAX_BYTES {
        let position = Position { line: 1, column: 1 };
        let message = format!("the document has more than {MAX_BYTES} bytes");
        return Err(exceeded(position, message));
    }
    LIMITS.check(xml).map_err(|error| {
        let position = Position {
            line: error.line,
            column: error.column,
        };
        exceeded(position, error.limit.to_string())
    })
}

/// Returns the line and column of the byte at this offset.
pub(super) fn position(xml: &str, at: usize) -> Position {
    let (line, column) = fanfare_wire::xml::position(xml, at);
    Position { line, column }
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
}
