//! What presence maps come to, kept for the next time: the messages of a feed have few of them.

use super::columns::{Flags, Vector};
use super::plan::{MAX_GROUPS, MAX_LANES, Plan};

/// How many shapes are kept: a power of two.
pub(super) const SLOTS: usize = 128;

/// The meaning of a presence map for a segment whose previous values are in certain states.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Shape {
    /// By lane, the number of its entity; [`NOTHING`] if it is not in the stream.
    pub(super) index: [Vector; MAX_GROUPS],
    /// All ones where the previous value is kept, or added to.
    pub(super) keep: [Vector; MAX_GROUPS],
    /// What else is added.
    pub(super) addend: [Vector; MAX_GROUPS],
    pub(super) key: Key,
    /// The states afterwards.
    pub(super) next: u64,
    /// The entities behind the first sixteen.
    pub(super) beyond: u16,
    /// The lanes in the stream, and those that have a value.
    pub(super) stream: u64,
    pub(super) present: u64,
    /// One entry, and in the upper half how many of its strings have a value.
    pub(super) done: u64,
    /// Four times as many as it has stop bits.
    pub(super) number: u32,
    /// By number of the entity: can be NULL; is one more than it says.
    pub(super) optional: u64,
    pub(super) nullable: u64,
    /// The signed ones, four bits each.
    pub(super) signed: [u64; 2],
}

/// The number of no entity: one that reads as 0.
pub(super) const NOTHING: i32 = 31;

/// What a shape is for; none is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Key {
    /// The presence map as it stands in the stream, the first byte lowest, with the identity of the
    /// plan in the bytes behind [`MAX_MAP`].
    map: u64,
    /// See [`states`].
    pub(super) states: u64,
}

/// Most bytes of a presence map that has a shape: as many as [`MAX_LANES`] need.
pub(super) const MAX_MAP: usize = MAX_LANES.div_ceil(7);

impl Key {
    /// Of this map, or of one that is longer: then it belongs to no message, because it has no stop
    /// bit where the others have one. Where there are 2^24 plans, some are taken for each other.
    #[inline(always)]
    pub(super) const fn new(plan: &Plan, map: u64, states: u64) -> Self {
        let map = map ^ plan.identity << (8 * MAX_MAP);
        Self { map, states }
    }

    /// Returns the place of the shape for this key; if it is not there, it is in the other place of
    /// the pair.
    #[inline(always)]
    pub(super) const fn slot(self) -> usize {
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.map ^ self.states).wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - SLOTS.ilog2())) as usize
    }
}

/// Returns the states of the previous values that a plan uses: assigned in the lower half, empty in
/// the upper one; `None` if one is outside.
#[inline(always)]
pub(super) fn states(plan: &Plan, flags: &Flags) -> Option<u64> {
    let of = |mask: u64| mask >> plan.shift & plan.kept;
    match of(flags.outside) {
        0 => Some(of(flags.assigned) | of(flags.empty) << 32),
        _ => None,
    }
}

/// Makes these the states.
#[inline(always)]
pub(super) const fn set_states(plan: &Plan, flags: &mut Flags, states: u64) {
    let kept = plan.kept << plan.shift;
    let assigned = (states & 0xffff_ffff) << plan.shift;
    let empty = (states >> 32) << plan.shift;
    flags.assigned = flags.assigned & !kept | assigned;
    flags.empty = flags.empty & !kept | empty;
}

/// The shapes that were met last, for the entries of all segments that are decoded with the same
/// columns. Never more than 64 KiB.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    slots: Option<Box<[Shape; SLOTS]>>,
    /// What was looked for in vain where another one is.
    wanted: Vec<Key>,
}

impl Shapes {
    /// Returns empty room for shapes.
    pub(super) fn with_room() -> Self {
        Self {
            slots: vec![Shape::default(); SLOTS].try_into().ok(),
            wanted: vec![Key::default(); SLOTS],
        }
    }

    /// Returns all shapes, or `None` if there is no room for any.
    #[inline(always)]
    pub(super) fn slots(&self) -> Option<&[Shape; SLOTS]> {
        self.slots.as_deref()
    }

    /// Returns the place of a shape that is worth making: one of its places is empty, or those that
    /// are there were in the way of this one before. Maps that do not recur cost little by that.
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

/// The shape of a key.
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
