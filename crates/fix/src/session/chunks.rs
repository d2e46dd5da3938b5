//! Bytes of messages in memory, in chunks. Growth and the removal of the oldest chunk move no
//! bytes.

use std::collections::VecDeque;
use std::ops::Range;

use super::store::{Again, SideBuffer, StoreError};

/// Bytes in the order of their writing. Positions count from the first byte ever written. Some
/// stretches wait for transmission, others are only kept.
///
/// A message is in one chunk. Chunks double in size up to [`Chunks::LARGEST`]. A chunk is used
/// again when nothing of it is needed any more, so that no call takes longer than making one chunk.
#[derive(Debug)]
pub(super) struct Chunks {
    /// The chunks, oldest first. The last one is written to.
    chunks: VecDeque<Chunk>,
    /// The stretches that wait for transmission, in order. Each is in one chunk or, at positions
    /// from [`SIDE`] on, in `side`.
    pending: VecDeque<(u64, u64)>,
    side: SideBuffer,
    /// The position after the last byte written.
    end: u64,
    /// The chunks that were allocated at the start and are not in use yet.
    spare: Vec<Box<[u8]>>,
    /// The number of bytes of all chunks, without the spare ones.
    allocated: usize,
    limit: usize,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    /// The position of the first byte.
    base: u64,
}

impl Chunks {
    const SMALLEST: usize = 256;
    /// The size of the largest chunks, unless one message is longer. At the end of a chunk, up to
    /// the length of the longest message stays free.
    const LARGEST: usize = 256 << 10;

    /// Returns empty chunks. Whole chunks for `ready` bytes of the limit are allocated from the
    /// start.
    pub(super) fn new(limit: usize, ready: usize) -> Self {
        let whole = ready.div_ceil(Self::LARGEST).min(limit / Self::LARGEST);
        Self {
            chunks: VecDeque::new(),
            pending: VecDeque::new(),
            side: SideBuffer::new(),
            end: 0,
            spare: (0..whole).map(|_| touched(Self::LARGEST)).collect(),
            allocated: 0,
            limit,
        }
    }

    /// Returns the number of bytes allocated.
    pub(super) fn capacity(&self) -> usize {
        let spare: usize = self.spare.iter().map(|chunk| chunk.len()).sum();
        self.allocated + spare + self.side.capacity()
    }

    /// Returns the position after the last byte written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the position after the last byte of the oldest chunk.
    pub(super) fn oldest_end(&self) -> u64 {
        self.chunks.get(1).map_or(self.end, |second| second.base)
    }

    /// Returns whether anything below `end` waits for transmission.
    pub(super) fn waits_below(&self, end: u64) -> bool {
        self.waits_from() < end
    }

    /// Returns the lowest position that waits for transmission. A resend adds stretches with lower
    /// positions than those of earlier ones.
    fn waits_from(&self) -> u64 {
        let starts = self.pending.iter().map(|stretch| stretch.0);
        starts.fold(self.end, u64::min)
    }

    /// Returns whether the last chunk has room for `len` more bytes.
    #[inline]
    pub(super) fn has_room(&self, len: usize) -> bool {
        let last = self.chunks.back();
        last.is_some_and(|last| last.bytes.len() - (self.end - last.base) as usize >= len)
    }

    /// Makes room for `len` more bytes in one chunk. Bytes below `keep_from` that do not wait for
    /// transmission may be discarded.
    pub(super) fn make_room(&mut self, len: usize, keep_from: u64) -> Result<(), StoreError> {
        if self.has_room(len) {
            return Ok(());
        }
        if len > self.limit {
            return Err(StoreError::TooLong);
        }
        let needed_from = self.waits_from().min(keep_from);
        let last = self.chunks.back().map_or(0, |last| last.bytes.len());
        let wanted = (2 * last.max(len)).clamp(Self::SMALLEST, Self::LARGEST.max(len));
        while let Some(bytes) = self.give_up_oldest(needed_from) {
            let free = self.limit - self.allocated + bytes.len();
            // One that has room for little more than one message gives way to a larger one.
            let is_enough = bytes.len() >= 2 * len || bytes.len() >= wanted.min(free);
            if bytes.len() >= len && (is_enough || self.chunks.is_empty()) {
                self.push(bytes);
                return Ok(());
            }
            self.allocated -= bytes.len();
        }
        let free = self.limit - self.allocated;
        if len <= Self::LARGEST
            && free >= Self::LARGEST
            && let Some(spare) = self.spare.pop()
        {
            self.allocated += spare.len();
            self.push(spare);
            return Ok(());
        }
        let wanted = wanted.min(free);
        if wanted < len {
            return Err(StoreError::Full);
        }
        // Spare chunks count towards the limit.
        while self.capacity() + wanted > self.limit && self.spare.pop().is_some() {}
        self.allocated += wanted;
        self.push(touched(wanted));
        Ok(())
    }

    /// Removes the oldest chunk, and returns its memory, if it has no byte from `needed_from` on.
    /// The memory still counts as allocated.
    fn give_up_oldest(&mut self, needed_from: u64) -> Option<Box<[u8]>> {
        if needed_from < self.oldest_end() {
            return None;
        }
        self.chunks.pop_front().map(|chunk| chunk.bytes)
    }

    fn push(&mut self, bytes: Box<[u8]>) {
        let base = self.end;
        self.chunks.push_back(Chunk { bytes, base });
    }

    /// Returns all room in the last chunk.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        let end = self.end;
        let last = self.chunks.back_mut();
        last.and_then(|last| last.bytes.get_mut((end - last.base) as usize..))
            .unwrap_or_default()
    }

    /// Appends the message at `range` of `room` to the bytes written.
    #[inline]
    pub(super) fn append(&mut self, range: Range<usize>, transmit: bool) {
        let len = range.len() as u64;
        if range.start > 0 {
            self.room().copy_within(range, 0);
        }
        let start = self.end;
        self.end += len;
        if !transmit {
            return;
        }
        let base = self.chunks.back().map_or(0, |last| last.base);
        match self.pending.back_mut() {
            Some(last) if last.1 == start && start > base => last.1 = self.end,
            _ => self.pending.push_back((start, self.end)),
        }
    }

    /// Transmits again as `MessageStore::transmit_again` does. The kept bytes are at `place`.
    pub(super) fn transmit_again(
        &mut self,
        again: &Again<'_>,
        place: Range<u64>,
    ) -> Result<(), StoreError> {
        if self.pending.is_empty() {
            self.side.clear();
        }
        if !self.side.has_room(again.side_len()) || self.unsent_len() + again.len() > self.limit {
            return Err(StoreError::Full);
        }
        self.push_side(again.head);
        if again.is_copied() {
            let len = (place.end - place.start) as usize;
            let chunk = find(&self.chunks, place.start);
            let bytes = chunk.map_or(&[][..], |chunk| chunk.bytes_at(place.start, len));
            let copy = self.side.push(bytes);
            self.push_pending(SIDE + copy.start as u64, SIDE + copy.end as u64);
        } else {
            self.push_pending(place.start, place.end);
        }
        self.push_side(again.tail);
        Ok(())
    }

    fn push_side(&mut self, bytes: &[u8]) {
        let place = self.side.push(bytes);
        self.push_pending(SIDE + place.start as u64, SIDE + place.end as u64);
    }

    fn push_pending(&mut self, start: u64, end: u64) {
        let is_first_of_chunk = || self.chunks.iter().any(|chunk| chunk.base == start);
        match self.pending.back_mut() {
            _ if start == end => {}
            Some(last) if last.1 == start && (start >= SIDE || !is_first_of_chunk()) => {
                last.1 = end;
            }
            _ => self.pending.push_back((start, end)),
        }
    }

    /// Returns `len` bytes that were written together.
    #[inline]
    pub(super) fn bytes(&self, start: u64, len: usize) -> &[u8] {
        let chunk = match self.chunks.back() {
            Some(last) if last.base <= start => Some(last),
            _ => find(&self.chunks, start),
        };
        chunk.map_or(&[], |chunk| chunk.bytes_at(start, len))
    }

    #[inline]
    pub(super) fn unsent(&self) -> &[u8] {
        match self.pending.front() {
            Some(&(start, end)) if start < SIDE => self.bytes(start, (end - start) as usize),
            Some(&(start, end)) => self
                .side
                .get((start - SIDE) as usize..(end - SIDE) as usize),
            None => &[],
        }
    }

    /// Returns the number of bytes of all stretches that wait for transmission.
    pub(super) fn unsent_len(&self) -> usize {
        let lens = self.pending.iter().map(|stretch| stretch.1 - stretch.0);
        lens.sum::<u64>() as usize
    }

    #[inline]
    pub(super) fn sent(&mut self, n: usize) {
        let Some(front) = self.pending.front_mut() else {
            return;
        };
        front.0 = (front.0 + n as u64).min(front.1);
        if front.0 == front.1 {
            self.pending.pop_front();
        }
    }

    pub(super) fn drop_unsent(&mut self) {
        self.pending.clear();
    }
}

impl Chunk {
    #[inline]
    fn bytes_at(&self, start: u64, len: usize) -> &[u8] {
        let at = (start - self.base) as usize;
        self.bytes.get(at..at + len).unwrap_or_default()
    }
}

/// Returns the chunk that holds position `start`.
fn find(chunks: &VecDeque<Chunk>, start: u64) -> Option<&Chunk> {
    let behind = chunks.partition_point(|chunk| chunk.base <= start);
    chunks.get(behind.checked_sub(1)?)
}

/// The first position in the side buffer. No store ever holds as many bytes.
const SIDE: u64 = 1 << 63;

/// Allocates `len` bytes and touches their pages, so that no message waits for the kernel to map
/// one. For 256 KiB this takes about 0.1 ms.
fn touched(len: usize) -> Box<[u8]> {
    let mut bytes = vec![0; len].into_boxed_slice();
    for page in bytes.chunks_mut(PAGE) {
        if let Some(first) = page.first_mut() {
            *first = 1;
        }
    }
    bytes
}

/// The size of a page of memory, or less.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The content of the chunks, in one piece that grows.
    #[derive(Default)]
    struct Oracle {
        all: Vec<u8>,
        unsent: VecDeque<(usize, usize)>,
    }

    proptest! {
        #[test]
        fn hold_what_one_piece_would_hold(
            steps in prop::collection::vec((0..4_u8, 0..300_usize, any::<u8>()), 1..300),
            limit in prop::sample::select(vec![600_usize, 2000, 1 << 20]),
        ) {
            let mut chunks = Chunks::new(limit, 0);
            let mut oracle = Oracle::default();
            let mut kept: VecDeque<(usize, usize)> = VecDeque::new();
            for (kind, len, byte) in steps {
                let keep_from = kept.front().map_or(u64::MAX, |kept| kept.0 as u64);
                match (kind, chunks.make_room(len + 8, keep_from)) {
                    (0..3, Ok(())) => {
                        let start = oracle.all.len();
                        chunks.room()[8..8 + len].fill(byte);
                        chunks.append(8..8 + len, kind > 0);
                        oracle.all.extend(std::iter::repeat_n(byte, len));
                        if len > 0 {
                            kept.push_back((start, len));
                        }
                        if kind > 0 {
                            oracle.unsent.push_back((start, start + len));
                        }
                    }
                    _ => {
                        kept.pop_front();
                        let n = chunks.unsent().len().min(len);
                        chunks.sent(n);
                        let mut left = n;
                        while let Some(front) = oracle.unsent.front_mut() {
                            let taken = left.min(front.1 - front.0);
                            front.0 += taken;
                            left -= taken;
                            if front.0 < front.1 {
                                break;
                            }
                            oracle.unsent.pop_front();
                        }
                    }
                }
                prop_assert!(chunks.capacity() <= limit);
                for &(start, len) in &kept {
                    let expected = &oracle.all[start..start + len];
                    prop_assert_eq!(chunks.bytes(start as u64, len), expected);
                }
                let waiting: usize = chunks.pending.iter().map(|s| (s.1 - s.0) as usize).sum();
                let expected: usize = oracle.unsent.iter().map(|s| s.1 - s.0).sum();
                prop_assert_eq!(waiting, expected);
                if let Some(&(start, _)) = oracle.unsent.iter().find(|s| s.0 < s.1) {
                    let unsent = chunks.unsent();
                    prop_assert_eq!(unsent, &oracle.all[start..start + unsent.len()]);
                }
            }
        }
    }

    #[test]
    fn growing_moves_nothing() {
        let mut chunks = Chunks::new(16 << 20, 0);
        let mut places = Vec::new();
        for _ in 0..20_000 {
            chunks.make_room(200, 0).unwrap();
            places.push((chunks.end(), chunks.room().as_ptr()));
            chunks.append(0..170, false);
        }
        for (start, place) in places {
            assert_eq!(chunks.bytes(start, 170).as_ptr(), place);
        }
        assert!(
            chunks
                .chunks
                .iter()
                .all(|chunk| chunk.bytes.len() <= Chunks::LARGEST)
        );
    }
}
