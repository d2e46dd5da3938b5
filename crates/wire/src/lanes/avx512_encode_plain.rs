//! The shortest way to encode: one segment of the plainest kind, all of whose previous values are
//! there, as `avx512` decodes it. Whatever is out of the ordinary is left to
//! `avx512_encode`.

use super::avx512::{forwarded, store, vector};
use super::avx512_encode::{SHIFTS, from_first, load, map, pack};
use super::columns::{Block, Vector};
use super::encode::room;
use super::{Columns, Plan, Row};
use core::arch::x86_64::*;

/// Encodes a segment of a plain plan, with its presence map and `front`, behind the end of `out`;
/// or leaves everything as it is.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    row: &Row,
    front: u32,
    out: &mut Vec<u8>,
) -> bool {
    // SAFETY: this function has the instructions.
    unsafe { segment::<G>(plan, columns, row, front, out) }.is_some()
}

#[inline(always)]
unsafe fn segment<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    row: &Row,
    front: u32,
    out: &mut Vec<u8>,
) -> Option<()> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
    let ready = (flags.assigned & !flags.outside) >> plan.shift;
    if plan.kept & !ready | plan.all & !row.present != 0 {
        return None;
    }
    let room = room(out)?;
    let mut bad = 0;
    // SAFETY: the caller has the instructions, and so many bytes have been written.
    unsafe {
        let (mut entities, mut kept) = ([_mm512_setzero_si512(); G], [_mm512_setzero_si512(); G]);
        let mut differ = 0;
        for group in 0..G {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            let value = load(&row.values, 16 * group)?;
            let old = forwarded(&values[group]);
            let (increment, ones) = (of(plan.increment), _mm512_set1_epi32(-1));
            let expected = _mm512_mask_sub_epi32(old, increment, old, ones);
            // All begin with 0.
            let range = vector(&plan.range[group]);
            bad |= _mm512_mask_cmpgt_epu32_mask(increment, expected, range);
            differ |= u64::from(_mm512_cmpneq_epi32_mask(value, expected)) << (16 * group);
            kept[group] = _mm512_mask_mov_epi32(old, of(plan.all), value);
            entities[group] = value;
        }
        let given = differ & plan.bit;
        let stream = given | plan.always;
        let mut at = map(plan, given, front, room);
        for (group, entity) in entities.into_iter().enumerate() {
            let stream = (stream >> (16 * group)) as u16;
            let limit = _mm512_set1_epi32(1 << 28);
            bad |= _mm512_mask_cmpge_epu32_mask(stream, entity, limit);
            let shifts = _mm512_set1_epi64(SHIFTS);
            let shifted = _mm512_multishift_epi64_epi8(shifts, entity);
            let sevens = _mm512_and_si512(shifted, _mm512_set1_epi8(0x7f));
            let bytes = _mm512_or_si512(sevens, _mm512_set1_epi32(1 << 31));
            let keep = from_first(_mm512_test_epi8_mask(sevens, sevens));
            at += pack(bytes, keep, stream, room.get_mut(at..)?)?;
        }
        if bad != 0 {
            return None;
        }
        for (to, vector) in values.iter_mut().zip(kept) {
            store(&mut to.0, vector);
        }
        out.set_len(out.len() + at);
    }
    Some(())
}
