//! The bounded queue of bytes that the kernel has not taken yet.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use thiserror::Error;

/// A bounded queue of bytes in front of a socket. It starts without memory and grows as needed up
/// to its limit, so that a thousand idle connections cost nothing here.
///
/// A message is queued whole or not at all: the limit never cuts one in two.
#[derive(Debug)]
pub struct Outbound {
    bytes: VecDeque<u8>,
    limit: usize,
    /// The number of bytes queued so far.
    passed: u64,
}

/// The error of a message that would exceed the queue's limit; nothing was queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the outbound queue is full: {queued} of {limit} bytes are queued, {len} more do not fit")]
pub struct Overflow {
    /// The number of bytes queued already.
    pub queued: usize,
    /// The number of bytes of the message that does not fit.
    pub len: usize,
    /// The limit in bytes.
    pub limit: usize,
}

/// The reason why a message was not sent.
#[derive(Debug, Error)]
pub enum OutboundError {
    /// The connection failed.
    #[error("connection broke: {0}")]
    Io(#[from] io::Error),
    /// The peer reads too slowly; nothing of this message was sent.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl Outbound {
    /// Makes an empty queue for at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            limit,
            passed: 0,
        }
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`Overflow`], with nothing of the message queued.
    pub fn push(&mut self, message: &[u8]) -> Result<(), Overflow> {
        let (len, queued) = (message.len(), self.bytes.len());
        if len > self.limit.saturating_sub(queued) {
            return Err(Overflow {
                queued,
                len,
                limit: self.limit,
            });
        }
        self.push_rest(message);
        Ok(())
    }

    /// Queues bytes that must follow, whatever the limit: the rest of a message of which the kernel
    /// has taken the beginning, or the last bytes of a connection.
    pub fn push_rest(&mut self, rest: &[u8]) {
        self.bytes.extend(rest);
        self.passed += rest.len() as u64;
    }

    /// Returns the queued bytes in order; the second part is mostly empty.
    #[must_use]
    pub fn parts(&self) -> [IoSlice<'_>; 2] {
        let (first, second) = self.bytes.as_slices();
        [IoSlice::new(first), IoSlice::new(second)]
    }

    /// Removes the first `count` bytes, which the kernel has taken.
    pub fn consume(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }

    /// Returns the number of bytes ever queued, including those in the queue.
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Returns the number of bytes in the queue.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(queue: &Outbound) -> Vec<u8> {
        queue
            .parts()
            .iter()
            .flat_map(|part| part.iter().copied())
            .collect()
    }

    #[test]
    fn starts_without_memory_and_keeps_order() {
        let mut queue = Outbound::new(8);
        assert_eq!(queue.bytes.capacity(), 0);
        queue.push(b"abcde").unwrap();
        queue.consume(2);
        queue.push(b"fg").unwrap();
        assert_eq!(text(&queue), b"cdefg");
    }

    #[test]
    fn a_message_goes_in_whole_or_not_at_all() {
        let mut queue = Outbound::new(8);
        queue.push(b"abcde").unwrap();
        let overflow = queue.push(b"fghi").unwrap_err();
        assert_eq!(
            overflow,
            Overflow {
                queued: 5,
                len: 4,
                limit: 8
            }
        );
        assert_eq!(text(&queue), b"abcde");
        queue.push(b"fgh").unwrap();
        assert_eq!(queue.len(), queue.limit);
    }

    #[test]
    fn the_rest_of_a_started_message_is_kept_whatever_the_limit() {
        let mut queue = Outbound::new(2);
        queue.push_rest(b"bcdef");
        assert_eq!(text(&queue), b"bcdef");
        assert_eq!(queue.passed(), 5);
    }
}
