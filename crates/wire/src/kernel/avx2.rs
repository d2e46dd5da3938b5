//! 64 bytes at a time in two vectors of 32, tags eight at a time.
//!
//! Per block: masks of separators and `=`; their positions taken from the masks; the four bytes in
//! front of each `=` put into the lanes of a vector and made numbers by two multiply-adds. The rare
//! tags of four digits or more are read singly. Nothing just stored is read back, as a load that
//! spans several stores still under way would wait for them.

use super::{Fields, Scan};
use crate::data::{DataFields, LengthDigits};
use crate::fields::{FieldIndex, SOH};
use crate::int::parse_last_of_eight;
use core::arch::x86_64::*;

/// The room that must be left in the arrays before each block: 32 fields of two bytes, and as much
/// again for entries that are written but count for nothing.
const BLOCK_ROOM: usize = 64;

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
    let mut fields = Fields::new();
    let mut tags = Tags::new(index);
    let mut sums = _mm256_setzero_si256();
    let (mut begins, mut ends) = (0, 0);
    for at in (0..bytes.len()).step_by(64) {
        if begins + BLOCK_ROOM > index.tag.len() && !index.grow_within_limit() {
            return None;
        }
        let block = Block::load(bytes, at);
        sums = _mm256_add_epi64(sums, block.sums);
        let mut equals = fields.next(block.separators, block.equals)?;
        let mut separators = block.separators;
        let fields_here = equals.count_ones() as usize;
        let ends_here = separators.count_ones() as usize;
        let mut done = 0;
        while equals != 0 {
            let positions = eight(&mut equals, at);
            let entries = index
                .begin
                .get_mut(begins + done..)?
                .first_chunk_mut::<8>()?;
            *entries = positions.map(|position| position + 1);
            let count = (fields_here - done).min(8);
            let entries = index.tag.get_mut(begins + done..)?.first_chunk_mut::<8>()?;
            tags.read(bytes, &positions, count, &index.data, entries)?;
            done += 8;
        }
        done = 0;
        while separators != 0 {
            let entries = index.end.get_mut(ends + done..)?.first_chunk_mut::<8>()?;
            *entries = eight(&mut separators, at);
            done += 8;
        }
        begins += fields_here;
        ends += ends_here;
    }
    if begins > index.max_fields() || tags.any_odd() {
        return None;
    }
    index.len = begins;
    Some(Scan {
        sum: sum_of(sums),
        may_hold_data: tags.any_length(),
    })
}

/// What is known of 64 bytes; behind the end of the message there is nothing.
struct Block {
    separators: u64,
    equals: u64,
    /// Sums of its bytes, to be added up.
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
        let zero = _mm256_setzero_si256();
        Self {
            separators: mask(SOH),
            equals: mask(b'='),
            sums: _mm256_add_epi64(
                _mm256_sad_epu8(summed_low, zero),
                _mm256_sad_epu8(summed_high, zero),
            ),
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

/// The positions of the lowest eight bits of `mask`, which are taken from it, counted from `base`;
/// 64 bytes behind it where there are no more.
#[inline(always)]
fn eight(mask: &mut u64, base: usize) -> [u32; 8] {
    [0; 8].map(|_| {
        let position = base as u32 + mask.trailing_zeros();
        *mask &= mask.wrapping_sub(1);
        position
    })
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
    fn new(index: &FieldIndex) -> Self {
        let LengthDigits(tables) = index.data.length_digits();
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

    /// Puts the numbers of the first `count` tags, which end in front of `equals`, to `entries`.
    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn read(
        &mut self,
        bytes: &[u8],
        equals: &[u32; 8],
        count: usize,
        data: &DataFields,
        entries: &mut [u32; 8],
    ) -> Option<()> {
        let text = four_in_front(bytes, equals, count);
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
            entries[lane] = long_tag(bytes, equals[lane] as usize)?;
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

/// The four bytes in front of each of the first `count` positions, the last one highest; in front
/// of the message and in the other lanes stand separators.
#[inline]
#[target_feature(enable = "avx2")]
fn four_in_front(bytes: &[u8], positions: &[u32; 8], count: usize) -> __m256i {
    let separators = _mm256_set1_epi8(SOH as i8);
    // They ascend, and unused ones are at the end.
    if positions[0] >= 4 && positions[7] as usize <= bytes.len() {
        // SAFETY: so all four bytes in front of each belong to the message.
        let text = unsafe { load_fours(bytes, &positions.map(|position| position - 4)) };
        return keep(text, count, separators);
    }
    let last = bytes.len() as u32 - 4;
    // SAFETY: four bytes stand at each, of the at least 64 that `index` takes.
    let text = unsafe {
        load_fours(
            bytes,
            &positions
                .map(|position| position.max(4) - 4)
                .map(|from| from.min(last)),
        )
    };
    let text = keep(text, count, separators);
    if positions[0] >= 4 {
        return text;
    }
    // The first fields of the message: moved up by what is missing in front.
    let missing = positions.map(|position| 8 * (4 - position.min(4)));
    // SAFETY: 32 bytes are read from an array of 32.
    let missing = unsafe { _mm256_loadu_si256(missing.as_ptr().cast()) };
    let front = _mm256_srlv_epi32(separators, _mm256_sub_epi32(_mm256_set1_epi32(32), missing));
    _mm256_or_si256(_mm256_sllv_epi32(text, missing), front)
}

/// The first `count` lanes, and of `others` the rest.
#[inline]
#[target_feature(enable = "avx2")]
fn keep(lanes: __m256i, count: usize, others: __m256i) -> __m256i {
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let kept = _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), numbers);
    _mm256_blendv_epi8(others, lanes, kept)
}

/// The four bytes at each offset.
///
/// # Safety
/// All of them are in `bytes`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_fours(bytes: &[u8], from: &[u32; 8]) -> __m256i {
    let four = |i: usize| {
        // SAFETY: as the caller warrants.
        unsafe {
            bytes
                .as_ptr()
                .add(from[i] as usize)
                .cast::<i32>()
                .read_unaligned()
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
    // The lowest bit marks the separator nearest to the `=`; those above it may be wrong.
    let other = eight.swap_bytes() ^ 0x0101_0101_0101_0101;
    let separators = other.wrapping_sub(0x0101_0101_0101_0101) & !other & 0x8080_8080_8080_8080;
    let count = separators.trailing_zeros() as usize / 8;
    parse_last_of_eight(eight, count).filter(|_| count < 8)
}

/// The sum of all lanes modulo 256.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_of(sums: __m256i) -> u8 {
    let half = _mm_add_epi64(
        _mm256_castsi256_si128(sums),
        _mm256_extracti128_si256::<1>(sums),
    );
    _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))) as u8
}
