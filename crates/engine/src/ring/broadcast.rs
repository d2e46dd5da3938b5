//! The broadcast ring: one writer, many readers, and a policy for slow ones.

use super::lock::RingLock;
use super::{Batch, PADDING, Record, WriteError, lapped};
use crate::sys::gated;
use std::io;
use std::path::Path;

/// The policy when the writer catches up with a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// The writer receives [`WriteError::Full`] until the slowest reader has read.
    Gate,
    /// The reader loses messages and learns how many.
    Lap,
}

/// The writing end, one for each ring. It can move to another thread.
pub struct Broadcast(Writer);

enum Writer {
    Gate(gated::Writer),
    Lap(lapped::Writer),
}

impl Broadcast {
    /// Makes a ring of `capacity` bytes (rounded up to a power of two, at least 64). The longest
    /// message is half of that, less 16. `max_readers` limits the readers at one time.
    #[must_use]
    pub fn new(capacity: usize, max_readers: usize, policy: Policy) -> Self {
        Self(match policy {
            Policy::Gate => Writer::Gate(gated::Writer::new(capacity, max_readers)),
            Policy::Lap => Writer::Lap(lapped::Writer::new(capacity, max_readers)),
        })
    }

    /// Makes a ring as [`Broadcast::new`] does under [`Policy::Lap`], in a new file. After a kill
    /// of the process, [`rescue`] finds there the messages that one reader had not
    /// [released](BroadcastReader::release). In a file system in memory (`/dev/shm`) it is as fast.
    ///
    /// [`rescue`]: super::rescue()
    ///
    /// # Errors
    /// The file cannot be made, the file system has no space for it, or the [lock](RingLock) of
    /// the file that has its name is held. Without space there is no file afterwards.
    pub fn in_file(path: &Path, capacity: usize, max_readers: usize) -> io::Result<Self> {
        Self::in_locked(&mut RingLock::take(path)?, capacity, max_readers)
    }

    /// Makes a ring as [`Broadcast::in_file`] does, in place of the locked file. The new file is
    /// locked as long as `lock` exists.
    ///
    /// # Errors
    /// Those of [`Broadcast::in_file`].
    pub fn in_locked(lock: &mut RingLock, capacity: usize, max_readers: usize) -> io::Result<Self> {
        let writer = lapped::Writer::in_file(lock, capacity, max_readers)?;
        Ok(Self(Writer::Lap(writer)))
    }

    /// Adds a reader that receives everything written from now on; `None` if `max_readers` exist.
    /// Dropping a reader frees its place.
    pub fn subscribe(&mut self) -> Option<BroadcastReader> {
        Some(BroadcastReader(match &mut self.0 {
            Writer::Gate(writer) => Reader::Gate(writer.subscribe()?),
            Writer::Lap(writer) => Reader::Lap(writer.subscribe()?),
        }))
    }

    /// Writes a copy of `bytes`; returns its sequence number.
    ///
    /// # Errors
    /// See [`WriteError`]; `Full` only under [`Policy::Gate`].
    pub fn push(&mut self, kind: u32, bytes: &[u8]) -> Result<u64, WriteError> {
        self.write(kind, bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// Writes a message of `len` bytes that `fill` makes. `fill` receives exactly `len` bytes of
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

    /// Notes a word of the caller's own in the file of a ring [in a file](Broadcast::in_file), in
    /// place of the one before: [`rescue`] returns it, whatever was overwritten. A ring in memory
    /// has none.
    ///
    /// [`rescue`]: super::rescue()
    #[inline]
    pub fn note(&self, note: u64) {
        if let Writer::Lap(writer) = &self.0 {
            writer.note(note);
        }
    }

    /// Sets the owner of a ring [in a file](Broadcast::in_file), a number of the caller's choice
    /// that [`owner`](super::owner()) returns. A ring in memory has no owner.
    pub fn own(&self, owner: u64) {
        if let Writer::Lap(writer) = &self.0 {
            writer.own(owner);
        }
    }

    /// Returns whether messages of `size` bytes in the ring (each its length and 16, rounded up to
    /// a multiple of 16) can be written now without [`WriteError::Full`].
    pub fn has_room(&mut self, size: usize) -> bool {
        match &mut self.0 {
            Writer::Gate(writer) => writer.has_room_for(size as u64),
            Writer::Lap(_) => true,
        }
    }

    /// Returns the number of bytes written so far, headers included.
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.0 {
            Writer::Gate(writer) => writer.position(),
            Writer::Lap(writer) => writer.position(),
        }
    }

    /// Returns the number of readers.
    #[must_use]
    pub fn readers(&self) -> usize {
        match &self.0 {
            Writer::Gate(writer) => writer.readers(),
            Writer::Lap(writer) => writer.readers(),
        }
    }
}

/// A reading end. It can move to another thread.
pub struct BroadcastReader(Reader);

enum Reader {
    Gate(gated::Reader),
    Lap(lapped::Reader),
}

impl BroadcastReader {
    /// Calls `each` for at most `limit` messages, in order. Under [`Policy::Gate`] they are read in
    /// the ring, and the writer may reuse their space when the call ends: a small `limit` frees it
    /// sooner.
    pub fn read(&mut self, limit: usize, each: impl FnMut(Record<'_>)) -> Batch {
        match &mut self.0 {
            Reader::Gate(reader) => Batch {
                read: reader.read(limit, each),
                lost: 0,
            },
            Reader::Lap(reader) => reader.read(limit, each),
        }
    }

    /// Returns whether the writer is gone and everything has been read.
    pub fn is_finished(&mut self) -> bool {
        match &mut self.0 {
            Reader::Gate(reader) => reader.is_finished(),
            Reader::Lap(reader) => reader.is_finished(),
        }
    }

    /// Marks everything in a ring [in a file](Broadcast::in_file) up to a
    /// [position](Self::position) that the reader has had as kept elsewhere, and not to be rescued.
    /// Only one of its readers may call it.
    pub fn release(&self, to: u64) {
        if let Reader::Lap(reader) = &self.0 {
            reader.release(to);
        }
    }

    /// Returns the position up to which it has read, in bytes, as [`Broadcast::position`].
    #[must_use]
    pub const fn position(&self) -> u64 {
        match &self.0 {
            Reader::Gate(reader) => reader.position(),
            Reader::Lap(reader) => reader.position(),
        }
    }

    /// Returns the number of bytes written and not yet read, headers included. Under
    /// [`Policy::Lap`] it may exceed the capacity: then the next read reports a loss.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        match &self.0 {
            Reader::Gate(reader) => reader.backlog(),
            Reader::Lap(reader) => reader.backlog(),
        }
    }
}
