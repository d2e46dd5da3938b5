//! Names of instruments as requests and users' rights have them: a Symbol(55), a prefix with `*`
//! behind it, or `*` for all.

/// One name or prefix.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// The Symbol(55) itself.
    Symbol(Box<[u8]>),
    /// All symbols that begin so; an empty one begins them all.
    Prefix(Box<[u8]>),
}

impl Pattern {
    /// The pattern of a text: a `*` at its end makes it a prefix.
    #[must_use]
    pub fn parse(text: &[u8]) -> Self {
        match text.strip_suffix(b"*") {
            Some(prefix) => Self::Prefix(prefix.into()),
            None => Self::Symbol(text.into()),
        }
    }

    /// Whether a Symbol(55) fits.
    #[must_use]
    pub fn fits(&self, symbol: &[u8]) -> bool {
        match self {
            Self::Symbol(own) => **own == *symbol,
            Self::Prefix(prefix) => symbol.starts_with(prefix),
        }
    }
}
