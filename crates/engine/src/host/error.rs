//! Errors of hosting.

use super::refusal::Refusal;
use crate::journal::OpenError;
use crate::tcp::BindError;
use fanfare_fix::session::SessionId;
use fanfare_fix::session::{MAX_SEQ_NUM, SendError, State, StoreError};
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// The reason why a host cannot do as requested.
#[derive(Debug, Error)]
pub enum HostError {
    /// The port cannot be opened.
    #[error(transparent)]
    Port(#[from] BindError),
    /// The store cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Two sessions with the same identity.
    #[error("session {0} exists already")]
    Duplicate(SessionId),
    /// No session with this identity is hosted.
    #[error("no session {0}")]
    Unknown(SessionId),
    /// No port listens on this address.
    #[error("the host does not listen on {0}")]
    NoPort(SocketAddr),
    /// The host's queue of commands is full.
    #[error("the command queue of the host is full")]
    Busy,
    /// The host has ended.
    #[error("the host has ended")]
    Ended,
    /// The host's own thread would wait for itself.
    #[error("a handler cannot wait for an answer of its own host: that would deadlock")]
    OwnThread,
    /// The host has not responded in time.
    #[error("the host did not answer in time")]
    Late,
    /// The session has no connection.
    #[error("session {0} has no connection")]
    NotConnected(SessionId),
    /// The session is stopped.
    #[error("session {0} is stopped")]
    Stopped(SessionId),
    /// The session is not stopped.
    #[error("session {0} is not stopped")]
    NotStopped(SessionId),
    /// The session cannot be reset in this state: it is about to log on or out, or speaks FIX.4.0,
    /// which has no reset of a session that is logged on.
    #[error(
        "session {0} cannot be reset while it is {state}: stop the session, then reset it",
        state = words(*.1)
    )]
    NoReset(SessionId, State),
    /// The number is no MsgSeqNum(34).
    #[error("MsgSeqNum(34): expected 1 to {MAX_SEQ_NUM}, found {0}")]
    Number(u64),
    /// The counterparty has already seen the number.
    #[error(
        "the next message of {id} has {next}: its counterparty would take {wanted} as too low and \
         log out"
    )]
    Lower {
        /// The session, which has a connection.
        id: SessionId,
        /// The number requested.
        wanted: u64,
        /// The next number.
        next: u64,
    },
    /// Messages of the counterparty are missing, which a reset would discard.
    #[error(
        "session {0} misses messages of its counterparty: a reset discards them and the received \
         ones behind them"
    )]
    Missing(SessionId),
    /// The numbers cannot be changed now.
    #[error("the sequence numbers cannot be changed: {0}")]
    Send(SendError),
    /// The store does not take the numbers.
    #[error("the sequence numbers cannot be changed: store: {0}")]
    Numbers(StoreError),
    /// No template matches the identity.
    #[error("no template matches session {0}")]
    NoTemplate(SessionId),
    /// A template does not permit the session.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The system reports an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns a state in words.
const fn words(state: State) -> &'static str {
    match state {
        State::Idle => "without a connection",
        State::AwaitingLogon | State::AwaitingDecision => "logging on",
        State::LoggedOn => "logged on",
        State::LoggingOut => "logging out",
        State::Ended => "ending",
    }
}
