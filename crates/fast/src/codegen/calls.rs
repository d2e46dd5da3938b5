//! The calls of straight-line code, with the constants of their ops.

use super::model::{Member, Model, Shape, Struct};
use crate::program::{Body, IntOp, Op, Program, TextOp};
use crate::template::OperatorKind;
use crate::value::TextType;

/// Returns the structs with the bodies that fill them: those of templates, then those of groups and
/// entries.
pub(super) fn segments<'m>(model: &'m Model<'_>) -> impl Iterator<Item = (&'m Struct, Body)> {
    let templates = model.program.templates().iter().zip(&model.templates);
    let templates = templates.map(|(template, index)| (&model.structs[*index], template.body()));
    let members = model.structs.iter().flat_map(|item| &item.members);
    templates.chain(members.filter_map(|member| {
        let (Op::Group { body, .. } | Op::Sequence { body, .. }) = model.program.op(member.id)
        else {
            return None;
        };
        match member.shape {
            Shape::Group(inner) | Shape::Sequence(inner) => Some((&model.structs[inner], *body)),
            _ => None,
        }
    }))
}

/// Returns the members that a message of this body reaches: all of them, or those before a
/// reference to a template that does not exist, with the number of its op.
pub(super) fn reached<'m>(
    program: &Program,
    item: &'m Struct,
    body: Body,
) -> (&'m [Member], Option<u32>) {
    let is_unresolved = |op: &Op| matches!(op, Op::Unresolved { .. });
    // Each op before it has a member.
    match program.ops(body).iter().position(is_unresolved) {
        Some(at) => (
            item.members.get(..at).unwrap_or_default(),
            Some(body.start + at as u32),
        ),
        None => (&item.members, None),
    }
}

/// The way in which a field is read or written.
pub(super) enum Call {
    /// No call.
    Nothing,
    /// A constant string, with its length in bytes.
    Constant(usize),
    /// A method that leaves unusual values to the op, with the constants before the member.
    Usual(&'static str, String),
    /// The op alone.
    Op,
}

pub(super) fn call(program: &Program, member: &Member, op: &Op) -> Call {
    let is_constant = member.shape == Shape::Constant;
    match op {
        Op::Int(IntOp { initial, .. }) if is_constant && initial.is_some() => Call::Nothing,
        Op::Decimal(op) if is_constant && op.initial.is_some() => Call::Nothing,
        Op::Int(op) if !is_constant => match operator(op) {
            Some(operator) => Call::Usual("int", format!("{operator}, ")),
            None => Call::Op,
        },
        Op::Decimal(op) if op.operator == OperatorKind::None => {
            Call::Usual("decimal", String::new())
        }
        Op::SplitDecimal {
            exponent, mantissa, ..
        } => match (operator(exponent), operator(mantissa)) {
            (Some(exponent), Some(mantissa)) => {
                Call::Usual("parts", format!("{exponent}, {mantissa}, "))
            }
            _ => Call::Op,
        },
        Op::Text(op) => text(program, is_constant, op),
        _ => Call::Op,
    }
}

/// Returns the operator of an integer, or `None` for an unusual one.
pub(super) fn operator(op: &IntOp) -> Option<String> {
    let (slot, initial) = (op.slot.index(), op.initial);
    Some(match op.operator {
        OperatorKind::None => "Operator::None".to_owned(),
        OperatorKind::Constant => format!(
            "Operator::{}({})",
            if op.optional { "Constant" } else { "Fixed" },
            initial?
        ),
        OperatorKind::Default => format!("Operator::Default({initial:?})"),
        OperatorKind::Copy => format!("Operator::Copy({slot}, {initial:?})"),
        OperatorKind::Increment => format!("Operator::Increment({slot}, {initial:?})"),
        OperatorKind::Delta => format!("Operator::Delta({slot}, {})", initial.unwrap_or(0)),
        OperatorKind::Tail => return None,
    })
}

fn text(program: &Program, is_constant: bool, op: &TextOp) -> Call {
    let initial = op.initial.map(|text| program.text(text));
    let constants = initial.map(<[u8]>::escape_ascii);
    let constants = constants.map_or("None, ".to_owned(), |text| format!("Some(b\"{text}\"), "));
    match (op.ty, op.operator, initial) {
        (_, OperatorKind::Constant, Some(text)) if is_constant => Call::Constant(text.len()),
        (TextType::Ascii, OperatorKind::None, _) => Call::Usual("ascii", String::new()),
        (TextType::Ascii, OperatorKind::Default, _) => Call::Usual("ascii_default", constants),
        (TextType::Ascii, OperatorKind::Copy, _) => {
            Call::Usual("ascii_copy", format!("{}, {constants}", op.slot.index()))
        }
        _ => Call::Op,
    }
}
