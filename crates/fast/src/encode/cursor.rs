//! The place where the fused executor writes, and the values that it writes there. Each method
//! returns `None` for a value that it leaves to the op, with the cursor and the previous values
//! unchanged.

use crate::node::Node;
use crate::program::FieldId;
use crate::program::fused::{Int, Operation};
use crate::slots::Split;
use crate::value::Decimal;
use fanfare_wire::stopbit;

/// The heads of nodes of field 0: of an absent field, and of the other kinds.
pub(super) const ABSENT: u64 = Node::absent(FieldId(0)).head();
pub(super) const INT: u64 = Node::int(FieldId(0), 0).head();
pub(super) const LONG: u64 = Node::long(FieldId(0), 0, 0).head();
const TEXT: u64 = Node::empty(FieldId(0)).head();
const DECIMAL: u64 = Node::decimal(
    FieldId(0),
    Decimal {
        mantissa: 0,
        exponent: 0,
    },
)
.head();

/// The byte that is NULL, and a word of them.
const NULL: u8 = 0x80;
const NULLS: [u8; 8] = [NULL; 8];

/// The position of the executor in a body.
pub(super) struct Cursor<'a> {
    pub(super) room: &'a mut [u8],
    /// The number of bytes written.
    pub(super) at: usize,
    /// The presence bits so far below a marker bit, which is one. The last bit is lowest.
    pub(super) map: u64,
}

impl Cursor<'_> {
    #[inline(always)]
    pub(super) const fn push_bit(&mut self, bit: bool) {
        self.map = self.map << 1 | bit as u64;
    }

    #[inline(always)]
    fn byte(&mut self, byte: u8) -> Option<()> {
        *self.room.get_mut(self.at)? = byte;
        self.at += 1;
        Some(())
    }

    /// Writes the first `len` of these bytes.
    #[inline(always)]
    fn word(&mut self, bytes: [u8; 8], len: usize) -> Option<()> {
        *self.room.get_mut(self.at..)?.first_chunk_mut()? = bytes;
        self.at += len;
        Some(())
    }

    #[inline(always)]
    pub(super) fn null(&mut self) -> Option<()> {
        self.byte(NULL)
    }

    /// Writes NULL for eight absent fields of one byte each. None of them counts yet.
    #[inline(always)]
    pub(super) fn nulls(&mut self) -> Option<()> {
        self.word(NULLS, 0)
    }

    /// Writes a signed integer of any size.
    #[inline(always)]
    fn signed<const NULLABLE: bool>(&mut self, value: i64) -> Option<()> {
        // Made larger by one, if it is nullable and not negative.
        let more = i64::from(NULLABLE && value >= 0);
        let entity = value.wrapping_add(more);
        if let -64..64 = entity {
            return self.byte(entity as u8 | NULL);
        }
        let (bytes, len) = stopbit::spread_signed(value.checked_add(more)?)?;
        self.word(bytes, len)
    }

    /// Writes an integer that is within the bounds of its type, or NULL.
    #[inline(always)]
    pub(super) fn write<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        value: Option<u64>,
    ) -> Option<()> {
        let Some(value) = value else {
            return self.null();
        };
        // A value of one byte is within the bounds of every type.
        let (is_small, entity) = match SIGNED {
            true => {
                let entity = value.wrapping_add(u64::from(NULLABLE && value as i64 >= 0));
                ((-64..64).contains(&(entity as i64)), entity)
            }
            false => {
                let entity = value.wrapping_add(u64::from(NULLABLE));
                (value < 0x80 - u64::from(NULLABLE), entity)
            }
        };
        if is_small {
            return self.byte(entity as u8 | NULL);
        }
        if !int.holds(value) {
            return None;
        }
        let (bytes, len) = match SIGNED {
            // One beyond the largest one is larger than eight bytes, whatever its sign is then.
            true => stopbit::spread_signed(entity as i64)?,
            false if NULLABLE && entity == 0 => return None,
            false => stopbit::spread_unsigned(entity)?,
        };
        self.word(bytes, len)
    }

    /// Writes a copied or incremented integer, unless it follows from the previous value. The
    /// integer becomes the previous value.
    #[inline(always)]
    pub(super) fn carry<const SIGNED: bool, const NULLABLE: bool, const INCREMENTED: bool>(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        let (slot, stamp) = slots.of(int)?;
        let is_implied = match value {
            Some(bits) if slot.is_of(stamp) => match INCREMENTED {
                true => int.following(slot.bits) == bits,
                false => slot.bits == bits,
            },
            Some(bits) => slot.is_outdated(stamp) && int.initial() == Some(bits),
            None => slot.is_empty(stamp) || slot.is_outdated(stamp) && !int.has_initial,
        };
        if !is_implied {
            self.write::<SIGNED, NULLABLE>(int, value)?;
        }
        self.push_bit(!is_implied);
        match value {
            Some(bits) => (slot.bits, slot.stamp) = (bits, stamp),
            None => slot.set_empty(stamp),
        }
        Some(())
    }

    /// Writes an integer with the default operator, unless it is the initial value.
    #[inline(always)]
    pub(super) fn default<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        value: Option<u64>,
    ) -> Option<()> {
        let is_sent = value != int.initial();
        if is_sent {
            self.write::<SIGNED, NULLABLE>(int, value)?;
        }
        self.push_bit(is_sent);
        Some(())
    }

    /// Writes the delta to the previous value, which the value replaces.
    #[inline(always)]
    pub(super) fn delta<const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
        difference: impl FnOnce(u64, u64) -> Option<i64>,
    ) -> Option<()> {
        let Some(bits) = value else {
            return self.null();
        };
        let (slot, stamp) = slots.of(int)?;
        let base = match slot.is_of(stamp) {
            true => slot.bits,
            false if slot.is_outdated(stamp) => int.initial,
            false => return None,
        };
        if !int.holds(bits) {
            return None;
        }
        self.signed::<NULLABLE>(difference(bits, base)?)?;
        (slot.bits, slot.stamp) = (bits, stamp);
        Some(())
    }

    /// Writes a constant, of which only its presence bit is in the stream, if it is optional.
    #[inline(always)]
    pub(super) fn constant(&mut self, int: &Int, value: Option<u64>) -> Option<()> {
        if value.is_some_and(|bits| bits != int.initial) {
            return None;
        }
        if int.is_optional {
            self.push_bit(value.is_some());
        }
        Some(())
    }

    /// Writes a decimal without an operator.
    #[inline(always)]
    pub(super) fn decimal<const NULLABLE: bool>(&mut self, value: Option<Decimal>) -> Option<()> {
        let Some(Decimal { mantissa, exponent }) = value else {
            return NULLABLE.then(|| self.null())?;
        };
        // Of one byte in any case.
        if !(-63..63).contains(&exponent) {
            return None;
        }
        let at = self.at;
        self.signed::<NULLABLE>(exponent.into())?;
        let done = self.signed::<false>(mantissa);
        if done.is_none() {
            self.at = at;
        }
        done
    }

    /// Writes a decimal whose parts have operators of their own, each by `part`.
    #[inline(always)]
    pub(super) fn parts<S: Split>(
        &mut self,
        [first, second]: &[Int; 2],
        slots: &mut S,
        value: Option<Decimal>,
        part: impl Fn(&mut Self, &Int, &mut S, Option<u64>) -> Option<()>,
    ) -> Option<()> {
        let exponent = value.map(|value| value.exponent);
        if !exponent.is_none_or(|exponent| (-63..=63).contains(&exponent)) {
            return None;
        }
        let (at, map) = (self.at, self.map);
        let before = match first.operation {
            Operation::Default | Operation::None => None,
            _ => slots.of(first).map(|(slot, _)| *slot),
        };
        part(
            self,
            first,
            slots,
            exponent.map(|exponent| i64::from(exponent) as u64),
        )?;
        let Some(Decimal { mantissa, .. }) = value else {
            return Some(());
        };
        let done = part(self, second, slots, Some(mantissa as u64));
        if done.is_none() {
            (self.at, self.map) = (at, map);
            slots.restore(first, before);
        }
        done
    }

    /// Writes a string that is empty or needs no preamble.
    #[inline(always)]
    pub(super) fn ascii<const NULLABLE: bool>(
        &mut self,
        text: Option<Ascii<'_>>,
        longest: usize,
    ) -> Option<()> {
        match text {
            Some(Ascii::Short(text)) => self.short::<NULLABLE>(text),
            Some(Ascii::Long(text)) => {
                self.at = put_text(text, longest, self.room, self.at)?;
                Some(())
            }
            None => NULLABLE.then(|| self.null())?,
        }
    }

    #[inline(always)]
    fn short<const NULLABLE: bool>(&mut self, text: Short) -> Option<()> {
        match text {
            Short { len: 0, .. } if NULLABLE => self.word([0, 0x80, 0, 0, 0, 0, 0, 0], 2),
            Short { len: 0, .. } => self.byte(0x80),
            Short { bits, len } => {
                let stop = 0x80 << ((8 * len).wrapping_sub(8) & 63);
                self.word((bits | stop).to_le_bytes(), len)
            }
        }
    }

    /// Writes a string with the default operator, unless it is the initial value.
    #[inline(always)]
    pub(super) fn ascii_default<const NULLABLE: bool>(
        &mut self,
        initial: Option<Ascii<'_>>,
        text: Option<Ascii<'_>>,
        longest: usize,
    ) -> Option<()> {
        if initial.is_some_and(|initial| initial.len() > longest) {
            return None;
        }
        let is_sent = text != initial;
        if is_sent {
            self.ascii::<NULLABLE>(text, longest)?;
        }
        self.push_bit(is_sent);
        Some(())
    }

    /// Writes a copied string of eight characters at most, unless it follows from the previous
    /// value. The string becomes the previous value.
    #[inline(always)]
    pub(super) fn ascii_copy<const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        text: Option<Short>,
    ) -> Option<()> {
        let (slot, stamp) = slots.of(int)?;
        let is_undefined = slot.is_outdated(stamp);
        let is_implied = match text {
            None if !NULLABLE => return None,
            None => is_undefined && !int.has_initial || slot.is_empty(stamp),
            Some(text) if is_undefined => int.has_initial && text.is(int.initial, int.min as usize),
            Some(text) => slot.is_of(stamp) && slot.is_short(text.bits, text.len),
        };
        if !is_implied {
            self.ascii::<NULLABLE>(text.map(Ascii::Short), 0)?;
        }
        self.push_bit(!is_implied);
        match text {
            Some(text) => slot.set_short(stamp, text.bits, text.len),
            None => slot.set_empty(stamp),
        }
        Some(())
    }

    /// Writes an integer with any operator: a field of a rare kind, a part of a decimal, or a
    /// length.
    #[inline(always)]
    pub(super) fn any(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        let mut there = Cursor {
            room: &mut *self.room,
            ..*self
        };
        there.any_outlined(int, slots, value)?;
        (self.at, self.map) = (there.at, there.map);
        Some(())
    }

    /// Writes an integer by a copy of the cursor: a cursor passed by reference would live in
    /// memory.
    #[inline(never)]
    fn any_outlined(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        self.int(int, slots, value)
    }

    /// Writes an integer as [`Self::any`] does. The usual parts of decimals are not outlined.
    #[inline(always)]
    pub(super) fn part(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        match (int.operation, int.is_optional) {
            (Operation::Default, true) => self.default::<true, true>(int, value),
            (Operation::Default, false) if value.is_some() => {
                self.default::<true, false>(int, value)
            }
            (Operation::DeltaI64, false) => {
                self.delta::<false>(int, slots, value, signed_difference)
            }
            _ => self.any(int, slots, value),
        }
    }

    /// Writes an integer as [`Self::any`] does, by an op that is known when the code is compiled.
    #[inline(always)]
    pub(super) fn int(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        match (int.is_signed, int.is_optional) {
            (_, false) if value.is_none() => None,
            (false, false) => self.of_type::<false, false>(int, slots, value),
            (false, true) => self.of_type::<false, true>(int, slots, value),
            (true, false) => self.of_type::<true, false>(int, slots, value),
            (true, true) => self.of_type::<true, true>(int, slots, value),
        }
    }

    #[inline(always)]
    fn of_type<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut impl Split,
        value: Option<u64>,
    ) -> Option<()> {
        match int.operation {
            Operation::None => self.write::<SIGNED, NULLABLE>(int, value),
            Operation::Constant => self.constant(int, value),
            Operation::Default => self.default::<SIGNED, NULLABLE>(int, value),
            Operation::Copy => self.carry::<SIGNED, NULLABLE, false>(int, slots, value),
            Operation::Increment => self.carry::<SIGNED, NULLABLE, true>(int, slots, value),
            Operation::Delta => self.delta::<NULLABLE>(int, slots, value, small_difference),
            Operation::DeltaU64 => self.delta::<NULLABLE>(int, slots, value, unsigned_difference),
            Operation::DeltaI64 => self.delta::<NULLABLE>(int, slots, value, signed_difference),
            Operation::Op => None,
        }
    }
}

/// Returns the difference between two values of at most 32 bits.
#[inline(always)]
pub(super) const fn small_difference(value: u64, base: u64) -> Option<i64> {
    Some(value.wrapping_sub(base) as i64)
}

/// Returns the difference between two unsigned values, if both are below 2^63.
#[inline(always)]
pub(super) fn unsigned_difference(value: u64, base: u64) -> Option<i64> {
    ((value | base) >> 63 == 0).then(|| value.wrapping_sub(base) as i64)
}

#[inline(always)]
pub(super) const fn signed_difference(value: u64, base: u64) -> Option<i64> {
    (value as i64).checked_sub(base as i64)
}

/// An ASCII string.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Ascii<'t> {
    Short(Short),
    Long(&'t [u8]),
}

impl<'t> Ascii<'t> {
    /// Returns the string of these characters, the first one lowest, or of `all` if these are too
    /// many or need a preamble.
    #[inline(always)]
    pub(super) fn new(bits: u64, len: usize, all: impl FnOnce() -> &'t [u8]) -> Self {
        Short::new(bits, len).map_or_else(|| Self::Long(all()), Self::Short)
    }

    #[inline(always)]
    const fn len(&self) -> usize {
        match self {
            Self::Short(text) => text.len,
            Self::Long(text) => text.len(),
        }
    }
}

/// A string of eight characters at most that is empty or needs no preamble. The first character is
/// lowest in `bits`.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Short {
    pub(super) bits: u64,
    pub(super) len: usize,
}

impl Short {
    /// Returns the length of the string in a node of field 0 with this head, or more than 255 if
    /// there is no short one.
    #[inline(always)]
    pub(super) const fn len(head: u64) -> u64 {
        Node::short_len(head ^ TEXT)
    }

    /// Returns the string of these characters, or `None` if they are too many, need a preamble or
    /// are not ASCII.
    #[inline(always)]
    pub(super) const fn new(bits: u64, len: usize) -> Option<Self> {
        if len > 8 || bits & 0x8080_8080_8080_8080 != 0 || len != 0 && bits & 0xff == 0 {
            return None;
        }
        Some(Self { bits, len })
    }

    /// Returns true if the string has these `len` characters.
    #[inline(always)]
    pub(super) const fn is(self, bits: u64, len: usize) -> bool {
        self.bits == bits && self.len == len
    }
}

/// Returns the decimal in a node of field 0 with this head and this word, or its absence. Returns
/// `None` for any other node.
#[inline(always)]
pub(super) fn decimal(head: u64, word: u64) -> Option<Option<Decimal>> {
    if head == ABSENT {
        return Some(None);
    }
    let exponent = u8::try_from(Node::short_len(head ^ DECIMAL)).ok()?;
    Some(Some(Decimal {
        mantissa: word as i64,
        exponent: exponent.cast_signed(),
    }))
}

/// Writes a string that is not empty and needs no preamble, and returns the index after it.
#[inline(never)]
pub(super) fn put_text(text: &[u8], longest: usize, room: &mut [u8], at: usize) -> Option<usize> {
    let needs_none = text.first().is_some_and(|first| *first != 0);
    if !needs_none || text.len() > longest || !text.is_ascii() {
        return None;
    }
    let room = room.get_mut(at..)?.get_mut(..text.len())?;
    room.copy_from_slice(text);
    *room.last_mut()? |= 0x80;
    Some(at + text.len())
}
