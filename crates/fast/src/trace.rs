//! What a decoder does, step by step, for the analysis of a garbled feed.

use crate::previous::Previous;
use crate::program::{Field, TemplateProgram};
use crate::template::OperatorKind;

/// One step of the decoder.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// A presence map was read.
    PresenceMap {
        /// Offset of its first byte.
        offset: usize,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The template of a segment is known.
    Template {
        /// Offset of the identifier, or of the byte after the presence map.
        offset: usize,
        /// The bytes of the identifier; none if it is that of the last message.
        bytes: &'a [u8],
        /// The template.
        template: &'a TemplateProgram,
    },
    /// A field, a part of a decimal, or the length of a sequence is about to be reported, or
    /// turned out absent.
    Field {
        /// The field.
        field: &'a Field,
        /// Empty, `exponent`, `mantissa` or `length`.
        part: &'static str,
        /// The operator.
        operator: OperatorKind,
        /// The presence bit, if it has one.
        bit: Option<bool>,
        /// The previous value before the step, if the operator has one.
        previous: Option<Previous>,
        /// Offset of its first byte in the stream.
        offset: usize,
        /// Its bytes in the stream; none if it is not there.
        bytes: &'a [u8],
        /// What an integer, a part of a decimal or a length became; `None` for other types.
        integer: Option<i128>,
    },
}
