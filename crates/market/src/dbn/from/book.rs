//! The changes of books, from records with levels and orders.

use super::bytes::Bytes;
use super::{Tick, size};
use crate::book::BookKind;
use crate::event::{Action, Event, Kind, entry};
use crate::price::Price;
use std::collections::HashMap;

/// The most levels of a record.
const LEVELS: usize = 10;

/// The most orders of an instrument that are followed. A deletion of further ones always deletes
/// the whole order.
const MOST_ORDERS: usize = 10_000_000;

/// The state of an instrument.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether its book is complete, by the last event.
    pub(super) is_whole: Option<bool>,
    /// Whether it has ended, and nothing has opened it since.
    pub(super) is_closed: bool,
    /// Whether its book is from a stream before, and no record of it has come since.
    pub(super) is_of_before: bool,
    /// Whether its book is known from the beginning, which is a Clear.
    pub(super) has_begun: bool,
    /// The kind of its book, by the last record of one.
    pub(super) kind: Option<BookKind>,
    /// The levels of the last record: bids and offers.
    levels: [Vec<Level>; 2],
    orders: HashMap<u64, Order>,
}

impl Seen {
    /// Empties the book.
    pub(super) fn clear(&mut self) {
        self.orders.clear();
        self.levels = Default::default();
    }

    /// Forgets the book, which begins anew with a later record.
    pub(super) fn forget(&mut self) {
        self.clear();
        self.has_begun = false;
        self.is_of_before = false;
        self.is_whole = None;
    }
}

/// The remaining size of an order, and the filled size that was not subtracted yet.
#[derive(Debug)]
struct Order {
    left: u32,
    filled: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    price: Price,
    size: u32,
    orders: u32,
}

/// The conversion of a record.
pub(super) struct OfBook<'a> {
    /// The fields that all of its events share.
    pub(super) base: Event,
    pub(super) tick: &'a Tick,
    pub(super) out: &'a mut Vec<Event>,
}

const fn entry_of(side: u8) -> u8 {
    match side {
        b'B' => entry::BID,
        b'A' => entry::OFFER,
        _ => 0,
    }
}

impl OfBook<'_> {
    /// Converts a record by order.
    pub(super) fn order(&mut self, seen: &mut Seen) {
        let (id, amount) = (self.tick.order, self.tick.size);
        let action = match self.tick.action {
            b'A' | b'M' => {
                let order = Order {
                    left: amount,
                    filled: 0,
                };
                if seen.orders.len() < MOST_ORDERS || seen.orders.contains_key(&id) {
                    seen.orders.insert(id, order);
                }
                match self.tick.action {
                    b'A' => Action::New,
                    _ => Action::Change,
                }
            }
            b'F' => {
                if let Some(order) = seen.orders.get_mut(&id) {
                    order.filled = amount;
                }
                return;
            }
            b'C' => return self.cancel(seen),
            _ => return,
        };
        self.put_order(action, size(amount));
    }

    /// Converts a cancellation of all or a part of an order. After a fill of the same size it is a
    /// trade.
    fn cancel(&mut self, seen: &mut Seen) {
        let (id, amount) = (self.tick.order, self.tick.size);
        let Some(order) = seen.orders.get_mut(&id) else {
            return self.put_order(Action::Delete, size(amount));
        };
        let is_fill = std::mem::take(&mut order.filled) == amount && amount > 0;
        order.left = order.left.saturating_sub(amount);
        let left = order.left;
        if left == 0 {
            seen.orders.remove(&id);
        }
        match (is_fill, left) {
            (true, _) => self.put_order(Action::Fill, size(amount)),
            (false, 0) => self.put_order(Action::Delete, size(amount)),
            (false, left) => self.put_order(Action::Change, left.into()),
        }
    }

    fn put_order(&mut self, action: Action, size: i64) {
        self.out.push(Event {
            kind: Kind::Order,
            action,
            entry: entry_of(self.tick.side),
            price: self.tick.price,
            id: self.tick.order,
            size,
            ..self.base
        });
    }

    /// Converts a record with the levels after a change.
    pub(super) fn levels(&mut self, seen: &mut Seen, record: Bytes<'_>) {
        let count = (record.0.len().saturating_sub(48) / 32).min(LEVELS);
        let count = if record.u8(1) == 0x0a { count } else { 1 };
        let mut now: [Vec<Level>; 2] = Default::default();
        for at in (0..count).map(|level| 48 + 32 * level) {
            for (side, levels) in now.iter_mut().enumerate() {
                let level = Level {
                    price: record.price(at + 8 * side),
                    size: record.u32(at + 16 + 4 * side),
                    orders: record.u32(at + 24 + 4 * side),
                };
                if level.price.is_defined() {
                    levels.push(level);
                }
            }
        }
        for (side, entry) in [entry::BID, entry::OFFER].into_iter().enumerate() {
            if let (Some(before), Some(now)) = (seen.levels.get_mut(side), now.get(side)) {
                self.changes(entry, before, now);
                before.clone_from(now);
            }
        }
    }

    /// Appends the changes from one state of a side to another: first the deletions, then the new
    /// and changed levels.
    fn changes(&mut self, entry: u8, before: &[Level], now: &[Level]) {
        let find = |levels: &[Level], price| {
            let mut levels = levels.iter();
            levels.find(|level: &&Level| level.price == price).copied()
        };
        for gone in before {
            if find(now, gone.price).is_none() {
                let is_it = self.tick.price == gone.price && entry_of(self.tick.side) == entry;
                let size = if is_it {
                    size(self.tick.size)
                } else {
                    Event::NO_SIZE
                };
                self.put_level(entry, Action::Delete, gone.price, (size, 0));
            }
        }
        for level in now {
            let action = match find(before, level.price) {
                None => Action::New,
                Some(same) if same == *level => continue,
                Some(_) => Action::Change,
            };
            let amounts = (size(level.size), level.orders.into());
            self.put_level(entry, action, level.price, amounts);
        }
    }

    fn put_level(&mut self, entry: u8, action: Action, price: Price, (size, id): (i64, u64)) {
        self.out.push(Event {
            kind: Kind::Level,
            entry,
            action,
            price,
            size,
            id,
            ..self.base
        });
    }
}
