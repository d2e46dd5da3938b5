//! The transport of a session: TCP, plain or inside TLS.

use super::names::CertificateNames;
use crate::tcp::{Received, Stream};
#[cfg(feature = "tls")]
use crate::tls::{TlsClient, TlsError, TlsServer, TlsStream};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

pub(super) enum Transport {
    Plain(Stream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

/// Whether connections are encrypted, and how.
#[derive(Debug, Clone, Default)]
pub(crate) enum Encrypt {
    #[default]
    No,
    #[cfg(feature = "tls")]
    Client(TlsClient),
    #[cfg(feature = "tls")]
    Server(TlsServer),
}

impl Encrypt {
    /// Begins a connection; `host` is the name of the host, if it was looked up.
    pub(super) fn begin(&self, stream: Stream, host: Option<&str>) -> io::Result<Transport> {
        #[cfg(not(feature = "tls"))]
        let _ = host;
        Ok(match self {
            Self::No => Transport::Plain(stream),
            #[cfg(feature = "tls")]
            Self::Client(tls) => Transport::Tls(Box::new(tls.connect_to(stream, host)?)),
            #[cfg(feature = "tls")]
            Self::Server(tls) => Transport::Tls(Box::new(tls.accept(stream)?)),
        })
    }

    /// Reloads the certificates.
    #[cfg(feature = "tls")]
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        match self {
            Self::No => Ok(()),
            Self::Client(tls) => tls.reload(),
            Self::Server(tls) => tls.reload(),
        }
    }
}

impl Transport {
    pub(super) fn peer(&self) -> SocketAddr {
        self.stream().peer()
    }

    /// Returns the names of the peer's certificate, if it has shown one.
    pub(super) fn peer_names(&self) -> io::Result<Option<CertificateNames>> {
        match self {
            Self::Plain(_) => Ok(None),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.peer_names(),
        }
    }

    /// Returns whether the last read responded to a step of a TLS handshake, which takes time.
    pub(super) const fn has_computed(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.has_computed(),
        }
    }

    /// Returns whether received bytes are left that make the socket not readable.
    pub(super) const fn has_pending(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.has_pending(),
        }
    }

    /// Returns whether received bytes are left, here or in the kernel.
    pub(super) fn has_unread(&self) -> bool {
        self.has_pending() || self.stream().has_unread()
    }

    /// See [`Stream::receive`].
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Received> {
        match self {
            Self::Plain(stream) => stream.receive(buffer),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.receive(buffer),
        }
    }

    /// Sends bytes given in parts. Returns how many were taken, 0 if none can be now.
    pub(super) fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.send(parts),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.send(parts),
        }
    }

    /// See [`Stream::limit_unsent`].
    pub(super) fn limit_unsent(&mut self, bytes: i32) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.limit_unsent(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.limit_unsent(bytes),
        }
    }

    /// Offers the bytes in its own buffer to the kernel.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.flush().map(drop),
        }
    }

    /// Returns whether bytes in its own buffer wait for space in the kernel.
    pub(super) fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.wants_write(),
        }
    }

    /// Shuts down the sending direction once the kernel has the bytes in its own buffer. Returns
    /// whether that is done.
    pub(super) fn finish(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(stream) => stream.finish().map(|()| true),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.finish(),
        }
    }

    fn stream(&self) -> &Stream {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.stream(),
        }
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream().as_fd()
    }
}
