//! Encoding: the way of `avx512_encode`, eight lanes at once; the entities are written one after
//! the other.

use super::avx2::{EIGHT, SEVENS, half_of, in_range, spread, store, store_eight};
use super::columns::{Block, Vector};
use super::encode::{Masks, Room, commit, masks, put, room, written};
use super::{Columns, MAX_LANES, Plan, Row};
use core::arch::x86_64::*;

/// Encodes segments of the same plan, each with its presence map and the first one with `front`,
/// behind the end of `out`: how many of them. The first one that is not regular is left, with
/// nothing changed.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(super) fn encode(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> usize {
    match plan.eights {
        ..=1 => segments::<1>(plan, columns, rows, front, out),
        2 => segments::<2>(plan, columns, rows, front, out),
        3 => segments::<3>(plan, columns, rows, front, out),
        4.. => segments::<4>(plan, columns, rows, front, out),
    }
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
fn segments<const E: usize>(
    plan: &Plan,
    columns: &mut Columns,
    rows: &[Row],
    front: u32,
    out: &mut Vec<u8>,
) -> usize {
    let mut done = 0;
    while let Some(row) = rows.get(done)
        && segment::<E>(plan, columns, row, front, out).is_some()
    {
        done += 1;
    }
    done
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
fn segment<const E: usize>(
    plan: &Plan,
    columns: &mut Columns,
    row: &Row,
    front: u32,
    out: &mut Vec<u8>,
) -> Option<()> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values = values.get_mut(plan.first()..plan.first() + E.div_ceil(2))?;
    let masks = masks(plan, flags, row.present)?;
    let mut lanes = Lanes::default();
    let mut kept = [_mm256_setzero_si256(); E];
    for (eight, kept) in kept.iter_mut().enumerate() {
        *kept = lanes.add(plan, &masks, (values, row), eight)?;
    }
    // An empty string that could be absent has a form of its own.
    let empty = lanes.zero & masks.present & plan.text & plan.optional;
    if empty | lanes.beyond & masks.add != 0 {
        return None;
    }
    let (given, stream) = written(plan, &masks, lanes.equal);
    let room = room(out)?;
    let at = map(plan, given, front, room);
    let len = lanes.write(plan, stream, room, at)?;
    for (eight, kept) in kept.iter().enumerate() {
        store(values, eight, *kept)?;
    }
    commit(plan, flags, masks.present);
    // SAFETY: so many bytes have been written.
    unsafe { out.set_len(out.len() + len) };
    Some(())
}

/// What the lanes are to be.
#[derive(Default)]
#[repr(align(32))]
struct Lanes {
    entities: [i32; MAX_LANES],
    /// The value is the one that a decoder would take.
    equal: u64,
    /// The entity is 0, before it is made nullable.
    zero: u64,
    /// What a decoder would take is beyond the type, where it begins again.
    beyond: u64,
}

impl Lanes {
    /// Eight lanes; returns what their columns are afterwards.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn add(
        &mut self,
        plan: &Plan,
        masks: &Masks,
        (columns, row): (&[Vector], &Row),
        eight: usize,
    ) -> Option<__m256i> {
        let at = EIGHT * eight;
        let marks = |lanes: __m256i| {
            let marks = _mm256_movemask_ps(_mm256_castsi256_ps(lanes));
            u64::from(marks as u32) << at
        };
        let values = row.values.get(at..)?.first_chunk::<EIGHT>()?;
        // SAFETY: there are eight.
        let value = unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
        let old = half_of(columns, eight)?;
        let initial = half_of(&plan.initials, eight)?;
        let base = _mm256_blendv_epi8(initial, old, spread(masks.previous, eight));
        let mut expected = base;
        if plan.increment != 0 {
            expected = _mm256_sub_epi32(base, spread(masks.add, eight));
            self.beyond |= marks(in_range(plan, eight, expected)) ^ 0xff << at;
        }
        self.equal |= marks(_mm256_cmpeq_epi32(value, expected));
        let present = spread(masks.present, eight);
        let difference = _mm256_and_si256(base, half_of(&plan.wide.delta, eight)?);
        let entity = _mm256_and_si256(_mm256_sub_epi32(value, difference), present);
        self.zero |= marks(_mm256_cmpeq_epi32(entity, _mm256_setzero_si256()));
        let not_negative = _mm256_cmpgt_epi32(entity, _mm256_set1_epi32(-1));
        let nullable = _mm256_and_si256(present, half_of(&plan.wide.nullable, eight)?);
        let more = _mm256_and_si256(not_negative, nullable);
        let entity = _mm256_sub_epi32(entity, more);
        store_eight(self.entities.get_mut(at..)?.first_chunk_mut()?, entity);
        Some(_mm256_blendv_epi8(old, value, present))
    }

    /// Writes the entities of these lanes from an index on; returns that behind them.
    #[inline]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,movbe")]
    fn write(&self, plan: &Plan, stream: u64, room: &mut Room, mut at: usize) -> Option<usize> {
        let mut lanes = stream;
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize % MAX_LANES;
            lanes = _blsr_u64(lanes);
            let signed = plan.signed >> lane & 1;
            let entity = self.entities[lane];
            let value = match signed {
                0 => i64::from(entity as u32),
                _ => i64::from(entity),
            };
            // The bits that differ from the sign, and one for it.
            let size = ((value ^ value >> 63) as u64) << signed;
            // As with AVX-512: and here a difference that overflowed would be.
            if size >> 28 != 0 {
                return None;
            }
            let bits = 64 - (size | 1).leading_zeros();
            let len = bits.div_ceil(7);
            let sevens = _pdep_u64(value as u64, SEVENS) | 0x80;
            let place = room.get_mut(at..)?.first_chunk_mut::<8>()?;
            put(place, (sevens << (64 - 8 * len)).to_be_bytes());
            at += len as usize;
        }
        Some(at)
    }
}

/// Writes the presence map, and what else is in front: in `front`, bit 8 says that there is a
/// template identifier, the lower bits are it, with its stop bit.
#[inline]
#[target_feature(enable = "bmi2,lzcnt")]
fn map(plan: &Plan, given: u64, front: u32, room: &mut Room) -> usize {
    let first = u64::from(front >> 8);
    let bits = _pext_u64(given, plan.bit) << plan.skipped_bits | first;
    let len = ((70 - (bits | 1).leading_zeros()) / 7) as usize;
    let bits = _pdep_u64(bits, 0xfefe_fefe_fefe_fefe) | 1 << (8 * (len - 1));
    // The bits of each byte turned round: the stop bit was the lowest.
    let bytes = bits.reverse_bits().swap_bytes();
    // The identifier goes behind the map.
    let bytes = bytes | u64::from(front & 0xff) << (8 * (len & 7));
    if let Some(place) = room.first_chunk_mut() {
        put(place, bytes.to_le_bytes());
    }
    len + first as usize
}
