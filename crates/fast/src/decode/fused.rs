//! The fast executor for any template: executes fused ops with the position and the presence map
//! in registers. A value that it does not handle (entities of nine bytes and more, rare operators,
//! anything that breaks a rule) is left to the op of [`Run`], from the beginning of that op.

use super::cursor::{Cursor, Text, signed_sum, small_sum, unsigned_sum};
use super::presence::PresenceMap;
use super::run::Run;
use crate::error::{CodecError, ErrorCode};
use crate::previous::PreviousValues;
use crate::program::fused::{Fused, Kind, Operation};
use crate::program::{Body, Field, FieldId, Op, Reset, TemplateProgram};
use crate::slots::Slots;
use crate::state::State;
use crate::visitor::Visitor;
use fanfare_wire::lanes::MAX_CHARS;
use fanfare_wire::stopbit;

/// Calls the visitor with the value, or with `absent` if the value is `None`.
macro_rules! tell {
    ($visitor:ident, $field:ident, $read:expr, $value:ident => $told:expr) => {
        match $read? {
            Some($value) => $told,
            None => $visitor.absent($field),
        }
    };
}

/// Calls the visitor for the absent fields at the start of a run; returns the ops behind them.
#[inline(always)]
fn absent_run<'p, V: Visitor>(
    op: &Fused,
    ops: &'p [Fused],
    fields: &[Field],
    cursor: &mut Cursor<'_>,
    visitor: &mut V,
) -> &'p [Fused] {
    let absent = stopbit::leading_nulls(cursor.bytes, cursor.at).min(op.run.into());
    let (absent, behind) = ops.split_at_checked(absent).unwrap_or((ops, &[]));
    for op in absent {
        if let Some(field) = fields.get(op.field as usize) {
            visitor.absent(field);
        }
    }
    cursor.at += absent.len();
    behind
}

impl<'a> Run<'a, Slots> {
    /// Decodes one message; returns its length, or `None` with the error in [`Run::failure`].
    #[inline(always)]
    pub(super) fn fused<V: Visitor>(mut self, visitor: &mut V) -> Option<usize> {
        let Some((template, cursor)) = self.fused_header() else {
            return self.by_ops(visitor);
        };
        self.input.at = cursor.at;
        self.previous.set_template(Some(template.index()));
        visitor.begin_message(template);
        if template.reset() != Reset::None {
            self.previous.reset();
        }
        if template.reset() == Reset::All {
            self.previous.set_template(None);
        }
        if !self.fused_body(template.body(), cursor.map, 0, visitor) {
            self.adds(|error| error.in_template(template.index()));
            return None;
        }
        visitor.end_message(template);
        Some(self.input.at)
    }

    /// Reads the presence map and the template identifier; `None` leaves them to [`Run::by_ops`].
    #[inline(always)]
    fn fused_header(&self) -> Option<(&'a TemplateProgram, Cursor<'a>)> {
        let (bytes, at) = (self.input.all(), self.input.at);
        let mut cursor = self.usual_map(bytes, at)?;
        let index = match cursor.take_bit() {
            true => {
                let id = u32::try_from(cursor.unsigned()?).ok()?;
                self.program.index_of(id)?
            }
            false => self.previous.template()?,
        };
        let template = self.program.templates().get(index as usize)?;
        Some((template, cursor))
    }

    /// Reads a presence map of at most eight bytes; returns a cursor behind it.
    #[inline(always)]
    fn usual_map(&self, bytes: &'a [u8], at: usize) -> Option<Cursor<'a>> {
        let first = *bytes.get(at)?;
        if first & 0x80 != 0 {
            let map = u64::from(first) << 57;
            return Some(Cursor {
                bytes,
                at: at + 1,
                map,
            });
        }
        let entity = stopbit::read_short(bytes, at)?;
        // Overlong (R7): the op reports it, or lets it pass if the decoder is lenient.
        if entity.bits & 0x7f == 0 {
            return None;
        }
        let map = entity.bits << (64 - 7 * entity.len as u32);
        let at = at + entity.len;
        Some(Cursor { bytes, at, map })
    }

    /// Executes a body that has a presence map of its own if it takes bits.
    #[inline(always)]
    fn fused_nested<V: Visitor>(&mut self, body: Body, visitor: &mut V) -> bool {
        let start = self.input.at;
        if body.bits == 0 {
            return self.fused_body(body, 0, start, visitor);
        }
        let Some(cursor) = self.usual_map(self.input.all(), start) else {
            return self
                .nested(body, visitor)
                .map_err(|error| self.fails(error))
                .is_ok();
        };
        self.input.at = cursor.at;
        self.fused_body(body, cursor.map, start, visitor)
    }

    /// Executes a body with these presence bits, the first one topmost, whose map starts at a
    /// certain byte.
    #[inline(never)]
    fn fused_body<V: Visitor>(
        &mut self,
        body: Body,
        map: u64,
        map_at: usize,
        visitor: &mut V,
    ) -> bool {
        let Some(left) = self.left.fields.checked_sub(body.end - body.start + 1) else {
            self.fails(CodecError::new(ErrorCode::Limit, self.input.at));
            return false;
        };
        self.left.fields = left;
        let (mut ops, fields) = (self.program.fused(body), self.program.fields());
        let mut cursor = Cursor {
            bytes: self.input.all(),
            at: self.input.at,
            map,
        };
        while let [op, behind @ ..] = ops {
            if op.run != 0 && cursor.is_null() {
                ops = absent_run(op, ops, fields, &mut cursor, visitor);
                continue;
            }
            let (at, map) = (cursor.at, cursor.map);
            if self.fused_field(op, fields, &mut cursor, visitor).is_none() {
                let number = body.end - ops.len() as u32;
                let Some(there) = self.unusual(op, number, (at, map), visitor) else {
                    return false;
                };
                (cursor.at, cursor.map) = there;
            }
            ops = behind;
        }
        self.input.at = cursor.at;
        if cursor.map != 0 && body.bits != 0 && self.input.strict() {
            self.fails(CodecError::new(ErrorCode::R8, map_at));
            return false;
        }
        true
    }

    /// Executes an op that [`Self::fused_field`] does not. Returns the position and the presence
    /// bits behind it, or `None` with the error in [`Run::failure`].
    #[inline(never)]
    fn unusual<V: Visitor>(
        &mut self,
        op: &Fused,
        number: u32,
        (at, map): (usize, u64),
        visitor: &mut V,
    ) -> Option<(usize, u64)> {
        let bytes = self.input.all();
        let mut cursor = Cursor { bytes, at, map };
        let outcome = match op.kind {
            Kind::Group | Kind::Sequence => self.fused_inside(op, number, &mut cursor, visitor),
            _ => Outcome::Unusual,
        };
        match outcome {
            Outcome::Done => Some((cursor.at, cursor.map)),
            Outcome::Unusual => self.by_op(number, (at, map), visitor),
            Outcome::Failed => None,
        }
    }

    /// Decodes a field without contents; `None` leaves it to [`Self::unusual`].
    #[inline(always)]
    fn fused_field<V: Visitor>(
        &mut self,
        op: &Fused,
        fields: &[Field],
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<()> {
        let (int, slots) = (&op.int, &mut *self.previous);
        let field = fields.get(op.field as usize)?;
        macro_rules! unsigned {
            ($value:expr) => {
                tell!(visitor, field, $value, value => visitor.unsigned(field, value))
            };
        }
        macro_rules! signed {
            ($value:expr) => {
                tell!(visitor, field, $value, value => visitor.signed(field, value as i64))
            };
        }
        macro_rules! decimal {
            ($value:expr) => {
                tell!(visitor, field, $value, value => visitor.decimal(field, value))
            };
        }
        match op.kind {
            Kind::Unsigned => unsigned!(cursor.read::<false, false>(int)),
            Kind::UnsignedNullable => unsigned!(cursor.read::<false, true>(int)),
            Kind::Signed => signed!(cursor.read::<true, false>(int)),
            Kind::SignedNullable => signed!(cursor.read::<true, true>(int)),
            Kind::UnsignedCopy => unsigned!(cursor.copied::<false, false>(int, slots)),
            Kind::UnsignedCopyNullable => unsigned!(cursor.copied::<false, true>(int, slots)),
            Kind::SignedCopy => signed!(cursor.copied::<true, false>(int, slots)),
            Kind::SignedCopyNullable => signed!(cursor.copied::<true, true>(int, slots)),
            Kind::UnsignedDelta => unsigned!(cursor.delta::<false>(int, slots, small_sum)),
            Kind::UnsignedDeltaNullable => unsigned!(cursor.delta::<true>(int, slots, small_sum)),
            Kind::SignedDelta => signed!(cursor.delta::<false>(int, slots, small_sum)),
            Kind::SignedDeltaNullable => signed!(cursor.delta::<true>(int, slots, small_sum)),
            Kind::DeltaU64 => unsigned!(cursor.delta::<false>(int, slots, unsigned_sum)),
            Kind::DeltaU64Nullable => unsigned!(cursor.delta::<true>(int, slots, unsigned_sum)),
            Kind::DeltaI64 => signed!(cursor.delta::<false>(int, slots, signed_sum)),
            Kind::DeltaI64Nullable => signed!(cursor.delta::<true>(int, slots, signed_sum)),
            Kind::UnsignedIncrement => unsigned!(cursor.incremented(int, slots)),
            Kind::UnsignedDefault => unsigned!(cursor.default(int, Cursor::read::<false, false>)),
            Kind::UnsignedDefaultNullable => {
                unsigned!(cursor.default(int, Cursor::read::<false, true>));
            }
            Kind::SignedDefault => signed!(cursor.default(int, Cursor::read::<true, false>)),
            Kind::SignedDefaultNullable => signed!(cursor.default(int, Cursor::read::<true, true>)),
            Kind::UnsignedConstant => visitor.unsigned(field, int.initial),
            Kind::SignedConstant => visitor.signed(field, int.initial as i64),
            Kind::Int if int.is_signed => signed!(cursor.any(int, slots)),
            Kind::Int => unsigned!(cursor.any(int, slots)),
            Kind::Decimal => decimal!(cursor.decimal::<false>()),
            Kind::DecimalNullable => decimal!(cursor.decimal::<true>()),
            Kind::Parts => decimal!(cursor.parts(self.program.parts(op)?, slots)),
            Kind::Ascii => return self.ascii(cursor.ascii::<false>()?, field, visitor),
            Kind::AsciiNullable => return self.ascii(cursor.ascii::<true>()?, field, visitor),
            Kind::AsciiCopy => return self.ascii_copy::<_, false>(op, field, cursor, visitor),
            Kind::AsciiCopyNullable => {
                return self.ascii_copy::<_, true>(op, field, cursor, visitor);
            }
            Kind::AsciiConstant => return self.ascii_constant(op, field, visitor),
            Kind::Group | Kind::Sequence | Kind::Op => return None,
        }
        Some(())
    }

    /// Counts a string against the limit: its bytes, and at least four.
    #[inline(always)]
    fn count_text(&mut self, len: usize) -> Option<()> {
        self.left.texts = self.left.texts.checked_sub(len.max(MAX_CHARS))?;
        Some(())
    }

    #[inline(always)]
    fn ascii<V: Visitor>(&mut self, text: Text<'_>, field: &Field, visitor: &mut V) -> Option<()> {
        match text {
            Text::Absent => visitor.absent(field),
            Text::Short(chars, len) => {
                self.count_text(len)?;
                visitor.ascii(field, chars.to_le_bytes().get(..len)?);
            }
            Text::Long(bytes) => {
                self.keep_long(bytes)?;
                visitor.ascii(field, self.scratch);
            }
        }
        Some(())
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
    fn ascii_copy<V: Visitor, const NULLABLE: bool>(
        &mut self,
        op: &Fused,
        field: &Field,
        cursor: &mut Cursor<'a>,
        visitor: &mut V,
    ) -> Option<()> {
        if !cursor.take_bit() {
            return self.ascii_implied(op, field, visitor);
        }
        let text = cursor.ascii::<NULLABLE>()?;
        let (stamp, empty) = (
            self.previous.stamp(op.int.state),
            self.previous.stamp(State::EMPTY),
        );
        match text {
            Text::Absent => self.previous.value_mut(op.int.slot)?.stamp = empty,
            Text::Short(chars, len) => {
                let value = self.previous.value_mut(op.int.slot)?;
                value.set_short(stamp, chars, len);
            }
            // The op copies it to the previous values.
            Text::Long(_) => return None,
        }
        self.ascii(text, field, visitor)
    }

    /// Handles a copied string that is absent from the stream.
    #[inline(always)]
    fn ascii_implied<V: Visitor>(
        &mut self,
        op: &Fused,
        field: &Field,
        visitor: &mut V,
    ) -> Option<()> {
        let value = *self.previous.value(op.int.slot)?;
        if value.stamp == self.previous.stamp(op.int.state) {
            let Some(len) = value.short_len() else {
                return self.long_implied(op, field, visitor);
            };
            self.count_text(len)?;
            visitor.ascii(field, value.bits.to_le_bytes().get(..len)?);
            return Some(());
        }
        let empty = self.previous.stamp(State::EMPTY);
        let is_outdated = self.previous.is_outdated(value.stamp) && !op.int.has_initial;
        if !op.int.is_optional || !(value.stamp == empty || is_outdated) {
            return None;
        }
        self.previous.value_mut(op.int.slot)?.stamp = empty;
        visitor.absent(field);
        Some(())
    }

    #[inline(never)]
    fn long_implied<V: Visitor>(
        &mut self,
        op: &Fused,
        field: &Field,
        visitor: &mut V,
    ) -> Option<()> {
        let text = self.previous.long_text(op.aux)?;
        self.left.texts = self.left.texts.checked_sub(text.len())?;
        visitor.ascii(field, text);
        Some(())
    }

    #[inline(always)]
    fn ascii_constant<V: Visitor>(
        &mut self,
        op: &Fused,
        field: &Field,
        visitor: &mut V,
    ) -> Option<()> {
        let text = self.program.text_at(op.aux as usize);
        self.count_text(text.len())?;
        visitor.ascii(field, text);
        Some(())
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
        let field = self.program.field(FieldId(op.field));
        let is_done = match *self.program.op_at(number) {
            Op::Group { optional, body, .. } => {
                if optional && !cursor.take_bit() {
                    visitor.absent(field);
                    return Outcome::Done;
                }
                self.input.at = cursor.at;
                self.fused_group(field, body, visitor)
            }
            Op::Sequence { body, .. } => {
                let count = match op.int.operation {
                    Operation::None => cursor.read_any(&op.int),
                    _ => cursor.any(&op.int, self.previous),
                };
                match count {
                    None => return Outcome::Unusual,
                    Some(None) => {
                        visitor.absent(field);
                        return Outcome::Done;
                    }
                    Some(Some(count)) => {
                        self.input.at = cursor.at;
                        self.fused_entries(field, count as u32, body, visitor)
                    }
                }
            }
            _ => return Outcome::Unusual,
        };
        cursor.at = self.input.at;
        match is_done {
            true => Outcome::Done,
            false => Outcome::Failed,
        }
    }

    fn fused_group<V: Visitor>(&mut self, field: &Field, body: Body, visitor: &mut V) -> bool {
        visitor.begin_group(field);
        if !self.fused_nested(body, visitor) {
            self.adds(|error| error.in_field(field.id()));
            return false;
        }
        visitor.end_group(field);
        true
    }

    fn fused_entries<V: Visitor>(
        &mut self,
        field: &Field,
        count: u32,
        body: Body,
        visitor: &mut V,
    ) -> bool {
        if count > self.left.entries {
            let error = CodecError::new(ErrorCode::Limit, self.input.at);
            self.fails(error.in_field(field.id()));
            return false;
        }
        visitor.begin_sequence(field, count);
        for index in 0..count {
            visitor.begin_entry(field, index);
            if !self.fused_nested(body, visitor) {
                self.adds(|error| error.in_entry(field.id(), index));
                return false;
            }
            visitor.end_entry(field);
        }
        visitor.end_sequence(field);
        true
    }

    /// Executes an op in the slow way. Returns as [`Self::unusual`].
    #[cold]
    #[inline(never)]
    fn by_op<V: Visitor>(
        &mut self,
        number: u32,
        (at, map): (usize, u64),
        visitor: &mut V,
    ) -> Option<(usize, u64)> {
        self.input.at = at;
        let mut map = PresenceMap::of_word(map);
        if let Err(error) = self.op(self.program.op_at(number), &mut map, visitor) {
            self.fails(error);
            return None;
        }
        Some((self.input.at, map.word()))
    }

    #[cold]
    fn fails(&mut self, error: CodecError) {
        *self.failure = Some(error);
    }

    /// Adds to the error where it happened.
    #[cold]
    fn adds(&mut self, place: impl FnOnce(CodecError) -> CodecError) {
        *self.failure = self.failure.take().map(place);
    }
}

/// How an op ended.
enum Outcome {
    Done,
    /// Nothing was done: [`Run::op`] executes it.
    Unusual,
    /// The error is in [`Run::failure`].
    Failed,
}
