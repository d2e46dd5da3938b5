//! A transport with what it still has to send.

use super::permits::Permit;
use super::transport::Transport;
use crate::outbound::{Outbound, OutboundError, Overflow};
use std::io::{self, IoSlice};

/// A transport and its bounded outbound queue. What a session writes itself waits in its store; the
/// queue has messages that many sessions share, and what the session wrote before them.
pub(super) struct Connection {
    pub(super) transport: Transport,
    outbound: Outbound,
    /// Given back when the connection is closed.
    _permit: Option<Permit>,
}

/// Bytes that may wait in the outbound queue of a session, unless another limit is given.
pub(super) const QUEUE_BYTES: usize = 1 << 20;

impl Connection {
    /// `limit` is the most that may wait in the outbound queue, in bytes.
    pub(super) const fn new(transport: Transport, limit: usize, permit: Option<Permit>) -> Self {
        Self {
            transport,
            outbound: Outbound::new(limit),
            _permit: permit,
        }
    }

    /// Bytes in the outbound queue.
    pub(super) fn queued(&self) -> usize {
        self.outbound.len()
    }

    /// Whether it holds something that waits for room in the kernel.
    pub(super) fn wants_write(&self) -> bool {
        !self.outbound.is_empty() || self.transport.wants_write()
    }

    /// Sends one message, or several, given in parts: what the transport takes at once goes out in
    /// one gathering write, the rest waits in the queue. Behind a queue that is not empty it is
    /// queued whole. Returns whether everything was taken.
    pub(super) fn send(&mut self, parts: &[IoSlice<'_>]) -> Result<bool, OutboundError> {
        if !self.outbound.is_empty() {
            self.queue(parts)?;
            return Ok(false);
        }
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let taken = self.transport.send(parts)?;
        if taken == len {
            return Ok(true);
        }
        if taken == 0 {
            self.queue(parts)?;
        } else {
            self.outbound.push_rest(parts, taken);
        }
        Ok(false)
    }

    /// Queues messages without sending any of them.
    pub(super) fn queue(&mut self, parts: &[IoSlice<'_>]) -> Result<(), Overflow> {
        self.outbound.push(parts)
    }

    /// Offers up to `most` bytes of the queue. Returns how many were taken, after `note` had them.
    pub(super) fn send_queued(
        &mut self,
        most: usize,
        note: impl FnOnce(&[u8]),
    ) -> io::Result<usize> {
        let [first, _] = self.outbound.parts();
        let first = first.get(..most).unwrap_or(&first);
        let taken = self.transport.send(&[IoSlice::new(first)])?;
        note(first.get(..taken).unwrap_or(first));
        self.outbound.consume(taken);
        Ok(taken)
    }
}
