//! Broadcast ring whose slowest reader holds the writer back: messages are written in place and
//! read in place. [`crate::ring`] is its public interface and documents the contract.
//!
//! Positions count bytes since the start and never wrap (u64). The writer owns every byte of
//! `[tail, slowest cursor + capacity)`; the bytes of `[cursor, tail)` are frozen until the reader
//! of that cursor advances. Soundness rests on this alone.

use crate::pad::Padded;
use crate::ring::{HEADER, PADDING, PAGE, Record, WriteError, record_size};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Cursor of a slot without a reader, which never holds the writer back.
const FREE: u64 = u64::MAX;

/// Set in the tail once a reader has closed the ring; positions are multiples of 16.
const CLOSED: u64 = 1;

struct Shared {
    words: Box<[UnsafeCell<u64>]>,
    tail: Padded<AtomicU64>,
    cursors: Box<[Padded<AtomicU64>]>,
    closed: AtomicBool,
}

// SAFETY: the cells are written by the one writer (not Clone, `&mut self`) only outside
// `[slowest cursor, tail)`, and read by readers only inside it. `tail` is stored with Release
// after the bytes and loaded with Acquire before them; a cursor is stored with Release after the
// last read and loaded with Acquire before the bytes are written again.
unsafe impl Sync for Shared {}

impl Shared {
    fn capacity(&self) -> u64 {
        self.words.len() as u64 * 8
    }

    /// Returns a pointer to the byte at `position`. The pointer covers the whole buffer (it is
    /// derived from the slice), so that bytes up to its end may be reached from it.
    fn at(&self, position: u64) -> *mut u8 {
        let offset = (position & (self.capacity() - 1)) as usize;
        let base = self.words.as_ptr() as *mut u8;
        // SAFETY: the offset is below the capacity because that is a power of two.
        unsafe { base.add(offset) }
    }
}

/// The writing end.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    tail: u64,
    /// A lower bound of the slowest cursor, renewed only when the ring seems full.
    slowest: u64,
    sequence: u64,
    claimed: Option<Claim>,
}

/// Space for a message that is not yet published.
struct Claim {
    /// The tail at that time: with another tail the claim is void.
    tail: u64,
    start: u64,
    most: usize,
}

impl Writer {
    /// Returns the number of bytes written so far.
    pub(crate) const fn position(&self) -> u64 {
        self.tail
    }

    /// Makes a ring; `capacity` in bytes is rounded up to a power of two (at least 64).
    pub(crate) fn new(capacity: usize, max_readers: usize) -> Self {
        let capacity = capacity.max(64).next_power_of_two();
        let words: Box<[UnsafeCell<u64>]> = (0..capacity / 8).map(|_| UnsafeCell::new(0)).collect();
        for word in words.iter().step_by(PAGE / 8) {
            // SAFETY: the word is part of the slice, and the slice is not shared yet.
            unsafe { word.get().write_volatile(0) };
        }
        let shared = Shared {
            words,
            tail: Padded(AtomicU64::new(0)),
            cursors: (0..max_readers)
                .map(|_| Padded(AtomicU64::new(FREE)))
                .collect(),
            closed: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
            tail: 0,
            slowest: 0,
            sequence: 0,
            claimed: None,
        }
    }

    /// Makes a ring with one place, taken by the reader returned.
    pub(crate) fn with_reader(capacity: usize) -> (Self, Reader) {
        let writer = Self::new(capacity, 1);
        let reader = writer.reader_at(0);
        (writer, reader)
    }

    /// Adds a reader that receives everything written from now on; `None` if all places are taken.
    pub(crate) fn subscribe(&mut self) -> Option<Reader> {
        let free = |cursor: &Padded<AtomicU64>| cursor.load(Ordering::Acquire) == FREE;
        let slot = self.shared.cursors.iter().position(free)?;
        Some(self.reader_at(slot))
    }

    fn reader_at(&self, slot: usize) -> Reader {
        let shared = Arc::clone(&self.shared);
        let reader = Reader {
            shared,
            slot,
            cursor: self.tail,
            tail: self.tail,
        };
        reader.release();
        reader
    }

    pub(crate) fn readers(&self) -> usize {
        let taken = |cursor: &&Padded<AtomicU64>| cursor.load(Ordering::Relaxed) != FREE;
        self.shared.cursors.iter().filter(taken).count()
    }

    fn max_message(&self) -> usize {
        (self.shared.capacity() / 2) as usize - HEADER
    }

    /// Writes one message of `len` bytes, filled in place by `fill` over undefined content.
    pub(crate) fn write(
        &mut self,
        kind: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<u64, WriteError> {
        let start = self.place(len)?;
        self.put_header(start, len, kind);
        // SAFETY: as `place` says; no other reference to these bytes exists.
        fill(unsafe { std::slice::from_raw_parts_mut(self.shared.at(start + HEADER as u64), len) });
        self.tail = start + record_size(len);
        let sequence = self.sequence;
        self.sequence += 1;
        self.shared.tail.store(self.tail, Ordering::Release);
        Ok(sequence)
    }

    /// Finds space for a message of `len` bytes: the record at the position returned lies in the
    /// writer's own part and does not cross the end of the buffer.
    fn place(&mut self, len: usize) -> Result<u64, WriteError> {
        if len > self.max_message() {
            return Err(WriteError::TooLong {
                len,
                max: self.max_message(),
            });
        }
        let size = record_size(len);
        let to_end = self.shared.capacity() - (self.tail & (self.shared.capacity() - 1));
        let padding = if size > to_end { to_end } else { 0 };
        if !self.has_room(padding + size) {
            return Err(WriteError::Full);
        }
        if padding > 0 {
            self.put_header(self.tail, padding as usize - HEADER, PADDING);
        }
        Ok(self.tail + padding)
    }

    /// Returns space for the next message, of at most `most` bytes of undefined content; it is
    /// written with [`publish`](Self::publish), or not at all.
    pub(crate) fn claim(&mut self, most: usize) -> Result<&mut [u8], WriteError> {
        let start = self.place(most)?;
        let tail = self.tail;
        self.claimed = Some(Claim { tail, start, most });
        let at = self.shared.at(start + HEADER as u64);
        // SAFETY: as `place` says; the reference borrows the writer, which alone accesses this
        // part.
        Ok(unsafe { std::slice::from_raw_parts_mut(at, most) })
    }

    /// Writes the first `len` bytes of the last claim as a message, unless the reader has
    /// [closed](Reader::close) the ring: either it reads the message, or this fails.
    pub(crate) fn publish(&mut self, kind: u32, len: usize) -> Result<u64, WriteError> {
        let claim = self.claimed.take().filter(|claim| claim.tail == self.tail);
        let Some(Claim { start, .. }) = claim.filter(|claim| len <= claim.most) else {
            let max = 0;
            return Err(WriteError::TooLong { len, max });
        };
        // Within the claim, as it is at most as long.
        self.put_header(start, len, kind);
        let tail = start + record_size(len);
        let swapped = self.shared.tail.compare_exchange(
            self.tail,
            tail,
            Ordering::Release,
            Ordering::Relaxed,
        );
        if swapped.is_err() {
            return Err(WriteError::Closed);
        }
        self.tail = tail;
        let sequence = self.sequence;
        self.sequence += 1;
        Ok(sequence)
    }

    /// Returns whether messages of `size` bytes, headers included, fit wherever the buffer's end
    /// is. The padding at the end is shorter than the message that did not fit there.
    pub(crate) fn has_room_for(&mut self, size: u64) -> bool {
        self.has_room(size.saturating_mul(2))
    }

    fn has_room(&mut self, size: u64) -> bool {
        if self.tail + size <= self.slowest + self.shared.capacity() {
            return true;
        }
        self.tail + size <= self.read_to() + self.shared.capacity()
    }

    /// Returns the position up to which all readers have read.
    pub(crate) fn read_to(&mut self) -> u64 {
        let cursors = self
            .shared
            .cursors
            .iter()
            .map(|cursor| cursor.load(Ordering::Acquire));
        self.slowest = cursors.min().unwrap_or(FREE).min(self.tail);
        self.slowest
    }

    /// Writes a header: length (u32), kind (u32), sequence (u64). It always fits, as positions and
    /// the capacity are multiples of 16.
    fn put_header(&self, position: u64, len: usize, kind: u32) {
        let word = len as u64 | u64::from(kind) << 32;
        let at = self.shared.at(position).cast::<u64>();
        // SAFETY: 16 bytes at a multiple of 16 inside the buffer, in the writer's own part.
        unsafe {
            at.write(word);
            at.add(1).write(self.sequence);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
    }
}

/// A reading end, which holds the writer back until it has read.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    slot: usize,
    cursor: u64,
    /// The tail as last seen.
    tail: u64,
}

impl Reader {
    /// Calls `each` for at most `limit` messages, in place. Returns the number of calls. The writer
    /// may reuse their space once all calls are done.
    pub(crate) fn read(&mut self, limit: usize, mut each: impl FnMut(Record<'_>)) -> usize {
        let mut count = 0;
        let start = self.cursor;
        while count < limit && self.refresh() {
            let (len, kind, sequence) = self.header();
            if kind == PADDING {
                self.cursor += record_size(len);
                continue;
            }
            let at = self.shared.at(self.cursor + HEADER as u64);
            // SAFETY: the record lies in `[cursor, tail)`, is contiguous, and stays frozen until
            // the shared cursor moves, which happens below, after the borrow has ended.
            let bytes = unsafe { std::slice::from_raw_parts(at, len) };
            each(Record {
                sequence,
                kind,
                bytes,
            });
            self.cursor += record_size(len);
            count += 1;
        }
        if self.cursor != start {
            self.release();
        }
        count
    }

    /// Returns whether the writer is gone and everything has been read.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.shared.closed.load(Ordering::Acquire) && !self.refresh()
    }

    /// Returns the position up to which it has read.
    pub(crate) const fn position(&self) -> u64 {
        self.cursor
    }

    /// Returns the number of bytes written and not yet read.
    pub(crate) fn backlog(&self) -> u64 {
        (self.shared.tail.load(Ordering::Acquire) & !CLOSED) - self.cursor
    }

    /// Refuses what the writer [publishes](Writer::publish) from now on. Messages published before
    /// can be read. Only for rings whose writer publishes: [`Writer::write`] would reopen the ring.
    pub(crate) fn close(&self) {
        self.shared.tail.fetch_or(CLOSED, Ordering::AcqRel);
    }

    fn refresh(&mut self) -> bool {
        if self.cursor == self.tail {
            self.tail = self.shared.tail.load(Ordering::Acquire) & !CLOSED;
        }
        self.cursor != self.tail
    }

    fn header(&self) -> (usize, u32, u64) {
        let at = self.shared.at(self.cursor).cast::<u64>();
        // SAFETY: 16 bytes at a multiple of 16 inside the buffer and inside `[cursor, tail)`.
        let (word, sequence) = unsafe { (at.read(), at.add(1).read()) };
        (word as u32 as usize, (word >> 32) as u32, sequence)
    }

    fn release(&self) {
        if let Some(cursor) = self.shared.cursors.get(self.slot) {
            cursor.store(self.cursor, Ordering::Release);
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(cursor) = self.shared.cursors.get(self.slot) {
            cursor.store(FREE, Ordering::Release);
        }
    }
}
