//! The SSE2 kernel: masks of separators from vectors of 16 bytes, and tags four at a time.
//!
//! Each lane of a vector holds the first four bytes of a field. The position of the first `=` is
//! the length of the tag, and the length selects the weight of each digit.

use super::{Scan, Unfit, blocks};
use crate::data::DataFields;
use crate::fields::{Columns, FieldIndex, SOH};
use core::arch::x86_64::*;

/// Indexes `bytes`, which are shorter than 2 GiB, with SSE2, which each x86-64 has.
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    blocks::index(bytes, index, separators, read_tags)
}

/// Returns the mask of the separators.
#[inline(always)]
fn separators(block: &[u8; 64]) -> u64 {
    let chunks = block.chunks_exact(16).rev();
    chunks.fold(0, |mask, chunk| {
        // SAFETY: SSE2 belongs to x86-64; 16 bytes are read from a chunk of 16.
        let of_16 = unsafe {
            let bytes = _mm_loadu_si128(chunk.as_ptr().cast());
            _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(SOH as i8)))
        };
        mask << 16 | u64::from(of_16 as u32)
    })
}

/// Writes the tags and begins of `count` fields as [`blocks::read_tags`] does. That function reads
/// them if there are fewer than four, or fewer than four bytes after an end.
#[inline(always)]
fn read_tags(
    bytes: &[u8],
    count: usize,
    data: &DataFields,
    columns: &mut Columns<'_>,
) -> Option<bool> {
    let last_four = count.checked_sub(4);
    last_four
        .and_then(|last| read_four_by_four(bytes, last, data, columns))
        .or_else(|| blocks::read_tags(bytes, count, data, columns))
}

/// Writes the tags and begins of at least four fields. `last` is the index of the first of the last
/// four.
#[inline(always)]
fn read_four_by_four(
    bytes: &[u8],
    last: usize,
    data: &DataFields,
    columns: &mut Columns<'_>,
) -> Option<bool> {
    // In front of the first field.
    *columns.end.first_mut()? = u32::MAX;
    let mut may_hold_data = false;
    let mut at = 0;
    loop {
        // The last four may have some in common with those before.
        at = at.min(last);
        let ends = columns.end.get(at..)?.first_chunk::<4>()?;
        let fields = Four::behind(bytes, ends)?;
        let tags = columns.tag.get_mut(at..)?.first_chunk_mut()?;
        let begins = columns.begin.get_mut(at..)?.first_chunk_mut()?;
        fields.write(tags, begins);
        if fields.is_odd() {
            // Four digits or more, mostly.
            for ((tag, begin), &end) in tags.iter_mut().zip(begins).zip(ends) {
                (*tag, *begin) = blocks::long_tag(bytes, end.wrapping_add(1))?;
            }
        }
        for &tag in &*tags {
            may_hold_data |= data.may_be_length(tag);
        }
        if at == last {
            return Some(may_hold_data);
        }
        at += 4;
    }
}

/// The first four bytes of four fields, in 32 bits each.
struct Four {
    /// The offsets at which the fields before them end.
    ends: __m128i,
    /// The lowest bit of the first `=`, or zero if there is none.
    first: __m128i,
    /// The digits of the tags, from 0 to 9, the first one lowest, with zeros after them.
    digits: __m128i,
}

impl Four {
    /// Returns the fronts of the fields after `ends`, or `None` if fewer than four bytes follow one
    /// of them.
    #[inline(always)]
    fn behind(bytes: &[u8], ends: &[u32; 4]) -> Option<Self> {
        let four = |end: u32| {
            let front = bytes.get(end.wrapping_add(1) as usize..)?.first_chunk()?;
            Some(i32::from_le_bytes(*front))
        };
        let [a, b, c, d] = *ends;
        let texts = [four(a)?, four(b)?, four(c)?, four(d)?];
        // SAFETY: SSE2 belongs to x86-64.
        unsafe {
            let text = _mm_setr_epi32(texts[0], texts[1], texts[2], texts[3]);
            let equals = _mm_cmpeq_epi8(text, _mm_set1_epi8(b'=' as i8));
            let first = _mm_and_si128(equals, _mm_sub_epi32(_mm_setzero_si128(), equals));
            let below = _mm_add_epi32(first, _mm_set1_epi32(-1));
            let values = _mm_sub_epi8(text, _mm_set1_epi8(b'0' as i8));
            Some(Self {
                ends: _mm_setr_epi32(a as i32, b as i32, c as i32, d as i32),
                first,
                digits: _mm_and_si128(below, values),
            })
        }
    }

    /// Returns whether a tag has other bytes than digits, or more than three.
    #[inline(always)]
    fn is_odd(&self) -> bool {
        // SAFETY: as above.
        unsafe {
            let above_nine = _mm_subs_epu8(self.digits, _mm_set1_epi8(9));
            let unended = _mm_cmpeq_epi32(self.first, _mm_setzero_si128());
            let odd = _mm_or_si128(above_nine, unended);
            _mm_movemask_epi8(_mm_cmpeq_epi8(odd, _mm_setzero_si128())) != 0xffff
        }
    }

    /// Writes the tags, and the offsets at which the values begin.
    #[inline(always)]
    fn write(&self, tags: &mut [u32; 4], begins: &mut [u32; 4]) {
        // SAFETY: as above; 16 bytes are written to each array, which has as many.
        unsafe {
            // Which bit it is says the exponent of a float, 127 and eight times the length of the
            // tag: an eighth of it is 15 and the length. A begin is two behind the end and that.
            let exponents = _mm_castps_si128(_mm_cvtepi32_ps(self.first));
            let lengths = _mm_srli_epi32::<26>(exponents);
            let behind = _mm_add_epi32(self.ends, _mm_set1_epi32(2 - 15));
            _mm_storeu_si128(begins.as_mut_ptr().cast(), _mm_add_epi32(behind, lengths));
            _mm_storeu_si128(tags.as_mut_ptr().cast(), self.numbers());
        }
    }

    /// Returns the numbers with these digits.
    #[inline(always)]
    fn numbers(&self) -> __m128i {
        // SAFETY: as above.
        unsafe {
            let two = _mm_cmpeq_epi32(self.first, _mm_set1_epi32(1 << 16));
            let three = _mm_cmpeq_epi32(self.first, _mm_set1_epi32(1 << 24));
            // The digits one and three, and what they count; and digit two.
            let outer = _mm_and_si128(self.digits, _mm_set1_epi16(0xff));
            let more = _mm_or_si128(
                _mm_and_si128(two, _mm_set1_epi32(9)),
                _mm_and_si128(three, _mm_set1_epi32(1 << 16 | 99)),
            );
            let outer = _mm_madd_epi16(outer, _mm_add_epi32(more, _mm_set1_epi32(1)));
            let inner = _mm_srli_epi16::<8>(self.digits);
            let counts = _mm_or_si128(
                _mm_and_si128(two, _mm_set1_epi32(1)),
                _mm_and_si128(three, _mm_set1_epi32(10)),
            );
            _mm_add_epi32(outer, _mm_madd_epi16(inner, counts))
        }
    }
}
