//! What a user may see and ask for.

use super::names::Instruments;
use crate::service::{Contract, EntryTypes};

/// What the sessions of a user may see and ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The user's name, for notices and the audit file; empty: nobody.
    pub(crate) user: Box<str>,
    /// Instruments by Symbol(55).
    pub(crate) instruments: Instruments,
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

/// What is not limited by a user's table.
pub(crate) const MOST_SUBSCRIPTIONS: usize = 1 << 20;
pub(crate) const MOST_REQUESTS_PER_SECOND: u32 = 1_000;

impl Grant {
    /// Everything, for sessions where nobody has to be a user.
    pub(crate) fn everything() -> Self {
        Self {
            user: Box::default(),
            instruments: Instruments::ALL,
            entries: EntryTypes::ALL,
            depth: 0,
            contracts: Contract::ALL.to_vec(),
            contract: Contract::Cut,
            subscriptions: MOST_SUBSCRIPTIONS,
            requests_per_second: MOST_REQUESTS_PER_SECOND,
        }
    }

    /// Nothing, for a session that is being logged out.
    pub(crate) fn nothing() -> Self {
        Self {
            instruments: Instruments::of(Vec::new()),
            entries: EntryTypes::NONE,
            subscriptions: 0,
            ..Self::everything()
        }
    }

    /// Whether an instrument of this Symbol(55) may be seen.
    #[inline]
    pub(crate) fn may_see(&self, symbol: &[u8]) -> bool {
        self.instruments.fit(symbol)
    }

    /// Whether nothing is hidden, and all of it may be subscribed to at a time.
    pub(crate) fn has_no_limits(&self) -> bool {
        self.sees_everything() && self.subscriptions >= MOST_SUBSCRIPTIONS
    }

    /// Whether nothing is hidden. What is fanned out to everybody as it came, in messages that
    /// nobody looks into, is for such sessions alone.
    pub(crate) fn sees_everything(&self) -> bool {
        self.instruments.are_all() && self.entries == EntryTypes::ALL && self.depth == 0
    }
}
