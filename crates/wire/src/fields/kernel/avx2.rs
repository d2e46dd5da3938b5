//! The AVX2 kernel: 64 bytes at a time in two vectors of 32, and then tags eight at a time.
//!
//! The ends of all fields are found first: each block gives the mask of its separators, from which
//! their positions are taken. Then all tags are read: the first four bytes of each field are put
//! into the lanes of a vector. The bytes before the first `=` are made a number by two
//! multiply-adds, and their count tells where the value begins. Eight fields are read together
//! whichever block they are in, so that no lane is idle. The rare tags of four digits or more are
//! read singly. A position is read back as it was written, one by one, as a load that spans several
//! stores still under way would wait for them.

use super::blocks::long_tag;
use super::{Scan, Unfit, sse2};
use crate::data::{DataFields, LengthDigits};
use crate::fields::{Columns, FieldIndex, SOH};
use core::arch::x86_64::*;

/// The room that must be left in the columns before each block: 64 separators, and some more
/// entries that are written but do not count.
const BLOCK_ROOM: usize = super::SPARE;

/// Returns whether this processor has the instructions of [`index`].
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Indexes `bytes`, which are shorter than 2 GiB. Gives up if a tag has other bytes than digits, or
/// more than seven. Short messages are left to SSE2.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    index.clear();
    if bytes.len() < 64 || bytes.last() != Some(&SOH) {
        return sse2::index(bytes, index);
    }
    let max_fields = index.max_fields();
    let (data, mut columns) = index.parts().ok_or(Unfit::Room)?;
    let (count, sum) = find_ends(bytes, &mut columns)?;
    if count > max_fields {
        return Err(Unfit::Message);
    }
    // A tag is read from four bytes, and those of the last field may be fewer.
    let last = columns.end.get(count - 1).copied().unwrap_or_default();
    if count < 8 || bytes.len() < last as usize + 1 + 4 {
        return sse2::index(bytes, index);
    }
    let may_hold_data = read_tags(bytes, count, data, &mut columns).ok_or(Unfit::Message)?;
    index.len = count;
    Ok(Scan { sum, may_hold_data })
}

/// Writes the ends of all fields, and returns their number and the sum of all bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn find_ends(bytes: &[u8], columns: &mut Columns<'_>) -> Result<(usize, u8), Unfit> {
    // In front of the first field.
    if let Some(spare) = columns.end.first_mut() {
        *spare = u32::MAX;
    }
    let mut sums = _mm256_setzero_si256();
    let mut count = 0;
    for at in (0..bytes.len()).step_by(64) {
        if count + BLOCK_ROOM > columns.tag.len() {
            return Err(Unfit::Room);
        }
        let block = Block::load(bytes, at);
        sums = _mm256_add_epi8(sums, block.sums);
        let to = columns.end.get_mut(count + 1..).unwrap_or_default();
        write_positions(block.separators, at as u32, to);
        count += block.separators.count_ones() as usize;
    }
    Ok((count, sum_of(sums)))
}

/// Writes the positions of the bits of `mask`, counted from `base`, and up to seven more entries.
#[inline]
#[target_feature(enable = "bmi1")]
fn write_positions(mut mask: u64, base: u32, to: &mut [u32]) {
    for entries in to.chunks_exact_mut(8) {
        for entry in entries {
            let position = base + mask.trailing_zeros();
            // SAFETY: an ordinary reference. Volatile, as the compiler would put all eight into a
            // vector one by one, which takes longer than to write them one by one.
            unsafe { core::ptr::write_volatile(entry, position) };
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            break;
        }
    }
}

/// Writes the numbers of all tags, which are at least eight, and the offsets at which their values
/// begin. Returns whether any tag may be the length of a data field, or `None` if a tag is not a
/// number of up to seven digits.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn read_tags(
    bytes: &[u8],
    count: usize,
    data: &DataFields,
    columns: &mut Columns<'_>,
) -> Option<bool> {
    let mut tags = Tags::new(data);
    let mut at = 0;
    loop {
        // The last eight may have some in common with those before.
        at = at.min(count - 8);
        let ends = columns.end.get(at..)?.first_chunk::<8>()?;
        let eight = Eight {
            tags: columns.tag.get_mut(at..)?.first_chunk_mut::<8>()?,
            begins: columns.begin.get_mut(at..)?.first_chunk_mut::<8>()?,
        };
        tags.read(bytes, ends, data, eight)?;
        at += 8;
        if at == count {
            break;
        }
    }
    if tags.any_odd() {
        return None;
    }
    Some(tags.any_length())
}

/// The masks and sums of 64 bytes, or of fewer at the end of the message.
struct Block {
    separators: u64,
    /// The sums of the bytes modulo 256, to be added up.
    sums: __m256i,
}

impl Block {
    /// Returns the block of the bytes from `at` on. The last bytes are read together with some
    /// before them, so that nothing after the end is touched. There must be at least 64 bytes.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(bytes: &[u8], at: usize) -> Self {
        let from = at.min(bytes.len() - 64);
        // SAFETY: `index` takes at least 64 bytes, so that 64 stand from `from` on.
        let (lower, upper) = unsafe {
            let from = bytes.as_ptr().add(from);
            (
                _mm256_loadu_si256(from.cast()),
                _mm256_loadu_si256(from.add(32).cast()),
            )
        };
        let before = at - from;
        let soh = _mm256_set1_epi8(SOH as i8);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(lower, soh)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(upper, soh)) as u32;
        let (mut summed_low, mut summed_high) = (lower, upper);
        if before != 0 {
            summed_low = _mm256_and_si256(lower, from_position(before));
            summed_high = _mm256_and_si256(upper, from_position(before.saturating_sub(32)));
        }
        Self {
            separators: (u64::from(low) | u64::from(high) << 32) >> before,
            sums: _mm256_add_epi8(summed_low, summed_high),
        }
    }
}

/// Returns a vector of ones in the bytes from `position` on. There are none if that is 32 or more.
#[inline]
#[target_feature(enable = "avx2")]
fn from_position(position: usize) -> __m256i {
    const EDGE: [u8; 64] = {
        let mut edge = [0; 64];
        let mut i = 32;
        while i < 64 {
            edge[i] = 0xff;
            i += 1;
        }
        edge
    };
    // SAFETY: at most 32 are left out in front of the 32 bytes that are read of 64.
    unsafe { _mm256_loadu_si256(EDGE.as_ptr().add(32 - position.min(32)).cast()) }
}

/// The places for the results of eight fields.
struct Eight<'a> {
    tags: &'a mut [u32; 8],
    begins: &'a mut [u32; 8],
}

/// A reader of tags, which remembers what was special about any of them.
struct Tags {
    /// The tables of [`LengthDigits`], each of them twice, as shuffles work on halves.
    length_digits: [__m256i; 3],
    /// The highest byte of any lane is not zero if a tag may be the length of a data field.
    lengths: __m256i,
    /// Whether a long tag may be the length of a data field.
    long_length: bool,
    /// Any byte is above 9 if a tag has other bytes than digits.
    odd: __m256i,
}

impl Tags {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(data: &DataFields) -> Self {
        let LengthDigits(tables) = data.length_digits();
        // SAFETY: each table has 16 bytes.
        let table = |i: usize| unsafe {
            _mm256_broadcastsi128_si256(_mm_loadu_si128(tables[i].as_ptr().cast()))
        };
        Self {
            length_digits: [table(0), table(1), table(2)],
            lengths: _mm256_setzero_si256(),
            long_length: false,
            odd: _mm256_setzero_si256(),
        }
    }

    /// Reads the tags of the eight fields after `ends_before`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn read(
        &mut self,
        bytes: &[u8],
        ends_before: &[u32; 8],
        data: &DataFields,
        eight: Eight<'_>,
    ) -> Option<()> {
        // SAFETY: `index` has found these ends in the message, the first one standing for its
        // front, and has made sure that four bytes are behind the last one; so they are behind all.
        let (text, ends) = unsafe { four_behind(bytes, ends_before) };
        // The lowest bit of the first `=`; none if there is none.
        let equals = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(b'=' as i8));
        let first = _mm256_and_si256(equals, _mm256_sub_epi32(_mm256_setzero_si256(), equals));
        let below = _mm256_add_epi32(first, _mm256_set1_epi32(-1));
        let digits = _mm256_and_si256(below, _mm256_sub_epi8(text, _mm256_set1_epi8(b'0' as i8)));
        self.odd = _mm256_max_epu8(self.odd, digits);
        // Which bit it is says the exponent of a float: 127 and eight times the tag's length.
        let float = _mm256_castps_si256(_mm256_cvtepi32_ps(first));
        let unused = _mm256_sub_epi32(_mm256_set1_epi32(127 + 32), _mm256_srli_epi32::<23>(float));
        let digits = _mm256_sllv_epi32(digits, unused);
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
        let numbers = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));
        // The same divided by eight: 15 and the length. Begins are one behind the `=`.
        let lengths = _mm256_srli_epi32::<26>(float);
        let behind = _mm256_add_epi32(ends, _mm256_set1_epi32(2 - 15));
        let begins = _mm256_add_epi32(behind, lengths);

        let [hundreds, tens, ones] = self.length_digits;
        let hundreds = _mm256_slli_epi32::<16>(_mm256_shuffle_epi8(hundreds, digits));
        let tens = _mm256_slli_epi32::<8>(_mm256_shuffle_epi8(tens, digits));
        let ones = _mm256_shuffle_epi8(ones, digits);
        let lengths = _mm256_and_si256(_mm256_and_si256(hundreds, tens), ones);
        self.lengths = _mm256_or_si256(self.lengths, lengths);

        // SAFETY: eight entries have 32 bytes.
        unsafe {
            _mm256_storeu_si256(eight.tags.as_mut_ptr().cast(), numbers);
            _mm256_storeu_si256(eight.begins.as_mut_ptr().cast(), begins);
        }
        let unended = _mm256_cmpeq_epi32(first, _mm256_setzero_si256());
        let mut long = _mm256_movemask_ps(_mm256_castsi256_ps(unended)) as u32;
        while long != 0 {
            let lane = long.trailing_zeros() as usize & 7;
            let (tag, begin) = long_tag(bytes, ends_before[lane].wrapping_add(1))?;
            (eight.tags[lane], eight.begins[lane]) = (tag, begin);
            self.long_length |= data.may_be_length(tag);
            long &= long - 1;
        }
        Some(())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn any_odd(&self) -> bool {
        let above_nine = _mm256_subs_epu8(self.odd, _mm256_set1_epi8(9));
        _mm256_testz_si256(above_nine, above_nine) == 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn any_length(&self) -> bool {
        let highest = _mm256_set1_epi32(0xff00_0000_u32 as i32);
        self.long_length || _mm256_testz_si256(self.lengths, highest) == 0
    }
}

/// Returns the four bytes after each end, the first one lowest, and the ends themselves.
///
/// # Safety
/// Four bytes must follow each end, or be at the front of `bytes` for the end that is `u32::MAX`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn four_behind(bytes: &[u8], ends: &[u32; 8]) -> (__m256i, __m256i) {
    // SAFETY: an ordinary reference. Volatile, lest the compiler reads all eight at once.
    let end = |i: usize| unsafe { core::ptr::read_volatile(&ends[i]) };
    let four = |end: u32| {
        // SAFETY: as the caller warrants.
        unsafe {
            let begin = bytes.as_ptr().add(end.wrapping_add(1) as usize);
            begin.cast::<i32>().read_unaligned()
        }
    };
    let ends = [0, 1, 2, 3, 4, 5, 6, 7].map(end);
    let eight =
        |of: [i32; 8]| _mm256_setr_epi32(of[0], of[1], of[2], of[3], of[4], of[5], of[6], of[7]);
    (eight(ends.map(four)), eight(ends.map(|end| end as i32)))
}

/// Returns the sum of all bytes modulo 256.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of(sums: __m256i) -> u8 {
    let sums = _mm256_sad_epu8(sums, _mm256_setzero_si256());
    let (low, high) = (
        _mm256_castsi256_si128(sums),
        _mm256_extracti128_si256::<1>(sums),
    );
    let half = _mm_add_epi64(low, high);
    _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))) as u8
}
