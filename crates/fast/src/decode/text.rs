//! Strings and byte vectors with their operators, and the traces of a field.

use fanfare_wire::lanes;

use super::input::{Read, instead_of_d2};
use super::presence::PresenceMap;
use super::run::Run;
use crate::error::{Bound, CodecError, ErrorCode};
use crate::previous::{Previous, PreviousValues};
use crate::program::{FieldId, Slot, TextId, TextOp};
use crate::state::State;
use crate::template::OperatorKind;
use crate::trace::Step;
use crate::value::{IntType, TextType};
use crate::visitor::Visitor;

/// The place of the value of a field.
#[derive(Clone, Copy)]
enum Value {
    Absent,
    Initial(TextId),
    /// The run's scratch buffer.
    Scratch,
    /// The dictionary.
    Previous,
}

/// The state of a field before it was decoded.
pub(super) struct Before {
    bit: Option<bool>,
    previous: Option<Previous>,
    offset: usize,
}

impl<'a, P: PreviousValues> Run<'a, P> {
    /// Decodes a string or byte vector field.
    pub(super) fn text<V: Visitor>(
        &mut self,
        op: &TextOp,
        map: &mut PresenceMap<'a>,
        visitor: &mut V,
    ) -> Read<()> {
        let value = if V::TRACE {
            let has_bit = op.operator.takes_bit(op.optional);
            let previous = (op.slot, op.text_slot, None);
            let before = self.trace_before(op.operator, previous, has_bit, map);
            let value = self.text_value(op, map)?;
            self.trace_after(op.field, "", op.operator, (before, None), visitor);
            value
        } else {
            self.text_value(op, map)?
        };
        let field = self.program.field(op.field);
        let previous;
        let value = match value {
            Value::Absent => {
                visitor.absent(field);
                return Ok(());
            }
            Value::Initial(text) => self.program.text(text),
            Value::Scratch => &*self.scratch,
            Value::Previous => {
                previous = self.previous.text(op.slot, op.text_slot);
                &*previous
            }
        };
        let counted = value.len().max(lanes::MAX_CHARS);
        let Some(left) = self.left.texts.checked_sub(counted) else {
            return self.beyond(Bound::Texts, op.field);
        };
        self.left.texts = left;
        match op.ty {
            TextType::Ascii => visitor.ascii(field, value),
            TextType::Unicode => visitor.unicode(field, value),
            TextType::Bytes => visitor.bytes(field, value),
        }
        Ok(())
    }

    #[inline(always)]
    fn text_value(&mut self, op: &TextOp, map: &mut PresenceMap<'a>) -> Read<Value> {
        let initial = op.initial.map_or(Value::Absent, Value::Initial);
        match op.operator {
            OperatorKind::None => self.read_text(op),
            OperatorKind::Constant => Ok(if !op.optional || map.next() {
                initial
            } else {
                Value::Absent
            }),
            OperatorKind::Default => {
                if map.next() {
                    self.read_text(op)
                } else {
                    Ok(initial)
                }
            }
            OperatorKind::Copy => {
                if !map.next() {
                    return self.implied_text(op);
                }
                let value = self.read_text(op)?;
                self.assign_text(op, value);
                Ok(value)
            }
            OperatorKind::Tail => {
                if map.next() {
                    self.tail(op)
                } else {
                    self.implied_text(op)
                }
            }
            OperatorKind::Delta => self.text_delta(op),
            OperatorKind::Increment => self.fail(ErrorCode::S2, op.field),
        }
    }

    /// Reads a whole value into the scratch buffer.
    #[inline(always)]
    fn read_text(&mut self, op: &TextOp) -> Read<Value> {
        let start = self.input.at;
        let Some(bytes) = self.read_bytes(op, op.optional)? else {
            return Ok(Value::Absent);
        };
        self.scratch.clear();
        append(op.ty, bytes, self.scratch);
        self.check_utf8(op, start)?;
        Ok(Value::Scratch)
    }

    #[inline(always)]
    fn read_bytes(&mut self, op: &TextOp, nullable: bool) -> Read<Option<&'a [u8]>> {
        match op.ty {
            TextType::Ascii => self.input.ascii(nullable),
            TextType::Unicode | TextType::Bytes => self.input.byte_vector(nullable),
        }
        .map_err(|error| error.in_field(op.field))
    }

    fn check_utf8(&self, op: &TextOp, start: usize) -> Read<()> {
        let checked = op.ty == TextType::Unicode && self.input.strict();
        if checked && std::str::from_utf8(self.scratch).is_err() {
            return Err(CodecError::new(ErrorCode::R2, start).in_field(op.field));
        }
        Ok(())
    }

    fn assign_text(&mut self, op: &TextOp, value: Value) {
        match value {
            Value::Scratch => {
                self.previous
                    .set_text(op.slot, op.text_slot, op.ty, self.scratch);
            }
            _ => self.previous.set_empty(op.slot),
        }
    }

    /// Returns the value of a field with the copy or tail operator that is not in the stream.
    fn implied_text(&mut self, op: &TextOp) -> Read<Value> {
        match (self.previous.state(op.slot), op.initial) {
            (state, _) if state == State::text(op.ty) => Ok(Value::Previous),
            (State::UNDEFINED, Some(text)) => {
                let text = self.program.text(text);
                self.previous.set_text(op.slot, op.text_slot, op.ty, text);
                Ok(Value::Previous)
            }
            // Section 6.3.8 has D6 where sections 6.3.5 and 6.3.6 have D5.
            (State::UNDEFINED, None) if op.operator == OperatorKind::Tail && !op.optional => {
                self.fail(ErrorCode::D6, op.field)
            }
            _ => {
                self.implied_absence(op.slot, op.optional, op.field)?;
                Ok(Value::Absent)
            }
        }
    }

    fn tail(&mut self, op: &TextOp) -> Read<Value> {
        let start = self.input.at;
        let Some(tail) = self.read_bytes(op, op.optional)? else {
            self.previous.set_empty(op.slot);
            return Ok(Value::Absent);
        };
        let state = self.previous.state(op.slot);
        if state == State::EMPTY {
            self.base_from_initial(op);
        } else {
            self.base(op)?;
        }
        let keep = self.scratch.len().saturating_sub(tail.len());
        self.scratch.truncate(keep);
        append(op.ty, tail, self.scratch);
        self.combined(op, start)
    }

    fn text_delta(&mut self, op: &TextOp) -> Read<Value> {
        let start = self.input.at;
        let subtraction = match op.optional {
            true => self.input.nullable_delta(),
            false => self.input.delta().map(Some),
        };
        let subtraction =
            subtraction.map_err(|e| instead_of_d2(ErrorCode::D7, e).in_field(op.field));
        let Some(subtraction) = subtraction? else {
            return Ok(Value::Absent);
        };
        let Some(added) = self.read_bytes(op, false)? else {
            return Ok(Value::Absent);
        };
        self.base(op)?;
        let d7 = CodecError::new(ErrorCode::D7, start).in_field(op.field);
        let subtraction = i32::try_from(subtraction).map_err(|_| d7)?;
        // A negative length is one too small, so that -1 can mean: nothing, at the front.
        let front = subtraction < 0;
        let count = if front { !subtraction } else { subtraction } as usize;
        let keep = self.scratch.len().checked_sub(count).ok_or(d7)?;
        if front {
            self.scratch.drain(..count);
            append(op.ty, added, self.scratch);
            self.scratch.rotate_left(keep);
        } else {
            self.scratch.truncate(keep);
            append(op.ty, added, self.scratch);
        }
        self.combined(op, start)
    }

    /// Copies the base value of a tail or delta to the scratch buffer.
    fn base(&mut self, op: &TextOp) -> Read<()> {
        let state = self.previous.state(op.slot);
        if state == State::text(op.ty) {
            self.scratch.clear();
            self.scratch
                .extend_from_slice(&self.previous.text(op.slot, op.text_slot));
            Ok(())
        } else if state == State::UNDEFINED {
            self.base_from_initial(op);
            Ok(())
        } else {
            self.no_base(op.slot, op.field)
        }
    }

    fn base_from_initial(&mut self, op: &TextOp) {
        self.scratch.clear();
        if let Some(initial) = op.initial {
            self.scratch.extend_from_slice(self.program.text(initial));
        }
    }

    /// Checks the value in the scratch buffer, and makes it the previous value.
    fn combined(&mut self, op: &TextOp, start: usize) -> Read<Value> {
        let checked = self.input.check_length(self.scratch.len(), start);
        checked.map_err(|error| error.in_field(op.field))?;
        self.check_utf8(op, start)?;
        self.assign_text(op, Value::Scratch);
        Ok(Value::Scratch)
    }

    pub(super) fn trace_before(
        &self,
        operator: OperatorKind,
        (slot, text_slot, ty): (Slot, u32, Option<IntType>),
        has_bit: bool,
        map: &PresenceMap<'a>,
    ) -> Before {
        let bit = has_bit.then(|| {
            let mut map = *map;
            map.next()
        });
        let previous = operator
            .uses_dictionary()
            .then(|| self.previous.previous(slot, text_slot, ty));
        Before {
            bit,
            previous,
            offset: self.input.at,
        }
    }

    pub(super) fn trace_after<V: Visitor>(
        &self,
        field: FieldId,
        part: &'static str,
        operator: OperatorKind,
        (before, integer): (Before, Option<i128>),
        visitor: &mut V,
    ) {
        let Before {
            bit,
            previous,
            offset,
        } = before;
        let bytes = self.input.since(offset);
        let field = self.program.field(field);
        visitor.step(Step::Field {
            field,
            part,
            operator,
            bit,
            previous,
            offset,
            bytes,
            integer,
        });
    }
}

/// Appends the bytes of a string in the stream. The last character of an ASCII string loses its
/// stop bit.
#[inline(always)]
fn append(ty: TextType, bytes: &[u8], to: &mut Vec<u8>) {
    to.extend_from_slice(bytes);
    if ty == TextType::Ascii
        && !bytes.is_empty()
        && let Some(last) = to.last_mut()
    {
        *last &= 0x7f;
    }
}
