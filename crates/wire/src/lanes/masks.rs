//! The common part of the kernels in decoding: the masks of a segment, before its values are read.

use super::Plan;
use super::columns::Flags;

/// The stop bits of eight bytes.
pub(super) const STOPS: u64 = 0x8080_8080_8080_8080;

/// Returns the presence map at the front of these bytes, as it is in the stream, and the number of
/// its bits with the stop bits. Returns `None` if the map does not end here, or if it has several
/// bytes and the last one is redundant.
#[inline(always)]
pub(super) const fn map_of(word: u64) -> Option<(u64, u32)> {
    let ends = word & STOPS;
    let map = word & (ends ^ ends.wrapping_sub(1));
    let len = ends.trailing_zeros() + 1;
    let is_overlong = (map >> 8) >> (len.wrapping_sub(16) & 63) == 0x80;
    if ends == 0 || is_overlong {
        return None;
    }
    Some((map, len))
}

/// The masks of a segment, before its values are read.
pub(super) struct Masks {
    /// The lanes in the stream.
    pub(super) stream: u64,
    /// The lanes that are absent by the presence map and the previous values.
    pub(super) absent: u64,
    /// The lanes whose base is the previous value, not the initial one.
    pub(super) previous: u64,
    /// The lanes to which one is added.
    pub(super) add: u64,
    /// Whether all previous values are there. The states then change only by NULL.
    pub(super) is_steady: bool,
}

/// Returns the masks by the presence bits, which are in their lanes, and by the previous values.
/// Returns `None` if a value must not be absent.
#[inline(always)]
pub(super) fn masks(plan: &Plan, flags: &Flags, given: u64) -> Option<Masks> {
    let assigned = flags.assigned >> plan.shift;
    let outside = flags.outside >> plan.shift;
    let mut absent = plan.without & !given;
    let is_steady = plan.kept & (!assigned | outside) == 0;
    if !is_steady {
        let empty = flags.empty >> plan.shift;
        let implied = plan.implied & !given;
        let gone = implied & !(assigned | plan.initial & !empty);
        let lost = gone & !plan.optional
            | plan.delta & empty
            | (implied | plan.delta) & assigned & outside;
        if lost != 0 {
            return None;
        }
        absent |= gone;
    }
    absent |= (absent & plan.leads) << 1;
    Some(Masks {
        stream: given & plan.bit_stream | plan.always | (plan.leads & !absent) << 1,
        absent,
        previous: assigned & plan.kept | plan.others,
        add: plan.increment & !given & assigned,
        is_steady,
    })
}

/// Returns the masks by a presence map if all previous values are there.
#[inline(always)]
pub(super) fn steady(plan: &Plan, given: u64) -> Masks {
    let absent = plan.without & !given;
    let absent = absent | (absent & plan.leads) << 1;
    Masks {
        stream: given & plan.bit_stream | plan.always | (plan.leads & !absent) << 1,
        absent,
        previous: plan.kept | plan.others,
        add: plan.increment & !given,
        is_steady: true,
    }
}

/// Sets the states of the lanes after a segment.
#[inline(always)]
pub(super) fn keep(plan: &Plan, flags: &mut Flags, masks: &Masks, nulls: u64) {
    if masks.is_steady && nulls & plan.implied == 0 {
        return;
    }
    let absent = masks.absent | nulls;
    let set = plan.implied & !absent | plan.delta & masks.stream & !nulls;
    let clear = (plan.implied & absent) << plan.shift;
    let set = set << plan.shift;
    flags.assigned = (flags.assigned | set) & !clear;
    flags.empty = flags.empty & !set | clear;
    flags.outside &= !(set | clear);
}

/// Returns the next eight bytes, the first one lowest, with zeros after the end.
#[inline(always)]
pub(super) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    match rest.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => short_word(rest),
    }
}

#[cold]
#[inline(never)]
fn short_word(rest: &[u8]) -> u64 {
    let each = rest.iter().rev();
    each.fold(0, |word, byte| word << 8 | u64::from(*byte))
}
