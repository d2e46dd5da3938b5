//! The error of a view.

use fanfare_history::LogError;

/// The reason why a book cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoBook {
    /// The request is invalid.
    #[error("{0}")]
    Asked(String),
    /// The instrument does not exist.
    #[error("no instrument has the Symbol(55) or SecurityID(48) `{0}`")]
    Unknown(String),
    /// The reader of market events has not read what the answer needs.
    #[error(
        "instruments and books are not known yet: their reader is behind the market events: try \
         again"
    )]
    NotYet,
    /// A required part is not configured.
    #[error("{0}")]
    Missing(&'static str),
    /// The log does not have it.
    #[error("{0}")]
    Log(#[from] LogError),
}

/// The error without a market.
pub(super) const NO_MARKET: NoBook = NoBook::Missing("the gateway has no feed with a market");
