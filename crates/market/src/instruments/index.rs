//! An index from hashes to places in the table.

use hashbrown::HashTable;
use std::hash::{BuildHasher, RandomState};

/// Part of a key's hash, and the place of the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    hash: u32,
    place: u32,
}

/// An index of places by the hashes of their keys. The caller compares the keys.
#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashTable<Slot>,
}

/// Mixes all 64 bits, because a table uses the highest ones first.
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(ODD)
}

impl Index {
    /// Returns the place with this hash that `is_it` accepts.
    #[inline]
    pub(super) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut fits = |slot: &Slot| slot.hash == hash && is_it(slot.place);
        let found = self.slots.find(spread(hash), &mut fits);
        found.map(|slot| slot.place)
    }

    /// Adds a place, whose key must be absent.
    pub(super) fn insert(&mut self, hash: u32, place: u32) {
        let slot = Slot { hash, place };
        let _ = self
            .slots
            .insert_unique(spread(hash), slot, |slot| spread(slot.hash));
    }

    /// Removes a place. Returns whether it was there.
    pub(super) fn remove(&mut self, hash: u32, place: u32) -> bool {
        let wanted = Slot { hash, place };
        let found = self.slots.find_entry(spread(hash), |slot| *slot == wanted);
        found.map(|entry| entry.remove()).is_ok()
    }
}

/// Hashes of keys, seeded randomly in each process, so that a sender cannot choose keys that
/// collide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    seed: u64,
}

impl Keys {
    pub(super) fn new() -> Self {
        Self {
            seed: RandomState::new().hash_one(0_u8),
        }
    }

    #[inline]
    pub(super) fn of_number(self, number: u64, source: u32) -> u32 {
        finish(mix(self.seed ^ number, u64::from(source) ^ ODD))
    }

    #[inline]
    pub(super) fn of_text(self, text: &[u8], source: u32) -> u32 {
        let mut hash = self.seed ^ u64::from(source);
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            hash = mix(hash ^ u64::from_le_bytes(*word), ODD);
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        let length = text.len() as u64;
        finish(mix(hash ^ u64::from_le_bytes(last), ODD ^ length))
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b | 1);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn finish(hash: u64) -> u32 {
    (mix(hash, ODD) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn as_a_map(steps in proptest::collection::vec((0..40_u32, any::<bool>()), 1..300)) {
            let (mut index, mut map) = (Index::default(), HashMap::new());
            // Few hashes, so that keys collide and wrap around.
            let hash = |key: u32| (key % 7).wrapping_add(u32::MAX - 5);
            for (key, adds) in steps {
                if adds && !map.contains_key(&key) {
                    index.insert(hash(key), key);
                    map.insert(key, ());
                } else if !adds {
                    index.remove(hash(key), key);
                    map.remove(&key);
                }
                for key in 0..40 {
                    let found = index.find(hash(key), |place| place == key);
                    prop_assert_eq!(found, map.contains_key(&key).then_some(key));
                }
                prop_assert_eq!(index.slots.len(), map.len());
            }
        }
    }
}
