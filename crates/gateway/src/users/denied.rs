//! The reason why a user's Logon was refused.

use fanfare_fix::session::{NEW_PASSWORD, WRONG_CREDENTIALS};

/// The reason why the Logon of a user's session was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// Username(553) or Password(554) is wrong or absent.
    #[error("wrong Username(553) or Password(554)")]
    WrongCredentials,
    /// The Logon asks for a new password.
    #[error("NewPassword(925) is not supported")]
    NewPassword,
    /// A wrong password of the same user from the same address was so recent that this one was not
    /// checked.
    #[error("too many wrong passwords from this address: none is checked for another {0} ms")]
    SlowedDown(u64),
    /// The user may not log on from this address.
    #[error("address not on the user's allow list")]
    Address,
    /// The user has as many sessions as allowed.
    #[error("the user has {0} sessions already")]
    TooManySessions(usize),
    /// An operator has stopped the session.
    #[error("stopped by an operator")]
    Stopped,
    /// The limit of connections that await a password check is reached, or this one has waited as
    /// long as a connection may be without a Logon.
    #[error("the queue of passwords to be checked is full")]
    Busy,
}

impl Denied {
    /// Returns Text(58) of the Logout that closes the connection, or `None` if it is closed without
    /// a response.
    pub(crate) const fn answer(&self) -> Option<&'static str> {
        match self {
            Self::WrongCredentials => Some(WRONG_CREDENTIALS),
            Self::NewPassword => Some(NEW_PASSWORD),
            Self::SlowedDown(_) => Some("too many wrong passwords, try again later"),
            Self::Address => None,
            Self::TooManySessions(_) => Some("too many sessions"),
            Self::Stopped => Some("stopped by the operator"),
            Self::Busy => Some("busy, try again later"),
        }
    }
}
