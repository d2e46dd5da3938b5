//! Why a connection came to nothing.

use super::names::CertificateNames;
use fanfare_fix::session::{FieldTooLong, SessionId};
use fanfare_wire::text::Escaped;
use std::fmt;
use std::io;

/// Why a connection came to nothing before there was a session on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The address is not on the allow list.
    NotAllowed,
    /// The port has as many connections as it may, all of them logged on.
    TooManyConnections,
    /// As many connections as allowed have not logged on yet, and this is the oldest.
    TooManyWithoutLogon,
    /// As many connections of this address as allowed have not logged on yet, and this is the
    /// oldest of them.
    TooManyFromAddress,
    /// The process has no descriptor left for this port.
    NoDescriptors,
    /// The port is closed, and the connection has not logged on.
    PortClosed,
    /// No Logon within the time for it.
    Silent,
    /// The counterparty closed the connection before its Logon.
    Left,
    /// The first bytes are no message.
    Garbled,
    /// The first message is no acceptable Logon.
    NotLogon,
    /// The first message is longer than this many bytes.
    LongLogon(usize),
    /// The Logon has a CompID, SubID or LocationID that is longer than it may be.
    TooLong(FieldTooLong),
    /// No such session here.
    UnknownSession(SessionId),
    /// The session has a connection already; that one goes on.
    AlreadyConnected(SessionId),
    /// There are as many sessions made for Logons as there may be.
    TooManySessions(usize),
    /// The application refused to make this session, for this reason.
    Stranger(SessionId, String),
    /// The client's certificate is not for this session.
    Certificate {
        /// The session that the Logon asks for.
        session: SessionId,
        /// The names in the certificate.
        names: CertificateNames,
    },
    /// The session cannot be hosted, or its store not be opened.
    Store(String),
    /// The transport failed, or an outgoing connection was refused.
    Transport {
        /// What kind of failure it is.
        kind: io::ErrorKind,
        /// What the system, or TLS, said.
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => f.write_str("address not on the allow list"),
            Self::TooManyConnections => f.write_str("too many connections"),
            Self::TooManyWithoutLogon => f.write_str("too many connections without a logon"),
            Self::TooManyFromAddress => {
                f.write_str("too many connections of this address without a logon")
            }
            Self::NoDescriptors => f.write_str("no descriptors left"),
            Self::PortClosed => f.write_str("the port is closed"),
            Self::Silent => f.write_str("no Logon in time"),
            Self::Left => f.write_str("left before its Logon"),
            Self::Garbled => f.write_str("first bytes are no FIX message"),
            Self::LongLogon(most) => write!(f, "first message is longer than {most} bytes"),
            Self::NotLogon => f.write_str("first message is not a Logon"),
            Self::TooLong(field) => field.fmt(f),
            Self::UnknownSession(id) => write!(f, "no session {id}"),
            Self::AlreadyConnected(id) => write!(f, "session {id} has a connection"),
            Self::TooManySessions(most) => {
                write!(f, "the limit of {most} sessions made for Logons is reached")
            }
            Self::Stranger(id, why) => write!(f, "no session {id}: {}", Escaped::text(why)),
            Self::Certificate { session, names } => {
                write!(f, "the certificate of {names} is not for session {session}")
            }
            Self::Store(why) => write!(f, "{}", Escaped::text(why)),
            // An error of TLS may quote the peer's certificate.
            Self::Transport { error, .. } => write!(f, "{}", Escaped::text(error)),
        }
    }
}
