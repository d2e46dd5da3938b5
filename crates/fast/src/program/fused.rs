//! Ops fused by type, operator, presence and nullability, each with all that the executor needs in
//! one place. There is one for each op, with the same index. [`Kind::Op`] marks those that are left
//! to the op itself.

use super::{DecimalOp, Field, IntOp, Op, Program, TextOp};
use crate::state::State;
use crate::template::OperatorKind;
use crate::text_ref::front;
use crate::value::{IntType, TextType};

/// One op for the executor. What it reads first is at the front.
#[derive(Debug, Clone)]
#[repr(C)]
pub(crate) struct Fused {
    pub(crate) int: Int,
    pub(crate) kind: Kind,
    /// The number of consecutive ops after this one whose absent fields take one byte each, at most
    /// 8. It is 0 if the absent field of this op does not take one byte.
    pub(crate) run: u8,
    /// The text slot of a copied string, the number of a constant or default string, or the index
    /// of a decimal's parts in [`Program::parts`].
    pub(crate) aux: u32,
    /// A copy of the field, so that the executor need not look it up.
    pub(crate) field: Field,
}

/// An integer with its operator. For other types it has the slot and the state of the previous
/// value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Int {
    pub(crate) operation: Operation,
    pub(crate) is_signed: bool,
    pub(crate) is_optional: bool,
    pub(crate) has_initial: bool,
    pub(crate) state: State,
    pub(crate) slot: u32,
    /// The initial value's pattern; of a string, its first eight characters, the first one lowest.
    pub(crate) initial: u64,
    /// The pattern of the smallest value, and the distance from it to the largest; of a string, the
    /// length of the initial value.
    pub(crate) min: u64,
    pub(crate) span: u64,
}

impl Int {
    /// The value for fields that are no integers.
    pub(crate) const NONE: Self = Self {
        operation: Operation::Op,
        is_signed: false,
        is_optional: false,
        has_initial: false,
        state: State::UNDEFINED,
        slot: 0,
        initial: 0,
        min: 0,
        span: 0,
    };

    /// Returns an integer of this type, optional or not, whose previous value is in this slot.
    #[inline(always)]
    pub(crate) fn new(
        operation: Operation,
        (ty, is_optional): (IntType, bool),
        slot: u32,
        initial: Option<u64>,
    ) -> Self {
        Self {
            operation,
            is_signed: ty.is_signed(),
            is_optional,
            has_initial: initial.is_some(),
            state: State::int(ty),
            slot,
            initial: initial.unwrap_or_default(),
            min: ty.min() as u64,
            span: (ty.max() - ty.min()) as u64,
        }
    }

    /// Returns the initial value's pattern, if there is one.
    #[inline(always)]
    pub(crate) fn initial(&self) -> Option<u64> {
        self.has_initial.then_some(self.initial)
    }
}

/// The operators of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    None,
    Constant,
    Default,
    Copy,
    Increment,
    /// The delta operator for types of 32 bits at most.
    Delta,
    DeltaU64,
    DeltaI64,
    /// An operator that does not apply to integers, or a constant without a value.
    Op,
}

impl Operation {
    /// Returns the delta operator for a type.
    #[inline(always)]
    pub(crate) const fn delta(ty: IntType) -> Self {
        match ty {
            IntType::UInt64 => Self::DeltaU64,
            IntType::Int64 => Self::DeltaI64,
            _ => Self::Delta,
        }
    }
}

/// The action of an executor for a field. `Signed` and `Unsigned` are the types of integers,
/// `Nullable` those that are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    UnsignedNullable,
    Signed,
    SignedNullable,
    UnsignedCopy,
    UnsignedCopyNullable,
    SignedCopy,
    SignedCopyNullable,
    UnsignedDelta,
    UnsignedDeltaNullable,
    SignedDelta,
    SignedDeltaNullable,
    DeltaU64,
    DeltaU64Nullable,
    DeltaI64,
    DeltaI64Nullable,
    UnsignedIncrement,
    UnsignedDefault,
    UnsignedDefaultNullable,
    SignedDefault,
    SignedDefaultNullable,
    /// A mandatory constant.
    UnsignedConstant,
    SignedConstant,
    /// Any other integer.
    Int,
    Decimal,
    DecimalNullable,
    /// A decimal whose parts have operators of their own.
    Parts,
    PartsNullable,
    Ascii,
    AsciiNullable,
    AsciiCopy,
    AsciiCopyNullable,
    AsciiDefault,
    AsciiDefaultNullable,
    AsciiConstant,
    /// A group, with one presence bit if it is optional.
    Group,
    Sequence,
    /// Any other op.
    Op,
}

impl Kind {
    /// Returns true if an absent field takes one byte, whatever the previous value.
    const fn is_byte_if_absent(self) -> bool {
        matches!(
            self,
            Self::UnsignedNullable
                | Self::SignedNullable
                | Self::DecimalNullable
                | Self::AsciiNullable
        )
    }
}

/// The most ops after the first one of a run: the bytes of a word.
const LONGEST_RUN: u8 = 8;

/// Fuses all ops of a program.
pub(super) fn fuse(program: &mut Program) {
    let (mut fused, mut parts) = (Vec::with_capacity(program.ops.len()), Vec::new());
    for op in &program.ops {
        let field = program.field(op.field()).clone();
        fused.push(one(op, field, &program.texts, &mut parts));
    }
    for template in &program.templates {
        runs(&mut fused[template.body.start as usize..template.body.end as usize]);
    }
    for op in &program.ops {
        if let Op::Group { body, .. } | Op::Sequence { body, .. } = op {
            runs(&mut fused[body.start as usize..body.end as usize]);
        }
    }
    (program.fused, program.parts) = (fused, parts);
}

/// Sets [`Fused::run`] of each op.
fn runs(body: &mut [Fused]) {
    let mut behind = 0;
    for fused in body.iter_mut().rev() {
        let is_byte = fused.kind.is_byte_if_absent();
        fused.run = if is_byte { behind } else { 0 };
        behind = if is_byte {
            (behind + 1).min(LONGEST_RUN)
        } else {
            0
        };
    }
}

fn one(op: &Op, field: Field, texts: &[Box<[u8]>], parts: &mut Vec<Int>) -> Fused {
    let whole = |kind, int| Fused {
        kind,
        run: 0,
        aux: 0,
        int,
        field,
    };
    match op {
        Op::Int(op) => {
            let int = int(op);
            whole(int_kind(&int), int)
        }
        Op::Decimal(op) => whole(decimal_kind(op), Int::NONE),
        Op::SplitDecimal {
            exponent, mantissa, ..
        } => {
            let aux = parts.len() as u32;
            parts.extend([int(exponent), int(mantissa)]);
            let kind = match exponent.optional {
                true => Kind::PartsNullable,
                false => Kind::Parts,
            };
            Fused {
                aux,
                ..whole(kind, Int::NONE)
            }
        }
        Op::Text(op) => text(op, texts, whole(text_kind(op), Int::NONE)),
        Op::Group { optional, .. } => {
            let mut int = Int::NONE;
            int.is_optional = *optional;
            whole(Kind::Group, int)
        }
        Op::Sequence { length, .. } => whole(Kind::Sequence, int(length)),
        Op::Bits(_) | Op::TemplateRef { .. } | Op::Unresolved { .. } => whole(Kind::Op, Int::NONE),
    }
}

fn int(op: &IntOp) -> Int {
    let operation = match op.operator {
        OperatorKind::None => Operation::None,
        OperatorKind::Constant if op.initial.is_some() => Operation::Constant,
        OperatorKind::Default => Operation::Default,
        OperatorKind::Copy => Operation::Copy,
        OperatorKind::Increment => Operation::Increment,
        OperatorKind::Delta => Operation::delta(op.ty),
        OperatorKind::Constant | OperatorKind::Tail => Operation::Op,
    };
    Int::new(operation, (op.ty, op.optional), op.slot.0, op.initial)
}

fn int_kind(int: &Int) -> Kind {
    let by_type = |[unsigned, nullable, signed, signed_nullable]: [Kind; 4]| match (
        int.is_signed,
        int.is_optional,
    ) {
        (false, false) => unsigned,
        (false, true) => nullable,
        (true, false) => signed,
        (true, true) => signed_nullable,
    };
    match (int.operation, int.is_optional) {
        (Operation::None, _) => by_type([
            Kind::Unsigned,
            Kind::UnsignedNullable,
            Kind::Signed,
            Kind::SignedNullable,
        ]),
        (Operation::Copy, _) => by_type([
            Kind::UnsignedCopy,
            Kind::UnsignedCopyNullable,
            Kind::SignedCopy,
            Kind::SignedCopyNullable,
        ]),
        (Operation::Default, _) => by_type([
            Kind::UnsignedDefault,
            Kind::UnsignedDefaultNullable,
            Kind::SignedDefault,
            Kind::SignedDefaultNullable,
        ]),
        (Operation::Delta, _) => by_type([
            Kind::UnsignedDelta,
            Kind::UnsignedDeltaNullable,
            Kind::SignedDelta,
            Kind::SignedDeltaNullable,
        ]),
        (Operation::DeltaU64, false) => Kind::DeltaU64,
        (Operation::DeltaU64, true) => Kind::DeltaU64Nullable,
        (Operation::DeltaI64, false) => Kind::DeltaI64,
        (Operation::DeltaI64, true) => Kind::DeltaI64Nullable,
        (Operation::Increment, false) if !int.is_signed => Kind::UnsignedIncrement,
        (Operation::Constant, false) if int.is_signed => Kind::SignedConstant,
        (Operation::Constant, false) => Kind::UnsignedConstant,
        (Operation::Increment | Operation::Constant, _) => Kind::Int,
        (Operation::Op, _) => Kind::Op,
    }
}

const fn decimal_kind(op: &DecimalOp) -> Kind {
    match (op.operator, op.optional) {
        (OperatorKind::None, false) => Kind::Decimal,
        (OperatorKind::None, true) => Kind::DecimalNullable,
        _ => Kind::Op,
    }
}

const fn text_kind(op: &TextOp) -> Kind {
    match (op.ty, op.operator, op.optional) {
        (TextType::Ascii, OperatorKind::None, false) => Kind::Ascii,
        (TextType::Ascii, OperatorKind::None, true) => Kind::AsciiNullable,
        (TextType::Ascii, OperatorKind::Copy, false) => Kind::AsciiCopy,
        (TextType::Ascii, OperatorKind::Copy, true) => Kind::AsciiCopyNullable,
        (TextType::Ascii, OperatorKind::Default, false) if op.initial.is_some() => {
            Kind::AsciiDefault
        }
        (TextType::Ascii, OperatorKind::Default, true) => Kind::AsciiDefaultNullable,
        (TextType::Ascii, OperatorKind::Constant, false) if op.initial.is_some() => {
            Kind::AsciiConstant
        }
        _ => Kind::Op,
    }
}

fn text(op: &TextOp, texts: &[Box<[u8]>], whole: Fused) -> Fused {
    let mut int = Int::NONE;
    int.state = State::text(op.ty);
    int.slot = op.slot.0;
    int.is_optional = op.optional;
    let initial = op.initial.and_then(|text| texts.get(text.0 as usize));
    if let Some(text) = initial {
        int.has_initial = true;
        int.initial = front(text);
        int.min = text.len() as u64;
    }
    let aux = match (op.operator, op.initial) {
        (OperatorKind::Constant | OperatorKind::Default, Some(text)) => text.0,
        _ => op.text_slot,
    };
    Fused { aux, int, ..whole }
}
