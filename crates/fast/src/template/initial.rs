//! Initial values: the text of a `value` attribute as a value of the field's type.

use super::Initial;
use crate::error::ErrorCode;
use crate::value::{self, IntType, TextType};

/// The type to which an operator's initial value is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperandType {
    Int(IntType),
    Decimal,
    Text(TextType),
    /// A bit group of this number of bits.
    Bits(u32),
}

impl OperandType {
    /// Returns the name of the type.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Int(ty) => ty.name(),
            Self::Decimal => "decimal",
            Self::Bits(_) => "bitGroup",
            Self::Text(TextType::Ascii) => "ASCII string",
            Self::Text(TextType::Unicode) => "Unicode string",
            Self::Text(TextType::Bytes) => "byteVector",
        }
    }
}

/// Converts the text. The error is the dynamic or reportable one that makes the value an S3.
pub(super) fn convert(text: &str, ty: OperandType) -> Result<Initial, ErrorCode> {
    Ok(match ty {
        OperandType::Int(ty) => Initial::Int(value::parse_int(text, ty)?),
        OperandType::Bits(width) => {
            let value = value::parse_int(text, IntType::UInt64)?;
            if value >> width != 0 {
                return Err(ErrorCode::R4);
            }
            Initial::Int(value)
        }
        OperandType::Decimal => Initial::Decimal(value::normalised(value::parse_decimal(text)?)?),
        OperandType::Text(TextType::Ascii) if !text.is_ascii() => return Err(ErrorCode::R3),
        OperandType::Text(TextType::Ascii | TextType::Unicode) => {
            Initial::Text(text.as_bytes().to_vec())
        }
        OperandType::Text(TextType::Bytes) => Initial::Text(value::parse_hex(text)?),
    })
}
