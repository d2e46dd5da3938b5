//! Prices: integral multiples of 10^-9 in an `i64`, which are exact or an error.

use core::fmt;
use fanfare_wire::Decimal;

/// A price in units of 10^-9, or [`Price::UNDEFINED`].
///
/// The unit and the undefined value are those of DBN. Prices range from about -9.2 × 10^9 to 9.2 ×
/// 10^9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(i64);

/// The powers of ten that fit into 64 bits.
const SCALES: [i64; 19] = {
    let mut scales = [1; 19];
    let mut power = 1;
    while power < scales.len() {
        scales[power] = scales[power - 1] * 10;
        power += 1;
    }
    scales
};

/// The reason why a number is not a [`Price`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PriceError {
    /// The number is beyond 9.2 × 10^9 on either side of zero.
    OutOfRange(Decimal),
    /// The number has digits below 10^-9, and would have to be rounded.
    TooFine(Decimal),
}

impl fmt::Display for PriceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange(value) => {
                write!(f, "{value} is out of range: a price must be below 9.2e9")
            }
            Self::TooFine(value) => write!(f, "{value} has more than 9 decimal places"),
        }
    }
}

impl core::error::Error for PriceError {}

impl Price {
    /// No price.
    pub const UNDEFINED: Self = Self(i64::MAX);
    /// The power of ten of the unit.
    pub const EXPONENT: i8 = -9;

    /// Returns a price of `units` × 10^-9.
    pub const fn from_units(units: i64) -> Self {
        Self(units)
    }

    /// Returns the price in units of 10^-9.
    pub const fn units(self) -> i64 {
        self.0
    }

    /// Returns true unless it is [`Price::UNDEFINED`].
    pub const fn is_defined(self) -> bool {
        self.0 != i64::MAX
    }

    /// Returns the price that is exactly `value`.
    ///
    /// # Errors
    ///
    /// Returns an error if the value is out of range, or has digits below 10^-9. No value is
    /// rounded.
    #[inline(always)]
    pub fn from_decimal(value: Decimal) -> Result<Self, PriceError> {
        let shift = i32::from(value.exponent) - i32::from(Self::EXPONENT);
        // A negative shift is far beyond the last power.
        let scale = SCALES.get(shift.cast_unsigned() as usize);
        let units = scale.and_then(|scale| value.mantissa.checked_mul(*scale));
        match units {
            Some(units) if units != i64::MAX => Ok(Self(units)),
            _ => Self::from_unusual(value, shift),
        }
    }

    /// Converts zero, which may have any exponent, and values with more than nine decimal places,
    /// which are prices if the last ones are zero.
    #[cold]
    fn from_unusual(value: Decimal, shift: i32) -> Result<Self, PriceError> {
        if value.mantissa == 0 {
            return Ok(Self(0));
        }
        if shift >= 0 {
            return Err(PriceError::OutOfRange(value));
        }
        let scale = SCALES.get(shift.unsigned_abs() as usize);
        match scale {
            Some(scale) if value.mantissa % scale == 0 => Ok(Self(value.mantissa / scale)),
            _ => Err(PriceError::TooFine(value)),
        }
    }

    /// Returns the price as a decimal without trailing zeros, or `None` if it is undefined.
    pub fn to_decimal(self) -> Option<Decimal> {
        self.is_defined()
            .then(|| Decimal::new(self.0, Self::EXPONENT).normalise())
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_decimal() {
            Some(value) => write!(f, "{value}"),
            None => f.write_str("-"),
        }
    }
}

impl fmt::Debug for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Price({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn exact_prices_are_kept_and_others_refused() {
        let price = |mantissa, exponent| Price::from_decimal(Decimal::new(mantissa, exponent));
        assert_eq!(price(19_835, 0), Ok(Price::from_units(19_835_000_000_000)));
        assert_eq!(price(-5, -9), Ok(Price::from_units(-5)));
        assert_eq!(price(50, -10), Ok(Price::from_units(5)));
        assert_eq!(price(0, 63), Ok(Price::from_units(0)));
        assert_eq!(
            price(5, -10),
            Err(PriceError::TooFine(Decimal::new(5, -10)))
        );
        assert_eq!(
            price(1, -128),
            Err(PriceError::TooFine(Decimal::new(1, -128)))
        );
        assert_eq!(
            price(1, 18),
            Err(PriceError::OutOfRange(Decimal::new(1, 18)))
        );
        assert_eq!(
            price(9_223_372_037, 0),
            Err(PriceError::OutOfRange(Decimal::new(9_223_372_037, 0)))
        );
        let most = Decimal::new(i64::MAX, -9);
        assert_eq!(Price::from_decimal(most), Err(PriceError::OutOfRange(most)));
        assert_eq!(price(i64::MIN, -9), Ok(Price::from_units(i64::MIN)));
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_the_same_value(mantissa: i64, exponent: i8) {
            let value = Decimal::new(mantissa, exponent);
            if let Ok(price) = Price::from_decimal(value) {
                let back = price.to_decimal().map(|back| back.value_cmp(value));
                prop_assert_eq!(back, Some(core::cmp::Ordering::Equal));
            }
        }
    }
}
