//! The position of the fused executor in the bytes, and the values that it reads there. Each method
//! returns `None` for a value that it leaves to the op, with the cursor and the previous values
//! unchanged. So the executor needs no copy of the cursor, for which there are no registers.

use crate::program::fused::{Int, Operation};
use crate::slots::{Slots, Split};
use crate::state::State;
use crate::value::{Decimal, EXPONENTS};
use fanfare_wire::stopbit::{self, Squeeze};

/// The position of the executor in a body.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    /// The bytes that are not read yet.
    pub(super) rest: &'a [u8],
    /// The presence bits that are left, the next one topmost.
    pub(super) map: u64,
    pub(super) squeeze: Squeeze,
}

/// A string in the stream.
pub(super) enum Text<'a> {
    Absent,
    /// One character.
    Char(u8),
    /// The bytes as a word, the first byte lowest, and their number.
    Short(u64, usize),
    /// The bytes of the stream, stop bit included.
    Long(&'a [u8]),
}

/// A value in the stream.
struct Next<'a, T> {
    value: T,
    /// Whether the value has one byte.
    is_byte: bool,
    /// The bytes after the value.
    behind: &'a [u8],
}

impl<'a, T> Next<'a, T> {
    #[inline(always)]
    const fn byte(value: T, behind: &'a [u8]) -> Self {
        let is_byte = true;
        Self {
            value,
            is_byte,
            behind,
        }
    }

    #[inline(always)]
    const fn bytes(value: T, behind: &'a [u8]) -> Self {
        let is_byte = false;
        Self {
            value,
            is_byte,
            behind,
        }
    }
}

impl<'a> Next<'a, i64> {
    /// Returns the value as its 64-bit pattern.
    #[inline(always)]
    const fn bits(self) -> Next<'a, u64> {
        Next {
            value: self.value as u64,
            is_byte: self.is_byte,
            behind: self.behind,
        }
    }
}

impl<'a> Cursor<'a> {
    /// Returns the next presence bit.
    #[inline(always)]
    pub(super) const fn bit(&self) -> bool {
        self.map >> 63 != 0
    }

    #[inline(always)]
    pub(super) const fn pass_bit(&mut self) {
        self.map <<= 1;
    }

    /// Takes the next presence bit.
    #[inline(always)]
    pub(super) const fn take_bit(&mut self) -> bool {
        let bit = self.bit();
        self.pass_bit();
        bit
    }

    /// Reads a presence map of at most eight bytes.
    #[inline(always)]
    pub(super) fn presence_map(&mut self) -> Option<()> {
        let (&first, behind) = self.rest.split_first()?;
        if first & 0x80 != 0 {
            self.map = u64::from(first) << 57;
            self.rest = behind;
            return Some(());
        }
        let (several, behind) = stopbit::split_several(self.rest)?;
        let bits = several.unsigned(self.squeeze);
        // Overlong (R7): the op reports it, or lets it pass if the decoder is lenient.
        if bits & 0x7f == 0 {
            return None;
        }
        self.map = bits << (64 - 7 * several.size() as u32);
        self.rest = behind;
        Some(())
    }

    /// Skips up to `most` NULLs of one byte, and returns their number.
    #[inline(always)]
    pub(super) fn skip_nulls(&mut self, most: usize) -> usize {
        let nulls = stopbit::leading_nulls(self.rest).min(most);
        self.rest = self.rest.get(nulls..).unwrap_or_default();
        nulls
    }

    /// Returns the next value if it is an unsigned integer that is not overlong.
    #[inline(always)]
    fn unsigned(&self) -> Option<Next<'a, u64>> {
        let (&first, behind) = self.rest.split_first()?;
        if first & 0x80 != 0 {
            let value = u64::from(first & 0x7f);
            return Some(Next::byte(value, behind));
        }
        let (several, behind) = stopbit::split_several(self.rest)?;
        match several.is_overlong() {
            true => None,
            false => Some(Next::bytes(several.unsigned(self.squeeze), behind)),
        }
    }

    /// Returns the next value if it is a signed integer that is not overlong.
    #[inline(always)]
    fn signed(&self) -> Option<Next<'a, i64>> {
        let (&first, behind) = self.rest.split_first()?;
        if first & 0x80 != 0 {
            // Shifted up, the stop bit is gone and the sign bit is topmost.
            let value = i64::from((first << 1).cast_signed() >> 1);
            return Some(Next::byte(value, behind));
        }
        let (several, behind) = stopbit::split_several(self.rest)?;
        match several.is_overlong_signed() {
            true => None,
            false => Some(Next::bytes(several.signed(self.squeeze), behind)),
        }
    }

    /// Reads the identifier of a template.
    #[inline(always)]
    pub(super) fn identifier(&mut self) -> Option<u32> {
        let next = self.unsigned()?;
        let id = u32::try_from(next.value).ok()?;
        self.rest = next.behind;
        Some(id)
    }

    /// Reads an integer within the bounds of its type. The result is `Some(None)` for NULL.
    #[inline(always)]
    pub(super) fn read<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
    ) -> Option<Option<u64>> {
        let next = match SIGNED {
            true => self.signed()?.bits(),
            false => self.unsigned()?,
        };
        let mut value = Some(next.value);
        if NULLABLE {
            let is_above = !SIGNED || (next.value as i64) > 0;
            value = (next.value != 0).then(|| next.value - u64::from(is_above));
        }
        // A value of one byte is within the bounds of every type.
        if !next.is_byte && value.is_some_and(|value| !int.holds(value)) {
            return None;
        }
        self.rest = next.behind;
        Some(value)
    }

    /// Reads a copied or incremented integer: from the stream if its presence bit is set, otherwise
    /// the previous value, or the one after it. The integer becomes the previous value.
    #[inline(always)]
    pub(super) fn carry<const SIGNED: bool, const NULLABLE: bool, const INCREMENTED: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
    ) -> Option<Option<u64>> {
        let value = match self.bit() {
            true => {
                let value = self.read::<SIGNED, NULLABLE>(int)?;
                slots.assign(int, value);
                value
            }
            false if INCREMENTED => slots.implied(int, |bits| int.following(bits))?,
            false => slots.implied(int, |bits| bits)?,
        };
        self.pass_bit();
        Some(value)
    }

    /// Reads an integer with the default operator.
    #[inline(always)]
    pub(super) fn default<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
    ) -> Option<Option<u64>> {
        let value = match self.bit() {
            true => self.read::<SIGNED, NULLABLE>(int)?,
            false => int.has_initial.then_some(int.initial),
        };
        self.pass_bit();
        Some(value)
    }

    /// Reads a delta and adds it to the previous value, which the sum replaces.
    #[inline(always)]
    pub(super) fn delta<const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
        add: impl FnOnce(&Int, u64, i64) -> Option<u64>,
    ) -> Option<Option<u64>> {
        let next = self.signed()?;
        let mut difference = next.value;
        if NULLABLE {
            if difference == 0 {
                self.rest = next.behind;
                return Some(None);
            }
            difference -= i64::from(difference > 0);
        }
        let base = slots.base(int)?;
        let value = add(int, base, difference)?;
        slots.assign(int, Some(value));
        self.rest = next.behind;
        Some(Some(value))
    }

    /// Reads an integer with any operator: a field of a rare kind, a part of a decimal, or a
    /// length.
    #[inline(always)]
    pub(super) fn any(&mut self, int: &Int, slots: &mut Slots) -> Option<Option<u64>> {
        let value;
        (value, *self) = any_of_all(*self, int, slots);
        value
    }

    /// Reads a decimal without an operator.
    #[inline(always)]
    pub(super) fn decimal<const NULLABLE: bool>(&mut self) -> Option<Option<Decimal>> {
        let first = self.signed()?;
        let mut exponent = first.value;
        if NULLABLE {
            if exponent == 0 {
                self.rest = first.behind;
                return Some(None);
            }
            exponent -= i64::from(exponent > 0);
        }
        let exponent = exponent_within(exponent)?;
        let second = Self {
            rest: first.behind,
            ..*self
        }
        .signed()?;
        self.rest = second.behind;
        let mantissa = second.value;
        Some(Some(Decimal { mantissa, exponent }))
    }

    /// Reads a decimal whose parts have operators of their own.
    #[inline(always)]
    pub(super) fn parts<const NULLABLE: bool>(
        &mut self,
        [first, second]: &[Int; 2],
        slots: &mut Slots,
    ) -> Option<Option<Decimal>> {
        let mut there = *self;
        let mut before = None;
        let exponent = match first.operation {
            Operation::Default => there.default::<true, NULLABLE>(first)?,
            Operation::None => there.read::<true, NULLABLE>(first)?,
            _ => {
                before = slots.value(first.slot).copied();
                there.any(first, slots)?
            }
        };
        let Some(exponent) = exponent else {
            *self = there;
            return Some(None);
        };
        let decimal = exponent_within(exponent as i64).and_then(|exponent| {
            let mantissa = there.mantissa(second, slots)?;
            Some(Decimal { mantissa, exponent })
        });
        match decimal {
            Some(_) => *self = there,
            None => slots.restore(first, before),
        }
        decimal.map(Some)
    }

    /// Reads a mantissa with its operator.
    #[inline(always)]
    fn mantissa(&mut self, int: &Int, slots: &mut Slots) -> Option<i64> {
        let mantissa = match (int.operation, int.is_optional) {
            (Operation::DeltaI64, false) => self.delta::<false>(int, slots, signed_sum)?,
            _ => self.any(int, slots)?,
        };
        Some(mantissa.unwrap_or_default() as i64)
    }

    /// Returns the next value if it is an ASCII string without a zero preamble, with the bytes
    /// after it.
    #[inline(always)]
    pub(super) fn ascii<const NULLABLE: bool>(&self) -> Option<(Text<'a>, &'a [u8])> {
        let (&first, behind) = self.rest.split_first()?;
        if first > 0x80 {
            return Some((Text::Char(first & 0x7f), behind));
        }
        if first == 0x80 {
            let empty = match NULLABLE {
                true => Text::Absent,
                false => Text::Short(0, 0),
            };
            return Some((empty, behind));
        }
        if first == 0 {
            return None;
        }
        if let Some((several, behind)) = stopbit::split_several(self.rest) {
            let (text, len) = several.chars();
            return Some((Text::Short(text, len), behind));
        }
        let text = long_entity(self.rest)?;
        Some((Text::Long(text), self.rest.get(text.len()..)?))
    }
}

/// Reads an integer with any operator, and returns the cursor after it. A cursor passed by
/// reference would live in memory.
#[inline(never)]
fn any_of_all<'a>(
    mut cursor: Cursor<'a>,
    int: &Int,
    slots: &mut Slots,
) -> (Option<Option<u64>>, Cursor<'a>) {
    let value = match (int.is_signed, int.is_optional) {
        (false, false) => cursor.any_as::<false, false>(int, slots),
        (false, true) => cursor.any_as::<false, true>(int, slots),
        (true, false) => cursor.any_as::<true, false>(int, slots),
        (true, true) => cursor.any_as::<true, true>(int, slots),
    };
    (value, cursor)
}

impl Cursor<'_> {
    fn any_as<const SIGNED: bool, const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
    ) -> Option<Option<u64>> {
        match int.operation {
            Operation::None => self.read::<SIGNED, NULLABLE>(int),
            Operation::Constant if NULLABLE => Some(self.take_bit().then_some(int.initial)),
            Operation::Constant => Some(Some(int.initial)),
            Operation::Default => self.default::<SIGNED, NULLABLE>(int),
            Operation::Copy => self.carry::<SIGNED, NULLABLE, false>(int, slots),
            Operation::Increment => self.carry::<SIGNED, NULLABLE, true>(int, slots),
            Operation::Delta => self.delta::<NULLABLE>(int, slots, small_sum),
            Operation::DeltaU64 => self.delta::<NULLABLE>(int, slots, unsigned_sum),
            Operation::DeltaI64 => self.delta::<NULLABLE>(int, slots, signed_sum),
            Operation::Op => None,
        }
    }
}

#[inline(never)]
fn long_entity(rest: &[u8]) -> Option<&[u8]> {
    rest.get(..stopbit::entity_end(rest, 0)?)
}

impl Int {
    /// Returns true if the value is within the bounds of the type.
    #[inline(always)]
    pub(crate) const fn holds(&self, bits: u64) -> bool {
        bits.wrapping_sub(self.min) <= self.span
    }

    /// Returns the next value. The smallest value follows the largest one (section 6.3.6).
    #[inline(always)]
    pub(crate) const fn following(&self, bits: u64) -> u64 {
        let next = bits.wrapping_add(1);
        if self.holds(next) { next } else { self.min }
    }
}

/// Adds a delta to a base of at most 32 bits. A delta of eight bytes cannot overflow 64 bits.
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
    /// Makes the value the previous one. `None` makes that empty.
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

    /// Returns the value of a field that is not in the stream: `next` of the previous value, or the
    /// initial value. The value becomes the previous one.
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

    /// Returns the base of a delta.
    #[inline(always)]
    fn base(&self, int: &Int) -> Option<u64> {
        let slot = self.value(int.slot)?;
        if slot.stamp == self.stamp(int.state) {
            return Some(slot.bits);
        }
        self.is_outdated(slot.stamp).then_some(int.initial)
    }
}
