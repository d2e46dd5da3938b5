//! The recorded feed of the Moscow Exchange's derivatives market: live books equal those of an
//! obvious program at the same RptSeq(83), at any moment, whatever the lines lose. Skipped if the
//! recording is not available.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod follower;
mod market;
mod recording;

use std::ops::Range;

/// Returns the seeds to run: the environment's, or the first `default`.
fn seeds(default: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(default),
    }
}
