//! Broadcast ring whose writer never waits. Every word is atomic: a reader that is overtaken in the
//! middle of a message reads invalid bytes without a data race, notices, and discards them. This is
//! a sequence lock over a log.

use super::lock::RingLock;
use super::rescue::Place;
use super::{Batch, HEADER, PADDING, PAGE, Record, WriteError, record_size};
use crate::pad::Padded;
use std::io;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

/// The memory of a ring.
enum Memory {
    Own(Box<[AtomicU64]>),
    /// A file, which outlives the process.
    File(Place),
}

impl Deref for Memory {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        match self {
            Self::Own(words) => words,
            Self::File(place) => place.words(),
        }
    }
}

struct Shared {
    words: Memory,
    /// End of the bytes that the writer may be changing now; ahead of `tail` only during a write.
    intent: Padded<AtomicU64>,
    /// End of the last whole message.
    tail: Padded<AtomicU64>,
    /// Start of the last whole message, where an overtaken reader continues.
    latest: Padded<AtomicU64>,
    readers: AtomicU64,
    closed: AtomicBool,
}

impl Shared {
    fn word(&self, position: u64) -> Option<&AtomicU64> {
        self.words
            .get((position / 8) as usize & (self.words.len() - 1))
    }

    /// Returns the words from the start of a message to the end of the buffer.
    fn words_from(&self, start: u64) -> &[AtomicU64] {
        let first = ((start + HEADER as u64) / 8) as usize & (self.words.len() - 1);
        self.words.get(first..).unwrap_or(&[])
    }

    fn load(&self, position: u64) -> u64 {
        self.word(position)
            .map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn store(&self, position: u64, value: u64) {
        if let Some(word) = self.word(position) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn capacity(&self) -> u64 {
        self.words.len() as u64 * 8
    }
}

/// The writing end.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    scratch: Vec<u8>,
    max_readers: u64,
    tail: u64,
    sequence: u64,
}

impl Writer {
    pub(crate) fn new(capacity: usize, max_readers: usize) -> Self {
        let capacity = capacity.max(64).next_power_of_two();
        let words: Box<[AtomicU64]> = (0..capacity / 8).map(|_| AtomicU64::new(0)).collect();
        for word in words.iter().step_by(PAGE / 8) {
            word.store(0, Ordering::Relaxed);
        }
        Self::with_memory(Memory::Own(words), max_readers)
    }

    /// Makes a ring in a new file, in place of the locked one.
    pub(crate) fn in_file(
        lock: &mut RingLock,
        capacity: usize,
        max_readers: usize,
    ) -> io::Result<Self> {
        let capacity = capacity.max(64).next_power_of_two();
        let place = Place::create(lock, capacity)?;
        Ok(Self::with_memory(Memory::File(place), max_readers))
    }

    fn with_memory(words: Memory, max_readers: usize) -> Self {
        let capacity = words.len() * 8;
        let shared = Shared {
            words,
            intent: Padded(AtomicU64::new(0)),
            tail: Padded(AtomicU64::new(0)),
            latest: Padded(AtomicU64::new(0)),
            readers: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
            scratch: vec![0; capacity / 2],
            max_readers: max_readers as u64,
            tail: 0,
            sequence: 0,
        }
    }

    pub(crate) fn subscribe(&mut self) -> Option<Reader> {
        if self.shared.readers.load(Ordering::Relaxed) >= self.max_readers {
            return None;
        }
        self.shared.readers.fetch_add(1, Ordering::Relaxed);
        Some(Reader {
            shared: Arc::clone(&self.shared),
            scratch: vec![0; self.scratch.len()],
            cursor: self.tail,
            next: self.sequence,
        })
    }

    pub(crate) fn readers(&self) -> usize {
        self.shared.readers.load(Ordering::Relaxed) as usize
    }

    pub(crate) const fn position(&self) -> u64 {
        self.tail
    }

    #[inline]
    pub(crate) fn note(&self, note: u64) {
        if let Memory::File(place) = &self.shared.words {
            place.note(note);
        }
    }

    pub(crate) fn own(&self, owner: u64) {
        if let Memory::File(place) = &self.shared.words {
            place.own(owner);
        }
    }

    fn max_message(&self) -> usize {
        self.scratch.len() - HEADER
    }

    pub(crate) fn write(
        &mut self,
        kind: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<u64, WriteError> {
        let too_long = WriteError::TooLong {
            len,
            max: self.max_message(),
        };
        if len > self.max_message() {
            return Err(too_long);
        }
        fill(self.scratch.get_mut(..len).ok_or(too_long)?);
        let size = record_size(len);
        let to_end = self.shared.capacity() - (self.tail & (self.shared.capacity() - 1));
        let padding = if size > to_end { to_end } else { 0 };
        let start = self.tail + padding;
        self.shared.intent.store(start + size, Ordering::Release);
        if let Memory::File(place) = &self.shared.words {
            place.begin(start + size);
        }
        // A reader that sees any of the following words also sees `intent`.
        fence(Ordering::Release);
        if padding > 0 {
            self.put_header(self.tail, padding as usize - HEADER, PADDING);
        }
        self.put_header(start, len, kind);
        let from = self.scratch.get(..len.next_multiple_of(8)).unwrap_or(&[]);
        // No message crosses the end of the buffer.
        for (word, from) in self.shared.words_from(start).iter().zip(from.as_chunks().0) {
            word.store(u64::from_le_bytes(*from), Ordering::Relaxed);
        }
        self.tail = start + size;
        // Before `tail`: a message that a reader has seen is rescued, whenever the process is
        // killed.
        if let Memory::File(place) = &self.shared.words {
            place.publish(start, self.tail);
        }
        self.shared.tail.store(self.tail, Ordering::Release);
        // After `tail`: a reader that jumps here finds the message published.
        self.shared.latest.store(start, Ordering::Release);
        self.sequence += 1;
        Ok(self.sequence - 1)
    }

    fn put_header(&self, position: u64, len: usize, kind: u32) {
        self.shared
            .store(position, len as u64 | u64::from(kind) << 32);
        self.shared.store(position + 8, self.sequence);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
    }
}

/// A reading end.
pub(crate) struct Reader {
    shared: Arc<Shared>,
    scratch: Vec<u8>,
    cursor: u64,
    /// Sequence number of the next message, if none is lost.
    next: u64,
}

impl Reader {
    pub(crate) fn read(&mut self, limit: usize, mut each: impl FnMut(Record<'_>)) -> Batch {
        let mut batch = Batch::default();
        while batch.read < limit {
            let tail = self.shared.tail.load(Ordering::Acquire);
            if self.cursor == tail {
                break;
            }
            let Some(header) = self.copy_record() else {
                let latest = self.shared.latest.load(Ordering::Acquire);
                self.cursor = self.cursor.max(latest);
                continue;
            };
            self.cursor += record_size(header.len);
            if header.kind == PADDING {
                continue;
            }
            batch.lost += header.sequence - self.next;
            self.next = header.sequence + 1;
            let bytes = self.scratch.get(..header.len).unwrap_or(&[]);
            each(Record {
                sequence: header.sequence,
                kind: header.kind,
                bytes,
            });
            batch.read += 1;
        }
        batch
    }

    /// Marks everything up to a position of the cursor as no longer needed, if the ring is in a
    /// file.
    pub(crate) fn release(&self, to: u64) {
        if let Memory::File(place) = &self.shared.words {
            place.release(to);
        }
    }

    pub(crate) fn is_finished(&mut self) -> bool {
        self.shared.closed.load(Ordering::Acquire) && self.backlog() == 0
    }

    pub(crate) const fn position(&self) -> u64 {
        self.cursor
    }

    pub(crate) fn backlog(&self) -> u64 {
        self.shared.tail.load(Ordering::Acquire) - self.cursor
    }

    /// Copies the record at the cursor into `scratch`; `None` if it was overwritten meanwhile.
    fn copy_record(&mut self) -> Option<Header> {
        let word = self.shared.load(self.cursor);
        let header = Header {
            len: word as u32 as usize,
            kind: (word >> 32) as u32,
            sequence: self.shared.load(self.cursor + 8),
        };
        if header.kind != PADDING {
            // An overwritten header may have any length: nothing is copied then.
            let room = self.scratch.get_mut(..header.len.next_multiple_of(8))?;
            for (i, word) in room.chunks_exact_mut(8).enumerate() {
                let value = self.shared.load(self.cursor + (HEADER + 8 * i) as u64);
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        fence(Ordering::Acquire);
        let intent = self.shared.intent.load(Ordering::Acquire);
        (intent <= self.cursor + self.shared.capacity()).then_some(header)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Header {
    len: usize,
    kind: u32,
    sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_can_see_would_be_rescued() {
        let name = format!("fanfare-lapped-order-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut writer = Writer::in_file(&mut RingLock::take(&path).unwrap(), 1 << 16, 1).unwrap();
        let shared = Arc::clone(&writer.shared);
        let watch = std::thread::spawn(move || {
            let Memory::File(place) = &shared.words else {
                panic!("no file");
            };
            while !shared.closed.load(Ordering::Acquire) {
                let seen = shared.tail.load(Ordering::Acquire);
                assert!(place.tail() >= seen, "{} of {seen}", place.tail());
            }
        });
        for _ in 0..1_000_000 {
            writer.write(1, 8, |room| room.fill(7)).unwrap();
        }
        drop(writer);
        watch.join().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}
