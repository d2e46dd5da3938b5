//! 124 bytes a step, in two vectors that also hold the four bytes in front of them.
//!
//! Per step: masks of separators and `=`. An `=` that ends a tag and a separator take turns, so
//! that their positions, compressed to the front, are pairs: where a value begins and where it
//! ends. For 16 pairs at once the four bytes in front of each `=` are fetched by one permute and
//! made a number by two multiply-adds. Nothing is read back from memory, as a load that spans
//! several stores still under way would wait for them.
//!
//! What limits it on Zen 5 is the number of vector and mask operations: hence two vectors a step
//! (64 bytes hold six fields or so, of the 16 that an operation can do), pairs rather than two
//! sequences of positions, and byte-wise sums that are added up at the end.

use super::{Fields, Scan};
use crate::fields::{FieldIndex, SOH};
use core::arch::x86_64::*;

/// The bytes in front that each step sees again, for the tag of its first `=`.
const FRONT: usize = 4;

/// The bytes of one step.
const STEP: usize = 128 - FRONT;

/// Where in a step the upper vector begins.
const UPPER: usize = 64 - FRONT;

/// The most fields of one step, so that all positions are in one vector; also the room that must
/// be left in the arrays before each step.
const STEP_FIELDS: usize = 32;

/// Those bytes of a step's lower vector that are its own.
const OWN: u64 = u64::MAX << FRONT;

/// Whether this processor has the instructions of [`index`].
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt")
}

/// Indexes `bytes`, of which there are less than 2 GiB; gives up where a tag has other bytes than
/// digits, or more than seven, and where the fields of a step have less than four bytes on average.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,bmi1,bmi2,popcnt")]
pub(super) fn index(bytes: &[u8], index: &mut FieldIndex) -> Option<Scan> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return None;
    }
    let mut fields = Fields::new();
    let mut tags = Tags::new(index);
    let mut sums = _mm512_setzero_si512();
    let mut base = _mm512_set1_epi32(-(FRONT as i32));
    // Fields that have come to their ends.
    let (mut done, mut at) = (0, 0);
    while at < bytes.len() {
        if done + STEP_FIELDS > index.tag.len() && !index.grow_within_limit() {
            return None;
        }
        let window = Window::load(bytes, at);
        sums = _mm512_add_epi8(sums, window.sums());
        let Borders {
            mut pairs,
            count,
            mut new,
        } = Borders::of(&window, bytes.len() - at > UPPER, &mut fields)?;
        let mut to = done;
        loop {
            let sixteen = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pairs));
            let (numbers, long) = tags.read(&window, pairs, new as __mmask16);
            write(&mut index.end, to, 0xffff, ends(sixteen, base));
            write(
                &mut index.begin,
                to,
                new as __mmask16,
                begins(sixteen, base),
            );
            let numbers = if long == 0 {
                numbers
            } else {
                _mm512_add_epi32(numbers, tags.read_upper(bytes, at, pairs, long))
            };
            tags.check_length(numbers, new as __mmask16);
            write(&mut index.tag, to, new as __mmask16, numbers);
            if count <= 32 || to != done {
                break;
            }
            pairs = _mm512_shuffle_i64x2::<0b00_00_11_10>(pairs, pairs);
            new >>= 16;
            to += 16;
        }
        done += count / 2;
        base = _mm512_add_epi32(base, _mm512_set1_epi32(STEP as i32));
        at += STEP;
    }
    if done > index.max_fields() || tags.any_odd() {
        return None;
    }
    index.len = done;
    Some(Scan {
        sum: _mm512_reduce_add_epi64(_mm512_sad_epu8(sums, _mm512_setzero_si512())) as u8,
        may_hold_data: tags.any_length(),
    })
}

/// What one step sees.
struct Window {
    lower: __m512i,
    upper: __m512i,
}

impl Window {
    /// The bytes from `at - FRONT` on; separators in front of the message, zeros behind it.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    fn load(bytes: &[u8], at: usize) -> Self {
        if at != 0 && bytes.len() - at >= STEP {
            // SAFETY: all 128 bytes, FRONT of them in front of `at`, are in the message.
            return unsafe {
                let from = bytes.as_ptr().add(at - FRONT);
                Self {
                    lower: _mm512_loadu_si512(from.cast()),
                    upper: _mm512_loadu_si512(from.add(64).cast()),
                }
            };
        }
        let lower = match at.checked_sub(FRONT) {
            Some(from) => load(bytes, from),
            None => _mm512_alignr_epi32::<15>(load(bytes, 0), _mm512_set1_epi8(SOH as i8)),
        };
        Self {
            lower,
            upper: load(bytes, at + UPPER),
        }
    }

    /// The same, four bytes further in front.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    fn load_in_front(bytes: &[u8], at: usize) -> Self {
        let lower = match at.checked_sub(2 * FRONT) {
            Some(from) => load(bytes, from),
            None => _mm512_alignr_epi32::<14>(load(bytes, 0), _mm512_set1_epi8(SOH as i8)),
        };
        Self {
            lower,
            upper: load(bytes, at + UPPER - FRONT),
        }
    }

    /// Sums of the bytes of this step, to be added up.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn sums(&self) -> __m512i {
        _mm512_add_epi8(_mm512_maskz_mov_epi8(OWN, self.lower), self.upper)
    }

    /// The bytes at 64 positions.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    fn bytes(&self, positions: __m512i) -> __m512i {
        _mm512_permutex2var_epi8(self.lower, positions, self.upper)
    }
}

/// Where the values of a step begin and end.
struct Borders {
    /// Positions in the window: of the `=` in front of a value, of the separator behind it, and so
    /// on. The first pair's `=` is the last byte in front if that value began in an earlier step;
    /// the last pair has no separator if that value goes on in the next step.
    pairs: __m512i,
    /// How many positions these are.
    count: usize,
    /// The pairs whose `=` is in this step, from the lowest bit on.
    new: u32,
}

impl Borders {
    /// `None` if a field has no `=`, or if they are too many. `has_upper` is false if the message
    /// ends in front of the upper vector.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt")]
    fn of(window: &Window, has_upper: bool, fields: &mut Fields) -> Option<Self> {
        let (soh, equals) = (_mm512_set1_epi8(SOH as i8), _mm512_set1_epi8(b'=' as i8));
        let in_tag = fields.in_tag;
        let separators = _mm512_mask_cmpeq_epi8_mask(OWN, window.lower, soh);
        let tag_ends = _mm512_mask_cmpeq_epi8_mask(OWN, window.lower, equals);
        let lower = fields.borders(separators, tag_ends, FRONT)?;
        let lower = lower | (in_tag ^ 1) << (FRONT - 1);
        let below = lower.count_ones();
        let all = positions();
        let mut pairs = _mm512_maskz_compress_epi8(lower, all);
        let mut count = below as usize;
        if has_upper {
            let separators = _mm512_cmpeq_epi8_mask(window.upper, soh);
            let tag_ends = _mm512_cmpeq_epi8_mask(window.upper, equals);
            let upper = fields.borders(separators, tag_ends, 0)?;
            count += upper.count_ones() as usize;
            if count > 2 * STEP_FIELDS {
                return None;
            }
            let upper =
                _mm512_maskz_compress_epi8(upper, _mm512_or_si512(all, _mm512_set1_epi8(64)));
            pairs = _mm512_mask_expand_epi8(pairs, u64::MAX << (below & 63), upper);
        }
        Some(Self {
            pairs,
            count,
            new: _bzhi_u32(!1 | in_tag as u32, count.div_ceil(2) as u32),
        })
    }
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

    /// The numbers of the last four digits of the first 16 tags, and which of them may have more.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn read(&mut self, window: &Window, pairs: __m512i, new: __mmask16) -> (__m512i, __mmask16) {
        let four = Digits::of(window.bytes(in_front(pairs)));
        self.odd = _mm512_mask_or_epi32(self.odd, new, self.odd, four.above_nine());
        (four.number(), four.cut_off(new))
    }

    /// What the fifth to seventh last digits of the long tags stand for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,bmi2")]
    fn read_upper(&mut self, bytes: &[u8], at: usize, pairs: __m512i, long: __mmask16) -> __m512i {
        let window = Window::load_in_front(bytes, at);
        let four = Digits::of(window.bytes(in_front(pairs)));
        let too_long = _mm512_maskz_set1_epi32(four.cut_off(long), 1);
        self.odd = _mm512_or_si512(self.odd, too_long);
        self.odd = _mm512_mask_or_epi32(self.odd, long, self.odd, four.above_nine());
        _mm512_maskz_mullo_epi32(long, four.number(), _mm512_set1_epi32(10_000))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn check_length(&mut self, tags: __m512i, new: __mmask16) {
        let word = _mm512_srli_epi32::<5>(tags);
        let words = _mm512_permutex2var_epi32(self.filter.0, word, self.filter.1);
        let bits = _mm512_rorv_epi32(words, tags);
        self.lengths = _mm512_mask_or_epi32(self.lengths, new, self.lengths, bits);
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

/// Four bytes for each of 16 tags, the last one of the tag in the lowest byte of its lane.
struct Digits {
    /// Digits from 0 to 9 if they are some; what does not belong to the tag is 0.
    digits: __m512i,
    /// 1 in the bytes that are separators, 0 in the others.
    separators: __m512i,
}

impl Digits {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn of(text: __m512i) -> Self {
        // The tag is what stands below the lowest separator: the bits below the lowest one.
        let soh = _mm512_set1_epi8(SOH as i8);
        let separators = _mm512_subs_epu8(_mm512_set1_epi8(1), _mm512_xor_si512(text, soh));
        let below = _mm512_add_epi32(separators, _mm512_set1_epi32(-1));
        let digits = _mm512_xor_si512(text, _mm512_set1_epi8(b'0' as i8));
        Self {
            // below & !separators & digits
            digits: _mm512_ternarylogic_epi32::<0x20>(below, separators, digits),
            separators,
        }
    }

    /// The numbers from 0 to 9999 that the digits stand for.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn number(&self) -> __m512i {
        let pairs = _mm512_maddubs_epi16(self.digits, _mm512_set1_epi16(0x0a01));
        _mm512_madd_epi16(pairs, _mm512_set1_epi32(0x0064_0001))
    }

    /// Not zero in lanes with a byte of the tag that is no digit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn above_nine(&self) -> __m512i {
        _mm512_subs_epu8(self.digits, _mm512_set1_epi8(9))
    }

    /// Those of the lanes `of` whose tag may go on in front of the four bytes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn cut_off(&self, of: __mmask16) -> __mmask16 {
        _mm512_mask_testn_epi32_mask(of, self.separators, self.separators)
    }
}

/// The positions of the four bytes in front of the `=` of each of the first 16 pairs, the nearest
/// one lowest.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn in_front(pairs: __m512i) -> __m512i {
    const EVEN: [u8; 64] = {
        let mut even = [0; 64];
        let mut i = 0;
        while i < 64 {
            even[i] = (i / 4 * 2) as u8;
            i += 1;
        }
        even
    };
    // SAFETY: 64 bytes are read from an array of 64.
    let even = unsafe { _mm512_loadu_si512(EVEN.as_ptr().cast()) };
    let equals = _mm512_permutexvar_epi8(even, pairs);
    _mm512_sub_epi8(equals, _mm512_set1_epi32(0x0403_0201))
}

/// The offsets of the first bytes of 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
fn begins(pairs: __m512i, base: __m512i) -> __m512i {
    let equals = _mm512_and_si512(pairs, _mm512_set1_epi32(0xff));
    _mm512_add_epi32(equals, _mm512_add_epi32(base, _mm512_set1_epi32(1)))
}

/// The offsets of the separators behind 16 values.
#[inline]
#[target_feature(enable = "avx512f")]
fn ends(pairs: __m512i, base: __m512i) -> __m512i {
    _mm512_add_epi32(_mm512_srli_epi32::<8>(pairs), base)
}

/// The numbers from 0 to 63.
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

/// The 64 bytes from `at` on; zeros behind the end.
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

/// Writes those of 16 lanes that `mask` has to `array[at..at + 16]`.
#[inline]
#[target_feature(enable = "avx512f")]
fn write(array: &mut [u32], at: usize, mask: __mmask16, lanes: __m512i) {
    debug_assert!(at + 16 <= array.len());
    // SAFETY: before each step, `index` makes room for STEP_FIELDS entries behind the fields that
    // have come to their ends, and in the step writes 16 or 32 entries from there on.
    unsafe { _mm512_mask_storeu_epi32(array.as_mut_ptr().add(at).cast(), mask, lanes) }
}
