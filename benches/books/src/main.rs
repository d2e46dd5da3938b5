//! Books of market data beside those of the crates hftbacktest and nautilus-model, in turns in one
//! run: what `fanfare bench book --peers` starts, and `make bench-books`.
//!
//! `books LEVELS ORDERS DEPTH COUNT RUNS SEED` prints one JSON object. All books get the same
//! events and have to have the same best prices after each.

#![forbid(unsafe_code)]

mod hft;
mod nautilus;

use anyhow::{Context, Result, ensure};
use fanfare_instruments::bench::book::{
    Options, Others, Shape, Streams, TICK, add_figures, passes,
};
use fanfare_instruments::figures::Figures;

use crate::hft::{BTree, HashMap, Hft, Level, Order, RoiVector, Within};
use crate::nautilus::{Nautilus, ORDERS, PRICES};

fn main() -> Result<()> {
    let numbers = std::env::args().skip(1).map(|text| {
        let number = text.parse::<u64>();
        number.with_context(|| format!("{text}: no number"))
    });
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    ensure!(
        numbers.len() == 6,
        "usage: books LEVELS ORDERS DEPTH COUNT RUNS SEED"
    );
    let options = Options {
        shape: Shape {
            levels: i64::try_from(numbers[0])?,
            orders: usize::try_from(numbers[1])?,
            depth: usize::try_from(numbers[2])?,
            operations: usize::try_from(numbers[3])?,
        },
        rounds: u32::try_from(numbers[4])?,
        seed: numbers[5],
    };
    let streams = Streams::new(options.shape, options.seed);
    let mut figures = Figures::new("bench book");
    let others = others(&streams, options.shape);
    add_figures(&mut figures, &streams, options, others)?;
    println!("{}", figures.to_json());
    Ok(())
}

fn others(streams: &Streams, shape: Shape) -> Others<'_> {
    let (prices, orders) = (&streams.prices, &streams.orders);
    // Prices that come up, with room for a best price that wanders.
    let ticks = prices.start.iter().map(|event| event.price.units() / TICK);
    let low = ticks.clone().min().unwrap_or(0) - 4 * shape.levels;
    let high = ticks.max().unwrap_or(0) + 4 * shape.levels;
    let roi = move || RoiVector::within(low, high);
    let levels = move || Level(roi());
    let by_order = move || Order(roi());
    Others {
        levels: vec![
            (
                "hftbacktest_hashmap",
                passes(prices, || Level(HashMap::empty())),
            ),
            (
                "hftbacktest_btree",
                passes(prices, || Level(BTree::empty())),
            ),
            ("hftbacktest_roivector", passes(prices, levels)),
            ("nautilus", passes(prices, Nautilus::<PRICES>::new)),
        ],
        orders: vec![
            (
                "hftbacktest_hashmap",
                passes(orders, || Order(HashMap::empty())),
            ),
            // Its B-tree takes the worst bid for the best when an order was the last of its level.
            ("hftbacktest_roivector", passes(orders, by_order)),
            ("nautilus", passes(orders, Nautilus::<ORDERS>::new)),
        ],
    }
}
