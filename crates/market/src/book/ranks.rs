//! The slots of the levels of a side, by price and by rank.

use super::ids::{Ids, Vacant};
use super::window::{Row, Window};

/// The index of no slot and no order.
pub(super) const NIL: u32 = u32::MAX;

/// The price and the slot of a level. Levels stay in their slots while their ranks change.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RankRow {
    pub(super) key: i64,
    pub(super) slot: u32,
}

impl Row for RankRow {
    #[inline]
    fn key(&self) -> i64 {
        self.key
    }
}

/// The levels of a side by price, and by rank.
///
/// Most updates are of existing levels. A table finds them by price, without a binary search among
/// the ranks, whose branches are unpredictable. Ranks are searched only when a level is added or
/// removed.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    by_price: Ids,
    rows: Window<RankRow>,
}

impl Ranks {
    pub(super) fn new(most: usize) -> Self {
        Self {
            by_price: Ids::new(most),
            rows: Window::new(most),
        }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows, the best last.
    #[inline]
    pub(super) fn rows(&self) -> &[RankRow] {
        self.rows.rows()
    }

    /// Returns the slot of a price's level, or a vacancy for it. `is` returns whether a slot has
    /// the price.
    #[inline]
    pub(super) fn find(&self, key: i64, is: impl Fn(u32) -> bool) -> Result<u32, Vacant> {
        self.by_price.find(key.cast_unsigned(), is)
    }

    /// Ranks a level that [`Ranks::find`] has found to be absent. There must be fewer than the
    /// limit. `key_of` returns the key of each slot.
    pub(super) fn insert(
        &mut self,
        vacant: Vacant,
        key: i64,
        slot: u32,
        key_of: impl Fn(u32) -> i64,
    ) {
        let key_of = |slot| key_of(slot).cast_unsigned();
        self.by_price.insert(vacant, slot, key_of);
        self.rows
            .insert(self.rows.place(key), RankRow { key, slot });
    }

    /// Removes an existing level.
    pub(super) fn remove(&mut self, key: i64, slot: u32) {
        self.by_price.remove(key.cast_unsigned(), slot);
        self.rows.remove(self.rows.place(key));
    }

    pub(super) fn clear(&mut self) {
        self.by_price.clear();
        self.rows.clear();
    }

    /// Returns the number of bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.by_price.memory() + self.rows.memory()
    }
}
