//! The changes in the state of a message log that the application receives.

use fanfare_fix::session::SessionId;
use thiserror::Error;

/// A change in the state of the message log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LogTrouble {
    /// Bytes of this session are left out from here on.
    #[error("message log: left out {bytes} bytes of {session}: {why}")]
    LeftOut {
        /// The session.
        session: SessionId,
        /// The number of bytes in the first record left out, of one direction.
        bytes: usize,
        /// The reason.
        why: NoRoom,
    },
    /// The log is complete again.
    #[error(
        "message log: complete again; {bytes} bytes were left out, of {sessions} {}",
        if *sessions == 1 { "session" } else { "sessions" }
    )]
    Complete {
        /// The number of bytes left out before, of both directions.
        bytes: u64,
        /// The number of sessions concerned.
        sessions: usize,
    },
    /// The file cannot be written. Lines that it does not take are left out; no session is held up.
    #[error("message log: {0}; sessions continue, lines that cannot be written are left out")]
    Disk(String),
    /// The file can be written again.
    #[error("message log: writable again; {bytes} bytes were left out")]
    DiskAgain {
        /// The number of bytes of lines left out before.
        bytes: u64,
    },
    /// The file could not be ended or opened again, or one that has ended could not be compressed
    /// or removed. The file stays; nothing is lost.
    #[error("message log: {0}; the current file stays open")]
    Kept(String),
}

/// The reason why the ring has no space for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NoRoom {
    /// More bytes arrived than a lossy log could write, or than another log could write within
    /// twice [`LogOptions::patience`](super::LogOptions::patience).
    #[error("the writing thread cannot keep up")]
    Burst,
    /// The log has made no progress for [`LogOptions::patience`](super::LogOptions::patience).
    #[error("the writing thread makes no progress")]
    Stuck,
    /// The log's thread has ended.
    #[error("the writing thread has ended")]
    Ended,
}
