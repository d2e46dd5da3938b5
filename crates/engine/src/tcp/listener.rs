//! Accepting connections.

use super::Stream;
use crate::sys::socket::set_backlog;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use thiserror::Error;

/// A listening socket: non-blocking, SO_REUSEADDR.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
    /// A descriptor held back: given up for a moment to turn a caller away when none is left.
    spare: Option<File>,
}

/// Counterparties that come back all at once: the standard library lets 128 wait, the next ones
/// call again after a second.
const BACKLOG: i32 = 4096;

/// The address could not be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address}")]
pub struct BindError {
    /// The address asked for.
    pub address: SocketAddr,
    /// Why not; `AddrInUse` if the port is taken.
    pub source: io::Error,
}

/// What [`Listener::accept`] found.
#[derive(Debug)]
pub enum Accepted {
    /// A new connection.
    Stream(Stream),
    /// A caller was turned away because the process has no descriptor left.
    Refused,
    /// Nobody waits.
    Nobody,
}

impl Listener {
    /// Listens on `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// The port is taken, not allowed, or the address is not ours.
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

    /// The address listened on, with the port that the system chose.
    ///
    /// # Errors
    /// As the system call has them; not expected.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Takes the next caller, if any. A caller that left before it was taken is skipped. When
    /// descriptors run out the caller is closed at once: otherwise it would report itself for
    /// ever and keep the thread busy.
    ///
    /// # Errors
    /// As the system call has them, memory for instance.
    pub fn accept(&mut self) -> io::Result<Accepted> {
        loop {
            match self.inner.accept() {
                Ok((stream, _)) => {
                    // An error here means that the caller is gone: look at the next one.
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
