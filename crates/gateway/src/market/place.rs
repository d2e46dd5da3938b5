//! The place of a feed among the markets of a plant.

/// The numbers of a feed that is a market.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the feed, from 1.
    pub(crate) source: u16,
    /// The number of its first instrument.
    pub(crate) base: u32,
}
