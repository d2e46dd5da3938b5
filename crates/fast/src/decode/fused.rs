//! The fast executor for any template: executes fused ops with the position and the presence map
//! in registers. A value that it does not handle (entities of nine bytes and more, rare operators,
//! anything that breaks a rule) is left to the op of [`Run`], from the beginning of that op.

use super::cursor::{Cursor, Text, signed_sum, small_sum, unsigned_sum};
use super::presence::PresenceMap;
use super::run::Run;
use crate::error::{Bound, CodecError, ErrorCode};
use crate::previous::PreviousValues;
use crate::program::fused::{Fused, Kind, Operation};
use crate::program::{Body, Field, Op, Reset, TemplateProgram};
use crate::slots::Slots;
use crate::state::State;
use crate::text_ref::SHORT;
use crate::visitor::Visitor;
use fanfare_wire::lanes::MAX_CHARS;

/// Calls the visitor with the value, or returns [`Told::Absent`] if the value is `None`.
macro_rules! tell {
    ($read:expr, $value:ident => $told:expr) => {
        match $read? {
            Some($value) => $told,
            None => return Some(Told::Absent),
        }
    };
}

/// The outcome of decoding a field.
enum Told {
    Value,
    Absent,
    /// The field is a group or a sequence, of which nothing is done yet.
    Inside,
}

impl<'a> Run<'a, Slots> {
    /// Decodes one message. Returns its length, or `None` with the error in [`Run::failure`].
    #[inline(always)]
    pub(super) fn fused<V: Visitor>(mut self, visitor: &mut V) -> Option<usize> {
        let Some((template, cursor)) = self.fused_header() else {
            return self.by_ops(visitor);
        };
        self.previous.set_template(Some(template.index()));
        visitor.begin_message(template);
        if template.reset() != Reset::None {
            self.previous.reset();
        }
        if template.reset() == Reset::All {
            self.previous.set_template(None);
        }
        if !self.once(template.body(), cursor, 0, visitor) {
            self.failure
                .add(|error| error.in_template(template.index()));
            return None;
        }
        visitor.end_message(template);
        Some(self.input.at)
    }

    /// Reads the presence map and the template identifier, or returns `None` to leave them to
    /// [`Run::by_ops`].
    #[inline(always)]
    fn fused_header(&self) -> Option<(&'a TemplateProgram, Cursor<'a>)> {
        let mut cursor = self.cursor(0);
        cursor.presence_map()?;
        let index = match cursor.take_bit() {
            true => self.program.index_of(cursor.identifier()?)?,
            false => self.previous.template()?,
        };
        let template = self.program.templates().get(index as usize)?;
        Some((template, cursor))
    }

    /// Returns a cursor at the position of the input, with these presence bits.
    #[inline(always)]
    fn cursor(&self, map: u64) -> Cursor<'a> {
        Cursor {
            rest: self.input.rest(),
            map,
            squeeze: self.squeeze,
        }
    }

    /// Returns the offset of a cursor.
    #[inline(always)]
    fn offset(&self, cursor: Cursor<'_>) -> usize {
        self.input.all().len() - cursor.rest.len()
    }

    /// Executes the body of a message or of a group, whose presence map is at `map_at`.
    #[inline(never)]
    fn once<V: Visitor>(
        &mut self,
        body: Body,
        cursor: Cursor<'a>,
        map_at: usize,
        visitor: &mut V,
    ) -> bool {
        let ops = self.program.fused(body);
        let Some(rest) = self.body((body, ops), cursor, map_at, visitor) else {
            return false;
        };
        self.input.at = self.input.all().len() - rest.len();
        true
    }

    /// Executes the bodies of the entries of a sequence. Each has a presence map of its own if it
    /// takes bits.
    #[inline(never)]
    fn fused_sequence<V: Visitor>(
        &mut self,
        (field, count): (&Field, u32),
        body: Body,
        mut cursor: Cursor<'a>,
        visitor: &mut V,
    ) -> bool {
        let ops = self.program.fused(body);
        for index in 0..count {
            visitor.begin_entry(field, index);
            let start = self.offset(cursor);
            cursor.map = 0;
            let rest = match body.bits != 0 && cursor.presence_map().is_none() {
                true => self.by_ops_of(body, start, visitor),
                false => self.body((body, ops), cursor, start, visitor),
            };
            let Some(rest) = rest else {
                self.failure.add(|error| error.in_entry(field.id(), index));
                return false;
            };
            cursor.rest = rest;
            visitor.end_entry(field);
        }
        self.input.at = self.offset(cursor);
        true
    }

    /// Executes a body with its presence map in the slow way, and returns the bytes after it.
    #[cold]
    fn by_ops_of<V: Visitor>(
        &mut self,
        body: Body,
        start: usize,
        visitor: &mut V,
    ) -> Option<&'a [u8]> {
        self.input.at = start;
        let result = self.nested(body, visitor);
        self.failure.keep(result)?;
        Some(self.input.rest())
    }

    /// Executes a body whose presence map is at `map_at`, and returns the bytes after it.
    #[inline(always)]
    fn body<V: Visitor>(
        &mut self,
        (body, ops): (Body, &'a [Fused]),
        mut cursor: Cursor<'a>,
        map_at: usize,
        visitor: &mut V,
    ) -> Option<&'a [u8]> {
        let Some(left) = self.left.fields.checked_sub(body.counted()) else {
            let at = self.offset(cursor);
            return self.failure.set(CodecError::beyond(Bound::Fields, at));
        };
        self.left.fields = left;
        let mut ops = ops.iter();
        while let Some(op) = ops.next() {
            match self.fused_field(op, &mut cursor, visitor) {
                Some(Told::Value) => {}
                Some(Told::Absent) => {
                    visitor.absent(&op.field);
                    if op.run != 0 {
                        absent_run(op.run, &mut ops, &mut cursor, visitor);
                    }
                }
                Some(Told::Inside) => {
                    let number = body.end - ops.len() as u32 - 1;
                    cursor = self.inside(op, number, cursor, visitor)?;
                }
                None => {
                    let number = body.end - ops.len() as u32 - 1;
                    cursor = self.by_op(number, cursor, visitor)?;
                }
            }
        }
        if cursor.map != 0 && body.bits != 0 && self.input.strict() {
            return self.failure.set(CodecError::new(ErrorCode::R8, map_at));
        }
        Some(cursor.rest)
    }

    /// Executes a group or a sequence. Returns the cursor after it, or `None` with the error in
    /// [`Run::failure`].
    #[inline(never)]
    fn inside<V: Visitor>(
        &mut self,
        op: &Fused,
        number: u32,
        before: Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Cursor<'a>> {
        let mut cursor = before;
        match self.fused_inside(op, number, &mut cursor, visitor) {
            Outcome::Done => Some(cursor),
            Outcome::Unusual => self.by_op(number, before, visitor),
            Outcome::Failed => None,
        }
    }

    /// Decodes a field without contents, or returns `None` to leave it to [`Self::by_op`].
    #[inline(always)]
    fn fused_field<V: Visitor>(
        &mut self,
        op: &Fused,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Told> {
        let (int, slots, field) = (&op.int, &mut *self.previous, &op.field);
        macro_rules! unsigned {
            ($value:expr) => {
                tell!($value, value => visitor.unsigned(field, value))
            };
        }
        macro_rules! signed {
            ($value:expr) => {
                tell!($value, value => visitor.signed(field, value as i64))
            };
        }
        macro_rules! decimal {
            ($value:expr) => {
                tell!($value, value => visitor.decimal(field, value))
            };
        }
        match op.kind {
            Kind::Unsigned => unsigned!(cursor.read::<false, false>(int)),
            Kind::UnsignedNullable => unsigned!(cursor.read::<false, true>(int)),
            Kind::Signed => signed!(cursor.read::<true, false>(int)),
            Kind::SignedNullable => signed!(cursor.read::<true, true>(int)),
            Kind::UnsignedCopy => unsigned!(cursor.carry::<false, false, false>(int, slots)),
            Kind::UnsignedCopyNullable => unsigned!(cursor.carry::<false, true, false>(int, slots)),
            Kind::SignedCopy => signed!(cursor.carry::<true, false, false>(int, slots)),
            Kind::SignedCopyNullable => signed!(cursor.carry::<true, true, false>(int, slots)),
            Kind::UnsignedDelta => unsigned!(cursor.delta::<false>(int, slots, small_sum)),
            Kind::UnsignedDeltaNullable => unsigned!(cursor.delta::<true>(int, slots, small_sum)),
            Kind::SignedDelta => signed!(cursor.delta::<false>(int, slots, small_sum)),
            Kind::SignedDeltaNullable => signed!(cursor.delta::<true>(int, slots, small_sum)),
            Kind::DeltaU64 => unsigned!(cursor.delta::<false>(int, slots, unsigned_sum)),
            Kind::DeltaU64Nullable => unsigned!(cursor.delta::<true>(int, slots, unsigned_sum)),
            Kind::DeltaI64 => signed!(cursor.delta::<false>(int, slots, signed_sum)),
            Kind::DeltaI64Nullable => signed!(cursor.delta::<true>(int, slots, signed_sum)),
            Kind::UnsignedIncrement => unsigned!(cursor.carry::<false, false, true>(int, slots)),
            Kind::UnsignedDefault => unsigned!(cursor.default::<false, false>(int)),
            Kind::UnsignedDefaultNullable => {
                unsigned!(cursor.default::<false, true>(int));
            }
            Kind::SignedDefault => signed!(cursor.default::<true, false>(int)),
            Kind::SignedDefaultNullable => signed!(cursor.default::<true, true>(int)),
            Kind::UnsignedConstant => visitor.unsigned(field, int.initial),
            Kind::SignedConstant => visitor.signed(field, int.initial as i64),
            Kind::Int if int.is_signed => signed!(cursor.any(int, slots)),
            Kind::Int => unsigned!(cursor.any(int, slots)),
            Kind::Decimal => decimal!(cursor.decimal::<false>()),
            Kind::DecimalNullable => decimal!(cursor.decimal::<true>()),
            Kind::Parts => decimal!(cursor.parts::<false>(self.program.parts(op)?, slots)),
            Kind::PartsNullable => decimal!(cursor.parts::<true>(self.program.parts(op)?, slots)),
            Kind::Ascii => return self.ascii_read::<_, false>(field, cursor, visitor),
            Kind::AsciiNullable => return self.ascii_read::<_, true>(field, cursor, visitor),
            Kind::AsciiCopy => return self.ascii_copy::<_, false>(op, cursor, visitor),
            Kind::AsciiCopyNullable => {
                return self.ascii_copy::<_, true>(op, cursor, visitor);
            }
            Kind::AsciiDefault => return self.ascii_default::<_, false>(op, cursor, visitor),
            Kind::AsciiDefaultNullable => {
                return self.ascii_default::<_, true>(op, cursor, visitor);
            }
            Kind::AsciiConstant => return self.ascii_initial(op, visitor),
            Kind::Group | Kind::Sequence => return Some(Told::Inside),
            Kind::Op => return None,
        }
        Some(Told::Value)
    }

    /// Counts a string of `len` bytes against the limit, as at least four.
    #[inline(always)]
    fn count_text(&mut self, len: usize) -> Option<()> {
        self.left.texts = self.left.texts.checked_sub(len.max(MAX_CHARS))?;
        Some(())
    }

    #[inline(always)]
    fn ascii<V: Visitor>(
        &mut self,
        text: Text<'_>,
        field: &Field,
        visitor: &mut V,
    ) -> Option<Told> {
        match text {
            Text::Absent => return Some(Told::Absent),
            Text::Char(char) => {
                self.count_text(1)?;
                visitor.ascii(field, &[char]);
            }
            Text::Short(chars, len) => {
                self.count_text(len)?;
                visitor.ascii(field, chars.to_le_bytes().get(..len)?);
            }
            Text::Long(bytes) => {
                self.keep_long(bytes)?;
                visitor.ascii(field, self.scratch);
            }
        }
        Some(Told::Value)
    }

    /// Copies a long string to the scratch buffer, without its stop bit.
    #[inline(never)]
    fn keep_long(&mut self, bytes: &[u8]) -> Option<()> {
        self.input.check_length(bytes.len(), 0).ok()?;
        self.count_text(bytes.len())?;
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        *self.scratch.last_mut()? &= 0x7f;
        Some(())
    }

    #[inline(always)]
    fn ascii_read<V: Visitor, const NULLABLE: bool>(
        &mut self,
        field: &Field,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Told> {
        let (text, behind) = cursor.ascii::<NULLABLE>()?;
        let told = self.ascii(text, field, visitor)?;
        cursor.rest = behind;
        Some(told)
    }

    #[inline(always)]
    fn ascii_copy<V: Visitor, const NULLABLE: bool>(
        &mut self,
        op: &Fused,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Told> {
        if !cursor.bit() {
            let told = self.ascii_implied(op, visitor)?;
            cursor.pass_bit();
            return Some(told);
        }
        let (text, behind) = cursor.ascii::<NULLABLE>()?;
        let told = match text {
            Text::Absent => {
                let empty = self.previous.stamp(State::EMPTY);
                self.previous.value_mut(op.int.slot)?.stamp = empty;
                Told::Absent
            }
            Text::Char(char) => {
                self.keep_short(op, char.into(), 1)?;
                visitor.ascii(&op.field, &[char]);
                Told::Value
            }
            Text::Short(chars, len) => {
                self.keep_short(op, chars, len)?;
                visitor.ascii(&op.field, chars.to_le_bytes().get(..len)?);
                Told::Value
            }
            // The op copies it to the previous values.
            Text::Long(_) => return None,
        };
        cursor.rest = behind;
        cursor.pass_bit();
        Some(told)
    }

    /// Counts a string of `len` bytes, at most eight, against the limit, and makes it the previous
    /// value.
    #[inline(always)]
    fn keep_short(&mut self, op: &Fused, bits: u64, len: usize) -> Option<()> {
        self.count_text(len)?;
        let stamp = self.previous.stamp(op.int.state);
        let slot = self.previous.value_mut(op.int.slot)?;
        slot.set_short(stamp, bits, len);
        Some(())
    }

    /// Decodes a copied string that is not in the stream.
    #[inline(always)]
    fn ascii_implied<V: Visitor>(&mut self, op: &Fused, visitor: &mut V) -> Option<Told> {
        let value = *self.previous.value(op.int.slot)?;
        if value.stamp == self.previous.stamp(op.int.state) {
            let Some(len) = value.short_len() else {
                return self.long_implied(op, visitor);
            };
            self.count_text(len)?;
            visitor.ascii(&op.field, value.bits.to_le_bytes().get(..len)?);
            return Some(Told::Value);
        }
        let empty = self.previous.stamp(State::EMPTY);
        let is_outdated = self.previous.is_outdated(value.stamp);
        if is_outdated && op.int.has_initial {
            let (initial, len) = (op.int.initial, op.int.min as usize);
            if len > SHORT {
                return None;
            }
            self.keep_short(op, initial, len)?;
            visitor.ascii(&op.field, initial.to_le_bytes().get(..len)?);
            return Some(Told::Value);
        }
        if !op.int.is_optional || !(value.stamp == empty || is_outdated) {
            return None;
        }
        self.previous.value_mut(op.int.slot)?.stamp = empty;
        Some(Told::Absent)
    }

    #[inline(never)]
    fn long_implied<V: Visitor>(&mut self, op: &Fused, visitor: &mut V) -> Option<Told> {
        let text = self.previous.long_text(op.aux)?;
        self.left.texts = self.left.texts.checked_sub(text.len())?;
        visitor.ascii(&op.field, text);
        Some(Told::Value)
    }

    #[inline(always)]
    fn ascii_default<V: Visitor, const NULLABLE: bool>(
        &mut self,
        op: &Fused,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Told> {
        let told = match (cursor.bit(), op.int.has_initial) {
            (true, _) => self.ascii_read::<_, NULLABLE>(&op.field, cursor, visitor)?,
            (false, true) => self.ascii_initial(op, visitor)?,
            (false, false) => Told::Absent,
        };
        cursor.pass_bit();
        Some(told)
    }

    /// Decodes a string that has its initial value.
    #[inline(always)]
    fn ascii_initial<V: Visitor>(&mut self, op: &Fused, visitor: &mut V) -> Option<Told> {
        let len = op.int.min as usize;
        self.count_text(len)?;
        match op.int.initial.to_le_bytes().get(..len) {
            Some(text) => visitor.ascii(&op.field, text),
            None => visitor.ascii(&op.field, self.program.text_at(op.aux as usize)),
        }
        Some(Told::Value)
    }

    /// Decodes a group, or a sequence with its entries.
    #[inline(always)]
    fn fused_inside<V: Visitor>(
        &mut self,
        op: &Fused,
        number: u32,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Outcome {
        let field = &op.field;
        let is_done = match *self.program.op_at(number) {
            Op::Group { optional, body, .. } => {
                if optional && !cursor.take_bit() {
                    visitor.absent(field);
                    return Outcome::Done;
                }
                self.fused_group(field, body, *cursor, visitor)
            }
            Op::Sequence { body, .. } => {
                let count = match op.int.operation {
                    Operation::None if op.int.is_optional => cursor.read::<false, true>(&op.int),
                    Operation::None => cursor.read::<false, false>(&op.int),
                    _ => cursor.any(&op.int, self.previous),
                };
                match count {
                    None => return Outcome::Unusual,
                    Some(None) => {
                        visitor.absent(field);
                        return Outcome::Done;
                    }
                    Some(Some(count)) => {
                        self.fused_entries((field, count as u32), body, *cursor, visitor)
                    }
                }
            }
            _ => return Outcome::Unusual,
        };
        cursor.rest = self.input.rest();
        match is_done {
            true => Outcome::Done,
            false => Outcome::Failed,
        }
    }

    fn fused_group<V: Visitor>(
        &mut self,
        field: &Field,
        body: Body,
        mut cursor: Cursor<'a>,
        visitor: &mut V,
    ) -> bool {
        visitor.begin_group(field);
        let start = self.offset(cursor);
        self.input.at = start;
        cursor.map = 0;
        let is_done = match body.bits != 0 && cursor.presence_map().is_none() {
            true => {
                let result = self.nested(body, visitor);
                self.failure.keep(result).is_some()
            }
            false => self.once(body, cursor, start, visitor),
        };
        if !is_done {
            self.failure.add(|error| error.in_field(field.id()));
            return false;
        }
        visitor.end_group(field);
        true
    }

    fn fused_entries<V: Visitor>(
        &mut self,
        (field, count): (&Field, u32),
        body: Body,
        cursor: Cursor<'a>,
        visitor: &mut V,
    ) -> bool {
        if count > self.left.entries {
            let error = CodecError::beyond(Bound::Entries, self.offset(cursor));
            self.failure.set::<()>(error.in_field(field.id()));
            return false;
        }
        visitor.begin_sequence(field, count);
        let is_done = self.fused_sequence((field, count), body, cursor, visitor);
        if is_done {
            visitor.end_sequence(field);
        }
        is_done
    }

    /// Executes an op in the slow way, with the result of [`Self::inside`].
    #[cold]
    #[inline(never)]
    fn by_op<V: Visitor>(
        &mut self,
        number: u32,
        before: Cursor<'a>,
        visitor: &mut V,
    ) -> Option<Cursor<'a>> {
        self.input.at = self.offset(before);
        let mut map = PresenceMap::of_word(before.map);
        let result = self.op(self.program.op_at(number), &mut map, visitor);
        self.failure.keep(result)?;
        Some(self.cursor(map.word()))
    }
}

/// Calls the visitor for the absent fields at the front of the next `run` ops, and skips their ops.
#[inline(always)]
fn absent_run<V: Visitor>(
    run: u8,
    ops: &mut std::slice::Iter<'_, Fused>,
    cursor: &mut Cursor<'_>,
    visitor: &mut V,
) {
    let absent = cursor.skip_nulls(usize::from(run));
    for op in ops.by_ref().take(absent) {
        visitor.absent(&op.field);
    }
}

/// The outcome of an op.
enum Outcome {
    Done,
    /// Nothing is done, and [`Run::op`] must execute the op.
    Unusual,
    /// The error is in [`Run::failure`].
    Failed,
}
