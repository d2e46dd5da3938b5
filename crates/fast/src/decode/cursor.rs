//! The position of the fused executor in the bytes, and the values it reads there. Each method
//! returns `None` for a value that it leaves to the op: the cursor is then at no particular place,
//! and previous values are unchanged.

use crate::program::fused::{Int, Operation};
use crate::slots::{Slots, Value};
use crate::state::State;
use crate::value::{Decimal, EXPONENTS};
use fanfare_wire::stopbit;

/// The position of the executor in a body.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// The presence bits that are left, the next one topmost.
    pub(super) map: u64,
}

/// A string in the stream.
pub(super) enum Text<'a> {
    Absent,
    /// The bytes as a word, the first byte lowest, and their number.
    Short(u64, usize),
    /// The bytes of the stream, stop bit included.
    Long(&'a [u8]),
}

impl<'a> Cursor<'a> {
    /// Returns true if the next byte is 0x80: NULL.
    #[inline(always)]
    pub(super) fn is_null(&self) -> bool {
        self.bytes.get(self.at) == Some(&0x80)
    }

    /// Takes the next presence bit.
    #[inline(always)]
    pub(super) const fn take_bit(&mut self) -> bool {
        let bit = self.map >> 63 != 0;
        self.map <<= 1;
        bit
    }

    /// Reads an unsigned integer that is not overlong.
    #[inline(always)]
    pub(super) fn unsigned(&mut self) -> Option<u64> {
        let first = *self.bytes.get(self.at)?;
        if first & 0x80 != 0 {
            self.at += 1;
            return Some(u64::from(first & 0x7f));
        }
        if first == 0 {
            return None;
        }
        let entity = stopbit::read_short(self.bytes, self.at)?;
        self.at += entity.len;
        Some(entity.bits)
    }

    /// Reads a signed integer that is not overlong.
    #[inline(always)]
    fn signed(&mut self) -> Option<i64> {
        let first = *self.bytes.get(self.at)?;
        if first & 0x80 != 0 {
            self.at += 1;
            // Shifted up, the stop bit is gone and the sign bit is topmost.
            return Some(i64::from((first << 1).cast_signed() >> 1));
        }
        let entity = stopbit::read_short(self.bytes, self.at)?;
        // Only a first byte of zeros or of ones can repeat the sign.
        if matches!(first, 0 | 0x7f) && entity.is_overlong_signed() {
            return None;
        }
        self.at += entity.len;
        Some(entity.signed())
    }

    /// Reads an integer within the bounds of its type; `Some(None)` is NULL.
    #[inline(always)]
    pub(super) fn read<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
    ) -> Option<Option<u64>> {
        let start = self.at;
        let value = match SIGNED {
            true => self.signed()? as u64,
            false => self.unsigned()?,
        };
        if NULLABLE && value == 0 {
            return Some(None);
        }
        let is_above = NULLABLE && (!SIGNED || (value as i64) > 0);
        let value = value - u64::from(is_above);
        // A value of one byte is within the bounds of every type.
        (self.at == start + 1 || int.holds(value)).then_some(Some(value))
    }

    /// Reads a copied or incremented integer: from the stream if its presence bit is set, else
    /// `next` of the previous value. The result becomes the previous value.
    #[inline(always)]
    fn carried(
        &mut self,
        int: &Int,
        slots: &mut Slots,
        read: impl FnOnce(&mut Self, &Int) -> Option<Option<u64>>,
        next: impl FnOnce(&Int, u64) -> u64,
    ) -> Option<Option<u64>> {
        if self.take_bit() {
            let value = read(self, int)?;
            slots.assign(int, value);
            return Some(value);
        }
        slots.implied(int, |bits| next(int, bits))
    }

    /// Reads a copied integer.
    #[inline(always)]
    pub(super) fn copied<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
    ) -> Option<Option<u64>> {
        self.carried(int, slots, Self::read::<SIGNED, NULLABLE>, same)
    }

    /// Reads an incremented integer.
    #[inline(always)]
    pub(super) fn incremented(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        self.carried(int, slots, Self::read_any, Int::following)
    }

    /// Reads an integer with the default operator.
    #[inline(always)]
    pub(super) fn default(
        &mut self,
        int: &Int,
        read: impl FnOnce(&mut Self, &Int) -> Option<Option<u64>>,
    ) -> Option<Option<u64>> {
        match self.take_bit() {
            true => read(self, int),
            false => Some(int.has_initial.then_some(int.initial)),
        }
    }

    /// Reads a difference and adds it to the previous value, which the sum replaces.
    #[inline(always)]
    pub(super) fn delta<const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
        add: impl FnOnce(&Int, u64, i64) -> Option<u64>,
    ) -> Option<Option<u64>> {
        let mut difference = self.signed()?;
        if NULLABLE {
            if difference == 0 {
                return Some(None);
            }
            difference -= i64::from(difference > 0);
        }
        let base = slots.base(int)?;
        let value = add(int, base, difference)?;
        slots.assign(int, Some(value));
        Some(Some(value))
    }

    /// Reads an integer of any operator: one of a rare kind, a part of a decimal, or a length.
    #[inline(always)]
    pub(super) fn any(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        let mut there = *self;
        let value = there.any_of_all(int, slots);
        (self.at, self.map) = (there.at, there.map);
        value
    }

    /// Works on a copy of the cursor: a cursor passed by reference would live in memory.
    #[inline(never)]
    fn any_of_all(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        match (int.operation, int.is_optional) {
            (Operation::None, _) => self.read_any(int),
            (Operation::Constant, true) => Some(self.take_bit().then_some(int.initial)),
            (Operation::Constant, false) => Some(Some(int.initial)),
            (Operation::Default, _) => self.default(int, Self::read_any),
            (Operation::Copy, _) => self.carried(int, slots, Self::read_any, same),
            (Operation::Increment, _) => self.incremented(int, slots),
            (Operation::Delta, false) => self.delta::<false>(int, slots, small_sum),
            (Operation::Delta, true) => self.delta::<true>(int, slots, small_sum),
            (Operation::DeltaU64, false) => self.delta::<false>(int, slots, unsigned_sum),
            (Operation::DeltaU64, true) => self.delta::<true>(int, slots, unsigned_sum),
            (Operation::DeltaI64, false) => self.delta::<false>(int, slots, signed_sum),
            (Operation::DeltaI64, true) => self.delta::<true>(int, slots, signed_sum),
            (Operation::Op, _) => None,
        }
    }

    #[inline(always)]
    pub(super) fn read_any(&mut self, int: &Int) -> Option<Option<u64>> {
        match (int.is_signed, int.is_optional) {
            (false, false) => self.read::<false, false>(int),
            (false, true) => self.read::<false, true>(int),
            (true, false) => self.read::<true, false>(int),
            (true, true) => self.read::<true, true>(int),
        }
    }

    /// Reads a decimal without operator.
    #[inline(always)]
    pub(super) fn decimal<const NULLABLE: bool>(&mut self) -> Option<Option<Decimal>> {
        let mut exponent = self.signed()?;
        if NULLABLE {
            if exponent == 0 {
                return Some(None);
            }
            exponent -= i64::from(exponent > 0);
        }
        let exponent = exponent_within(exponent)?;
        let mantissa = self.signed()?;
        Some(Some(Decimal { mantissa, exponent }))
    }

    /// Reads a decimal whose parts have operators of their own.
    #[inline(always)]
    pub(super) fn parts(
        &mut self,
        [first, second]: &[Int; 2],
        slots: &mut Slots,
    ) -> Option<Option<Decimal>> {
        let before = slots.value(first.slot).copied();
        let Some(exponent) = self.any(first, slots)? else {
            return Some(None);
        };
        let mantissa = exponent_within(exponent as i64)
            .and_then(|exponent| Some((exponent, self.any(second, slots)?.unwrap_or_default())));
        let Some((exponent, mantissa)) = mantissa else {
            slots.restore(first.slot, before);
            return None;
        };
        let mantissa = mantissa as i64;
        Some(Some(Decimal { mantissa, exponent }))
    }

    /// Reads an ASCII string without a zero preamble.
    #[inline(always)]
    pub(super) fn ascii<const NULLABLE: bool>(&mut self) -> Option<Text<'a>> {
        let first = *self.bytes.get(self.at)?;
        if first > 0x80 {
            self.at += 1;
            return Some(Text::Short(u64::from(first & 0x7f), 1));
        }
        if first == 0x80 {
            self.at += 1;
            return Some(match NULLABLE {
                true => Text::Absent,
                false => Text::Short(0, 0),
            });
        }
        if first == 0 {
            return None;
        }
        if let Some((text, len)) = stopbit::read_chars(self.bytes, self.at) {
            self.at += len;
            return Some(Text::Short(text, len));
        }
        let text = long_entity(self.bytes, self.at)?;
        self.at += text.len();
        Some(Text::Long(text))
    }
}

/// Returns the previous value itself: that of a copied integer.
#[inline(always)]
const fn same(_: &Int, bits: u64) -> u64 {
    bits
}

#[inline(never)]
fn long_entity(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..stopbit::entity_end(bytes, at)?)
}

impl Int {
    /// Returns true if the value is within the bounds of the type.
    #[inline(always)]
    const fn holds(&self, bits: u64) -> bool {
        bits.wrapping_sub(self.min) <= self.span
    }

    /// Returns the next value; after the largest comes the smallest (section 6.3.6).
    #[inline(always)]
    const fn following(&self, bits: u64) -> u64 {
        let next = bits.wrapping_add(1);
        if self.holds(next) { next } else { self.min }
    }
}

/// Adds to a base of at most 32 bits; a difference of eight bytes cannot overflow 64.
#[inline(always)]
pub(super) fn small_sum(int: &Int, base: u64, difference: i64) -> Option<u64> {
    let value = base.wrapping_add_signed(difference);
    int.holds(value).then_some(value)
}

#[inline(always)]
pub(super) fn unsigned_sum(_: &Int, base: u64, difference: i64) -> Option<u64> {
    base.checked_add_signed(difference)
}

#[inline(always)]
pub(super) fn signed_sum(_: &Int, base: u64, difference: i64) -> Option<u64> {
    let value = (base as i64).checked_add(difference)?;
    Some(value as u64)
}

/// Returns the exponent if it is within -63 to 63.
#[inline(always)]
fn exponent_within(exponent: i64) -> Option<i8> {
    let is_within =
        exponent >= i64::from(*EXPONENTS.start()) && exponent <= i64::from(*EXPONENTS.end());
    is_within.then_some(exponent as i8)
}

impl Slots {
    /// Makes the value the previous one.
    #[inline(always)]
    fn assign(&mut self, int: &Int, value: Option<u64>) {
        let (stamp, empty) = (self.stamp(int.state), self.stamp(State::EMPTY));
        if let Some(slot) = self.value_mut(int.slot) {
            match value {
                Some(bits) => (slot.bits, slot.stamp) = (bits, stamp),
                None => slot.stamp = empty,
            }
        }
    }

    /// Returns the value of a field that is absent from the stream: `next` of the previous value,
    /// or the initial value. It becomes the previous value.
    #[inline(always)]
    fn implied(&mut self, int: &Int, next: impl FnOnce(u64) -> u64) -> Option<Option<u64>> {
        let slot = self.value(int.slot)?;
        if slot.stamp == self.stamp(int.state) {
            let bits = next(slot.bits);
            if let Some(slot) = self.value_mut(int.slot) {
                slot.bits = bits;
            }
            return Some(Some(bits));
        }
        if self.is_outdated(slot.stamp) {
            let initial = int.has_initial.then_some(int.initial);
            if initial.is_none() && !int.is_optional {
                return None;
            }
            self.assign(int, initial);
            return Some(initial);
        }
        (int.is_optional && slot.stamp == self.stamp(State::EMPTY)).then_some(None)
    }

    /// Returns the base of a difference.
    #[inline(always)]
    fn base(&self, int: &Int) -> Option<u64> {
        let slot = self.value(int.slot)?;
        if slot.stamp == self.stamp(int.state) {
            return Some(slot.bits);
        }
        self.is_outdated(slot.stamp).then_some(int.initial)
    }

    fn restore(&mut self, slot: u32, before: Option<Value>) {
        if let (Some(slot), Some(before)) = (self.value_mut(slot), before) {
            *slot = before;
        }
    }
}
