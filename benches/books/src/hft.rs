//! The three books of hftbacktest: a hash map, a B-tree, and vectors over a range of prices that
//! has to be known beforehand. Prices are floating-point numbers there.

use std::collections::HashMap as Map;

use fanfare_instruments::bench::book::{Contender, TICK};
use fanfare_market::event::{Action, Event, entry};
use hftbacktest::depth::{
    BTreeMarketDepth, HashMapMarketDepth, INVALID_MAX, INVALID_MIN, L2MarketDepth, L3MarketDepth,
    ROIVectorMarketDepth,
};

pub type HashMap = HashMapMarketDepth;
pub type BTree = BTreeMarketDepth;
pub type RoiVector = ROIVectorMarketDepth;

const TICK_SIZE: f64 = TICK as f64 / 1e9;

/// A book without anything in it.
pub trait Hft: L2MarketDepth + L3MarketDepth {
    fn empty() -> Self
    where
        Self: Sized;
}

impl Hft for HashMap {
    fn empty() -> Self {
        Self::new(TICK_SIZE, 1.0)
    }
}

impl Hft for BTree {
    fn empty() -> Self {
        Self::new(TICK_SIZE, 1.0)
    }
}

impl Hft for RoiVector {
    fn empty() -> Self {
        Self::within(0, 100_000)
    }
}

/// Prices in ticks.
pub trait Within {
    fn within(low: i64, high: i64) -> Self;
}

impl Within for RoiVector {
    fn within(low: i64, high: i64) -> Self {
        Self::new(
            TICK_SIZE,
            1.0,
            low as f64 * TICK_SIZE,
            high as f64 * TICK_SIZE,
        )
    }
}

fn best(book: &impl Hft) -> [i64; 2] {
    [
        (book.best_bid_tick(), INVALID_MIN),
        (book.best_ask_tick(), INVALID_MAX),
    ]
    .map(|(tick, none)| if tick == none { 0 } else { tick * TICK })
}

/// A level with its new size, 0 if it is gone.
#[derive(Clone, Copy)]
pub struct LevelInput {
    is_bid: bool,
    price: f64,
    size: f64,
}

/// By price.
pub struct Level<H>(pub H);

impl<H: Hft> Contender for Level<H> {
    type Input = LevelInput;

    fn inputs(events: &[Event]) -> Vec<LevelInput> {
        let input = |event: &Event| LevelInput {
            is_bid: event.entry == entry::BID,
            price: event.price.units() as f64 / 1e9,
            size: if event.action == Action::Delete {
                0.0
            } else {
                event.size as f64
            },
        };
        events.iter().map(input).collect()
    }

    #[inline]
    fn apply(&mut self, input: &LevelInput) {
        if input.is_bid {
            self.0.update_bid_depth(input.price, input.size, 0);
        } else {
            self.0.update_ask_depth(input.price, input.size, 0);
        }
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        best(&self.0)
    }
}

/// What happens to an order; a fill is a change of its size, or its end.
#[derive(Clone, Copy)]
pub enum OrderInput {
    Buy(u64, f64, f64),
    Sell(u64, f64, f64),
    Modify(u64, f64, f64),
    Delete(u64),
}

/// By order.
pub struct Order<H>(pub H);

impl<H: Hft> Contender for Order<H> {
    type Input = OrderInput;

    fn inputs(events: &[Event]) -> Vec<OrderInput> {
        let mut left = Map::new();
        let input = |event: &Event| {
            let (id, price, size) = (event.id, event.price.units() as f64 / 1e9, event.size);
            let there = left.get(&id).copied().unwrap_or(0);
            let size = if event.action == Action::Fill {
                there - size
            } else {
                size
            };
            left.insert(id, size);
            match event.action {
                Action::New if event.entry == entry::BID => OrderInput::Buy(id, price, size as f64),
                Action::New => OrderInput::Sell(id, price, size as f64),
                Action::Change => OrderInput::Modify(id, price, size as f64),
                Action::Fill if size > 0 => OrderInput::Modify(id, price, size as f64),
                _ => OrderInput::Delete(id),
            }
        };
        events.iter().map(input).collect()
    }

    #[inline]
    fn apply(&mut self, input: &OrderInput) {
        // What it refuses would show in the best prices.
        let _ = match *input {
            OrderInput::Buy(id, price, size) => self.0.add_buy_order(id, price, size, 0).is_ok(),
            OrderInput::Sell(id, price, size) => self.0.add_sell_order(id, price, size, 0).is_ok(),
            OrderInput::Modify(id, price, size) => self.0.modify_order(id, price, size, 0).is_ok(),
            OrderInput::Delete(id) => self.0.delete_order(id, 0).is_ok(),
        };
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        best(&self.0)
    }
}
