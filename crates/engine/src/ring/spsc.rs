//! The ring of one writer and one reader: the gated ring with a single place.

use super::{PADDING, Record, WriteError};
use crate::sys::gated;

/// Makes a ring of `capacity` bytes (rounded up to a power of two, at least 64) between two
/// threads.
#[must_use]
pub fn spsc(capacity: usize) -> (Producer, Consumer) {
    let (writer, reader) = gated::Writer::with_reader(capacity);
    (Producer(writer), Consumer(reader))
}

/// The writing end.
pub struct Producer(gated::Writer);

impl Producer {
    /// Writes a copy of `bytes`; returns its sequence number.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn push(&mut self, kind: u32, bytes: &[u8]) -> Result<u64, WriteError> {
        self.write(kind, bytes.len(), |room| room.copy_from_slice(bytes))
    }

    /// Writes a message of `len` bytes that `fill` makes in place, over undefined content.
    ///
    /// # Errors
    /// See [`WriteError`]; `fill` is not called then.
    pub fn write(
        &mut self,
        kind: u32,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<u64, WriteError> {
        if kind == PADDING {
            return Err(WriteError::ReservedKind);
        }
        self.0.write(kind, len, fill)
    }

    /// Returns space for a message of at most `most` bytes, over undefined content. It is written
    /// with [`publish`](Self::publish), or not at all.
    pub(crate) fn claim(&mut self, most: usize) -> Result<&mut [u8], WriteError> {
        self.0.claim(most)
    }

    /// Writes the first `len` bytes of the last claim; returns their sequence number. All messages
    /// of a ring that the consumer [closes](Consumer::close) are written in this way: either the
    /// consumer reads the message, or this fails.
    pub(crate) fn publish(&mut self, kind: u32, len: usize) -> Result<u64, WriteError> {
        self.0.publish(kind, len)
    }

    /// Returns whether messages of `size` bytes in all, headers (16 bytes each, padded to 16)
    /// included, fit one after the other, wherever the end of the ring is.
    #[must_use]
    #[inline]
    pub fn has_room_for(&mut self, size: usize) -> bool {
        self.0.has_room_for(size as u64)
    }

    /// Returns the position in bytes, from the start of the ring's life, up to which the consumer
    /// has read. It changes whenever a [`read`](Consumer::read) has taken messages.
    pub(crate) fn read_to(&mut self) -> u64 {
        self.0.read_to()
    }

    /// Returns whether the consumer is gone: messages written from now on are never read.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.0.readers() == 0
    }
}

/// The reading end. Dropping it closes the ring.
pub struct Consumer(gated::Reader);

impl Consumer {
    /// Calls `each` for at most `limit` messages, in order and in place. Returns the number of
    /// calls.
    pub fn read(&mut self, limit: usize, each: impl FnMut(Record<'_>)) -> usize {
        self.0.read(limit, each)
    }

    /// Takes no more messages: those published from now on are refused. Those published before can
    /// be read.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// Returns whether the producer is gone and everything has been read.
    pub fn is_finished(&mut self) -> bool {
        self.0.is_finished()
    }

    /// Returns the number of bytes written and not yet read, headers included.
    #[must_use]
    pub fn backlog(&self) -> u64 {
        self.0.backlog()
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.close();
    }
}
