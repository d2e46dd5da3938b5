//! Decoding of a segment of a plain plan, all of whose previous values are there: up to 32 lanes at
//! once, sixteen in a vector. The order of the instructions lets as little as possible wait, so
//! that several messages are under way at once. All other segments are left to `avx2`.
//!
//! The processor overlaps the work on several segments, as far as their instructions fit into its
//! window. Few instructions are therefore worth more here than short paths, except for the path to
//! the end of the segment, where the next one begins.

use super::columns::{Block, Vector};
use super::{Columns, Front, Plan, Row};
use core::arch::x86_64::*;

/// The indexes `0, 1, 2, …`.
const IOTA: Bytes = bytes(Pattern::Index);
/// The distance of each byte from the end of its entity. The last byte comes first.
const BACK: Bytes = bytes(Pattern::Back);
/// The indexes `1, 2, 3, …`.
pub(super) const NEXT: Bytes = bytes(Pattern::Next);
/// The distance of each byte from the position after its entity. The last byte comes first.
pub(super) const NEARER: Bytes = bytes(Pattern::Nearer);
/// The number of a stop bit for each byte of sixteen entities. The first entity has the number that
/// is the index in this array.
const ENDS: [Bytes; 3] = [
    bytes(Pattern::Before(0)),
    bytes(Pattern::Before(1)),
    bytes(Pattern::Before(2)),
];

/// A bit matrix that copies a byte without its stop bit.
pub(super) const SEVENS: i64 = 0x0102_0408_1020_4000;

#[repr(align(64))]
pub(super) struct Bytes([u8; 64]);

#[derive(Clone, Copy)]
enum Pattern {
    Index,
    Before(usize),
    Back,
    Next,
    Nearer,
}

const fn bytes(pattern: Pattern) -> Bytes {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = match pattern {
            Pattern::Index => i,
            Pattern::Before(first) => first + i / 4,
            Pattern::Back => i % 4,
            Pattern::Next => i + 1,
            Pattern::Nearer => i % 4 + 1,
        } as u8;
        i += 1;
    }
    Bytes(all)
}

/// Returns whether this processor has the instructions of the lanes that [`crate::Kernel::Avx512`]
/// does not require.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("lzcnt")
}

/// Decodes a segment of a plain plan after this front. Returns its length with the front, or 0 if
/// it is not decoded. The arguments and the result are passed in registers.
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
    let Front { map, has_id } = front;
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
    last.trailing_zeros() as usize + 1
}

/// Returns the values of the lanes, or `None` if one is too large. `values` are the previous ones.
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
        let end = _mm512_permutexvar_epi8(constant(&ENDS[front + 1]), ends);
        let before = _mm512_permutexvar_epi8(constant(&ENDS[front]), ends);
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

/// Returns the first 64 bytes, with zeros after the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn block(rest: &[u8]) -> __m512i {
    match rest.first_chunk::<64>() {
        // SAFETY: there are 64 bytes.
        Some(all) => unsafe { _mm512_loadu_si512(all.as_ptr().cast()) },
        None => {
            let mask = _bzhi_u64(u64::MAX, rest.len() as u32);
            // SAFETY: only bytes of the slice are read.
            unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) }
        }
    }
}

/// Returns the mask of the bytes that begin a run of four bytes without a stop bit.
#[inline(always)]
pub(super) const fn long(stops: u64) -> u64 {
    let pairs = !stops & !stops >> 1;
    pairs & pairs >> 2
}

/// Returns the bits of a presence map, the first one lowest.
#[inline]
#[target_feature(enable = "avx512f,bmi2,gfni")]
pub(super) fn map_bits(map: u64) -> u64 {
    // The lowest bit of each turned byte is the stop bit.
    _pext_u64(turned(map), 0xfefe_fefe_fefe_fefe)
}

/// Returns the bytes, each with its bits in reverse order.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn turned(map: u64) -> u64 {
    // The identity with its rows turned round.
    let rows = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_gf2p8affine_epi64_epi8::<0>(_mm_cvtsi64_si128(map as i64), rows);
    _mm_cvtsi128_si64(bytes) as u64
}

/// Returns integers of four signed digits of seven bits each, the last digit first.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn sum(sevens: __m512i) -> __m512i {
    let fourteens = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), sevens);
    _mm512_madd_epi16(fourteens, _mm512_set1_epi32(1 << 30 | 1))
}

/// Returns the lanes whose value is out of the range of their type.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn out_of_range(plan: &Plan, group: usize, value: __m512i) -> __mmask16 {
    let above = _mm512_sub_epi32(value, vector(&plan.low[group]));
    _mm512_cmpgt_epu32_mask(above, vector(&plan.range[group]))
}

/// Returns the bytes of a mask, moved together, with zeros after them. Zen 5 waits for the last
/// content of the register even if zeros replace it. The zeros therefore come from a place that the
/// compiler does not know to be zero.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(super) fn compressed(mask: u64, bytes: __m512i) -> __m512i {
    static ZEROS: Vector = Vector([0; 16]);
    _mm512_mask_compress_epi8(forwarded(&ZEROS), mask, bytes)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn constant(bytes: &Bytes) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment.
    unsafe { _mm512_load_si512(bytes.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn vector(values: &Vector) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment.
    unsafe { _mm512_load_si512(values.0.as_ptr().cast()) }
}

/// Returns columns that may have been stored a moment ago. A plain load takes its value from a
/// store that is still under way. A masked load, which the compiler would make of a load and a
/// blend, waits for the end of the store.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn forwarded(values: &Vector) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment, and nobody else writes to it.
    unsafe { core::ptr::read_volatile(values.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [i32; 16], value: __m512i) {
    // SAFETY: it has 64 bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) };
}
