//! The steps of a decoder, for the analysis of a garbled feed.

use crate::previous::Previous;
use crate::program::{Field, TemplateProgram};
use crate::template::OperatorKind;

/// One step of the decoder.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// A presence map was read.
    PresenceMap {
        /// The offset of its first byte.
        offset: usize,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The template of a segment is known.
    Template {
        /// The offset of the identifier, or of the byte after the presence map.
        offset: usize,
        /// The bytes of the identifier; empty if the template is that of the last message.
        bytes: &'a [u8],
        /// The template.
        template: &'a TemplateProgram,
    },
    /// A field, a part of a decimal, or the length of a sequence is about to be reported, or is
    /// absent.
    Field {
        /// The field.
        field: &'a Field,
        /// The part: empty, `exponent`, `mantissa` or `length`.
        part: &'static str,
        /// The operator.
        operator: OperatorKind,
        /// The presence bit, if the field has one.
        bit: Option<bool>,
        /// The previous value before the step, if the operator has one.
        previous: Option<Previous>,
        /// The offset of the field's first byte in the stream.
        offset: usize,
        /// The field's bytes in the stream; empty if it is not in the stream.
        bytes: &'a [u8],
        /// The value of an integer, of a part of a decimal or of a length; `None` for other types,
        /// and for absent fields.
        integer: Option<i128>,
    },
}
