//! Joining of the seven data bits of each byte of a word. Where the processor has a fast
//! instruction for that, it is used, whatever the program was compiled for.

#![allow(unsafe_code, reason = "an instruction that not every processor has")]

/// A way to join data bits. It is small, and is meant to be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Squeeze {
    /// Whether the processor has `pext`, and it takes only a few cycles. True only if
    /// [`Self::best`] found it.
    has_pext: bool,
}

/// The data bits of a word.
const DATA: u64 = 0x7f7f_7f7f_7f7f_7f7f;

impl Squeeze {
    /// Returns the fastest way on this processor.
    #[must_use]
    pub fn best() -> Self {
        Self {
            has_pext: has_fast_pext(),
        }
    }

    /// Returns the way with shifts and masks, which every processor has.
    #[must_use]
    pub const fn portable() -> Self {
        Self { has_pext: false }
    }

    /// Returns the lowest seven bits of each byte, joined.
    #[inline(always)]
    #[must_use]
    pub fn squeeze(self, word: u64) -> u64 {
        match self.has_pext {
            true => self.by_pext(word),
            false => by_masks(word),
        }
    }

    /// Returns the joined bits by `pext`, if [`Self::has_pext`] is true.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn by_pext(self, word: u64) -> u64 {
        let bits;
        // SAFETY: the instruction reads and writes registers alone; that the processor has it was
        // found out when `has_pext` became true, which nothing but `best` makes it.
        unsafe {
            std::arch::asm!(
                "pext {bits}, {word}, {data}",
                bits = lateout(reg) bits,
                word = in(reg) word,
                data = in(reg) DATA,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        bits
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn by_pext(self, word: u64) -> u64 {
        by_masks(word)
    }
}

/// Returns the joined bits by shifts and masks, which move pairs, fours and eights together.
#[cold]
#[inline(never)]
fn by_masks(word: u64) -> u64 {
    super::squeeze(word)
}

/// Returns whether `pext` is one operation of the processor. Before their third generation, AMD's
/// Zen processors take one operation for each bit.
#[cfg(target_arch = "x86_64")]
fn has_fast_pext() -> bool {
    use std::arch::x86_64::__cpuid;
    if !is_x86_feature_detected!("bmi2") {
        return false;
    }
    // SAFETY: each processor of 64 bits has the instruction and these two leaves.
    #[allow(unused_unsafe, reason = "newer compilers know that it is safe")]
    let (maker, version) = unsafe { (__cpuid(0), __cpuid(1).eax) };
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    let is_amd = (maker.ebx, maker.edx, maker.ecx) == (0x6874_7541, 0x6974_6e65, 0x444d_4163);
    !is_amd || family >= 0x19
}

#[cfg(not(target_arch = "x86_64"))]
const fn has_fast_pext() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_put_the_same_bits_together() {
        let mut word = 0x0123_4567_89ab_cdef_u64;
        for _ in 0..1_000 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let bytes = word.to_be_bytes();
            let expected = bytes
                .iter()
                .fold(0, |bits, byte| bits << 7 | u64::from(byte & 0x7f));
            assert_eq!(Squeeze::best().squeeze(word), expected);
            assert_eq!(Squeeze::portable().squeeze(word), expected);
        }
    }
}
