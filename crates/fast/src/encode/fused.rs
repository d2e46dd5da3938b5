//! The fast executor for any template: executes fused ops with the position and the presence map
//! in registers. A value that it does not handle (entities of nine bytes and more, rare operators,
//! anything that breaks a rule) is left to the op of [`Run`], from the beginning of that op.

use super::cursor::{
    ABSENT, Cursor, INT, LONG, Short, signed_difference, small_difference, unsigned_difference,
};
use super::output::PresenceWriter;
use super::run::{Level, Run};
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::node::{Content, Node};
use crate::previous::PreviousValues;
use crate::program::fused::{Fused, Kind};
use crate::program::{Body, FieldId, Op, Program, Reset, Slot, TemplateProgram};
use crate::slots::Slots;
use crate::state::State;
use crate::value::TextType;

/// Where the executor is between two ops.
struct Place<'a> {
    level: Level<'a>,
    /// As [`Cursor::map`].
    map: u64,
}

/// How an op ended.
enum Outcome {
    Done,
    /// Nothing was done: [`Run::op`] executes it.
    Unusual,
    /// The error is in [`Run::failure`].
    Failed,
}

impl<'a> Run<'a, Slots> {
    /// Encodes the message; `None` leaves the error in [`Run::failure`].
    #[inline(always)]
    pub(super) fn fused(mut self) -> Option<()> {
        let Some(template) = self.fused_template() else {
            return self.by_ops();
        };
        let (index, body) = (template.index(), template.body());
        let map_len = self.out.take_map(body.bits);
        let is_changed = self.last_template() != Some(index);
        if is_changed {
            self.out.unsigned(template.id().unwrap_or_default().into());
        }
        self.previous.set_template(Some(index));
        if template.reset() != Reset::None {
            self.previous.reset();
        }
        if template.reset() == Reset::All {
            self.previous.set_template(None);
        }
        let mut place = Place {
            level: Level::new(self.message, 0, self.message.nodes().len() as u32),
            map: 0b10 | u64::from(is_changed),
        };
        if !self.fused_body(body, &mut place) {
            self.adds(|error| error.in_template(index));
            return None;
        }
        self.out.put_first_map(map_len, place.map);
        Some(())
    }

    /// The template, unless it is for [`Run::by_ops`].
    #[inline(always)]
    fn fused_template(&self) -> Option<&'a TemplateProgram> {
        let index = self.message.template_index()?;
        let template = self.program.templates().get(index as usize)?;
        let has_id = template.id().is_some() || self.last_template() == Some(index);
        (has_id && PresenceWriter::is_word(template.body().bits)).then_some(template)
    }

    /// Executes a body that has a presence map of its own if it takes bits.
    #[inline(always)]
    fn fused_nested(&mut self, body: Body, index: u32, node: &Node) -> bool {
        if !PresenceWriter::is_word(body.bits) {
            let done = self.nested(body, index, node);
            return done.map_err(|error| self.fails(error)).is_ok();
        }
        let mut place = Place {
            level: Level::new(self.message, index + 1, node.end(index)),
            map: 1,
        };
        let start = self.out.len();
        let map_len = self.out.take_map(body.bits);
        if !self.fused_body(body, &mut place) {
            return false;
        }
        if map_len != 0 {
            self.out.put_map(start, map_len, place.map);
        }
        true
    }

    /// Executes a body. False leaves the error in [`Run::failure`].
    #[inline(never)]
    fn fused_body(&mut self, body: Body, place: &mut Place<'a>) -> bool {
        let mut ops = self.program.fused(body);
        loop {
            ops = self.fused_fields(ops, place);
            let [op, behind @ ..] = ops else {
                return true;
            };
            if !self.unusual(op, body.end - ops.len() as u32, place) {
                return false;
            }
            ops = behind;
        }
    }

    /// Executes ops up to one that [`Fields::field`] does not; returns that one and those behind.
    #[inline(always)]
    fn fused_fields(&mut self, ops: &'a [Fused], place: &mut Place<'a>) -> &'a [Fused] {
        let mut fields = Fields {
            program: self.program,
            slots: self.previous,
            message: self.message,
            longest: self.options.limits.text,
        };
        let (room, at) = self.out.parts();
        let map = place.map;
        let mut cursor = Cursor { room, at, map };
        let (mut left, mut nodes) = (ops.iter(), place.level.left().iter());
        let undone = loop {
            let Some(op) = left.next() else { break 0 };
            let Some(node) = nodes.next() else { break 1 };
            let head = node.head() ^ Node::absent(op.id).head();
            if op.run != 0 && head == ABSENT {
                if cursor.nulls().is_none() {
                    break 1;
                }
                let mut count = 1;
                while count <= op.run.min(7)
                    && let ([op, ..], [node, ..]) = (left.as_slice(), nodes.as_slice())
                    && node.head() == Node::absent(op.id).head()
                {
                    left.next();
                    nodes.next();
                    count += 1;
                }
                cursor.at += usize::from(count);
            } else if fields.field(op, node, head, &mut cursor).is_none() {
                break 1;
            }
        };
        let done = ops.len() - left.len() - undone;
        let at = cursor.at;
        place.map = cursor.map;
        place.level.pass(done as u32);
        self.out.set_len(at);
        ops.get(done..).unwrap_or_default()
    }

    /// Executes an op that [`Self::fused_fields`] does not. False leaves the error in
    /// [`Run::failure`].
    #[inline(never)]
    fn unusual(&mut self, op: &Fused, number: u32, place: &mut Place<'a>) -> bool {
        let outcome = match op.kind {
            Kind::Group | Kind::Sequence => self.fused_inside(op, number, place),
            _ => Outcome::Unusual,
        };
        match outcome {
            Outcome::Done => true,
            Outcome::Unusual => self.by_op(number, place),
            Outcome::Failed => false,
        }
    }

    /// Encodes a group, or a sequence with its entries.
    #[inline(always)]
    fn fused_inside(&mut self, op: &Fused, number: u32, place: &mut Place<'a>) -> Outcome {
        let id = op.id;
        let Some((index, node)) = place.level.next_of(id) else {
            return Outcome::Unusual;
        };
        let is_done = match (*self.program.op_at(number), self.message.content(node)) {
            (Op::Group { optional, body, .. }, Content::Group) => {
                if optional {
                    place.map = place.map << 1 | 1;
                }
                let is_done = self.fused_nested(body, index, node);
                if !is_done {
                    self.adds(|error| error.in_field(id));
                }
                is_done
            }
            (Op::Group { optional: true, .. }, Content::Absent) => {
                place.map <<= 1;
                true
            }
            (Op::Sequence { .. }, Content::Absent) if self.length(op, None, place) => true,
            (Op::Sequence { body, .. }, Content::Sequence(count))
                if self.length(op, Some(count.into()), place) =>
            {
                self.fused_entries(id, count, body, index + 1)
            }
            _ => return Outcome::Unusual,
        };
        place.level.pass_to(node.end(index));
        match is_done {
            true => Outcome::Done,
            false => Outcome::Failed,
        }
    }

    /// Writes the length of a sequence; returns false, with nothing done, if the op must.
    #[inline(always)]
    fn length(&mut self, op: &Fused, length: Option<u64>, place: &mut Place<'a>) -> bool {
        let (room, at) = self.out.parts();
        let map = place.map;
        let mut cursor = Cursor { room, at, map };
        if cursor.any(&op.int, self.previous, length).is_none() {
            return false;
        }
        let at = cursor.at;
        place.map = cursor.map;
        self.out.set_len(at);
        true
    }

    /// Encodes entries, of which the first is the node of this index.
    fn fused_entries(&mut self, id: FieldId, count: u32, body: Body, mut index: u32) -> bool {
        let message: &'a Message = self.message;
        for entry in 0..count {
            let node = message.nodes().get(index as usize);
            let Some(node) = node.filter(|node| node.is_entry()) else {
                let error = self.error(ErrorCode::D1);
                self.fails(error.in_field(id));
                return false;
            };
            if !self.fused_nested(body, index, node) {
                self.adds(|error| error.in_entry(id, entry));
                return false;
            }
            index = node.end(index);
        }
        true
    }

    /// Executes an op in the slow way. Returns as [`Self::unusual`].
    #[cold]
    #[inline(never)]
    fn by_op(&mut self, number: u32, place: &mut Place<'a>) -> bool {
        let mut map = PresenceWriter::of_word(place.map);
        let op = self.program.op_at(number);
        match self.op(op, &mut place.level, &mut map) {
            Ok(()) => {
                place.map = map.word();
                true
            }
            Err(error) => {
                self.fails(error);
                false
            }
        }
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

/// What it takes to encode fields without contents.
struct Fields<'r> {
    program: &'r Program,
    slots: &'r mut Slots,
    message: &'r Message,
    /// Bytes of the longest string that may be.
    longest: usize,
}

impl Fields<'_> {
    /// Encodes a field: its node has this head, if it were that of field 0. `None` leaves it to
    /// [`Run::unusual`]; nothing has changed then.
    #[inline(always)]
    fn field(&mut self, op: &Fused, node: &Node, head: u64, cursor: &mut Cursor<'_>) -> Option<()> {
        let (int, slots) = (&op.int, &mut *self.slots);
        macro_rules! present {
            () => {
                Some((head == INT).then(|| node.word())?)
            };
        }
        macro_rules! nullable {
            () => {
                match head {
                    INT => Some(node.word()),
                    ABSENT => None,
                    _ => return None,
                }
            };
        }
        match op.kind {
            Kind::Unsigned => cursor.write::<false, false>(int, present!()),
            Kind::UnsignedNullable => cursor.write::<false, true>(int, nullable!()),
            Kind::Signed => cursor.write::<true, false>(int, present!()),
            Kind::SignedNullable => cursor.write::<true, true>(int, nullable!()),
            Kind::UnsignedCopy => cursor.carry::<false, false, false>(int, slots, present!()),
            Kind::UnsignedCopyNullable => {
                cursor.carry::<false, true, false>(int, slots, nullable!())
            }
            Kind::SignedCopy => cursor.carry::<true, false, false>(int, slots, present!()),
            Kind::SignedCopyNullable => cursor.carry::<true, true, false>(int, slots, nullable!()),
            Kind::UnsignedDelta | Kind::SignedDelta => {
                cursor.delta::<false>(int, slots, present!(), small_difference)
            }
            Kind::UnsignedDeltaNullable | Kind::SignedDeltaNullable => {
                cursor.delta::<true>(int, slots, nullable!(), small_difference)
            }
            Kind::DeltaU64 => cursor.delta::<false>(int, slots, present!(), unsigned_difference),
            Kind::DeltaU64Nullable => {
                cursor.delta::<true>(int, slots, nullable!(), unsigned_difference)
            }
            Kind::DeltaI64 => cursor.delta::<false>(int, slots, present!(), signed_difference),
            Kind::DeltaI64Nullable => {
                cursor.delta::<true>(int, slots, nullable!(), signed_difference)
            }
            Kind::UnsignedIncrement => cursor.carry::<false, false, true>(int, slots, present!()),
            Kind::UnsignedDefault => cursor.default::<false, false>(int, present!()),
            Kind::UnsignedDefaultNullable => cursor.default::<false, true>(int, nullable!()),
            Kind::SignedDefault => cursor.default::<true, false>(int, present!()),
            Kind::SignedDefaultNullable => cursor.default::<true, true>(int, nullable!()),
            Kind::UnsignedConstant | Kind::SignedConstant => cursor.constant(int, present!()),
            Kind::Int => cursor.any(int, slots, nullable!()),
            Kind::Decimal => cursor.decimal::<false>(head, node.word()),
            Kind::DecimalNullable => cursor.decimal::<true>(head, node.word()),
            Kind::Parts => {
                cursor.parts::<false>(self.program.parts(op)?, slots, (head, node.word()))
            }
            Kind::PartsNullable => {
                cursor.parts::<true>(self.program.parts(op)?, slots, (head, node.word()))
            }
            Kind::Ascii => self.ascii::<false>(node, head, cursor),
            Kind::AsciiNullable => self.ascii::<true>(node, head, cursor),
            Kind::AsciiCopy => self.ascii_copy::<false>(op, node, head, cursor),
            Kind::AsciiCopyNullable => self.ascii_copy::<true>(op, node, head, cursor),
            Kind::AsciiDefault => self.ascii_default::<false>(op, node, head, cursor),
            Kind::AsciiDefaultNullable => self.ascii_default::<true>(op, node, head, cursor),
            Kind::AsciiConstant => self.is_initial(op, node, head).then_some(()),
            Kind::Group | Kind::Sequence | Kind::Op => None,
        }
    }

    /// Returns true if the node has the initial string, which is there.
    #[inline(always)]
    fn is_initial(&self, op: &Fused, node: &Node, head: u64) -> bool {
        match op.int.min {
            len @ ..=8 => Short::len(head) == len && node.word() == op.int.initial,
            _ => {
                let text = self.program.text_at(op.aux as usize);
                head == LONG && self.message.content(node) == Content::Text(text)
            }
        }
    }

    #[inline(always)]
    fn ascii_default<const NULLABLE: bool>(
        &self,
        op: &Fused,
        node: &Node,
        head: u64,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        if op.int.min > self.longest as u64 {
            return None;
        }
        let is_implied = match op.int.has_initial {
            true => self.is_initial(op, node, head),
            false => head == ABSENT,
        };
        if !is_implied {
            self.ascii::<NULLABLE>(node, head, cursor)?;
        }
        cursor.push_bit(!is_implied);
        Some(())
    }

    #[inline(always)]
    fn ascii<const NULLABLE: bool>(
        &self,
        node: &Node,
        head: u64,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        if NULLABLE && head == ABSENT {
            return cursor.null();
        }
        match Short::of((head, node.word())) {
            Some(text) => cursor.ascii::<NULLABLE>(text),
            None => self.long(node, head, cursor),
        }
    }

    /// Writes a longer string, if it needs no preamble.
    #[inline(always)]
    fn long(&self, node: &Node, head: u64, cursor: &mut Cursor<'_>) -> Option<()> {
        let text = long_text(self.message, node, head, self.longest)?;
        cursor.at = put_text(text, cursor.room, cursor.at)?;
        Some(())
    }

    #[inline(always)]
    fn ascii_copy<const NULLABLE: bool>(
        &mut self,
        op: &Fused,
        node: &Node,
        head: u64,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        let (slot, stamp) = self.slots.of(&op.int)?;
        let is_undefined = slot.is_outdated(stamp);
        if NULLABLE && head == ABSENT {
            let is_implied = is_undefined && !op.int.has_initial || slot.is_empty(stamp);
            if !is_implied {
                cursor.null()?;
            }
            slot.set_empty(stamp);
            cursor.push_bit(!is_implied);
            return Some(());
        }
        let Some(text) = Short::of((head, node.word())) else {
            return self.long_copy(op, node, head, cursor);
        };
        let is_implied = match is_undefined {
            true => op.int.has_initial && text.is(op.int.initial, op.int.min as usize),
            false => slot.is_of(stamp) && slot.is_short(text.bits, text.len),
        };
        if !is_implied {
            cursor.ascii::<NULLABLE>(text)?;
        }
        slot.set_short(stamp, text.bits, text.len);
        cursor.push_bit(!is_implied);
        Some(())
    }

    #[inline(always)]
    fn long_copy(
        &mut self,
        op: &Fused,
        node: &Node,
        head: u64,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        let text = long_text(self.message, node, head, self.longest)?;
        let slot = Slot(op.int.slot);
        let state = self.slots.state(slot);
        if state == State::UNDEFINED && op.int.has_initial {
            return None;
        }
        let is_implied = state == op.int.state && *self.slots.text(slot, op.aux) == *text;
        if !is_implied {
            cursor.at = put_text(text, cursor.room, cursor.at)?;
            self.slots.set_text(slot, op.aux, TextType::Ascii, text);
        }
        cursor.push_bit(!is_implied);
        Some(())
    }
}

/// A string of more than eight characters that may be in the stream without a preamble.
#[inline(never)]
fn long_text<'m>(
    message: &'m Message,
    node: &'m Node,
    head: u64,
    longest: usize,
) -> Option<&'m [u8]> {
    let Content::Text(text) = message.content(node) else {
        return None;
    };
    let is_usual = head == LONG
        && text.len() <= longest
        && text.first().is_some_and(|first| *first != 0)
        && text.is_ascii();
    is_usual.then_some(text)
}

/// Writes a string that is not empty; returns the index behind it.
#[inline(never)]
fn put_text(text: &[u8], room: &mut [u8], at: usize) -> Option<usize> {
    let room = room.get_mut(at..)?.get_mut(..text.len())?;
    room.copy_from_slice(text);
    *room.last_mut()? |= 0x80;
    Some(at + text.len())
}
