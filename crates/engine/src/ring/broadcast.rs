//! One writer, many readers, by policy.

use super::{Batch, PADDING, Record, WriteError, lapped};
use crate::sys::gated;
use std::io;
use std::path::Path;

/// What happens when the writer catches up with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The writer gets [`WriteError::Full`] until the slowest reader has read.
    Gate,
    /// The reader loses messages and is told how many.
    Lap,
}

/// The writing end. One per ring; it can move to another thread.
pub struct Broadcast(Writer);

enum Writer {
    Gate(gated::Writer),
    Lap(lapped::Writer),
}

impl Broadcast {
    /// A ring of `capacity` bytes (rounded up to a power of two, at least 64). The longest
    /// message is half of that, less 16. `max_readers` bounds the readers at one time.
    #[must_use]
    pub fn new(capacity: usize, max_readers: usize, policy: Policy) -> Self {
        Self(match policy {
            Policy::Gate => Writer::Gate(gated::Writer::new(capacity, max_readers)),
            Policy::Lap => Writer::Lap(lapped::Writer::new(capacity, max_readers)),
        })
    }

    /// As [`Broadcast::new`] under [`Policy::Lap`], in a file that is made anew: [`rescue`] finds
    /// there what one reader had not [released](BroadcastReader::release) when the process was
    /// killed. In a file system that is memory (`/dev/shm`) it is as fast.
    ///
    /// [`rescue`]: super::rescue()
    ///
    /// # Errors
    /// The file cannot be made, or there is no room for it.
    pub fn in_file(path: &Path, capacity: usize, max_readers: usize) -> io::Result<Self> {
        let writer = lapped::Writer::in_file(path, capacity, max_readers)?;
        Ok(Self(Writer::Lap(writer)))
    }

    /// A reader that sees everything written from now on; `None` if `max_readers` exist.
    /// Dropping a reader makes its place free.
    pub fn subscribe(&mut self) -> Option<BroadcastReader> {
        Some(BroadcastReader(match &mut self.0 {
            Writer::Gate(writer) => Reader::Gate(writer.subscribe()?),
            Writer::Lap(writer) => Reader::Lap(writer.subscribe()?),
        }))
    }

    /// Writes a copy of `bytes`; gives its sequence number.
    ///
    /// # Errors
    /// See [`WriteError`]; `Full` only under [`Policy::Gate`].
    pub fn push(&mut self, kind: u32, bytes: &[u8]) -> Result<u64, WriteError> {
        self.write(kind, bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// Writes a message of `len` bytes that `fill` makes. `fill` gets exactly `len` bytes of
    /// undefined content, in the ring itself under [`Policy::Gate`].
    ///
    /// # Errors
    /// See [`WriteError`]; `Full` only under [`Policy::Gate`]. `fill` is not called then.
    pub fn write(
        &mut self,
        kind: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<u64, WriteError> {
        if kind == PADDING {
            return Err(WriteError::ReservedKind);
        }
        match &mut self.0 {
            Writer::Gate(writer) => writer.write(kind, len, fill),
            Writer::Lap(writer) => writer.write(kind, len, fill),
        }
    }

    /// Whether messages that take `size` bytes in the ring (each its length and 16, rounded up to
    /// a multiple of 16) can be written now without [`WriteError::Full`].
    pub fn has_room(&mut self, size: usize) -> bool {
        match &mut self.0 {
            Writer::Gate(writer) => writer.has_room_for(size as u64),
            Writer::Lap(_) => true,
        }
    }

    /// Bytes written so far, headers included.
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.0 {
            Writer::Gate(writer) => writer.position(),
            Writer::Lap(writer) => writer.position(),
        }
    }

    /// How many readers there are now.
    #[must_use]
    pub fn readers(&self) -> usize {
        match &self.0 {
            Writer::Gate(writer) => writer.readers(),
            Writer::Lap(writer) => writer.readers(),
        }
    }
}

/// One reading end; it can move to another thread.
pub struct BroadcastReader(Reader);

enum Reader {
    Gate(gated::Reader),
    Lap(lapped::Reader),
}

impl BroadcastReader {
    /// Calls `each` for at most `limit` messages, in order. Under [`Policy::Gate`] they stand in
    /// the ring, and the writer may use their room again when the call ends: a small `limit`
    /// frees it sooner.
    pub fn read(&mut self, limit: usize, each: impl FnMut(Record<'_>)) -> Batch {
        match &mut self.0 {
            Reader::Gate(reader) => Batch {
                read: reader.read(limit, each),
                lost: 0,
            },
            Reader::Lap(reader) => reader.read(limit, each),
        }
    }

    /// True once the writer is gone and everything has been read.
    pub fn is_finished(&mut self) -> bool {
        match &mut self.0 {
            Reader::Gate(reader) => reader.is_finished(),
            Reader::Lap(reader) => reader.is_finished(),
        }
    }

    /// Of a ring [in a file](Broadcast::in_file): what was read so far is kept elsewhere, and is
    /// not to be rescued. For one of its readers; the others do not call it.
    pub fn release(&self) {
        if let Reader::Lap(reader) = &self.0 {
            reader.release();
        }
    }

    /// How far it has read: in bytes, as [`Broadcast::position`].
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.0 {
            Reader::Gate(reader) => reader.position(),
            Reader::Lap(reader) => reader.position(),
        }
    }

    /// Bytes written and not yet read, headers included. Under [`Policy::Lap`] it may exceed
    /// the capacity: then the next read will report a loss.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        match &self.0 {
            Reader::Gate(reader) => reader.backlog(),
            Reader::Lap(reader) => reader.backlog(),
        }
    }
}
