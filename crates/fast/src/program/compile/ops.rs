//! Instructions to ops, each with its operator, its slot and its presence bit.

use super::slots::Part;
use super::{Compiler, Context, s1};
use crate::error::TemplateError;
use crate::program::{BitsOp, DecimalOp, FieldId, IntOp, Op, Slot, TextId, TextOp};
use crate::state::State;
use crate::template::limits::{MAX_BITS, MAX_TEXTS};
use crate::template::rules::{self, Broken};
use crate::template::{BitGroup, Initial, Instruction, Kind, OperandType, Operator, OperatorKind};
use crate::value::{IntType, TextType};

impl<'s> Compiler<'s> {
    pub(super) fn op(
        &mut self,
        instruction: &'s Instruction,
        field: FieldId,
        context: Context<'s>,
    ) -> Result<Op, TemplateError> {
        check(instruction)?;
        let optional = instruction.optional;
        let name = &instruction.name;
        Ok(match &instruction.kind {
            Kind::Int(ty, operator) => {
                let slot = self.slot(operator, name, Part::Whole, context);
                let slot = self.in_column(slot, operator, optional, State::int(*ty));
                Op::Int(int_op(field, *ty, operator, optional, slot))
            }
            Kind::Decimal(operator) => Op::Decimal(DecimalOp {
                field,
                operator: operator.kind,
                optional,
                slot: self.decimal_slot(operator, name, context),
                initial: match operator.initial {
                    Some(Initial::Decimal(decimal)) => Some(decimal),
                    _ => None,
                },
            }),
            Kind::SplitDecimal { exponent, mantissa } => {
                let first = self.slot(exponent, name, Part::Exponent, context);
                let ty = State::int(IntType::Int32);
                let first = self.in_column(first, exponent, optional, ty);
                let second = self.slot(mantissa, name, Part::Mantissa, context);
                let second = self.in_column(second, mantissa, false, State::int(IntType::Int64));
                Op::SplitDecimal {
                    field,
                    exponent: int_op(field, IntType::Int32, exponent, optional, first),
                    mantissa: int_op(field, IntType::Int64, mantissa, false, second),
                }
            }
            Kind::Text(ty, operator) => {
                Op::Text(self.text_op(field, *ty, operator, instruction, context)?)
            }
            Kind::Group(block) => Op::Group {
                field,
                optional,
                body: self.block(block, field, instruction, context)?,
            },
            Kind::Sequence { length, entry } => {
                let (name, part) = match &length.name {
                    Some(name) => (name, Part::Whole),
                    None => (name, Part::Length),
                };
                // The length is inside the element with the typeRef (6.1, 6.2.5).
                let inside = Context {
                    app_type: entry.type_ref.as_ref().or(context.app_type),
                    ..context
                };
                let slot = self.slot(&length.operator, name, part, inside);
                let ty = State::int(IntType::UInt32);
                let slot = self.in_column(slot, &length.operator, optional, ty);
                let length = int_op(field, IntType::UInt32, &length.operator, optional, slot);
                Op::Sequence {
                    field,
                    length,
                    body: self.block(entry, field, instruction, context)?,
                }
            }
            Kind::Bits(group) => Op::Bits(self.bits(group, field, instruction, context)?),
            Kind::StaticRef => Op::Unresolved { field },
            Kind::DynamicRef => Op::TemplateRef { field },
        })
    }

    fn text_op(
        &mut self,
        field: FieldId,
        ty: TextType,
        operator: &Operator,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> Result<TextOp, TemplateError> {
        let optional = instruction.optional;
        let mut slot = self.slot(operator, &instruction.name, Part::Whole, context);
        if ty == TextType::Ascii || operator.kind.uses_dictionary() {
            slot = self.in_column(slot, operator, optional, State::text(ty));
        }
        let mut text_slot = 0;
        if operator.kind.uses_dictionary() {
            let next = self.text_slots.len() as u32;
            text_slot = *self.text_slots.entry(slot).or_insert(next);
        }
        let initial = match &operator.initial {
            Some(Initial::Text(text)) => {
                self.text_bytes += text.len();
                if self.text_bytes > MAX_TEXTS {
                    let message = format!("more than {MAX_TEXTS} bytes of initial values");
                    return Err(s1(instruction.position, message));
                }
                self.program.texts.push(text.clone().into_boxed_slice());
                Some(TextId(self.program.texts.len() as u32 - 1))
            }
            _ => None,
        };
        Ok(TextOp {
            field,
            ty,
            operator: operator.kind,
            optional,
            slot,
            text_slot,
            initial,
        })
    }

    /// Returns a bit group, with its members as fields inside it.
    fn bits(
        &mut self,
        group: &'s BitGroup,
        field: FieldId,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> Result<BitsOp, TemplateError> {
        if let Some(message) = fault_of(group) {
            return Err(s1(instruction.position, message));
        }
        let ty = OperandType::Bits(group.width());
        rules::check(&group.operator, ty, instruction.optional)
            .map_err(|broken| fault(instruction, broken))?;
        let slot = self.slot(&group.operator, &instruction.name, Part::Whole, context);
        let ty = IntType::UInt64;
        let slot = self.in_column(slot, &group.operator, instruction.optional, State::int(ty));
        let inner = Context {
            parent: Some(field),
            depth: context.depth + 1,
            ..context
        };
        let (mut ops, mut children) = (Vec::new(), Vec::new());
        for (member, width) in &group.members {
            let id = self.field(member, inner)?;
            self.program.fields[id.index()].bits = *width;
            children.push(id);
            if let Kind::Int(ty, operator) = &member.kind {
                ops.push(Op::Int(int_op(id, *ty, operator, member.optional, Slot(0))));
            }
        }
        self.program.fields[field.index()].children = self.append_children(children);
        Ok(BitsOp {
            whole: int_op(field, ty, &group.operator, instruction.optional, slot),
            width: group.width(),
            members: self.append_ops(ops, u32::MAX),
        })
    }
}

/// Returns what is wrong with the members of a bit group, which a program has put together without
/// a document.
fn fault_of(group: &BitGroup) -> Option<String> {
    for (member, bits) in &group.members {
        let fits = match &member.kind {
            Kind::Int(ty, operator) => {
                operator.kind == OperatorKind::None && (1..=ty.bits()).contains(bits)
            }
            _ => false,
        };
        if !fits {
            let name = &member.name.local;
            let message = format!("{name} is no integer of {bits} bits without an operator");
            return Some(message);
        }
    }
    let width = group.width();
    let fits = (1..=MAX_BITS).contains(&width);
    (!fits).then(|| format!("a bit group has 1 to {MAX_BITS} bits, not {width}"))
}

/// Checks the operators of an instruction, but for those of a bit group. A program may have put it
/// together without a document.
fn check(instruction: &Instruction) -> Result<(), TemplateError> {
    let optional = instruction.optional;
    let checked = match &instruction.kind {
        Kind::Int(ty, operator) => rules::check(operator, OperandType::Int(*ty), optional),
        Kind::Decimal(operator) => rules::check(operator, OperandType::Decimal, optional),
        Kind::SplitDecimal { exponent, mantissa } => {
            let (first, second) = (IntType::Int32, IntType::Int64);
            rules::check(exponent, OperandType::Int(first), optional)
                .and_then(|()| rules::check(mantissa, OperandType::Int(second), false))
        }
        Kind::Text(ty, operator) => rules::check(operator, OperandType::Text(*ty), optional),
        Kind::Sequence { length, .. } => {
            let ty = OperandType::Int(IntType::UInt32);
            rules::check(&length.operator, ty, optional)
        }
        Kind::Group(_) | Kind::Bits(_) | Kind::StaticRef | Kind::DynamicRef => Ok(()),
    };
    checked.map_err(|broken| fault(instruction, broken))
}

/// Returns the error of an instruction that breaks a rule.
fn fault(instruction: &Instruction, (code, message): Broken) -> TemplateError {
    TemplateError {
        code,
        line: instruction.position.line,
        column: instruction.position.column,
        message: format!("{}: {message}", instruction.name.local),
    }
}

fn int_op(field: FieldId, ty: IntType, operator: &Operator, optional: bool, slot: Slot) -> IntOp {
    let initial = match operator.initial {
        Some(Initial::Int(value)) => Some(value as u64),
        _ => None,
    };
    IntOp {
        field,
        ty,
        operator: operator.kind,
        optional,
        slot,
        initial,
    }
}
