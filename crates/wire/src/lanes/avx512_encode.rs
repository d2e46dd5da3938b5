//! Encoding: the way of `avx512` backwards. The values of a row are held against what a decoder
//! would take for them; what differs is written.

use super::avx512::{forwarded, store, vector};
use super::columns::{Block, Flags, Vector};
use super::{Columns, MAX_ENCODED, Plan, Row};
use core::arch::x86_64::*;

/// For each byte of an entity, first one first, where its seven bits are in two lanes.
const SHIFTS: i64 = 0x2027_2e35_0007_0e15;

/// What is known of a segment from the states of its lanes.
pub(super) struct Masks {
    pub(super) present: u64,
    /// There is something that a decoder would take without the value in the stream.
    have: u64,
    pub(super) previous: u64,
    /// A decoder would take one more.
    pub(super) add: u64,
}

/// What is to be written.
pub(super) struct Written {
    pub(super) stream: u64,
    pub(super) bits: u64,
}

/// Encodes a segment, with its presence map and `front`: the number of bytes; 0, with nothing
/// changed but `to`, where it is not regular.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode(
    plan: &Plan,
    columns: &mut Columns,
    row: &Row,
    front: u32,
    to: &mut [u8; MAX_ENCODED],
) -> usize {
    let done = match plan.groups {
        1 => encode_groups::<1>(plan, columns, row, front, to),
        _ => encode_groups::<2>(plan, columns, row, front, to),
    };
    done.unwrap_or(0)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
fn encode_groups<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    row: &Row,
    front: u32,
    to: &mut [u8; MAX_ENCODED],
) -> Option<usize> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
    let masks = masks(plan, flags, row.present)?;
    let (mut entities, mut kept) = ([_mm512_setzero_si512(); G], [_mm512_setzero_si512(); G]);
    let (mut equal, mut bad) = (0, 0);
    for group in 0..G {
        let of = |mask: u64| (mask >> (16 * group)) as u16;
        let present = of(masks.present);
        let value = load(&row.values, 16 * group)?;
        let old = forwarded(&values[group]);
        let initial = vector(&plan.initials[group]);
        let base = _mm512_mask_mov_epi32(initial, of(masks.previous), old);
        let ones = _mm512_set1_epi32(-1);
        let expected = _mm512_mask_sub_epi32(base, of(masks.add), base, ones);
        bad |= beyond(plan, group, of(masks.add), expected);
        equal |= u64::from(_mm512_cmpeq_epi32_mask(value, expected)) << (16 * group);
        kept[group] = _mm512_mask_mov_epi32(old, present, value);
        let difference = of(plan.delta);
        let entity = _mm512_maskz_mov_epi32(present, value);
        let entity = _mm512_mask_sub_epi32(entity, present & difference, entity, base);
        let zero = _mm512_setzero_si512();
        // An empty string that could be absent has a form of its own.
        let text = present & of(plan.text & plan.optional);
        bad |= _mm512_mask_cmpeq_epi32_mask(text, entity, zero);
        let nullable = of(plan.nullable) & present;
        let more = _mm512_mask_cmpge_epi32_mask(nullable, entity, zero);
        entities[group] = _mm512_mask_sub_epi32(entity, more, entity, ones);
    }
    let written = written(plan, &masks, equal);
    let mut at = map(plan, &written, front, to);
    for (group, entity) in entities.iter().enumerate() {
        let of = |mask: u64| (mask >> (16 * group)) as u16;
        let (bytes, keep, long) = bytes(*entity, of(plan.signed));
        bad |= long & of(written.stream);
        let lanes = _pdep_u64(of(written.stream).into(), 0x1111_1111_1111_1111).wrapping_mul(15);
        let keep = keep & lanes;
        let packed = _mm512_maskz_compress_epi8(keep, bytes);
        let place = to.get_mut(at..at + 64)?;
        // SAFETY: the place has 64 bytes.
        unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), packed) };
        at += keep.count_ones() as usize;
    }
    if bad != 0 {
        return None;
    }
    for (to, value) in values.iter_mut().zip(kept) {
        store(&mut to.0, value);
    }
    commit(plan, flags, masks.present);
    Some(at)
}

/// What the states say; `None` if a previous value is not in its column, or a difference has no
/// base.
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

/// Which lanes are in the stream, and the presence bits: a field is left out where a decoder
/// would take the same without it.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn written(plan: &Plan, masks: &Masks, equal: u64) -> Written {
    let same = !(masks.present ^ masks.have) & (equal | !masks.present);
    let sent = plan.bit_stream & !same;
    let given = sent | plan.constant & masks.present;
    Written {
        stream: sent | plan.always | (plan.leads & masks.present) << 1,
        bits: _pext_u64(given, plan.bit),
    }
}

/// Writes the presence map, and what else is in front: in `front`, bit 8 says that there is a
/// template identifier, the lower bits are it, with its stop bit.
#[inline]
#[target_feature(enable = "avx512f,gfni,bmi2,lzcnt")]
fn map(plan: &Plan, written: &Written, front: u32, to: &mut [u8; MAX_ENCODED]) -> usize {
    let first = u64::from(front >> 8);
    let bits = written.bits << plan.skipped_bits | first;
    let len = ((70 - (bits | 1).leading_zeros()) / 7) as usize;
    let bits = _pdep_u64(bits, 0xfefe_fefe_fefe_fefe) | 1 << (8 * (len - 1));
    let turned = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_gf2p8affine_epi64_epi8::<0>(_mm_cvtsi64_si128(bits as i64), turned);
    let bytes = _mm_cvtsi128_si64(bytes) as u64;
    // The identifier goes behind the map.
    let bytes = bytes | u64::from(front & 0xff) << (8 * (len & 7));
    to[..8].copy_from_slice(&bytes.to_le_bytes());
    len + first as usize
}

/// Sixteen entities in four bytes each, first byte first; the bytes that say something; and the
/// lanes that have more.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn bytes(entity: __m512i, signed: u16) -> (__m512i, u64, u16) {
    let shifts = _mm512_set1_epi64(SHIFTS);
    let sevens = _mm512_and_si512(
        _mm512_multishift_epi64_epi8(shifts, entity),
        _mm512_set1_epi8(0x7f),
    );
    let bytes = _mm512_or_si512(sevens, _mm512_set1_epi32(1 << 31));
    let size = match signed {
        0 => entity,
        _ => {
            // The bits that differ from the sign, and one for it.
            let magnitude = _mm512_xor_si512(entity, _mm512_srai_epi32::<31>(entity));
            _mm512_mask_slli_epi32::<1>(entity, signed, magnitude)
        }
    };
    let long = _mm512_cmpge_epu32_mask(size, _mm512_set1_epi32(1 << 28));
    let sizes = _mm512_multishift_epi64_epi8(shifts, size);
    let some = _mm512_test_epi8_mask(sizes, _mm512_set1_epi8(0x7f));
    let keep = some | some << 1 & 0xeeee_eeee_eeee_eeee;
    let keep = keep | keep << 2 & 0xcccc_cccc_cccc_cccc;
    (bytes, keep | 0x8888_8888_8888_8888, long)
}

/// The lanes whose expected value is beyond their type, where it begins again.
#[inline]
#[target_feature(enable = "avx512f")]
fn beyond(plan: &Plan, group: usize, lanes: u16, expected: __m512i) -> u16 {
    if plan.increment == 0 {
        return 0;
    }
    let above = _mm512_sub_epi32(expected, vector(&plan.low[group]));
    _mm512_mask_cmpgt_epu32_mask(lanes, above, vector(&plan.range[group]))
}

/// Notes the new states.
#[inline(always)]
pub(super) fn commit(plan: &Plan, flags: &mut Flags, present: u64) {
    let set = (plan.kept & present) << plan.shift;
    let clear = (plan.implied & !present) << plan.shift;
    flags.assigned = (flags.assigned | set) & !clear;
    flags.empty = flags.empty & !set | clear;
    flags.outside &= !(set | clear);
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[i32], at: usize) -> Option<__m512i> {
    let sixteen = values.get(at..at + 16)?;
    // SAFETY: there are 64 bytes.
    Some(unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) })
}
