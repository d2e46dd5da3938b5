//! The parts of straight-line encoders. Generated code calls them for the fields of a message, one
//! after the other, each with the constants of its op.
//!
//! [`Writer`] keeps the space ahead, the presence bits and the previous values, and all of it is
//! inlined. For an operator it calls what the fused executor calls ([`Cursor`]), with constants for
//! all that the executor reads from its op. An unusual value is left to the op of the program, with
//! nothing changed until then.

use super::cursor::{Ascii, Cursor};
use super::straight::{Encoded, Target};
use crate::decode::reader::Operator;
use crate::message::Message;
use crate::program::Program;
use crate::program::fused::{Int, Operation};
use crate::slots::{SlotsMut, Value};
use crate::state::State;
use crate::text_ref::front;
use crate::typed::{DecimalMember, Entries, Integer, Member, Text, TextMember};
use crate::value::TextType;

/// A writer of the fields of a message, a group or an entry. Its methods return `None` with the
/// error in the target. Their `op` is the number of the field's op.
pub struct Writer<'w, 'a, const N: usize> {
    target: &'w mut Target<'a>,
    values: &'w mut [Value; N],
    /// The buffer of the output, which is here meanwhile, and the number of bytes used.
    room: Vec<u8>,
    at: usize,
    /// The presence bits so far, below a marker bit.
    map: u64,
}

impl<'w, 'a, const N: usize> Writer<'w, 'a, N> {
    /// Returns a writer for a segment of `ops` ops after these presence bits, which are below a
    /// marker bit.
    #[inline(always)]
    pub fn new(
        target: &'w mut Target<'a>,
        values: &'w mut [Value; N],
        map: u64,
        ops: u32,
    ) -> Option<Self> {
        target.count_fields(ops + 1)?;
        let mut writer = Self {
            target,
            values,
            room: Vec::new(),
            at: 0,
            map,
        };
        writer.go_on();
        Some(writer)
    }

    /// Returns the presence bits, below a marker bit.
    #[inline(always)]
    pub fn end(mut self) -> Option<u64> {
        self.leave();
        Some(self.map)
    }

    /// Puts the buffer back into the output.
    #[inline(always)]
    const fn leave(&mut self) {
        self.target.swap_room(&mut self.room, &mut self.at);
    }

    /// Takes the buffer of the output, to go on after what was written to it meanwhile.
    #[inline(always)]
    const fn go_on(&mut self) {
        self.target.swap_room(&mut self.room, &mut self.at);
    }

    /// Executes a step of the fused executor. Returns false, with nothing changed, if the step
    /// leaves the value to the op.
    #[inline(always)]
    fn step(
        &mut self,
        write: impl FnOnce(&mut Cursor<'_>, &mut SlotsMut<'_>) -> Option<()>,
    ) -> bool {
        let mut cursor = Cursor {
            room: &mut self.room,
            at: self.at,
            map: self.map,
        };
        let done = write(&mut cursor, &mut self.target.slots(self.values));
        (self.at, self.map) = (cursor.at, cursor.map);
        done.is_some()
    }

    /// Writes a member as the op of the program does.
    #[inline(always)]
    pub fn member(&mut self, member: &dyn Member, op: u32) -> Option<()> {
        self.leave();
        self.map = self.target.member(self.values, op, self.map, member)?;
        self.go_on();
        Some(())
    }

    /// Writes a member by the op, unless it is done.
    #[inline(always)]
    fn or_op(&mut self, is_done: bool, member: &dyn Member, op: u32) -> Option<()> {
        match is_done {
            true => Some(()),
            false => self.member(member, op),
        }
    }

    /// Writes a field that `fill` adds to a message, as the op of the program does.
    #[inline(always)]
    pub fn field(&mut self, op: u32, fill: impl FnOnce(&Program, &mut Message)) -> Option<()> {
        self.leave();
        self.map = self.target.field(self.values, op, self.map, fill)?;
        self.go_on();
        Some(())
    }

    /// Writes an integer.
    #[inline(always)]
    pub fn int<M: Integer>(&mut self, operator: Operator, member: &M, op: u32) -> Option<()> {
        let (int, value) = (int::<M>(operator), member.get());
        let is_done = self.step(|cursor, slots| cursor.int(&int, slots, value));
        self.or_op(is_done, member, op)
    }

    /// Writes a decimal without operators.
    #[inline(always)]
    pub fn decimal<M: DecimalMember>(&mut self, member: &M, op: u32) -> Option<()> {
        let value = member.get();
        let is_done = self.step(|cursor, _| match M::OPTIONAL {
            true => cursor.decimal::<true>(value),
            false => cursor.decimal::<false>(value),
        });
        self.or_op(is_done, member, op)
    }

    /// Writes a decimal whose exponent and mantissa have operators of their own.
    #[inline(always)]
    pub fn parts<M: DecimalMember>(
        &mut self,
        exponent: Operator,
        mantissa: Operator,
        member: &M,
        op: u32,
    ) -> Option<()> {
        let exponent = match M::OPTIONAL {
            true => int::<Option<i32>>(exponent),
            false => int::<i32>(exponent),
        };
        let (parts, value) = ([exponent, int::<i64>(mantissa)], member.get());
        let is_done = self.step(|cursor, slots| {
            cursor.parts(&parts, slots, value, |cursor, int, slots, value| {
                cursor.int(int, slots, value)
            })
        });
        self.or_op(is_done, member, op)
    }

    /// Writes an ASCII string without an operator.
    #[inline(always)]
    pub fn ascii<M: TextMember>(&mut self, member: &M, op: u32) -> Option<()> {
        let longest = self.target.longest();
        let text = member.text();
        let chars = text.map(ascii);
        let is_done = self.step(|cursor, _| match M::OPTIONAL {
            true => cursor.ascii::<true>(chars, longest),
            false => cursor.ascii::<false>(chars, longest),
        });
        self.or_op(is_done, member, op)
    }

    /// Writes an ASCII string with the default operator.
    #[inline(always)]
    pub fn ascii_default<M: TextMember>(
        &mut self,
        initial: Option<&'static [u8]>,
        member: &M,
        op: u32,
    ) -> Option<()> {
        let longest = self.target.longest();
        let text = member.text();
        let chars = text.map(ascii);
        let initial = initial.map(|text| Ascii::new(front(text), text.len(), || text));
        let is_done = self.step(|cursor, _| match M::OPTIONAL {
            true => cursor.ascii_default::<true>(initial, chars, longest),
            false => cursor.ascii_default::<false>(initial, chars, longest),
        });
        self.or_op(is_done, member, op)
    }

    /// Writes an ASCII string with the copy operator.
    #[inline(always)]
    pub fn ascii_copy<M: TextMember>(
        &mut self,
        slot: usize,
        initial: Option<&'static [u8]>,
        member: &M,
        op: u32,
    ) -> Option<()> {
        let text = member.text();
        let int = Int {
            state: State::text(TextType::Ascii),
            slot: slot as u32,
            initial: initial.map_or(0, front),
            has_initial: initial.is_some(),
            min: initial.map_or(0, |text| text.len() as u64),
            ..Int::NONE
        };
        let is_done = self.step(|cursor, slots| {
            let short = match text.map(ascii) {
                Some(Ascii::Short(text)) => Some(text),
                Some(Ascii::Long(_)) => return None,
                None => None,
            };
            match M::OPTIONAL {
                true => cursor.ascii_copy::<true>(&int, slots, short),
                false => cursor.ascii_copy::<false>(&int, slots, short),
            }
        });
        self.or_op(is_done, member, op)
    }

    /// Writes a group that takes `bits` presence bits.
    #[inline(always)]
    pub fn group<T: Encoded<N>>(&mut self, group: &T, op: u32, bits: u32) -> Option<()> {
        self.leave();
        self.target.group(self.values, op, bits, group)?;
        self.go_on();
        Some(())
    }

    /// Writes an optional group.
    #[inline(always)]
    pub fn maybe_group<T: Encoded<N>>(
        &mut self,
        group: Option<&T>,
        op: u32,
        bits: u32,
    ) -> Option<()> {
        self.map = self.map << 1 | u64::from(group.is_some());
        group.map_or(Some(()), |group| self.group(group, op, bits))
    }

    /// Writes a sequence whose length is of the type `M`, and whose entries take `bits` presence
    /// bits.
    #[inline(always)]
    pub fn entries<M: Integer, T: Encoded<N>>(
        &mut self,
        length: Operator,
        entries: Option<&Entries<T>>,
        op: u32,
        bits: u32,
    ) -> Option<()> {
        let (int, count) = (
            int::<M>(length),
            entries.map(|entries| entries.len() as u64),
        );
        if count.is_some_and(|count| count > self.target.most_entries()) {
            self.leave();
            return self.target.too_many(op);
        }
        let is_done = self.step(|cursor, slots| cursor.int(&int, slots, count));
        self.leave();
        if !is_done {
            self.map = self.target.length(self.values, op, self.map, count)?;
        }
        let entries = entries.map_or(&[][..], |entries| entries);
        self.target.entries(self.values, op, bits, entries)?;
        self.go_on();
        Some(())
    }
}

/// Returns an integer with its operator, all of which is known when the code is compiled.
#[inline(always)]
fn int<M: Integer>(operator: Operator) -> Int {
    let (operation, slot, initial) = match operator {
        Operator::None => (Operation::None, 0, None),
        Operator::Fixed(value) | Operator::Constant(value) => (Operation::Constant, 0, Some(value)),
        Operator::Default(initial) => (Operation::Default, 0, initial),
        Operator::Copy(slot, initial) => (Operation::Copy, slot, initial),
        Operator::Increment(slot, initial) => (Operation::Increment, slot, initial),
        Operator::Delta(slot, base) => (Operation::delta(M::TYPE), slot, Some(base)),
    };
    Int::new(operation, (M::TYPE, M::OPTIONAL), slot as u32, initial)
}

#[inline(always)]
fn ascii(text: &Text) -> Ascii<'_> {
    let (bits, len) = text.short();
    Ascii::new(bits, len, || text)
}
