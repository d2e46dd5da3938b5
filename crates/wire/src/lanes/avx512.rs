//! Up to 32 lanes at once, sixteen in a vector.
//!
//! The processor overlaps the work on several segments, as far as their instructions fit into its
//! window: so few instructions are worth more here than short ways, except for the way to the end
//! of the segment, where the next one begins.

use super::columns::{Flags, Vector};
use super::{Columns, Front, Plan, Row};
use core::arch::x86_64::*;

/// `0, 1, 2, …`
const IOTA: Bytes = bytes(Pattern::Index);
/// Where the byte of a word of [`Lanes::ends`] is that says where a lane's entity ends, for each
/// of the lane's bytes; and the byte that says what is before it.
const END: Bytes = bytes(Pattern::End);
const BEFORE: Bytes = bytes(Pattern::Before);
/// How far a byte is from the end of its entity: the last one comes first.
const BACK: Bytes = bytes(Pattern::Back);
/// Bytes of two vectors in turn.
const PAIRS: Bytes = bytes(Pattern::Pairs);

#[repr(align(64))]
struct Bytes([u8; 64]);

#[derive(Clone, Copy)]
enum Pattern {
    Index,
    End,
    Before,
    Back,
    Pairs,
}

const fn bytes(pattern: Pattern) -> Bytes {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = match pattern {
            Pattern::Index => i,
            Pattern::End => i / 4 * 2,
            Pattern::Before => i / 4 * 2 + 1,
            Pattern::Back => i % 4,
            Pattern::Pairs => i / 2 + 64 * (i % 2),
        } as u8;
        i += 1;
    }
    Bytes(all)
}

/// What is known of a segment before its values are read.
pub(super) struct Masks {
    /// In the stream.
    pub(super) stream: u64,
    /// Not there, as the presence map and the previous values say.
    pub(super) absent: u64,
    /// The previous value, not the initial one, is the base.
    pub(super) previous: u64,
    /// One is added.
    pub(super) add: u64,
    /// All previous values are there; states do not change but by NULL.
    pub(super) is_steady: bool,
}

/// The stop bits of a segment.
struct Stops {
    /// Those of its entities, and of the byte before its first one.
    stops: u64,
    /// The byte before the first entity.
    before: u64,
    /// The last one.
    last: u64,
}

/// Whether this processor has the instructions of the lanes that [`crate::Kernel::Avx512`] does
/// not ask for.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("lzcnt")
}

/// Decodes a segment: the index behind it, 0 where it is not regular. Arguments and result are
/// such as go in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    front: Front,
    row: &mut Row,
) -> usize {
    let done = match (plan.groups, front.map_len) {
        (1, 1..) => decode_groups::<1, true>(plan, columns, bytes, at, front, row),
        (1, 0) => decode_groups::<1, false>(plan, columns, bytes, at, front, row),
        (_, 1..) => decode_groups::<2, true>(plan, columns, bytes, at, front, row),
        (_, 0) => decode_groups::<2, false>(plan, columns, bytes, at, front, row),
    };
    done.unwrap_or(0)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
fn decode_groups<const G: usize, const MAP: bool>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    front: Front,
    row: &mut Row,
) -> Option<usize> {
    let (first, word) = (plan.first as usize, plan.word as usize);
    let values = columns.values.get_mut(first..first + G)?;
    let flags = columns.flags.get_mut(word)?;
    let block = load(bytes, at);
    let bits = match MAP {
        true => map_bits(block, front.map_len) >> (plan.skipped_bits & 1),
        false => row.bits,
    };
    let given = _pdep_u64(bits, plan.bit);
    let masks = masks(plan, flags, given)?;
    let count = match MAP {
        true => count(plan, bytes, at, block, front.map_len),
        false => masks.stream.count_ones(),
    };
    let stops = stops(block, front.len, count)?;
    let nulls = irregular(plan, &masks, &stops, block)?;
    let lanes = Lanes::new(block, &stops, masks.stream);
    let based = plan.delta | !masks.stream;
    let mut results = [_mm512_setzero_si512(); G];
    let mut bad = 0;
    for (group, result) in results.iter_mut().enumerate() {
        let of = |mask: u64| (mask >> (16 * group)) as u16;
        let entity = lanes.read(plan, group)?;
        let initial = vector(&plan.initials[group]);
        let previous = forwarded(&values[group]);
        let base = _mm512_mask_mov_epi32(initial, of(masks.previous), previous);
        let value = _mm512_mask_add_epi32(entity, of(based), entity, base);
        *result = match of(plan.increment) {
            0 => value,
            _ => {
                let ones = _mm512_set1_epi32(-1);
                _mm512_mask_sub_epi32(value, of(masks.add), value, ones)
            }
        };
        bad |= out_of_range(plan, group, *result);
    }
    if bad != 0 {
        return None;
    }
    for (group, result) in results.iter().enumerate() {
        store(&mut values[group].0, *result);
        if let Some((to, _)) = row.values[16 * group..].split_first_chunk_mut() {
            store(to, *result);
        }
    }
    let absent = masks.absent | nulls;
    if !masks.is_steady || nulls & plan.kept != 0 {
        commit(plan, flags, masks.stream, absent, nulls);
    }
    row.bits = bits >> plan.bit_count;
    row.present = plan.all & !absent;
    row.texts = (row.present & plan.text).count_ones();
    Some(at + stops.last.trailing_zeros() as usize + 1)
}

/// The next 64 bytes, zeros behind the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn load(bytes: &[u8], at: usize) -> __m512i {
    if let Some(all) = bytes.get(at..at.saturating_add(64)) {
        // SAFETY: there are 64 bytes.
        unsafe { _mm512_loadu_si512(all.as_ptr().cast()) }
    } else {
        let rest = bytes.get(at..).unwrap_or_default();
        let mask = _bzhi_u64(u64::MAX, rest.len() as u32);
        // SAFETY: only bytes of the slice are read.
        unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) }
    }
}

/// The bits of the presence map at the front of the block, the first one lowest.
#[inline]
#[target_feature(enable = "avx512f,bmi2,gfni")]
fn map_bits(block: __m512i, len: u8) -> u64 {
    // The identity with its rows turned round: it reverses the bits of each byte.
    let turned = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_gf2p8affine_epi64_epi8::<0>(_mm512_castsi512_si128(block), turned);
    // Now the lowest bit of each byte is the stop bit.
    let map = _bzhi_u64(_mm_cvtsi128_si64(bytes) as u64, 8 * u32::from(len));
    _pext_u64(map, 0xfefe_fefe_fefe_fefe)
}

/// How many entities the segment has, by its presence map. The next segment waits for this
/// number, so that the shortest way to it is worth its own masks.
#[inline]
#[target_feature(enable = "avx512f,bmi2,popcnt")]
fn count(plan: &Plan, bytes: &[u8], at: usize, block: __m512i, len: u8) -> u32 {
    let word = match bytes
        .get(at..at.saturating_add(8))
        .and_then(|word| word.first_chunk())
    {
        Some(word) => u64::from_le_bytes(*word),
        None => _mm_cvtsi128_si64(_mm512_castsi512_si128(block)) as u64,
    };
    let map = _bzhi_u64(word, 8 * u32::from(len));
    let [once, twice] = plan.counted;
    let count = plan.always_count + (map & once).count_ones();
    match twice {
        0 => count,
        _ => count + (map & twice).count_ones(),
    }
}

/// What the presence bits, in their lanes, and the previous values say; `None` if a value must
/// not be absent.
#[inline(always)]
pub(super) fn masks(plan: &Plan, flags: &Flags, given: u64) -> Option<Masks> {
    let assigned = flags.assigned >> plan.shift;
    let mut absent = plan.without & !given;
    let is_steady = plan.kept & !assigned | plan.kept & flags.outside >> plan.shift == 0;
    if !is_steady {
        let empty = flags.empty >> plan.shift;
        let outside = flags.outside >> plan.shift;
        let implied = plan.implied & !given;
        let gone = implied & !(assigned | plan.initial & !empty);
        let lost = gone & !plan.optional
            | plan.delta & empty
            | (implied | plan.delta) & assigned & outside;
        if lost != 0 {
            return None;
        }
        absent |= gone;
    }
    absent |= (absent & plan.leads) << 1;
    Some(Masks {
        stream: given & plan.bit_stream | plan.always | (plan.leads & !absent) << 1,
        absent,
        previous: assigned & plan.kept | plan.others,
        add: plan.increment & !given & assigned,
        is_steady,
    })
}

/// Where so many entities end, the first one beginning at `front`; `None` if the block does not
/// have them all.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2")]
fn stops(block: __m512i, front: u8, count: u32) -> Option<Stops> {
    let before = 1_u64 << (front.wrapping_sub(1) & 63);
    let stops = (_mm512_movepi8_mask(block) | before) & before.wrapping_neg();
    let last = _pdep_u64(1 << (count & 63), stops);
    if last == 0 {
        return None;
    }
    Some(Stops {
        stops: stops & _blsmsk_u64(last),
        before,
        last,
    })
}

/// The lanes that are NULL; `None` if an integer is overlong, a string has a zero preamble, or
/// the exponent of a decimal is NULL.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn irregular(plan: &Plan, masks: &Masks, stops: &Stops, block: __m512i) -> Option<u64> {
    let firsts = (stops.stops ^ stops.last) << 1;
    let entities = stops.stops ^ stops.before;
    let mut odd = _mm512_cmpeq_epi8_mask(block, _mm512_setzero_si512());
    if plan.signed != 0 {
        odd |= _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x7f));
    }
    if odd & firsts != 0 && is_overlong(plan, masks.stream, odd & firsts, firsts, block) {
        return None;
    }
    if plan.optional == 0 {
        return Some(0);
    }
    let null = firsts & _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x80_u8 as i8));
    let nulls = _pdep_u64(_pext_u64(null, entities), masks.stream) & plan.optional;
    (nulls & plan.leads == 0).then_some(nulls)
}

/// Whether an entity says the same without its first byte; `odd` are first bytes of `firsts` that
/// are 0, or all ones.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn is_overlong(plan: &Plan, stream: u64, odd: u64, firsts: u64, block: __m512i) -> bool {
    let lanes = |marks: u64| _pdep_u64(_pext_u64(marks, firsts), stream);
    let zero = odd & _mm512_cmpeq_epi8_mask(block, _mm512_setzero_si512());
    let sign = _mm512_movepi8_mask(_mm512_slli_epi16::<1>(block)) >> 1;
    let repeated = zero & !sign | odd & !zero & sign;
    lanes(zero) & !plan.signed | lanes(repeated) & plan.signed != 0
}

/// The entities of a segment, by lane.
struct Lanes {
    /// The data bits of the block.
    data: __m512i,
    /// By lane, in words: the byte in which the entity ends, and the one before it.
    ends: __m512i,
    /// Whether any has more than four bytes.
    any_long: bool,
}

impl Lanes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    fn new(block: __m512i, stops: &Stops, stream: u64) -> Self {
        let iota = constant(&IOTA);
        let ends = _mm512_maskz_compress_epi8(stops.stops ^ stops.before, iota);
        let before = _mm512_maskz_compress_epi8(stops.stops, iota);
        let both = _mm512_permutex2var_epi8(ends, constant(&PAIRS), before);
        let inner = (stops.last - stops.before) & !stops.stops;
        let two = inner & inner >> 1;
        Self {
            data: _mm512_and_si512(block, _mm512_set1_epi8(0x7f)),
            ends: _mm512_maskz_expand_epi16(stream as u32, both),
            any_long: two & two >> 2 != 0,
        }
    }

    /// Sixteen entities as integers, 0 without one; `None` if one has too many bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn read(&self, plan: &Plan, group: usize) -> Option<__m512i> {
        // The words of the second sixteen lanes are in the upper half.
        let ends = match group {
            0 => self.ends,
            _ => _mm512_shuffle_i64x2::<0xee>(self.ends, self.ends),
        };
        let end = _mm512_permutexvar_epi8(constant(&END), ends);
        let before = _mm512_permutexvar_epi8(constant(&BEFORE), ends);
        let index = _mm512_sub_epi8(end, constant(&BACK));
        let valid = _mm512_cmpgt_epi8_mask(index, before);
        let sevens = _mm512_maskz_permutexvar_epi8(valid, index, self.data);
        let fourteens = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), sevens);
        let mut value = _mm512_madd_epi16(fourteens, _mm512_set1_epi32(1 << 30 | 1));
        let signed = (plan.signed >> (16 * group)) as u16;
        let nullable = (plan.nullable >> (16 * group)) as u16;
        if signed != 0 {
            let len = _mm512_srli_epi32::<24>(_mm512_sub_epi8(end, before));
            let bits = _mm512_sub_epi32(_mm512_slli_epi32::<3>(len), len);
            let unused = _mm512_sub_epi32(_mm512_set1_epi32(32), bits);
            value = _mm512_mask_sllv_epi32(value, signed, value, unused);
            value = _mm512_mask_srav_epi32(value, signed, value, unused);
        }
        if self.any_long {
            value = self.read_long(signed, (end, before), value)?;
        }
        if nullable != 0 {
            let zero = _mm512_setzero_si512();
            let more = _mm512_mask_cmpgt_epi32_mask(nullable, value, zero);
            value = _mm512_mask_add_epi32(value, more, value, _mm512_set1_epi32(-1));
        }
        Some(value)
    }

    /// Puts the fifth last byte in front of the values that have one.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn read_long(
        &self,
        signed: u16,
        (end, before): (__m512i, __m512i),
        value: __m512i,
    ) -> Option<__m512i> {
        let len = _mm512_srli_epi32::<24>(_mm512_sub_epi8(end, before));
        let has_fifth = _mm512_cmpgt_epi32_mask(len, _mm512_set1_epi32(4));
        let index = _mm512_sub_epi8(end, _mm512_set1_epi8(4));
        let fifth = _mm512_permutexvar_epi8(index, self.data);
        let fifth = _mm512_and_si512(fifth, _mm512_set1_epi32(0x7f));
        let lower = self.lower(has_fifth, end);
        let whole = _mm512_or_si512(lower, _mm512_slli_epi32::<28>(fifth));
        // The bits that are lost must be copies of the sign.
        let lost = _mm512_srli_epi32::<4>(fifth);
        let sign = _mm512_maskz_srai_epi32::<31>(signed, whole);
        let sign = _mm512_and_si512(sign, _mm512_set1_epi32(7));
        let wrong = _mm512_mask_cmpneq_epi32_mask(has_fifth, lost, sign);
        let longer = _mm512_cmpgt_epi32_mask(len, _mm512_set1_epi32(5));
        (wrong | longer == 0).then(|| _mm512_mask_mov_epi32(value, has_fifth, whole))
    }

    /// The last four bytes of some entities, without a sign.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn lower(&self, lanes: u16, end: __m512i) -> __m512i {
        let index = _mm512_sub_epi8(end, constant(&BACK));
        let sevens = _mm512_permutexvar_epi8(index, self.data);
        let fourteens = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), sevens);
        let all = _mm512_madd_epi16(fourteens, _mm512_set1_epi32(1 << 30 | 1));
        _mm512_maskz_mov_epi32(lanes, all)
    }
}

/// The lanes whose value is not one of their type.
#[inline]
#[target_feature(enable = "avx512f")]
fn out_of_range(plan: &Plan, group: usize, value: __m512i) -> __mmask16 {
    let above = _mm512_sub_epi32(value, vector(&plan.low[group]));
    _mm512_cmpgt_epu32_mask(above, vector(&plan.range[group]))
}

/// Notes the new states.
#[inline(always)]
pub(super) fn commit(plan: &Plan, flags: &mut Flags, stream: u64, absent: u64, nulls: u64) {
    let set = plan.implied & !absent | plan.delta & stream & !nulls;
    let clear = (plan.implied & absent) << plan.shift;
    let set = set << plan.shift;
    flags.assigned = (flags.assigned | set) & !clear;
    flags.empty = flags.empty & !set | clear;
    flags.outside &= !set;
}

#[inline]
#[target_feature(enable = "avx512f")]
fn constant(bytes: &Bytes) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment.
    unsafe { _mm512_load_si512(bytes.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn vector(values: &Vector) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment.
    unsafe { _mm512_load_si512(values.0.as_ptr().cast()) }
}

/// Columns that may have been stored a moment ago: a masked load, which the compiler would make of
/// a load and a blend, waits until the store is through, where a plain one takes its value.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn forwarded(values: &Vector) -> __m512i {
    // SAFETY: it has 64 bytes and their alignment, and nobody else writes to it.
    unsafe { core::ptr::read_volatile(values.0.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [i32; 16], value: __m512i) {
    // SAFETY: it has 64 bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) };
}
