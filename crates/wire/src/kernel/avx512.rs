//! 64 bytes at a time.
//!
//! Per block: masks of separators and `=`; their positions compressed to vectors and stored; for
//! up to 16 tags at once the four bytes in front of each `=` fetched by one permute of this block
//! and the one before, and made numbers by two multiply-adds; the sum by sums of absolute
//! differences. Nothing is read back from memory.

use super::{Fields, Scan};
use crate::fields::{FieldIndex, SOH, parse_tag};
use core::arch::x86_64::*;

/// The most fields that one block of 64 bytes may add (`=` and separator each), doubled.
const BLOCK_ROOM: usize = 64;

/// Whether this processor has the instructions of [`index`].
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Indexes `bytes`, of which there are less than 4 GiB and at least one.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Option<Scan> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return None;
    }
    let filter = Filter::load(index);
    let mut fields = Fields::new();
    let mut sums = _mm512_setzero_si512();
    // In front of the message stands the end of a field.
    let mut before = _mm512_set1_epi8(SOH as i8);
    let (mut begins, mut ends) = (0, 0);
    let mut suspects = 0;
    let mut at = 0;
    while at < bytes.len() {
        if begins + BLOCK_ROOM > index.tag.len() && !index.grow_within_limit() {
            return None;
        }
        let block = load(bytes, at);
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(block, _mm512_setzero_si512()));
        let separators = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(SOH as i8));
        let equals = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(b'=' as i8));
        let equals = fields.next(separators, equals)?;

        let positions = compress(separators);
        let count = separators.count_ones() as usize;
        store(
            &mut index.end,
            ends,
            widen(_mm512_castsi512_si128(positions), at),
        );
        if count > 16 {
            let upper = _mm512_extracti32x4_epi32::<1>(positions);
            store(&mut index.end, ends + 16, widen(upper, at));
        }
        ends += count;

        let window = Window { before, block, at };
        let positions = compress(equals);
        let count = equals.count_ones() as usize;
        let lower = _mm512_castsi512_si128(positions);
        suspects |= tags(bytes, index, begins, &window, lower, count, &filter);
        if count > 16 {
            let upper = _mm512_extracti32x4_epi32::<1>(positions);
            suspects |= tags(
                bytes,
                index,
                begins + 16,
                &window,
                upper,
                count - 16,
                &filter,
            );
        }
        begins += count;
        before = block;
        at += 64;
    }
    if begins > index.max_fields() {
        return None;
    }
    index.len = begins;
    let sum = _mm512_reduce_add_epi64(sums) as u8;
    Some(Scan {
        sum,
        may_hold_data: suspects != 0,
    })
}

/// Two neighbouring blocks; the later one begins at offset `at`.
struct Window {
    before: __m512i,
    block: __m512i,
    at: usize,
}

/// The bit set of [`crate::DataFields`] in two registers.
struct Filter(__m512i, __m512i);

impl Filter {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(index: &FieldIndex) -> Self {
        let (lower, upper) = index.data.filter();
        // SAFETY: both are arrays of 64 bytes.
        unsafe {
            Self(
                _mm512_loadu_si512(lower.as_ptr().cast()),
                _mm512_loadu_si512(upper.as_ptr().cast()),
            )
        }
    }

    /// The lanes whose tag may be in the set.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn contains(&self, tags: __m512i) -> __mmask16 {
        let words = _mm512_permutex2var_epi32(self.0, _mm512_srli_epi32::<5>(tags), self.1);
        let bits = _mm512_and_si512(tags, _mm512_set1_epi32(31));
        _mm512_test_epi32_mask(words, _mm512_sllv_epi32(_mm512_set1_epi32(1), bits))
    }
}

/// Stores the first 16 of `count` tags, which end in front of the `=` at `positions` of the block,
/// and where their values begin. Returns the lanes that may hold the length of a data field.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi,bmi1,bmi2,popcnt")]
fn tags(
    bytes: &[u8],
    index: &mut FieldIndex,
    from: usize,
    window: &Window,
    positions: __m128i,
    count: usize,
    filter: &Filter,
) -> __mmask16 {
    let valid = _bzhi_u32(0xffff, count as u32) as __mmask16;
    store(&mut index.begin, from, widen(positions, window.at + 1));
    let four = FourBytes::in_front(window, positions, 4);
    let mut numbers = four.numbers();
    let mut odd = four.not_digits() & valid;
    let long = four.no_separator() & valid;
    if long != 0 {
        let upper = FourBytes::in_front(window, positions, 8);
        let ten_thousands = _mm512_mullo_epi32(upper.numbers(), _mm512_set1_epi32(10_000));
        numbers = _mm512_mask_add_epi32(numbers, long, numbers, ten_thousands);
        odd |= (upper.not_digits() | upper.no_separator()) & long;
    }
    store(&mut index.tag, from, numbers);
    if odd != 0 {
        patch(bytes, index, from, odd);
        return odd;
    }
    filter.contains(numbers) & valid
}

/// Four bytes for each of 16 tags, the last one of the tag in the highest byte of its lane.
struct FourBytes {
    /// Digits from 0 to 9 if they are some; what does not belong to the tag is 0.
    digits: __m512i,
    /// 32 where all four belong to the tag, less where a separator stands among them.
    clean_bits: __m512i,
}

impl FourBytes {
    /// Those that begin `distance` bytes in front of each position.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi")]
    fn in_front(window: &Window, positions: __m128i, distance: i8) -> Self {
        let spread = _mm512_shuffle_epi8(
            _mm512_cvtepu8_epi32(positions),
            _mm512_set4_epi32(0x0c0c_0c0c, 0x0808_0808, 0x0404_0404, 0),
        );
        // The block's own bytes have the indices from 64 on.
        let offsets = _mm512_set1_epi32(0x0302_0100);
        let first = _mm512_add_epi8(offsets, _mm512_set1_epi8(64 - distance));
        let chosen = _mm512_add_epi8(spread, first);
        let text = _mm512_permutex2var_epi8(window.before, chosen, window.block);
        let separators = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(SOH as i8));
        let clean_bits = _mm512_lzcnt_epi32(_mm512_movm_epi8(separators));
        let shift = _mm512_sub_epi32(_mm512_set1_epi32(32), clean_bits);
        let of_tag = _mm512_sllv_epi32(_mm512_set1_epi32(-1), shift);
        let digits = _mm512_sub_epi8(text, _mm512_set1_epi8(b'0' as i8));
        Self {
            digits: _mm512_and_si512(digits, of_tag),
            clean_bits,
        }
    }

    /// The numbers from 0 to 9999 that the digits stand for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn numbers(&self) -> __m512i {
        let pairs = _mm512_maddubs_epi16(self.digits, _mm512_set1_epi16(0x010a));
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064))
    }

    /// The lanes with a byte of the tag that is no digit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn not_digits(&self) -> __mmask16 {
        let nine = _mm512_set1_epi8(9);
        let above = _mm512_subs_epu8(self.digits, nine);
        _mm512_test_epi32_mask(above, above)
    }

    /// The lanes whose tag may go on in front of the four bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn no_separator(&self) -> __mmask16 {
        _mm512_cmpeq_epi32_mask(self.clean_bits, _mm512_set1_epi32(32))
    }
}

/// Parses the tags of some lanes one by one.
#[cold]
#[inline(never)]
fn patch(bytes: &[u8], index: &mut FieldIndex, from: usize, lanes: __mmask16) {
    for field in (0..16)
        .filter(|lane| lanes >> lane & 1 == 1)
        .map(|lane| from + lane)
    {
        let equals = index.begin[field] as usize - 1;
        let in_front = bytes.get(..equals).unwrap_or_default();
        let start = in_front
            .iter()
            .rposition(|&byte| byte == SOH)
            .map_or(0, |at| at + 1);
        index.tag[field] = parse_tag(&in_front[start..]);
    }
}

/// The 64 bytes from `at` on; zeros behind the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    let left = bytes.len() - at;
    // SAFETY: `at` is less than the length, and the mask leaves out what lies behind the end.
    unsafe {
        let from = bytes.as_ptr().add(at).cast::<i8>();
        if left >= 64 {
            _mm512_loadu_si512(from.cast())
        } else {
            _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, left as u32), from)
        }
    }
}

/// The positions of the bits set in `mask`, packed to the front.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn compress(mask: u64) -> __m512i {
    const POSITIONS: [u8; 64] = {
        let mut positions = [0; 64];
        let mut i = 0;
        while i < 64 {
            positions[i] = i as u8;
            i += 1;
        }
        positions
    };
    // SAFETY: 64 bytes are read from an array of 64.
    let positions = unsafe { _mm512_loadu_si512(POSITIONS.as_ptr().cast()) };
    _mm512_maskz_compress_epi8(mask, positions)
}

/// 16 positions in a block as offsets in the message.
#[inline]
#[target_feature(enable = "avx512f")]
fn widen(positions: __m128i, at: usize) -> __m512i {
    _mm512_add_epi32(
        _mm512_cvtepu8_epi32(positions),
        _mm512_set1_epi32(at as i32),
    )
}

/// Stores 16 lanes at `array[at..at + 16]`.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(array: &mut [u32], at: usize, lanes: __m512i) {
    debug_assert!(at + 16 <= array.len());
    // SAFETY: `index` makes room for BLOCK_ROOM entries behind the fields of earlier blocks before
    // each block. `at` is at most 16 more than their number (and the ends, which never outnumber
    // the begins, likewise), so 32 entries suffice.
    unsafe { _mm512_storeu_si512(array.as_mut_ptr().add(at).cast(), lanes) }
}
