//! Masks of separators and `=` from vectors of 16 bytes; the rest in ordinary registers.

use super::{Fields, Scan};
use crate::fields::{FieldIndex, SOH, parse_tag};
use crate::int::parse_last_of_eight;
use core::arch::x86_64::*;

/// The most fields that one block of 64 bytes may add, doubled.
const BLOCK_ROOM: usize = 64;

/// Indexes with SSE2, which each x86-64 has: all blocks of 64 bytes, the last one filled up with
/// zeros.
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Option<Scan> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return None;
    }
    let mut fields = Fields::new();
    let (mut begins, mut ends, mut sum, mut at) = (0, 0, 0_u64, 0);
    let mut last = [0; 64];
    while at < bytes.len() {
        if begins + BLOCK_ROOM > index.tag.len() && !index.grow_within_limit() {
            return None;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let block = rest.first_chunk::<64>().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let masks = Masks::of(block);
        sum += masks.sum;
        let equals = fields.next(masks.separators, masks.equals)?;
        ends = positions(masks.separators, at, &mut index.end, ends);
        begins = positions(equals, at + 1, &mut index.begin, begins);
        at += 64;
    }
    if begins > index.max_fields() {
        return None;
    }
    index.len = begins;
    let may_hold_data = parse_tags(bytes, index);
    Some(Scan {
        sum: sum as u8,
        may_hold_data,
    })
}

/// What is known of 64 bytes: the separators, the `=`, the sum.
struct Masks {
    separators: u64,
    equals: u64,
    sum: u64,
}

impl Masks {
    #[inline(always)]
    fn of(block: &[u8; 64]) -> Self {
        let mut masks = Self {
            separators: 0,
            equals: 0,
            sum: 0,
        };
        // SAFETY: SSE2 belongs to x86-64; 16 bytes are read from chunks of 16.
        unsafe {
            let mut sums = _mm_setzero_si128();
            for (i, chunk) in block.chunks_exact(16).enumerate() {
                let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
                let mask = |byte: u8| {
                    let equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
                    u64::from(_mm_movemask_epi8(equal) as u32) << (16 * i)
                };
                masks.separators |= mask(SOH);
                masks.equals |= mask(b'=');
                sums = _mm_add_epi64(sums, _mm_sad_epu8(bytes, _mm_setzero_si128()));
            }
            let upper = _mm_unpackhi_epi64(sums, sums);
            masks.sum = _mm_cvtsi128_si64(_mm_add_epi64(sums, upper)) as u64;
        }
        masks
    }
}

/// Appends the positions of the bits of `mask`; returns the number of entries then.
#[inline(always)]
fn positions(mut mask: u64, base: usize, array: &mut [u32], from: usize) -> usize {
    let count = mask.count_ones() as usize;
    // Several at a time, so that the number of rounds is easy to predict; what is too much is
    // overwritten later.
    for entries in array
        .get_mut(from..)
        .unwrap_or_default()
        .chunks_exact_mut(8)
    {
        for entry in entries {
            *entry = base as u32 + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            break;
        }
    }
    from + count
}

/// Parses all tags; returns whether any may be the length of a data field.
#[inline(always)]
pub(super) fn parse_tags(bytes: &[u8], index: &mut FieldIndex) -> bool {
    let len = index.len;
    let data = &index.data;
    let Some(tags) = index.tag.get_mut(..len) else {
        return true;
    };
    let mut start = 0;
    let mut may_hold_data = false;
    for ((tag, &begin), &end) in tags.iter_mut().zip(&index.begin).zip(&index.end) {
        let equals = begin as usize - 1;
        *tag = tag_in_front(bytes, start, equals);
        may_hold_data |= data.may_be_length(*tag);
        start = end as usize + 1;
    }
    may_hold_data
}

/// The tag at `start..equals`, from the eight bytes in front of the `=`.
#[inline(always)]
fn tag_in_front(bytes: &[u8], start: usize, equals: usize) -> u32 {
    let eight = bytes
        .get(..equals)
        .and_then(|front| front.last_chunk::<8>());
    let (Some(eight), 1..=8) = (eight, equals - start) else {
        return parse_tag(bytes.get(start..equals).unwrap_or_default());
    };
    parse_last_of_eight(u64::from_le_bytes(*eight), equals - start).unwrap_or(0)
}
