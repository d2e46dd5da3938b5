//! The error of a feed that cannot become a market.

use fanfare_engine::feed::OpenError;
use fanfare_market::TextError;
use fanfare_market::book::ConfigError;
use std::io;

/// The reason why a feed cannot become a market.
#[derive(Debug, thiserror::Error)]
pub enum MarketError {
    /// A mapping, a table of instruments or a password could not be read.
    #[error("cannot read {what} `{file}`")]
    Read {
        /// The kind of file.
        what: &'static str,
        /// The file.
        file: String,
        /// The error.
        #[source]
        source: io::Error,
    },
    /// No mapping of this name is built in.
    #[error("unknown mapping `{0}`: expected builtin:fix, builtin:spectra or builtin:complex")]
    NoBuiltin(String),
    /// A mapping or a table of instruments is invalid, or a mapping does not fit the templates.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A mapping for a FIX session maps no FIX message.
    #[error("mapping `{0}` has no FIX message: a FIX session needs `msg-type`")]
    NoMessages(String),
    /// A book exceeds its limits.
    #[error("`feed.book`: {0}")]
    Book(#[from] ConfigError),
    /// A line with snapshots could not be received.
    #[error(transparent)]
    Lines(#[from] OpenError),
    /// The replay cannot be started.
    #[error("replay")]
    Replay(#[source] io::Error),
}
