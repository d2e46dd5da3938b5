//! Changes that wait for a snapshot or for missing ones before them: one bounded store for all
//! instruments, with a list in ascending order for each.

/// The index of no place.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Entry<T> {
    key: u64,
    sequence: u64,
    before: u32,
    behind: u32,
    item: T,
}

/// The list of one instrument.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    first: u32,
    last: u32,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// A change that waited.
pub(super) struct Waited<T> {
    pub(super) key: u64,
    pub(super) sequence: u64,
    pub(super) item: T,
}

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    Done,
    /// A change with its number waits already.
    Repeated,
    /// The store is full.
    Full,
}

/// The waiting changes of all instruments. Allocates as it grows, up to its limit; places are
/// reused.
#[derive(Debug, Clone)]
pub(super) struct Held<T> {
    entries: Vec<Entry<T>>,
    most: usize,
    /// The first free place.
    free: u32,
    len: usize,
}

impl<T: Copy> Held<T> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            entries: Vec::new(),
            most: most.min(NONE as usize),
            free: NONE,
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the key of the first change of a list.
    pub(super) fn first_key(&self, list: List) -> Option<u64> {
        self.entries.get(list.first as usize).map(|entry| entry.key)
    }

    /// Returns the key of the last change of a list.
    pub(super) fn last_key(&self, list: List) -> Option<u64> {
        self.entries.get(list.last as usize).map(|entry| entry.key)
    }

    /// Inserts a change in order of keys. If `is_unique`, a second one with a key is left out;
    /// otherwise it is placed after the first.
    pub(super) fn insert(
        &mut self,
        list: &mut List,
        waited: Waited<T>,
        is_unique: bool,
    ) -> Insertion {
        let Waited {
            key,
            sequence,
            item,
        } = waited;
        // The place is nearly always after the last one.
        let mut before = list.last;
        while let Some(entry) = self.entries.get(before as usize) {
            if entry.key == key && is_unique {
                return Insertion::Repeated;
            }
            if entry.key <= key {
                break;
            }
            before = entry.before;
        }
        let behind = match self.entries.get(before as usize) {
            Some(entry) => entry.behind,
            None => list.first,
        };
        let entry = Entry {
            key,
            sequence,
            before,
            behind,
            item,
        };
        let Some(place) = self.place(entry) else {
            return Insertion::Full;
        };
        match self.entries.get_mut(before as usize) {
            Some(entry) => entry.behind = place,
            None => list.first = place,
        }
        match self.entries.get_mut(behind as usize) {
            Some(entry) => entry.before = place,
            None => list.last = place,
        }
        self.len += 1;
        Insertion::Done
    }

    /// Stores an entry in a free place.
    fn place(&mut self, entry: Entry<T>) -> Option<u32> {
        if let Some(free) = self.entries.get_mut(self.free as usize) {
            let place = self.free;
            self.free = free.behind;
            *free = entry;
            return Some(place);
        }
        if self.entries.len() >= self.most {
            return None;
        }
        self.entries.push(entry);
        Some(self.entries.len() as u32 - 1)
    }

    /// Takes the first change of a list, if its key is at most `most`.
    pub(super) fn pop(&mut self, list: &mut List, most: u64) -> Option<Waited<T>> {
        let place = list.first;
        let entry = self.entries.get_mut(place as usize)?;
        if entry.key > most {
            return None;
        }
        let waited = Waited {
            key: entry.key,
            sequence: entry.sequence,
            item: entry.item,
        };
        list.first = entry.behind;
        entry.behind = self.free;
        self.free = place;
        self.len -= 1;
        match self.entries.get_mut(list.first as usize) {
            Some(next) => next.before = NONE,
            None => list.last = NONE,
        }
        Some(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn waited(key: u64) -> Waited<u64> {
        Waited {
            key,
            sequence: key + 1_000,
            item: key * 2,
        }
    }

    #[test]
    fn the_store_is_bounded_and_its_places_are_used_again() {
        let mut held = Held::new(2);
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        assert_eq!(held.insert(&mut a, waited(5), true), Insertion::Done);
        assert_eq!(held.insert(&mut a, waited(5), true), Insertion::Repeated);
        assert_eq!(held.insert(&mut b, waited(3), true), Insertion::Done);
        assert_eq!(held.insert(&mut a, waited(4), true), Insertion::Full);
        assert!(held.pop(&mut b, 2).is_none());
        assert_eq!(held.pop(&mut b, 3).map(|w| w.item), Some(6));
        assert_eq!(held.first_key(b), None);
        assert_eq!(held.insert(&mut a, waited(4), true), Insertion::Done);
        assert_eq!((held.first_key(a), held.last_key(a)), (Some(4), Some(5)));
        assert_eq!(held.len(), 2);
    }

    proptest! {
        #[test]
        fn lists_are_sorted_maps(
            steps in prop::collection::vec((0usize..3, 0u64..40, any::<bool>()), 0..300),
        ) {
            let mut held = Held::new(30);
            let mut lists = [List::EMPTY; 3];
            let mut oracle: [BTreeMap<u64, u64>; 3] = Default::default();
            for (which, key, is_insertion) in steps {
                let total: usize = oracle.iter().map(BTreeMap::len).sum();
                if is_insertion {
                    let expected = match oracle[which].contains_key(&key) {
                        true => Insertion::Repeated,
                        false if total == 30 => Insertion::Full,
                        false => Insertion::Done,
                    };
                    prop_assert_eq!(held.insert(&mut lists[which], waited(key), true), expected);
                    if expected == Insertion::Done {
                        oracle[which].insert(key, key * 2);
                    }
                } else {
                    let first = oracle[which].first_key_value().map(|(k, v)| (*k, *v));
                    let first = first.filter(|(first, _)| *first <= key);
                    let popped = held.pop(&mut lists[which], key).map(|w| (w.key, w.item));
                    prop_assert_eq!(popped, first);
                    first.and_then(|(key, _)| oracle[which].remove(&key));
                }
                let last = oracle[which].last_key_value().map(|(k, _)| *k);
                prop_assert_eq!(held.last_key(lists[which]), last);
            }
        }
    }
}
