//! The common part of encoding by straight-line code that was generated for the templates, and the
//! ops to which it leaves unusual values.

use super::fused::{header, usual_template};
use super::output::{Output, PresenceWriter};
use super::run::{Level, Run, Written};
use super::{Encoder, Previous};
use crate::decode::{Limits, Options};
use crate::error::{Bound, CodecError, Failure};
use crate::message::Message;
use crate::program::{Op, Program};
use crate::slots::{Rest, SlotsMut, Split, Value};
use crate::text_ref::SHORT;
use crate::typed::Member;

/// The target to which straight-line code encodes a message.
pub struct Target<'a> {
    program: &'a Program,
    rest: &'a mut Rest,
    out: &'a mut Output,
    /// The message for the values that are left to an op.
    message: &'a mut Message,
    options: &'a Options,
    /// The number of fields that the message may still have.
    fields_left: u32,
    failure: &'a mut Failure,
}

/// A message, a group, or an entry of a sequence, that straight-line code encodes.
pub trait Encoded<const N: usize> {
    /// Encodes the fields, as [`crate::typed::Typed::straight`] does.
    fn encode(&self, target: &mut Target<'_>, values: &mut [Value; N], map: u64) -> Option<u64>;
}

impl Encoder {
    /// Returns true if straight-line code can encode: vector kernels do not, and no option asks for
    /// what it does not do.
    pub(crate) const fn is_for_straight(&self) -> bool {
        let Options { limits, oracle, .. } = self.options;
        matches!(self.previous, Previous::Slots(_)) && !oracle && limits.text >= SHORT
    }

    /// Appends a message of the template of this index to `out`, by straight-line code that was
    /// generated for this very program. Returns the number of bytes, or `None` with the error in
    /// [`Self::failure`]. The code takes the previous values and the presence bits before its own,
    /// and returns all presence bits. The outer `None` is for a template that is left to the ops.
    #[inline(always)]
    pub(crate) fn encode_straight(
        &mut self,
        index: u32,
        out: &mut Vec<u8>,
        code: impl FnOnce(&mut Target<'_>, &mut [Value], u64) -> Option<u64>,
    ) -> Option<Option<usize>> {
        let Previous::Slots(slots) = &mut self.previous else {
            return None;
        };
        let template = usual_template(&self.program, slots, index)?;
        self.output.clear();
        let (map_len, map) = header(&self.program, slots, template, &mut self.output);
        let SlotsMut { values, rest } = slots.split();
        let mut target = Target {
            program: &self.program,
            rest,
            out: &mut self.output,
            message: &mut self.message,
            options: &self.options,
            fields_left: self.options.limits.fields,
            failure: &mut self.failure,
        };
        let Some(map) = code(&mut target, values, map) else {
            target.failure.add(|error| error.in_template(index));
            return Some(None);
        };
        target.out.put_first_map(map_len, map);
        let written = target.out.written();
        if written.len() > target.options.limits.message {
            let error = CodecError::beyond(Bound::Message, written.len());
            return Some(target.failure.set(error));
        }
        out.extend_from_slice(written);
        Some(Some(written.len()))
    }
}

impl Target<'_> {
    /// Exchanges the buffer of the output, and the number of bytes used.
    #[inline(always)]
    pub(super) const fn swap_room(&mut self, room: &mut Vec<u8>, at: &mut usize) {
        self.out.swap_room(room, at);
    }

    #[inline(always)]
    pub(super) const fn slots<'s>(&'s mut self, values: &'s mut [Value]) -> SlotsMut<'s> {
        SlotsMut::new(values, self.rest)
    }

    /// Returns the length in bytes of the longest string that is allowed.
    #[inline(always)]
    pub(super) const fn longest(&self) -> usize {
        self.options.limits.text
    }

    /// Counts fields against the limit. Returns `None` with the error if it is exceeded.
    #[inline(always)]
    pub(super) fn count_fields(&mut self, fields: u32) -> Option<()> {
        let Some(left) = self.fields_left.checked_sub(fields) else {
            let error = CodecError::beyond(Bound::Fields, self.out.len());
            return self.failure.set(error);
        };
        self.fields_left = left;
        Some(())
    }

    /// Returns the most entries that a sequence may have.
    #[inline(always)]
    pub(super) fn most_entries(&self) -> u64 {
        self.options.limits.entries.into()
    }

    /// Stores the error that the sequence of this op has too many entries, and returns `None`.
    #[cold]
    #[inline(never)]
    pub(super) fn too_many(&mut self, op: u32) -> Option<()> {
        let error = CodecError::beyond(Bound::Entries, self.out.len());
        let field = self.program.op_at(op).field();
        self.failure.set(error.in_field(field))
    }

    /// Encodes a member as the op of this number does, after these presence bits. Returns these
    /// bits and those of the op.
    #[cold]
    #[inline(never)]
    pub(super) fn member(
        &mut self,
        values: &mut [Value],
        op: u32,
        map: u64,
        member: &dyn Member,
    ) -> Option<u64> {
        self.field(values, op, map, |program, message| {
            let field = program.field(program.op_at(op).field());
            // It is of the type of the field.
            _ = message.scalar(program, field, member.scalar());
        })
    }

    /// Encodes a field that `fill` adds to a message, as [`Self::member`] does.
    pub(super) fn field(
        &mut self,
        values: &mut [Value],
        op: u32,
        map: u64,
        fill: impl FnOnce(&Program, &mut Message),
    ) -> Option<u64> {
        self.message.clear();
        fill(self.program, self.message);
        self.run(values, map, |run, map| {
            let end = run.message.nodes().len() as u32;
            run.op(
                run.program.op_at(op),
                &mut Level::new(run.message, 0, end),
                map,
            )
        })
    }

    /// Encodes the length of the sequence of this op, as [`Self::member`] does.
    #[cold]
    #[inline(never)]
    pub(super) fn length(
        &mut self,
        values: &mut [Value],
        op: u32,
        map: u64,
        length: Option<u64>,
    ) -> Option<u64> {
        self.run(values, map, |run, map| match run.program.op_at(op) {
            Op::Sequence { length: op, .. } => run.part(op, length, map),
            _ => Ok(()),
        })
    }

    fn run(
        &mut self,
        values: &mut [Value],
        map: u64,
        execute: impl FnOnce(&mut Run<'_, SlotsMut<'_>>, &mut PresenceWriter) -> Written,
    ) -> Option<u64> {
        let mut map = PresenceWriter::of_word(map);
        let mut run = Run {
            program: self.program,
            previous: &mut SlotsMut::new(values, self.rest),
            message: self.message,
            out: self.out,
            options: self.options,
            left: Limits {
                fields: self.fields_left,
                ..self.options.limits
            },
            failure: self.failure,
        };
        let result = execute(&mut run, &mut map);
        self.fields_left = run.left.fields;
        self.failure.keep(result)?;
        Some(map.word())
    }

    /// Encodes the entries of a sequence, that of this op. Each takes `bits` presence bits.
    #[inline(always)]
    pub(super) fn entries<const N: usize, T: Encoded<N>>(
        &mut self,
        values: &mut [Value; N],
        op: u32,
        bits: u32,
        entries: &[T],
    ) -> Option<()> {
        for (entry, index) in entries.iter().zip(0..) {
            if self.segment(values, bits, entry).is_none() {
                let field = self.program.op_at(op).field();
                self.failure.add(|error| error.in_entry(field, index));
                return None;
            }
        }
        Some(())
    }

    /// Encodes the group of this op, which takes `bits` presence bits.
    #[inline(always)]
    pub(super) fn group<const N: usize, T: Encoded<N>>(
        &mut self,
        values: &mut [Value; N],
        op: u32,
        bits: u32,
        group: &T,
    ) -> Option<()> {
        if self.segment(values, bits, group).is_none() {
            let field = self.program.op_at(op).field();
            self.failure.add(|error| error.in_field(field));
            return None;
        }
        Some(())
    }

    /// Encodes a group or an entry that takes `bits` presence bits.
    #[inline(always)]
    fn segment<const N: usize, T: Encoded<N>>(
        &mut self,
        values: &mut [Value; N],
        bits: u32,
        item: &T,
    ) -> Option<()> {
        let start = self.out.len();
        let map_len = self.out.take_map(bits);
        let map = item.encode(self, values, 1)?;
        if map_len != 0 {
            self.out.put_map(start, map_len, map);
        }
        Some(())
    }
}
