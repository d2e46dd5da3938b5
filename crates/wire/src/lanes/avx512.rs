//! Up to 32 lanes at once, sixteen in a vector.
//!
//! The processor overlaps the work on several segments, as far as their instructions fit into its
//! window: so few instructions are worth more here than short ways, except for the way to the end
//! of the segment, where the next one begins.
//!
//! Structs and vectors go to functions by way of memory. So what has or gives some must be
//! inlined, come what may; and since that cannot be asked of functions with instructions of their
//! own, some here rely on those of their callers.

use super::columns::{Block, Flags, Vector};
use super::{Columns, Front, Plan, Row};
use core::arch::x86_64::*;

/// `0, 1, 2, …`
pub(super) const IOTA: Bytes = bytes(Pattern::Index);
/// For each byte of sixteen entities: which stop bit is at their ends, and which before them.
pub(super) const END: [Bytes; 2] = [bytes(Pattern::End(0)), bytes(Pattern::End(16))];
pub(super) const BEFORE: [Bytes; 2] = [bytes(Pattern::Before(0)), bytes(Pattern::Before(16))];
/// How far a byte is from the end of its entity: the last one comes first.
pub(super) const BACK: Bytes = bytes(Pattern::Back);
/// The same of places one further on.
pub(super) const NEXT: Bytes = bytes(Pattern::Next);
pub(super) const NEARER: Bytes = bytes(Pattern::Nearer);

/// A matrix for bytes: without the stop bit.
pub(super) const SEVENS: i64 = 0x0102_0408_1020_4000;

/// How many bits of 32 an integer of so many bytes leaves unused.
const UNUSED: Bytes = bytes(Pattern::Unused);
/// The numbers of lanes.
const NUMBERS: Vector = Vector([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

#[repr(align(64))]
pub(super) struct Bytes([u8; 64]);

#[derive(Clone, Copy)]
pub(super) enum Pattern {
    Index,
    End(usize),
    Before(usize),
    Back,
    Next,
    Nearer,
    Unused,
}

pub(super) const fn bytes(pattern: Pattern) -> Bytes {
    let mut all = [0; 64];
    let mut i = 0;
    while i < 64 {
        all[i] = match pattern {
            Pattern::Index => i,
            Pattern::End(first) => first + i / 4 + 1,
            Pattern::Before(first) => first + i / 4,
            Pattern::Back => i % 4,
            Pattern::Next => i + 1,
            Pattern::Nearer => i % 4 + 1,
            Pattern::Unused => {
                if i < 5 {
                    32 - 7 * i
                } else {
                    0
                }
            }
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

/// Whether this processor has the instructions of the lanes that [`crate::Kernel::Avx512`] does
/// not ask for.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("gfni") && is_x86_feature_detected!("lzcnt")
}

/// Decodes a segment: the index behind it, 0 where it is not regular. An entry must use up its
/// presence bits. Arguments and result are such as go in registers.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode<const G: usize, const ENTRY: bool>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    front: Front,
    row: &mut Row,
) -> usize {
    let Some(rest) = bytes.get(at..) else {
        return 0;
    };
    // SAFETY: this function has the instructions.
    let len = unsafe { segment::<G, ENTRY>(plan, columns, rest, front, row) };
    len.map_or(0, |len| at + len)
}

#[inline(always)]
unsafe fn segment<const G: usize, const ENTRY: bool>(
    plan: &Plan,
    columns: &mut Columns,
    rest: &[u8],
    front: Front,
    row: &mut Row,
) -> Option<usize> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
        let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
        let window = Window::new(plan, rest);
        let map = _bzhi_u64(front_word(rest), 8 * u32::from(front.map_len));
        let (bits, count) = (map_bits(map) >> plan.skipped_bits, count(plan, map));
        let left = bits >> plan.bit_count;
        if ENTRY && left != 0 {
            return None;
        }
        let stops = stops(window.stops, front.len.into(), count)?;
        let masks = masks(plan, flags, _pdep_u64(bits, plan.bit))?;
        let mut vectors = [_mm512_setzero_si512(); G];
        for (vector, values) in vectors.iter_mut().zip(&*values) {
            *vector = forwarded(values);
        }
        let nulls = irregular(plan, masks.stream, &stops, &window)?;
        let entities = Entities::new(plan, masks.stream, stops.stops, &window);
        let vectors = read::<G, true>(plan, &masks, &entities, &vectors)?;
        for (values, vector) in values.iter_mut().zip(vectors) {
            store(&mut values.0, vector);
        }
        keep(plan, flags, &masks, nulls);
        fill(plan, &masks, nulls, &vectors, row);
        row.bits = left;
        Some(stops.last.trailing_zeros() as usize + 1)
    }
}

/// The next 64 bytes of the stream, zeros behind its end, and what is known of all of them.
pub(super) struct Window {
    pub(super) block: __m512i,
    pub(super) stops: u64,
    /// Those that are 0, 0x7f and 0x80, as far as they matter.
    pub(super) zeros: u64,
    pub(super) ones: u64,
    pub(super) nulls: u64,
}

impl Window {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,bmi2")]
    pub(super) fn new(plan: &Plan, rest: &[u8]) -> Self {
        let block = block(rest);
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte as i8));
        Self {
            block,
            stops: _mm512_movepi8_mask(block),
            zeros: _mm512_testn_epi8_mask(block, block),
            ones: if plan.signed == 0 { 0 } else { equal(0x7f) },
            nulls: if plan.optional == 0 { 0 } else { equal(0x80) },
        }
    }
}

/// The first 64 bytes, zeros behind the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn block(rest: &[u8]) -> __m512i {
    match rest.first_chunk::<64>() {
        // SAFETY: there are 64 bytes.
        Some(all) => unsafe { _mm512_loadu_si512(all.as_ptr().cast()) },
        None => {
            let mask = _bzhi_u64(u64::MAX, rest.len() as u32);
            // SAFETY: only bytes of the slice are read.
            unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) }
        }
    }
}

/// Bytes that stand before three others without a stop bit, and have none.
#[inline(always)]
pub(super) const fn long(stops: u64) -> u64 {
    let pairs = !stops & !stops >> 1;
    pairs & pairs >> 2
}

/// The first eight bytes, zeros behind the end.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn front_word(rest: &[u8]) -> u64 {
    if let Some(word) = rest.first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mask = _bzhi_u64(u64::MAX, rest.len() as u32);
    // SAFETY: only bytes of the slice are read.
    let word = unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) };
    _mm_cvtsi128_si64(_mm512_castsi512_si128(word)) as u64
}

/// The bits of a presence map, the first one lowest.
#[inline]
#[target_feature(enable = "avx512f,bmi2,gfni")]
pub(super) fn map_bits(map: u64) -> u64 {
    // The lowest bit of each turned byte is the stop bit.
    _pext_u64(turned(map), 0xfefe_fefe_fefe_fefe)
}

/// Each byte with its bits turned round.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
pub(super) fn turned(map: u64) -> u64 {
    // The identity with its rows turned round.
    let rows = _mm_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let bytes = _mm_gf2p8affine_epi64_epi8::<0>(_mm_cvtsi64_si128(map as i64), rows);
    _mm_cvtsi128_si64(bytes) as u64
}

/// How many entities the segment has, by its presence map. The next segment waits for this
/// number, so that the shortest way to it is worth its own masks.
#[inline]
#[target_feature(enable = "popcnt")]
pub(super) fn count(plan: &Plan, map: u64) -> u32 {
    let [once, twice] = plan.counted;
    plan.always_count + (map & once).count_ones() + (map & twice).count_ones()
}

/// What the presence bits, in their lanes, and the previous values say; `None` if a value must
/// not be absent.
#[inline(always)]
pub(super) fn masks(plan: &Plan, flags: &Flags, given: u64) -> Option<Masks> {
    let assigned = flags.assigned >> plan.shift;
    let outside = flags.outside >> plan.shift;
    let mut absent = plan.without & !given;
    let is_steady = plan.kept & (!assigned | outside) == 0;
    if !is_steady {
        let empty = flags.empty >> plan.shift;
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

/// What a presence map says, where all previous values are there.
#[inline(always)]
pub(super) fn steady(plan: &Plan, given: u64) -> Masks {
    let absent = plan.without & !given;
    let absent = absent | (absent & plan.leads) << 1;
    Masks {
        stream: given & plan.bit_stream | plan.always | (plan.leads & !absent) << 1,
        absent,
        previous: plan.kept | plan.others,
        add: plan.increment & !given,
        is_steady: true,
    }
}

/// The stop bits of a segment.
pub(super) struct Stops {
    /// Those of its entities, and of the byte before its first one.
    pub(super) stops: u64,
    /// The byte before the first entity.
    pub(super) before: u64,
    /// The last one.
    pub(super) last: u64,
}

/// Where so many entities end, the first one beginning at `first`, from 1 to 63; `None` if the
/// window does not have them all.
#[inline(always)]
pub(super) unsafe fn stops(stops: u64, first: u32, count: u32) -> Option<Stops> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let before = 1_u64 << (first.wrapping_sub(1) & 63);
        let stops = (stops | before) & before.wrapping_neg();
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
}

/// The values of a segment, of which `vectors` are the previous ones; `None` if something is not
/// regular, or, unless `LONG`, if an entity has more than four bytes.
#[inline(always)]
pub(super) unsafe fn read<const G: usize, const LONG: bool>(
    plan: &Plan,
    masks: &Masks,
    entities: &Entities,
    vectors: &[__m512i; G],
) -> Option<[__m512i; G]> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let first = entities.read::<LONG>(0)?;
        let mut results = [first; G];
        if let [_, second] = results.as_mut_slice() {
            *second = entities.read_second::<LONG>(first)?;
        }
        let mut bad = 0;
        for (group, result) in results.iter_mut().enumerate() {
            let of = |mask: u64| (mask >> (16 * group)) as u16;
            let initial = vector(&plan.initials[group]);
            let base = _mm512_mask_mov_epi32(initial, of(masks.previous), vectors[group]);
            let ones = _mm512_set1_epi32(-1);
            let base = _mm512_mask_sub_epi32(base, of(masks.add), base, ones);
            *result = _mm512_mask_expand_epi32(base, of(masks.stream), *result);
            let delta = of(plan.delta & masks.stream);
            *result = _mm512_mask_add_epi32(*result, delta, *result, base);
            bad |= out_of_range(plan, group, *result);
        }
        (bad == 0).then_some(results)
    }
}

/// The lanes that are NULL; `None` if an integer is overlong, a string has a zero preamble, or
/// the exponent of a decimal is NULL.
#[inline(always)]
pub(super) unsafe fn irregular(
    plan: &Plan,
    stream: u64,
    stops: &Stops,
    window: &Window,
) -> Option<u64> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let firsts = (stops.stops ^ stops.last) << 1;
        let odd = (window.zeros | window.ones) & firsts;
        if odd != 0 && is_overlong(plan, stream, odd, firsts, window) {
            return None;
        }
        let entities = stops.stops ^ stops.before;
        let nulls = _pext_u64(window.nulls & firsts, entities);
        let nulls = _pdep_u64(nulls, stream) & plan.optional;
        (nulls & plan.leads == 0).then_some(nulls)
    }
}

/// Whether an entity says the same without its first byte; `odd` are first bytes of `firsts` that
/// are 0, or all ones.
#[cold]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
pub(super) fn is_overlong(
    plan: &Plan,
    stream: u64,
    odd: u64,
    firsts: u64,
    window: &Window,
) -> bool {
    let lanes = |marks: u64| _pdep_u64(_pext_u64(marks, firsts), stream);
    let zero = odd & window.zeros;
    let sign = _mm512_movepi8_mask(_mm512_slli_epi16::<1>(window.block)) >> 1;
    let repeated = zero & !sign | odd & !zero & sign;
    lanes(zero) & !plan.signed | lanes(repeated) & plan.signed != 0
}

/// The entities of a segment, in the order of the stream.
pub(super) struct Entities {
    block: __m512i,
    /// By number: the byte before the first entity, and those in which they end.
    ends: __m512i,
    /// By lane.
    stream: u64,
    /// By number: those that are signed, and those that are one more than they say.
    signed: u64,
    nullable: u64,
}

impl Entities {
    #[inline(always)]
    pub(super) unsafe fn new(plan: &Plan, stream: u64, stops: u64, window: &Window) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe {
            Self {
                block: window.block,
                ends: compressed(stops, constant(&IOTA)),
                stream,
                signed: _pext_u64(plan.signed, stream),
                nullable: _pext_u64(plan.nullable, stream),
            }
        }
    }

    /// Those from the sixteenth lane on, where `first` has the first sixteen entities.
    #[inline(always)]
    unsafe fn read_second<const LONG: bool>(&self, first: __m512i) -> Option<__m512i> {
        // SAFETY: the caller has the instructions.
        unsafe {
            let passed = (self.stream as u16).count_ones() as i32;
            let index = _mm512_add_epi32(vector(&NUMBERS), _mm512_set1_epi32(passed));
            Some(match self.stream.count_ones() {
                0..=16 => _mm512_permutexvar_epi32(index, first),
                _ => _mm512_permutex2var_epi32(first, index, self.read::<LONG>(1)?),
            })
        }
    }

    /// Sixteen entities as integers; `None` if one has too many bits.
    #[inline(always)]
    unsafe fn read<const LONG: bool>(&self, part: usize) -> Option<__m512i> {
        // SAFETY: the caller has the instructions.
        unsafe {
            let end = _mm512_permutexvar_epi8(constant(&END[part]), self.ends);
            let before = _mm512_permutexvar_epi8(constant(&BEFORE[part]), self.ends);
            let index = _mm512_sub_epi8(end, constant(&BACK));
            let valid = _mm512_cmpgt_epi8_mask(index, before);
            let mut value = joined(_mm512_maskz_permutexvar_epi8(valid, index, self.block));
            let signed = (self.signed >> (16 * part)) as u16;
            let nullable = (self.nullable >> (16 * part)) as u16;
            let len = _mm512_sub_epi8(end, before);
            let lowest = 0x1111_1111_1111_1111;
            let unused = _mm512_maskz_permutexvar_epi8(lowest, len, constant(&UNUSED));
            let up = _mm512_sllv_epi32(value, unused);
            value = _mm512_mask_srav_epi32(value, signed, up, unused);
            let fifth = _mm512_sub_epi8(end, _mm512_set1_epi8(4));
            let is_long = _mm512_cmpgt_epi8_mask(fifth, before);
            if is_long != 0 {
                if !LONG {
                    return None;
                }
                value = self.read_long(signed, (end, before), value)?;
            }
            let zero = _mm512_setzero_si512();
            let more = _mm512_mask_cmpgt_epi32_mask(nullable, value, zero);
            Some(_mm512_mask_add_epi32(
                value,
                more,
                value,
                _mm512_set1_epi32(-1),
            ))
        }
    }

    /// Puts the fifth last byte in front of the values that have one. Behind the last entity the
    /// lengths are not positive.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    fn read_long(
        &self,
        signed: u16,
        (end, before): (__m512i, __m512i),
        value: __m512i,
    ) -> Option<__m512i> {
        let len = _mm512_srai_epi32::<24>(_mm512_sub_epi8(end, before));
        let has_fifth = _mm512_cmpgt_epi32_mask(len, _mm512_set1_epi32(4));
        let index = _mm512_sub_epi8(end, _mm512_set1_epi8(4));
        let fifth = _mm512_permutexvar_epi8(index, self.block);
        let fifth = _mm512_and_si512(fifth, _mm512_set1_epi32(0x7f));
        let index = _mm512_sub_epi8(end, constant(&BACK));
        let lower = joined(_mm512_permutexvar_epi8(index, self.block));
        let lower = _mm512_maskz_mov_epi32(has_fifth, lower);
        let whole = _mm512_or_si512(lower, _mm512_slli_epi32::<28>(fifth));
        // The bits that are lost must be copies of the sign.
        let lost = _mm512_srli_epi32::<4>(fifth);
        let sign = _mm512_maskz_srai_epi32::<31>(signed, whole);
        let sign = _mm512_and_si512(sign, _mm512_set1_epi32(7));
        let wrong = _mm512_mask_cmpneq_epi32_mask(has_fifth, lost, sign);
        let longer = _mm512_cmpgt_epi32_mask(len, _mm512_set1_epi32(5));
        (wrong | longer == 0).then(|| _mm512_mask_mov_epi32(value, has_fifth, whole))
    }
}

/// Four bytes each, the last ones first, as integers: their data bits, that is.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn joined(bytes: __m512i) -> __m512i {
    sum(_mm512_and_si512(bytes, _mm512_set1_epi8(0x7f)))
}

/// Four signed digits of seven bits each, the last ones first, as integers.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn sum(sevens: __m512i) -> __m512i {
    let fourteens = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), sevens);
    _mm512_madd_epi16(fourteens, _mm512_set1_epi32(1 << 30 | 1))
}

/// The lanes whose value is not one of their type.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn out_of_range(plan: &Plan, group: usize, value: __m512i) -> __mmask16 {
    let above = _mm512_sub_epi32(value, vector(&plan.low[group]));
    _mm512_cmpgt_epu32_mask(above, vector(&plan.range[group]))
}

/// Writes the row.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn fill<const G: usize>(
    plan: &Plan,
    masks: &Masks,
    nulls: u64,
    vectors: &[__m512i; G],
    row: &mut Row,
) {
    let (chunks, _) = row.values.as_chunks_mut();
    for (to, vector) in chunks.iter_mut().zip(vectors) {
        store(to, *vector);
    }
    row.present = plan.all & !(masks.absent | nulls);
}

/// Notes the new states.
#[inline(always)]
pub(super) fn keep(plan: &Plan, flags: &mut Flags, masks: &Masks, nulls: u64) {
    if masks.is_steady && nulls & plan.implied == 0 {
        return;
    }
    let absent = masks.absent | nulls;
    let set = plan.implied & !absent | plan.delta & masks.stream & !nulls;
    let clear = (plan.implied & absent) << plan.shift;
    let set = set << plan.shift;
    flags.assigned = (flags.assigned | set) & !clear;
    flags.empty = flags.empty & !set | clear;
    flags.outside &= !set;
}

/// The bytes of a mask, moved together, and zeros behind them. Zen 5 waits for what was in the
/// register before, even if zeros shall be there: so they come from a place that the compiler does
/// not know to be zero.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi2")]
pub(super) fn compressed(mask: u64, bytes: __m512i) -> __m512i {
    static ZEROS: Vector = Vector([0; 16]);
    _mm512_mask_compress_epi8(forwarded(&ZEROS), mask, bytes)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn constant(bytes: &Bytes) -> __m512i {
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
