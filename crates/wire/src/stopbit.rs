//! Stop-bit encoded entities of FAST 1.1 (section 10.2). An entity is a run of bytes, the last of
//! which has its most significant bit set. Each byte has seven data bits, most significant first.
//!
//! These are the scalar kernels, and the oracle of the vector kernels. Nothing allocates.

mod squeeze;

pub use squeeze::Squeeze;

/// The reason why no entity could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopBitError {
    /// The bytes end before a stop bit.
    Truncated,
    /// The value has more significant bits than the result holds.
    Overflow,
}

/// An integer that was read from the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entity<T> {
    /// The integer.
    pub value: T,
    /// The index of the first byte after the entity.
    pub next: usize,
    /// Whether seven or more leading bits are redundant (section 10.6.1, R6).
    pub overlong: bool,
}

/// The length of the longest entity of a 64-bit integer, which may be nullable.
pub const MAX_INT_LEN: usize = 10;

/// The length of the longest entity of a 128-bit integer.
pub const MAX_WIDE_LEN: usize = 19;

macro_rules! unsigned_reader {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// Returns a [`StopBitError`]. Leading zero groups never overflow.
        #[inline(always)]
        pub fn $name(bytes: &[u8], start: usize) -> Result<Entity<$type>, StopBitError> {
            let mut value: $type = 0;
            let mut next = start;
            loop {
                let Some(&byte) = bytes.get(next) else { return Err(StopBitError::Truncated) };
                if value >> (<$type>::BITS - 7) != 0 {
                    return Err(StopBitError::Overflow);
                }
                value = value << 7 | <$type>::from(byte & 0x7f);
                next += 1;
                if byte & 0x80 != 0 {
                    let overlong = next - start > 1 && bytes[start] == 0;
                    return Ok(Entity { value, next, overlong });
                }
            }
        }
    };
}

macro_rules! signed_reader {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        ///
        /// # Errors
        /// Returns a [`StopBitError`]. Leading groups that repeat the sign never overflow.
        #[inline(always)]
        pub fn $name(bytes: &[u8], start: usize) -> Result<Entity<$type>, StopBitError> {
            let Some(&first) = bytes.get(start) else { return Err(StopBitError::Truncated) };
            let mut value: $type = if first & 0x40 != 0 { -1 } else { 0 };
            let mut next = start;
            loop {
                let Some(&byte) = bytes.get(next) else { return Err(StopBitError::Truncated) };
                if (value << 7) >> 7 != value {
                    return Err(StopBitError::Overflow);
                }
                value = value << 7 | <$type>::from(byte & 0x7f);
                next += 1;
                if byte & 0x80 != 0 {
                    let overlong = next - start > 1 && sign_repeats(first, bytes[start + 1]);
                    return Ok(Entity { value, next, overlong });
                }
            }
        }
    };
}

unsigned_reader! {
    /// Reads an unsigned integer of up to 64 bits at `start`.
    read_unsigned, u64
}
unsigned_reader! {
    /// Reads an unsigned integer of up to 128 bits at `start`, for nullable 64-bit integers, whose
    /// entity is one larger than the value.
    read_unsigned_wide, u128
}
signed_reader! {
    /// Reads a signed integer of up to 64 bits at `start`.
    read_signed, i64
}
signed_reader! {
    /// Reads a signed integer of up to 128 bits at `start`, for deltas of 64-bit integers.
    read_signed_wide, i128
}

/// Splits `bytes` after an entity of two to eight bytes, and returns the entity and the bytes after
/// it. Returns `None` if the entity has more than eight bytes, or if `bytes` end before it does.
#[inline(always)]
#[must_use]
pub fn split_several(bytes: &[u8]) -> Option<(Several, &[u8])> {
    let word = first_word(bytes);
    let stops = word & STOPS;
    if stops == 0 {
        return None;
    }
    let last = stops.trailing_zeros();
    let several = Several { word, last };
    Some((several, bytes.get(several.size()..)?))
}

/// An entity of two to eight bytes, and perhaps some bytes after it.
#[derive(Debug, Clone, Copy)]
pub struct Several {
    word: u64,
    /// The number of the stop bit in the word.
    last: u32,
}

impl Several {
    /// Returns the number of bytes of the entity.
    #[inline(always)]
    #[must_use]
    pub const fn size(self) -> usize {
        (self.last as usize + 1) / 8
    }

    /// Returns the data bits of the entity, with zeros above them.
    #[inline(always)]
    #[must_use]
    pub fn unsigned(self, how: Squeeze) -> u64 {
        how.squeeze(self.word.swap_bytes() >> (!self.last & 63))
    }

    /// Returns the entity as a signed integer.
    #[inline(always)]
    #[must_use]
    pub fn signed(self, how: Squeeze) -> i64 {
        // The sign takes the place of the first byte's stop bit, which is 0, and comes down.
        let word = (self.word.swap_bytes() << 1) as i64;
        let word = word >> (self.last.wrapping_neg() & 63);
        (how.squeeze(word as u64) << 8) as i64 >> 8
    }

    /// Returns whether the first seven bits of an unsigned integer are redundant.
    #[inline(always)]
    #[must_use]
    pub const fn is_overlong(self) -> bool {
        self.word as u8 == 0
    }

    /// Returns whether the first seven bits of a signed integer are redundant.
    #[inline(always)]
    #[must_use]
    pub const fn is_overlong_signed(self) -> bool {
        let (first, second) = (self.word as u8, (self.word >> 8) as u8);
        // Only a first byte of zeros or of ones can repeat the sign.
        first.wrapping_add(1) & 0x7e == 0 && (first ^ second) & 0x40 == 0
    }

    /// Returns the characters as a word, the first one lowest, and their number. The stop bit of
    /// the last one is cleared, and zeros follow it.
    #[inline(always)]
    #[must_use]
    pub const fn chars(self) -> (u64, usize) {
        let below = (1 << self.last) - 1;
        (self.word & below, self.size())
    }
}

/// The stop bits of a word.
const STOPS: u64 = 0x8080_8080_8080_8080;

/// Returns the number of entities at the front of `bytes` that are NULL, which is one byte with
/// data bits of zero. Counts up to eight.
#[inline(always)]
#[must_use]
pub fn leading_nulls(bytes: &[u8]) -> usize {
    ((first_word(bytes) ^ STOPS).trailing_zeros() / 8) as usize
}

/// Returns eight bytes as a word, the first one lowest, with zeros after the end.
#[inline(always)]
fn first_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => last_word(bytes),
    }
}

#[cold]
#[inline(never)]
fn last_word(rest: &[u8]) -> u64 {
    let each = rest.iter().take(8).rev();
    each.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the lowest seven bits of each byte, joined.
#[inline(always)]
const fn squeeze(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x0000_3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

/// Returns whether `second` still has the sign if `first`, the leading byte, is removed.
#[inline]
fn sign_repeats(first: u8, second: u8) -> bool {
    (first == 0x00 && second & 0x40 == 0) || (first == 0x7f && second & 0x40 != 0)
}

/// Returns the index after the entity that begins at `start`, or `None` if `bytes` end before the
/// entity does.
#[inline]
#[must_use]
pub fn entity_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while let Some(word) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(word.try_into().ok()?) & 0x8080_8080_8080_8080;
        if word != 0 {
            return Some(at + word.trailing_zeros() as usize / 8 + 1);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?;
    rest.iter()
        .position(|byte| byte & 0x80 != 0)
        .map(|index| at + index + 1)
}

/// An entity of up to eight bytes, and its length. The bytes after the entity have no meaning.
pub type Spread = ([u8; 8], usize);

/// Returns `value` in its shortest form, or `None` if that is longer than eight bytes.
#[inline(always)]
#[must_use]
pub const fn spread_unsigned(value: u64) -> Option<Spread> {
    let len = groups(64 - (value | 1).leading_zeros());
    match len {
        ..=8 => Some((spread(value, len), len)),
        _ => None,
    }
}

/// Returns `value` in its shortest form, sign bit included, or `None` if that is longer than eight
/// bytes.
#[inline(always)]
#[must_use]
pub const fn spread_signed(value: i64) -> Option<Spread> {
    let magnitude = value ^ value >> 63;
    let len = groups(65 - magnitude.leading_zeros());
    match len {
        ..=8 => Some((spread(value as u64, len), len)),
        _ => None,
    }
}

/// Returns how many groups of seven bits hold `bits` bits, which are from 1 to 65.
#[inline(always)]
const fn groups(bits: u32) -> usize {
    // Divided by seven and rounded up, without a division.
    ((9 * bits + 64) / 64) as usize
}

/// Writes `value` in its shortest form to the front of `out`, and returns the number of bytes. The
/// bytes after them in `out` are undefined.
#[inline]
pub fn write_unsigned(value: u64, out: &mut [u8; MAX_INT_LEN]) -> usize {
    match spread_unsigned(value) {
        Some(spread) => put(spread, out),
        None => fill(value.into(), groups(64 - value.leading_zeros()), out),
    }
}

/// Writes `value` in its shortest form to the front of `out`, and returns the number of bytes.
#[inline]
pub fn write_unsigned_wide(value: u128, out: &mut [u8; MAX_WIDE_LEN]) -> usize {
    let len = ((128 - (value | 1).leading_zeros()) as usize).div_ceil(7);
    fill(value, len, out)
}

/// Writes `value` in its shortest form, sign bit included, to the front of `out`, and returns the
/// number of bytes. The bytes after them in `out` are undefined.
#[inline]
pub fn write_signed(value: i64, out: &mut [u8; MAX_INT_LEN]) -> usize {
    match spread_signed(value) {
        Some(spread) => put(spread, out),
        None => {
            let magnitude = value ^ value >> 63;
            fill(value as u128, groups(65 - magnitude.leading_zeros()), out)
        }
    }
}

/// Writes `value` in its shortest form, sign bit included, to the front of `out`, and returns the
/// number of bytes.
#[inline]
pub fn write_signed_wide(value: i128, out: &mut [u8; MAX_WIDE_LEN]) -> usize {
    let magnitude = if value < 0 { !value } else { value };
    let len = ((128 - magnitude.leading_zeros()) as usize + 1).div_ceil(7);
    fill(value as u128, len, out)
}

#[inline(always)]
fn put((bytes, len): Spread, out: &mut [u8; MAX_INT_LEN]) -> usize {
    out[..8].copy_from_slice(&bytes);
    len
}

/// Returns the bytes that [`fill`] writes, for up to eight bytes, all at once. Halves, quarters and
/// eighths of the 56 bits are moved apart.
#[inline(always)]
const fn spread(value: u64, len: usize) -> [u8; 8] {
    let x = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let x = x & 0x0000_3fff_0000_3fff | (x & 0x0fff_c000_0fff_c000) << 2;
    let x = x & 0x007f_007f_007f_007f | (x & 0x3f80_3f80_3f80_3f80) << 1;
    ((x | 0x80) << (64 - 8 * len)).to_be_bytes()
}

/// Writes the lowest `7 * len` bits of `value` to the first `len` bytes of `out`, with the stop bit
/// in the last one, and returns `len`.
#[inline]
fn fill(value: u128, len: usize, out: &mut [u8]) -> usize {
    for (index, byte) in out[..len].iter_mut().enumerate() {
        *byte = (value >> (7 * (len - 1 - index))) as u8 & 0x7f;
    }
    out[len - 1] |= 0x80;
    len
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn signed(value: i64) -> Vec<u8> {
        let mut out = [0; MAX_INT_LEN];
        let len = write_signed(value, &mut out);
        out[..len].to_vec()
    }

    #[test]
    fn the_examples_of_the_specification_hold() {
        for (value, bytes) in [
            (942_755, &[0x39, 0x45, 0xa3][..]),
            (-942_755, &[0x46, 0x3a, 0xdd]),
            (-7_942_755, &[0x7c, 0x1b, 0x1b, 0x9d]),
            (8193, &[0x00, 0x40, 0x81]),
            (-8193, &[0x7f, 0x3f, 0xff]),
            (64, &[0x00, 0xc0]),
        ] {
            assert_eq!(signed(value), bytes, "{value}");
            let entity = read_signed(bytes, 0).unwrap();
            assert_eq!((entity.value, entity.overlong), (value, false), "{value}");
        }
    }

    #[test]
    fn overlong_and_overflowing_integers_are_told_apart() {
        assert!(read_unsigned(&[0x00, 0x81], 0).unwrap().overlong);
        assert!(read_signed(&[0x00, 0x81], 0).unwrap().overlong);
        assert!(!read_signed(&[0x00, 0xc1], 0).unwrap().overlong);
        assert!(read_signed(&[0x7f, 0xff], 0).unwrap().overlong);
        assert!(!read_signed(&[0x7f, 0xbf], 0).unwrap().overlong);
        let most = [0x01, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0xff];
        assert_eq!(read_unsigned(&most, 0).unwrap().value, u64::MAX);
        let more = [0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(read_unsigned(&more, 0), Err(StopBitError::Overflow));
        assert_eq!(read_unsigned_wide(&more, 0).unwrap().value, 1 << 64);
        assert_eq!(
            read_unsigned(&[0x01, 0x01], 0),
            Err(StopBitError::Truncated)
        );
        assert_eq!(read_signed(&[], 0), Err(StopBitError::Truncated));
    }

    proptest! {
        #[test]
        fn short_entities_are_what_the_slow_readers_find(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), 0_u8..0x80, Just(0), Just(0x7f), Just(0x80)], 0..14),
        ) {
            let nulls = bytes.iter().take_while(|byte| **byte == 0x80);
            prop_assert_eq!(leading_nulls(&bytes), nulls.count().min(8));
            let end = entity_end(&bytes, 0).filter(|end| *end <= 8);
            let several = split_several(&bytes);
            prop_assert_eq!(several.map(|(several, _)| several.size()), end);
            let (Some((several, behind)), Some(end)) = (several, end) else {
                return Ok(());
            };
            prop_assert_eq!(behind, &bytes[end..]);
            let chars = bytes[..end].iter().rev();
            let chars = chars.fold(0, |word, byte| word << 8 | u64::from(byte & 0x7f));
            prop_assert_eq!(several.chars(), (chars, end));
            if end == 1 {
                return Ok(());
            }
            let unsigned = read_unsigned(&bytes, 0).unwrap();
            let signed = read_signed(&bytes, 0).unwrap();
            prop_assert_eq!(several.is_overlong(), unsigned.overlong);
            prop_assert_eq!(several.is_overlong_signed(), signed.overlong);
            for how in [Squeeze::best(), Squeeze::portable()] {
                prop_assert_eq!(several.unsigned(how), unsigned.value);
                prop_assert_eq!(several.signed(how), signed.value);
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(
            value: u64,
            shift in 0u32..64,
            text in proptest::collection::vec(0u8..128, 0..40),
        ) {
            let value = value >> shift;
            let mut out = [0; MAX_INT_LEN];
            let len = write_unsigned(value, &mut out);
            let entity = Entity { value, next: len, overlong: false };
            prop_assert_eq!(read_unsigned(&out[..len], 0).unwrap(), entity);
            let value = (value as i64).wrapping_neg();
            let len = write_signed(value, &mut out);
            let entity = Entity { value, next: len, overlong: false };
            prop_assert_eq!(read_signed(&out[..len], 0).unwrap(), entity);
            let mut wide = [0; MAX_WIDE_LEN];
            let len_wide = write_signed_wide(value.into(), &mut wide);
            prop_assert_eq!(&out[..len], &wide[..len_wide]);
            let value = i128::from(value) * 3;
            let len = write_signed_wide(value, &mut wide);
            prop_assert_eq!(read_signed_wide(&wide[..len], 0).unwrap().value, value);
            prop_assert_eq!(entity_end(&text, 0), None);
            let mut text = text;
            text.push(0xc1);
            prop_assert_eq!(entity_end(&text, 0), Some(text.len()));
        }
    }
}
