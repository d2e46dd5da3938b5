//! Reasons why a connection was refused.

use super::names::CertificateNames;
use fanfare_fix::session::{FieldTooLong, SessionId};
use fanfare_wire::text::Escaped;
use std::io;
use thiserror::Error;

/// The reason why a connection ended before it had a session.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The address is not on the allow list of the port, or of the session.
    #[error("address not on the allow list")]
    NotAllowed,
    /// The port has as many connections as it may, all of them logged on.
    #[error("too many connections")]
    TooManyConnections,
    /// As many connections as allowed have not logged on yet, and this is the oldest.
    #[error("too many connections without a logon")]
    TooManyWithoutLogon,
    /// As many connections of this address as allowed have not logged on yet, and this is the
    /// oldest of them.
    #[error("too many connections of this address without a logon")]
    TooManyFromAddress,
    /// The process has no descriptor left for this port.
    #[error("no descriptors left")]
    NoDescriptors,
    /// The port is closed, and the connection has not logged on.
    #[error("the port is closed")]
    PortClosed,
    /// The logon timeout has passed without a Logon.
    #[error("no Logon in time")]
    Silent,
    /// The counterparty closed the connection before its Logon.
    #[error("the peer closed the connection before its Logon")]
    Left,
    /// The first bytes are no message.
    #[error("first bytes are not a FIX message")]
    Garbled,
    /// The first message is no acceptable Logon.
    #[error("first message is not a Logon")]
    NotLogon,
    /// The first message is longer than this many bytes.
    #[error("first message is longer than {0} bytes")]
    LongLogon(usize),
    /// The Logon has a CompID, SubID or LocationID that is longer than it may be.
    #[error("{0}")]
    TooLong(FieldTooLong),
    /// The port has no such session.
    #[error("no session {0}")]
    UnknownSession(SessionId),
    /// The session has a connection already, which continues.
    #[error("session {0} has a connection")]
    AlreadyConnected(SessionId),
    /// The session is stopped.
    #[error("session {0} is stopped")]
    Stopped(SessionId),
    /// Wrong passwords of the same user from the same address were so recent that this one was not
    /// checked, as none is for this many milliseconds. The counterparty receives no Logout.
    #[error("{0}: after wrong passwords from this address none is checked for another {1} ms")]
    SlowedDown(SessionId, u64),
    /// The number of sessions made for Logons is at its limit.
    #[error("the limit of {0} sessions made for Logons is reached")]
    TooManySessions(usize),
    /// The application refused to make this session, for this reason.
    #[error("no session {0}: {why}", why = Escaped::text(.1))]
    Stranger(SessionId, String),
    /// The client's certificate is not for this session.
    #[error("the certificate of {names} is not for session {session}")]
    Certificate {
        /// The session that the Logon names.
        session: SessionId,
        /// The names in the certificate.
        names: CertificateNames,
    },
    /// The session cannot be hosted, or its store not be opened.
    #[error("{}", Escaped::text(.0))]
    Store(String),
    /// The transport failed, or an outgoing connection was refused.
    // An error of TLS may quote the peer's certificate.
    #[error("{}", Escaped::text(error))]
    Transport {
        /// The kind of the failure.
        kind: io::ErrorKind,
        /// The error of the system, or of TLS.
        error: String,
    },
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Transport {
            kind: error.kind(),
            error: error.to_string(),
        }
    }
}
