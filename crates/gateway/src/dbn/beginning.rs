//! Subscriptions that are starting.

use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{LiveSchema, SymbolType};
use std::collections::HashSet;

/// A subscription that is starting.
pub(super) struct Join {
    pub(super) schema: LiveSchema,
    pub(super) by: SymbolType,
    pub(super) targets: Targets,
    pub(super) snapshot: bool,
    /// Whether the client was told that it may have no more instruments.
    pub(super) is_full: bool,
}

/// The instruments of a subscription that have not started.
pub(super) enum Targets {
    Some(std::vec::IntoIter<InstrumentId>),
    /// All instruments after this one, in the order of symbols and, of one symbol, of numbers.
    All(Option<(Box<[u8]>, InstrumentId)>),
}

impl Join {
    /// Returns whether the start of a subscription to all instruments has not come to this one, and
    /// begins each with its book or state.
    pub(super) fn shows(&self, symbol: &[u8], instrument: InstrumentId) -> bool {
        let Targets::All(last) = &self.targets else {
            return false;
        };
        let last = last.as_ref().map(|(symbol, number)| (&**symbol, number.0));
        let is_ahead = last.is_none_or(|last| last < (symbol, instrument.0));
        is_ahead && self.begins_with_state()
    }

    /// Returns whether each instrument begins with its book or state.
    pub(super) fn begins_with_state(&self) -> bool {
        self.snapshot || self.schema == LiveSchema::Status
    }
}

impl Targets {
    /// Removes listed instruments. Returns false if none is left.
    pub(super) fn leave_out(&mut self, gone: &HashSet<InstrumentId>) -> bool {
        let Self::Some(instruments) = self else {
            return true;
        };
        let left: Vec<InstrumentId> = instruments.filter(|own| !gone.contains(own)).collect();
        *instruments = left.into_iter();
        instruments.len() > 0
    }

    /// Returns the number of listed instruments.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Some(instruments) => instruments.len(),
            Self::All(_) => 0,
        }
    }
}
