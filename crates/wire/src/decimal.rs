//! Decimal numbers as mantissa and power of ten: the values of FIX floats and FAST decimals.

use crate::int;
use core::cmp::Ordering;
use core::fmt;

/// A decimal number, `mantissa` × 10^`exponent`.
///
/// Equality is by representation: `1.0` and `1.00` differ, as on the wire. [`Decimal::value_cmp`]
/// compares by value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits, with the sign.
    pub mantissa: i64,
    /// The power of ten, such as -2 for cents.
    pub exponent: i8,
}

impl Decimal {
    /// The length of the longest text that [`Decimal::write`] writes: sign, `0.`, 128 places.
    pub const MAX_LEN: usize = 148;

    /// Returns the number `mantissa` × 10^`exponent`.
    pub const fn new(mantissa: i64, exponent: i8) -> Self {
        Self { mantissa, exponent }
    }

    /// Parses a FIX float: digits with an optional leading `-` and an optional point (`-12.50`,
    /// `.5`, `5.`), without exponent. The number of places is kept: `23.00` is 2300 × 10^-2.
    ///
    /// Returns `None` if the text is no such number, if its digits exceed an `i64`, or if it has
    /// more than 128 places.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (negative, digits) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let mut magnitude = 0_u64;
        let mut point = None;
        for (at, &byte) in digits.iter().enumerate() {
            let digit = byte.wrapping_sub(b'0');
            if digit <= 9 {
                magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit))?;
            } else if byte == b'.' && point.is_none() {
                point = Some(at);
            } else {
                return None;
            }
        }
        let places = point.map_or(0, |at| digits.len() - at - 1);
        if digits.len() == usize::from(point.is_some()) {
            return None;
        }
        let mantissa = if negative {
            0_i64.checked_sub_unsigned(magnitude)?
        } else {
            i64::try_from(magnitude).ok()?
        };
        let exponent = i8::try_from(-i16::try_from(places).ok()?).ok()?;
        Some(Self { mantissa, exponent })
    }

    /// Writes the number as a FIX float at the front of `out`, and returns the number of bytes, or
    /// 0 if `out` is too short. [`Decimal::MAX_LEN`] bytes always suffice.
    #[inline]
    pub fn write(self, out: &mut [u8]) -> usize {
        self.try_write(out).unwrap_or(0)
    }

    /// Returns the text of a number with at most 8 digits and fewer places than digits, as the
    /// bytes of two words from their lowest ones on, and its length. Returns `None` for other
    /// numbers. The text is that of [`Decimal::write`], with all digits at once.
    #[inline]
    pub fn short_text(self) -> Option<([u64; 2], usize)> {
        let (digits, count) = int::short_text(self.mantissa.unsigned_abs())?;
        let places = usize::from(self.exponent.unsigned_abs());
        if self.exponent > 0 || places >= count {
            return None;
        }
        let (mut text, mut len) = (u128::from(digits), count);
        if places != 0 {
            // The places make room for the point; an eighth digit goes to the ninth byte.
            let whole_bits = 8 * (count - places);
            let whole = (1 << whole_bits) - 1;
            let low = digits & whole | u64::from(b'.') << whole_bits | (digits & !whole) << 8;
            text = u128::from(digits >> 56) << 64 | u128::from(low);
            len += 1;
        }
        if self.mantissa < 0 {
            text = text << 8 | u128::from(b'-');
            len += 1;
        }
        Some(([text as u64, (text >> 64) as u64], len))
    }

    fn try_write(self, out: &mut [u8]) -> Option<usize> {
        let sign = usize::from(self.mantissa < 0);
        if sign == 1 {
            *out.first_mut()? = b'-';
        }
        let out = out.get_mut(sign..)?;
        let magnitude = self.mantissa.unsigned_abs();
        let count = int::digits(magnitude);
        let places = usize::from(self.exponent.unsigned_abs());
        if self.exponent >= 0 {
            let zeros = if magnitude == 0 { 0 } else { places };
            int::write_u64(magnitude, out.get_mut(..count)?);
            out.get_mut(count..count + zeros)?.fill(b'0');
            return Some(sign + count + zeros);
        }
        // At least one digit stands in front of the point.
        let count = count.max(places + 1);
        let whole = count - places;
        let text = out.get_mut(..count + 1)?;
        write_digits(magnitude, &mut text[..count]);
        text.copy_within(whole..count, whole + 1);
        text[whole] = b'.';
        Some(sign + count + 1)
    }

    /// Compares two numbers by value: 1.0 equals 1.00.
    pub fn value_cmp(self, other: Self) -> Ordering {
        let sign = self.mantissa.signum().cmp(&other.mantissa.signum());
        if sign != Ordering::Equal || self.mantissa == 0 {
            return sign;
        }
        let magnitude = self.magnitude_cmp(other);
        if self.mantissa < 0 {
            magnitude.reverse()
        } else {
            magnitude
        }
    }

    /// Compares the magnitudes of two numbers whose mantissas are not zero.
    fn magnitude_cmp(self, other: Self) -> Ordering {
        let (a, b) = (self.mantissa.unsigned_abs(), other.mantissa.unsigned_abs());
        let (ea, eb) = (i32::from(self.exponent), i32::from(other.exponent));
        let width = |value: u64| value.ilog10() as i32;
        // Different orders of magnitude decide; else the exponents differ by at most 19.
        (width(a) + ea).cmp(&(width(b) + eb)).then_with(|| {
            let low = ea.min(eb);
            let scaled = |value: u64, e: i32| u128::from(value) * 10_u128.pow((e - low) as u32);
            scaled(a, ea).cmp(&scaled(b, eb))
        })
    }

    /// Returns the same value without trailing zeros in the mantissa. Zero becomes 0 × 10^0.
    #[must_use]
    pub fn normalise(self) -> Self {
        if self.mantissa == 0 {
            return Self::default();
        }
        let Self {
            mut mantissa,
            mut exponent,
        } = self;
        while mantissa % 10 == 0 && exponent < i8::MAX {
            mantissa /= 10;
            exponent += 1;
        }
        Self { mantissa, exponent }
    }

    /// Returns the nearest binary floating-point number, or a neighbour of it, for charts and
    /// statistics.
    pub fn to_f64(self) -> f64 {
        let power = 10_f64.powi(i32::from(self.exponent).abs());
        let mantissa = self.mantissa as f64;
        if self.exponent < 0 {
            mantissa / power
        } else {
            mantissa * power
        }
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self::new(value, 0)
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; Self::MAX_LEN];
        let n = self.write(&mut text);
        let text = core::str::from_utf8(&text[..n]).unwrap_or_default();
        f.pad_integral(self.mantissa >= 0, "", text.trim_start_matches('-'))
    }
}

/// Writes the digits of `value`, with leading zeros, over the whole of `out`, which has room for
/// all.
#[inline]
fn write_digits(value: u64, out: &mut [u8]) {
    if out.len() <= 20 {
        int::write_padded(value, out.len(), out);
    } else {
        let (zeros, digits) = out.split_at_mut(out.len() - 20);
        zeros.fill(b'0');
        int::write_padded(value, 20, digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: Decimal) -> String {
        value.to_string()
    }

    #[test]
    fn the_sign_is_in_front_of_padding() {
        let value = Decimal::new(-15, -1);
        assert_eq!(format!("{value:08}"), "-00001.5");
        assert_eq!(format!("{value:>6}|{value:+}"), "  -1.5|-1.5");
        assert_eq!(format!("{:+}", Decimal::new(15, -1)), "+1.5");
    }

    #[test]
    fn parse_keeps_places() {
        let cases = [
            ("0", (0, 0)),
            ("23", (23, 0)),
            ("23.00", (2300, -2)),
            ("-0.5", (-5, -1)),
            (".5", (5, -1)),
            ("5.", (5, 0)),
            ("00023.230", (23230, -3)),
            ("-9223372036854775808", (i64::MIN, 0)),
        ];
        for (text, (mantissa, exponent)) in cases {
            let expected = Some(Decimal::new(mantissa, exponent));
            assert_eq!(Decimal::parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn parse_refuses_what_is_no_number() {
        let long = format!("0.{}1", "0".repeat(200));
        for text in [
            "", "-", ".", "-.", "1e5", "+1", "1..2", "1.2.3", " 1", "1,5", "--1", &long,
        ] {
            assert_eq!(Decimal::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(Decimal::parse(b"9223372036854775808"), None);
        assert_eq!(Decimal::parse(b"99999999999999999999999999"), None);
    }

    #[test]
    fn write_has_a_digit_on_each_side_of_the_point() {
        assert_eq!(text(Decimal::new(5, -1)), "0.5");
        assert_eq!(text(Decimal::new(-5, -3)), "-0.005");
        assert_eq!(text(Decimal::new(123_456, -5)), "1.23456");
        assert_eq!(text(Decimal::new(12, 3)), "12000");
        assert_eq!(text(Decimal::new(0, 3)), "0");
        assert_eq!(text(Decimal::new(0, -2)), "0.00");
        assert_eq!(text(Decimal::new(i64::MIN, i8::MIN)).len(), 1 + 1 + 1 + 128);
        assert_eq!(text(Decimal::new(i64::MIN, i8::MAX)).len(), 1 + 19 + 127);
    }

    #[test]
    fn value_cmp_over_the_whole_range() {
        let (small, large) = (Decimal::new(1, i8::MIN), Decimal::new(1, i8::MAX));
        assert_eq!(small.value_cmp(large), Ordering::Less);
        assert_eq!(Decimal::new(-1, i8::MIN).value_cmp(small), Ordering::Less);
        assert_eq!(
            Decimal::new(0, 5).value_cmp(Decimal::new(0, -5)),
            Ordering::Equal
        );
        assert_eq!(
            Decimal::new(100, -2).value_cmp(Decimal::new(1, 0)),
            Ordering::Equal
        );
    }

    proptest! {
        #[test]
        fn written_and_parsed_it_has_the_same_value(mantissa: i64, exponent in -128_i8..=0) {
            let value = Decimal::new(mantissa, exponent);
            let mut out = [0; Decimal::MAX_LEN];
            let n = value.write(&mut out);
            prop_assert_eq!(Decimal::parse(&out[..n]), Some(value));
            if let Some((text, len)) = value.short_text() {
                let text = text.map(u64::to_le_bytes);
                prop_assert_eq!(&text.as_flattened()[..len], &out[..n]);
            }
            for short in 0..n {
                prop_assert_eq!(value.write(&mut out[..short]), 0);
            }
        }

        #[test]
        fn short_text_is_what_is_written(
            mantissa in -100_000_000..=100_000_000_i64,
            places in 0..10_i8,
        ) {
            let value = Decimal::new(mantissa, -places);
            let digits = mantissa.abs().to_string().len();
            let mut out = [0; Decimal::MAX_LEN];
            let n = value.write(&mut out);
            let short = value.short_text();
            prop_assert_eq!(short.is_some(), digits <= 8 && (places as usize) < digits);
            if let Some((text, len)) = short {
                let text = text.map(u64::to_le_bytes);
                prop_assert_eq!(&text.as_flattened()[..len], &out[..n]);
            }
        }

        #[test]
        fn value_cmp_as_scaled_integers(a: i32, ea in 0_i8..9, b: i32, eb in 0_i8..9) {
            let wide = |m: i32, e: i8| i64::from(m) * 10_i64.pow(e as u32);
            let (x, y) = (Decimal::new(a.into(), ea), Decimal::new(b.into(), eb));
            prop_assert_eq!(x.value_cmp(y), wide(a, ea).cmp(&wide(b, eb)));
            prop_assert_eq!(x.normalise().value_cmp(x), Ordering::Equal);
        }
    }
}
