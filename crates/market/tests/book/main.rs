//! Books compared with slow ones under random operations, many of them invalid, and by hand where
//! FIX specifies the effect of an update.
#![allow(clippy::unwrap_used, clippy::panic)]

mod by_hand;
mod ops;

use proptest::prelude::*;

/// Runs this many operations on a book whose kind depends on `seed`.
fn random_run(seed: u64, operations: u64) -> (u64, u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = 3 + operations * 6;
    let kind = (seed % 3) as u8;
    ops::run(|| {
        bytes = bytes.checked_sub(1)?;
        let byte = random.u8(..);
        // The first byte has the kind.
        let is_first = bytes == 2 + operations * 6;
        Some(if is_first {
            byte / 3 / 16 * 48 + kind
        } else {
            byte
        })
    })
}

/// Runs 200,000 operations on books of each kind. `FANFARE_SEEDS=1500` runs a million, in five
/// seconds with `--release`, and `FANFARE_SEED` repeats one.
#[test]
fn books_are_their_oracles_under_random_operations() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seeds: std::ops::Range<u64> = match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(300),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| random_run(seed, 2_000));
        let Ok((done, applied)) = outcome else {
            panic!("FANFARE_SEED={seed}: see above")
        };
        assert_eq!(done, 2_000);
        assert!(applied > 100, "seed {seed}: {applied} applied");
    }
}

proptest! {
    #[test]
    fn books_are_their_oracles_under_any_operations(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000)
    ) {
        let mut bytes = bytes.into_iter();
        ops::run(|| bytes.next());
    }
}
