//! Writing of CDR into a buffer that is allocated once.

use super::pen::{Pen, SLACK};
use super::{CdrError, CdrFault, HEADER};

/// A buffer in which one sample after the other is written.
///
/// [`begin`](Self::begin) starts a sample, one call per member follows in the order of the type,
/// [`finish`](Self::finish) returns the bytes. The capacity never grows: `finish` reports a sample
/// that does not fit. No call allocates.
///
/// A member is stored as eight bytes, whatever its size, and the next one overwrites the unused
/// ones. So the bytes from the end up to the next multiple of eight are always zero, and no member
/// has to clear the padding in front of it.
#[derive(Debug)]
pub struct CdrBuffer {
    bytes: Box<[u8]>,
    at: usize,
    full: bool,
}

/// The place of a sequence's length, to be set when the number of elements is known.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Count(usize);

macro_rules! put {
    ($(#[$doc:meta])* $name:ident, $type:ty, $bits:expr) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self, value: $type) {
            self.word($bits(value), size_of::<$type>());
        }
    };
}

impl CdrBuffer {
    /// Makes a buffer for samples of up to `capacity` bytes, header included.
    pub fn with_capacity(capacity: usize) -> Self {
        // The capacity always includes the header and the padding at the end.
        let capacity = (capacity + 3).max(2 * HEADER) & !3;
        let mut new = Self {
            bytes: vec![0; capacity + SLACK].into_boxed_slice(),
            at: 0,
            full: false,
        };
        new.begin();
        new
    }

    /// Starts a sample: XCDR1, little endian.
    #[inline]
    pub fn begin(&mut self) {
        if let Some(front) = self.bytes.first_chunk_mut::<12>() {
            *front = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        }
        self.at = HEADER;
        self.full = false;
    }

    /// Returns the sample's bytes, header in front, padded to a multiple of four.
    ///
    /// # Errors
    /// [`CdrFault::Full`] when a member did not fit.
    #[inline]
    pub fn finish(&mut self) -> Result<&[u8], CdrError> {
        let padding = self.at.wrapping_neg() & 3;
        let end = self.at + padding;
        let capacity = self.bytes.len() - SLACK;
        if self.full || end > capacity {
            return Err(CdrError {
                offset: capacity,
                why: CdrFault::Full,
            });
        }
        // The last two bits of the options are the length of the padding at the end.
        self.bytes[3] = padding as u8;
        Ok(&self.bytes[..end])
    }

    put!(/// Writes an `octet` or `uint8`.
        u8, u8, u64::from);
    put!(/// Writes an `int8`.
        i8, i8, |v: i8| u64::from(v as u8));
    put!(/// Writes an `unsigned short`.
        u16, u16, u64::from);
    put!(/// Writes a `short`.
        i16, i16, |v: i16| u64::from(v as u16));
    put!(/// Writes an `unsigned long`.
        u32, u32, u64::from);
    put!(/// Writes a `long` or an enumeration.
        i32, i32, |v: i32| u64::from(v as u32));
    put!(/// Writes an `unsigned long long`.
        u64, u64, |v| v);
    put!(/// Writes a `long long`.
        i64, i64, |v: i64| v as u64);
    put!(/// Writes a `float`.
        f32, f32, |v: f32| u64::from(v.to_bits()));
    put!(/// Writes a `double`.
        f64, f64, f64::to_bits);

    /// Writes a `boolean`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Writes a string: its length with the NUL, the bytes, the NUL. A NUL inside ends it.
    #[inline]
    pub fn string(&mut self, text: &[u8]) {
        self.with_pen(|pen| pen.string(text));
    }

    /// Writes a `wstring`.
    pub fn wide_string(&mut self, text: &str) {
        let units = text.encode_utf16().count();
        self.u32(u32::try_from(units * 2).unwrap_or(u32::MAX));
        text.encode_utf16().for_each(|unit| self.u16(unit));
    }

    /// Writes a `sequence<octet>`.
    #[inline]
    pub fn octets(&mut self, bytes: &[u8]) {
        self.with_pen(|pen| pen.octets(bytes));
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
        self.with_pen(|pen| pen.align(size));
    }

    /// Writes bytes that are already in CDR form and aligned for this position.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.with_pen(|pen| pen.raw(bytes));
    }

    /// Returns the number of bytes written so far, header included.
    #[inline]
    pub const fn len(&self) -> usize {
        self.at
    }

    /// Returns whether nothing but the header is written.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.at <= HEADER
    }

    /// Overwrites eight bytes at `offset` (the [`len`](Self::len) before they were written), for a
    /// value that is only known later.
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

    /// Returns the bytes written at these offsets; empty for offsets beyond them.
    #[inline]
    pub(crate) fn written(&self, range: std::ops::Range<usize>) -> &[u8] {
        self.bytes
            .get(..self.at)
            .and_then(|b| b.get(range))
            .unwrap_or_default()
    }

    /// Writes a member of `size` bytes (1, 2, 4 or 8), the lowest of `value`; its other bytes must
    /// be zero.
    #[inline(always)]
    pub(crate) fn word(&mut self, value: u64, size: usize) {
        self.with_pen(|pen| pen.word(value, size));
    }

    /// Writes with a pen at the current position.
    #[inline(always)]
    pub(crate) fn with_pen(&mut self, write: impl FnOnce(&mut Pen<'_>)) {
        let room = self.bytes.get_mut(HEADER..).unwrap_or_default();
        let mut pen = Pen::new(room, self.at - HEADER, self.full);
        write(&mut pen);
        (self.at, self.full) = (pen.at() + HEADER, pen.is_full());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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

    /// One call of the writer.
    #[derive(Debug, Clone)]
    enum Put {
        Number(u64, usize),
        Text(Vec<u8>),
        Octets(Vec<u8>),
        Align(usize),
    }

    /// Encodes in the obvious way: a vector, padded byte by byte.
    fn slow(puts: &[Put]) -> Vec<u8> {
        fn align(out: &mut Vec<u8>, size: usize) {
            while !(out.len() - HEADER).is_multiple_of(size) {
                out.push(0);
            }
        }
        let mut out = vec![0, 1, 0, 0];
        for put in puts {
            match put {
                Put::Number(n, size) => {
                    align(&mut out, *size);
                    out.extend(&n.to_le_bytes()[..*size]);
                }
                Put::Text(text) => {
                    let text = text.split(|b| *b == 0).next().unwrap();
                    align(&mut out, 4);
                    out.extend((text.len() as u32 + 1).to_le_bytes());
                    out.extend(text);
                    out.push(0);
                }
                Put::Octets(bytes) => {
                    align(&mut out, 4);
                    out.extend((bytes.len() as u32).to_le_bytes());
                    out.extend(bytes);
                }
                Put::Align(size) => align(&mut out, *size),
            }
        }
        let end = out.len();
        align(&mut out, 4);
        out[3] = (out.len() - end) as u8;
        out
    }

    fn put() -> impl Strategy<Value = Put> {
        let bytes = || prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..12);
        prop_oneof![
            (any::<u64>(), prop::sample::select(vec![1, 2, 4, 8]))
                .prop_map(|(n, size)| Put::Number(n, size)),
            bytes().prop_map(Put::Text),
            prop::collection::vec(1..=255_u8, 0..12).prop_map(Put::Text),
            bytes().prop_map(Put::Octets),
            prop::sample::select(vec![1, 2, 4, 8]).prop_map(Put::Align),
        ]
    }

    proptest! {
        /// Samples follow each other in the same buffer, so that each finds the bytes of the last
        /// one.
        #[test]
        fn whole_words_leave_the_bytes_that_single_bytes_do(
            samples in prop::collection::vec(prop::collection::vec(put(), 0..20), 1..6),
            capacity in 8..400_usize,
        ) {
            let mut buffer = CdrBuffer::with_capacity(capacity);
            let capacity = (capacity + 3) & !3;
            for puts in samples {
                buffer.begin();
                for put in &puts {
                    match put {
                        Put::Number(n, 1) => buffer.u8(*n as u8),
                        Put::Number(n, 2) => buffer.i16(*n as i16),
                        Put::Number(n, 4) => buffer.i32(*n as i32),
                        Put::Number(n, _) => buffer.u64(*n),
                        Put::Text(text) => buffer.string(text),
                        Put::Octets(bytes) => buffer.octets(bytes),
                        Put::Align(size) => buffer.align(*size),
                    }
                }
                let expected = slow(&puts);
                match buffer.finish() {
                    Ok(bytes) => prop_assert_eq!(bytes, &expected[..]),
                    Err(error) => {
                        prop_assert_eq!(error.why, CdrFault::Full);
                        prop_assert!(expected.len() > capacity);
                    }
                }
            }
        }
    }
}
