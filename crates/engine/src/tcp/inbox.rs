//! The bytes of incomplete messages of a connection.

use super::Received;
use std::io;

/// The bytes of a message that is not complete yet. Reading uses a buffer that all connections of a
/// thread share, so this is empty, and without memory, for most of them.
#[derive(Debug, Default)]
pub struct Inbox {
    kept: Vec<u8>,
}

/// Capacity for the first part of a message, allocated when it is first needed.
const FIRST_ROOM: usize = 4096;

impl Inbox {
    /// Makes an empty inbox.
    #[must_use]
    pub const fn new() -> Self {
        Self { kept: Vec::new() }
    }

    /// Reads once into `buffer` with `read`, after the bytes kept. Returns the result of `read`,
    /// and all bytes not yet parsed, which are no longer kept: the caller passes the rest to
    /// [`keep`](Self::keep). Without new bytes the slice is empty and the kept bytes stay.
    ///
    /// # Errors
    /// Those of `read`, and `InvalidData` if the bytes kept fill the buffer: the message can never
    /// be complete.
    pub fn fill<'b>(
        &mut self,
        buffer: &'b mut [u8],
        read: impl FnOnce(&mut [u8]) -> io::Result<Received>,
    ) -> io::Result<(Received, &'b [u8])> {
        let parts = buffer.split_at_mut_checked(self.kept.len());
        let Some((front, room)) = parts.filter(|(_, room)| !room.is_empty()) else {
            let why = "message exceeds the buffer";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        };
        let received = read(room)?;
        let Received::Bytes(count) = received else {
            return Ok((received, &[]));
        };
        let total = self.kept.len() + count;
        if !self.kept.is_empty() {
            front.copy_from_slice(&self.kept);
            self.kept.clear();
        }
        Ok((received, buffer.get(..total).unwrap_or(&[])))
    }

    /// Keeps bytes for the next read. The first call allocates capacity for most messages, so that
    /// a longer part of one does not allocate again.
    pub fn keep(&mut self, rest: &[u8]) {
        if !rest.is_empty() && self.kept.capacity() == 0 {
            self.kept.reserve(FIRST_ROOM.max(rest.len()));
        }
        self.kept.extend_from_slice(rest);
    }

    /// Returns the number of bytes kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Returns whether no bytes are kept.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
