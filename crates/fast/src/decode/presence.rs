//! Presence maps.

/// The bits of a presence map, taken one after the other. After its end all bits are zero.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PresenceMap<'a> {
    /// The next bits, the first one topmost.
    word: u64,
    /// The number of bits that are left in `word`.
    left: u32,
    /// The bytes that did not fit into `word`.
    rest: &'a [u8],
}

/// The number of bytes of a map that one word takes.
const WORD_BYTES: usize = 9;

impl<'a> PresenceMap<'a> {
    /// Returns the map in these bytes, the last of which has the stop bit.
    #[inline(always)]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        if let [byte] = *bytes {
            return Self {
                word: u64::from(byte) << 57,
                left: 7,
                rest: &[],
            };
        }
        let mut map = Self {
            word: 0,
            left: 0,
            rest: bytes,
        };
        map.refill();
        map
    }

    /// Returns a map without bits, for bodies that need none.
    #[inline(always)]
    pub(crate) const fn empty() -> Self {
        Self {
            word: 0,
            left: 0,
            rest: &[],
        }
    }

    /// Returns the map of these bits, the first one topmost.
    #[inline(always)]
    pub(crate) const fn of_word(word: u64) -> Self {
        Self {
            word,
            left: 64,
            rest: &[],
        }
    }

    /// Returns the bits that are left of a map of one word, the first one topmost.
    #[inline(always)]
    pub(crate) const fn word(&self) -> u64 {
        self.word
    }

    /// Takes the next bit.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> bool {
        if self.left == 0 {
            self.refill();
        }
        let bit = self.word >> 63 != 0;
        self.word <<= 1;
        self.left = self.left.saturating_sub(1);
        bit
    }

    /// Returns true if a bit that was not taken is set.
    #[inline(always)]
    pub(crate) fn has_more(&self) -> bool {
        self.word != 0 || self.rest.iter().any(|byte| byte & 0x7f != 0)
    }

    #[inline]
    fn refill(&mut self) {
        let (now, rest) = self.rest.split_at(self.rest.len().min(WORD_BYTES));
        let bits = 7 * now.len() as u32;
        let word = now
            .iter()
            .fold(0, |word, byte| word << 7 | u64::from(byte & 0x7f));
        self.word = if bits == 0 { 0 } else { word << (64 - bits) };
        self.left = bits;
        self.rest = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_in_order_and_end_in_zeros() {
        for len in 1..30 {
            let mut bytes: Vec<u8> = (0..len).map(|i| (i * 37 + 11) as u8 & 0x7f).collect();
            bytes[len - 1] |= 0x80;
            let mut map = PresenceMap::new(&bytes);
            for bit in 0..7 * len {
                let expected = bytes[bit / 7] & 0x40 >> (bit % 7) != 0;
                assert_eq!(map.next(), expected, "bit {bit} of {len} bytes");
            }
            assert!(!map.has_more());
            assert!((0..100).all(|_| !map.next()));
        }
        let mut map = PresenceMap::new(&[0xc1]);
        assert!(map.next() && map.has_more());
    }
}
