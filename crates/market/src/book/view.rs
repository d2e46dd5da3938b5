//! The read access of a book: best levels, depth, queues, a checksum.

use super::levels::LevelRow;
use super::orders::Orders;
use super::prices::Prices;
use super::ranks::RankRow;
use super::{Body, Book, Side};
use crate::price::Price;

/// A level of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The price.
    pub price: Price,
    /// The size: in a book of orders, the sum of the sizes of its orders.
    pub size: i64,
    /// The number of orders. In a book of levels it is the feed's, or 0 if unknown.
    pub orders: u64,
}

/// An order in its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its number in the feed.
    pub id: u64,
    /// The remaining size.
    pub size: i64,
}

/// An iterator over the levels of a side, the best first. Allocates nothing.
#[derive(Clone, Debug)]
pub struct DepthIter<'a> {
    side: Side,
    rows: Rows<'a>,
}

#[derive(Clone, Debug)]
enum Rows<'a> {
    Levels(core::slice::Iter<'a, LevelRow>),
    Prices(&'a Prices, core::slice::Iter<'a, RankRow>),
    Orders(&'a Orders, core::slice::Iter<'a, RankRow>),
}

impl Iterator for DepthIter<'_> {
    type Item = Level;

    #[inline]
    fn next(&mut self) -> Option<Level> {
        let (key, size, orders) = match &mut self.rows {
            Rows::Levels(rows) => {
                let row = rows.next_back()?;
                (row.key, row.size, row.orders)
            }
            Rows::Prices(prices, rows) => {
                let row = prices.level(rows.next_back()?);
                (row.key, row.size, row.orders)
            }
            Rows::Orders(orders, rows) => {
                let row = rows.next_back()?;
                let (size, count) = orders.sums(row);
                (row.key, size, u64::from(count))
            }
        };
        Some(Level {
            price: self.side.price(key),
            size,
            orders,
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.rows {
            Rows::Levels(rows) => rows.size_hint(),
            Rows::Prices(_, rows) | Rows::Orders(_, rows) => rows.size_hint(),
        }
    }
}

impl ExactSizeIterator for DepthIter<'_> {}

/// An iterator over the orders of a level, the one that trades first in front. Allocates nothing.
#[derive(Clone, Debug)]
pub struct QueueIter<'a>(Option<(&'a Orders, u32)>);

impl Iterator for QueueIter<'_> {
    type Item = Order;

    #[inline]
    fn next(&mut self) -> Option<Order> {
        let (orders, place) = self.0?;
        let (id, size, next) = orders.order(place)?;
        self.0 = Some((orders, next));
        Some(Order { id, size })
    }
}

impl Book {
    /// Returns the best level of a side.
    #[inline]
    pub fn best(&self, side: Side) -> Option<Level> {
        self.depth(side).next()
    }

    /// Returns the levels of a side, the best first. Its length is known: `depth(side).len()`.
    #[inline]
    pub fn depth(&self, side: Side) -> DepthIter<'_> {
        let rows = match &self.body {
            Body::Levels(levels) => Rows::Levels(levels.side(side).rows().iter()),
            Body::Prices(prices) => Rows::Prices(prices, prices.ranks(side).iter()),
            Body::Orders(orders) => Rows::Orders(orders, orders.ranks(side).iter()),
        };
        DepthIter { side, rows }
    }

    /// Returns the orders at a price, the first of the queue first. Empty for a book of levels.
    pub fn queue(&self, side: Side, price: Price) -> QueueIter<'_> {
        QueueIter(match &self.body {
            Body::Levels(_) | Body::Prices(_) => None,
            Body::Orders(orders) => Some((orders, orders.first(side, side.key(price)))),
        })
    }

    /// Returns side, price and remaining size of an order, or `None` for a book of levels.
    pub fn order(&self, id: u64) -> Option<(Side, Price, i64)> {
        match &self.body {
            Body::Levels(_) | Body::Prices(_) => None,
            Body::Orders(orders) => orders
                .find(id)
                .map(|(side, key, size)| (side, side.price(key), size)),
        }
    }

    /// Returns the number of orders in the book, or 0 for a book of levels, which knows only their
    /// counts.
    pub fn orders(&self) -> usize {
        match &self.body {
            Body::Levels(_) | Body::Prices(_) => 0,
            Body::Orders(orders) => orders.len(),
        }
    }

    /// Returns true if the book is empty.
    pub fn is_empty(&self) -> bool {
        Side::BOTH.iter().all(|&side| self.depth(side).len() == 0)
    }

    /// Returns true if the best bid is above the best offer. This may occur within a message. After
    /// its last event it is a fault, unless the configuration allows it.
    #[inline]
    pub fn is_crossed(&self) -> bool {
        let best = |side| match &self.body {
            Body::Levels(levels) => levels.side(side).rows().last().map(|row| row.key),
            Body::Prices(prices) => prices.ranks(side).last().map(|row| row.key),
            Body::Orders(orders) => orders.ranks(side).last().map(|row| row.key),
        };
        match (best(Side::Bid), best(Side::Offer)) {
            (Some(bid), Some(offer)) => bid > Side::Offer.price(offer).units(),
            _ => false,
        }
    }

    /// Returns a checksum of the contents of the book. Equal books have equal checksums, on each
    /// machine and in each version. Reads the whole book.
    ///
    /// It is the 64-bit FNV-1a of the following, for bids, then for offers: the number of levels;
    /// of each level, the best first, price in units, size and number of orders; of each order of
    /// its queue, the first first, number and size. All of them are 8 bytes, little-endian.
    pub fn checksum(&self) -> u64 {
        self.checksum_of(|_| true)
    }

    /// Returns the checksum of the book without the sides that `has` excludes.
    pub fn checksum_of(&self, has: impl Fn(Side) -> bool) -> u64 {
        let mut sum = Sum::new();
        for side in Side::BOTH {
            if !has(side) {
                sum.add(0);
                continue;
            }
            sum.add(self.depth(side).len() as u64);
            for level in self.depth(side) {
                sum.level(&level);
                for order in self.queue(side, level.price) {
                    sum.add(order.id);
                    sum.add(order.size.cast_unsigned());
                }
            }
        }
        sum.0
    }
}

/// Returns the [checksum](Book::checksum) of a book of levels with these levels, the best first.
pub fn checksum_of_levels(bids: &[Level], offers: &[Level]) -> u64 {
    let mut sum = Sum::new();
    for side in [bids, offers] {
        sum.add(side.len() as u64);
        side.iter().for_each(|level| sum.level(level));
    }
    sum.0
}

/// A 64-bit FNV-1a sum.
struct Sum(u64);

impl Sum {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn level(&mut self, level: &Level) {
        self.add(level.price.units().cast_unsigned());
        self.add(level.size.cast_unsigned());
        self.add(level.orders);
    }

    fn add(&mut self, word: u64) {
        for byte in word.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
