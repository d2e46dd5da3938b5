//! The shortest way: one segment of the plainest kind, all of whose previous values are there. It
//! does what `avx512` does, without what the plan and the states rule out, and in an order in which
//! as little as possible waits for anything: so that several messages are under way at once.
//! Whatever is out of the ordinary it leaves to `avx512`, which finds out whether it is regular.

use super::avx512::{
    BACK, Bytes, IOTA, Pattern, SEVENS, block, bytes, constant, forwarded, long, store, sum,
    turned, vector,
};
use super::columns::{Block, Vector};
use super::{Columns, MapFront, Plan, Row};
use core::arch::x86_64::*;

/// For each byte of sixteen entities, the number of a stop bit: of the first entity that of this
/// index.
const STOPS: [Bytes; 3] = [
    bytes(Pattern::Before(0)),
    bytes(Pattern::Before(1)),
    bytes(Pattern::Before(2)),
];

/// Decodes a segment of a plain plan behind this front: its length with what is in front, 0 where
/// it is not done. Arguments and result are such as go in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    front: MapFront,
    row: &mut Row,
) -> usize {
    let Some(Block { flags, values }) = columns.blocks.get_mut(plan.block as usize) else {
        return 0;
    };
    let MapFront { map, has_id } = front;
    let block = block(bytes);
    let stops = _mm512_movepi8_mask(block);
    let entities = plan.always_count + (map & plan.counted[0]).count_ones();
    let last = _pdep_u64(1 << ((entities + u32::from(has_id)) & 63), stops);
    // Those of map and identifier are no harm: behind them there is one more at least.
    let firsts = (stops & last.wrapping_sub(1)) << 1;
    let zeros = _mm512_testn_epi8_mask(block, block);
    let odd = (zeros | long(stops)) & firsts | map & plan.excess;
    let ready = (flags.assigned & !flags.outside) >> plan.shift;
    if (plan.kept & !ready) | odd != 0 || last == 0 || (G == 2 && entities > 16) {
        return 0;
    }
    let bits = _pext_u64(turned(map), plan.turned_bits);
    let given = _pdep_u64(bits, plan.bit);
    let stream = given | plan.always;
    // SAFETY: this function has the instructions.
    let results = unsafe { read::<G>(plan, block, (stream, given), has_id, values) };
    let Some(results) = results else {
        return 0;
    };
    let (chunks, _) = row.values.as_chunks_mut();
    for ((group, result), to) in results.into_iter().enumerate().zip(chunks) {
        store(&mut values[(plan.first() + group) % 4].0, result);
        store(to, result);
    }
    row.present = plan.all;
    row.bits = 0;
    last.trailing_zeros() as usize + 1
}

/// The values of the lanes, of which `values` are the previous ones; `None` if one is too large.
#[inline(always)]
unsafe fn read<const G: usize>(
    plan: &Plan,
    block: __m512i,
    (stream, given): (u64, u64),
    has_id: bool,
    values: &[Vector; 4],
) -> Option<[__m512i; G]> {
    // SAFETY: the caller has the instructions.
    unsafe {
        // Behind those of the segment there may be others, which no lane takes.
        let ends = _mm512_maskz_compress_epi8(_mm512_movepi8_mask(block), constant(&IOTA));
        let front = usize::from(has_id);
        let end = _mm512_permutexvar_epi8(constant(&STOPS[front + 1]), ends);
        let before = _mm512_permutexvar_epi8(constant(&STOPS[front]), ends);
        let index = _mm512_sub_epi8(end, constant(&BACK));
        let valid = _mm512_cmpgt_epi8_mask(index, before);
        let bytes = _mm512_permutexvar_epi8(index, block);
        let sevens = _mm512_set1_epi64(SEVENS);
        let mut entities = sum(_mm512_maskz_gf2p8affine_epi64_epi8::<0>(
            valid, bytes, sevens,
        ));
        let mut results = [_mm512_setzero_si512(); G];
        let mut beyond = 0;
        for (group, result) in results.iter_mut().enumerate() {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            if group == 1 {
                let passed = (stream as u16).count_ones() as i32;
                let numbers = _mm512_cvtepi8_epi32(_mm512_castsi512_si128(constant(&IOTA)));
                let index = _mm512_add_epi32(numbers, _mm512_set1_epi32(passed));
                entities = _mm512_permutexvar_epi32(index, entities);
            }
            let previous = forwarded(&values[(plan.first() + group) % 4]);
            let added = of(plan.increment & !given);
            let ones = _mm512_set1_epi32(-1);
            let next = _mm512_mask_sub_epi32(previous, added, previous, ones);
            *result = _mm512_mask_expand_epi32(next, of(stream), entities);
            // All begin with 0.
            beyond |= _mm512_cmpgt_epu32_mask(*result, vector(&plan.range[group]));
        }
        (beyond == 0).then_some(results)
    }
}
