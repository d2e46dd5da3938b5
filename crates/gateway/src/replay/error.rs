//! The error of a source that cannot be replayed.

use super::file::DbnFileError;
use fanfare_history::LogError;

/// The reason why a log, or a file of DBN, cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// No events are between `from` and `to`.
    #[error("{log} has no events from event {first} to before event {end}")]
    Nothing {
        /// The folder.
        log: String,
        /// The number of the first event.
        first: u64,
        /// The number after the last event.
        end: u64,
    },
    /// A file of DBN cannot be read.
    #[error("{0}: {1}")]
    Dbn(String, DbnFileError),
    /// Such books are not possible, which is not expected.
    #[error("the books of the DBN file exceed the limits of books")]
    Books,
    /// The gateway's own log is in the same folder.
    #[error("`replay.log` and `history.folder` must be different folders")]
    OwnLog,
}
