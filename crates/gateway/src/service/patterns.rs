//! Names of instruments in requests and entitlements: a Symbol(55), a prefix followed by `*`, or
//! `*` for all.

/// A name or a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The Symbol(55) itself.
    Symbol(Box<[u8]>),
    /// All symbols that begin with the prefix, which is empty for all symbols.
    Prefix(Box<[u8]>),
}

impl Pattern {
    /// Parses a pattern. A `*` at its end makes it a prefix.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        match text.strip_suffix(b"*") {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Symbol(text.into()),
        }
    }

    /// Returns whether a Symbol(55) matches.
    #[must_use]
    pub fn fits(&self, symbol: &[u8]) -> bool {
        match self {
            Self::Symbol(own) => **own == *symbol,
            Self::Prefix(prefix) => symbol.starts_with(prefix),
        }
    }
}
