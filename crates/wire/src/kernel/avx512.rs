//! 64 bytes at a time.
//!
//! Per block: masks of separators and `=`; their positions compressed to vectors and stored; for
//! 16 tags at once the four bytes in front of each `=` fetched by one permute of this block and
//! the one before, and made numbers by two multiply-adds; the sum by sums of absolute differences.
//! Nothing is read back from memory, as a load that spans several stores still under way would
//! wait for them.

use super::{Fields, Scan};
use crate::fields::{FieldIndex, SOH};
use core::arch::x86_64::*;

/// The room that must be left in the arrays before each block: 32 fields of two bytes, and as much
/// again for lanes that are stored but count for nothing.
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

/// Indexes `bytes`, of which there are less than 2 GiB; gives up where a tag has other bytes than
/// digits, or more than seven.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Option<Scan> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return None;
    }
    let mut fields = Fields::new();
    let mut tags = Tags::new(index);
    let mut sums = _mm512_setzero_si512();
    // In front of the message stands the end of a field.
    let mut before = _mm512_set1_epi8(SOH as i8);
    let (mut begins, mut ends) = (0, 0);
    for at in (0..bytes.len()).step_by(64) {
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
        write(&mut index.end, ends, offsets(lower(positions), at));
        if count > 16 {
            write(&mut index.end, ends + 16, offsets(upper(positions), at));
        }
        ends += count;

        let window = Window { before, block };
        let positions = compress(equals);
        let count = equals.count_ones() as usize;
        let sixteen = lower(positions);
        write(&mut index.begin, begins, offsets(sixteen, at + 1));
        write(&mut index.tag, begins, tags.read(&window, sixteen, count));
        if count > 16 {
            let sixteen = upper(positions);
            write(&mut index.begin, begins + 16, offsets(sixteen, at + 1));
            write(
                &mut index.tag,
                begins + 16,
                tags.read(&window, sixteen, count - 16),
            );
        }
        begins += count;
        before = block;
    }
    if begins > index.max_fields() || tags.any_odd() {
        return None;
    }
    index.len = begins;
    let sum = _mm512_reduce_add_epi64(sums) as u8;
    Some(Scan {
        sum,
        may_hold_data: tags.any_length(),
    })
}

/// Two neighbouring blocks.
struct Window {
    before: __m512i,
    block: __m512i,
}

/// Reads tags and remembers what was special about any of them.
struct Tags {
    /// The bit set of [`crate::DataFields`].
    filter: (__m512i, __m512i),
    /// Bit 0 of any lane: a tag may be the length of a data field.
    lengths: __m512i,
    /// Any bit: a tag has something else than digits, or more than seven.
    odd: __m512i,
}

impl Tags {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(index: &FieldIndex) -> Self {
        let (lower, upper) = index.data.filter();
        // SAFETY: both are arrays of 64 bytes.
        let filter = unsafe {
            (
                _mm512_loadu_si512(lower.as_ptr().cast()),
                _mm512_loadu_si512(upper.as_ptr().cast()),
            )
        };
        Self {
            filter,
            lengths: _mm512_setzero_si512(),
            odd: _mm512_setzero_si512(),
        }
    }

    /// The numbers of the first 16 of `count` tags, which end in front of the `=` at `positions`
    /// of the block.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi,bmi2")]
    fn read(&mut self, window: &Window, positions: __m128i, count: usize) -> __m512i {
        let valid = _bzhi_u32(0xffff, count as u32) as __mmask16;
        let four = Digits::in_front(window, positions, 4);
        let mut tags = four.number();
        self.odd = _mm512_mask_or_epi32(self.odd, valid, self.odd, four.above_nine());
        let long = four.cut_off() & valid;
        if long != 0 {
            tags = _mm512_add_epi32(tags, self.upper_digits(window, positions, long));
        }
        let chosen = _mm512_srli_epi32::<5>(tags);
        let words = _mm512_permutex2var_epi32(self.filter.0, chosen, self.filter.1);
        let bits = _mm512_rorv_epi32(words, tags);
        self.lengths = _mm512_mask_or_epi32(self.lengths, valid, self.lengths, bits);
        tags
    }

    /// What the fifth to seventh last digits of the long tags stand for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi")]
    fn upper_digits(&mut self, window: &Window, positions: __m128i, long: __mmask16) -> __m512i {
        let four = Digits::in_front(window, positions, 8);
        let too_long = _mm512_maskz_set1_epi32(four.cut_off() & long, 1);
        self.odd = _mm512_or_si512(self.odd, too_long);
        self.odd = _mm512_mask_or_epi32(self.odd, long, self.odd, four.above_nine());
        _mm512_maskz_mullo_epi32(long, four.number(), _mm512_set1_epi32(10_000))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn any_odd(&self) -> bool {
        _mm512_test_epi32_mask(self.odd, self.odd) != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn any_length(&self) -> bool {
        _mm512_test_epi32_mask(self.lengths, _mm512_set1_epi32(1)) != 0
    }
}

/// Four bytes for each of 16 tags, the last one of the tag in the highest byte of its lane.
struct Digits {
    /// Digits from 0 to 9 if they are some; what does not belong to the tag is 0.
    digits: __m512i,
    /// The bits of the lane that belong to the tag: 0, 8, 16, 24, or 32 for "all, and maybe more".
    clean_bits: __m512i,
}

impl Digits {
    /// Those that begin `distance` bytes in front of each position.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512vbmi")]
    fn in_front(window: &Window, positions: __m128i, distance: i8) -> Self {
        // The bytes of the block have the indices from 64 on.
        let first = _mm512_add_epi8(
            _mm512_set1_epi32(0x0302_0100),
            _mm512_set1_epi8(64 - distance),
        );
        let chosen = _mm512_add_epi8(low_byte_to_all(_mm512_cvtepu8_epi32(positions)), first);
        let text = _mm512_permutex2var_epi8(window.before, chosen, window.block);
        // The tag is what stands behind the last separator: the upper bytes clean of one.
        let separators = _mm512_cmpeq_epi8_mask(text, _mm512_set1_epi8(SOH as i8));
        let clean_bits = _mm512_lzcnt_epi32(_mm512_movm_epi8(separators));
        let above = _mm512_set1_epi32(0x0008_1018);
        let of_tag = _mm512_cmpgt_epu8_mask(low_byte_to_all(clean_bits), above);
        let digits = _mm512_maskz_sub_epi8(of_tag, text, _mm512_set1_epi8(b'0' as i8));
        Self { digits, clean_bits }
    }

    /// The numbers from 0 to 9999 that the digits stand for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn number(&self) -> __m512i {
        let pairs = _mm512_maddubs_epi16(self.digits, _mm512_set1_epi16(0x010a));
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064))
    }

    /// Not zero in lanes with a byte of the tag that is no digit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn above_nine(&self) -> __m512i {
        _mm512_subs_epu8(self.digits, _mm512_set1_epi8(9))
    }

    /// The lanes whose tag may go on in front of the four bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn cut_off(&self) -> __mmask16 {
        _mm512_test_epi32_mask(self.clean_bits, _mm512_set1_epi32(32))
    }
}

/// The lowest byte of each 32-bit lane in all four of its bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn low_byte_to_all(lanes: __m512i) -> __m512i {
    let chosen = _mm512_set4_epi32(0x0c0c_0c0c, 0x0808_0808, 0x0404_0404, 0);
    _mm512_shuffle_epi8(lanes, chosen)
}

/// The positions of the bits set in `mask`, packed to the front.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
fn compress(mask: u64) -> __m512i {
    const ALL: [u8; 64] = {
        let mut all = [0; 64];
        let mut i = 0;
        while i < 64 {
            all[i] = i as u8;
            i += 1;
        }
        all
    };
    // SAFETY: 64 bytes are read from an array of 64.
    let all = unsafe { _mm512_loadu_si512(ALL.as_ptr().cast()) };
    _mm512_maskz_compress_epi8(mask, all)
}

/// The first 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn lower(bytes: __m512i) -> __m128i {
    _mm512_castsi512_si128(bytes)
}

/// The second 16 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn upper(bytes: __m512i) -> __m128i {
    _mm512_extracti32x4_epi32::<1>(bytes)
}

/// 16 positions in a block as offsets in the message.
#[inline]
#[target_feature(enable = "avx512f")]
fn offsets(positions: __m128i, at: usize) -> __m512i {
    _mm512_add_epi32(
        _mm512_cvtepu8_epi32(positions),
        _mm512_set1_epi32(at as i32),
    )
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

/// Writes 16 lanes to `array[at..at + 16]`.
#[inline]
#[target_feature(enable = "avx512f")]
fn write(array: &mut [u32], at: usize, lanes: __m512i) {
    debug_assert!(at + 16 <= array.len());
    // SAFETY: before each block, `index` makes room for BLOCK_ROOM entries behind the fields of the
    // blocks before (there are never more ends than begins). `index` writes at most 16 entries
    // behind those, so that 32 suffice.
    unsafe { _mm512_storeu_si512(array.as_mut_ptr().add(at).cast(), lanes) }
}
