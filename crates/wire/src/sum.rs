//! The sum of bytes modulo 256, which is CheckSum(10).

/// Returns the sum of all bytes modulo 256.
///
/// For the baseline the compiler chooses vectors that are wide enough. The widest vectors of the
/// processor only pay inside [`crate::FieldIndex`], where the bytes are in registers anyway.
#[inline]
pub fn byte_sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, &byte| sum.wrapping_add(byte))
}

#[cfg(test)]
mod tests {
    use super::byte_sum;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_the_sum_in_wide_arithmetic(bytes: Vec<u8>) {
            let wide: u64 = bytes.iter().map(|&byte| u64::from(byte)).sum();
            prop_assert_eq!(u64::from(byte_sum(&bytes)), wide % 256);
        }
    }
}
