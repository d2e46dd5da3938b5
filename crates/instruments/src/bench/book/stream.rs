//! The stream of a busy market, from a seed: orders, and the same as levels by price and by number.

use std::collections::{BTreeMap, HashMap, VecDeque};

use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind};
use fanfare_market::{Price, Side};
use fastrand::Rng;

/// The size of the market.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Prices of a side at the start, and the largest distance of an order from the best, in ticks.
    pub levels: i64,
    /// The least number of orders at the start; the levels may need more.
    pub orders: usize,
    /// Levels of a side in the stream of numbered levels.
    pub depth: usize,
    /// Operations on orders after the start: 45 % adds, 10 % changes, 40 % cancels, 5 % trades.
    pub operations: usize,
}

/// A stream: the first part builds the book, the second is measured.
#[derive(Debug, Clone, Default)]
pub struct Stream {
    /// One event for each order or level at the start.
    pub start: Vec<Event>,
    /// The events after the start; each operation ends with [`Flags::LAST`].
    pub turn: Vec<Event>,
}

/// The same market in three feeds.
#[derive(Debug, Clone, Default)]
pub struct Streams {
    /// By order.
    pub orders: Stream,
    /// By price.
    pub prices: Stream,
    /// By level number.
    pub levels: Stream,
    /// The largest number of orders at a time.
    pub most_orders: usize,
    /// The largest number of levels of a side at a time.
    pub most_levels: usize,
}

/// A tick of 0.01 in units of 10^-9.
pub const TICK: i64 = 10_000_000;

/// The best bid at the start, in ticks.
const MIDDLE: i64 = 50_000;

/// The share of operations anywhere in the book. The others are near its top: an order is mostly
/// less than ten ticks from the best, and one of the best sixteen levels' is chosen.
const FAR: f64 = 0.1;
const NEAR_LEVELS: usize = 16;

/// The approximate number of orders in these levels of a side: few, so that levels come and go.
const NEAR_ORDERS: usize = 24;

impl Streams {
    /// Creates the streams of a seed.
    pub fn new(shape: Shape, seed: u64) -> Self {
        let mut market = Market::new(shape, seed);
        market.fill();
        let mut streams = Self::default();
        streams.prices.start = market.snapshot(usize::MAX);
        streams.levels.start = market.snapshot(shape.depth);
        streams.orders.start = std::mem::take(&mut market.streams.orders.turn);
        market.streams = Self::default();
        for _ in 0..shape.operations {
            market.operate();
        }
        streams.orders.turn = market.streams.orders.turn;
        streams.prices.turn = market.streams.prices.turn;
        streams.levels.turn = market.streams.levels.turn;
        (streams.most_orders, streams.most_levels) = (market.most_orders, market.most_levels);
        streams
    }
}

/// An order.
#[derive(Debug, Clone, Copy)]
struct Live {
    side: Side,
    tick: i64,
    size: i64,
    /// The order's index in `ids`.
    place: usize,
}

/// The market, in a slow and obvious implementation.
struct Market {
    shape: Shape,
    random: Rng,
    orders: HashMap<u64, Live>,
    /// The ids of all orders, to choose from.
    ids: Vec<u64>,
    /// The levels by [`rank`], so that the best is the first.
    sides: [BTreeMap<i64, VecDeque<u64>>; 2],
    next_id: u64,
    most_orders: usize,
    most_levels: usize,
    streams: Streams,
}

/// Returns the rank of a price; the best has the lowest.
fn rank(side: Side, tick: i64) -> i64 {
    if side == Side::Bid { -tick } else { tick }
}

impl Market {
    fn new(shape: Shape, seed: u64) -> Self {
        Self {
            shape,
            random: Rng::with_seed(seed),
            orders: HashMap::new(),
            ids: Vec::new(),
            sides: Default::default(),
            next_id: 1 << 40,
            most_orders: 0,
            most_levels: 0,
            streams: Streams::default(),
        }
    }

    /// Adds the orders at the start: one at each of three of four prices, the others behind the
    /// best.
    fn fill(&mut self) {
        for side in Side::BOTH {
            for distance in 0..self.shape.levels {
                if distance == 0 || self.random.u32(..4) != 0 {
                    self.add_at(side, start_tick(side, distance));
                }
            }
        }
        while self.ids.len() < self.shape.orders {
            let side = self.side();
            let queues = &self.sides[side as usize];
            let at = self
                .random
                .usize(NEAR_LEVELS.min(queues.len() - 1)..queues.len());
            let Some(&rank_of) = queues.keys().nth(at) else {
                continue;
            };
            self.add_at(side, rank(side, rank_of));
        }
    }

    fn side(&mut self) -> Side {
        Side::BOTH[self.random.usize(..2)]
    }

    /// Returns the number of orders near the top.
    fn near(&self, side: Side) -> usize {
        let queues = self.sides[side as usize].values().take(NEAR_LEVELS);
        queues.map(VecDeque::len).sum()
    }

    /// Returns whether the next operation is far from the top, slightly more or less often to keep
    /// the number of orders there.
    fn is_far(&mut self, side: Side, adds: bool) -> bool {
        let excess = self.near(side) as f64 / NEAR_ORDERS as f64 - 1.0;
        let bias = excess.clamp(-1.0, 1.0) * if adds { 0.05 } else { -0.05 };
        self.random.f64() < FAR + bias
    }

    /// Returns the distance of a new order from the best, in ticks.
    fn distance(&mut self, side: Side) -> i64 {
        if self.is_far(side, true) {
            return self.random.i64(0..self.shape.levels);
        }
        let mut distance = 0;
        while distance < 20 && self.random.u32(..4) != 0 {
            distance += 1;
        }
        distance
    }

    fn best(&self, side: Side) -> Option<i64> {
        let (&best, _) = self.sides[side as usize].first_key_value()?;
        Some(rank(side, best))
    }

    fn operate(&mut self) {
        match self.random.u32(..100) {
            0..45 => self.add(),
            45..55 => self.change(),
            55..95 => self.cancel(),
            _ => self.trade(),
        }
    }

    fn add(&mut self) {
        let side = self.side();
        let best = self.best(side).unwrap_or(start_tick(side, 0));
        let worse = if side == Side::Bid { -1 } else { 1 };
        let distance = self.distance(side);
        let mut tick = best + worse * distance;
        let improved = best - worse;
        let other = Side::BOTH[1 - side as usize];
        let is_free = self
            .best(other)
            .is_none_or(|other_best| rank(side, improved) > rank(side, other_best));
        if distance == 0 && is_free && self.random.u32(..3) == 0 {
            tick = improved;
        }
        self.add_at(side, tick);
    }

    fn add_at(&mut self, side: Side, tick: i64) {
        // Other instruments of the venue have the numbers in between.
        self.next_id += self.random.u64(1..40);
        let size = self.random.i64(1..=20) * 5;
        self.put(self.next_id, side, tick, size);
        let event = self.event(self.next_id, Action::New);
        self.emit(event, &[(side, tick, true)]);
    }

    /// Returns an order near the top, or any.
    fn choose(&mut self) -> Option<u64> {
        let side = self.side();
        if self.is_far(side, false) {
            let at = self.random.usize(..self.ids.len().max(1));
            return self.ids.get(at).copied();
        }
        let mut at = self.random.usize(..self.near(side).max(1));
        for queue in self.sides[side as usize].values() {
            if let Some(&id) = queue.get(at) {
                return Some(id);
            }
            at -= queue.len();
        }
        None
    }

    /// Changes an order: half of the changes reduce it, a quarter enlarge it, a quarter move it.
    fn change(&mut self) {
        let Some(id) = self.choose() else {
            return self.add();
        };
        let Live {
            side, tick, size, ..
        } = self.orders[&id];
        let (mut new_tick, mut new_size) = (tick, size);
        match self.random.u32(..4) {
            0 => new_size += 5,
            1 => new_tick += if side == Side::Bid { -1 } else { 1 },
            _ => new_size = (size / 2).max(1),
        }
        let was_new = !self.sides[side as usize].contains_key(&rank(side, new_tick));
        if new_tick != tick || new_size > size {
            self.take(id);
            self.put(id, side, new_tick, new_size);
        } else if let Some(order) = self.orders.get_mut(&id) {
            order.size = new_size;
        }
        let event = self.event(id, Action::Change);
        if new_tick == tick {
            self.emit(event, &[(side, tick, false)]);
        } else {
            self.emit(event, &[(side, tick, false), (side, new_tick, was_new)]);
        }
    }

    fn cancel(&mut self) {
        let Some(id) = self.choose() else {
            return self.add();
        };
        let event = self.event(id, Action::Delete);
        let Live { side, tick, .. } = self.take(id);
        self.emit(event, &[(side, tick, false)]);
    }

    /// Trades the first order of the best level, half of the time completely.
    fn trade(&mut self) {
        let side = self.side();
        let Some((_, queue)) = self.sides[side as usize].first_key_value() else {
            return self.add();
        };
        let id = queue[0];
        let Live { tick, size, .. } = self.orders[&id];
        let part = if size > 1 && self.random.bool() {
            size / 2
        } else {
            size
        };
        let event = Event {
            size: part,
            ..self.event(id, Action::Fill)
        };
        if part == size {
            self.take(id);
        } else if let Some(order) = self.orders.get_mut(&id) {
            order.size -= part;
        }
        self.emit(event, &[(side, tick, false)]);
    }

    fn put(&mut self, id: u64, side: Side, tick: i64, size: i64) {
        let place = self.ids.len();
        self.ids.push(id);
        let order = Live {
            side,
            tick,
            size,
            place,
        };
        self.orders.insert(id, order);
        let queues = &mut self.sides[side as usize];
        queues.entry(rank(side, tick)).or_default().push_back(id);
        self.most_levels = self.most_levels.max(queues.len());
        self.most_orders = self.most_orders.max(self.ids.len());
    }

    fn take(&mut self, id: u64) -> Live {
        let order = self.orders[&id];
        self.orders.remove(&id);
        self.ids.swap_remove(order.place);
        if let Some(moved) = self
            .ids
            .get(order.place)
            .and_then(|id| self.orders.get_mut(id))
        {
            moved.place = order.place;
        }
        let queues = &mut self.sides[order.side as usize];
        let key = rank(order.side, order.tick);
        if let Some(queue) = queues.get_mut(&key) {
            queue.retain(|&other| other != id);
            if queue.is_empty() {
                queues.remove(&key);
            }
        }
        order
    }
}

/// The events of the market.
impl Market {
    fn event(&self, id: u64, action: Action) -> Event {
        let Live {
            side, tick, size, ..
        } = self.orders[&id];
        Event {
            kind: Kind::Order,
            action,
            id,
            entry: side.entry(),
            price: Price::from_units(tick * TICK),
            size,
            instrument: InstrumentId(0),
            flags: Flags::LAST,
            ..Event::EMPTY
        }
    }

    /// Emits the event, and the changes of these levels: side, price, and whether the level is new,
    /// or may be.
    fn emit(&mut self, event: Event, levels: &[(Side, i64, bool)]) {
        self.streams.orders.turn.push(event);
        for (at, &(side, tick, may_be_new)) in levels.iter().enumerate() {
            let is_last = at + 1 == levels.len();
            self.emit_level(side, tick, may_be_new, is_last);
        }
    }

    fn emit_level(&mut self, side: Side, tick: i64, may_be_new: bool, is_last: bool) {
        let queues = &self.sides[side as usize];
        let key = rank(side, tick);
        let number = queues.keys().take_while(|&&other| other < key).count() + 1;
        let action = match queues.get(&key) {
            None => Action::Delete,
            Some(queue) if may_be_new && queue.len() == 1 => Action::New,
            Some(_) => Action::Change,
        };
        let flags = if is_last { Flags::LAST } else { Flags::NONE };
        let event = Event {
            action,
            flags,
            ..self.level(side, tick, number)
        };
        let depth = self.shape.depth;
        // The level that becomes visible behind a deleted one.
        let from_behind = (action == Action::Delete)
            .then(|| queues.keys().nth(depth - 1).copied())
            .flatten()
            .map(|key| self.level(side, rank(side, key), depth));
        self.streams.prices.turn.push(event);
        if number > depth {
            return;
        }
        match from_behind {
            None => self.streams.levels.turn.push(event),
            Some(next) => self.streams.levels.turn.extend([
                Event {
                    flags: Flags::NONE,
                    ..event
                },
                Event { flags, ..next },
            ]),
        }
    }

    /// Returns the level's current state as a new level.
    fn level(&self, side: Side, tick: i64, number: usize) -> Event {
        let queue = self.sides[side as usize].get(&rank(side, tick));
        let ids = queue.into_iter().flatten();
        Event {
            kind: Kind::Level,
            action: Action::New,
            entry: side.entry(),
            level: number as u16,
            price: Price::from_units(tick * TICK),
            size: ids.clone().map(|id| self.orders[id].size).sum(),
            id: ids.count() as u64,
            flags: Flags::LAST,
            ..Event::EMPTY
        }
    }

    fn snapshot(&self, depth: usize) -> Vec<Event> {
        let side = |side: Side| {
            let ranks = self.sides[side as usize].keys().take(depth);
            let level = move |(at, &key): (usize, &i64)| self.level(side, rank(side, key), at + 1);
            ranks.enumerate().map(level)
        };
        side(Side::Bid).chain(side(Side::Offer)).collect()
    }
}

const fn start_tick(side: Side, distance: i64) -> i64 {
    match side {
        Side::Bid => MIDDLE - distance,
        Side::Offer => MIDDLE + 2 + distance,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::{Book, BookConfig};

    const SHAPE: Shape = Shape {
        levels: 100,
        orders: 2_000,
        depth: 20,
        operations: 20_000,
    };

    fn book(config: BookConfig, stream: &Stream) -> Book {
        let mut book = Book::new(&config);
        for event in stream.start.iter().chain(&stream.turn) {
            // The orders at the start are added side by side.
            assert_eq!(book.apply(event), Ok(()), "{event:?}");
        }
        book
    }

    #[test]
    fn the_streams_are_one_market() {
        let streams = Streams::new(SHAPE, 1);
        let orders = book(
            BookConfig::by_order(1_000, 10_000).unwrap(),
            &streams.orders,
        );
        let prices = book(BookConfig::by_price(1_000).unwrap(), &streams.prices);
        let levels = book(BookConfig::by_level(20).unwrap(), &streams.levels);
        for side in Side::BOTH {
            assert!(orders.depth(side).eq(prices.depth(side)));
            assert!(levels.depth(side).eq(prices.depth(side).take(20)));
            assert!(orders.depth(side).len() > 50);
        }
    }

    #[test]
    fn the_mix_is_what_it_says() {
        let turn = Streams::new(SHAPE, 2).orders.turn;
        let share = |action| {
            let count = turn.iter().filter(|event| event.action == action).count();
            (count as f64 / turn.len() as f64 * 100.0).round() as i64
        };
        let shares = [Action::New, Action::Change, Action::Delete, Action::Fill].map(share);
        for (share, wanted) in shares.into_iter().zip([45, 10, 40, 5]) {
            assert!((share - wanted).abs() <= 2, "{shares:?}");
        }
    }
}
