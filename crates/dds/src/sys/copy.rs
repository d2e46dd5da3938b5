//! Copies between bytes and words that other processes change meanwhile. What arrives may mix their
//! bytes with those before; the caller detects that.

use std::sync::atomic::AtomicU64;

/// Stores bytes into the words, without ordering. Ends with the shorter of the two and never
/// panics.
#[inline(always)]
pub(super) fn store(to: &[AtomicU64], bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        let len = bytes.len().min(to.len() * 8);
        // SAFETY: both are valid for `len` bytes. They do not overlap, as an exclusive or plain
        // borrow of bytes never lies in words that others change.
        unsafe { move_bytes(to.as_ptr().cast_mut().cast(), bytes.as_ptr(), len) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    by_words::store(to, bytes);
}

/// Copies the words' bytes, without ordering. Ends with the shorter of the two and never panics.
#[inline(always)]
pub(super) fn load(from: &[AtomicU64], to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        let len = to.len().min(from.len() * 8);
        // SAFETY: as above.
        unsafe { move_bytes(to.as_mut_ptr(), from.as_ptr().cast(), len) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    by_words::load(from, to);
}

/// Fetches the cache lines of these words for stores to come, where the processor can be told.
#[inline(always)]
pub(super) fn prefetch(words: &[AtomicU64]) {
    const LINE: usize = 8;
    #[cfg(target_arch = "x86_64")]
    for line in words.chunks(LINE) {
        // `_mm_prefetch` asks for the line to read unless the whole program is built for newer
        // processors than the first of the architecture, which take this instruction for a `nop`.
        // SAFETY: a hint, which changes no memory and no register and cannot fault.
        unsafe {
            std::arch::asm!(
                "prefetchw [{line}]",
                line = in(reg) line.as_ptr(),
                options(nostack, preserves_flags)
            );
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (LINE, words);
}

/// Moves bytes, each by itself and in any order, as relaxed atomics of bytes would. Rust has no
/// such copy of many bytes, and `copy_nonoverlapping` would be a data race. The bytes may arrive in
/// any order, but the processor does not reorder them with stores before and after the instruction.
///
/// # Safety
/// `to` is valid for writes and `from` for reads of `len` bytes, and they do not overlap.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn move_bytes(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: the instruction touches nothing but these bytes and its three registers; the ABI
    // keeps the direction flag clear.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags)
        );
    }
}

/// The same word by word: for other processors, and the oracle of the above.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod by_words {
    use std::sync::atomic::{AtomicU64, Ordering};

    #[cfg_attr(test, allow(dead_code))]
    pub(super) fn store(to: &[AtomicU64], bytes: &[u8]) {
        for (to, bytes) in to.iter().zip(bytes.chunks(8)) {
            let mut word = to.load(Ordering::Relaxed).to_ne_bytes();
            word[..bytes.len()].copy_from_slice(bytes);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    pub(super) fn load(from: &[AtomicU64], to: &mut [u8]) {
        for (from, to) in from.iter().zip(to.chunks_mut(8)) {
            let word = from.load(Ordering::Relaxed).to_ne_bytes();
            to.copy_from_slice(&word[..to.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(bytes: &[u8]) -> Vec<AtomicU64> {
        let word = |w: &[u8]| AtomicU64::new(u64::from_ne_bytes(w.try_into().unwrap()));
        bytes.chunks_exact(8).map(word).collect()
    }

    fn plain(words: &[AtomicU64]) -> Vec<u64> {
        words
            .iter()
            .map(|w| w.load(std::sync::atomic::Ordering::Relaxed))
            .collect()
    }

    #[test]
    fn bytes_go_in_and_out_as_word_by_word() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..random.usize(..300)).map(|_| random.u8(..)).collect();
            let before: Vec<u8> = (0..random.usize(..40) * 8).map(|_| random.u8(..)).collect();
            let (fast, slow) = (words(&before), words(&before));
            store(&fast, &bytes);
            by_words::store(&slow, &bytes);
            assert_eq!(plain(&fast), plain(&slow));
            let (mut got, mut expected) = (bytes.clone(), bytes);
            load(&fast, &mut got);
            by_words::load(&slow, &mut expected);
            assert_eq!(got, expected);
        }
    }
}
