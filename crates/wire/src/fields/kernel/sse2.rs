//! Masks of separators and `=` from vectors of 16 bytes; the rest in ordinary registers.

use super::{Scan, Unfit};
use crate::data::DataFields;
use crate::fields::{Columns, FieldIndex, SOH, parse_tag};
use crate::int::parse_last_of_eight;
use core::arch::x86_64::*;

/// The most fields that one block of 64 bytes may add, doubled.
const BLOCK_ROOM: usize = 64;

/// Indexes with SSE2, which each x86-64 has: all blocks of 64 bytes, the last one filled up with
/// zeros.
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return Err(Unfit::Message);
    }
    let max_fields = index.max_fields();
    let (data, mut columns) = index.parts().ok_or(Unfit::Room)?;
    let mut fields = Fields::new();
    let (mut begins, mut ends, mut sum, mut at) = (0, 0, 0_u64, 0);
    let mut last = [0; 64];
    while at < bytes.len() {
        if begins + BLOCK_ROOM > columns.tag.len() {
            return Err(Unfit::Room);
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let block = rest.first_chunk::<64>().unwrap_or_else(|| {
            last[..rest.len()].copy_from_slice(rest);
            &last
        });
        let masks = Masks::of(block);
        sum += masks.sum;
        let equals = fields.next(masks.separators, masks.equals)?;
        let from = columns.end.get_mut(1 + ends..).unwrap_or_default();
        ends += positions(masks.separators, at, from);
        let from = columns.begin.get_mut(begins..).unwrap_or_default();
        begins += positions(equals, at + 1, from);
        at += 64;
    }
    if begins > max_fields {
        return Err(Unfit::Message);
    }
    let may_hold_data = parse_tags(bytes, begins, data, &mut columns);
    index.len = begins;
    Ok(Scan {
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

/// Where a tag ends, block by block, from the masks of separators and of `=`.
struct Fields {
    /// Bit 0: a tag is being read at the beginning of the next block.
    in_tag: u64,
}

impl Fields {
    /// Before the first block: the first byte begins a field.
    const fn new() -> Self {
        Self { in_tag: 1 }
    }

    /// Returns the mask of the `=` that end a tag, the first one of each field.
    ///
    /// A carry is sent up from each field's first byte through all bytes that are neither `=` nor
    /// separator, and comes to rest at the first that is.
    ///
    /// # Errors
    /// A field has none.
    #[inline(always)]
    fn next(&mut self, separators: u64, equals: u64) -> Result<u64, Unfit> {
        let borders = separators | equals;
        let starts = separators << 1 | self.in_tag;
        let (carried, overflow) = (!borders).overflowing_add(starts & !borders);
        let ends_of_tags = (carried | starts) & borders;
        self.in_tag = separators >> 63 | u64::from(overflow);
        if ends_of_tags & separators != 0 {
            return Err(Unfit::Message);
        }
        Ok(ends_of_tags)
    }
}

/// Writes the positions of the bits of `mask`, counted from `base`; returns how many these are.
#[inline(always)]
fn positions(mut mask: u64, base: usize, to: &mut [u32]) -> usize {
    let count = mask.count_ones() as usize;
    // Several at a time, so that the number of rounds is easy to predict; what is too much is
    // overwritten later.
    for entries in to.chunks_exact_mut(8) {
        for entry in entries {
            *entry = base as u32 + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            break;
        }
    }
    count
}

/// Parses the tags of `count` fields; returns whether any may be the length of a data field.
#[inline(always)]
fn parse_tags(bytes: &[u8], count: usize, data: &DataFields, columns: &mut Columns<'_>) -> bool {
    let tags = columns.tag.iter_mut().take(count);
    let mut start = 0;
    let mut may_hold_data = false;
    let begins_and_ends = columns.begin.iter().zip(columns.end.iter().skip(1));
    for (tag, (&begin, &end)) in tags.zip(begins_and_ends) {
        let equals = begin as usize - 1;
        *tag = tag_in_front(bytes, start, equals);
        may_hold_data |= data.may_be_length(*tag);
        start = end as usize + 1;
    }
    may_hold_data
}

/// Returns the tag at `start..equals`, from the eight bytes in front of the `=`.
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
