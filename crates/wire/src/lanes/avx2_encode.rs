//! Encoding as in `avx512_encode`, eight lanes at once, and the bytes of two entities at once.
//!
//! As in `avx2`, functions are always inlined, and rely on the instructions of their callers.

use super::avx2::{EIGHT, half_of, in_range, load, save, spread};
use super::columns::Block;
use super::encode::{Masks, Room, commit, masks, put, room, written};
use super::{Columns, MAX_ENCODED, MAX_LANES, Plan, Row};
use core::arch::x86_64::*;
use core::hint::black_box;

/// Encodes segments of the same plan, each with its presence map and the first one with `front`,
/// after the end of `out`, and returns their number. Stops before the first segment that is not
/// regular, with nothing of it written.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(super) fn encode(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> usize {
    // SAFETY: this function has the instructions.
    let done = unsafe {
        match plan.eights {
            ..=1 => segments::<1>(plan, columns, rows, front, out),
            2 => segments::<2>(plan, columns, rows, front, out),
            3 => segments::<3>(plan, columns, rows, front, out),
            4.. => segments::<4>(plan, columns, rows, front, out),
        }
    };
    done.unwrap_or(0)
}

#[inline(always)]
unsafe fn segments<const E: usize>(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> Option<usize> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values = values.get_mut(plan.first()..plan.first() + E.div_ceil(2))?;
    let mut done = 0;
    // SAFETY: the caller has the instructions, and so many bytes have been written.
    unsafe {
        let mut vectors = load::<E>(values)?;
        while let Some(row) = rows.get(done) {
            // Otherwise all of the plan is read in advance, only to be put aside again.
            let plan = black_box(plan);
            let (Some(masks), Some(room)) = (masks(plan, flags, row.present), room(out)) else {
                break;
            };
            let Some((results, len)) = segment(plan, &masks, row, &vectors, front, room) else {
                break;
            };
            vectors = results;
            commit(plan, flags, masks.present);
            out.set_len(out.len() + len);
            done += 1;
        }
        save(values, &vectors);
    }
    Some(done)
}

/// Writes a segment. Returns the columns after it and the number of its bytes, or `None` if it is
/// not regular. `vectors` are the columns before it.
#[inline(always)]
unsafe fn segment<const E: usize>(
    plan: &Plan,
    masks: &Masks,
    row: &Row,
    vectors: &[__m256i; E],
    front: u32,
    room: &mut Room,
) -> Option<([__m256i; E], usize)> {
    let (mut entities, mut kept, mut equal) = (*vectors, *vectors, 0);
    // SAFETY: the caller has the instructions.
    unsafe {
        let mut bad = _mm256_setzero_si256();
        for eight in 0..E {
            let lanes = Lanes::new(plan, masks, row, eight, vectors[eight])?;
            let same = _mm256_cmpeq_epi32(lanes.value, lanes.expected);
            let same = _mm256_movemask_ps(_mm256_castsi256_ps(same));
            equal |= u64::from(same as u32) << (EIGHT * eight);
            kept[eight] = _mm256_blendv_epi8(vectors[eight], lanes.value, lanes.present);
            entities[eight] = lanes.entity;
            bad = _mm256_or_si256(bad, lanes.bad);
        }
        let (given, stream) = written(plan, masks, equal);
        let mut at = map(plan, given, front, room);
        for (eight, entity) in entities.into_iter().enumerate() {
            let lanes = spread(stream >> (EIGHT * eight));
            let mut size = entity;
            if plan.signed != 0 {
                // The bits that differ from the sign, and one for it.
                let magnitude = _mm256_xor_si256(entity, _mm256_srai_epi32::<31>(entity));
                let signed = half_of(&plan.wide.signed, eight)?;
                size = _mm256_blendv_epi8(entity, _mm256_slli_epi32::<1>(magnitude), signed);
            }
            let long = _mm256_and_si256(_mm256_srli_epi32::<28>(size), lanes);
            bad = _mm256_or_si256(bad, long);
            at = pack(
                bytes(entity),
                _mm256_and_si256(wanted(size), lanes),
                room,
                at,
            );
        }
        (_mm256_testz_si256(bad, bad) != 0).then_some((kept, at))
    }
}

/// Eight lanes with the values that a decoder would take.
struct Lanes {
    present: __m256i,
    value: __m256i,
    expected: __m256i,
    /// The entities of the lanes, as they would be in the stream.
    entity: __m256i,
    /// All zeros if the lanes are regular.
    bad: __m256i,
}

impl Lanes {
    #[inline(always)]
    unsafe fn new(
        plan: &Plan,
        masks: &Masks,
        row: &Row,
        eight: usize,
        old: __m256i,
    ) -> Option<Self> {
        let at = EIGHT * eight;
        let values = row.values.get(at..)?.first_chunk::<EIGHT>()?;
        // SAFETY: the caller has the instructions, and there are eight values.
        unsafe {
            let value = _mm256_loadu_si256(values.as_ptr().cast());
            let present = spread(masks.present >> at);
            let previous = spread(masks.previous >> at);
            let base = _mm256_blendv_epi8(half_of(&plan.initials, eight)?, old, previous);
            let (mut expected, mut bad) = (base, _mm256_setzero_si256());
            if plan.increment != 0 {
                let add = spread(masks.add >> at);
                expected = _mm256_sub_epi32(base, add);
                // Beyond the type, where it begins again.
                bad = _mm256_andnot_si256(in_range(plan, eight, expected), add);
            }
            let difference = _mm256_and_si256(base, half_of(&plan.wide.delta, eight)?);
            let mut entity = _mm256_and_si256(_mm256_sub_epi32(value, difference), present);
            let texts = masks.present & plan.text & plan.optional;
            if texts != 0 {
                // An empty string that could be absent has a form of its own.
                let zero = _mm256_cmpeq_epi32(entity, _mm256_setzero_si256());
                bad = _mm256_or_si256(bad, _mm256_and_si256(zero, spread(texts >> at)));
            }
            if plan.nullable != 0 {
                let nullable = _mm256_and_si256(present, half_of(&plan.wide.nullable, eight)?);
                let not_negative = _mm256_cmpgt_epi32(entity, _mm256_set1_epi32(-1));
                entity = _mm256_sub_epi32(entity, _mm256_and_si256(not_negative, nullable));
            }
            Some(Self {
                present,
                value,
                expected,
                entity,
                bad,
            })
        }
    }
}

/// Returns eight entities in four bytes each, first byte first.
#[inline(always)]
unsafe fn bytes(entity: __m256i) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let at = |bits: i32| _mm256_set1_epi32(0x7f << bits);
        let first = _mm256_and_si256(_mm256_srli_epi32::<21>(entity), at(0));
        let second = _mm256_and_si256(_mm256_srli_epi32::<6>(entity), at(8));
        let third = _mm256_and_si256(_mm256_slli_epi32::<9>(entity), at(16));
        let last = _mm256_or_si256(_mm256_slli_epi32::<24>(entity), _mm256_set1_epi32(1 << 31));
        let last = _mm256_and_si256(last, _mm256_set1_epi32(0xff << 24));
        _mm256_or_si256(_mm256_or_si256(first, second), _mm256_or_si256(third, last))
    }
}

/// Returns the significant bytes of entities that have these sizes. The last byte is always one of
/// them.
#[inline(always)]
unsafe fn wanted(size: __m256i) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let of = |limit: i32, byte: i32| {
            let longer = _mm256_cmpgt_epi32(size, _mm256_set1_epi32(limit - 1));
            _mm256_and_si256(longer, _mm256_set1_epi32(byte))
        };
        let two = _mm256_or_si256(of(1 << 21, 0xff), of(1 << 14, 0xff00));
        let three = _mm256_or_si256(of(1 << 7, 0x00ff_0000), _mm256_set1_epi32(0xff << 24));
        _mm256_or_si256(two, three)
    }
}

/// Writes the wanted bytes from index `at` on, and returns the index after them.
#[inline(always)]
unsafe fn pack(bytes: __m256i, wanted: __m256i, room: &mut Room, mut at: usize) -> usize {
    // There are at most nine bytes in front of the values, and four of each.
    const { assert!(9 + 4 * MAX_LANES + 8 <= MAX_ENCODED) };
    // SAFETY: the caller has the instructions.
    let (bytes, wanted) = unsafe { (quads(bytes), quads(wanted)) };
    for (bytes, wanted) in bytes.into_iter().zip(wanted) {
        // SAFETY: the caller has the instructions, and the room is large enough for all lanes.
        unsafe {
            let place = room.as_mut_ptr().add(at).cast::<u64>();
            place.write_unaligned(_pext_u64(bytes, wanted));
        }
        at += (wanted.count_ones() / 8) as usize;
    }
    at
}

/// Returns the bytes of two lanes each.
#[inline(always)]
unsafe fn quads(lanes: __m256i) -> [u64; 4] {
    let mut quads = Quads([0; 4]);
    // SAFETY: the caller has the instructions, and there are 32 bytes.
    unsafe { _mm256_store_si256(quads.0.as_mut_ptr().cast(), lanes) };
    quads.0
}

#[repr(align(32))]
struct Quads([u64; 4]);

/// Writes the presence map and the template identifier after it, and returns the number of bytes.
/// `front` has up to three bytes of the identifier, the first one lowest, and their number above
/// them.
#[inline]
#[target_feature(enable = "bmi2,lzcnt")]
fn map(plan: &Plan, given: u64, front: u32, room: &mut Room) -> usize {
    let first = u64::from(front != 0);
    let bits = _pext_u64(given, plan.bit) << plan.skipped_bits | first;
    let len = ((70 - (bits | 1).leading_zeros()) / 7) as usize;
    let bits = _pdep_u64(bits, 0xfefe_fefe_fefe_fefe) | 1 << (8 * (len - 1));
    // The bits of each byte turned round: the stop bit was the lowest.
    let bytes = bits.reverse_bits().swap_bytes();
    // The identifier goes behind the map, which has five bytes at most.
    let bytes = bytes | u64::from(front & 0x00ff_ffff) << (8 * (len & 7));
    if let Some(place) = room.first_chunk_mut() {
        put(place, bytes.to_le_bytes());
    }
    // Never more bytes than have been written, whatever the caller passes.
    len + (front >> 24 & 3) as usize
}
