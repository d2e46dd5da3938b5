//! The list of values that a field may have.

/// A set of values, made for quick tests. Those of one byte are bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ValueSet {
    single: [u64; 4],
    /// The longer values, ascending.
    longer: Box<[Box<[u8]>]>,
}

impl ValueSet {
    pub(super) fn new<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut single = [0; 4];
        let mut longer: Vec<Box<[u8]>> = Vec::new();
        for value in values {
            match value {
                [byte] => single[usize::from(byte / 64)] |= 1 << (byte % 64),
                _ => longer.push(value.into()),
            }
        }
        longer.sort();
        longer.dedup();
        Self {
            single,
            longer: longer.into(),
        }
    }

    /// Returns whether a value of one byte is in the set.
    #[inline]
    pub(super) fn has_byte(&self, byte: u8) -> bool {
        self.single[usize::from(byte / 64)] >> (byte % 64) & 1 == 1
    }

    /// Returns whether the whole of `value` is in the set.
    pub(super) fn has(&self, value: &[u8]) -> bool {
        match value {
            [byte] => self.has_byte(*byte),
            _ => self
                .longer
                .binary_search_by(|known| known.as_ref().cmp(value))
                .is_ok(),
        }
    }

    /// Returns whether each of the values, which spaces separate, is in the set.
    pub(super) fn has_each(&self, values: &[u8]) -> bool {
        values.split(|b| *b == b' ').all(|value| self.has(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_and_longer_values() {
        let values: [&[u8]; 5] = [b"1", b"\xff", b"10", b"CS", b"CSX"];
        let set = ValueSet::new(values.into_iter());
        for value in values {
            assert!(set.has(value));
        }
        for value in [&b""[..], b"0", b"2", b"C", b"100", b"cs"] {
            assert!(!set.has(value));
        }
        assert!(set.has_each(b"1 CS 10"));
        assert!(!set.has_each(b"1 2"));
        assert!(!set.has_each(b"1  CS"));
    }
}
