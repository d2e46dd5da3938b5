//! Why something cannot be replayed.

use super::file::DbnFileError;
use fanfare_history::LogError;

/// Why a log, or a file of DBN, cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// There is nothing from `from` to `to`.
    #[error("{log} has no events from event {first} on, and before event {end}")]
    Nothing {
        /// The folder.
        log: String,
        /// The number of the first event.
        first: u64,
        /// The number behind the last one.
        end: u64,
    },
    /// A file of DBN cannot be read.
    #[error("{0}: {1}")]
    Dbn(String, DbnFileError),
    /// There are no such books; not expected.
    #[error("books of DBN are beyond the limits of books")]
    Books,
    /// The log of this gateway is in the same folder.
    #[error("`replay.log` and `history.folder` are the same folder")]
    OwnLog,
}
