//! Where the fused executor writes, and the values that it writes there. Each method returns `None`
//! for a value that it leaves to the op: the cursor and the previous values are then unchanged.

use crate::node::Node;
use crate::program::FieldId;
use crate::program::fused::{Int, Operation};
use crate::slots::Slots;
use crate::value::Decimal;
use fanfare_wire::stopbit;

/// The head of an absent field's node, those of others, and what all have for field 0.
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

/// A byte that is NULL, and a word of them.
const NULL: u8 = 0x80;
const NULLS: [u8; 8] = [NULL; 8];

/// The place of the executor in a body.
pub(super) struct Cursor<'a> {
    pub(super) room: &'a mut [u8],
    /// How many bytes are written.
    pub(super) at: usize,
    /// The presence bits so far below a one, the last bit lowest.
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

    /// Writes `len` bytes of a word, which has the first one lowest.
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

    /// Writes as many as eight absent fields that take one byte each, none of which counts yet.
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

    /// Writes an integer, unless it is out of the bounds of its type, or NULL.
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

    /// Writes a copied integer, or an incremented one, unless it is what follows from the previous
    /// value. It becomes the previous value.
    #[inline(always)]
    pub(super) fn carry<const SIGNED: bool, const NULLABLE: bool, const INCREMENTED: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
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

    /// Writes an integer unless it is the initial value.
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

    /// Writes the difference from the previous value, which the value replaces.
    #[inline(always)]
    pub(super) fn delta<const NULLABLE: bool>(
        &mut self,
        int: &Int,
        slots: &mut Slots,
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

    /// Writes a constant, of which nothing is in the stream but its bit if it is optional.
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

    /// Writes a decimal without operator: that of a node whose head is this of field 0.
    #[inline(always)]
    pub(super) fn decimal<const NULLABLE: bool>(&mut self, head: u64, word: u64) -> Option<()> {
        let Some(exponent) = exponent(head) else {
            return (NULLABLE && head == ABSENT).then(|| self.null())?;
        };
        // Of one byte in any case.
        if !(-63..63).contains(&exponent) {
            return None;
        }
        let at = self.at;
        self.signed::<NULLABLE>(exponent.into())?;
        let done = self.signed::<false>(word as i64);
        if done.is_none() {
            self.at = at;
        }
        done
    }

    /// Writes a decimal whose parts have operators of their own.
    #[inline(always)]
    pub(super) fn parts<const NULLABLE: bool>(
        &mut self,
        [first, second]: &[Int; 2],
        slots: &mut Slots,
        (head, word): (u64, u64),
    ) -> Option<()> {
        let value = match exponent(head) {
            Some(exponent @ -63..=63) => Some(i64::from(exponent) as u64),
            None if NULLABLE && head == ABSENT => None,
            _ => return None,
        };
        let (at, map) = (self.at, self.map);
        let mut before = None;
        match first.operation {
            Operation::Default => self.default::<true, NULLABLE>(first, value)?,
            Operation::None => self.write::<true, NULLABLE>(first, value)?,
            _ => {
                before = slots.value(first.slot).copied();
                self.any(first, slots, value)?;
            }
        }
        if value.is_none() {
            return Some(());
        }
        let done = match (second.operation, second.is_optional) {
            (Operation::DeltaI64, false) => {
                self.delta::<false>(second, slots, Some(word), signed_difference)
            }
            _ => self.any(second, slots, Some(word)),
        };
        if done.is_none() {
            (self.at, self.map) = (at, map);
            slots.restore(first.slot, before);
        }
        done
    }

    /// Writes a string of one to eight characters, or an empty or absent one.
    #[inline(always)]
    pub(super) fn ascii<const NULLABLE: bool>(&mut self, text: Short) -> Option<()> {
        match text {
            Short { len: 0, .. } if NULLABLE => self.word([0, 0x80, 0, 0, 0, 0, 0, 0], 2),
            Short { len: 0, .. } => self.byte(0x80),
            Short { bits, len } => {
                let stop = 0x80 << ((8 * len).wrapping_sub(8) & 63);
                self.word((bits | stop).to_le_bytes(), len)
            }
        }
    }

    /// Writes an integer of any operator: one of a rare kind, a part of a decimal, or a length.
    #[inline(always)]
    pub(super) fn any(&mut self, int: &Int, slots: &mut Slots, value: Option<u64>) -> Option<()> {
        let mut there = Cursor {
            room: &mut *self.room,
            ..*self
        };
        there.any_of_all(int, slots, value)?;
        (self.at, self.map) = (there.at, there.map);
        Some(())
    }

    /// Works on a copy of the cursor: a cursor passed by reference would live in memory.
    #[inline(never)]
    fn any_of_all(&mut self, int: &Int, slots: &mut Slots, value: Option<u64>) -> Option<()> {
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
        slots: &mut Slots,
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

/// The difference between two values of at most 32 bits.
#[inline(always)]
pub(super) const fn small_difference(value: u64, base: u64) -> Option<i64> {
    Some(value.wrapping_sub(base) as i64)
}

/// That of unsigned ones, if both are signed ones too.
#[inline(always)]
pub(super) fn unsigned_difference(value: u64, base: u64) -> Option<i64> {
    ((value | base) >> 63 == 0).then(|| value.wrapping_sub(base) as i64)
}

#[inline(always)]
pub(super) const fn signed_difference(value: u64, base: u64) -> Option<i64> {
    (value as i64).checked_sub(base as i64)
}

/// A string that needs no preamble, but for an empty one: its characters, the first one lowest, and
/// how many there are, eight at most.
#[derive(Clone, Copy)]
pub(super) struct Short {
    pub(super) bits: u64,
    pub(super) len: usize,
}

impl Short {
    /// The length of the string in a node of field 0 with this head; above 255 if there is none.
    #[inline(always)]
    pub(super) const fn len(head: u64) -> u64 {
        Node::short_len(head ^ TEXT)
    }

    /// The string in a node of field 0 with this head, if it has one.
    #[inline(always)]
    pub(super) const fn of((head, bits): (u64, u64)) -> Option<Self> {
        let len = Self::len(head);
        if len > 8 || bits & 0x8080_8080_8080_8080 != 0 || len != 0 && bits & 0xff == 0 {
            return None;
        }
        let len = len as usize;
        Some(Self { bits, len })
    }

    /// Returns true if it has these characters, which are so many.
    #[inline(always)]
    pub(super) const fn is(self, bits: u64, len: usize) -> bool {
        self.bits == bits && self.len == len
    }
}

/// The exponent of the decimal in a node of field 0 with this head, if it has one.
#[inline(always)]
fn exponent(head: u64) -> Option<i8> {
    u8::try_from(Node::short_len(head ^ DECIMAL))
        .ok()
        .map(u8::cast_signed)
}
