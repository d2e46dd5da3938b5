//! The kernel for any processor: eight bytes at a time in ordinary registers (SIMD within a
//! register).

use super::{Scan, Unfit, blocks};
use crate::fields::{FieldIndex, SOH};

/// Indexes `bytes`, which are shorter than 2 GiB.
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    blocks::index(bytes, index, separators, blocks::read_tags)
}

/// Returns the mask of the separators.
#[inline(always)]
fn separators(block: &[u8; 64]) -> u64 {
    let words = block.chunks_exact(8).rev();
    words.fold(0, |mask, word| {
        let word = word.first_chunk().copied().unwrap_or_default();
        mask << 8 | separators_of(u64::from_le_bytes(word))
    })
}

/// Returns the mask of the separators among the eight bytes of a word, its lowest one first.
#[inline(always)]
fn separators_of(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let word = word ^ u64::from_ne_bytes([SOH; 8]);
    // Exact in each byte, as no carry leaves one: the highest bit stays zero where all are.
    let zeros = !(((word & LOW) + LOW) | word | LOW);
    // The highest bits of all bytes come together in the highest byte.
    zeros.wrapping_shr(7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn as_byte_by_byte(block in proptest::array::uniform32(0..4_u8)) {
            let block: [u8; 64] = std::array::from_fn(|i| block[i % 32] ^ u8::from(i > 40) << 7);
            let slow = block.iter().rev().fold(0, |mask: u64, &byte| {
                mask << 1 | u64::from(byte == SOH)
            });
            prop_assert_eq!(separators(&block), slow);
        }
    }
}
