//! The levels of a side, by position and by price.

use std::collections::BTreeMap;

use fanfare_market::{Price, Side};

use super::entry::{Action, Entry};

/// A price level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// MDEntryPx(270).
    pub price: Price,
    /// MDEntrySize(271).
    pub size: i64,
    /// NumberOfOrders(346), 0 if it is absent.
    pub orders: u64,
}

/// One side of a book, as two clients keep it: one by position, the other by price.
#[derive(Debug, Clone, Default)]
pub(super) struct Levels {
    by_position: Vec<Row>,
    by_price: BTreeMap<i64, (i64, u64)>,
}

impl Levels {
    pub(super) fn rows(&self) -> &[Row] {
        &self.by_position
    }

    /// Takes an entry of W, whose position must be the next.
    pub(super) fn add(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (row, place) = (row(entry)?, entry.place()?);
        if place != self.by_position.len() {
            let next = self.by_position.len() + 1;
            return Err(format!("a snapshot has position {} for {next}", place + 1));
        }
        self.by_position.push(row);
        self.new_price(&row)
    }

    /// Takes an entry of X, after which at most `depth` levels remain.
    pub(super) fn change(
        &mut self,
        action: Action,
        entry: &Entry<'_>,
        depth: usize,
    ) -> Result<(), String> {
        let (place, price) = (entry.place()?, entry.price()?);
        if action == Action::New {
            if place > self.by_position.len() || self.by_position.len() >= depth {
                let (position, len) = (place + 1, self.by_position.len());
                return Err(format!("a new level {position} where there are {len}"));
            }
            let row = row(entry)?;
            self.by_position.insert(place, row);
            return self.new_price(&row);
        }
        let Some(known) = self.by_position.get_mut(place) else {
            return Err(format!("there is no level {}", place + 1));
        };
        if known.price != price {
            let (position, known) = (place + 1, known.price);
            return Err(format!("level {position} is at {known}, not at {price}"));
        }
        let key = price.units();
        if action == Action::Delete {
            self.by_position.remove(place);
            return match self.by_price.remove(&key) {
                Some(_) => Ok(()),
                None => Err(format!("there is no level at {price}")),
            };
        }
        let row = row(entry)?;
        *known = row;
        match self.by_price.get_mut(&key) {
            Some(level) => *level = (row.size, row.orders),
            None => return Err(format!("there is no level at {price}")),
        }
        Ok(())
    }

    fn new_price(&mut self, row: &Row) -> Result<(), String> {
        let level = (row.size, row.orders);
        match self.by_price.insert(row.price.units(), level) {
            None => Ok(()),
            Some(_) => Err(format!("a level at {} is there twice", row.price)),
        }
    }

    /// Checks that both clients have the same levels, the best first.
    pub(super) fn agree(&self, side: Side) -> Result<(), String> {
        let prices = self.by_price.iter().map(|(price, (size, orders))| Row {
            price: Price::from_units(*price),
            size: *size,
            orders: *orders,
        });
        let same = match side {
            Side::Bid => prices.rev().eq(self.by_position.iter().copied()),
            Side::Offer => prices.eq(self.by_position.iter().copied()),
        };
        match same {
            true => Ok(()),
            false => Err(format!("the positions of {side:?} levels are not in order")),
        }
    }
}

fn row(entry: &Entry<'_>) -> Result<Row, String> {
    Ok(Row {
        price: entry.price()?,
        size: entry.size()?,
        orders: entry.orders,
    })
}
