//! The parts of straight-line decoders. Generated code calls them for the fields of a message, one
//! after the other, each with the constants of its op.
//!
//! [`Reader`] keeps the bytes ahead, the presence bits and the previous values, and all of it is
//! inlined. A method returns false for an unusual value, with nothing changed but the member: for
//! an entity of nine bytes and more, a previous value of another type, and everything that breaks a
//! rule. Generated code then calls [`Reader::op`], which executes the op of the program, from its
//! beginning, in the general way. So there is one place that knows errors, limits and what a
//! lenient decoder lets pass.

use super::straight::Stream;
use crate::slots::Value;
use crate::state::State;
use crate::typed::{DecimalMember, Entries, Integer, Members, Optional, TextMember};
use crate::value::{Decimal, EXPONENTS, IntType, TextType};
use fanfare_wire::lanes::MAX_CHARS;
use fanfare_wire::stopbit::{self, Several};

/// The operator of an integer, with the slot of its previous value.
#[derive(Debug, Clone, Copy)]
pub enum Operator {
    /// No operator: the value is always in the stream.
    None,
    /// A mandatory constant, with its value: a part of a decimal, or a length.
    Fixed(u64),
    /// An optional constant, with its value.
    Constant(u64),
    /// The default operator, with the initial value.
    Default(Option<u64>),
    /// The copy operator.
    Copy(usize, Option<u64>),
    /// The increment operator.
    Increment(usize, Option<u64>),
    /// The delta operator, with the base if the previous value is undefined.
    Delta(usize, u64),
}

impl Operator {
    const fn slot(self) -> Option<usize> {
        match self {
            Self::Copy(slot, _) | Self::Increment(slot, _) | Self::Delta(slot, _) => Some(slot),
            _ => None,
        }
    }

    const fn bits(self) -> u32 {
        match self {
            Self::None | Self::Fixed(_) | Self::Delta(..) => 0,
            _ => 1,
        }
    }
}

/// A reader of the fields of a message, a group or an entry.
pub struct Reader<'r, 'a, const N: usize> {
    stream: &'r mut Stream<'a>,
    values: &'r mut [Value; N],
    /// The bytes that are not read yet.
    bytes: &'a [u8],
    /// The presence bits, the first one topmost.
    map: u64,
    /// The number of bits that are taken, which is known when the code is compiled.
    taken: u32,
    /// The start of the op.
    start: Start<'a>,
    /// The offset of the presence map.
    map_at: usize,
}

/// The start of an op.
#[derive(Clone, Copy)]
struct Start<'a> {
    bytes: &'a [u8],
    taken: u32,
}

/// A group, or an entry of a sequence, that straight-line code reads.
pub trait Segment<const N: usize>: Members {
    /// Reads the segment. Its presence map begins at `map_at` and its fields at `at`. The presence
    /// bits are in `map`, the first one topmost. Returns the offset after the segment, or `None`
    /// with the error in the stream.
    fn straight(
        &mut self,
        stream: &mut Stream<'_>,
        values: &mut [Value; N],
        map_at: usize,
        at: usize,
        map: u64,
    ) -> Option<usize>;
}

/// The value of an integer. The outer `None` is for an unusual one.
type Usual = Option<Option<u64>>;

impl<'r, 'a, const N: usize> Reader<'r, 'a, N> {
    /// Returns a reader for a segment of `ops` ops that begins here ([`Segment::straight`]).
    /// Returns `None`, with the error in the stream, if the message has too many fields.
    #[inline(always)]
    pub fn new(
        stream: &'r mut Stream<'a>,
        values: &'r mut [Value; N],
        (map_at, at, map): (usize, usize, u64),
        ops: u32,
    ) -> Option<Self> {
        stream.count_fields(ops + 1, at)?;
        let bytes = stream.bytes().get(at..)?;
        Some(Self {
            stream,
            values,
            bytes,
            map,
            taken: 0,
            start: Start { bytes, taken: 0 },
            map_at,
        })
    }

    /// Ends the message, and returns the offset after it. Returns `None`, with the error in the
    /// stream, if presence bits are left over (R8).
    #[inline(always)]
    pub fn end(self) -> Option<usize> {
        if below(self.map, self.taken) != 0 {
            self.stream.has_more(self.map_at)?;
        }
        Some(self.at())
    }

    /// Ends fields that have no presence map, and returns the offset after them.
    #[inline(always)]
    pub fn end_without_map(self) -> Option<usize> {
        Some(self.at())
    }

    /// Returns the number of bytes of the message that are read.
    #[inline(always)]
    fn at(&self) -> usize {
        self.stream.bytes().len() - self.bytes.len()
    }

    /// Executes the op of this number in the general way, from where the last method began. Returns
    /// `None` with the error in the stream.
    #[inline(always)]
    pub fn op(&mut self, number: u32, members: &mut dyn Members) -> Option<()> {
        let at = self.stream.bytes().len() - self.start.bytes.len();
        let map = below(self.map, self.start.taken);
        let there = self
            .stream
            .unusual(self.values, number, (at, map), members)?;
        self.go_on(there)
    }

    /// Goes on after an op that was executed in the general way.
    #[inline(always)]
    fn go_on(&mut self, (at, map): (usize, u64)) -> Option<()> {
        self.bytes = self.stream.bytes().get(at..)?;
        // How many bits are taken stays what is known of it.
        self.map = map.checked_shr(self.taken).unwrap_or(0);
        Some(())
    }

    /// Executes op `number`, which takes `bits` presence bits, in the general way.
    #[inline(always)]
    pub fn by_op(&mut self, number: u32, bits: u32, members: &mut dyn Members) -> Option<()> {
        let place = (self.at(), below(self.map, self.taken));
        self.taken += bits;
        let there = self.stream.op(self.values, number, place, members)?;
        self.go_on(there)
    }

    #[inline(always)]
    const fn begin(&mut self) {
        let (bytes, taken) = (self.bytes, self.taken);
        self.start = Start { bytes, taken };
    }

    /// Skips `count` absent fields of one byte each, eight at most. Returns false, with none
    /// skipped, if fewer come next.
    #[inline(always)]
    pub fn absent(&mut self, count: usize) -> bool {
        let is_null = self.bytes.first() == Some(&0x80);
        if !is_null || stopbit::leading_nulls(self.bytes) < count {
            return false;
        }
        self.bytes = self.bytes.get(count..).unwrap_or_default();
        true
    }

    /// Takes the next presence bit.
    #[inline(always)]
    pub fn bit(&mut self) -> bool {
        let bit = below(self.map, self.taken) >> 63 != 0;
        self.taken += 1;
        bit
    }

    /// Reads a signed integer that is not overlong.
    #[inline(always)]
    fn signed(&mut self) -> Option<i64> {
        let (first, behind) = self.bytes.split_first()?;
        if first & 0x80 != 0 {
            self.bytes = behind;
            return Some(one_signed(*first));
        }
        let several = self.several()?;
        if several.is_overlong_signed() {
            return None;
        }
        Some(several.signed(self.stream.squeeze()))
    }

    #[inline(always)]
    fn several(&mut self) -> Option<Several> {
        let (several, behind) = stopbit::split_several(self.bytes)?;
        self.bytes = behind;
        Some(several)
    }

    /// Reads an integer.
    #[inline(always)]
    pub fn int<M: Integer>(&mut self, operator: Operator, member: &mut M) -> bool {
        self.begin();
        let value = self.value::<M>(operator);
        self.taken = self.start.taken + operator.bits();
        let Some(value) = value else {
            return false;
        };
        member.set(value);
        true
    }

    #[inline(always)]
    fn value<M: Integer>(&mut self, operator: Operator) -> Usual {
        match operator {
            Operator::None => self.plain::<M>(),
            Operator::Fixed(value) => Some(Some(value)),
            Operator::Constant(value) => Some(self.bit().then_some(value)),
            Operator::Default(initial) => match self.bit() {
                true => self.plain::<M>(),
                false => Some(initial),
            },
            Operator::Copy(slot, initial) => match self.bit() {
                true => self.assigned::<M>(slot),
                false => self.implied::<M>(slot, initial, |bits| bits),
            },
            Operator::Increment(slot, initial) => match self.bit() {
                true => self.assigned::<M>(slot),
                false => self.implied::<M>(slot, initial, following::<M>),
            },
            Operator::Delta(slot, initial) => self.delta::<M>(slot, initial),
        }
    }

    /// Reads an integer that is in the stream.
    #[inline(always)]
    fn plain<M: Integer>(&mut self) -> Usual {
        let (first, behind) = self.bytes.split_first()?;
        if first & 0x80 == 0 {
            return self.plain_several::<M>();
        }
        self.bytes = behind;
        // A value of one byte is within the bounds of every type.
        let value = match M::TYPE.is_signed() {
            true => one_signed(*first),
            false => i64::from(first & 0x7f),
        };
        Some(match M::OPTIONAL {
            true if value == 0 => None,
            true => Some((value - i64::from(value > 0)) as u64),
            false => Some(value as u64),
        })
    }

    #[inline(always)]
    fn plain_several<M: Integer>(&mut self) -> Usual {
        let several = self.several()?;
        let how = self.stream.squeeze();
        // What is not overlong is not 0.
        let value = match (M::TYPE.is_signed(), M::OPTIONAL) {
            (true, _) if several.is_overlong_signed() => return None,
            (false, _) if several.is_overlong() => return None,
            (true, false) => several.signed(how) as u64,
            (true, true) => {
                let value = several.signed(how);
                (value - i64::from(value > 0)) as u64
            }
            (false, false) => several.unsigned(how),
            (false, true) => several.unsigned(how) - 1,
        };
        M::TYPE.holds_bits(value).then_some(Some(value))
    }

    #[inline(always)]
    const fn stamp(&self, state: State) -> u32 {
        self.stream.generation().wrapping_add(state.number() as u32)
    }

    /// Reads an integer that becomes the previous value.
    #[inline(always)]
    fn assigned<M: Integer>(&mut self, slot: usize) -> Usual {
        let value = self.plain::<M>()?;
        let (stamp, empty) = (self.stamp(State::int(M::TYPE)), self.stamp(State::EMPTY));
        let previous = &mut self.values[slot];
        match value {
            Some(bits) => (previous.bits, previous.stamp) = (bits, stamp),
            None => previous.stamp = empty,
        }
        Some(value)
    }

    /// Returns what a previous value is to an op that expects this state.
    #[inline(always)]
    const fn previous(&self, slot: usize, state: State) -> Previous {
        let expected = state.number() as u32;
        match self.values[slot]
            .stamp
            .wrapping_sub(self.stream.generation())
        {
            state if state == expected => Previous::Assigned,
            0..=0xff => Previous::Other,
            _ => Previous::Undefined,
        }
    }

    /// Returns the value of a field that is not in the stream, given by the previous value.
    #[inline(always)]
    fn implied<M: Integer>(
        &mut self,
        slot: usize,
        initial: Option<u64>,
        next: impl FnOnce(u64) -> u64,
    ) -> Usual {
        let state = State::int(M::TYPE);
        let bits = match (self.previous(slot, state), initial) {
            (Previous::Assigned, _) => next(self.values[slot].bits),
            (Previous::Undefined, Some(initial)) => initial,
            _ => return self.implied_absence::<M>(slot, initial.is_some()),
        };
        let stamp = self.stamp(state);
        let previous = &mut self.values[slot];
        (previous.bits, previous.stamp) = (bits, stamp);
        Some(Some(bits))
    }

    /// Returns the value if the previous one is empty, or undefined without an initial value.
    #[inline(always)]
    const fn implied_absence<M: Integer>(&mut self, slot: usize, has_initial: bool) -> Usual {
        match self.is_absent(slot, M::OPTIONAL, has_initial) {
            true => Some(None),
            false => None,
        }
    }

    /// Makes the previous value of an optional field empty, if it is empty, or undefined without an
    /// initial value. Returns false, with nothing changed, in any other case.
    #[inline(always)]
    const fn is_absent(&mut self, slot: usize, optional: bool, has_initial: bool) -> bool {
        let empty = self.stamp(State::EMPTY);
        let is_empty = match self.previous(slot, State::EMPTY) {
            Previous::Assigned => true,
            Previous::Other => false,
            Previous::Undefined => !has_initial,
        };
        if optional && is_empty {
            self.values[slot].stamp = empty;
        }
        optional && is_empty
    }

    /// Reads a delta to the previous value, which the sum replaces.
    #[inline(always)]
    fn delta<M: Integer>(&mut self, slot: usize, initial: u64) -> Usual {
        let mut difference = self.signed()?;
        if M::OPTIONAL {
            if difference == 0 {
                return Some(None);
            }
            difference -= i64::from(difference > 0);
        }
        let state = State::int(M::TYPE);
        let base = match self.previous(slot, state) {
            Previous::Assigned => self.values[slot].bits,
            Previous::Undefined => initial,
            Previous::Other => return None,
        };
        let bits = match M::TYPE {
            IntType::UInt64 => base.checked_add_signed(difference)?,
            IntType::Int64 => (base as i64).checked_add(difference)? as u64,
            // A base of at most 32 bits and a difference of at most 56.
            _ => base.wrapping_add_signed(difference),
        };
        if !M::TYPE.holds_bits(bits) {
            return None;
        }
        let stamp = self.stamp(state);
        let previous = &mut self.values[slot];
        (previous.bits, previous.stamp) = (bits, stamp);
        Some(Some(bits))
    }

    /// Reads a decimal without operators.
    #[inline(always)]
    pub fn decimal<M: DecimalMember>(&mut self, member: &mut M) -> bool {
        self.begin();
        // An exponent within its range takes one byte, but for 63 where it may be absent.
        let Some((first, behind)) = self.bytes.split_first() else {
            return false;
        };
        self.bytes = behind;
        let mut exponent = one_signed(*first);
        if M::OPTIONAL {
            if *first == 0x80 {
                member.set(None);
                return true;
            }
            exponent -= i64::from(exponent > 0);
        }
        if first & 0x80 == 0 || exponent < (*EXPONENTS.start()).into() {
            return false;
        }
        let Some(mantissa) = self.signed() else {
            return false;
        };
        let exponent = exponent as i8;
        member.set(Some(Decimal { mantissa, exponent }));
        true
    }

    /// Reads a decimal whose exponent and mantissa have operators of their own.
    #[inline(always)]
    pub fn parts<M: DecimalMember>(
        &mut self,
        exponent: Operator,
        mantissa: Operator,
        member: &mut M,
    ) -> bool {
        self.begin();
        // The exponent's previous value, as it was if the op is to begin again.
        let before = exponent.slot().map(|slot| (slot, self.values[slot]));
        let value = self.both_parts::<M>(exponent, mantissa);
        self.taken = self.start.taken + exponent.bits() + mantissa.bits();
        let Some(value) = value else {
            if let Some((slot, before)) = before {
                self.values[slot] = before;
            }
            return false;
        };
        if value.is_none() && mantissa.bits() != 0 {
            // An absent decimal has no bit for its mantissa: the bit belongs to the next field.
            self.map >>= 1;
        }
        member.set(value);
        true
    }

    #[inline(always)]
    fn both_parts<M: DecimalMember>(
        &mut self,
        exponent: Operator,
        mantissa: Operator,
    ) -> Option<Option<Decimal>> {
        let exponent = match M::OPTIONAL {
            true => self.value::<Option<i32>>(exponent)?,
            false => self.value::<i32>(exponent)?,
        };
        let Some(exponent) = exponent else {
            return Some(None);
        };
        if !EXPONENTS.contains(&(exponent as i32)) {
            return None;
        }
        let exponent = exponent as i8;
        let mantissa = self.value::<i64>(mantissa)?.unwrap_or_default() as i64;
        Some(Some(Decimal { mantissa, exponent }))
    }

    /// Reads an ASCII string without an operator.
    #[inline(always)]
    pub fn ascii<M: TextMember>(&mut self, member: &mut M) -> bool {
        self.begin();
        self.plain_ascii(member)
    }

    /// Reads an ASCII string with the default operator.
    #[inline(always)]
    pub fn ascii_default<M: TextMember>(
        &mut self,
        initial: Option<&'static [u8]>,
        member: &mut M,
    ) -> bool {
        self.begin();
        if self.bit() {
            return self.plain_ascii(member);
        }
        let Some(initial) = initial else {
            member.clear();
            return M::OPTIONAL;
        };
        let is_counted = self.stream.count_text(initial.len().max(MAX_CHARS));
        if is_counted {
            member.text_mut().set(initial);
        }
        is_counted
    }

    #[inline(always)]
    fn plain_ascii<M: TextMember>(&mut self, member: &mut M) -> bool {
        match self.chars() {
            Some(Chars::None) if M::OPTIONAL => {
                member.clear();
                true
            }
            Some(Chars::None) => self.one(0, member),
            Some(Chars::One(char)) => self.one(char, member),
            Some(Chars::Several(several)) => {
                let (bytes, len) = several.chars();
                self.short(bytes, len, member)
            }
            None => self.long(member),
        }
    }

    /// Reads a string of up to eight characters without a zero preamble. Returns `None`, with
    /// nothing read, for any other string.
    #[inline(always)]
    fn chars(&mut self) -> Option<Chars> {
        let (first, behind) = self.bytes.split_first()?;
        if first & 0x80 != 0 {
            self.bytes = behind;
            return Some(match first & 0x7f {
                0 => Chars::None,
                char => Chars::One(char),
            });
        }
        if *first == 0 {
            return None;
        }
        self.several().map(Chars::Several)
    }

    /// Sets a member to a string of one character, or to an empty one if that is 0.
    #[inline(always)]
    fn one<M: TextMember>(&mut self, char: u8, member: &mut M) -> bool {
        if !self.stream.count_text(MAX_CHARS) {
            return false;
        }
        member.text_mut().set_char(char);
        true
    }

    /// Sets a member to a string of one to eight bytes, the first of which is not NUL.
    #[inline(always)]
    fn short<M: TextMember>(&mut self, bytes: u64, len: usize, member: &mut M) -> bool {
        if !self.stream.count_text(len.max(MAX_CHARS)) {
            return false;
        }
        member.text_mut().set_word(bytes, len as u8);
        true
    }

    /// Reads a string of more than eight characters.
    #[inline(always)]
    fn long<M: TextMember>(&mut self, member: &mut M) -> bool {
        match self.stream.long(self.bytes, member.text_mut()) {
            Some(behind) => {
                self.bytes = behind;
                true
            }
            None => false,
        }
    }

    /// Reads an ASCII string with the copy operator.
    #[inline(always)]
    pub fn ascii_copy<M: TextMember>(
        &mut self,
        slot: usize,
        initial: Option<&'static [u8]>,
        member: &mut M,
    ) -> bool {
        self.begin();
        if !self.bit() {
            return self.ascii_implied(slot, initial.is_some(), member);
        }
        let (is_counted, bytes, len) = match self.chars() {
            Some(Chars::None) if M::OPTIONAL => {
                self.values[slot].stamp = self.stamp(State::EMPTY);
                member.clear();
                return true;
            }
            Some(Chars::None) => (self.one(0, member), 0, 0),
            Some(Chars::One(char)) => (self.one(char, member), u64::from(char), 1),
            Some(Chars::Several(several)) => {
                let (bytes, len) = several.chars();
                (self.short(bytes, len, member), bytes, len)
            }
            // The op copies it to the previous values.
            None => return false,
        };
        if is_counted {
            let stamp = self.stamp(State::text(TextType::Ascii));
            self.values[slot].set_short(stamp, bytes, len);
        }
        is_counted
    }

    #[inline(always)]
    fn ascii_implied<M: TextMember>(
        &mut self,
        slot: usize,
        has_initial: bool,
        member: &mut M,
    ) -> bool {
        let state = State::text(TextType::Ascii);
        if let Previous::Assigned = self.previous(slot, state) {
            let value = self.values[slot];
            // Long ones, and those that begin with NUL, are left to the op.
            return match value.plain_len() {
                Some(len) => self.short(value.bits, len, member),
                None => false,
            };
        }
        let is_absent = self.is_absent(slot, M::OPTIONAL, has_initial);
        if is_absent {
            member.clear();
        }
        is_absent
    }

    /// Counts a mandatory constant string of `len` bytes against the limit.
    #[inline(always)]
    pub fn constant(&mut self, len: usize) -> bool {
        self.begin();
        self.stream.count_text(len.max(MAX_CHARS))
    }

    /// Reads the group of op number `op`. Returns `None`, with the error in the stream, if it is
    /// invalid.
    #[inline(always)]
    pub fn group<T: Segment<N>>(&mut self, op: u32, has_map: bool, group: &mut T) -> Option<()> {
        let is_done = self.segment(op, has_map, group);
        if is_done.is_none() {
            self.stream.in_group(op);
        }
        is_done
    }

    /// Reads `count` entries of the sequence of op number `op`. Returns `None`, with the error in
    /// the stream, if an entry is invalid.
    #[inline(always)]
    pub fn entries<T: Segment<N> + Default>(
        &mut self,
        op: u32,
        has_map: bool,
        count: u32,
        entries: &mut Entries<T>,
    ) -> Option<()> {
        entries.clear();
        self.stream.may_have(op, count, self.at())?;
        for index in 0..count {
            let is_done = self.segment(op, has_map, entries.add());
            if is_done.is_none() {
                self.stream.in_entry(op, index);
            }
            is_done?;
        }
        Some(())
    }

    /// Reads the entries of an optional sequence, as [`Self::entries`] does.
    #[inline(always)]
    pub fn maybe_entries<T: Segment<N> + Default>(
        &mut self,
        op: u32,
        has_map: bool,
        count: Option<u32>,
        entries: &mut Optional<Entries<T>>,
    ) -> Option<()> {
        match count {
            Some(count) => self.entries(op, has_map, count, entries.insert()),
            None => {
                entries.clear();
                Some(())
            }
        }
    }

    #[inline(always)]
    fn segment<T: Segment<N>>(&mut self, op: u32, has_map: bool, item: &mut T) -> Option<()> {
        let map_at = self.at();
        let place = match has_map {
            true => self.stream.map(map_at),
            false => Some((map_at, 0)),
        };
        let end = match place {
            Some((at, map)) => item.straight(self.stream, self.values, map_at, at, map),
            None => self.stream.nested(self.values, op, map_at, item),
        };
        self.bytes = self.stream.bytes().get(end?..)?;
        Some(())
    }
}

/// Returns the presence bits that are left after `taken` of them.
#[inline(always)]
fn below(map: u64, taken: u32) -> u64 {
    map.checked_shl(taken).unwrap_or(0)
}

/// Returns the signed integer of one byte.
#[inline(always)]
const fn one_signed(byte: u8) -> i64 {
    // Shifted up, the stop bit is gone and the sign bit is topmost.
    ((byte << 1).cast_signed() >> 1) as i64
}

/// A string at the front of the stream.
enum Chars {
    /// An empty string, or an absent one.
    None,
    /// A character that is not NUL.
    One(u8),
    /// Several characters, up to eight.
    Several(Several),
}

/// The meaning of a previous value to an op.
enum Previous {
    /// The value was assigned by the op's type.
    Assigned,
    /// The value is empty, or was assigned by another type.
    Other,
    Undefined,
}

/// Returns the next value. The smallest value follows the largest one (section 6.3.6).
#[inline(always)]
const fn following<M: Integer>(bits: u64) -> u64 {
    let next = bits.wrapping_add(1);
    match M::TYPE.holds_bits(next) {
        true => next,
        false => M::TYPE.min() as u64,
    }
}
