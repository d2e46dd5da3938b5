//! What a user may see and ask for.

use crate::service::{Contract, EntryTypes, Pattern};

/// What the sessions of a user may see and ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The user's name, for notices and the audit file.
    pub(crate) user: String,
    /// Instruments by Symbol(55); `None`: all.
    pub(crate) instruments: Option<Vec<Pattern>>,
    /// Entries of market data.
    pub(crate) entries: EntryTypes,
    /// Levels of a side at most; 0: all there are.
    pub(crate) depth: u16,
    /// Contracts that requests may name.
    pub(crate) contracts: Vec<Contract>,
    /// The contract of requests that name none; one of `contracts`.
    pub(crate) contract: Contract,
    /// Instruments that a session may subscribe to at a time, counted once for each request.
    pub(crate) subscriptions: usize,
    /// Requests of a session in a second.
    pub(crate) requests_per_second: u32,
}

impl Grant {
    /// Everything, for sessions where nobody has to be a user.
    pub(crate) fn everything() -> Self {
        Self {
            user: String::new(),
            instruments: None,
            entries: EntryTypes::ALL,
            depth: 0,
            contracts: Contract::ALL.to_vec(),
            contract: Contract::Cut,
            subscriptions: 1 << 20,
            requests_per_second: 1_000,
        }
    }

    /// Whether an instrument of this Symbol(55) may be seen.
    pub(crate) fn may_see(&self, symbol: &[u8]) -> bool {
        let fits = |all: &Vec<Pattern>| all.iter().any(|pattern| pattern.fits(symbol));
        self.instruments.as_ref().is_none_or(fits)
    }
}
