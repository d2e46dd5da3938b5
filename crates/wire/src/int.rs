//! Decimal integers as text: parsing with exact overflow rules, and writing without allocation.

/// Parses an unsigned decimal number.
///
/// Leading zeros are allowed (FIX writes `38=002000`). A sign, a blank, an empty text and a value
/// above `u64::MAX` are not.
#[inline]
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    if text.len() > 19 {
        return parse_u64_long(text);
    }
    let mut value = 0_u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // At most 19 digits: cannot overflow.
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    Some(value)
}

#[cold]
fn parse_u64_long(text: &[u8]) -> Option<u64> {
    text.iter().try_fold(0_u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Parses a decimal number with an optional leading `-`. The other rules are those of
/// [`parse_u64`].
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => 0_i64.checked_sub_unsigned(parse_u64(digits)?),
        None => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// Returns the number with the digits in the last `count` of eight bytes, all at once. `eight` is
/// the little-endian word of the bytes. Returns `None` if `count` is not from 1 to 8, or if one of
/// the bytes is no digit.
#[inline(always)]
pub fn parse_last_of_eight(eight: u64, count: usize) -> Option<u32> {
    if count == 0 || count > 8 {
        return None;
    }
    // Zeros take the place of what stands in front.
    let foreign_bits = 64 - 8 * count;
    let digits = (eight ^ 0x3030_3030_3030_3030) >> foreign_bits << foreign_bits;
    let above_nine = digits.wrapping_add(0x7676_7676_7676_7676) | digits;
    if above_nine & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    // The digit written first is in the lowest byte: join pairs, fours, all eight.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_ffff_0000_ffff;
    Some(fours.wrapping_mul(10_000).wrapping_add(fours >> 32) as u32)
}

/// Returns the number of decimal digits of `value`, from 1 to 20.
#[inline]
pub const fn digits(value: u64) -> usize {
    match value.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// Writes `value` at the front of `out` without leading zeros, and returns the number of bytes
/// written. If `out` is too short, writes nothing and returns 0.
#[inline]
pub fn write_u64(value: u64, out: &mut [u8]) -> usize {
    write_padded(value, digits(value), out)
}

/// Returns the text of a value below 10^8, as the bytes of a word from its lowest one on, and its
/// length, all digits at once. The bytes after the text are no digits. Returns `None` for larger
/// values.
#[inline]
pub fn short_text(value: u64) -> Option<(u64, usize)> {
    if value >= 100_000_000 {
        return None;
    }
    // Halves, pairs, digits; the digit written first goes to the lowest byte.
    let halves = (value / 10_000) | ((value % 10_000) << 32);
    // Division by 100 as multiplication and shift, exact below 10,000.
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let digits = digits_of_pairs(hundreds | ((halves - hundreds * 100) << 16));
    // The last digit stands also where it is zero.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    let text = (digits | 0x3030_3030_3030_3030) >> (8 * zeros);
    Some((text, 8 - zeros as usize))
}

/// Returns the eight digits (0 to 9, the first one lowest) of four numbers below 100, which are in
/// lanes of 16 bits.
#[inline]
pub(crate) fn digits_of_pairs(pairs: u64) -> u64 {
    // Division by 10 as multiplication and shift, exact below 100.
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((pairs - tens * 10) << 8)
}

/// Writes `value` at the front of `out`, with a leading `-` if it is negative. The result is that
/// of [`write_u64`].
#[inline]
pub fn write_i64(value: i64, out: &mut [u8]) -> usize {
    if value >= 0 {
        return write_u64(value.unsigned_abs(), out);
    }
    let Some((sign, rest)) = out.split_first_mut() else {
        return 0;
    };
    let written = write_u64(value.unsigned_abs(), rest);
    if written == 0 {
        return 0;
    }
    *sign = b'-';
    written + 1
}

/// Writes `value` with leading zeros in exactly `width` bytes at the front of `out`, and returns
/// `width`. If `out` is shorter than that or `value` has more digits, writes nothing and returns 0.
#[inline]
pub fn write_padded(mut value: u64, width: usize, out: &mut [u8]) -> usize {
    if digits(value) > width {
        return 0;
    }
    let Some(out) = out.get_mut(..width) else {
        return 0;
    };
    let mut pairs = out.rchunks_exact_mut(2);
    for pair in &mut pairs {
        pair.copy_from_slice(&pair_of((value % 100) as u32));
        value /= 100;
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (value % 10) as u8;
    }
    width
}

/// Returns the two digits of a value below 100.
#[inline]
pub(crate) fn pair_of(value: u32) -> [u8; 2] {
    PAIRS[(value & 127) as usize]
}

/// The texts 00 to 99. Their number is a power of two, so that a mask keeps the look-up in range.
const PAIRS: [[u8; 2]; 128] = {
    let mut table = [[b'0'; 2]; 128];
    let mut i = 0;
    while i < 100 {
        table[i] = [b'0' + (i / 10) as u8, b'0' + (i % 10) as u8];
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parse_refuses_what_is_no_number() {
        for text in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "0x1",
            "--1",
            "18446744073709551616",
        ] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text}");
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_u64(b"-1"), None);
        assert_eq!(parse_u64(b"0000000000000000000000007"), Some(7));
        assert_eq!(parse_i64(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_i64(b"9223372036854775808"), None);
        assert_eq!(parse_i64(b"-9223372036854775809"), None);
    }

    #[test]
    fn short_text_of_each_half() {
        for value in 0..10_000 {
            for value in [value, value * 10_000] {
                let (text, len) = short_text(value).unwrap();
                assert_eq!(&text.to_le_bytes()[..len], value.to_string().as_bytes());
            }
        }
        assert_eq!(short_text(100_000_000), None);
    }

    #[test]
    fn write_says_when_there_is_no_room() {
        let mut out = *b"xxx";
        assert_eq!(write_u64(1000, &mut out), 0);
        assert_eq!(write_i64(-100, &mut out), 0);
        assert_eq!(write_padded(100, 2, &mut out), 0);
        assert_eq!(write_padded(7, 4, &mut out), 0);
        assert_eq!(&out, b"xxx");
        assert_eq!(write_padded(7, 3, &mut out), 3);
        assert_eq!(&out, b"007");
    }

    proptest! {
        #[test]
        fn unsigned_as_the_standard_library(value: u64) {
            let mut out = [0; 20];
            let n = write_u64(value, &mut out);
            let standard = value.to_string();
            prop_assert_eq!(&out[..n], standard.as_bytes());
            prop_assert_eq!(parse_u64(&out[..n]), Some(value));
        }

        #[test]
        fn short_text_as_the_standard_library(value in 0..100_000_000_u64, shift in 0..27) {
            for value in [value, value >> shift] {
                let (text, len) = short_text(value).unwrap();
                let standard = value.to_string();
                prop_assert_eq!(&text.to_le_bytes()[..len], standard.as_bytes());
            }
        }

        #[test]
        fn signed_as_the_standard_library(value: i64) {
            let mut out = [0; 20];
            let n = write_i64(value, &mut out);
            let standard = value.to_string();
            prop_assert_eq!(&out[..n], standard.as_bytes());
            prop_assert_eq!(parse_i64(&out[..n]), Some(value));
        }

        #[test]
        fn last_of_eight_as_the_slow_way(text in "[0-9]{8}|[ -~]{8}", count in 0..10_usize) {
            let word = u64::from_le_bytes(text.as_bytes().try_into().unwrap());
            let tail = text.as_bytes().get(8_usize.wrapping_sub(count)..).unwrap_or_default();
            let slow = parse_u64(tail).map(|value| value as u32);
            prop_assert_eq!(parse_last_of_eight(word, count), slow);
        }

        #[test]
        fn any_text_as_the_standard_library(text in "[0-9a-]{0,24}") {
            prop_assert_eq!(parse_u64(text.as_bytes()), text.parse().ok());
            prop_assert_eq!(parse_i64(text.as_bytes()), text.parse().ok());
        }
    }
}
