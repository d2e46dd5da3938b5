//! Levels by price: in slots that are found by a table, and ranked when they are added and removed.

use super::levels::LevelRow;
use super::ranks::{NIL, RankRow, Ranks};
use super::{Fault, Side};
use crate::event::{Action, Event};

/// The levels of both sides.
#[derive(Clone, Debug)]
pub(super) struct Prices {
    /// The levels. In a free slot, `orders` is the next free one.
    slots: Vec<LevelRow>,
    free: u32,
    ranks: [Ranks; 2],
    most: usize,
}

impl Prices {
    pub(super) fn new(most: usize) -> Self {
        Self {
            slots: Vec::with_capacity(2 * most),
            free: NIL,
            ranks: [Ranks::new(most), Ranks::new(most)],
            most,
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.free = NIL;
        self.ranks.iter_mut().for_each(Ranks::clear);
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<LevelRow>()
            + self.ranks.iter().map(Ranks::memory).sum::<usize>()
    }

    #[inline]
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let side = Side::of_entry(event.entry).ok_or(Fault::Side)?;
        let key = side.key(event.price);
        let ranks = &self.ranks[side as usize];
        let slots = &self.slots;
        let is = |slot| {
            slots
                .get(slot as usize)
                .is_some_and(|row: &LevelRow| row.key == key)
        };
        match event.action {
            Action::New | Action::Change => {
                let row = LevelRow::of(side, event)?;
                match ranks.find(key, is) {
                    Ok(slot) => self.slots[slot as usize] = row,
                    Err(_) if ranks.len() == self.most => return Err(Fault::Full),
                    Err(vacant) => {
                        let slot = self.new_slot(row);
                        let key_of = |slot| self.slots[slot as usize].key;
                        self.ranks[side as usize].insert(vacant, key, slot, key_of);
                    }
                }
            }
            Action::Delete => {
                if !event.price.is_defined() {
                    return Err(Fault::Price);
                }
                let slot = ranks.find(key, is).map_err(|_| Fault::NotThere)?;
                self.ranks[side as usize].remove(key, slot);
                self.slots[slot as usize].orders = u64::from(self.free);
                self.free = slot;
            }
            _ => return Err(Fault::Action),
        }
        Ok(())
    }

    fn new_slot(&mut self, row: LevelRow) -> u32 {
        let slot = self.free;
        if let Some(free) = self.slots.get_mut(slot as usize) {
            self.free = free.orders as u32;
            *free = row;
            return slot;
        }
        self.slots.push(row);
        self.slots.len() as u32 - 1
    }

    /// Returns the levels, the worst first.
    #[inline]
    pub(super) fn ranks(&self, side: Side) -> &[RankRow] {
        self.ranks[side as usize].rows()
    }

    #[inline]
    pub(super) fn level(&self, rank: &RankRow) -> LevelRow {
        self.slots
            .get(rank.slot as usize)
            .copied()
            .unwrap_or_default()
    }
}
