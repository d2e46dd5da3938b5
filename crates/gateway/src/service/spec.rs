//! The contents that a request asks for.

use super::entry_types::EntryTypes;
use fanfare_market::event::entry;

/// The contents that a subscription requests of each instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Spec {
    /// MarketDepth(264): the levels of a side, or 0 for all.
    pub(crate) depth: u16,
    /// MDEntryTypes(269).
    pub(crate) entries: EntryTypes,
    /// AggregatedBook(266)=N: orders instead of levels.
    pub(crate) by_order: bool,
    /// MDUpdateType(265)=0: snapshots only.
    pub(crate) snapshots: bool,
    /// The milliseconds between two updates. With 0, each change is sent.
    pub(crate) interval: u32,
    /// The number of updates from one checksum of the book to the next. With 0, no update has one.
    pub(crate) checksum_every: u32,
}

/// The values of MDEntryType(269) for levels.
const SIDES: EntryTypes = EntryTypes::NONE.with(entry::BID).with(entry::OFFER);

impl Spec {
    /// Returns whether a class holds events between two updates: trades, statistics, orders.
    pub(crate) fn may_hold(self) -> bool {
        self.by_order || self.entries.and(SIDES) != self.entries
    }
}
