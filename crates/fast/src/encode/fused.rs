//! The fast executor for any template: executes fused ops with the position and the presence map
//! in registers. A value that it does not handle (entities of nine bytes and more, rare operators,
//! anything that breaks a rule) is left to the op of [`Run`], from the beginning of that op.

use std::ops::Range;

use super::cursor::{
    ABSENT, Ascii, Cursor, INT, LONG, Short, decimal, put_text, signed_difference,
    small_difference, unsigned_difference,
};
use super::output::{Output, PresenceWriter};
use super::run::{Level, Run, last_template};
use crate::error::ErrorCode;
use crate::message::Message;
use crate::node::{Content, Node};
use crate::previous::PreviousValues;
use crate::program::fused::{Fused, Kind};
use crate::program::{Body, FieldId, Op, Program, Reset, Slot, TemplateProgram};
use crate::slots::Slots;
use crate::state::State;
use crate::value::TextType;

/// The position of the executor between two ops.
struct Place<'a> {
    level: Level<'a>,
    /// The presence bits, as in [`Cursor::map`].
    map: u64,
}

/// The outcome of an op.
enum Outcome {
    Done,
    /// Nothing is done, and [`Run::op`] must execute the op.
    Unusual,
    /// The error is in [`Run::failure`].
    Failed,
}

impl<'a> Run<'a, Slots> {
    /// Encodes the message. Returns `None` with the error in [`Run::failure`].
    #[inline(always)]
    pub(super) fn fused(mut self) -> Option<()> {
        let index = self.message.template_index();
        let template = index.and_then(|index| usual_template(self.program, self.previous, index));
        let Some(template) = template else {
            return self.by_ops();
        };
        let (map_len, map) = header(self.program, self.previous, template, self.out);
        let mut place = Place {
            level: Level::new(self.message, 0, self.message.nodes().len() as u32),
            map,
        };
        if !self.fused_body(template.body(), &mut place) {
            self.failure
                .add(|error| error.in_template(template.index()));
            return None;
        }
        self.out.put_first_map(map_len, place.map);
        Some(())
    }

    /// Executes a body that has a presence map of its own if it takes bits.
    #[inline(always)]
    fn fused_nested(&mut self, body: Body, index: u32, node: &Node) -> bool {
        if !PresenceWriter::is_word(body.bits) {
            let done = self.nested(body, index, node);
            return self.failure.keep(done).is_some();
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

    /// Executes a body. Returns false with the error in [`Run::failure`].
    #[inline(never)]
    fn fused_body(&mut self, body: Body, place: &mut Place<'a>) -> bool {
        let counted = self.count_fields(body.counted());
        if self.failure.keep(counted).is_none() {
            return false;
        }
        let mut ops = self.program.fused(body);
        loop {
            ops = self.fused_fields(ops, place);
            let [op, behind @ ..] = ops else {
                return place.level.is_used_up() || self.are_fields(body, place.level);
            };
            if !self.unusual(op, body.end - ops.len() as u32, place) {
                return false;
            }
            ops = behind;
        }
    }

    /// Returns whether the nodes of a level, which are not in the order of the ops, are of fields
    /// of the body. Returns false with the error in [`Run::failure`].
    #[cold]
    #[inline(never)]
    fn are_fields(&mut self, body: Body, level: Level<'a>) -> bool {
        let checked = self.check_fields(body, level);
        self.failure.keep(checked).is_some()
    }

    /// Executes ops up to one that [`Fields::field`] does not, and returns that one and those after
    /// it.
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
            let head = node.head() ^ Node::absent(op.field.id()).head();
            if op.run != 0 && head == ABSENT {
                if cursor.nulls().is_none() {
                    break 1;
                }
                let mut count = 1;
                while count <= op.run.min(7)
                    && let ([op, ..], [node, ..]) = (left.as_slice(), nodes.as_slice())
                    && node.head() == Node::absent(op.field.id()).head()
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

    /// Executes an op that [`Self::fused_fields`] does not. Returns false with the error in
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
        let id = op.field.id();
        let Some((index, node)) = place.level.next_of(id) else {
            return Outcome::Unusual;
        };
        let inside = index + 1..node.end(index);
        let behind = inside.end;
        let is_done = match (*self.program.op_at(number), self.message.content(node)) {
            (Op::Group { optional, body, .. }, Content::Group) => {
                if optional {
                    place.map = place.map << 1 | 1;
                }
                self.fused_nested(body, index, node)
            }
            (Op::Group { optional: true, .. }, Content::Absent) => {
                place.map <<= 1;
                true
            }
            (Op::Sequence { .. }, Content::Absent) if self.length(op, None, place) => true,
            (Op::Sequence { body, .. }, Content::Sequence(count))
                if count <= self.left.entries && self.length(op, Some(count.into()), place) =>
            {
                self.fused_entries(id, count, body, inside)
            }
            _ => return Outcome::Unusual,
        };
        place.level.pass_to(behind);
        if !is_done {
            self.failure.add(|error| error.in_field(id));
            return Outcome::Failed;
        }
        Outcome::Done
    }

    /// Writes the length of a sequence. Returns false, with nothing done, if the op must write it.
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

    /// Encodes the entries of a sequence, which are all of the nodes `inside` it.
    fn fused_entries(
        &mut self,
        id: FieldId,
        count: u32,
        body: Body,
        mut inside: Range<u32>,
    ) -> bool {
        let message: &'a Message = self.message;
        for entry in 0..count {
            let node = message.nodes().get(inside.start as usize);
            let Some(node) = node.filter(|node| node.is_entry_of(id)) else {
                return self.refuse(ErrorCode::D1, id);
            };
            if !self.fused_nested(body, inside.start, node) {
                self.failure.add(|error| error.in_entry(id, entry));
                return false;
            }
            inside.start = node.end(inside.start);
        }
        inside.start == inside.end || self.refuse(ErrorCode::Input, id)
    }

    /// Stores an error in [`Run::failure`], and returns false.
    #[cold]
    fn refuse(&mut self, code: ErrorCode, field: FieldId) -> bool {
        let error = self.error(code).in_field(field);
        self.failure.set::<()>(error).is_some()
    }

    /// Executes an op in the slow way, with the result of [`Self::unusual`].
    #[cold]
    #[inline(never)]
    fn by_op(&mut self, number: u32, place: &mut Place<'a>) -> bool {
        let mut map = PresenceWriter::of_word(place.map);
        let op = self.program.op_at(number);
        let result = self.op(op, &mut place.level, &mut map);
        place.map = map.word();
        self.failure.keep(result).is_some()
    }
}

/// The state for encoding fields without contents.
struct Fields<'r> {
    program: &'r Program,
    slots: &'r mut Slots,
    message: &'r Message,
    /// The length in bytes of the longest string that is allowed.
    longest: usize,
}

impl Fields<'_> {
    /// Encodes a field. `head` is the head that its node would have for field 0. Returns `None`,
    /// with nothing changed, to leave the field to [`Run::unusual`].
    #[inline(always)]
    fn field(&mut self, op: &Fused, node: &Node, head: u64, cursor: &mut Cursor<'_>) -> Option<()> {
        let (int, slots, longest) = (&op.int, &mut *self.slots, self.longest);
        macro_rules! of {
            (int) => {
                present(node, head)?
            };
            (maybe) => {
                nullable(node, head)?
            };
            (text) => {
                text(self.message, node, head)?
            };
            (initial) => {
                initial(self.program, op)
            };
        }
        match op.kind {
            Kind::Unsigned => cursor.write::<false, false>(int, of!(int)),
            Kind::UnsignedNullable => cursor.write::<false, true>(int, of!(maybe)),
            Kind::Signed => cursor.write::<true, false>(int, of!(int)),
            Kind::SignedNullable => cursor.write::<true, true>(int, of!(maybe)),
            Kind::UnsignedCopy => cursor.carry::<false, false, false>(int, slots, of!(int)),
            Kind::UnsignedCopyNullable => {
                cursor.carry::<false, true, false>(int, slots, of!(maybe))
            }
            Kind::SignedCopy => cursor.carry::<true, false, false>(int, slots, of!(int)),
            Kind::SignedCopyNullable => cursor.carry::<true, true, false>(int, slots, of!(maybe)),
            Kind::UnsignedDelta | Kind::SignedDelta => {
                cursor.delta::<false>(int, slots, of!(int), small_difference)
            }
            Kind::UnsignedDeltaNullable | Kind::SignedDeltaNullable => {
                cursor.delta::<true>(int, slots, of!(maybe), small_difference)
            }
            Kind::DeltaU64 => cursor.delta::<false>(int, slots, of!(int), unsigned_difference),
            Kind::DeltaU64Nullable => {
                cursor.delta::<true>(int, slots, of!(maybe), unsigned_difference)
            }
            Kind::DeltaI64 => cursor.delta::<false>(int, slots, of!(int), signed_difference),
            Kind::DeltaI64Nullable => {
                cursor.delta::<true>(int, slots, of!(maybe), signed_difference)
            }
            Kind::UnsignedIncrement => cursor.carry::<false, false, true>(int, slots, of!(int)),
            Kind::UnsignedDefault => cursor.default::<false, false>(int, of!(int)),
            Kind::UnsignedDefaultNullable => cursor.default::<false, true>(int, of!(maybe)),
            Kind::SignedDefault => cursor.default::<true, false>(int, of!(int)),
            Kind::SignedDefaultNullable => cursor.default::<true, true>(int, of!(maybe)),
            Kind::UnsignedConstant | Kind::SignedConstant => cursor.constant(int, of!(int)),
            Kind::Int => cursor.any(int, slots, of!(maybe)),
            Kind::Decimal => cursor.decimal::<false>(decimal(head, node.word())?),
            Kind::DecimalNullable => cursor.decimal::<true>(decimal(head, node.word())?),
            Kind::Parts | Kind::PartsNullable => {
                let value = decimal(head, node.word())?;
                let parts = self.program.parts(op)?;
                cursor.parts(parts, slots, value, |c, int, slots, value| {
                    c.part(int, slots, value)
                })
            }
            Kind::Ascii => cursor.ascii::<false>(of!(text), longest),
            Kind::AsciiNullable => cursor.ascii::<true>(of!(text), longest),
            Kind::AsciiCopy => self.ascii_copy::<false>(op, of!(text), cursor),
            Kind::AsciiCopyNullable => self.ascii_copy::<true>(op, of!(text), cursor),
            Kind::AsciiDefault => cursor.ascii_default::<false>(of!(initial), of!(text), longest),
            Kind::AsciiDefaultNullable => {
                cursor.ascii_default::<true>(of!(initial), of!(text), longest)
            }
            Kind::AsciiConstant => (of!(text) == of!(initial)).then_some(()),
            Kind::Group | Kind::Sequence | Kind::Op => None,
        }
    }

    #[inline(always)]
    fn ascii_copy<const NULLABLE: bool>(
        &mut self,
        op: &Fused,
        text: Option<Ascii<'_>>,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        let text = match text {
            Some(Ascii::Long(text)) => return self.long_copy(op, text, cursor),
            Some(Ascii::Short(text)) => Some(text),
            None => None,
        };
        cursor.ascii_copy::<NULLABLE>(&op.int, self.slots, text)
    }

    #[inline(always)]
    fn long_copy(&mut self, op: &Fused, text: &[u8], cursor: &mut Cursor<'_>) -> Option<()> {
        let slot = Slot(op.int.slot);
        let state = self.slots.state(slot);
        if state == State::UNDEFINED && op.int.has_initial {
            return None;
        }
        let is_implied = state == op.int.state && *self.slots.text(slot, op.aux) == *text;
        if !is_implied {
            cursor.at = put_text(text, self.longest, cursor.room, cursor.at)?;
            self.slots.set_text(slot, op.aux, TextType::Ascii, text);
        }
        cursor.push_bit(!is_implied);
        Some(())
    }
}

/// Returns the integer of a node, or `None` for any other node.
#[inline(always)]
fn present(node: &Node, head: u64) -> Option<Option<u64>> {
    (head == INT).then(|| Some(node.word()))
}

/// Returns the integer of a node, or its absence. Returns `None` for any other node.
#[inline(always)]
const fn nullable(node: &Node, head: u64) -> Option<Option<u64>> {
    match head {
        INT => Some(Some(node.word())),
        ABSENT => Some(None),
        _ => None,
    }
}

/// Returns the string of a node, or its absence. Returns `None` for any other node.
#[inline(always)]
fn text<'m>(message: &'m Message, node: &'m Node, head: u64) -> Option<Option<Ascii<'m>>> {
    if head == ABSENT {
        return Some(None);
    }
    let bytes = || match message.content(node) {
        Content::Text(text) => text,
        _ => &[],
    };
    let len = Short::len(head);
    let is_text = len <= 8 || head == LONG;
    is_text.then(|| Some(Ascii::new(node.word(), len as usize, bytes)))
}

/// Returns the initial value of a string.
#[inline(always)]
fn initial<'p>(program: &'p Program, op: &Fused) -> Option<Ascii<'p>> {
    let all = || program.text_at(op.aux as usize);
    let len = op.int.min as usize;
    op.int
        .has_initial
        .then(|| Ascii::new(op.int.initial, len, all))
}

/// Returns the template of this index, or `None` to leave it to [`Run::by_ops`].
#[inline(always)]
pub(super) fn usual_template<'p>(
    program: &'p Program,
    previous: &Slots,
    index: u32,
) -> Option<&'p TemplateProgram> {
    let template = program.templates().get(index as usize)?;
    let has_id = template.id().is_some() || last_template(program, previous) == Some(index);
    (has_id && PresenceWriter::is_word(template.body().bits)).then_some(template)
}

/// Begins a message of a template: reserves space for its presence map, appends its identifier, and
/// clears what the template clears. Returns the number of bytes of the space, and the presence bits
/// so far.
#[inline(always)]
pub(super) fn header(
    program: &Program,
    previous: &mut Slots,
    template: &TemplateProgram,
    out: &mut Output,
) -> (usize, u64) {
    let index = template.index();
    let map_len = out.take_map(template.body().bits);
    let is_changed = last_template(program, previous) != Some(index);
    if is_changed {
        out.unsigned(template.id().unwrap_or_default().into());
    }
    previous.set_template(Some(index));
    if template.reset() != Reset::None {
        previous.reset();
    }
    if template.reset() == Reset::All {
        previous.set_template(None);
    }
    (map_len, 0b10 | u64::from(is_changed))
}
