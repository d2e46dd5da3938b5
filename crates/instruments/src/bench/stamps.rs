//! The cost of a stamp of a stage.

use crate::figures::{Figures, median};
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::Counters;
use std::hint::black_box;

/// Batches, of which the median counts, and stamps per batch.
const BATCHES: usize = 2_001;
const ROUNDS: u64 = 1_000;

/// Adds the cost of one reading of the clock and of one value in a histogram, in nanoseconds:
/// `stamp_clock_ns`, `stamp_record_ns`.
pub fn add_stamps(figures: &mut Figures) {
    let histogram = Counters::new().add_histogram("", "bench", "");
    let (mut clock, mut record) = (Vec::new(), Vec::new());
    for _ in 0..BATCHES {
        clock.push(batch(|_| {
            black_box(monotonic());
        }));
        // The values cover all sizes.
        record.push(batch(|i| histogram.record(black_box(1 << (i % 40)))));
    }
    figures.add("stamp_clock_ns", median(clock));
    figures.add("stamp_record_ns", median(record));
}

/// Returns the time of one round of a batch.
fn batch(mut round: impl FnMut(u64)) -> f64 {
    let begun = monotonic();
    (0..ROUNDS).for_each(&mut round);
    (monotonic() - begun) as f64 / ROUNDS as f64
}
