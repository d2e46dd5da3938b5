//! The price levels of a security, of which the feed has the best five of each side.

use fastrand::Rng;

/// The number of levels of each side in the feed: MarketDepth(264).
pub(super) const DEPTH: usize = 5;

/// The least and the greatest number of levels of a deep side.
const FEWEST: usize = 8;
const MOST: usize = 14;

/// The number of ticks between the best levels of both sides above which a book is wide.
const WIDE: i64 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Bid = 0,
    Offer = 1,
}

impl Side {
    pub(super) const fn other(self) -> Self {
        match self {
            Self::Bid => Self::Offer,
            Self::Offer => Self::Bid,
        }
    }

    /// Returns the direction of prices from the best level on.
    const fn outward(self) -> i64 {
        match self {
            Self::Bid => -1,
            Self::Offer => 1,
        }
    }
}

/// A price, and the size that is bid or offered for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) price: i64,
    pub(super) size: i64,
    pub(super) time: u64,
}

#[derive(Debug)]
pub(super) struct Book {
    /// The price at the start.
    anchor: i64,
    tick: i64,
    /// The most levels of each side of a thin book, which has none after those in sight.
    thin: Option<[usize; 2]>,
    /// The levels of each side, from the best one on.
    sides: [Vec<Level>; 2],
}

impl Book {
    pub(super) fn new(
        anchor: i64,
        tick: i64,
        thin: Option<[usize; 2]>,
        now: u64,
        random: &mut Rng,
    ) -> Self {
        let mut book = Self {
            anchor,
            tick,
            thin,
            sides: [Vec::new(), Vec::new()],
        };
        for side in [Side::Bid, Side::Offer] {
            book.grow(side, book.full(side), now, random);
        }
        book
    }

    const fn full(&self, side: Side) -> usize {
        match self.thin {
            Some(most) => most[side as usize],
            None => FEWEST,
        }
    }

    fn side(&self, side: Side) -> &Vec<Level> {
        let [bids, offers] = &self.sides;
        match side {
            Side::Bid => bids,
            Side::Offer => offers,
        }
    }

    fn side_mut(&mut self, side: Side) -> &mut Vec<Level> {
        let [bids, offers] = &mut self.sides;
        match side {
            Side::Bid => bids,
            Side::Offer => offers,
        }
    }

    pub(super) fn visible(&self, side: Side) -> &[Level] {
        let levels = self.side(side);
        levels.get(..DEPTH).unwrap_or(levels)
    }

    pub(super) const fn is_thin(&self) -> bool {
        self.thin.is_some()
    }

    /// Returns this side, or the other one if this side is always empty.
    pub(super) const fn used(&self, side: Side) -> Side {
        match self.full(side) {
            0 => side.other(),
            _ => side,
        }
    }

    /// Returns true if a thin side has fewer levels than it should.
    pub(super) fn lacks(&self, side: Side) -> bool {
        self.is_thin() && self.side(side).len() < self.full(side)
    }

    /// Returns true if there are many ticks between bids and offers.
    pub(super) fn is_wide(&self) -> bool {
        match &self.sides {
            [bids, offers] if !self.is_thin() => match (bids.first(), offers.first()) {
                (Some(bid), Some(offer)) => offer.price - bid.price > WIDE * self.tick,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns true if this side has gone so far towards the other one that it should not go on.
    pub(super) fn is_far(&self, side: Side) -> bool {
        self.is_thin() || self.drift(side) > self.anchor / 8
    }

    /// Returns true if this side has withdrawn so far that it should not go on.
    pub(super) fn is_low(&self, side: Side) -> bool {
        self.drift(side) < -self.anchor / 8
    }

    /// Returns how far the best price is from the start, positive towards the other side.
    fn drift(&self, side: Side) -> i64 {
        let best = self.side(side).first();
        best.map_or(0, |best| (self.anchor - best.price) * side.outward())
    }

    /// Adds a level, at `index` or before it, and returns its index and price. Returns `None` if
    /// there is no room.
    pub(super) fn add(
        &mut self,
        side: Side,
        index: usize,
        size: i64,
        time: u64,
        random: &mut Rng,
    ) -> Option<(usize, i64)> {
        let (tick, outward) = (self.tick, side.outward());
        let levels = self.side(side);
        let index = index.min(levels.len());
        let inner = match index.checked_sub(1) {
            Some(before) => levels.get(before),
            None => self.side(side.other()).first(),
        };
        let price = match (inner, levels.get(index)) {
            (Some(inner), Some(outer)) => {
                let room = (inner.price - outer.price).abs() / tick - 1;
                // Better than the best, by a few ticks.
                let room = if index == 0 { room.min(3) } else { room };
                if room < 1 {
                    return None;
                }
                outer.price - outward * tick * random.i64(1..=room)
            }
            (Some(inner), None) => inner.price + outward * tick * random.i64(1..=9),
            (None, Some(outer)) => outer.price - outward * tick,
            (None, None) => self.anchor + outward * tick * random.i64(1..=9),
        };
        let levels = self.side_mut(side);
        levels.insert(index, Level { price, size, time });
        levels.truncate(MOST);
        Some((index, price))
    }

    /// Changes the size of a level, or of the last one, and returns its index and price.
    pub(super) fn resize(
        &mut self,
        side: Side,
        index: usize,
        size: i64,
        time: u64,
    ) -> Option<(usize, i64)> {
        let levels = self.side_mut(side);
        let index = index.min(levels.len().checked_sub(1)?);
        let level = levels.get_mut(index)?;
        (level.size, level.time) = (size, time);
        Some((index, level.price))
    }

    /// Removes a level, or the last one, and returns its index and what it was.
    pub(super) fn delete(
        &mut self,
        side: Side,
        index: usize,
        now: u64,
        random: &mut Rng,
    ) -> Option<(usize, Level)> {
        let levels = self.side_mut(side);
        let index = index.min(levels.len().checked_sub(1)?);
        let gone = levels.remove(index);
        if !self.is_thin() {
            self.grow(side, FEWEST, now, random);
        }
        Some((index, gone))
    }

    /// Returns the level that is the last in sight after another one is removed, if there is one.
    pub(super) fn came_into_sight(&self, side: Side) -> Option<(usize, Level)> {
        let index = DEPTH - 1;
        let level = self.side(side).get(index)?;
        Some((index, *level))
    }

    /// Adds levels after the last one up to `count`, as old as such levels are.
    fn grow(&mut self, side: Side, count: usize, now: u64, random: &mut Rng) {
        let (anchor, tick, outward) = (self.anchor, self.tick, side.outward());
        // Powers of two of milliseconds: up to two hours, or from a quarter of one on.
        let ages = if self.is_thin() { 20..=23 } else { 8..=23 };
        let levels = self.side_mut(side);
        while levels.len() < count {
            let last = levels.last().map_or(anchor, |last| last.price);
            let bits = random.u32(ages.clone());
            levels.push(Level {
                price: last + outward * tick * random.i64(1..=4),
                size: any_size(8, random),
                time: now - random.u64(1 << (bits - 1)..1 << bits),
            });
        }
    }
}

/// Returns a size from 1 to a power of two, small ones more often.
pub(super) fn any_size(most_bits: u32, random: &mut Rng) -> i64 {
    let bits = random.u32(0..=most_bits);
    random.i64(1..=1 << bits)
}
