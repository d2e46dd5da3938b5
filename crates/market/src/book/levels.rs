//! Levels by number: two windows of rows, the best last.

use super::window::{Row, Window};
use super::{Fault, Side};
use crate::event::{Action, Event};

/// A stored level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LevelRow {
    pub(super) key: i64,
    pub(super) size: i64,
    pub(super) orders: u64,
}

impl Row for LevelRow {
    #[inline]
    fn key(&self) -> i64 {
        self.key
    }
}

impl LevelRow {
    /// Returns the level of the event.
    #[inline]
    pub(super) fn of(side: Side, event: &Event) -> Result<Self, Fault> {
        if !event.price.is_defined() {
            return Err(Fault::Price);
        }
        if event.size < 0 || event.size == Event::NO_SIZE {
            return Err(Fault::Size);
        }
        Ok(Self {
            key: side.key(event.price),
            size: event.size,
            orders: event.id,
        })
    }
}

/// The levels of both sides.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    sides: [Window<LevelRow>; 2],
    most: usize,
    /// Whether a level was applied that was out of order with its neighbours.
    suspect: bool,
}

impl Levels {
    pub(super) fn new(most: usize) -> Self {
        Self {
            sides: [Window::new(most), Window::new(most)],
            most,
            suspect: false,
        }
    }

    #[inline]
    pub(super) fn side(&self, side: Side) -> &Window<LevelRow> {
        &self.sides[side as usize]
    }

    pub(super) fn clear(&mut self) {
        self.sides.iter_mut().for_each(Window::clear);
        self.suspect = false;
    }

    pub(super) fn memory(&self) -> usize {
        self.sides.iter().map(Window::memory).sum()
    }

    #[inline]
    pub(super) fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let side = Side::of_entry(event.entry).ok_or(Fault::Side)?;
        let level = usize::from(event.level);
        if level == 0 || level > self.most {
            return Err(Fault::Level);
        }
        let rows = &mut self.sides[side as usize];
        let len = rows.len();
        match event.action {
            Action::New => {
                let row = LevelRow::of(side, event)?;
                if level > len + 1 {
                    return Err(Fault::Hole);
                }
                if len == self.most {
                    rows.remove_worst(1);
                }
                let at = rows.len() + 1 - level;
                rows.insert(at, row);
                self.suspect |= !in_order(rows.rows(), at);
                return Ok(());
            }
            Action::Fill => return Err(Fault::Action),
            _ if level > len => return Err(Fault::NotThere),
            Action::Change | Action::Overlay => {
                let row = LevelRow::of(side, event)?;
                if let Some(place) = rows.rows_mut().get_mut(len - level) {
                    *place = row;
                }
                self.suspect |= !in_order(rows.rows(), len - level);
            }
            Action::Delete => rows.remove(len - level),
            Action::DeleteThru => rows.remove_best(level),
            Action::DeleteFrom => rows.remove_worst(len + 1 - level),
        }
        Ok(())
    }

    /// Returns true if no level has a better price than the one before it.
    ///
    /// Within a message, numbered levels may be out of order. Only if a level was out of order are
    /// all of them checked.
    #[inline]
    pub(super) fn are_in_order(&mut self) -> bool {
        if self.suspect {
            let sorted = |rows: &Window<LevelRow>| rows.rows().is_sorted_by_key(|row| row.key);
            self.suspect = !self.sides.iter().all(sorted);
        }
        !self.suspect
    }
}

/// Returns true if the row at `at` is in order with its neighbours.
#[inline]
fn in_order(rows: &[LevelRow], at: usize) -> bool {
    let Some(row) = rows.get(at) else { return true };
    let worse = at.checked_sub(1).and_then(|at| rows.get(at));
    worse.is_none_or(|worse| worse.key <= row.key)
        && rows.get(at + 1).is_none_or(|better| row.key <= better.key)
}
