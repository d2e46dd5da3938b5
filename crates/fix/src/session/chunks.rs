//! Bytes of messages in memory, in pieces: growing and giving up the oldest moves none of them.

use std::collections::VecDeque;
use std::ops::Range;

use super::store::StoreError;

/// Bytes in the order of their writing. Positions count from the first byte ever written. Some
/// stretches wait for transmission, others are only kept.
///
/// A message stands in one chunk. Chunks double up to [`Chunks::LARGEST`], and are used again when
/// nothing of them is needed any more, so that no call takes longer than making one chunk.
#[derive(Debug)]
pub(super) struct Chunks {
    /// Oldest first; the last one is written to.
    chunks: VecDeque<Chunk>,
    /// Stretches that wait for transmission, in order, each in one chunk.
    pending: VecDeque<(u64, u64)>,
    /// Position behind the last byte written.
    end: u64,
    /// Bytes of all chunks.
    allocated: usize,
    limit: usize,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    /// Position of the first byte.
    base: u64,
}

impl Chunks {
    const SMALLEST: usize = 256;
    /// Of the room of a chunk as much stays free at its end as the longest message wants.
    const LARGEST: usize = 256 << 10;

    pub(super) fn new(limit: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            pending: VecDeque::new(),
            end: 0,
            allocated: 0,
            limit,
        }
    }

    /// Bytes allocated.
    pub(super) fn capacity(&self) -> usize {
        self.allocated
    }

    /// Position behind the last byte written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The position behind the oldest chunk.
    pub(super) fn oldest_end(&self) -> u64 {
        self.chunks.get(1).map_or(self.end, |second| second.base)
    }

    /// Whether anything below `end` waits for transmission.
    pub(super) fn waits_below(&self, end: u64) -> bool {
        self.pending.front().is_some_and(|stretch| stretch.0 < end)
    }

    /// Whether `len` bytes have room behind `end`.
    #[inline]
    pub(super) fn has_room(&self, len: usize) -> bool {
        let last = self.chunks.back();
        last.is_some_and(|last| last.bytes.len() - (self.end - last.base) as usize >= len)
    }

    /// Makes room for `len` bytes behind `end`; bytes below `keep_from` that do not wait for
    /// transmission may go.
    pub(super) fn make_room(&mut self, len: usize, keep_from: u64) -> Result<(), StoreError> {
        if self.has_room(len) {
            return Ok(());
        }
        if len > self.limit {
            return Err(StoreError::TooLong);
        }
        let waits_from = self.pending.front().map_or(self.end, |stretch| stretch.0);
        let needed_from = waits_from.min(keep_from);
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
        let wanted = wanted.min(self.limit - self.allocated);
        if wanted < len {
            return Err(StoreError::Full);
        }
        self.allocated += wanted;
        self.push(touched(wanted));
        Ok(())
    }

    /// Takes the oldest chunk out if nothing from `needed_from` on is in it. It still counts as
    /// allocated.
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

    /// All room behind `end`.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        let end = self.end;
        let last = self.chunks.back_mut();
        last.and_then(|last| last.bytes.get_mut((end - last.base) as usize..))
            .unwrap_or_default()
    }

    /// The message at `range` of `room` follows what is written.
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

    /// `len` bytes that were written together.
    #[inline]
    pub(super) fn bytes(&self, start: u64, len: usize) -> &[u8] {
        let chunk = match self.chunks.back() {
            Some(last) if last.base <= start => Some(last),
            _ => self.find(start),
        };
        let bytes = chunk.and_then(|chunk| {
            let at = (start - chunk.base) as usize;
            chunk.bytes.get(at..at + len)
        });
        bytes.unwrap_or_default()
    }

    fn find(&self, start: u64) -> Option<&Chunk> {
        let behind = self.chunks.partition_point(|chunk| chunk.base <= start);
        self.chunks.get(behind.checked_sub(1)?)
    }

    #[inline]
    pub(super) fn unsent(&self) -> &[u8] {
        match self.pending.front() {
            Some(&(start, end)) => self.bytes(start, (end - start) as usize),
            None => &[],
        }
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

/// So many bytes whose pages are there: the kernel looks for them now, all at once, and not for
/// each one while a message is waiting. 256 KiB take about 0.1 ms.
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

    /// What the chunks hold, in one piece that grows.
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
            let mut chunks = Chunks::new(limit);
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
        let mut chunks = Chunks::new(16 << 20);
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
