//! A table of orders or levels, by number or price.

use hashbrown::HashTable;

/// A map from numbers to places, where each place knows its number.
///
/// Its capacity is twice the count of numbers that it is made for, so that it is at most half full.
/// Removing a number then leaves a tombstone only very rarely, and when tombstones have used the
/// table up, it is rehashed in place. It allocates after its creation only for more numbers than
/// these.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    places: HashTable<u32>,
}

/// The hash of a number that is absent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacant(u64);

impl Ids {
    /// Returns an empty table with room for `most` numbers.
    pub(super) fn new(most: usize) -> Self {
        Self {
            places: HashTable::with_capacity(2 * most),
        }
    }

    /// Returns both halves of a product of 128 bits. Numbers that are consecutive, or differ in any
    /// single bit, differ at both ends, which the table uses.
    #[inline]
    fn hash(id: u64) -> u64 {
        let product = u128::from(id ^ 0x243f_6a88_85a3_08d3) * 0xd6e8_feb8_6659_fd93;
        (product >> 64) as u64 ^ product as u64
    }

    /// Returns the place of a number. `is` returns whether a place has it.
    #[inline]
    pub(super) fn find(&self, id: u64, is: impl Fn(u32) -> bool) -> Result<u32, Vacant> {
        let hash = Self::hash(id);
        let found = self.places.find(hash, |&place| is(place));
        found.copied().ok_or(Vacant(hash))
    }

    /// Inserts a place whose number [`Ids::find`] has found to be absent. `id` returns the number
    /// of each place.
    #[inline]
    pub(super) fn insert(&mut self, vacant: Vacant, place: u32, id: impl Fn(u32) -> u64) {
        let hash = |&place: &u32| Self::hash(id(place));
        self.places.insert_unique(vacant.0, place, hash);
    }

    /// Removes a number that has this place.
    #[inline]
    pub(super) fn remove(&mut self, id: u64, place: u32) {
        let found = self
            .places
            .find_entry(Self::hash(id), |&other| other == place);
        if let Ok(entry) = found {
            entry.remove();
        }
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    /// Returns the number of bytes allocated.
    pub(super) fn memory(&self) -> usize {
        self.places.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Compares the table with a map, for numbers by place as in a book.
    fn churn(ids: impl Fn(u64) -> u64, most: usize) {
        let mut table = Ids::new(most);
        let mut by_place: Vec<u64> = Vec::new();
        let mut map = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        let memory = table.memory();
        for _ in 0..20_000 {
            let id = ids(random.u64(0..2 * most as u64));
            let found = table.find(id, |place| by_place[place as usize] == id);
            match (found, map.get(&id).copied()) {
                (Ok(place), Some(expected)) => {
                    assert_eq!(place, expected);
                    table.remove(id, place);
                    map.remove(&id);
                }
                (Err(vacant), None) if map.len() < most => {
                    let place = by_place.len() as u32;
                    by_place.push(id);
                    table.insert(vacant, place, |place| by_place[place as usize]);
                    map.insert(id, place);
                }
                (Err(_), None) => {}
                other => panic!("{id}: {other:?}"),
            }
            assert_eq!(table.places.len(), map.len());
        }
        assert_eq!(table.memory(), memory, "it never grows");
    }

    #[test]
    fn numbers_are_found_and_gone_as_in_a_map() {
        for most in [1, 2, 3, 17, 64, 1_000] {
            churn(|n| n, most);
            churn(|n| n << 32, most);
            churn(|n| u64::MAX - n * 1_000_000_007, most);
            // All of one group, which produces the most tombstones.
            churn(|n| n % 40, most);
        }
    }

    #[test]
    fn numbers_that_venues_give_lie_apart() {
        let steps = [
            1,
            2,
            10,
            64,
            1 << 10,
            1 << 20,
            1 << 32,
            1 << 40,
            (1 << 32) + 1,
            10_000_000,
        ];
        for step in steps {
            let hash = |n: u64| Ids::hash(4_611_686_018_427 + n * step);
            let distinct = |of: fn(u64) -> u64| {
                let places: BTreeSet<u64> = (0..10_000).map(|n| of(hash(n))).collect();
                places.len()
            };
            // Random ones would be at 7,480 of 16,384 places.
            let places = distinct(|hash| hash & 0x3fff);
            assert!(places > 7_300, "step {step}: {places}");
            assert_eq!(distinct(|hash| hash >> 57), 128, "step {step}");
        }
    }
}
