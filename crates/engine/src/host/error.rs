//! Why something cannot be hosted.

use crate::journal::OpenError;
use crate::tcp::BindError;
use fanfare_fix::session::SessionId;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why something cannot be hosted.
#[derive(Debug, Error)]
pub enum HostError {
    /// The port cannot be opened.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Two sessions with the same identity.
    #[error("session {0} is there already")]
    Duplicate(SessionId),
    /// No session with this identity is hosted.
    #[error("there is no session {0}")]
    Unknown(SessionId),
    /// Nothing is listened for at this address.
    #[error("{0} is not listened on")]
    NoPort(SocketAddr),
    /// As many commands wait for the host as may.
    #[error("too many commands wait for the host")]
    Busy,
    /// The host has ended.
    #[error("the host has ended")]
    Ended,
    /// The host's own thread would wait for itself.
    #[error("a call of the handler cannot wait for its host")]
    OwnThread,
    /// Anything else the system says.
    #[error(transparent)]
    Io(#[from] io::Error),
}
