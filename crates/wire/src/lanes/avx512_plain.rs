//! The shortest way: one segment of the plainest kind, all of whose previous values are there. It
//! does what `avx512` does, without what the plan and the states rule out: so that several
//! messages fit into the processor's window at once. Whatever is out of the ordinary it leaves to
//! `avx512`, which finds out whether it is regular.

use super::avx512::{
    BACK, BEFORE, END, IOTA, constant, forwarded, joined, map_bits, out_of_range, store,
};
use super::columns::{Block, Vector};
use super::{Columns, Front, Plan, Row};
use core::arch::x86_64::*;

/// Decodes a segment of a plain plan that begins with its presence map: its length with what is
/// in front, 0 where it is not done. Arguments and result are such as go in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    front: Front,
    row: &mut Row,
) -> usize {
    let Some(Block { flags, values }) = columns.blocks.get_mut(plan.block as usize) else {
        return 0;
    };
    let values = values.get_mut(plan.first()..).unwrap_or_default();
    let Some(values): Option<&mut [Vector; G]> = values.first_chunk_mut() else {
        return 0;
    };
    let ready = (flags.assigned & !flags.outside) >> plan.shift;
    let (block, word) = match bytes.first_chunk::<64>() {
        // SAFETY: there are 64 bytes.
        Some(all) => unsafe {
            let word = all.as_ptr().cast::<u64>().read_unaligned();
            (_mm512_loadu_si512(all.as_ptr().cast()), word)
        },
        None => {
            let mask = _bzhi_u64(u64::MAX, bytes.len() as u32);
            // SAFETY: only bytes of the slice are read.
            let block = unsafe { _mm512_maskz_loadu_epi8(mask, bytes.as_ptr().cast()) };
            (
                block,
                _mm_cvtsi128_si64(_mm512_castsi512_si128(block)) as u64,
            )
        }
    };
    let map = _bzhi_u64(word, 8 * u32::from(front.map_len));
    let bits = map_bits(map) >> plan.skipped_bits;
    let given = _pdep_u64(bits, plan.bit);
    let stream = given | plan.always;
    // As in `avx512`, the shortest way to the end of the segment.
    let count = plan.always_count + (map & plan.counted[0]).count_ones();
    let before = 1_u64 << (front.len.wrapping_sub(1) & 63);
    let stops = (_mm512_movepi8_mask(block) | before) & before.wrapping_neg();
    let last = _pdep_u64(1 << (count & 63), stops);
    let stops = stops & _blsmsk_u64(last);
    let zeros = _mm512_testn_epi8_mask(block, block);
    let odd = zeros & ((stops ^ last) << 1);
    if (plan.kept & !ready) | odd != 0 || last == 0 || (G == 2 && count > 16) {
        return 0;
    }
    // SAFETY: this function has the instructions.
    let results = unsafe { read(plan, block, stops, (stream, given), values) };
    let Some(results) = results else {
        return 0;
    };
    let (chunks, _) = row.values.as_chunks_mut();
    for ((values, result), to) in values.iter_mut().zip(results).zip(chunks) {
        store(&mut values.0, result);
        store(to, result);
    }
    row.present = plan.all;
    row.bits = bits >> plan.bit_count;
    last.trailing_zeros() as usize + 1
}

/// The values of the lanes, of which `values` are the previous ones; `None` if one is too large.
#[inline(always)]
unsafe fn read<const G: usize>(
    plan: &Plan,
    block: __m512i,
    stops: u64,
    (stream, given): (u64, u64),
    values: &[Vector; G],
) -> Option<[__m512i; G]> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let ends = _mm512_maskz_compress_epi8(stops, constant(&IOTA));
        let end = _mm512_permutexvar_epi8(constant(&END[0]), ends);
        let before = _mm512_permutexvar_epi8(constant(&BEFORE[0]), ends);
        let index = _mm512_sub_epi8(end, constant(&BACK));
        let valid = _mm512_cmpgt_epi8_mask(index, before);
        let fifth = _mm512_sub_epi8(end, _mm512_set1_epi8(4));
        let mut bad = _mm512_cmpgt_epi8_mask(fifth, before);
        let mut entities = joined(_mm512_maskz_permutexvar_epi8(valid, index, block));
        let mut results = [_mm512_setzero_si512(); G];
        for (group, result) in results.iter_mut().enumerate() {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            if group == 1 {
                let passed = (stream as u16).count_ones() as i32;
                let numbers = _mm512_cvtepi8_epi32(_mm512_castsi512_si128(constant(&IOTA)));
                let index = _mm512_add_epi32(numbers, _mm512_set1_epi32(passed));
                entities = _mm512_permutexvar_epi32(index, entities);
            }
            let previous = forwarded(&values[group]);
            let added = of(plan.increment & !given);
            let ones = _mm512_set1_epi32(-1);
            let next = _mm512_mask_sub_epi32(previous, added, previous, ones);
            *result = _mm512_mask_expand_epi32(next, of(stream), entities);
            bad |= u64::from(out_of_range(plan, group, *result));
        }
        (bad == 0).then_some(results)
    }
}
