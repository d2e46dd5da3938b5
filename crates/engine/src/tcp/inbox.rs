//! What a connection has received and not yet understood.

use super::Received;
use std::io;

/// The bytes of a message that is not complete yet. Reading goes through a buffer that all
/// connections of a thread share, so this is empty, and without memory, for most of them.
#[derive(Debug, Default)]
pub struct Inbox {
    kept: Vec<u8>,
}

/// Room for the front of a message, from the first time that there is one.
const FIRST_ROOM: usize = 4096;

impl Inbox {
    /// Nothing kept.
    #[must_use]
    pub const fn new() -> Self {
        Self { kept: Vec::new() }
    }

    /// Reads once into `buffer` with `read`, behind the bytes kept. Gives what `read` said, and
    /// all bytes not yet understood, which are no longer kept: give the rest back to
    /// [`keep`](Self::keep). Without new bytes the slice is empty and those kept stay.
    ///
    /// # Errors
    /// Those of `read`, and `InvalidData` if the bytes kept fill the buffer: the message can
    /// never be complete.
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

    /// Keeps bytes for the next time. The first time makes room for most messages, so that a
    /// longer front of one does not allocate again.
    pub fn keep(&mut self, rest: &[u8]) {
        if !rest.is_empty() && self.kept.capacity() == 0 {
            self.kept.reserve(FIRST_ROOM.max(rest.len()));
        }
        self.kept.extend_from_slice(rest);
    }

    /// Bytes kept.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no bytes are kept.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
