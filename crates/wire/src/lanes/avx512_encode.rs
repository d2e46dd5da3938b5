//! Encoding, as the reverse of `avx512`. The values of a row are compared with those that a decoder
//! would take, and the ones that differ are written.

use super::avx512::{forwarded, store, vector};
use super::columns::{Block, Vector};
use super::encode::{Masks, Room, commit, masks, plain_masks, put, room, written};
use super::{Columns, Plan, Row};
use core::arch::x86_64::*;
use core::hint::black_box;
use core::mem::MaybeUninit;

/// The position of the seven bits of each byte of an entity in two lanes, the first byte first.
const SHIFTS: i64 = 0x2027_2e35_0007_0e15;

/// Encodes segments of the same plan, each with its presence map and the first one with `front`,
/// after the end of `out`, and returns their number. Stops before the first segment that is not
/// regular, with nothing of it written. `PLAIN` is for plain plans with all values.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn encode<const G: usize, const PLAIN: bool>(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> usize {
    // SAFETY: this function has the instructions.
    unsafe { segments::<G, PLAIN>(plan, columns, rows, front, out) }.unwrap_or(0)
}

#[inline(always)]
unsafe fn segments<const G: usize, const PLAIN: bool>(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
    let mut done = 0;
    // SAFETY: the caller has the instructions, and so many bytes have been written.
    unsafe {
        let mut vectors = [_mm512_setzero_si512(); G];
        for (vector, values) in vectors.iter_mut().zip(&*values) {
            *vector = forwarded(values);
        }
        while let Some(row) = rows.get(done) {
            // Otherwise all of the plan is read in advance, only to be put aside again.
            let plan = black_box(plan);
            let masks = match PLAIN {
                true => plain_masks(plan, flags, row.present),
                false => masks(plan, flags, row.present),
            };
            let (Some(masks), Some(room)) = (masks, room(out)) else {
                break;
            };
            let done_as = segment::<G, PLAIN>;
            let Some((results, len)) = done_as(plan, &masks, row, &vectors, front, room) else {
                break;
            };
            vectors = results;
            if !PLAIN {
                commit(plan, flags, masks.present);
            }
            out.set_len(out.len() + len);
            done += 1;
        }
        for (to, vector) in values.iter_mut().zip(vectors) {
            store(&mut to.0, vector);
        }
    }
    Some(done)
}

/// Writes a segment. Returns the columns after it and the number of its bytes, or `None` if it is
/// not regular. `vectors` are the columns before it.
#[inline(always)]
unsafe fn segment<const G: usize, const PLAIN: bool>(
    plan: &Plan,
    masks: &Masks,
    row: &Row,
    vectors: &[__m512i; G],
    front: u32,
    room: &mut Room,
) -> Option<([__m512i; G], usize)> {
    let (mut entities, mut kept) = (*vectors, *vectors);
    let (mut equal, mut bad) = (0, 0);
    // SAFETY: the caller has the instructions.
    unsafe {
        for group in 0..G {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            let present = of(masks.present);
            let value = load(&row.values, 16 * group)?;
            let old = vectors[group];
            let base = match PLAIN {
                true => old,
                false => {
                    let initial = vector(&plan.initials[group]);
                    _mm512_mask_mov_epi32(initial, of(masks.previous), old)
                }
            };
            let ones = _mm512_set1_epi32(-1);
            let expected = _mm512_mask_sub_epi32(base, of(masks.add), base, ones);
            bad |= beyond(plan, group, of(masks.add), expected);
            equal |= u64::from(_mm512_cmpeq_epi32_mask(value, expected)) << (16 * group);
            kept[group] = _mm512_mask_mov_epi32(old, present, value);
            if PLAIN {
                entities[group] = value;
                continue;
            }
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
        let (given, stream) = written(plan, masks, equal);
        let mut at = map(plan, given, front, room);
        for (group, entity) in entities.into_iter().enumerate() {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            let (bytes, keep, long) = bytes(entity, if PLAIN { 0 } else { of(plan.signed) });
            bad |= long & of(stream);
            at += pack(bytes, keep, of(stream), room.get_mut(at..)?)?;
        }
        (bad == 0).then_some((kept, at))
    }
}

/// Writes the bytes of sixteen entities that are in `keep` and whose lanes are in the stream, and
/// returns their number.
#[inline(always)]
unsafe fn pack(
    bytes: __m512i,
    keep: u64,
    stream: u16,
    to: &mut [MaybeUninit<u8>],
) -> Option<usize> {
    let place = to.first_chunk_mut::<64>()?;
    // SAFETY: the caller has the instructions, and the place 64 bytes.
    unsafe {
        let lanes = _pdep_u64(stream.into(), 0x1111_1111_1111_1111).wrapping_mul(15);
        let packed = _mm512_maskz_compress_epi8(keep & lanes, bytes);
        _mm512_storeu_si512(place.as_mut_ptr().cast(), packed);
        Some((keep & lanes).count_ones() as usize)
    }
}

/// Writes the presence map and the template identifier after it, and returns the number of bytes.
/// `front` has up to three bytes of the identifier, the first one lowest, and their number above
/// them.
#[inline]
#[target_feature(enable = "avx512f,gfni,bmi2,lzcnt")]
fn map(plan: &Plan, given: u64, front: u32, room: &mut Room) -> usize {
    let first = u64::from(front != 0);
    let bits = _pext_u64(given, plan.bit) << plan.skipped_bits | first;
    let len = ((70 - (bits | 1).leading_zeros()) / 7) as usize;
    let bits = _pdep_u64(bits, 0xfefe_fefe_fefe_fefe) | 1 << (8 * (len - 1));
    let turned = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_gf2p8affine_epi64_epi8::<0>(_mm_cvtsi64_si128(bits as i64), turned);
    let bytes = _mm_cvtsi128_si64(bytes) as u64;
    // The identifier goes behind the map, which has five bytes at most.
    let bytes = bytes | u64::from(front & 0x00ff_ffff) << (8 * (len & 7));
    if let Some(place) = room.first_chunk_mut() {
        put(place, bytes.to_le_bytes());
    }
    // Never more bytes than have been written, whatever the caller passes.
    len + (front >> 24 & 3) as usize
}

/// Returns sixteen entities in four bytes each, first byte first, the significant bytes, and the
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
    (bytes, from_first(some), long)
}

/// Returns, of four bytes each, those from the first marked one on. The last one is always among
/// them.
#[inline(always)]
const fn from_first(marks: u64) -> u64 {
    let keep = marks | marks << 1 & 0xeeee_eeee_eeee_eeee;
    keep | keep << 2 & 0xcccc_cccc_cccc_cccc | 0x8888_8888_8888_8888
}

/// Returns the lanes whose expected value is beyond their type, where it starts again.
#[inline]
#[target_feature(enable = "avx512f")]
fn beyond(plan: &Plan, group: usize, lanes: u16, expected: __m512i) -> u16 {
    if plan.increment == 0 {
        return 0;
    }
    let above = _mm512_sub_epi32(expected, vector(&plan.low[group]));
    _mm512_mask_cmpgt_epu32_mask(lanes, above, vector(&plan.range[group]))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[i32], at: usize) -> Option<__m512i> {
    let sixteen = values.get(at..at + 16)?;
    // SAFETY: there are 64 bytes.
    Some(unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) })
}
