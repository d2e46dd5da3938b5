//! The common part of all kernels in encoding: the masks of a segment, and the room for its bytes.

use super::columns::Flags;
use super::{MAX_ENCODED, Plan};
use core::mem::MaybeUninit;

/// The room for a segment's bytes.
pub(super) type Room = [MaybeUninit<u8>; MAX_ENCODED];

/// The masks of a segment by the states of its lanes.
pub(super) struct Masks {
    pub(super) present: u64,
    /// The lanes for which a decoder would take a value that is not in the stream.
    have: u64,
    pub(super) previous: u64,
    /// The lanes for which a decoder would take one more.
    pub(super) add: u64,
}

/// Returns the masks by the states of the lanes, or `None` if a previous value is not in its
/// column, or a difference has no base.
#[inline(always)]
pub(super) fn masks(plan: &Plan, flags: &Flags, present: u64) -> Option<Masks> {
    let assigned = flags.assigned >> plan.shift;
    let empty = flags.empty >> plan.shift;
    let outside = flags.outside >> plan.shift;
    let lost = plan.kept & assigned & outside | plan.delta & empty;
    if lost != 0 {
        return None;
    }
    let initial = plan.initial & !(empty & plan.implied);
    Some(Masks {
        present: present & plan.all,
        have: assigned & plan.implied | initial,
        previous: assigned & plan.kept,
        add: plan.increment & assigned,
    })
}

/// Returns the masks of a plain plan, or `None` if a previous value or a value is missing.
#[inline(always)]
pub(super) fn plain_masks(plan: &Plan, flags: &Flags, present: u64) -> Option<Masks> {
    let ready = (flags.assigned & !flags.outside) >> plan.shift;
    let all = Masks {
        present: plan.all,
        have: plan.kept,
        previous: plan.kept,
        add: plan.increment,
    };
    (plan.kept & !ready | plan.all & !present == 0).then_some(all)
}

/// Returns the lanes whose presence bits are set, and those that are in the stream. `equal` lanes
/// have the value that a decoder would take: a field is left out if the decoder would take the same
/// without it.
#[inline(always)]
pub(super) fn written(plan: &Plan, masks: &Masks, equal: u64) -> (u64, u64) {
    let same = !(masks.present ^ masks.have) & (equal | !masks.present);
    let sent = plan.bit_stream & !same;
    let given = sent | plan.constant & masks.present;
    let stream = sent | plan.always | (plan.leads & masks.present) << 1;
    (given, stream)
}

/// Sets the states of the lanes after a segment.
#[inline(always)]
pub(super) fn commit(plan: &Plan, flags: &mut Flags, present: u64) {
    let set = (plan.kept & present) << plan.shift;
    let clear = (plan.implied & !present) << plan.shift;
    flags.assigned = (flags.assigned | set) & !clear;
    flags.empty = flags.empty & !set | clear;
    flags.outside &= !(set | clear);
}

/// Returns the room after the end of `out`.
#[inline(always)]
pub(super) fn room(out: &mut Vec<u8>) -> Option<&mut Room> {
    if out.capacity() - out.len() < MAX_ENCODED {
        grow(out);
    }
    out.spare_capacity_mut().first_chunk_mut()
}

#[cold]
#[inline(never)]
fn grow(out: &mut Vec<u8>) {
    out.reserve(MAX_ENCODED);
}

/// Writes eight bytes.
#[inline(always)]
pub(super) const fn put(place: &mut [MaybeUninit<u8>; 8], bytes: [u8; 8]) {
    // SAFETY: there is room for eight, and any alignment will do.
    unsafe { place.as_mut_ptr().cast::<[u8; 8]>().write(bytes) };
}
