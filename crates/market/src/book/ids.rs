//! Where an order is, by its number: a table of eight bytes an entry, half of it empty.

/// Open addressing with linear probing: an entry is the upper half of the number's hash and the
/// order's place, and 0 where there is none.
///
/// What stands behind a removed entry moves up, so that there are no marks of what was removed,
/// and the table never has to be made anew; where it has to move to is known by the hash in the
/// entry.
#[derive(Clone, Debug)]
pub(super) struct Ids {
    entries: Box<[u64]>,
    /// Bits of a hash of 32 bits that are no part of the place in the table.
    shift: u32,
}

/// An empty entry, and the hash to put there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vacant {
    at: usize,
    hash: u64,
}

impl Ids {
    /// Room for `most` numbers, up to 2^30.
    pub(super) fn new(most: usize) -> Self {
        let room = (most * 2).next_power_of_two().max(4);
        Self {
            entries: vec![0; room].into(),
            shift: 32 - room.trailing_zeros(),
        }
    }

    #[inline]
    fn mask(&self) -> usize {
        self.entries.len() - 1
    }

    /// The upper half of a product with the golden ratio: numbers that follow each other, or
    /// differ in their upper bits, lie far apart.
    #[inline]
    fn hash(id: u64) -> u64 {
        (id ^ (id >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    /// The entry and the place of an order, which `is` knows by its place, or where to put it.
    #[inline]
    pub(super) fn find(&self, id: u64, is: impl Fn(u32) -> bool) -> Result<(usize, u32), Vacant> {
        let hash = Self::hash(id);
        let mask = self.mask();
        let mut at = (hash >> self.shift) as usize & mask;
        loop {
            let entry = self.entries[at];
            if entry == 0 {
                return Err(Vacant { at, hash });
            }
            let place = entry as u32 - 1;
            if entry >> 32 == hash && is(place) {
                return Ok((at, place));
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts an order's place where [`Ids::find`] has found its number to be missing. There must
    /// be less than the most.
    #[inline]
    pub(super) fn insert(&mut self, vacant: Vacant, place: u32) {
        self.entries[vacant.at] = vacant.hash << 32 | u64::from(place + 1);
    }

    /// Takes out what [`Ids::find`] has found.
    #[inline]
    pub(super) fn remove(&mut self, mut at: usize) {
        let mask = self.mask();
        let mut next = at;
        loop {
            next = (next + 1) & mask;
            let entry = self.entries[next];
            if entry == 0 {
                break;
            }
            let home = (entry >> 32 >> self.shift) as usize;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(at) & mask {
                self.entries[at] = entry;
                at = next;
            }
        }
        self.entries[at] = 0;
    }

    pub(super) fn clear(&mut self) {
        self.entries.fill(0);
    }

    /// Bytes beside its own.
    pub(super) fn memory(&self) -> usize {
        size_of_val::<[u64]>(&self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Orders by place, as a book has them; the map is the oracle.
    fn churn(ids: impl Fn(u64) -> u64, most: usize) {
        let mut table = Ids::new(most);
        let mut by_place: Vec<u64> = Vec::new();
        let mut map = BTreeMap::new();
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let id = ids(random.u64(0..2 * most as u64));
            let found = table.find(id, |place| by_place[place as usize] == id);
            match (found, map.get(&id).copied()) {
                (Ok((at, place)), Some(expected)) => {
                    assert_eq!(place, expected);
                    table.remove(at);
                    map.remove(&id);
                }
                (Err(vacant), None) if map.len() < most => {
                    let place = by_place.len() as u32;
                    by_place.push(id);
                    table.insert(vacant, place);
                    map.insert(id, place);
                }
                (Err(_), None) => {}
                other => panic!("{id}: {other:?}"),
            }
            assert_eq!(table.entries.iter().filter(|&&e| e != 0).count(), map.len());
        }
    }

    #[test]
    fn numbers_are_found_and_gone_as_in_a_map() {
        for most in [1, 2, 3, 17, 64] {
            churn(|n| n, most);
            churn(|n| n << 32, most);
            churn(|n| u64::MAX - n * 1_000_000_007, most);
        }
    }

    #[test]
    fn numbers_that_venues_give_lie_apart() {
        for step in [
            1,
            2,
            10,
            64,
            1 << 10,
            1 << 20,
            1 << 32,
            1 << 40,
            (1 << 32) + 1,
        ] {
            let mut table = Ids::new(10_000);
            let mut probes = 0;
            for n in 0..10_000_u64 {
                let id = 4_611_686_018_427 + n * step;
                let probed = core::cell::Cell::new(0);
                let mut at = (Ids::hash(id) >> table.shift) as usize;
                while table.entries[at] != 0 {
                    at = (at + 1) & table.mask();
                    probed.set(probed.get() + 1);
                }
                probes += probed.get();
                let Err(vacant) = table.find(id, |_| false) else {
                    panic!()
                };
                table.insert(vacant, n as u32);
            }
            assert!(probes < 20_000, "step {step}: {probes}");
        }
    }
}
