//! The instruments that are known before the feeds bring anything.

/// Instruments, encoded, that each reader has before the first record of the ring. They do not go
/// through the ring, which may have less room than they take: no reader is overtaken by them.
#[derive(Default)]
pub(super) struct Introduced {
    bytes: Vec<u8>,
    /// The index after the last byte of each.
    ends: Vec<usize>,
}

impl Introduced {
    /// Adds an encoded instrument. Allocates.
    pub(super) fn add(&mut self, instrument: &[u8]) {
        self.bytes.extend_from_slice(instrument);
        self.ends.push(self.bytes.len());
    }

    /// Releases the memory that they do not use.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Returns the number of instruments.
    pub(super) const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the instruments, in the order in which they were added.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let all = starts.zip(self.ends.iter().copied());
        all.filter_map(|(start, end)| self.bytes.get(start..end))
    }
}
