//! One writer, one reader, and the reader can close it: a message is either read or refused.

use super::{Record, WriteError};
use crate::sys::gated;

/// A ring of `capacity` bytes (rounded up to a power of two, at least 64) between two threads.
pub(crate) fn mailbox(capacity: usize) -> (Post, Mailbox) {
    let (writer, reader) = gated::Writer::with_reader(capacity);
    (Post(writer), Mailbox(reader))
}

/// The writing end.
pub(crate) struct Post(gated::Writer);

impl Post {
    /// Room for a message of at most `most` bytes, over undefined content. It is written with
    /// [`publish`](Self::publish), or not at all.
    pub(crate) fn claim(&mut self, most: usize) -> Result<&mut [u8], WriteError> {
        self.0.claim(most)
    }

    /// Writes the first `len` bytes of the last claim. Returns their sequence number.
    pub(crate) fn publish(&mut self, kind: u32, len: usize) -> Result<u64, WriteError> {
        self.0.publish(kind, len)
    }
}

/// The reading end. Dropping it closes the ring.
pub(crate) struct Mailbox(gated::Reader);

impl Mailbox {
    /// Calls `each` for at most `limit` messages, in order and in place. Returns the number of
    /// calls.
    pub(crate) fn read(&mut self, limit: usize, each: impl FnMut(Record<'_>)) -> usize {
        self.0.read(limit, each)
    }

    /// Takes no more messages: what the writer publishes from now on is refused. What it has
    /// published can be read.
    pub(crate) fn close(&self) {
        self.0.close();
    }

    /// True once the writer is gone and everything has been read.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.0.is_finished()
    }

    /// Whether nothing waits to be read.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.backlog() == 0
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
    }
}
