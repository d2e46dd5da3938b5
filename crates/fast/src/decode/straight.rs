//! The common part of decoding by straight-line code that was generated for the templates, and the
//! ops to which it leaves unusual values.

use super::cursor::Cursor;
use super::input::Input;
use super::presence::PresenceMap;
use super::run::Run;
use super::{Decoder, Limits, Previous};
use crate::error::{Bound, CodecError, ErrorCode, Failure};
use crate::previous::PreviousValues;
use crate::program::{Body, FieldId, Op, Program, Reset};
use crate::slots::{Rest, SlotsMut, Split, Value};
use crate::state::State;
use crate::text_ref::SHORT;
use crate::typed::{Filling, Members, Text};
use fanfare_wire::stopbit::{self, Squeeze};

/// The stream up to where a message is decoded, and the limits that are left.
pub struct Stream<'a> {
    program: &'a Program,
    rest: &'a mut Rest,
    scratch: &'a mut Vec<u8>,
    bytes: &'a [u8],
    strict: bool,
    left: Limits,
    failure: &'a mut Failure,
    squeeze: Squeeze,
    /// The generation of the previous values. A stamp is this plus the state.
    generation: u32,
}

impl Decoder {
    /// Decodes one message at the front of `bytes` as [`Self::decode_visited`] does, by
    /// straight-line code that was generated for this very program. The code takes the index of the
    /// template, the previous values, the offset of the fields, and their presence bits. The outer
    /// `None` is for a message with an unusual header, of which nothing is done.
    #[inline(always)]
    pub(crate) fn decode_straight(
        &mut self,
        bytes: &[u8],
        code: impl FnOnce(&mut Stream<'_>, u32, &mut [Value], (usize, u64)) -> Option<usize>,
    ) -> Option<Option<usize>> {
        let Previous::Slots(slots) = &mut self.previous else {
            return None;
        };
        let cut = bytes.len().min(self.options.limits.message);
        let SlotsMut { values, rest } = slots.split();
        let mut stream = Stream {
            program: &self.program,
            generation: 0,
            rest,
            scratch: &mut self.scratch,
            bytes: bytes.get(..cut).unwrap_or_default(),
            strict: self.options.strict,
            left: self.options.limits,
            failure: &mut self.lanes.failure,
            squeeze: self.squeeze,
        };
        let (template, place) = stream.header(values)?;
        let len = code(&mut stream, template, values, place);
        if len.is_none() {
            stream.failed(template, bytes.len());
        }
        Some(len)
    }
}

impl<'a> Stream<'a> {
    /// Reads the presence map and the template identifier, and clears what the template clears.
    /// Returns the index of the template, and the offset of its fields with their presence bits.
    /// Returns `None`, with nothing changed, for an unusual header.
    #[inline(always)]
    fn header(&mut self, values: &mut [Value]) -> Option<(u32, (usize, u64))> {
        let mut cursor = self.cursor(0)?;
        cursor.presence_map()?;
        let index = match cursor.take_bit() {
            true => self.program.index_of(cursor.identifier()?)?,
            false => SlotsMut::new(values, self.rest).template()?,
        };
        let template = self.program.templates().get(index as usize)?;
        let mut previous = SlotsMut::new(values, self.rest);
        previous.set_template(Some(index));
        if template.reset() != Reset::None {
            previous.reset();
        }
        if template.reset() == Reset::All {
            previous.set_template(None);
        }
        self.generation = self.rest.stamp(State::UNDEFINED);
        Some((index, self.place(cursor)))
    }

    #[inline(always)]
    pub(super) const fn generation(&self) -> u32 {
        self.generation
    }

    #[inline(always)]
    pub(super) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline(always)]
    pub(super) const fn squeeze(&self) -> Squeeze {
        self.squeeze
    }

    /// Returns a cursor at an offset, without presence bits.
    #[inline(always)]
    fn cursor(&self, at: usize) -> Option<Cursor<'a>> {
        Some(Cursor {
            rest: self.bytes.get(at..)?,
            map: 0,
            squeeze: self.squeeze,
        })
    }

    /// Returns the offset of a cursor, and its presence bits.
    #[inline(always)]
    const fn place(&self, cursor: Cursor<'_>) -> (usize, u64) {
        (self.bytes.len() - cursor.rest.len(), cursor.map)
    }

    /// Reads a presence map. Returns the offset after it with its bits, or `None` for an unusual
    /// one.
    #[inline(always)]
    pub(super) fn map(&self, at: usize) -> Option<(usize, u64)> {
        let mut cursor = self.cursor(at)?;
        cursor.presence_map()?;
        Some(self.place(cursor))
    }

    /// Counts fields against the limit. Returns `None` with the error if it is exceeded.
    #[inline(always)]
    pub(super) fn count_fields(&mut self, count: u32, at: usize) -> Option<()> {
        let Some(left) = self.left.fields.checked_sub(count) else {
            return self.failure.set(CodecError::beyond(Bound::Fields, at));
        };
        self.left.fields = left;
        Some(())
    }

    /// Counts a string of `len` bytes against the limit. Returns false, with nothing counted, if it
    /// is exceeded.
    #[inline(always)]
    pub(super) const fn count_text(&mut self, len: usize) -> bool {
        match self.left.texts.checked_sub(len) {
            Some(left) => {
                self.left.texts = left;
                true
            }
            None => false,
        }
    }

    /// Sets a text to the string of more than eight bytes that is next, and returns the bytes after
    /// it. Returns `None`, with nothing done, for any other string, or for one beyond a limit.
    #[inline(never)]
    pub(super) fn long<'b>(&mut self, bytes: &'b [u8], text: &mut Text) -> Option<&'b [u8]> {
        let (string, behind) = bytes.split_at_checked(stopbit::entity_end(bytes, 0)?)?;
        let is_long = string.len() > SHORT && string.first() != Some(&0);
        if !is_long || string.len() > self.left.text || !self.count_text(string.len()) {
            return None;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(string);
        *self.scratch.last_mut()? &= 0x7f;
        text.set(self.scratch);
        Some(behind)
    }

    /// Executes an op as [`Self::op`] does, for a value that straight-line code leaves to it.
    #[cold]
    #[inline(never)]
    pub(super) fn unusual(
        &mut self,
        values: &mut [Value],
        number: u32,
        place: (usize, u64),
        members: &mut dyn Members,
    ) -> Option<(usize, u64)> {
        self.op(values, number, place, members)
    }

    /// Executes the op of this number from this place on, and returns the place after it.
    #[inline(never)]
    pub(super) fn op(
        &mut self,
        values: &mut [Value],
        number: u32,
        (at, map): (usize, u64),
        members: &mut dyn Members,
    ) -> Option<(usize, u64)> {
        let mut left = 0;
        let at = self.run(values, at, |run| {
            let mut map = PresenceMap::of_word(map);
            let op = run.program.op_at(number);
            run.op(op, &mut map, &mut Filling::new(members))?;
            left = map.word();
            Ok(())
        })?;
        Some((at, left))
    }

    /// Executes the ops inside the group or sequence of this op, with their presence map, and
    /// returns the offset after them.
    #[cold]
    #[inline(never)]
    pub(super) fn nested(
        &mut self,
        values: &mut [Value],
        number: u32,
        at: usize,
        members: &mut dyn Members,
    ) -> Option<usize> {
        let body = self.body(number)?;
        self.run(values, at, |run| {
            run.nested(body, &mut Filling::new(members))
        })
    }

    fn body(&self, number: u32) -> Option<Body> {
        match self.program.op_at(number) {
            Op::Group { body, .. } | Op::Sequence { body, .. } => Some(*body),
            _ => None,
        }
    }

    /// Executes something op by op from this offset on, and returns the offset after it.
    fn run(
        &mut self,
        values: &mut [Value],
        at: usize,
        execute: impl FnOnce(&mut Run<'_, SlotsMut<'_>>) -> Result<(), CodecError>,
    ) -> Option<usize> {
        let mut previous = SlotsMut::new(values, self.rest);
        let mut run = Run {
            program: self.program,
            previous: &mut previous,
            scratch: self.scratch,
            input: Input::new(self.bytes, at, self.strict, self.left.text),
            left: self.left,
            template: None,
            squeeze: self.squeeze,
            failure: self.failure,
        };
        let result = execute(&mut run);
        let (at, left) = (run.input.at, run.left);
        self.left = left;
        self.generation = self.rest.stamp(State::UNDEFINED);
        self.failure.keep(result)?;
        Some(at)
    }

    /// Checks that a sequence may have a number of entries. Returns `None` with the error if it may
    /// not.
    #[inline(always)]
    pub(super) fn may_have(&mut self, op: u32, count: u32, at: usize) -> Option<()> {
        if count > self.left.entries {
            let error = CodecError::beyond(Bound::Entries, at).in_field(self.field(op));
            return self.failure.set(error);
        }
        Some(())
    }

    /// Returns `None` with the error for a strict decoder: presence bits are left over (R8).
    #[cold]
    #[inline(never)]
    pub(super) fn has_more(&mut self, map_at: usize) -> Option<()> {
        if self.strict {
            return self.failure.set(CodecError::new(ErrorCode::R8, map_at));
        }
        Some(())
    }

    fn field(&self, op: u32) -> FieldId {
        self.program.op_at(op).field()
    }

    /// Adds to the error the entry of the sequence of this op.
    #[cold]
    #[inline(never)]
    pub(super) fn in_entry(&mut self, op: u32, index: u32) {
        let field = self.field(op);
        self.failure.add(|error| error.in_entry(field, index));
    }

    /// Adds to the error the group of this op.
    #[cold]
    #[inline(never)]
    pub(super) fn in_group(&mut self, op: u32) {
        let field = self.field(op);
        self.failure.add(|error| error.in_field(field));
    }

    /// Adds to the error the template, and changes it from Truncated to Limit if the limit cut the
    /// message.
    #[cold]
    #[inline(never)]
    fn failed(&mut self, template: u32, len: usize) {
        let is_cut = self.bytes.len() < len;
        self.failure.add(|error| match is_cut {
            true => error.cut_by_limit().in_template(template),
            false => error.in_template(template),
        });
    }
}
