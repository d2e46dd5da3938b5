//! A transport with its outbound queue.

use super::permits::Permit;
use super::transport::Transport;
use crate::outbound::{Outbound, OutboundError, Overflow};
use std::io::{self, IoSlice};

/// A transport and its bounded outbound queue. A session's own messages wait in its store; the
/// queue has messages shared by many sessions, and the session's own messages in front of them.
pub(super) struct Connection {
    pub(super) transport: Transport,
    outbound: Outbound,
    /// The permit, returned when the connection is closed.
    _permit: Option<Permit>,
}

/// Default limit of the outbound queue of a session, in bytes.
pub(super) const QUEUE_BYTES: usize = 1 << 20;

impl Connection {
    /// Makes a connection whose outbound queue holds at most `limit` bytes.
    pub(super) const fn new(transport: Transport, limit: usize, permit: Option<Permit>) -> Self {
        Self {
            transport,
            outbound: Outbound::new(limit),
            _permit: permit,
        }
    }

    /// Returns the number of bytes in the outbound queue.
    pub(super) fn queued(&self) -> usize {
        self.outbound.len()
    }

    /// Returns the number of bytes that were ever put into the outbound queue.
    pub(super) const fn passed(&self) -> u64 {
        self.outbound.passed()
    }

    /// Returns whether bytes wait until the kernel's send buffer has space.
    pub(super) fn wants_write(&self) -> bool {
        !self.outbound.is_empty() || self.transport.wants_write()
    }

    /// Sends one or several messages. The bytes that the transport takes at once go out in one
    /// send; the rest is queued. Behind a queue that is not empty, everything is queued. Returns
    /// whether everything was sent.
    pub(super) fn send(&mut self, messages: &[u8]) -> Result<bool, OutboundError> {
        if !self.outbound.is_empty() {
            self.queue(messages)?;
            return Ok(false);
        }
        let taken = self.transport.send(&[IoSlice::new(messages)])?;
        if taken == messages.len() {
            return Ok(true);
        }
        if taken == 0 {
            self.queue(messages)?;
        } else {
            self.outbound
                .push_rest(messages.get(taken..).unwrap_or(&[]));
        }
        Ok(false)
    }

    /// Queues messages without sending any of them.
    pub(super) fn queue(&mut self, messages: &[u8]) -> Result<(), Overflow> {
        self.outbound.push(messages)
    }

    /// Queues the last bytes of a session, whatever the limit.
    pub(super) fn queue_rest(&mut self, rest: &[u8]) {
        self.outbound.push_rest(rest);
    }

    /// Drops the outbound queue.
    pub(super) fn drop_queue(&mut self) {
        self.outbound.consume(self.outbound.len());
    }

    /// Offers up to `most` bytes of the queue to the transport and passes those taken to `note`.
    /// Returns their number.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll::{Event, Interest, Poller, Token};
    use crate::tcp::Stream;
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    /// Returns our side of a connection, and a plain blocking peer.
    fn pair(limit: usize) -> (Connection, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let stream = Stream::new(listener.accept().unwrap().0).unwrap();
        (Connection::new(Transport::Plain(stream), limit, None), peer)
    }

    #[test]
    fn what_the_kernel_does_not_take_waits_and_goes_out_in_order() {
        let (mut connection, mut peer) = pair(64 << 20);
        let chunk: Vec<u8> = (0..1 << 20)
            .map(|i: u32| (i.wrapping_mul(i) >> 7) as u8)
            .collect();
        let mut sent = 0;
        while connection.send(&chunk).unwrap() {
            sent += 1;
        }
        connection.send(&chunk).unwrap();
        connection.queue(&chunk).unwrap();
        sent += 3;
        let mut poller = Poller::new(1).unwrap();
        poller
            .add(&connection.transport, Token(1), Interest::ReadWrite)
            .unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = vec![0; sent * chunk.len()];
            peer.read_exact(&mut all).unwrap();
            assert!(all.chunks(chunk.len()).all(|got| got == chunk));
            peer
        });
        let mut noted = 0;
        while connection.wants_write() {
            let queued = connection.queued();
            let taken = connection.send_queued(100_000, |bytes| noted = bytes.len());
            let taken = taken.unwrap();
            assert_eq!((noted, queued - taken), (taken, connection.queued()));
            if taken == 0 {
                poller.poll(None).unwrap();
                assert!(poller.events().all(Event::is_writable));
            }
        }
        drop(reader.join().unwrap());
    }

    #[test]
    fn a_peer_that_never_reads_overflows_the_queue() {
        let (mut connection, _peer) = pair(100_000);
        let message = [b'x'; 30_000];
        let overflow = loop {
            match connection.send(&message) {
                Ok(_) => {}
                Err(OutboundError::Overflow(overflow)) => break overflow,
                Err(OutboundError::Io(error)) => panic!("{error}"),
            }
        };
        assert_eq!((overflow.limit, overflow.len), (100_000, 30_000));
        assert_eq!(connection.queued(), overflow.queued);
    }
}
