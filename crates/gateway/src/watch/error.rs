//! Why something cannot be shown.

use fanfare_history::LogError;

/// Why there is no such book.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoBook {
    /// The request is wrong.
    #[error("{0}")]
    Asked(String),
    /// There is no such instrument.
    #[error("no instrument has the Symbol(55) or SecurityID(48) `{0}`")]
    Unknown(String),
    /// What is needed for it is not configured.
    #[error("{0}")]
    Missing(&'static str),
    /// The log does not have it.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// There is nothing to look at.
pub(super) const NO_MARKET: NoBook = NoBook::Missing("no feed is a market here");
