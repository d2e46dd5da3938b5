//! One non-blocking TCP stream.

use crate::sys::socket;
use std::io::{self, IoSlice};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

/// A connected stream: non-blocking, TCP_NODELAY. Dropping it closes it.
#[derive(Debug)]
pub struct Stream {
    inner: TcpStream,
    peer: SocketAddr,
}

/// What a read found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now.
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

    /// Where the other end is.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// One read into `buffer` (which must not be empty).
    ///
    /// # Errors
    /// The connection broke (reset, timed out).
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

    /// One gathering write of all parts (of the first 1,024). Gives how many bytes the kernel
    /// took: 0 if its buffer is full, fewer than offered if it became full.
    ///
    /// # Errors
    /// The connection broke.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            // The kernel takes a plain write with less ado than a gathering one.
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

    /// Says that no more will be sent; what was sent still arrives.
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
