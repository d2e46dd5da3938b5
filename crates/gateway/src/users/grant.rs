//! The entitlements of a user.

use super::names::Instruments;
use crate::service::{Contract, EntryTypes};
use fanfare_market::instruments::Instrument;

/// The entitlements of a user's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// The user's name, for notices and the audit file, or an empty text without a user.
    pub(crate) user: Box<str>,
    /// The instruments by Symbol(55).
    pub(crate) instruments: Instruments,
    /// The entries of market data.
    pub(crate) entries: EntryTypes,
    /// The most levels of a side, or 0 for all.
    pub(crate) depth: u16,
    /// The contracts that requests may name.
    pub(crate) contracts: Vec<Contract>,
    /// The contract of requests that name none: one of `contracts`.
    pub(crate) contract: Contract,
    /// The most instruments that a session may be subscribed to, counted once for each request. A
    /// request without any counts as one.
    pub(crate) subscriptions: usize,
    /// The most requests of a session in a second.
    pub(crate) requests_per_second: u32,
}

/// The limit of subscriptions that a user's table does not set.
pub(crate) const MOST_SUBSCRIPTIONS: usize = 1 << 20;
pub(crate) const MOST_REQUESTS_PER_SECOND: u32 = 1_000;

impl Grant {
    /// Returns full entitlements, for sessions that need no user.
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

    /// Returns empty entitlements, for a session that is being logged out.
    pub(crate) fn nothing() -> Self {
        Self {
            instruments: Instruments::of(Vec::new()),
            entries: EntryTypes::NONE,
            subscriptions: 0,
            ..Self::everything()
        }
    }

    /// Returns the entitlements of a user that may see what matches a pattern of Symbol(55).
    #[cfg(test)]
    pub(crate) fn seeing(pattern: &[u8]) -> Self {
        let pattern = crate::service::Pattern::parse(pattern);
        let names: super::names::Names = [pattern].into_iter().collect();
        Self {
            instruments: Instruments::of(vec![std::sync::Arc::new(names)]),
            ..Self::everything()
        }
    }

    /// Returns whether an instrument of this Symbol(55) may be seen.
    #[inline]
    pub(crate) fn may_see(&self, symbol: &[u8]) -> bool {
        self.instruments.fit(symbol)
    }

    /// Returns whether an instrument is known and may be seen.
    pub(crate) fn sees(&self, known: Option<Instrument<'_>>) -> bool {
        known.is_some_and(|known| self.may_see(known.definition.name.symbol))
    }

    /// Returns whether everything may be seen and subscribed to at a time.
    pub(crate) fn has_no_limits(&self) -> bool {
        self.sees_everything() && self.subscriptions >= MOST_SUBSCRIPTIONS
    }

    /// Returns whether everything may be seen. Messages that are fanned out unchanged are not
    /// searched for instruments, and are only for such sessions.
    pub(crate) fn sees_everything(&self) -> bool {
        self.instruments.are_all() && self.entries == EntryTypes::ALL && self.depth == 0
    }
}
