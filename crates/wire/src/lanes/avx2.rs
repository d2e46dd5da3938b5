//! The way of `avx512` for processors without it, for segments that are too long for `avx2_short`:
//! the stop bits as a mask, the entities taken out as words one after the other, their arithmetic
//! eight lanes at once.

use super::avx2_short;
use super::avx512::{Masks, Stops, keep, masks, stops};
use super::columns::{Block as ColumnBlock, Vector};
use super::{Columns, Front, MAX_LANES, Plan, Row};
use core::arch::x86_64::*;

/// Lanes of a vector.
pub(super) const EIGHT: usize = 8;

/// The data bits of eight bytes.
pub(super) const SEVENS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// A byte that is nothing of interest, behind the end of the bytes.
const NEUTRAL: u8 = 1;

/// Whether this processor has all instructions of this kernel.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe")
        && is_x86_feature_detected!("popcnt")
}

/// Decodes a segment: the index behind it, 0 where it is not regular. An entry must use up its
/// presence bits.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(super) fn decode<const ENTRY: bool>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    front: Front,
    row: &mut Row,
) -> usize {
    let done = avx2_short::decode::<ENTRY>(plan, columns, (bytes, at), front, row);
    if done != 0 {
        return done;
    }
    let done = match plan.groups {
        ..=1 => decode_eights::<2, ENTRY>(plan, columns, bytes, at, front, row),
        2.. => decode_eights::<4, ENTRY>(plan, columns, bytes, at, front, row),
    };
    done.unwrap_or(0)
}

#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
fn decode_eights<const E: usize, const ENTRY: bool>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    front: Front,
    row: &mut Row,
) -> Option<usize> {
    let ColumnBlock { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values = values.get_mut(plan.first()..plan.first() + E.div_ceil(2))?;
    let map = _bzhi_u64(word_at(bytes, at), 8 * u32::from(front.map_len));
    let bits = map_bits(map) >> plan.skipped_bits;
    let left = bits >> plan.bit_count;
    if ENTRY && left != 0 {
        return None;
    }
    let masks = masks(plan, flags, _pdep_u64(bits, plan.bit))?;
    let (block, stops) = entities(bytes, at, front.len, count(plan, map))?;
    let nulls = irregular(plan, &masks, &stops, &block)?;
    let mut words = Words([0; MAX_LANES]);
    gather(&mut words, (bytes, at), &stops, masks.stream);
    let above;
    let mut lanes = Lanes {
        plan,
        words: &words,
        above: None,
        previous: (!masks.is_steady).then_some(masks.previous),
    };
    if any_long(&stops) {
        above = fifths(plan, (bytes, at), &stops, masks.stream)?;
        lanes.above = Some(&above);
    }
    let mut results = [_mm256_setzero_si256(); E];
    let mut good = _mm256_set1_epi32(-1);
    for (eight, result) in results.iter_mut().enumerate() {
        *result = lanes.values(values, eight)?;
        good = _mm256_and_si256(good, in_range(plan, eight, *result));
    }
    if _mm256_movemask_epi8(good) != -1 {
        return None;
    }
    for (eight, result) in results.iter().enumerate() {
        store(values, eight, *result)?;
        let to = row.values.get_mut(EIGHT * eight..)?.first_chunk_mut()?;
        store_eight(to, *result);
    }
    keep(plan, flags, &masks, nulls);
    row.bits = left;
    row.present = plan.all & !(masks.absent | nulls);
    Some(at + stops.last.trailing_zeros() as usize + 1)
}

/// The bytes of a segment, and where its entities end; `None` if they are not all there.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn entities(bytes: &[u8], at: usize, front: u8, count: u32) -> Option<(Block, Stops)> {
    let mut block = Block {
        lower: Half::new(bytes, at),
        upper: None,
    };
    let marks = block.lower.stops();
    // SAFETY: this function has the instructions.
    let of = |marks: u64| unsafe { stops(marks, front.into(), count) };
    let stops = match of(marks) {
        Some(stops) => stops,
        None => {
            let upper = block.upper.insert(Half::new(bytes, at.saturating_add(32)));
            of(marks | upper.stops() << 32)?
        }
    };
    Some((block, stops))
}

/// The next eight bytes, first one lowest, zeros behind the end.
#[inline]
pub(super) fn word_at(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    rest.iter()
        .rev()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The bits of a presence map, the first one lowest.
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn map_bits(map: u64) -> u64 {
    // The bits of each byte turned round: the lowest is the stop bit.
    let turned = map.reverse_bits().swap_bytes();
    _pext_u64(turned, 0xfefe_fefe_fefe_fefe)
}

/// How many entities the segment has, by its presence map.
#[inline]
#[target_feature(enable = "popcnt")]
pub(super) fn count(plan: &Plan, map: u64) -> u32 {
    let [once, twice] = plan.counted;
    let count = plan.always_count + (map & once).count_ones();
    match twice {
        0 => count,
        _ => count + (map & twice).count_ones(),
    }
}

/// Up to thirty-two bytes: those of a vector, but for the first few, which are somebody else's.
struct Half {
    bytes: __m256i,
    shift: u32,
}

impl Half {
    /// The bytes from an index on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(bytes: &[u8], at: usize) -> Self {
        if let Some(last) = bytes.len().checked_sub(32) {
            // The last whole vector, where there is none from the index on.
            let start = at.min(last);
            if let Some(all) = bytes.get(start..).and_then(<[u8]>::first_chunk) {
                return Self::of(all, (at - start).min(63) as u32);
            }
        }
        let mut copy = [NEUTRAL; 32];
        let rest = bytes.get(at..).unwrap_or_default();
        for (to, from) in copy.iter_mut().zip(rest) {
            *to = *from;
        }
        Self::of(&copy, 0)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn of(bytes: &[u8; 32], shift: u32) -> Self {
        // SAFETY: there are 32 bytes.
        let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
        Self { bytes, shift }
    }

    /// The topmost bits of bytes that belong to these.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(&self, marks: __m256i) -> u64 {
        u64::from(_mm256_movemask_epi8(marks) as u32) >> self.shift
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn stops(&self) -> u64 {
        self.mask(self.bytes)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(&self, byte: u8) -> u64 {
        self.mask(_mm256_cmpeq_epi8(self.bytes, _mm256_set1_epi8(byte as i8)))
    }

    /// The second bits: of a first byte, the sign.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn signs(&self) -> u64 {
        self.mask(_mm256_slli_epi16::<1>(self.bytes))
    }
}

/// The next 32 bytes, or 64 for a segment that takes more.
struct Block {
    lower: Half,
    upper: Option<Half>,
}

impl Block {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn equal(&self, byte: u8) -> u64 {
        let upper = match &self.upper {
            Some(half) => half.equal(byte) << 32,
            None => 0,
        };
        self.lower.equal(byte) | upper
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn signs(&self) -> u64 {
        let upper = match &self.upper {
            Some(half) => half.signs() << 32,
            None => 0,
        };
        self.lower.signs() | upper
    }
}

/// Whether any entity has more than four bytes.
#[inline(always)]
pub(super) const fn any_long(stops: &Stops) -> bool {
    let inner = (stops.last - stops.before) & !stops.stops;
    let two = inner & inner >> 1;
    two & two >> 2 != 0
}

/// The lanes that are NULL; `None` if an integer is overlong, a string has a zero preamble, or
/// the exponent of a decimal is NULL.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn irregular(plan: &Plan, masks: &Masks, stops: &Stops, block: &Block) -> Option<u64> {
    let firsts = (stops.stops ^ stops.last) << 1;
    let longer = firsts & !stops.stops;
    if longer != 0 && is_overlong(plan, masks.stream, longer, firsts, block) {
        return None;
    }
    if plan.optional == 0 {
        return Some(0);
    }
    let entities = stops.stops ^ stops.before;
    let null = firsts & block.equal(0x80);
    let nulls = _pdep_u64(_pext_u64(null, entities), masks.stream) & plan.optional;
    (nulls & plan.leads == 0).then_some(nulls)
}

/// Whether an entity says the same without its first byte; `longer` are those first bytes of
/// `firsts` that are not the last ones too.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
fn is_overlong(plan: &Plan, stream: u64, longer: u64, firsts: u64, block: &Block) -> bool {
    let zero = longer & block.equal(0);
    let ones = match plan.signed {
        0 => 0,
        _ => longer & block.equal(0x7f),
    };
    if zero | ones == 0 {
        return false;
    }
    let lanes = |marks: u64| _pdep_u64(_pext_u64(marks, firsts), stream);
    let sign = block.signs() >> 1;
    let repeated = zero & !sign | ones & sign;
    lanes(zero) & !plan.signed | lanes(repeated) & plan.signed != 0
}

/// Where the length is in a word: up to four bytes' data bits, with those of bytes in front above
/// them, and from here on how many bytes they are.
const LEN: i32 = 28;

/// Entities as words, by lane.
#[repr(align(32))]
struct Words([u32; MAX_LANES]);

/// The entities of a segment as words; the words of other lanes stay.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,movbe")]
fn gather(words: &mut Words, (bytes, at): (&[u8], usize), stops: &Stops, stream: u64) {
    let mut ends = stops.stops ^ stops.before;
    let mut lanes = stream;
    let mut before = stops.before.trailing_zeros();
    // Bytes that stop bits are of are there; and with these three in front of the first entity, so
    // are four up to each.
    let is_inside = at + before as usize >= 2;
    while lanes != 0 {
        let end = ends.trailing_zeros();
        let lane = lanes.trailing_zeros() as usize % MAX_LANES;
        (ends, lanes) = (_blsr_u64(ends), _blsr_u64(lanes));
        let index = at + end as usize;
        let four = match is_inside {
            // SAFETY: `end` is behind `before`, and the bit of a byte that is there.
            true => unsafe { four_up_to(bytes, index) },
            false => first_four(bytes, index),
        };
        words.0[lane] = _pext_u32(four, SEVENS as u32) | (end - before) << LEN;
        before = end;
    }
}

/// Of entities of five bytes, what is above their words' data bits; `None` if one has more bytes,
/// or too many bits.
#[cold]
#[target_feature(enable = "bmi1")]
fn fifths(
    plan: &Plan,
    (bytes, at): (&[u8], usize),
    stops: &Stops,
    stream: u64,
) -> Option<[u32; MAX_LANES]> {
    let mut above = [0; MAX_LANES];
    let mut ends = stops.stops ^ stops.before;
    let mut lanes = stream;
    let mut before = stops.before.trailing_zeros();
    while lanes != 0 {
        let end = ends.trailing_zeros();
        let lane = lanes.trailing_zeros() as usize % MAX_LANES;
        (ends, lanes) = (_blsr_u64(ends), _blsr_u64(lanes));
        let len = end - before;
        before = end;
        if len > 5 {
            return None;
        }
        if len == 5 {
            let fifth = u32::from(bytes.get((at + end as usize).checked_sub(4)?)? & 0x7f);
            // The bits that are lost must be copies of the sign.
            let sign = match plan.signed >> lane & 1 {
                0 => 0,
                _ => (((fifth << 28) as i32) >> 31) as u32 & 7,
            };
            if fifth >> 4 != sign {
                return None;
            }
            above[lane] = fifth << LEN;
        }
    }
    Some(above)
}

/// What the lanes are made of.
struct Lanes<'a> {
    plan: &'a Plan,
    words: &'a Words,
    /// Of entities that do not fit into their words.
    above: Option<&'a [u32; MAX_LANES]>,
    /// Which lanes have a previous value, if not all have it.
    previous: Option<u64>,
}

impl Lanes<'_> {
    /// Eight lanes of what the segment says, operators applied.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn values(&self, columns: &[Vector], eight: usize) -> Option<__m256i> {
        let (plan, wide) = (self.plan, &self.plan.wide);
        let mut words = load(&self.words.0, eight)?;
        // Entities have a byte at least.
        let zero = _mm256_setzero_si256();
        let missing = _mm256_cmpeq_epi32(words, zero);
        let lens = _mm256_srli_epi32::<LEN>(words);
        let bits = _mm256_sub_epi32(_mm256_slli_epi32::<3>(lens), lens);
        let mut unused = _mm256_sub_epi32(_mm256_set1_epi32(32), bits);
        if let Some(above) = self.above {
            let long = _mm256_cmpgt_epi32(lens, _mm256_set1_epi32(4));
            let lower = _mm256_and_si256(words, _mm256_set1_epi32((1 << LEN) - 1));
            let whole = _mm256_or_si256(lower, load(above, eight)?);
            words = _mm256_blendv_epi8(words, whole, long);
            unused = _mm256_andnot_si256(long, unused);
        }
        let high = _mm256_sllv_epi32(words, unused);
        let mut value = _mm256_srlv_epi32(high, unused);
        if plan.signed != 0 {
            let signed = _mm256_srav_epi32(high, unused);
            value = _mm256_blendv_epi8(value, signed, half_of(&wide.signed, eight)?);
        }
        if plan.nullable != 0 {
            let more = _mm256_cmpgt_epi32(value, zero);
            let more = _mm256_and_si256(more, half_of(&wide.nullable, eight)?);
            value = _mm256_add_epi32(value, more);
        }
        let previous = match self.previous {
            None => half_of(&wide.previous, eight)?,
            Some(previous) => spread(previous, eight),
        };
        let initial = half_of(&plan.initials, eight)?;
        let base = _mm256_blendv_epi8(initial, half_of(columns, eight)?, previous);
        let based = _mm256_or_si256(missing, half_of(&wide.delta, eight)?);
        value = _mm256_add_epi32(value, _mm256_and_si256(base, based));
        if plan.increment != 0 {
            let add = _mm256_and_si256(half_of(&wide.increment, eight)?, missing);
            value = _mm256_sub_epi32(value, _mm256_and_si256(add, previous));
        }
        Some(value)
    }
}

/// The four bytes up to an index, the last one lowest.
///
/// # Safety
/// The index must be one of `bytes`, and at least 3.
#[inline]
#[target_feature(enable = "movbe")]
unsafe fn four_up_to(bytes: &[u8], end: usize) -> u32 {
    debug_assert!(end >= 3 && end < bytes.len());
    // SAFETY: the four are inside.
    let four = unsafe { bytes.as_ptr().add(end - 3).cast::<[u8; 4]>().read() };
    u32::from_be_bytes(four)
}

/// The same near the beginning; zeros in front of the first byte.
#[cold]
fn first_four(bytes: &[u8], end: usize) -> u32 {
    let all = bytes.get(..=end).unwrap_or_default();
    all.iter()
        .fold(0, |four, byte| four << 8 | u32::from(*byte))
}

/// Eight bits of a mask as eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn spread(mask: u64, eight: usize) -> __m256i {
    let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    let all = _mm256_set1_epi32((mask >> (EIGHT * eight)) as i32);
    _mm256_cmpeq_epi32(_mm256_and_si256(all, bits), bits)
}

/// The lanes whose value is one of their type.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_range(plan: &Plan, eight: usize, value: __m256i) -> __m256i {
    let low = half_of(&plan.low, eight).unwrap_or(value);
    let range = half_of(&plan.range, eight).unwrap_or(value);
    let above = _mm256_sub_epi32(value, low);
    _mm256_cmpeq_epi32(_mm256_max_epu32(above, range), range)
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(values: &[u32; MAX_LANES], eight: usize) -> Option<__m256i> {
    let eight = values.get(EIGHT * eight..)?.first_chunk::<EIGHT>()?;
    // SAFETY: there are eight.
    Some(unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) })
}

/// Eight of some vectors' lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn half_of(vectors: &[Vector], eight: usize) -> Option<__m256i> {
    let vector = vectors.get(eight / 2)?;
    // SAFETY: a vector has twice eight.
    Some(unsafe { _mm256_loadu_si256(vector.0.as_ptr().add(EIGHT * (eight % 2)).cast()) })
}

/// Stores eight of some vectors' lanes.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store(vectors: &mut [Vector], eight: usize, value: __m256i) -> Option<()> {
    let vector = vectors.get_mut(eight / 2)?;
    store_eight(
        vector.0.get_mut(EIGHT * (eight % 2)..)?.first_chunk_mut()?,
        value,
    );
    Some(())
}

#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn store_eight(to: &mut [i32; EIGHT], value: __m256i) {
    // SAFETY: there is room for eight.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) };
}
