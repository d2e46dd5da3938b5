//! The connection of a client, and the bytes queued for it.

use fanfare_engine::outbound::Outbound;
use fanfare_engine::tcp::{Received, Stream};
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// The zstd level: the fastest that is better than no compression.
const LEVEL: i32 = 1;

/// A connection. Bytes that its socket does not accept are queued, without a limit here.
pub(super) struct Wire {
    stream: Stream,
    queue: Outbound,
    /// The compressor, if the stream is compressed.
    packer: Option<zstd::stream::write::Encoder<'static, Vec<u8>>>,
    /// Whether compressed bytes have not been flushed to the client.
    is_packing: bool,
    /// The time since which the socket has accepted none of the queued bytes.
    stalled: Option<u64>,
    is_broken: bool,
    /// Whether nothing more is sent.
    is_finished: bool,
    /// The bytes that the socket has accepted.
    pub(super) sent: u64,
}

impl Wire {
    pub(super) const fn new(stream: Stream) -> Self {
        Self {
            stream,
            queue: Outbound::new(usize::MAX),
            packer: None,
            is_packing: false,
            stalled: None,
            is_broken: false,
            is_finished: false,
            sent: 0,
        }
    }

    pub(super) fn peer(&self) -> SocketAddr {
        self.stream.peer()
    }

    /// Returns the number of queued bytes.
    pub(super) fn len(&self) -> usize {
        let packed = self.packer.as_ref();
        self.queue.len() + packed.map_or(0, |packer| packer.get_ref().len())
    }

    /// Compresses the stream from now on.
    pub(super) fn pack(&mut self) {
        match zstd::stream::write::Encoder::new(Vec::new(), LEVEL) {
            Ok(packer) => self.packer = Some(packer),
            Err(_) => self.is_broken = true,
        }
    }

    /// Returns whether the connection is broken.
    pub(super) const fn is_broken(&self) -> bool {
        self.is_broken
    }

    pub(super) const fn mark_broken(&mut self) {
        self.is_broken = true;
    }

    /// Returns the time since which the socket has accepted none of the queued bytes, if any are
    /// queued.
    pub(super) const fn stalled(&self) -> Option<u64> {
        self.stalled
    }

    /// Appends bytes.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if let Some(packer) = &mut self.packer {
            self.is_packing = true;
            self.is_broken |= packer.write_all(bytes).is_err();
            return;
        }
        self.queue.push_rest(bytes);
    }

    /// Writes bytes to the socket if none are queued. Returns how many it accepted.
    pub(super) fn send(&mut self, bytes: &[u8]) -> usize {
        if self.is_broken || !self.queue.is_empty() || self.packer.is_some() {
            return 0;
        }
        let sent = self.stream.send(&[IoSlice::new(bytes)]);
        self.took(sent)
    }

    fn took(&mut self, sent: io::Result<usize>) -> usize {
        match sent {
            Ok(count) => {
                self.sent += count as u64;
                count
            }
            Err(_) => {
                self.is_broken = true;
                0
            }
        }
    }

    /// Writes the queued bytes to the socket. Returns whether any are left.
    pub(super) fn flush(&mut self, now: u64) -> bool {
        if let Some(packer) = &mut self.packer
            && std::mem::take(&mut self.is_packing)
        {
            self.is_broken |= packer.flush().is_err();
            let packed = packer.get_mut();
            self.queue.push_rest(packed);
            packed.clear();
        }
        let before = self.queue.len();
        while !self.queue.is_empty() && !self.is_broken {
            let sent = self.stream.send(&self.queue.parts());
            let count = self.took(sent);
            if count == 0 {
                break;
            }
            self.queue.consume(count);
        }
        let left = self.queue.len();
        match left {
            0 => self.stalled = None,
            left if left < before => self.stalled = Some(now),
            _ => _ = self.stalled.get_or_insert(now),
        }
        left > 0
    }

    /// Shuts down the sending direction once everything was sent. Closing a connection while the
    /// client still sends would discard the bytes it has not read.
    pub(super) fn finish(&mut self) {
        if self.len() == 0 && !std::mem::replace(&mut self.is_finished, true) {
            self.is_broken |= self.stream.finish().is_err();
        }
    }

    /// Appends the received bytes to `inbox`, through the buffer `room`. Returns false at the end.
    pub(super) fn receive(&mut self, room: &mut [u8], inbox: &mut Vec<u8>) -> bool {
        match self.stream.receive(room) {
            Ok(Received::Bytes(count)) => {
                inbox.extend_from_slice(room.get(..count).unwrap_or_default());
                true
            }
            Ok(Received::Nothing) => true,
            Ok(Received::Closed) | Err(_) => false,
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
