//! 64 bytes at a time in two vectors of 32, then tags eight at a time.
//!
//! First all borders: per block the masks of separators and `=`, and their positions taken from
//! them. Then all tags: the four bytes in front of each `=` put into the lanes of a vector and made
//! numbers by two multiply-adds; eight fields whichever block they are in, so that no lane is
//! idle. The rare tags of four digits or more are read singly. A position is read back as it was
//! written, one by one: a load that spans several stores still under way would wait for them.

use super::sse2::parse_tags;
use super::{Fields, Scan};
use crate::data::{DataFields, LengthDigits};
use crate::fields::{FieldIndex, SOH, parse_tag, separators_in};
use crate::int::parse_last_of_eight;
use core::arch::x86_64::*;

/// The room that must be left in the arrays before each block: 32 fields of two bytes, and as much
/// again for entries that are written but count for nothing.
const BLOCK_ROOM: usize = 64;

/// A value that begins nearer to the front of the message has not four bytes in front of its `=`.
const FRONT: u32 = 5;

/// Whether this processor has the instructions of [`index`].
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Indexes `bytes`, of which there are less than 2 GiB; gives up where a tag has other bytes than
/// digits or more than seven, and on messages of less than a block.
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Option<Scan> {
    index.clear();
    if bytes.len() < 64 || bytes.last() != Some(&SOH) {
        return None;
    }
    let (count, sum) = find_borders(bytes, index)?;
    if count > index.max_fields() {
        return None;
    }
    index.len = count;
    Some(Scan {
        sum,
        may_hold_data: read_tags(bytes, index)?,
    })
}

/// Writes where all values begin and end; returns how many these are, and the sum of all bytes.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn find_borders(bytes: &[u8], index: &mut FieldIndex) -> Option<(usize, u8)> {
    let mut fields = Fields::new();
    let mut sums = _mm256_setzero_si256();
    let (mut begins, mut ends) = (0, 0);
    for at in (0..bytes.len()).step_by(64) {
        if begins + BLOCK_ROOM > index.tag.len() && !index.grow_within_limit() {
            return None;
        }
        let block = Block::load(bytes, at);
        sums = _mm256_add_epi8(sums, block.sums);
        let equals = fields.next(block.separators, block.equals)?;
        write_positions(equals, at as u32 + 1, index.begin.get_mut(begins..)?);
        write_positions(block.separators, at as u32, index.end.get_mut(ends..)?);
        begins += equals.count_ones() as usize;
        ends += block.separators.count_ones() as usize;
    }
    Some((begins, sum_of(sums)))
}

/// Writes the positions of the bits of `mask`, counted from `base`, and up to seven entries more.
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

/// Writes the numbers of all tags; returns whether any may be the length of a data field.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn read_tags(bytes: &[u8], index: &mut FieldIndex) -> Option<bool> {
    let count = index.len;
    let near = index.begins().iter().take_while(|&&begin| begin < FRONT);
    let near = near.count();
    if count < near + 8 {
        return Some(parse_tags(bytes, index));
    }
    let mut tags = Tags::new(&index.data);
    let mut start = 0;
    for i in 0..near {
        let text = bytes.get(start..index.begin[i] as usize - 1);
        index.tag[i] = parse_tag(text.unwrap_or_default());
        tags.long_length |= index.data.may_be_length(index.tag[i]);
        start = index.end[i] as usize + 1;
    }
    let mut at = near;
    loop {
        // The last eight may have some in common with those before.
        at = at.min(count - 8);
        let begins = index.begin.get(at..)?.first_chunk::<8>()?;
        let entries = index.tag.get_mut(at..)?.first_chunk_mut::<8>()?;
        tags.read(bytes, begins, &index.data, entries)?;
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

/// What is known of 64 bytes; behind the end of the message there is nothing.
struct Block {
    separators: u64,
    equals: u64,
    /// Sums of its bytes modulo 256, to be added up.
    sums: __m256i,
}

impl Block {
    /// Of the bytes from `at` on. The last ones are read together with some in front of them, so
    /// that nothing behind the end is touched; there are at least 64 bytes.
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
        let mask = |byte: u8| {
            let byte = _mm256_set1_epi8(byte as i8);
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(lower, byte)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(upper, byte)) as u32;
            (u64::from(low) | u64::from(high) << 32) >> before
        };
        let (mut summed_low, mut summed_high) = (lower, upper);
        if before != 0 {
            summed_low = _mm256_and_si256(lower, from_position(before));
            summed_high = _mm256_and_si256(upper, from_position(before.saturating_sub(32)));
        }
        Self {
            separators: mask(SOH),
            equals: mask(b'='),
            sums: _mm256_add_epi8(summed_low, summed_high),
        }
    }
}

/// Ones in the bytes from `position` on; none if that is 32 or more.
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

/// Reads tags and remembers what was special about any of them.
struct Tags {
    /// See [`LengthDigits`]; each table twice, as shuffles work on halves.
    length_digits: [__m256i; 3],
    /// The highest byte of any lane: a tag may be the length of a data field.
    lengths: __m256i,
    /// The same of a long tag.
    long_length: bool,
    /// Any bit: a tag has something else than digits.
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

    /// Puts the numbers of eight tags to `entries`; their values begin at `begins`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn read(
        &mut self,
        bytes: &[u8],
        begins: &[u32; 8],
        data: &DataFields,
        entries: &mut [u32; 8],
    ) -> Option<()> {
        // SAFETY: `read_tags` gives positions in the message, none of the first four.
        let text = unsafe { four_in_front(bytes, begins) };
        // The tag is what stands behind the last separator: all below that is taken away.
        let separators = _mm256_cmpeq_epi8(text, _mm256_set1_epi8(SOH as i8));
        let foreign = _mm256_or_si256(separators, _mm256_srli_epi32::<8>(separators));
        let foreign = _mm256_or_si256(foreign, _mm256_srli_epi32::<16>(foreign));
        let digits = _mm256_sub_epi8(text, _mm256_set1_epi8(b'0' as i8));
        let digits = _mm256_andnot_si256(foreign, digits);
        self.odd = _mm256_or_si256(self.odd, _mm256_subs_epu8(digits, _mm256_set1_epi8(9)));
        let pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a));
        let numbers = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x0001_0064));

        let [hundreds, tens, ones] = self.length_digits;
        let hundreds = _mm256_slli_epi32::<16>(_mm256_shuffle_epi8(hundreds, digits));
        let tens = _mm256_slli_epi32::<8>(_mm256_shuffle_epi8(tens, digits));
        let ones = _mm256_shuffle_epi8(ones, digits);
        let lengths = _mm256_and_si256(_mm256_and_si256(hundreds, tens), ones);
        self.lengths = _mm256_or_si256(self.lengths, lengths);

        // SAFETY: eight entries have 32 bytes.
        unsafe { _mm256_storeu_si256(entries.as_mut_ptr().cast(), numbers) };
        let whole = _mm256_cmpeq_epi32(foreign, _mm256_setzero_si256());
        let mut long = _mm256_movemask_ps(_mm256_castsi256_ps(whole)) as u32;
        while long != 0 {
            let lane = long.trailing_zeros() as usize & 7;
            entries[lane] = long_tag(bytes, begins[lane] as usize - 1)?;
            self.long_length |= data.may_be_length(entries[lane]);
            long &= long - 1;
        }
        Some(())
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn any_odd(&self) -> bool {
        _mm256_testz_si256(self.odd, self.odd) == 0
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn any_length(&self) -> bool {
        let highest = _mm256_set1_epi32(0xff00_0000_u32 as i32);
        self.long_length || _mm256_testz_si256(self.lengths, highest) == 0
    }
}

/// The four bytes in front of the `=` of each value, the last one highest.
///
/// # Safety
/// All values begin in `bytes`, behind at least five other bytes.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn four_in_front(bytes: &[u8], begins: &[u32; 8]) -> __m256i {
    let four = |i: usize| {
        // SAFETY: as the caller warrants.
        unsafe {
            let begin = bytes.as_ptr().add(begins[i] as usize);
            begin.sub(FRONT as usize).cast::<i32>().read_unaligned()
        }
    };
    _mm256_setr_epi32(
        four(0),
        four(1),
        four(2),
        four(3),
        four(4),
        four(5),
        four(6),
        four(7),
    )
}

/// The tag of at most seven digits in front of `equals`; `None` if it is no such tag.
#[inline]
fn long_tag(bytes: &[u8], equals: usize) -> Option<u32> {
    let eight = u64::from_le_bytes(*bytes.get(..equals)?.last_chunk::<8>()?);
    let count = separators_in(eight.swap_bytes()).trailing_zeros() as usize / 8;
    parse_last_of_eight(eight, count).filter(|_| count < 8)
}

/// The sum of all bytes modulo 256.
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
