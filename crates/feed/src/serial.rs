//! Numbers of messages that are sent with their low 32 bits alone.

/// Returns the number nearest to `reference` with these low bits, or the low bits themselves
/// without a reference.
#[must_use]
#[inline]
pub fn extend(reference: impl Into<Option<u64>>, low: u32) -> u64 {
    let Some(reference) = reference.into() else {
        return u64::from(low);
    };
    let distance = low.wrapping_sub(reference as u32).cast_signed();
    reference.saturating_add_signed(distance.into())
}

/// Returns whether a number is before another one, where they may have wrapped.
#[must_use]
#[inline]
pub const fn is_before(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() < 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_number_has_the_low_bits() {
        let wrapped = 1_u64 << 32;
        assert_eq!(extend(None::<u64>, 7), 7);
        assert_eq!(extend(5_u64, 7), 7);
        assert_eq!(extend(wrapped + 5, 7), wrapped + 7);
        assert_eq!(extend(wrapped + 5, u32::MAX), wrapped - 1);
        assert_eq!(extend(wrapped - 1, 3), wrapped + 3);
        assert_eq!(extend(5_u64, u32::MAX), 0);
    }

    #[test]
    fn a_number_is_before_those_that_wrapped_behind_it() {
        assert!(is_before(1, 2) && !is_before(2, 1) && !is_before(2, 2));
        assert!(is_before(u32::MAX, 0) && !is_before(0, u32::MAX));
    }
}
