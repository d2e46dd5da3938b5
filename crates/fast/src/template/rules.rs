//! The rules of field operators (section 6.3), for documents and for templates that a program has
//! put together.

use super::initial::OperandType;
use super::{Initial, Operator, OperatorKind};
use crate::error::ErrorCode;
use crate::value::{TextType, normalised};

/// The code of a rule that is broken, and its description.
pub(crate) type Broken = (ErrorCode, String);

/// Checks an operator of a field of this type (S2 to S5).
pub(crate) fn check(operator: &Operator, ty: OperandType, optional: bool) -> Result<(), Broken> {
    check_type(operator.kind, ty)?;
    let initial = operator.initial.as_ref();
    if initial.is_some_and(|initial| !holds(ty, initial)) {
        let message = format!("the initial value is not a valid {}", ty.name());
        return Err((ErrorCode::S3, message));
    }
    check_value(operator.kind, initial.is_some(), optional)
}

/// Checks that an operator applies to a type (S2).
pub(super) fn check_type(kind: OperatorKind, ty: OperandType) -> Result<(), Broken> {
    let applies = match kind {
        OperatorKind::Increment => matches!(ty, OperandType::Int(_)),
        OperatorKind::Tail => matches!(ty, OperandType::Text(_)),
        _ => true,
    };
    match applies {
        true => Ok(()),
        false => {
            let message = format!("{} does not apply to {}", kind.name(), ty.name());
            Err((ErrorCode::S2, message))
        }
    }
}

/// Checks that an operator that needs an initial value has one (S4, S5).
pub(super) fn check_value(
    kind: OperatorKind,
    has_initial: bool,
    optional: bool,
) -> Result<(), Broken> {
    let code = match kind {
        _ if has_initial => return Ok(()),
        OperatorKind::Constant => ErrorCode::S4,
        OperatorKind::Default if !optional => ErrorCode::S5,
        _ => return Ok(()),
    };
    Err((code, code.text().to_owned()))
}

/// Returns whether a value is one that the conversion of a text to this type can have.
fn holds(ty: OperandType, initial: &Initial) -> bool {
    match (ty, initial) {
        (OperandType::Int(ty), Initial::Int(value)) => ty.holds(*value),
        (OperandType::Bits(width), Initial::Int(value)) => {
            (0..1_i128.checked_shl(width).unwrap_or(0)).contains(value)
        }
        (OperandType::Decimal, Initial::Decimal(decimal)) => normalised(*decimal) == Ok(*decimal),
        (OperandType::Text(ty), Initial::Text(text)) => match ty {
            TextType::Ascii => text.is_ascii(),
            TextType::Unicode => str::from_utf8(text).is_ok(),
            TextType::Bytes => true,
        },
        _ => false,
    }
}
