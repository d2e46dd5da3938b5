//! The AVX-512 kernel: 124 bytes a step, in two vectors that also hold the byte before them and
//! three after them.
//!
//! In each step the positions of separators, after which fields begin, are compressed to the front.
//! The end of one field is where the next one begins. The first four bytes of 16 fields are fetched
//! by one permute. The bytes before the first `=` are the tag, which two multiply-adds make a
//! number, and their count tells where the value begins. An `=` in a value has no effect. Nothing
//! is read back from memory, as a load that spans several stores still under way would wait for
//! them.
//!
//! On Zen 5 the number of vector operations under way is the limit. Hence there are two vectors a
//! step (64 bytes hold about six fields, of the 16 that an operation can process), one sequence of
//! positions, and byte-wise sums that are added up at the end.

use super::{Scan, Unfit};
use crate::data::DataFields;
use crate::fields::{FieldIndex, SOH};
use core::arch::x86_64::*;
use core::ops::Range;

/// The number of bytes of one step.
const STEP: usize = 124;

/// The most fields of one step, and the room that must be left in the columns before each step.
const STEP_FIELDS: usize = 32;

/// The bytes of a step's upper vector that may be a separator before a field of this step.
const UPPER: u64 = u64::MAX >> (128 - STEP);

/// Returns whether this processor has the instructions of [`index`].
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("avx512vpopcntdq")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Indexes `bytes`, which are shorter than 2 GiB. Gives up if a tag has other bytes than digits, or
/// more than seven, or if the fields of a step have fewer than four bytes on average.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,avx512vpopcntdq,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Result<Scan, Unfit> {
    // No field begins behind the last separator; the one that stands in front of the first field
    // in the first step's vectors makes up for it in the sum.
    let Some((&SOH, front)) = bytes.split_last() else {
        return Err(Unfit::Message);
    };
    index.clear();
    let max_fields = index.max_fields();
    let (data, columns) = index.parts().ok_or(Unfit::Room)?;
    let mut tags = Tags::new(data);
    let mut sums = _mm512_setzero_si512();
    let mut base = _mm512_set1_epi32(-1);
    let (mut begun, mut at) = (0, 0);
    while at < bytes.len() {
        if begun + STEP_FIELDS > columns.tag.len() {
            return Err(Unfit::Room);
        }
        let window = Window::load(front, at);
        sums = _mm512_add_epi8(sums, window.sums());
        let has_upper = bytes.len() - at > 63;
        let (mut starts, count) = window.starts(has_upper);
        if count as usize > STEP_FIELDS {
            return Err(Unfit::Message);
        }
        let mut to = begun;
        let mut left = count;
        loop {
            let mut fields = tags.read(&window, starts, left);
            if fields.long != 0 {
                tags.read_on(&Window::load(front, at + 4), starts, &mut fields);
            }
            tags.check_length(fields.tags);
            let ends = _mm512_add_epi32(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(starts)), base);
            write(columns.end, to, ends);
            write(columns.begin, to, fields.begins(ends));
            write(columns.tag, to, fields.tags);
            if left <= 16 {
                break;
            }
            starts = _mm512_alignr_epi32::<4>(starts, starts);
            left -= 16;
            to += 16;
        }
        begun += count as usize;
        base = _mm512_add_epi32(base, _mm512_set1_epi32(STEP as i32));
        at += STEP;
    }
    if begun > max_fields || tags.any_odd() {
        return Err(Unfit::Message);
    }
    if let Some(end) = columns.end.get_mut(begun) {
        *end = front.len() as u32;
    }
    index.len = begun;
    Ok(Scan {
        sum: _mm512_reduce_add_epi64(_mm512_sad_epu8(sums, _mm512_setzero_si512())) as u8,
        may_hold_data: tags.any_length(),
    })
}

/// The bytes of one step.
struct Window {
    lower: __m512i,
    upper: __m512i,
}

impl Window {
    /// Returns the bytes from the one before `at` on. A separator precedes the message, and zeros
    /// follow it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn load(bytes: &[u8], at: usize) -> Self {
        let Some(from) = at.checked_sub(1) else {
            let in_front = _mm512_sub_epi8(positions(), _mm512_set1_epi8(1));
            let soh = _mm512_set1_epi8(SOH as i8);
            return Self {
                lower: _mm512_permutex2var_epi8(load(bytes, 0), in_front, soh),
                upper: load(bytes, 63),
            };
        };
        if bytes.len() >= from + 128 {
            // SAFETY: all 128 bytes are in the message.
            return unsafe {
                let from = bytes.as_ptr().add(from);
                Self {
                    lower: _mm512_loadu_si512(from.cast()),
                    upper: _mm512_loadu_si512(from.add(64).cast()),
                }
            };
        }
        Self {
            lower: load(bytes, from),
            upper: load(bytes, from + 64),
        }
    }

    /// Returns sums of the bytes of a step, to be added up.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn sums(&self) -> __m512i {
        let own = _mm512_setr_epi32(
            -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0,
        );
        _mm512_add_epi8(self.lower, _mm512_and_si512(self.upper, own))
    }

    /// Returns the positions of the separators before fields, and their number. `has_upper` is
    /// false if the message ends before the upper vector.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi2,popcnt")]
    fn starts(&self, has_upper: bool) -> (__m512i, u32) {
        let soh = _mm512_set1_epi8(SOH as i8);
        let lower = _mm512_cmpeq_epi8_mask(self.lower, soh);
        let starts = _mm512_maskz_compress_epi8(lower, positions());
        let count = lower.count_ones();
        if !has_upper {
            return (starts, count);
        }
        let upper = _mm512_mask_cmpeq_epi8_mask(UPPER, self.upper, soh);
        let behind = _mm512_or_si512(positions(), _mm512_set1_epi8(64));
        let behind = _mm512_maskz_compress_epi8(upper, behind);
        // With 64 in the lower vector the step is given up anyway.
        let starts = _mm512_mask_expand_epi8(starts, u64::MAX << (count & 63), behind);
        (starts, count + upper.count_ones())
    }

    /// Returns the four bytes after each of the first 16 positions, the first one lowest.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn four_behind(&self, positions: __m512i) -> __m512i {
        const FOUR_TIMES: [u8; 64] = {
            let mut each = [0; 64];
            let mut i = 0;
            while i < 64 {
                each[i] = (i / 4) as u8;
                i += 1;
            }
            each
        };
        // SAFETY: 64 bytes are read from an array of 64.
        let each = unsafe { _mm512_loadu_si512(FOUR_TIMES.as_ptr().cast()) };
        let positions = _mm512_permutexvar_epi8(each, positions);
        let behind = _mm512_add_epi8(positions, _mm512_set1_epi32(0x0403_0201));
        _mm512_permutex2var_epi8(self.lower, behind, self.upper)
    }
}

/// A reader of tags, which remembers what was special about any of them.
struct Tags {
    /// The filter of [`DataFields`], and the range of long length tags.
    filter: (__m512i, __m512i),
    long: Range<u32>,
    /// Bit 0 of any lane is set if a tag may be the length of a data field.
    lengths: __m512i,
    /// Any byte is above 9 if a tag has other bytes than digits, or more than seven.
    odd: __m512i,
}

/// The tags of 16 fields.
struct Read {
    tags: __m512i,
    /// Eight times the lengths of the tags.
    bits: __m512i,
    /// The tags that do not end within the bytes read. Their `tags` and `bits` are those of the
    /// first four bytes.
    long: __mmask16,
}

impl Read {
    /// Returns the offsets at which the values begin, from the ends of the fields before them.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn begins(&self, ends: __m512i) -> __m512i {
        let behind = _mm512_add_epi32(ends, _mm512_set1_epi32(2));
        _mm512_add_epi32(behind, _mm512_srli_epi32::<3>(self.bits))
    }
}

impl Tags {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(data: &DataFields) -> Self {
        let (lower, upper) = data.filter();
        // SAFETY: both are arrays of 64 bytes.
        let filter = unsafe {
            (
                _mm512_loadu_si512(lower.as_ptr().cast()),
                _mm512_loadu_si512(upper.as_ptr().cast()),
            )
        };
        Self {
            filter,
            long: data.long().clone(),
            lengths: _mm512_setzero_si512(),
            odd: _mm512_setzero_si512(),
        }
    }

    /// Returns the tags of up to three digits of the first 16 fields, of which there are `count`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq,bmi2")]
    fn read(&mut self, window: &Window, starts: __m512i, count: u32) -> Read {
        let lanes = _bzhi_u32(u32::MAX, count) as __mmask16;
        let four = Digits::of(window.four_behind(starts), lanes);
        self.odd = _mm512_max_epu8(self.odd, four.digits);
        Read {
            tags: four.number(),
            bits: four.bits,
            long: four.unended,
        }
    }

    /// Reads the rest of the long tags, which have four to seven digits. `window` is the one four
    /// bytes on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vpopcntdq")]
    fn read_on(&mut self, window: &Window, starts: __m512i, read: &mut Read) {
        let four = Digits::of(window.four_behind(starts), read.long);
        self.odd = _mm512_max_epu8(self.odd, four.digits);
        self.odd = _mm512_mask_set1_epi32(self.odd, four.unended, -1);
        let powers = _mm512_setr_epi32(1, 10, 100, 1000, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        let power = _mm512_permutexvar_epi32(_mm512_srli_epi32::<3>(four.bits), powers);
        let upper = _mm512_mullo_epi32(read.tags, power);
        read.tags = _mm512_mask_add_epi32(read.tags, read.long, upper, four.number());
        read.bits = _mm512_mask_add_epi32(read.bits, read.long, read.bits, four.bits);
        let (start, end) = (self.long.start as i32, self.long.end as i32);
        let tags = read.tags;
        let long = _mm512_mask_cmpge_epu32_mask(read.long, tags, _mm512_set1_epi32(start));
        let long = _mm512_mask_cmplt_epu32_mask(long, tags, _mm512_set1_epi32(end));
        self.lengths = _mm512_mask_set1_epi32(self.lengths, long, 1);
    }

    /// Notes whether a tag may be a length. Lanes without a tag are 0, which at worst is taken for
    /// a length.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn check_length(&mut self, tags: __m512i) {
        let word = _mm512_srli_epi32::<5>(tags);
        let words = _mm512_permutex2var_epi32(self.filter.0, word, self.filter.1);
        self.lengths = _mm512_or_si512(self.lengths, _mm512_rorv_epi32(words, tags));
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn any_odd(&self) -> bool {
        _mm512_cmpgt_epu8_mask(self.odd, _mm512_set1_epi8(9)) != 0
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn any_length(&self) -> bool {
        _mm512_test_epi32_mask(self.lengths, _mm512_set1_epi32(1)) != 0
    }
}

/// The bytes before the first `=` of four bytes, for each of 16 lanes.
struct Digits {
    /// The digits from 0 to 9, if they are digits, the first one in the lowest byte. All other
    /// bytes are 0.
    digits: __m512i,
    /// Eight times the number of digits.
    bits: __m512i,
    /// The lanes that have no `=`.
    unended: __mmask16,
}

impl Digits {
    /// Returns the digits of the lanes `of`. Those of the other lanes are 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
    fn of(text: __m512i, of: __mmask16) -> Self {
        let equals = _mm512_xor_si512(text, _mm512_set1_epi8(b'=' as i8));
        // 1 in the bytes that are `=`, 0 in the others.
        let equals = _mm512_subs_epu8(_mm512_set1_epi8(1), equals);
        // The bits below the lowest one.
        let below = _mm512_add_epi32(equals, _mm512_set1_epi32(-1));
        let below = _mm512_andnot_si512(equals, below);
        let zeros = _mm512_set1_epi8(b'0' as i8);
        Self {
            // below & (text ^ zeros)
            digits: _mm512_maskz_ternarylogic_epi32::<0x60>(of, below, text, zeros),
            bits: _mm512_popcnt_epi32(below),
            unended: _mm512_mask_testn_epi32_mask(of, equals, equals),
        }
    }

    /// Returns the numbers from 0 to 9999 with these digits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn number(&self) -> __m512i {
        // The last digit becomes the highest byte.
        let digits = _mm512_rorv_epi32(self.digits, self.bits);
        let pairs = _mm512_maddubs_epi16(digits, _mm512_set1_epi16(0x010a));
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0001_0064))
    }
}

/// Returns the numbers from 0 to 63.
#[inline]
#[target_feature(enable = "avx512f")]
fn positions() -> __m512i {
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
    unsafe { _mm512_loadu_si512(ALL.as_ptr().cast()) }
}

/// Returns the 64 bytes from `at` on, with zeros after the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    if at >= bytes.len() {
        return _mm512_setzero_si512();
    }
    let left = bytes.len() - at;
    // SAFETY: `at` is in the message, and the mask leaves out what lies behind its end.
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
    // SAFETY: each step begins with room for STEP_FIELDS entries behind the fields that have begun
    // before it, and writes 16 or 32 entries from there on.
    unsafe { _mm512_storeu_si512(array.as_mut_ptr().add(at).cast(), lanes) }
}
