//! A stream with what it still has to send and what it has not yet understood.

use super::{Inbox, Received, Stream};
use crate::outbound::Outbound;
pub use crate::outbound::OutboundError as SendError;
use crate::poll::{Interest, Poller, Token};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

/// A stream, its bounded outbound queue, and the bytes of a message that is not complete yet.
///
/// Receiving goes through a buffer that all connections of a thread share, so an idle
/// connection holds no memory here; see [`receive`](Self::receive).
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    outbound: Outbound,
    inbox: Inbox,
    wants_write: bool,
}

impl Connection {
    /// `limit` is the most that may wait in the outbound queue, in bytes.
    #[must_use]
    pub const fn new(stream: Stream, limit: usize) -> Self {
        let outbound = Outbound::new(limit);
        Self {
            stream,
            outbound,
            inbox: Inbox::new(),
            wants_write: false,
        }
    }

    /// The stream.
    #[must_use]
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Bytes that wait for the peer to read.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.outbound.len()
    }

    /// Sends one message, or several, given in parts: what the kernel takes at once goes out in
    /// one gathering write, the rest waits in the queue. Behind a queue that is not empty it is
    /// queued whole. Gives true if everything went to the kernel.
    ///
    /// # Errors
    /// [`SendError::Overflow`]: nothing was sent. [`SendError::Io`]: the connection is broken.
    pub fn send(&mut self, parts: &[IoSlice<'_>]) -> Result<bool, SendError> {
        if !self.outbound.is_empty() {
            self.outbound.push(parts)?;
            return Ok(false);
        }
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let taken = self.stream.send(parts)?;
        if taken == len {
            return Ok(true);
        }
        if taken == 0 {
            self.outbound.push(parts)?;
        } else {
            self.outbound.push_rest(parts, taken);
        }
        Ok(false)
    }

    /// Offers the queue to the kernel. Gives true if it is empty now.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn flush(&mut self) -> io::Result<bool> {
        while !self.outbound.is_empty() {
            let taken = self.stream.send(&self.outbound.parts())?;
            if taken == 0 {
                return Ok(false);
            }
            self.outbound.consume(taken);
        }
        Ok(true)
    }

    /// One read. `understand` gets this connection (to answer on) and all bytes not yet
    /// understood, those left from before in front, and says how many it is done with; the rest
    /// is kept for the next time. It is not called if nothing came.
    ///
    /// `buffer` is shared by all connections of the thread. It must be longer than the longest
    /// message: if the bytes kept fill it, the peer's message can never be complete.
    ///
    /// # Errors
    /// The connection broke, or (`InvalidData`) the buffer is full of one incomplete message.
    pub fn receive(
        &mut self,
        buffer: &mut [u8],
        understand: impl FnOnce(&mut Self, &[u8]) -> usize,
    ) -> io::Result<Received> {
        let mut inbox = std::mem::take(&mut self.inbox);
        let stream = &self.stream;
        let filled = inbox.fill(buffer, |room| stream.receive(room));
        let received = filled.map(|(received, bytes)| {
            if !bytes.is_empty() {
                let done = understand(self, bytes);
                inbox.keep(bytes.get(done..).unwrap_or(&[]));
            }
            received
        });
        self.inbox = inbox;
        received
    }

    /// Passes `understand` bytes that were read from the stream before this connection had it, as
    /// [`receive`](Self::receive) does, and keeps those that it does not consume.
    pub fn resume(&mut self, bytes: &[u8], understand: impl FnOnce(&mut Self, &[u8]) -> usize) {
        let done = understand(self, bytes);
        self.inbox.keep(bytes.get(done..).unwrap_or(&[]));
    }

    /// Starts reporting readiness to `poller`.
    ///
    /// # Errors
    /// Already registered, or no memory in the kernel.
    pub fn register(&mut self, poller: &Poller, token: Token) -> io::Result<()> {
        self.wants_write = !self.outbound.is_empty();
        poller.add(&self.stream, token, self.interest())
    }

    /// Asks to be told about room to write exactly while something waits. Call after sending
    /// and flushing; costs a system call only on a change.
    ///
    /// # Errors
    /// Not registered.
    pub fn update_interest(&mut self, poller: &Poller, token: Token) -> io::Result<()> {
        let wants_write = !self.outbound.is_empty();
        if wants_write == self.wants_write {
            return Ok(());
        }
        self.wants_write = wants_write;
        poller.change(&self.stream, token, self.interest())
    }

    /// Gives back memory that an idle connection does not need.
    pub fn shrink(&mut self) {
        self.outbound.shrink();
        self.inbox.shrink();
    }

    const fn interest(&self) -> Interest {
        if self.wants_write {
            Interest::ReadWrite
        } else {
            Interest::Read
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
