//! A sample made from a message.

use super::types::{Mapping, TemplateType};

/// A sample made from a message.
#[derive(Debug, Clone, Copy)]
pub struct Converted<'a> {
    /// The type of the template.
    pub template: &'a TemplateType,
    /// For a split message, the value it is split by, as a 64-bit pattern.
    pub key: Option<u64>,
    /// The sample, as [`Writer::write`](crate::Writer::write) takes it.
    pub cdr: &'a [u8],
}

impl<'a> Converted<'a> {
    /// Bytes in front of the sample in [`write`](Self::write).
    const HEAD: usize = 16;

    /// Returns the number of bytes that [`write`](Self::write) takes.
    #[must_use]
    pub const fn written_len(&self) -> usize {
        Self::HEAD + self.cdr.len()
    }

    /// Writes template, key and sample into a ring to another thread. `room` has
    /// [`written_len`](Self::written_len) bytes; a shorter one is not written to.
    pub fn write(&self, room: &mut [u8]) {
        let Some((head, rest)) = room.split_first_chunk_mut::<{ Converted::HEAD }>() else {
            return;
        };
        let has_key = u64::from(self.key.is_some());
        let template = u64::from(self.template.index) | has_key << 32;
        let words = [template, self.key.unwrap_or_default()];
        for (place, word) in head.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        if rest.len() == self.cdr.len() {
            rest.copy_from_slice(self.cdr);
        }
    }

    /// Reads the bytes of [`write`](Self::write), for samples of the same mapping; `None` for other
    /// bytes.
    #[must_use]
    pub fn read(mapping: &'a Mapping, bytes: &'a [u8]) -> Option<Self> {
        let (template, rest) = bytes.split_first_chunk()?;
        let (key, cdr) = rest.split_first_chunk()?;
        let template = u64::from_le_bytes(*template);
        let key = u64::from_le_bytes(*key);
        Some(Self {
            template: mapping.by_index(template as u32)?,
            key: (template >> 32 != 0).then_some(key),
            cdr,
        })
    }
}
