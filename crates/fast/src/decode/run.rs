//! The scalar executor, which executes one op after the other. It is the oracle of every other back
//! end, so it follows the words of the specification.

use std::ops::Range;

use super::Limits;
use super::input::{Input, Read, instead_of_d2};
use super::presence::PresenceMap;
use crate::error::{Bound, CodecError, ErrorCode, Failure};
use crate::previous::PreviousValues;
use crate::program::{Body, DecimalOp, FieldId, IntOp, Op, Program, Reset, Slot, TemplateProgram};
use crate::state::State;
use crate::template::OperatorKind;
use crate::trace::Step;
use crate::value::{Decimal, EXPONENTS, IntType};
use crate::visitor::Visitor;
use fanfare_wire::stopbit::Squeeze;

/// The decoding of one message.
pub(super) struct Run<'a, P> {
    pub(super) program: &'a Program,
    pub(super) previous: &'a mut P,
    pub(super) scratch: &'a mut Vec<u8>,
    pub(super) input: Input<'a>,
    /// The limits that are left.
    pub(super) left: Limits,
    /// The index of the template that is being processed.
    pub(super) template: Option<u32>,
    pub(super) squeeze: Squeeze,
    pub(super) failure: &'a mut Failure,
}

impl<'a, P: PreviousValues> Run<'a, P> {
    /// Decodes one message. Returns its length, or `None` with the error in [`Self::failure`].
    #[inline(never)]
    pub(super) fn by_ops<V: Visitor>(mut self, visitor: &mut V) -> Option<usize> {
        let result = self.message(visitor);
        self.failure.keep(result)?;
        Some(self.input.at)
    }

    fn message<V: Visitor>(&mut self, visitor: &mut V) -> Read<()> {
        let start = self.input.at;
        let (template, mut map) = self.segment_header(visitor)?;
        visitor.begin_message(template);
        self.segment_body(template, (&mut map, start), visitor)
            .map_err(|error| error.in_template(template.index()))?;
        visitor.end_message(template);
        Ok(())
    }

    /// Reads the presence map and the template identifier, and clears what the template clears.
    #[inline]
    fn segment_header<V: Visitor>(
        &mut self,
        visitor: &mut V,
    ) -> Read<(&'a TemplateProgram, PresenceMap<'a>)> {
        let mut map = self.presence_map(visitor)?;
        let start = self.input.at;
        let index = if map.next() {
            Some(self.template_identifier()?)
        } else {
            self.previous.template().or(self.program.only())
        };
        let template = index.and_then(|index| self.program.templates().get(index as usize));
        let template = template.ok_or(CodecError::new(ErrorCode::D9, start))?;
        self.previous.set_template(index);
        if V::TRACE {
            let bytes = self.input.since(start);
            visitor.step(Step::Template {
                offset: start,
                bytes,
                template,
            });
        }
        Ok((template, map))
    }

    /// Returns the template of the identifier in the stream.
    fn template_identifier(&mut self) -> Read<u32> {
        let start = self.input.at;
        // No template has an identifier of more than 32 bits.
        let id = self.input.int(IntType::UInt32);
        let id = id.map_err(|error| instead_of_d2(ErrorCode::D9, error))? as u32;
        let index = self.program.index_of(id);
        index.ok_or(CodecError::unknown_template(id, start))
    }

    fn segment_body<V: Visitor>(
        &mut self,
        template: &'a TemplateProgram,
        map: (&mut PresenceMap<'a>, usize),
        visitor: &mut V,
    ) -> Read<()> {
        if template.reset() != Reset::None {
            self.previous.reset();
        }
        if template.reset() == Reset::All {
            self.previous.set_template(None);
        }
        let outer = self.template.replace(template.index());
        self.ops(template.body(), map, visitor)?;
        self.template = outer;
        Ok(())
    }

    #[inline(always)]
    fn presence_map<V: Visitor>(&mut self, visitor: &mut V) -> Read<PresenceMap<'a>> {
        let offset = self.input.at;
        let bytes = self.input.presence_map()?;
        if V::TRACE {
            visitor.step(Step::PresenceMap { offset, bytes });
        }
        Ok(PresenceMap::new(bytes))
    }

    /// Executes a body, then checks that its presence map, which is at `map_at`, has no more bits.
    fn ops<V: Visitor>(
        &mut self,
        body: Body,
        (map, map_at): (&mut PresenceMap<'a>, usize),
        visitor: &mut V,
    ) -> Read<()> {
        let Some(left) = self.left.fields.checked_sub(body.counted()) else {
            return Err(CodecError::beyond(Bound::Fields, self.input.at));
        };
        self.left.fields = left;
        for op in self.program.ops(body) {
            self.op(op, map, visitor)?;
        }
        if body.bits != 0 && self.input.strict() && map.has_more() {
            return Err(CodecError::new(ErrorCode::R8, map_at));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn op<V: Visitor>(
        &mut self,
        op: &'a Op,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        match op {
            Op::Int(op) => {
                let value = self.traced_int(op, "", map, visitor)?;
                let field = self.program.field(op.field);
                match value {
                    Some(value) if op.ty.is_signed() => visitor.signed(field, value as i64),
                    Some(value) => visitor.unsigned(field, value),
                    None => visitor.absent(field),
                }
                Ok(())
            }
            Op::Text(op) => self.text(op, map, visitor),
            Op::Decimal(op) => self.joint_decimal(op, map, visitor),
            Op::SplitDecimal {
                field,
                exponent,
                mantissa,
            } => self.split_decimal(*field, exponent, mantissa, map, visitor),
            Op::Group {
                field,
                optional,
                body,
            } => self.group(*field, *optional, *body, map, visitor),
            Op::Sequence {
                field,
                length,
                body,
            } => self.sequence(*field, length, *body, map, visitor),
            Op::Bits(op) => self.bits(op, map, visitor),
            Op::TemplateRef { field } => self.reference(*field, visitor),
            Op::Unresolved { field } => self.fail(ErrorCode::D8, *field),
        }
    }

    fn group<V: Visitor>(
        &mut self,
        id: FieldId,
        optional: bool,
        body: Body,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let field = self.program.field(id);
        if optional && !map.next() {
            visitor.absent(field);
            return Ok(());
        }
        visitor.begin_group(field);
        self.nested(body, visitor)
            .map_err(|error| error.in_field(id))?;
        visitor.end_group(field);
        Ok(())
    }

    fn sequence<V: Visitor>(
        &mut self,
        id: FieldId,
        length: &IntOp,
        body: Body,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let count = self.traced_int(length, "length", map, visitor)?;
        self.entries(id, count.map(|count| count as u32), body, visitor)
    }

    /// Decodes `count` entries of a sequence, which is absent if that is `None`.
    pub(super) fn entries<V: Visitor>(
        &mut self,
        id: FieldId,
        count: Option<u32>,
        body: Body,
        visitor: &mut V,
    ) -> Read<()> {
        let field = self.program.field(id);
        let Some(count) = count else {
            visitor.absent(field);
            return Ok(());
        };
        if count > self.left.entries {
            return self.beyond(Bound::Entries, id);
        }
        visitor.begin_sequence(field, count);
        self.further_entries(id, 0..count, body, visitor)
    }

    /// Decodes the last entries of a sequence, which are those of `indices`.
    pub(super) fn further_entries<V: Visitor>(
        &mut self,
        id: FieldId,
        indices: Range<u32>,
        body: Body,
        visitor: &mut V,
    ) -> Read<()> {
        let field = self.program.field(id);
        for index in indices {
            visitor.begin_entry(field, index);
            self.nested(body, visitor)
                .map_err(|error| error.in_entry(id, index))?;
            visitor.end_entry(field);
        }
        visitor.end_sequence(field);
        Ok(())
    }

    /// Executes a body that has a presence map of its own if it takes bits.
    #[inline(never)]
    pub(super) fn nested<V: Visitor>(&mut self, body: Body, visitor: &mut V) -> Read<()> {
        let start = self.input.at;
        let mut map = match body.bits {
            0 => PresenceMap::empty(),
            _ => self.presence_map(visitor)?,
        };
        self.ops(body, (&mut map, start), visitor)
    }

    fn reference<V: Visitor>(&mut self, id: FieldId, visitor: &mut V) -> Read<()> {
        let Some(left) = self.left.references.checked_sub(1) else {
            return self.beyond(Bound::References, id);
        };
        self.left.references = left;
        let start = self.input.at;
        let (template, mut map) = self
            .segment_header(visitor)
            .map_err(|error| error.in_field(id))?;
        let field = self.program.field(id);
        visitor.begin_template(field, template);
        self.segment_body(template, (&mut map, start), visitor)
            .map_err(|error| error.in_field(id).in_template(template.index()))?;
        visitor.end_template(field);
        self.left.references += 1;
        Ok(())
    }

    fn split_decimal<V: Visitor>(
        &mut self,
        id: FieldId,
        exponent: &'a IntOp,
        mantissa: &'a IntOp,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let start = self.input.at;
        let field = self.program.field(id);
        let Some(exponent) = self.traced_int(exponent, "exponent", map, visitor)? else {
            visitor.absent(field);
            return Ok(());
        };
        let exponent = self.exponent(exponent as i64, start, id)?;
        let mantissa = self
            .traced_int(mantissa, "mantissa", map, visitor)?
            .unwrap_or_default();
        visitor.decimal(
            field,
            Decimal {
                mantissa: mantissa as i64,
                exponent,
            },
        );
        Ok(())
    }

    /// Decodes an integer with its operator, and traces it.
    #[inline(always)]
    fn traced_int<V: Visitor>(
        &mut self,
        op: &IntOp,
        part: &'static str,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<Option<u64>> {
        if !V::TRACE {
            return self.int(op, map);
        }
        let previous = (op.slot, 0, Some(op.ty));
        let has_bit = op.operator.takes_bit(op.optional);
        let before = self.trace_before(op.operator, previous, has_bit, map);
        let value = self.int(op, map)?;
        let integer = value.map(|bits| op.ty.widen(bits));
        self.trace_after(op.field, part, op.operator, (before, integer), visitor);
        Ok(value)
    }

    /// Decodes an integer with its operator (section 6.3).
    #[inline(always)]
    fn int(&mut self, op: &IntOp, map: &mut PresenceMap<'a>) -> Read<Option<u64>> {
        self.int_with(op, map, Self::read_int)
    }

    /// Decodes an integer with its operator. `read` reads it from the stream.
    #[inline(always)]
    pub(super) fn int_with(
        &mut self,
        op: &IntOp,
        map: &mut PresenceMap<'a>,
        read: impl Fn(&mut Self, &IntOp) -> Read<Option<u64>>,
    ) -> Read<Option<u64>> {
        match op.operator {
            OperatorKind::None => read(self, op),
            OperatorKind::Constant => Ok(if !op.optional || map.next() {
                op.initial
            } else {
                None
            }),
            OperatorKind::Default => {
                if map.next() {
                    read(self, op)
                } else {
                    Ok(op.initial)
                }
            }
            OperatorKind::Copy | OperatorKind::Increment => {
                if map.next() {
                    let value = read(self, op)?;
                    self.assign_int(op, value);
                    Ok(value)
                } else {
                    self.implied_int(op)
                }
            }
            OperatorKind::Delta => self.int_delta(op),
            OperatorKind::Tail => self.fail(ErrorCode::S2, op.field),
        }
    }

    #[inline(always)]
    fn read_int(&mut self, op: &IntOp) -> Read<Option<u64>> {
        let value = if op.optional {
            self.input.nullable_int(op.ty)
        } else {
            self.input.int(op.ty).map(Some)
        };
        value.map_err(|error| error.in_field(op.field))
    }

    #[inline(always)]
    fn assign_int(&mut self, op: &IntOp, value: Option<u64>) {
        match value {
            Some(value) => self.previous.set_int(op.slot, State::int(op.ty), value),
            None => self.previous.set_empty(op.slot),
        }
    }

    /// Returns the value of a copied or incremented field that is not in the stream.
    #[inline(always)]
    fn implied_int(&mut self, op: &IntOp) -> Read<Option<u64>> {
        let state = self.previous.state(op.slot);
        if state == State::int(op.ty) {
            let previous = self.previous.int(op.slot);
            if op.operator == OperatorKind::Copy {
                return Ok(Some(previous));
            }
            let value = incremented(op.ty, previous);
            self.previous.set_int(op.slot, state, value);
            return Ok(Some(value));
        }
        match (state, op.initial) {
            (State::UNDEFINED, Some(value)) => {
                self.previous.set_int(op.slot, State::int(op.ty), value);
                Ok(Some(value))
            }
            _ => self
                .implied_absence(op.slot, op.optional, op.field)
                .map(|()| None),
        }
    }

    /// Checks that a field that is neither in the stream nor in the dictionary may be absent, and
    /// makes its previous value empty.
    pub(super) fn implied_absence(
        &mut self,
        slot: Slot,
        optional: bool,
        field: FieldId,
    ) -> Read<()> {
        match self.previous.state(slot) {
            State::UNDEFINED | State::EMPTY if optional => {
                self.previous.set_empty(slot);
                Ok(())
            }
            State::UNDEFINED => self.fail(ErrorCode::D5, field),
            State::EMPTY => self.fail(ErrorCode::D6, field),
            _ => self.fail(ErrorCode::D4, field),
        }
    }

    #[inline(always)]
    fn int_delta(&mut self, op: &IntOp) -> Read<Option<u64>> {
        let start = self.input.at;
        let delta = match op.optional {
            true => self.input.nullable_delta(),
            false => self.input.delta().map(Some),
        };
        let delta = delta.map_err(|e| instead_of_d2(ErrorCode::R4, e).in_field(op.field));
        let Some(delta) = delta? else {
            return Ok(None);
        };
        let state = self.previous.state(op.slot);
        let base = if state == State::int(op.ty) {
            self.previous.int(op.slot)
        } else if state == State::UNDEFINED {
            op.initial.unwrap_or_default()
        } else {
            return self.no_base(op.slot, op.field);
        };
        let value = op.ty.widen(base).saturating_add(delta);
        if !op.ty.holds(value) {
            return Err(CodecError::new(ErrorCode::R4, start).in_field(op.field));
        }
        self.previous
            .set_int(op.slot, State::int(op.ty), value as u64);
        Ok(Some(value as u64))
    }

    /// Returns the error of a delta on a previous value that is empty, or of another type.
    pub(super) fn no_base<T>(&self, slot: Slot, field: FieldId) -> Read<T> {
        match self.previous.state(slot) {
            State::EMPTY => self.fail(ErrorCode::D6, field),
            _ => self.fail(ErrorCode::D4, field),
        }
    }

    fn joint_decimal<V: Visitor>(
        &mut self,
        op: &DecimalOp,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let field = self.program.field(op.field);
        let value = if V::TRACE {
            let has_bit = op.operator.takes_bit(op.optional);
            let before = self.trace_before(op.operator, (op.slot, 0, None), has_bit, map);
            let value = self.decimal(op, map)?;
            self.trace_after(op.field, "", op.operator, (before, None), visitor);
            value
        } else {
            self.decimal(op, map)?
        };
        match value {
            Some(value) => visitor.decimal(field, value),
            None => visitor.absent(field),
        }
        Ok(())
    }

    fn decimal(&mut self, op: &DecimalOp, map: &mut PresenceMap<'a>) -> Read<Option<Decimal>> {
        match op.operator {
            OperatorKind::None => self.read_decimal(op),
            OperatorKind::Constant => Ok(if !op.optional || map.next() {
                op.initial
            } else {
                None
            }),
            OperatorKind::Default => {
                if map.next() {
                    self.read_decimal(op)
                } else {
                    Ok(op.initial)
                }
            }
            OperatorKind::Copy => {
                if map.next() {
                    let value = self.read_decimal(op)?;
                    match value {
                        Some(value) => self.previous.set_decimal(op.slot, value),
                        None => self.previous.set_empty(op.slot),
                    }
                    return Ok(value);
                }
                match (self.previous.state(op.slot), op.initial) {
                    (State::DECIMAL, _) => Ok(Some(self.previous.decimal(op.slot))),
                    (State::UNDEFINED, Some(value)) => {
                        self.previous.set_decimal(op.slot, value);
                        Ok(Some(value))
                    }
                    _ => self
                        .implied_absence(op.slot, op.optional, op.field)
                        .map(|()| None),
                }
            }
            OperatorKind::Delta => self.decimal_delta(op),
            OperatorKind::Increment | OperatorKind::Tail => self.fail(ErrorCode::S2, op.field),
        }
    }

    fn read_decimal(&mut self, op: &DecimalOp) -> Read<Option<Decimal>> {
        let start = self.input.at;
        let exponent = match op.optional {
            true => self.input.nullable_int(IntType::Int32),
            false => self.input.int(IntType::Int32).map(Some),
        };
        let Some(exponent) = exponent.map_err(|error| error.in_field(op.field))? else {
            return Ok(None);
        };
        let exponent = self.exponent(exponent as i64, start, op.field)?;
        let mantissa = self.input.int(IntType::Int64);
        let mantissa = mantissa.map_err(|e| instead_of_d2(ErrorCode::R1, e).in_field(op.field))?;
        Ok(Some(Decimal {
            mantissa: mantissa as i64,
            exponent,
        }))
    }

    fn decimal_delta(&mut self, op: &DecimalOp) -> Read<Option<Decimal>> {
        let start = self.input.at;
        let too_large = |error| instead_of_d2(ErrorCode::R1, error).in_field(op.field);
        let exponent = match op.optional {
            true => self.input.nullable_delta(),
            false => self.input.delta().map(Some),
        };
        let Some(exponent) = exponent.map_err(too_large)? else {
            return Ok(None);
        };
        let mantissa = self.input.delta().map_err(too_large)?;
        let base = match self.previous.state(op.slot) {
            State::DECIMAL => self.previous.decimal(op.slot),
            State::UNDEFINED => op.initial.unwrap_or_default(),
            _ => return self.no_base(op.slot, op.field),
        };
        let r1 = CodecError::new(ErrorCode::R1, start).in_field(op.field);
        let exponent = i64::try_from(exponent.saturating_add(base.exponent.into()));
        let exponent = self.exponent(exponent.map_err(|_| r1)?, start, op.field)?;
        let mantissa = i64::try_from(mantissa.saturating_add(base.mantissa.into()));
        let value = Decimal {
            mantissa: mantissa.map_err(|_| r1)?,
            exponent,
        };
        self.previous.set_decimal(op.slot, value);
        Ok(Some(value))
    }

    /// Checks an exponent against its range (R1). A lenient decoder allows what a byte holds.
    #[inline(always)]
    fn exponent(&self, exponent: i64, at: usize, field: FieldId) -> Read<i8> {
        let error = CodecError::new(ErrorCode::R1, at).in_field(field);
        let exponent = i8::try_from(exponent).map_err(|_| error)?;
        let fits = !self.input.strict() || EXPONENTS.contains(&i32::from(exponent));
        if fits { Ok(exponent) } else { Err(error) }
    }

    #[cold]
    pub(super) fn fail<T>(&self, code: ErrorCode, field: FieldId) -> Read<T> {
        Err(CodecError::new(code, self.input.at).in_field(field))
    }

    #[cold]
    pub(super) fn beyond<T>(&self, bound: Bound, field: FieldId) -> Read<T> {
        Err(CodecError::beyond(bound, self.input.at).in_field(field))
    }
}

/// Returns the next value. The smallest value of the type follows the largest one (section 6.3.6).
#[inline(always)]
pub(crate) fn incremented(ty: IntType, bits: u64) -> u64 {
    let next = bits.wrapping_add(1);
    if ty.holds_bits(next) {
        next
    } else {
        ty.min() as u64
    }
}
