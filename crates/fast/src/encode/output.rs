//! The transfer encoding (section 10), written always in its shortest form.

use fanfare_wire::stopbit::{self, MAX_INT_LEN, MAX_WIDE_LEN};
use std::mem;

/// A buffer that is written from front to back. It keeps its length, so that bytes can be stored in
/// pieces of a fixed size, which is much faster than copying only as many bytes as count.
#[derive(Debug, Clone, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    /// The offset of the message: its presence map may take fewer bytes than were reserved for it.
    start: usize,
    at: usize,
}

impl Output {
    /// Starts again at the front.
    pub(super) fn clear(&mut self) {
        (self.start, self.at) = (0, 0);
    }

    /// Returns the bytes written.
    pub(super) fn written(&self) -> &[u8] {
        self.bytes.get(self.start..self.at).unwrap_or_default()
    }

    /// Returns the number of bytes written.
    pub(super) const fn len(&self) -> usize {
        self.at
    }

    /// Returns the whole buffer, and the number of bytes used.
    #[inline(always)]
    pub(super) fn parts(&mut self) -> (&mut [u8], usize) {
        (&mut self.bytes, self.at)
    }

    /// Exchanges the whole buffer, and the number of bytes used.
    #[inline(always)]
    pub(super) const fn swap_room(&mut self, room: &mut Vec<u8>, at: &mut usize) {
        mem::swap(&mut self.bytes, room);
        mem::swap(&mut self.at, at);
    }

    /// Sets the number of bytes used.
    #[inline(always)]
    pub(super) const fn set_len(&mut self, len: usize) {
        self.at = len;
    }

    /// Appends space for a presence map of `bits` bits, and returns its length in bytes.
    #[inline(always)]
    pub(super) fn take_map(&mut self, bits: u32) -> usize {
        let len = bits.div_ceil(7) as usize;
        self.reserve(len);
        self.at += len;
        len
    }

    /// Puts presence bits, which are below a marker bit, into the `len` bytes of space at the
    /// front. They go into the last ones, so that the message begins with the first byte that the
    /// map needs.
    #[inline(always)]
    pub(super) fn put_first_map(&mut self, len: usize, map: u64) {
        let (groups, used) = shortest(len, map);
        self.start = len - used;
        self.put_groups(len - used, groups, used);
    }

    /// Puts presence bits, which are below a marker bit, into `len` bytes of space at `start`, and
    /// closes the gap after the bytes that the map needs.
    #[inline(always)]
    pub(super) fn put_map(&mut self, start: usize, len: usize, map: u64) {
        if let (1, Some(byte)) = (len, self.bytes.get_mut(start)) {
            *byte = (map << (7 - map.ilog2())) as u8 | 0x80;
            return;
        }
        let (groups, used) = shortest(len, map);
        self.put_groups(start, groups, used);
        if used < len {
            let gap = start + used..start + len;
            self.bytes.copy_within(gap.end..self.at, gap.start);
            self.at -= gap.len();
        }
    }

    #[inline(always)]
    fn put_groups(&mut self, start: usize, groups: u64, used: usize) {
        let map = self.bytes.get_mut(start..).unwrap_or_default();
        for (byte, behind) in map.iter_mut().zip((0..used).rev()) {
            *byte = (groups >> (7 * behind)) as u8 & 0x7f;
        }
        if let Some(last) = map.get_mut(used - 1) {
            *last |= 0x80;
        }
    }

    /// Appends an unsigned integer.
    #[inline(always)]
    pub(super) fn unsigned(&mut self, value: u64) {
        if value < 0x80 {
            return self.push(value as u8 | 0x80);
        }
        self.many_unsigned(value);
    }

    #[inline(never)]
    fn many_unsigned(&mut self, value: u64) {
        let len = stopbit::write_unsigned(value, self.room::<MAX_INT_LEN>());
        self.at += len;
    }

    /// Appends a nullable unsigned integer.
    #[inline(always)]
    pub(super) fn nullable_unsigned(&mut self, value: Option<u64>) {
        match value {
            None => self.null(),
            Some(value @ 0..0x7f) => self.push((value as u8 + 1) | 0x80),
            Some(value) => match value.checked_add(1) {
                Some(entity) => self.many_unsigned(entity),
                None => self.widest_unsigned(),
            },
        }
    }

    /// Appends the largest unsigned integer plus one.
    #[cold]
    fn widest_unsigned(&mut self) {
        let len = stopbit::write_unsigned_wide(1 << 64, self.room::<MAX_WIDE_LEN>());
        self.at += len;
    }

    /// Appends a signed integer.
    #[inline(always)]
    pub(super) fn signed(&mut self, value: i64) {
        if let -64..64 = value {
            return self.push(value as u8 & 0x7f | 0x80);
        }
        self.many_signed(value);
    }

    #[inline(never)]
    fn many_signed(&mut self, value: i64) {
        let len = stopbit::write_signed(value, self.room::<MAX_INT_LEN>());
        self.at += len;
    }

    /// Appends a nullable signed integer.
    #[inline(always)]
    pub(super) fn nullable_signed(&mut self, value: Option<i64>) {
        match value {
            None => self.null(),
            Some(value) if value < 0 => self.signed(value),
            Some(value) => match value.checked_add(1) {
                Some(entity) => self.signed(entity),
                None => self.signed_wide(value.into(), true),
            },
        }
    }

    /// Appends a signed integer of any size.
    #[inline(never)]
    pub(super) fn signed_wide(&mut self, value: i128, nullable: bool) {
        let entity = value + i128::from(nullable && value >= 0);
        match i64::try_from(entity) {
            Ok(entity) => self.signed(entity),
            Err(_) => {
                let len = stopbit::write_signed_wide(entity, self.room::<MAX_WIDE_LEN>());
                self.at += len;
            }
        }
    }

    /// Appends NULL, which is the same for every type.
    #[inline(always)]
    pub(super) fn null(&mut self) {
        self.push(0x80);
    }

    /// Appends an ASCII string, with a zero preamble where it needs one.
    #[inline]
    pub(super) fn ascii(&mut self, text: &[u8], nullable: bool) {
        let Some((&last, front)) = text.split_last() else {
            if nullable {
                self.push(0);
            }
            return self.push(0x80);
        };
        if text.first() == Some(&0) {
            self.push(0);
            if nullable {
                self.push(0);
            }
        }
        self.raw(front);
        self.push(last | 0x80);
    }

    /// Appends a byte vector.
    #[inline]
    pub(super) fn byte_vector(&mut self, bytes: &[u8], nullable: bool) {
        if nullable {
            self.nullable_unsigned(Some(bytes.len() as u64));
        } else {
            self.unsigned(bytes.len() as u64);
        }
        self.raw(bytes);
    }

    #[inline]
    fn raw(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        let end = self.at + bytes.len();
        self.bytes[self.at..end].copy_from_slice(bytes);
        self.at = end;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, byte: u8) {
        self.reserve(1);
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    /// Returns the next `N` bytes, for the caller to write.
    #[inline(always)]
    pub(super) fn room<const N: usize>(&mut self) -> &mut [u8; N] {
        self.reserve(N);
        let room = &mut self.bytes[self.at..];
        #[expect(clippy::expect_used, reason = "reserved on the line before")]
        room.first_chunk_mut().expect("reserved")
    }

    #[inline(always)]
    fn reserve(&mut self, more: usize) {
        if self.at + more > self.bytes.len() {
            self.grow(more);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let len = (self.at + more).max(2 * self.bytes.len()).max(1024);
        self.bytes.resize(len, 0);
    }
}

/// Returns the groups of a presence map of at most `len` bytes without the groups of zeros at its
/// end, and their number. The bits are below a marker bit.
#[inline(always)]
const fn shortest(len: usize, map: u64) -> (u64, usize) {
    let count = map.ilog2();
    let bits = (map ^ 1 << count) << (7 * len as u32 - count);
    let zeros = (bits.trailing_zeros() / 7) as usize;
    let unused = if zeros < len { zeros } else { len - 1 };
    (bits >> (7 * unused), len - unused)
}

/// A presence map that is being written. Space for all bits is reserved first, and the part that
/// they do not need is freed.
#[derive(Debug)]
pub(super) struct PresenceWriter {
    /// The offset of the next gathered groups.
    next: usize,
    start: usize,
    end: usize,
    /// The bits that are not in the buffer yet, the last one lowest.
    bits: u64,
    count: u32,
}

/// The number of bits that are gathered before they are written: eight groups.
const GATHERED: u32 = 56;

impl PresenceWriter {
    /// Reserves space for `bits` presence bits at the end of `out`.
    #[inline]
    pub(super) fn new(out: &mut Output, bits: u32) -> Self {
        let start = out.at;
        let len = bits.div_ceil(7) as usize;
        out.reserve(len);
        out.at += len;
        Self {
            next: start,
            start,
            end: out.at,
            bits: 0,
            count: 0,
        }
    }

    /// Returns true if a map of `bits` bits fits into the word that [`Self::of_word`] takes.
    #[inline(always)]
    pub(super) const fn is_word(bits: u32) -> bool {
        bits < GATHERED
    }

    /// Returns a map that is not in a buffer, with these bits below a marker bit.
    pub(super) const fn of_word(word: u64) -> Self {
        let count = word.ilog2();
        Self {
            next: 0,
            start: 0,
            end: 0,
            bits: word ^ 1 << count,
            count,
        }
    }

    /// Returns the bits of the map, below a marker bit.
    pub(super) const fn word(&self) -> u64 {
        self.bits | 1 << self.count
    }

    /// Appends a bit to the map.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Output, bit: bool) {
        self.bits = self.bits << 1 | u64::from(bit);
        self.count += 1;
        if self.count == GATHERED {
            self.flush(out);
        }
    }

    /// Cuts trailing groups of zeros, sets the stop bit, and closes the gap.
    #[inline]
    pub(super) fn finish(mut self, out: &mut Output) {
        if self.end - self.start == 1 {
            out.bytes[self.start] = (self.bits << (7 - self.count)) as u8 | 0x80;
            return;
        }
        self.flush(out);
        let map = &mut out.bytes[self.start..self.end];
        // Optional parts may have taken fewer bits than there was room for.
        map[self.next - self.start..].fill(0);
        let last = map.iter().rposition(|&byte| byte != 0).unwrap_or_default();
        let Some(byte) = map.get_mut(last) else {
            return;
        };
        *byte |= 0x80;
        let used = self.start + last + 1;
        if used < self.end {
            out.bytes.copy_within(self.end..out.at, used);
            out.at -= self.end - used;
        }
    }

    /// Writes the gathered bits, with zeros added to whole groups.
    fn flush(&mut self, out: &mut Output) {
        let groups = self.count.div_ceil(7);
        let bits = self.bits << (7 * groups - self.count);
        for group in 0..groups {
            out.bytes[self.next] = (bits >> (7 * (groups - 1 - group))) as u8 & 0x7f;
            self.next += 1;
        }
        (self.bits, self.count) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_get_the_preambles_they_need() {
        let written = |text: &[u8], nullable| {
            let mut out = Output::default();
            out.ascii(text, nullable);
            out.written().to_vec()
        };
        assert_eq!(written(b"AB", false), b"A\xc2");
        assert_eq!(written(b"", false), b"\x80");
        assert_eq!(written(b"", true), b"\x00\x80");
        assert_eq!(written(b"\0", false), b"\x00\x80");
        assert_eq!(written(b"\0", true), b"\x00\x00\x80");
        assert_eq!(written(b"\0A", true), b"\x00\x00\x00\xc1");
    }

    #[test]
    fn presence_maps_are_minimal() {
        for set in [
            vec![],
            vec![0],
            vec![7],
            vec![6],
            vec![19],
            vec![55],
            vec![56, 70],
            vec![3],
        ] {
            for room in [20_u32, 56, 80, 150] {
                let bits = room.min(80);
                let mut out = Output::default();
                out.push(1);
                let mut map = PresenceWriter::new(&mut out, room);
                out.push(2);
                for bit in 0..bits {
                    map.push(&mut out, set.contains(&bit));
                }
                map.finish(&mut out);
                let mut expected = vec![0_u8; 22];
                for &bit in set.iter().filter(|&&bit| bit < bits) {
                    expected[bit as usize / 7] |= 0x40 >> (bit % 7);
                }
                while expected.len() > 1 && expected.last() == Some(&0) {
                    expected.pop();
                }
                *expected.last_mut().unwrap() |= 0x80;
                assert_eq!(out.written(), [&[1][..], &expected, &[2]].concat());
            }
        }
        let mut out = Output::default();
        PresenceWriter::new(&mut out, 0).finish(&mut out);
        assert!(out.written().is_empty());
    }
}
