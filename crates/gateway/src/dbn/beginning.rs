//! Subscriptions that are starting.

use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{LiveSchema, SymbolType};

/// A subscription that is starting.
pub(super) struct Join {
    pub(super) schema: LiveSchema,
    pub(super) by: SymbolType,
    pub(super) targets: Targets,
    pub(super) snapshot: bool,
}

/// The instruments of a subscription that have not started.
pub(super) enum Targets {
    Some(std::vec::IntoIter<InstrumentId>),
    /// All instruments after this symbol.
    All(Option<Box<[u8]>>),
}

impl Targets {
    /// Returns the number of listed instruments.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Some(instruments) => instruments.len(),
            Self::All(_) => 0,
        }
    }
}
