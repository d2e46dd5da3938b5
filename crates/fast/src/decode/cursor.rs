//! Where the fused executor is in the bytes, and what it reads there. `None` always means: not
//! usual, with the cursor anywhere, and previous values as they were.

use crate::program::fused::{Int, Operation};
use crate::slots::{Slots, Value};
use crate::state::State;
use crate::value::{Decimal, EXPONENTS};
use fanfare_wire::stopbit;

/// Where the executor is in a body.
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
    /// Its bytes, the first one lowest, and how many they are.
    Short(u64, usize),
    /// As it stands there, with the stop bit.
    Long(&'a [u8]),
}

impl<'a> Cursor<'a> {
    /// Whether the next byte is an entity that is zero.
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

    /// An unsigned integer that is not overlong.
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

    /// The same of a signed one.
    #[inline(always)]
    fn signed(&mut self) -> Option<i64> {
        let first = *self.bytes.get(self.at)?;
        if first & 0x80 != 0 {
            self.at += 1;
            // The stop bit goes, the one below it is the sign.
            return Some(i64::from((first << 1).cast_signed() >> 1));
        }
        let entity = stopbit::read_short(self.bytes, self.at)?;
        // Zeros or ones alone may say nothing.
        if matches!(first, 0 | 0x7f) && entity.is_overlong_signed() {
            return None;
        }
        self.at += entity.len;
        Some(entity.signed())
    }

    /// An integer of a type, or its absence.
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
        // Every type holds what one byte does.
        (self.at == start + 1 || int.holds(value)).then_some(Some(value))
    }

    /// A value that is the previous one if it is not in the stream.
    #[inline(always)]
    pub(super) fn copied<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
    ) -> Option<Option<u64>> {
        if self.take_bit() {
            let value = self.read::<SIGNED, NULLABLE>(int)?;
            slots.assign(int, value);
            return Some(value);
        }
        slots.implied(int, |bits| bits)
    }

    #[inline(always)]
    pub(super) fn incremented(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        if self.take_bit() {
            let value = self.read_any(int)?;
            slots.assign(int, value);
            return Some(value);
        }
        slots.implied(int, |bits| int.following(bits))
    }

    #[inline(always)]
    pub(super) fn default<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
    ) -> Option<Option<u64>> {
        match self.take_bit() {
            true => self.read::<SIGNED, NULLABLE>(int),
            false => Some(int.has_initial.then_some(int.initial)),
        }
    }

    /// The sum of a difference and the previous value.
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

    /// An integer whose kind is rare, a part of a decimal, or a length.
    #[inline(always)]
    pub(super) fn any(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        let mut there = *self;
        let value = there.any_of_all(int, slots);
        (self.at, self.map) = (there.at, there.map);
        value
    }

    /// Not inlined, and with a cursor of its own, so that others can stay in registers.
    #[inline(never)]
    fn any_of_all(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        match (int.operation, int.is_optional) {
            (Operation::None, _) => self.read_any(int),
            (Operation::Constant, true) => Some(self.take_bit().then_some(int.initial)),
            (Operation::Constant, false) => Some(Some(int.initial)),
            (Operation::Default, _) => match self.take_bit() {
                true => self.read_any(int),
                false => Some(int.has_initial.then_some(int.initial)),
            },
            (Operation::Copy, _) => match self.take_bit() {
                true => {
                    let value = self.read_any(int)?;
                    slots.assign(int, value);
                    Some(value)
                }
                false => slots.implied(int, |bits| bits),
            },
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

    /// A decimal without operator.
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

    /// A decimal in two parts; what is not usual leaves the previous values as they were.
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

    /// An ASCII string without zero preamble.
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

#[inline(never)]
fn long_entity(bytes: &[u8], at: usize) -> Option<&[u8]> {
    bytes.get(at..stopbit::entity_end(bytes, at)?)
}

impl Int {
    /// Whether it is within the bounds of the type.
    #[inline(always)]
    const fn holds(&self, bits: u64) -> bool {
        bits.wrapping_sub(self.min) <= self.span
    }

    /// One more; after the largest value comes the smallest (section 6.3.6).
    #[inline(always)]
    const fn following(&self, bits: u64) -> u64 {
        let next = bits.wrapping_add(1);
        if self.holds(next) { next } else { self.min }
    }
}

/// A sum of at most 32 bits: neither difference nor base are near the bounds of 64.
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

/// An exponent that strict decoders take.
#[inline(always)]
fn exponent_within(exponent: i64) -> Option<i8> {
    let is_within =
        exponent >= i64::from(*EXPONENTS.start()) && exponent <= i64::from(*EXPONENTS.end());
    is_within.then_some(exponent as i8)
}

impl Slots {
    /// The value becomes the previous one.
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

    /// The value of a field that is not in the stream, by the previous one, which it replaces.
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

    /// What a difference is added to.
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
