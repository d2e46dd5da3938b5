//! The shapes of presence maps, kept for the next time, as the messages of a feed have few of them.

use super::columns::{Flags, Vector};
use super::plan::{MAX_GROUPS, MAX_LANES, Plan};

/// The number of shapes that are kept, a power of two.
pub(super) const SLOTS: usize = 128;

/// The meaning of a presence map for a segment whose previous values are in certain states.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Shape {
    /// The number of the entity of each lane, or [`NOTHING`] if it is not in the stream.
    pub(super) index: [Vector; MAX_GROUPS],
    /// A mask of all ones for each lane whose previous value is kept, or added to.
    pub(super) keep: [Vector; MAX_GROUPS],
    /// The number that is added to each lane.
    pub(super) addend: [Vector; MAX_GROUPS],
    pub(super) key: Key,
    /// The states after the entry.
    pub(super) next: u64,
    /// The entities after the first sixteen.
    pub(super) beyond: u16,
    /// The lanes in the stream, and the lanes that have a value.
    pub(super) stream: u64,
    pub(super) present: u64,
    /// The count of one entry, with the number of its strings that have a value in the upper half.
    pub(super) done: u64,
    /// Four times the number of its stop bits.
    pub(super) number: u32,
    /// The entities that can be NULL, and those that are one more than their value, by number.
    pub(super) optional: u64,
    pub(super) nullable: u64,
    /// The signed entities, four bits each.
    pub(super) signed: [u64; 2],
}

/// The number of an entity that does not exist, which reads as 0.
pub(super) const NOTHING: i32 = 31;

/// The key of a shape. No key is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// The presence map as it is in the stream, the first byte lowest, with the identity of the
    /// plan in the bytes after [`MAX_MAP`].
    map: u64,
    /// The states of the previous values: see [`states`].
    pub(super) states: u64,
}

/// The most bytes of a presence map that has a shape, which are as many as [`MAX_LANES`] need.
pub(super) const MAX_MAP: usize = MAX_LANES.div_ceil(7);

impl Key {
    /// Returns the key of a presence map. The key of a longer map is that of no message, because it
    /// has no stop bit where the others have one. With 2^24 plans or more, some are taken for each
    /// other.
    #[inline(always)]
    pub(super) const fn new(plan: &Plan, map: u64, states: u64) -> Self {
        let map = map ^ plan.identity << (8 * MAX_MAP);
        Self { map, states }
    }

    /// Returns the place of the shape for this key. If the shape is not there, it is in the other
    /// place of the pair.
    #[inline(always)]
    pub(super) const fn slot(self) -> usize {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.map ^ self.states).wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
    }
}

/// Returns the states of the previous values that a plan uses, or `None` if one is outside. The
/// assigned ones are in the lower half, the empty ones in the upper half.
#[inline(always)]
pub(super) fn states(plan: &Plan, flags: &Flags) -> Option<u64> {
    let of = |mask: u64| mask >> plan.shift & plan.kept;
    match of(flags.outside) {
        0 => Some(of(flags.assigned) | of(flags.empty) << 32),
        _ => None,
    }
}

/// Sets the states of the previous values that a plan uses.
#[inline(always)]
pub(super) const fn set_states(plan: &Plan, flags: &mut Flags, states: u64) {
    let kept = plan.kept << plan.shift;
    let assigned = (states & 0xffff_ffff) << plan.shift;
    let empty = (states >> 32) << plan.shift;
    flags.assigned = flags.assigned & !kept | assigned;
    flags.empty = flags.empty & !kept | empty;
}

/// The shapes that were used last, for the entries of all segments that are decoded with the same
/// columns. They take at most 64 KiB.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    slots: Option<Box<[Shape; SLOTS]>>,
    /// The key that was last looked for in vain, by its place.
    wanted: Vec<Key>,
}

impl Shapes {
    /// Returns room for shapes, without any.
    pub(super) fn with_room() -> Self {
        Self {
            slots: vec![Shape::default(); SLOTS].try_into().ok(),
            wanted: vec![Key::default(); SLOTS],
        }
    }

    /// Returns all places of shapes, or `None` if there is no room for any.
    #[inline(always)]
    pub(super) fn slots(&self) -> Option<&[Shape; SLOTS]> {
        self.slots.as_deref()
    }

    /// Returns the place for a shape if it is worth making. It is if one of its two places is
    /// empty, or if it was looked for before while others were in them. Maps that do not recur thus
    /// cost little.
    pub(super) fn place(&mut self, key: Key) -> Option<&mut Shape> {
        let slot = key.slot();
        let wanted = std::mem::replace(self.wanted.get_mut(slot)?, key);
        let slots = self.slots.as_deref_mut()?;
        let pair = [slot, slot ^ 1];
        if pair.iter().any(|slot| slots[*slot].key == key) {
            return None;
        }
        let empty = pair
            .into_iter()
            .find(|slot| slots[*slot].key == Key::default());
        if empty.is_none() && wanted == key {
            // The older one goes.
            slots.swap(slot, slot ^ 1);
            return slots.get_mut(slot);
        }
        slots.get_mut(empty?)
    }
}

/// Returns the shape of a key, or `None` if it is not kept.
#[inline(always)]
pub(super) fn found<'s>(shapes: &'s [Shape; SLOTS], key: &Key) -> Option<&'s Shape> {
    let slot = key.slot();
    let first = &shapes[slot];
    if first.key == *key {
        return Some(first);
    }
    let second = &shapes[slot ^ 1];
    (second.key == *key).then_some(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(shapes: &mut Shapes, key: Key) -> bool {
        let place = shapes.place(key);
        place.map(|shape| shape.key = key).is_some()
    }

    fn is_there(shapes: &Shapes, key: Key) -> bool {
        found(shapes.slots().unwrap(), &key).is_some()
    }

    #[test]
    fn what_recurs_takes_the_place_of_the_older() {
        let key = |map| Key { map, states: 7 };
        let same_pair = |map: &u64| key(*map).slot() / 2 == key(0x80).slot() / 2;
        let keys: Vec<Key> = (0x80..).filter(same_pair).take(3).map(key).collect();
        let [first, second, third] = keys[..] else {
            panic!("three of a pair");
        };
        let mut shapes = Shapes::with_room();
        assert!(!is_there(&shapes, first));
        assert!(make(&mut shapes, first) && make(&mut shapes, second));
        assert!(is_there(&shapes, first) && is_there(&shapes, second));
        assert!(!make(&mut shapes, first), "it is there");
        assert!(!make(&mut shapes, third), "it may not recur");
        assert!(make(&mut shapes, third));
        let left = [first, second, third].map(|key| is_there(&shapes, key));
        assert_eq!(left.iter().filter(|is_there| **is_there).count(), 2);
        assert!(left[2]);
        let other = Key { states: 8, ..third };
        assert!(!is_there(&shapes, other));
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut shapes = Shapes::default();
        let key = Key {
            map: 0x80,
            states: 0,
        };
        assert!(!make(&mut shapes, key) && shapes.slots().is_none());
    }
}
