//! Writing CDR into a buffer that is allocated once.

use super::{CdrError, CdrFault, HEADER};

/// A buffer in which one sample after the other is written.
///
/// [`begin`](Self::begin) starts a sample, one call per member follows in the order of the type,
/// [`finish`](Self::finish) gives the bytes. The capacity never grows: a sample that does not fit
/// is remembered and reported by `finish`. No call allocates.
#[derive(Debug)]
pub struct CdrBuffer {
    bytes: Box<[u8]>,
    at: usize,
    full: bool,
}

/// The place of a sequence's length, to be set when the elements are known.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Count(usize);

macro_rules! put {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $type) {
            self.put(value.to_le_bytes());
        }
    };
}

impl CdrBuffer {
    /// A buffer for samples of up to `capacity` bytes, header included.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut new = Self {
            // Room for the header and the padding of the end is always there.
            bytes: vec![0; (capacity + 3).max(2 * HEADER) & !3].into_boxed_slice(),
            at: 0,
            full: false,
        };
        new.begin();
        new
    }

    /// Starts a sample: XCDR1, little endian.
    #[inline]
    pub fn begin(&mut self) {
        if let Some(header) = self.bytes.first_chunk_mut::<HEADER>() {
            *header = [0, 1, 0, 0];
        }
        self.at = HEADER;
        self.full = false;
    }

    /// The sample's bytes, header in front, padded to a multiple of four.
    ///
    /// # Errors
    /// [`CdrFault::Full`] when something did not fit.
    #[inline]
    pub fn finish(&mut self) -> Result<&[u8], CdrError> {
        let padding = self.at.wrapping_neg() & 3;
        let end = self.at + padding;
        if self.full || end > self.bytes.len() {
            return Err(CdrError {
                offset: self.bytes.len(),
                why: CdrFault::Full,
            });
        }
        self.bytes[self.at..end].fill(0);
        // The last two bits of the options say how much of the end is padding.
        self.bytes[3] = padding as u8;
        Ok(&self.bytes[..end])
    }

    put!(/// Writes an `octet` or `uint8`.
        u8, u8);
    put!(/// Writes an `int8`.
        i8, i8);
    put!(/// Writes an `unsigned short`.
        u16, u16);
    put!(/// Writes a `short`.
        i16, i16);
    put!(/// Writes an `unsigned long`.
        u32, u32);
    put!(/// Writes a `long` or an enumeration.
        i32, i32);
    put!(/// Writes an `unsigned long long`.
        u64, u64);
    put!(/// Writes a `long long`.
        i64, i64);
    put!(/// Writes a `float`.
        f32, f32);
    put!(/// Writes a `double`.
        f64, f64);

    /// Writes a `boolean`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Writes a string: its length with the NUL, the bytes, the NUL. A NUL inside ends it.
    #[inline]
    pub fn string(&mut self, text: &[u8]) {
        let text = text.split(|b| *b == 0).next().unwrap_or_default();
        let Ok(length) = u32::try_from(text.len() + 1) else {
            self.full = true;
            return;
        };
        self.u32(length);
        if let Some(room) = self.room(text.len() + 1) {
            room[..text.len()].copy_from_slice(text);
            room[text.len()] = 0;
        }
    }

    /// Writes a `sequence<octet>`.
    #[inline]
    pub fn octets(&mut self, bytes: &[u8]) {
        let Ok(length) = u32::try_from(bytes.len()) else {
            self.full = true;
            return;
        };
        self.u32(length);
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Starts a sequence whose length is not known yet; the elements follow, then
    /// [`set_count`](Self::set_count).
    #[inline]
    pub fn count(&mut self) -> Count {
        self.u32(0);
        Count(self.at.wrapping_sub(4))
    }

    /// Sets the number of elements of a sequence.
    #[inline]
    pub fn set_count(&mut self, count: Count, elements: u32) {
        if let Some(place) = self.bytes.get_mut(count.0..count.0 + 4) {
            place.copy_from_slice(&elements.to_le_bytes());
        }
    }

    /// Aligns as for a member of `size` bytes (1, 2, 4 or 8). Only needed in front of
    /// [`raw`](Self::raw).
    #[inline]
    pub fn align(&mut self, size: usize) {
        let padding = (HEADER.wrapping_sub(self.at)) & (size - 1);
        if let Some(room) = self.room(padding) {
            room.fill(0);
        }
    }

    /// Writes bytes that are already in CDR form and aligned to where they now stand.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        if let Some(room) = self.room(bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }

    /// Bytes written so far, header included.
    #[inline]
    pub const fn len(&self) -> usize {
        self.at
    }

    /// Whether nothing but the header is written.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.at <= HEADER
    }

    /// Overwrites eight bytes at `offset` (of [`len`](Self::len) before they were written), for
    /// what is only known later.
    #[inline]
    pub fn patch_u64(&mut self, offset: usize, value: u64) {
        if let Some(place) = self.bytes.get_mut(offset..offset + 8) {
            place.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Overwrites the lowest `size` bytes (at most 8) of a value at `offset`.
    #[inline]
    pub(crate) fn patch(&mut self, offset: usize, value: u64, size: usize) {
        if let (Some(place), Some(bytes)) = (
            self.bytes.get_mut(offset..offset + size),
            value.to_le_bytes().get(..size),
        ) {
            place.copy_from_slice(bytes);
        }
    }

    /// What was written at these offsets; nothing for offsets beyond it.
    #[inline]
    pub(crate) fn written(&self, range: std::ops::Range<usize>) -> &[u8] {
        self.bytes[..self.at].get(range).unwrap_or_default()
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, value: [u8; N]) {
        // Counted from behind the header; the header's four bytes shift eight-byte members.
        let padding = (HEADER.wrapping_sub(self.at)) & (N - 1);
        let start = self.at + padding;
        let Some(room) = self.bytes.get_mut(self.at..start + N) else {
            self.full = true;
            return;
        };
        room[..padding].fill(0);
        room[padding..].copy_from_slice(&value);
        self.at = start + N;
    }

    #[inline]
    fn room(&mut self, n: usize) -> Option<&mut [u8]> {
        let start = self.at;
        match start.checked_add(n) {
            Some(end) if end <= self.bytes.len() => {
                self.at = end;
                Some(&mut self.bytes[start..end])
            }
            _ => {
                self.full = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stand_at_multiples_of_their_size_behind_the_header() {
        let mut b = CdrBuffer::with_capacity(64);
        b.u8(1);
        b.u16(2);
        b.u8(3);
        b.f64(1.0);
        b.u8(4);
        let bytes = b.finish().unwrap();
        assert_eq!(bytes[..4], [0, 1, 0, 3]);
        assert_eq!(bytes[4..9], [1, 0, 2, 0, 3]);
        assert_eq!(bytes[9..12], [0, 0, 0]);
        assert_eq!(bytes[12..20], 1.0_f64.to_le_bytes());
        assert_eq!(bytes[20..], [4, 0, 0, 0]);
    }

    #[test]
    fn a_string_counts_its_nul_and_ends_at_one() {
        let mut b = CdrBuffer::with_capacity(64);
        b.string(b"ab");
        assert_eq!(b.finish().unwrap()[4..], [3, 0, 0, 0, b'a', b'b', 0, 0]);
        b.begin();
        b.string(b"a\0b");
        assert_eq!(b.finish().unwrap()[4..], [2, 0, 0, 0, b'a', 0, 0, 0]);
    }

    #[test]
    fn what_does_not_fit_is_reported_and_the_next_sample_is_fine() {
        let mut b = CdrBuffer::with_capacity(12);
        b.u64(1);
        b.u8(2);
        assert_eq!(b.finish().unwrap_err().why, CdrFault::Full);
        b.begin();
        b.u64(1);
        assert_eq!(b.finish().unwrap().len(), 12);
        b.begin();
        b.string(&[b'x'; 100]);
        assert!(b.finish().is_err());
    }

    #[test]
    fn the_count_of_a_sequence_is_set_afterwards() {
        let mut b = CdrBuffer::with_capacity(64);
        let count = b.count();
        b.u32(7);
        b.u32(8);
        b.set_count(count, 2);
        let bytes = b.finish().unwrap();
        assert_eq!(bytes[4..], [2, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0]);
    }
}
