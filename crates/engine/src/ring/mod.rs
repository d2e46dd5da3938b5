//! Rings between threads, with one writer and messages of any length.
//!
//! - [`Broadcast`]: every reader receives every message. Under [`Policy::Gate`] the slowest reader
//!   holds the writer back, and messages are written and read in place. Under [`Policy::Lap`] the
//!   writer never waits: a reader that is overtaken jumps to the newest message and learns how many
//!   it lost. It reads through a copy of its own, because the bytes may change under it.
//! - [`spsc`]: one reader, in place, same records.
//!
//! All memory is allocated at the start. Neither end locks, allocates or makes a system call; a
//! reader that waits for a message sleeps by its idle strategy, or is woken by a
//! [`Waker`](crate::poll::Waker) that the writer's thread calls.
//!
//! ```
//! use fanfare_engine::ring::{Broadcast, Policy};
//! let mut writer = Broadcast::new(1 << 16, 4, Policy::Gate);
//! let mut reader = writer.subscribe().expect("four readers fit");
//! writer.push(7, b"quote").expect("room");
//! let batch = reader.read(64, |record| {
//!     assert_eq!((record.kind, record.bytes), (7, &b"quote"[..]));
//! });
//! assert_eq!((batch.read, batch.lost), (1, 0));
//! ```

mod broadcast;
mod lapped;
mod lock;
mod rescue;
mod spsc;
#[cfg(test)]
mod tests;

pub use broadcast::{Broadcast, BroadcastReader, Policy};
pub use lock::RingLock;
pub use rescue::{Rescued, is_replaceable, owner, rescue};
pub use spsc::{Consumer, Producer, spsc};

use thiserror::Error;

/// Bytes in front of each message in the ring: length, kind, sequence number.
pub(crate) const HEADER: usize = 16;

/// The kind of a record that only fills the end of the buffer; not available to users.
pub(crate) const PADDING: u32 = u32::MAX;

/// A page of memory at least, in bytes. Each page is written once when a ring is made: the kernel
/// allocates a page when it is first written, which takes longer than writing a message.
pub(crate) const PAGE: usize = 4096;

/// Returns the space that a message takes, header included: a multiple of 16.
pub(crate) fn record_size(len: usize) -> u64 {
    (len as u64 + HEADER as u64).next_multiple_of(16)
}

/// A message, as a reader receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The sequence number: 0 for the first message ever written to the ring, then ascending by
    /// one.
    pub sequence: u64,
    /// The kind that the writer passed, for its own use; never `u32::MAX`.
    pub kind: u32,
    /// The message, in the ring or in the reader's copy.
    pub bytes: &'a [u8],
}

/// The result of one call to [`BroadcastReader::read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch {
    /// The number of messages read.
    pub read: usize,
    /// The number of messages that the writer overwrote before this reader came (only
    /// [`Policy::Lap`]); they were written before the last message of this batch.
    pub lost: u64,
}

/// The reason why a message was not written. The ring is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WriteError {
    /// A gating reader has not yet read the bytes to be overwritten.
    #[error("the ring is full: a reader is behind")]
    Full,
    /// The message can never fit.
    #[error("the message has {len} bytes, the ring takes at most {max}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest message of this ring: half its capacity, less the header.
        max: usize,
    },
    /// The reader has closed the ring.
    #[error("the ring is closed")]
    Closed,
    /// `u32::MAX` was passed as the kind.
    #[error("kind {PADDING} is reserved for padding")]
    ReservedKind,
}
