//! Rings between threads, with one writer and messages of any length.
//!
//! - [`Broadcast`]: every reader sees every message. Under [`Policy::Gate`] the slowest reader
//!   holds the writer back, and messages are written and read in place. Under [`Policy::Lap`] the
//!   writer never waits: a reader that is overtaken jumps to the newest message and learns how
//!   many it lost; it reads through a copy of its own, because the bytes may change under it.
//! - [`spsc`]: one reader, in place, same records.
//!
//! All memory is allocated at the start. Neither end locks, allocates or makes a system call;
//! whoever waits for a message sleeps by its idle strategy, or is woken by a
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
mod rescue;
mod spsc;
#[cfg(test)]
mod tests;

pub use broadcast::{Broadcast, BroadcastReader, Policy};
pub use rescue::{Rescued, rescue};
pub use spsc::{Consumer, Producer, spsc};

use thiserror::Error;

/// Bytes in front of each message in the ring: length, kind, sequence number.
pub(crate) const HEADER: usize = 16;

/// The kind of a record that only fills the end of the buffer; not available to users.
pub(crate) const PADDING: u32 = u32::MAX;

/// A page of memory at least, in bytes. Each is written once when a ring is made: the kernel looks
/// for a page when it is first written, which takes longer than a message does.
pub(crate) const PAGE: usize = 4096;

/// The room that a message takes, header included: a multiple of 16.
pub(crate) fn record_size(len: usize) -> u64 {
    (len as u64 + HEADER as u64).next_multiple_of(16)
}

/// One message as a reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// 0 for the first message ever written to the ring, then ascending by one.
    pub sequence: u64,
    /// What the writer passed; free for its own use, except `u32::MAX`.
    pub kind: u32,
    /// The message, in the ring or in the reader's copy.
    pub bytes: &'a [u8],
}

/// What one call to [`BroadcastReader::read`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Batch {
    /// Messages handed over.
    pub read: usize,
    /// Messages that the writer overwrote before this reader came (only [`Policy::Lap`]); they
    /// stood somewhere before the last message of this batch.
    pub lost: u64,
}

/// Why a message was not written. Nothing has changed in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WriteError {
    /// A gating reader has not yet read what stands in the way.
    #[error("ring is full: a reader is behind")]
    Full,
    /// The message can never fit.
    #[error("message of {len} bytes, the ring takes at most {max}")]
    TooLong {
        /// Its length in bytes.
        len: usize,
        /// The longest message that this ring takes: half its capacity, less the header.
        max: usize,
    },
    /// The reader has closed the ring.
    #[error("the ring is closed")]
    Closed,
    /// `u32::MAX` was passed as the kind.
    #[error("kind {PADDING} is reserved")]
    ReservedKind,
}
