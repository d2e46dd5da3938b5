//! Decimal integers as text: parsing with exact overflow rules, writing without allocation.

/// Parses an unsigned decimal number.
///
/// Leading zeros are allowed (FIX writes `38=002000`); a sign, a blank, an empty text and a value
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

/// Parses a decimal number with an optional leading `-`. See [`parse_u64`] for the rest.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(digits) => 0_i64.checked_sub_unsigned(parse_u64(digits)?),
        None => i64::try_from(parse_u64(text)?).ok(),
    }
}

/// The number of decimal digits of `value`: 1 to 20.
#[inline]
pub const fn digits(value: u64) -> usize {
    match value.checked_ilog10() {
        Some(log) => log as usize + 1,
        None => 1,
    }
}

/// Writes `value` at the front of `out` without leading zeros and returns the number of bytes
/// written; 0, and nothing written, if `out` is too short.
#[inline]
pub fn write_u64(value: u64, out: &mut [u8]) -> usize {
    write_padded(value, digits(value), out)
}

/// Writes `value` at the front of `out`, a leading `-` if negative. Returns as [`write_u64`].
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

/// Writes `value` with leading zeros in exactly `width` bytes at the front of `out` and returns
/// `width`; 0, and nothing written, if `out` is shorter than that or `value` has more digits.
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
        let two = PAIRS[(value % 100) as usize];
        value /= 100;
        pair.copy_from_slice(&two);
    }
    if let [first] = pairs.into_remainder() {
        *first = b'0' + (value % 10) as u8;
    }
    width
}

/// The texts 00 to 99.
pub(crate) const PAIRS: [[u8; 2]; 100] = {
    let mut table = [[b'0'; 2]; 100];
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
        fn signed_as_the_standard_library(value: i64) {
            let mut out = [0; 20];
            let n = write_i64(value, &mut out);
            let standard = value.to_string();
            prop_assert_eq!(&out[..n], standard.as_bytes());
            prop_assert_eq!(parse_i64(&out[..n]), Some(value));
        }

        #[test]
        fn any_text_as_the_standard_library(text in "[0-9a-]{0,24}") {
            prop_assert_eq!(parse_u64(text.as_bytes()), text.parse().ok());
            prop_assert_eq!(parse_i64(text.as_bytes()), text.parse().ok());
        }
    }
}
