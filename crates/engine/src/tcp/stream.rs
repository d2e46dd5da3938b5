//! A non-blocking TCP stream.

use crate::sys::socket;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// A connected stream, non-blocking and with TCP_NODELAY. Dropping it closes the connection.
#[derive(Debug)]
pub struct Stream {
    inner: TcpStream,
    peer: SocketAddr,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This many bytes, at least one.
    Bytes(usize),
    /// No bytes now.
    Nothing,
    /// The peer will send no more.
    Closed,
}

impl Stream {
    /// Takes over a connected stream.
    ///
    /// # Errors
    /// The peer is gone already, or an option cannot be set.
    pub fn new(inner: TcpStream) -> io::Result<Self> {
        inner.set_nonblocking(true)?;
        inner.set_nodelay(true)?;
        let peer = inner.peer_addr()?;
        Ok(Self { inner, peer })
    }

    /// Returns the peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Reads once into `buffer`, which must not be empty.
    ///
    /// # Errors
    /// The connection failed (reset, timed out).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        loop {
            return match socket::receive(self.inner.as_fd(), buffer) {
                Ok(0) => Ok(Received::Closed),
                Ok(count) => Ok(Received::Bytes(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Received::Nothing),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Returns whether the kernel has bytes to be received.
    #[must_use]
    pub fn has_unread(&self) -> bool {
        self.inner.peek(&mut [0]).is_ok_and(|count| count > 0)
    }

    /// Writes all parts (the first 1,024) in one gathering write. Returns how many bytes the kernel
    /// took: 0 if its buffer is full, fewer than offered if it became full.
    ///
    /// # Errors
    /// The connection failed.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // A plain write costs the kernel less than a gathering one.
            let sent = match parts {
                [bytes] => socket::send(self.inner.as_fd(), bytes),
                _ => socket::send_parts(self.inner.as_fd(), parts),
            };
            return match sent {
                Ok(count) => Ok(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Limits the bytes that the kernel takes while it cannot send them, which may be some
    /// megabytes, to about `bytes` (TCP_NOTSENT_LOWAT). What the peer's kernel has received counts
    /// as sent.
    ///
    /// # Errors
    /// Those of the system call; none is expected.
    pub fn limit_unsent(&self, bytes: i32) -> io::Result<()> {
        socket::limit_unsent(self.inner.as_fd(), bytes)
    }

    /// Shuts down the sending direction; bytes sent before still arrive.
    ///
    /// # Errors
    /// The connection is gone already.
    pub fn finish(&self) -> io::Result<()> {
        self.inner.shutdown(Shutdown::Write)
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}
