//! Accepting of connections.

use super::{SocketOptions, Stream};
use crate::sys::socket::set_backlog;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use thiserror::Error;

/// A non-blocking listening socket with SO_REUSEADDR.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    /// A spare descriptor, released for a moment to refuse a client when none is left.
    spare: Option<File>,
}

/// Most connections that wait to be accepted. Counterparties may reconnect all at once: the
/// standard library lets 128 wait, and the next ones retry after a second.
const BACKLOG: i32 = 4096;

/// The address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// The address.
    pub address: SocketAddr,
    /// The reason; `AddrInUse` if the port is taken.
    pub source: io::Error,
}

/// The result of [`Listener::accept`].
#[derive(Debug)]
pub enum Accepted {
    /// A new connection.
    Stream(Stream),
    /// A client was refused because the process has no descriptor left.
    Refused,
    /// No connection waits.
    Nobody,
}

impl Listener {
    /// Listens on `address`; with port 0 the system chooses the port.
    ///
    /// # Errors
    /// The port is taken or not permitted, or the address is not a local one.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bind = || {
            let inner = TcpListener::bind(address)?;
            inner.set_nonblocking(true)?;
            set_backlog(&inner, BACKLOG)?;
            Ok(Self {
                inner,
                spare: spare(),
            })
        };
        bind().map_err(|source| BindError { address, source })
    }

    /// Sets the options of the sockets that are accepted from now on.
    ///
    /// # Errors
    /// Those of the system calls.
    pub fn set_options(&self, options: &SocketOptions) -> io::Result<()> {
        options.set(self.as_fd(), self.address()?.is_ipv6())
    }

    /// Returns the address listened on, with the port that the system chose.
    ///
    /// # Errors
    /// Those of the system call; none is expected.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Accepts the next connection, if any. A client that left before it was accepted is skipped.
    /// Without a free descriptor the connection is closed at once: otherwise it would be reported
    /// again and again and keep the thread busy.
    ///
    /// # Errors
    /// Those of the system call, such as a lack of memory.
    pub fn accept(&mut self) -> io::Result<Accepted> {
        loop {
            match self.inner.accept() {
                Ok((stream, _)) => {
                    // An error here means that the client is gone: the next one follows.
                    if let Ok(stream) = Stream::new(stream) {
                        return Ok(Accepted::Stream(stream));
                    }
                }
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN) => return Ok(Accepted::Nobody),
                    Some(libc::ECONNABORTED | libc::EINTR) => {}
                    Some(libc::EMFILE | libc::ENFILE) => return self.refuse(error),
                    _ => return Err(error),
                },
            }
        }
    }

    fn refuse(&mut self, error: io::Error) -> io::Result<Accepted> {
        if self.spare.take().is_none() {
            self.spare = spare();
            return Err(error);
        }
        drop(self.inner.accept());
        self.spare = spare();
        Ok(Accepted::Refused)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
