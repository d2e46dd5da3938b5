//! A benchmark of books under the stream of a busy market, alternating with other libraries' books
//! in one run.
//!
//! Every book gets the same events, converted to its input before the timing starts, and returns
//! its best prices after each of them; the best prices have to be equal. A few hundred events at a
//! time are brought into the cache before they are timed: a plant has decoded them a moment ago.

mod stream;
mod tree;

use std::hint::black_box;
use std::time::Instant;

use fanfare_market::book::ConfigError;
use fanfare_market::event::Event;
use fanfare_market::{Book, BookConfig, Side};

use crate::figures::Figures;
pub use stream::{Shape, Stream, Streams, TICK};
pub use tree::{TreeLevels, TreeOrders};

/// The error of a comparison of books.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum BookBenchError {
    /// A book has other best prices.
    #[error("{name}: its book differs from ours after the same {what} updates")]
    Differs {
        /// The name of the book.
        name: &'static str,
        /// The kind of updates.
        what: &'static str,
    },
    /// The book would be too large.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A book that is compared.
pub trait Contender {
    /// The input that an event is converted to before the timing starts.
    type Input: Copy;

    /// Converts the events to inputs of this book.
    fn inputs(events: &[Event]) -> Vec<Self::Input>;

    /// Applies one input.
    fn apply(&mut self, input: &Self::Input);

    /// Returns the best bid and offer in units of 10^-9, 0 for an empty side.
    fn best(&self) -> [i64; 2];
}

impl Contender for Book {
    type Input = Event;

    fn inputs(events: &[Event]) -> Vec<Event> {
        events.to_vec()
    }

    #[inline]
    fn apply(&mut self, event: &Event) {
        // A refusal would show in the best prices, and make the book doubtful.
        let _ = Self::apply(self, event);
    }

    #[inline]
    fn best(&self) -> [i64; 2] {
        Side::BOTH.map(|side| Self::best(self, side).map_or(0, |level| level.price.units()))
    }
}

/// The result of a pass over a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Nanoseconds of each batch; a batch has the same events in each pass.
    pub batches: Vec<u64>,
    /// The number of updates.
    pub updates: usize,
    /// The sum of all best prices.
    pub sum: i64,
}

/// A contender with its inputs: each call makes a pass on a new book.
pub type Passes<'a> = Box<dyn FnMut() -> Pass + 'a>;

/// Events that are timed together.
const BATCH: usize = 256;

/// Returns the passes of books that `new` creates.
pub fn passes<'a, C: Contender>(stream: &Stream, mut new: impl FnMut() -> C + 'a) -> Passes<'a>
where
    C::Input: 'a,
{
    // Converted together, so that a later input can depend on earlier ones.
    let all: Vec<Event> = stream.start.iter().chain(&stream.turn).copied().collect();
    let inputs = C::inputs(&all);
    let start = stream.start.len();
    let mut hot = inputs.clone();
    hot.truncate(BATCH);
    Box::new(move || {
        let mut book = new();
        let (before, turn) = inputs.split_at(start);
        before.iter().for_each(|input| book.apply(input));
        let mut sum = 0_i64;
        let mut batches = Vec::with_capacity(turn.len().div_ceil(BATCH));
        for batch in turn.chunks(BATCH) {
            hot.clear();
            hot.extend_from_slice(batch);
            let begin = Instant::now();
            for input in black_box(&hot) {
                book.apply(input);
                let [bid, offer] = black_box(book.best());
                sum = sum.wrapping_mul(31).wrapping_add(bid ^ offer);
            }
            batches.push(begin.elapsed().as_nanos() as u64);
        }
        Pass {
            batches,
            updates: turn.len(),
            sum,
        }
    })
}

/// Alternates between contenders, and adds the minimum of each, batch by batch, as other programs
/// on the machine disturb most passes somewhere: `{what}_update_ns` of the first, which is
/// Fanfare's, and `{name}_{what}_ns` and `{name}_{what}_ratio` (theirs to Fanfare's) of the others.
///
/// # Errors
/// A book differs from the first.
pub fn compare(
    figures: &mut Figures,
    what: &'static str,
    rounds: u32,
    books: &mut [(&'static str, Passes<'_>)],
) -> Result<(), BookBenchError> {
    let mut least: Vec<Vec<u64>> = vec![Vec::new(); books.len()];
    let mut updates = 1;
    let mut ours = None;
    for _ in 0..rounds {
        for (place, (name, passes)) in books.iter_mut().enumerate() {
            let pass = passes();
            if *ours.get_or_insert(pass.sum) != pass.sum {
                return Err(BookBenchError::Differs { name, what });
            }
            updates = pass.updates.max(1);
            let least = &mut least[place];
            least.resize(pass.batches.len(), u64::MAX);
            for (least, batch) in least.iter_mut().zip(pass.batches) {
                *least = batch.min(*least);
            }
        }
    }
    let mean = |batches: &Vec<u64>| batches.iter().sum::<u64>() as f64 / updates as f64;
    let least: Vec<f64> = least.iter().map(mean).collect();
    if let Some((&ours, theirs)) = least.split_first() {
        figures.add(&format!("{what}_update_ns"), ours);
        for ((name, _), &theirs) in books.iter().skip(1).zip(theirs) {
            figures.add(&format!("{name}_{what}_ns"), theirs);
            figures.add(&format!("{name}_{what}_ratio"), theirs / ours);
        }
    }
    Ok(())
}

/// The size of the market, and the number of runs.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The market.
    pub shape: Shape,
    /// The seed of its operations.
    pub seed: u64,
    /// Passes of each book.
    pub rounds: u32,
}

/// Returns the configurations that hold a market with a quarter in reserve: by price, by order, by
/// level number.
fn configs(streams: &Streams, shape: Shape) -> Result<[BookConfig; 3], ConfigError> {
    let spare = |most: usize| u32::try_from(most + most / 4).unwrap_or(u32::MAX);
    let levels = spare(streams.most_levels);
    Ok([
        BookConfig::by_price(levels)?,
        BookConfig::by_order(levels, spare(streams.most_orders))?,
        BookConfig::by_level(u32::try_from(shape.depth).unwrap_or(u32::MAX))?,
    ])
}

/// Other libraries' books, with a name for the figures; their inputs come from the streams.
#[derive(Default)]
pub struct Others<'a> {
    /// Books of levels by price.
    pub levels: Vec<(&'static str, Passes<'a>)>,
    /// Books of orders.
    pub orders: Vec<(&'static str, Passes<'a>)>,
}

/// Measures the books of Fanfare, the standard library's maps and `others`: updates of levels by
/// price (`level_update_ns`), of orders (`order_update_ns`), and of levels by number, which the
/// others do not have (`number_update_ns`).
///
/// # Errors
/// The market is larger than a book may be, or a book differs.
pub fn add_figures(
    figures: &mut Figures,
    streams: &Streams,
    options: Options,
    others: Others<'_>,
) -> Result<(), BookBenchError> {
    let [by_price, by_order, by_level] = configs(streams, options.shape)?;
    let ours = |stream, config| ("ours", passes(stream, move || Book::new(&config)));
    let tree = passes(&streams.prices, TreeLevels::default);
    let mut levels = vec![ours(&streams.prices, by_price), ("btreemap", tree)];
    levels.extend(others.levels);
    let tree = passes(&streams.orders, TreeOrders::default);
    let mut orders = vec![ours(&streams.orders, by_order), ("btreemap", tree)];
    orders.extend(others.orders);
    let mut numbers = [ours(&streams.levels, by_level)];
    let rounds = options.rounds;
    compare(figures, "level", rounds, &mut levels)?;
    compare(figures, "order", rounds, &mut orders)?;
    compare(figures, "number", rounds, &mut numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: Options = Options {
        shape: Shape {
            levels: 50,
            orders: 500,
            depth: 10,
            operations: 5_000,
        },
        seed: 1,
        rounds: 2,
    };

    #[test]
    fn all_books_come_to_the_same_and_are_measured() {
        let mut figures = Figures::new("bench book");
        let streams = Streams::new(OPTIONS.shape, OPTIONS.seed);
        let others = Others::default();
        add_figures(&mut figures, &streams, OPTIONS, others).unwrap();
        let names = [
            "level_update_ns",
            "btreemap_level_ratio",
            "order_update_ns",
            "btreemap_order_ratio",
            "number_update_ns",
        ];
        for name in names {
            assert!(
                figures.value(name).is_some_and(|value| value > 0.0),
                "{name}"
            );
        }
    }

    #[test]
    fn another_book_is_found() {
        let streams = Streams::new(OPTIONS.shape, 1);
        let mut lossy = streams.prices.clone();
        lossy
            .turn
            .retain(|event| event.action != fanfare_market::Action::Delete);
        let mut books = [
            ("ours", passes(&streams.prices, TreeLevels::default)),
            ("theirs", passes(&lossy, TreeLevels::default)),
        ];
        let found = compare(&mut Figures::new("x"), "level", 1, &mut books);
        let (name, what) = ("theirs", "level");
        assert_eq!(found, Err(BookBenchError::Differs { name, what }));
    }

    #[test]
    fn books_hold_markets_of_any_shape() {
        for (levels, orders, depth) in [(2_000, 10, 1), (10, 5_000, 50), (1, 1, 1)] {
            let mut options = OPTIONS;
            (options.shape.levels, options.shape.orders) = (levels, orders);
            options.shape.depth = depth;
            let streams = Streams::new(options.shape, 3);
            let (mut figures, others) = (Figures::new("x"), Others::default());
            let added = add_figures(&mut figures, &streams, options, others);
            assert_eq!(added, Ok(()), "{levels} levels, {orders} orders");
        }
    }
}
