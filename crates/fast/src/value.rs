//! The types of fields, and the conversion of their values from text (section 8.1).

pub use fanfare_wire::Decimal;

use crate::error::ErrorCode;

/// Integer types, in the order of their sizes, the signed one of each size first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names of the specification")]
pub enum IntType {
    Int8,
    UInt8,
    Int16,
    UInt16,
    Int32,
    UInt32,
    Int64,
    UInt64,
}

impl IntType {
    /// Returns the name of the element in a template.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::UInt8 => "uInt8",
            Self::Int16 => "int16",
            Self::UInt16 => "uInt16",
            Self::Int32 => "int32",
            Self::UInt32 => "uInt32",
            Self::Int64 => "int64",
            Self::UInt64 => "uInt64",
        }
    }

    /// Returns the type that an element of this name declares.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "int8" => Self::Int8,
            "uInt8" => Self::UInt8,
            "int16" => Self::Int16,
            "uInt16" => Self::UInt16,
            "int32" => Self::Int32,
            "uInt32" => Self::UInt32,
            "int64" => Self::Int64,
            "uInt64" => Self::UInt64,
            _ => return None,
        })
    }

    /// Returns the size in bits.
    #[must_use]
    #[inline(always)]
    pub const fn bits(self) -> u32 {
        8 << (self as u32 / 2)
    }

    /// Returns true for `int8` to `int64`.
    #[must_use]
    #[inline(always)]
    pub const fn is_signed(self) -> bool {
        (self as u32).is_multiple_of(2)
    }

    /// Returns the smallest value.
    #[must_use]
    pub const fn min(self) -> i128 {
        if self.is_signed() {
            -(1 << (self.bits() - 1))
        } else {
            0
        }
    }

    /// Returns the largest value.
    #[must_use]
    pub const fn max(self) -> i128 {
        if self.is_signed() {
            (1 << (self.bits() - 1)) - 1
        } else {
            (1 << self.bits()) - 1
        }
    }

    /// Returns true if the type can hold `value`.
    #[must_use]
    #[inline]
    pub const fn holds(self, value: i128) -> bool {
        value >= self.min() && value <= self.max()
    }

    /// Returns true if the type can hold the integer of this 64-bit pattern.
    #[must_use]
    #[inline(always)]
    pub const fn holds_bits(self, bits: u64) -> bool {
        let unused = 64 - self.bits();
        if self.is_signed() {
            ((bits as i64) << unused) >> unused == bits as i64
        } else {
            (bits << unused) >> unused == bits
        }
    }

    /// Returns the integer whose 64-bit pattern (sign-extended if the type is signed) is `bits`.
    #[must_use]
    pub const fn widen(self, bits: u64) -> i128 {
        if self.is_signed() {
            bits as i64 as i128
        } else {
            bits as i128
        }
    }
}

/// The kinds of byte strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextType {
    /// `<string>`: seven-bit characters.
    Ascii,
    /// `<string charset="unicode">`: UTF-8.
    Unicode,
    /// `<byteVector>`.
    Bytes,
}

/// The smallest and the largest exponent of a decimal (section 6.2.2).
pub const EXPONENTS: std::ops::RangeInclusive<i32> = -63..=63;

/// Converts text to an integer of this type. The text is digits, with a leading minus if the type
/// is signed and the integer negative. White space around them is ignored.
///
/// # Errors
/// D11 for other syntax, R4 for a value that the type does not hold.
pub fn parse_int(text: &str, ty: IntType) -> Result<i128, ErrorCode> {
    let text = trim(text);
    let digits = match text.strip_prefix('-') {
        Some(digits) if ty.is_signed() => digits,
        _ => text,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ErrorCode::D11);
    }
    let value: i128 = text.parse().map_err(|_| ErrorCode::R4)?;
    if ty.holds(value) {
        Ok(value)
    } else {
        Err(ErrorCode::R4)
    }
}

/// Converts text to a decimal with the digits of the text: `10.50` is 1050 × 10⁻².
///
/// # Errors
/// D11 for other syntax, R1 where the exponent or the mantissa is out of range.
pub fn parse_decimal(text: &str) -> Result<Decimal, ErrorCode> {
    let text = trim(text);
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = || whole.bytes().chain(fraction.bytes());
    let point_only = unsigned.ends_with('.') && fraction.is_empty();
    if digits().next().is_none() || point_only || !digits().all(|byte| byte.is_ascii_digit()) {
        return Err(ErrorCode::D11);
    }
    let zeros = digits().rev().take_while(|&byte| byte == b'0').count();
    let count = digits().count();
    let mut mantissa: i128 = 0;
    for byte in digits().take(count - zeros) {
        mantissa = mantissa * 10 + i128::from(byte - b'0');
        if mantissa > 1 << 63 {
            return Err(ErrorCode::R1);
        }
    }
    let mut exponent = zeros as i64 - fraction.len() as i64;
    // Trailing zeros stay in the mantissa as far as they fit, for they are digits of the text.
    let least = (-(fraction.len() as i64)).max(i64::from(*EXPONENTS.start()));
    while exponent > least && mantissa != 0 && mantissa * 10 < 1 << 63 {
        mantissa *= 10;
        exponent -= 1;
    }
    if mantissa == 0 {
        exponent = 0;
    }
    scaled(if negative { -mantissa } else { mantissa }, exponent)
}

/// Returns the decimal of these parts.
///
/// # Errors
/// R1 where one is out of range.
pub fn scaled(mantissa: i128, exponent: i64) -> Result<Decimal, ErrorCode> {
    let mantissa = i64::try_from(mantissa).map_err(|_| ErrorCode::R1)?;
    let exponent = i32::try_from(exponent).map_err(|_| ErrorCode::R1)?;
    if !EXPONENTS.contains(&exponent) {
        return Err(ErrorCode::R1);
    }
    Ok(Decimal {
        mantissa,
        exponent: exponent as i8,
    })
}

/// Returns the decimal of these parts, with zeros moved between them as far as the range of the
/// exponent requires.
///
/// # Errors
/// R1 if there is no such decimal.
pub fn fitted(mut mantissa: i64, mut exponent: i64) -> Result<Decimal, ErrorCode> {
    while exponent < i64::from(*EXPONENTS.start()) && mantissa % 10 == 0 && mantissa != 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent > i64::from(*EXPONENTS.end())
        && let Some(larger) = mantissa.checked_mul(10)
        && mantissa != 0
    {
        mantissa = larger;
        exponent -= 1;
    }
    scaled(i128::from(mantissa), exponent)
}

/// Moves the trailing zeros of the mantissa to the exponent, as initial values are kept (section
/// 6.3.2): 12000 is 12 × 10³, zero is 0 × 10⁰.
///
/// # Errors
/// R1 if the exponent becomes too large.
pub fn normalised(decimal: Decimal) -> Result<Decimal, ErrorCode> {
    let (mut mantissa, mut exponent) = (decimal.mantissa, i64::from(decimal.exponent));
    if mantissa == 0 {
        return Ok(Decimal {
            mantissa: 0,
            exponent: 0,
        });
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    scaled(i128::from(mantissa), exponent)
}

/// Converts an even number of hexadecimal digits, with white space between them, to bytes.
///
/// # Errors
/// D11 for anything else.
pub fn parse_hex(text: &str) -> Result<Vec<u8>, ErrorCode> {
    let mut nibbles = Vec::with_capacity(text.len());
    for character in text.chars().filter(|&character| !is_space(character)) {
        nibbles.push(character.to_digit(16).ok_or(ErrorCode::D11)? as u8);
    }
    let pairs = nibbles.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(ErrorCode::D11);
    }
    Ok(pairs.map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(mantissa: i64, exponent: i8) -> Decimal {
        Decimal { mantissa, exponent }
    }

    #[test]
    fn integers_are_digits_that_fit() {
        assert_eq!(parse_int(" 42\n", IntType::UInt8), Ok(42));
        assert_eq!(parse_int("-128", IntType::Int8), Ok(-128));
        assert_eq!(parse_int("-0", IntType::Int8), Ok(0));
        assert_eq!(
            parse_int("18446744073709551615", IntType::UInt64),
            Ok(u64::MAX.into())
        );
        for bad in ["", "-", "+1", "1 2", "0x1", "1.0"] {
            assert_eq!(parse_int(bad, IntType::Int32), Err(ErrorCode::D11), "{bad}");
        }
        assert_eq!(parse_int("-1", IntType::UInt32), Err(ErrorCode::D11));
        assert_eq!(parse_int("256", IntType::UInt8), Err(ErrorCode::R4));
        assert_eq!(
            parse_int(&"9".repeat(60), IntType::UInt8),
            Err(ErrorCode::R4)
        );
    }

    #[test]
    fn decimals_keep_their_digits_until_normalised() {
        assert_eq!(parse_decimal("10.50"), Ok(decimal(1050, -2)));
        assert_eq!(normalised(decimal(1050, -2)), Ok(decimal(105, -1)));
        assert_eq!(
            parse_decimal("12000").and_then(normalised),
            Ok(decimal(12, 3))
        );
        assert_eq!(parse_decimal("-.5"), Ok(decimal(-5, -1)));
        assert_eq!(
            parse_decimal("-0.0").and_then(normalised),
            Ok(decimal(0, 0))
        );
        assert_eq!(
            parse_decimal("-9223372036854775808"),
            Ok(decimal(i64::MIN, 0))
        );
        assert_eq!(
            parse_decimal(&format!("1{}", "0".repeat(63))).and_then(normalised),
            Ok(decimal(1, 63))
        );
        // More than 63 places, but with zeros at the end.
        assert_eq!(
            parse_decimal(&format!("1.{}", "0".repeat(64))),
            Ok(decimal(1_000_000_000_000_000_000, -18))
        );
        assert_eq!(
            parse_decimal(&format!("0.{}10", "0".repeat(62))),
            Ok(decimal(1, -63))
        );
        for bad in ["", ".", "-", "1.", "1.2.3", "1e5", "--1"] {
            assert_eq!(parse_decimal(bad), Err(ErrorCode::D11), "{bad}");
        }
        for bad in ["9223372036854775808", "1234567890123456789012"] {
            assert_eq!(parse_decimal(bad), Err(ErrorCode::R1), "{bad}");
        }
        assert_eq!(
            parse_decimal(&format!(".{}1", "0".repeat(63))),
            Err(ErrorCode::R1)
        );
    }

    #[test]
    fn bounds_agree_however_they_are_asked() {
        for name in [
            "int8", "uInt8", "int16", "uInt16", "int32", "uInt32", "int64", "uInt64",
        ] {
            let ty = IntType::from_name(name).unwrap();
            for bits in [
                0,
                1,
                127,
                128,
                255,
                256,
                32767,
                32768,
                65535,
                65536,
                1 << 31,
                1 << 32,
                1 << 63,
                u64::MAX,
                u64::MAX - 127,
                u64::MAX - 128,
                (1 << 32) - 1,
                (1 << 31) - 1,
            ] {
                assert_eq!(
                    ty.holds_bits(bits),
                    ty.holds(ty.widen(bits)),
                    "{name} {bits:x}"
                );
            }
        }
    }

    #[test]
    fn hex_is_pairs_of_digits() {
        assert_eq!(parse_hex("0a FF\n0 0"), Ok(vec![10, 255, 0]));
        assert_eq!(parse_hex("abc"), Err(ErrorCode::D11));
        assert_eq!(parse_hex("zz"), Err(ErrorCode::D11));
    }
}
