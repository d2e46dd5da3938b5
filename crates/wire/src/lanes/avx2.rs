//! Decoding of segments of up to 24 entities in up to 32 bytes, none longer than four bytes, eight
//! lanes at once. Entities stay in registers from the stream to their lanes, as a load of a vector
//! that was stored in pieces waits. Longer or irregular segments are not decoded.
//!
//! Structs and vectors are passed to functions by way of memory. Functions that take or return them
//! must therefore always be inlined. As that cannot be asked of functions with instructions of
//! their own, some functions here rely on the instructions of their callers.

use super::columns::{Block, Flags, Vector};
use super::masks::{Masks, keep, map_of, masks, steady, word_at};
use super::{Columns, Front, Plan, Row};
use core::arch::x86_64::*;
use core::hint::black_box;

/// The number of lanes of a vector.
pub(super) const EIGHT: usize = 8;

/// The number of bytes of a window.
const WINDOW: usize = 32;

/// The most entities of a segment.
const MOST: u32 = 24;

#[repr(align(32))]
struct Pattern([u8; 32]);

/// The number of the entity for each byte of eight entities: the first eight of sixteen, and the
/// second eight.
const ENTITIES: [Pattern; 2] = [entities(0), entities(EIGHT)];

const fn entities(first: usize) -> Pattern {
    let mut all = [0; 32];
    let mut i = 0;
    while i < 32 {
        all[i] = (first + i / 4) as u8;
        i += 1;
    }
    Pattern(all)
}

/// The distance of each of four bytes from the end of its entity, the last byte first.
const BACK: i32 = 0x0302_0100;

/// The numbers of the entities of eight lanes, by the mask of the lanes in the stream.
static EXPANDED: [[u8; EIGHT]; 256] = expanded();

const fn expanded() -> [[u8; EIGHT]; 256] {
    let mut all = [[0; EIGHT]; 256];
    let mut mask = 0;
    while mask < 256 {
        let mut lane = 0;
        while lane < EIGHT {
            all[mask][lane] = (mask & ((1 << lane) - 1)).count_ones() as u8;
            lane += 1;
        }
        mask += 1;
    }
    all
}

/// Returns whether this processor has all instructions of this kernel.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe")
        && is_x86_feature_detected!("popcnt")
}

/// Decodes the segment after its front, at the beginning of `bytes`. Returns its length with the
/// front, or 0 if it is not decoded.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(super) fn decode(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    front: Front,
    row: &mut Row,
) -> usize {
    // SAFETY: this function has the instructions.
    let done = unsafe {
        match plan.eights {
            ..=1 => segment::<1>(plan, columns, bytes, front, row),
            2 => segment::<2>(plan, columns, bytes, front, row),
            3 => segment::<3>(plan, columns, bytes, front, row),
            4.. => segment::<4>(plan, columns, bytes, front, row),
        }
    };
    done.unwrap_or(0)
}

#[inline(always)]
unsafe fn segment<const E: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    Front { map, has_id }: Front,
    row: &mut Row,
) -> Option<usize> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values = values.get_mut(plan.first()..plan.first() + E.div_ceil(2))?;
    // SAFETY: the caller has the instructions.
    unsafe {
        let window = Window::at(bytes, 0)?;
        let count = count(plan, map);
        if map & plan.excess != 0 || count > MOST {
            return None;
        }
        let first = 8 - map.leading_zeros() / 8 + u32::from(has_id);
        let stops = stops(window.stops, first, count)?;
        let bits = map_bits(map) >> plan.skipped_bits;
        let masks = masks(plan, flags, _pdep_u64(bits, plan.bit))?;
        let vectors = load(values)?;
        let (nulls, results) = read::<E>(plan, &masks, &stops, &window, &vectors)?;
        save(values, &results);
        fill(plan, &masks, nulls, &results, row);
        keep(plan, flags, &masks, nulls);
        Some(stops.last.trailing_zeros() as usize + 1)
    }
}

/// Decodes entries, each with a presence map, as long as they are regular, short, and have no bits
/// left. Returns the index after them, and their count, with the number of their strings in the
/// upper half.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(super) fn entries(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    rows: &mut [Row],
) -> (usize, u64) {
    // SAFETY: this function has the instructions.
    let done = unsafe {
        match plan.eights {
            ..=1 => all_entries::<1>(plan, columns, bytes, at, rows),
            2 => all_entries::<2>(plan, columns, bytes, at, rows),
            3 => all_entries::<3>(plan, columns, bytes, at, rows),
            4.. => all_entries::<4>(plan, columns, bytes, at, rows),
        }
    };
    done.unwrap_or((at, 0))
}

#[inline(always)]
unsafe fn all_entries<const E: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    mut at: usize,
    rows: &mut [Row],
) -> Option<(usize, u64)> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values = values.get_mut(plan.first()..plan.first() + E.div_ceil(2))?;
    let mut ready = (flags.assigned & !flags.outside) >> plan.shift;
    let (mut done, mut texts) = (0, 0);
    // SAFETY: the caller has the instructions.
    unsafe {
        let mut vectors = load::<E>(values)?;
        while let Some(row) = rows.get_mut(done) {
            // Otherwise all of the plan is read in advance, only to be put aside again.
            let plan = black_box(plan);
            let Some(window) = Window::at(bytes, at) else {
                break;
            };
            let Some((given, stops)) = entry(plan, &window, bytes, at) else {
                break;
            };
            let masks = match plan.kept & !ready {
                0 => Some(steady(plan, given)),
                _ => masks(plan, flags, given),
            };
            let Some(masks) = masks else {
                break;
            };
            let Some((nulls, results)) = read(plan, &masks, &stops, &window, &vectors) else {
                break;
            };
            vectors = results;
            ready = note(plan, flags, &masks, nulls, ready);
            fill(plan, &masks, nulls, &vectors, row);
            texts += u64::from((row.present & plan.text).count_ones());
            at = window.start + stops.last.trailing_zeros() as usize + 1;
            done += 1;
        }
        save(values, &vectors);
    }
    Some((at, done as u64 | texts << 32))
}

/// Sets the states after an entry, and returns the lanes that then have a previous value in their
/// columns.
#[inline(always)]
fn note(plan: &Plan, flags: &mut Flags, masks: &Masks, nulls: u64, ready: u64) -> u64 {
    if masks.is_steady && nulls & plan.implied == 0 {
        return ready;
    }
    keep(plan, flags, masks, nulls);
    (flags.assigned & !flags.outside) >> plan.shift
}

/// Returns the presence bits of the entry that begins at an index, by lane, and its stop bits.
/// Returns `None` if the entry goes beyond the window, has an unusual map, or too many bits.
#[inline(always)]
unsafe fn entry(plan: &Plan, window: &Window, bytes: &[u8], at: usize) -> Option<(u64, Stops)> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let (map, len) = map_of(word_at(bytes, at))?;
        let count = count(plan, map);
        if map & plan.excess != 0 || count > MOST {
            return None;
        }
        let first = (at - window.start) as u32 + len / 8;
        let stops = stops(window.stops, first, count)?;
        Some((_pdep_u64(map_bits(map), plan.bit), stops))
    }
}

/// A window of 32 bytes of the stream.
struct Window {
    all: __m256i,
    /// The index of the first byte.
    start: usize,
    stops: u64,
}

impl Window {
    /// Returns the mask of the bytes that are equal to a byte.
    #[inline(always)]
    unsafe fn equal(&self, byte: u8) -> u64 {
        // SAFETY: the caller has the instructions.
        unsafe {
            let equal = _mm256_cmpeq_epi8(self.all, _mm256_set1_epi8(byte as i8));
            u64::from(_mm256_movemask_epi8(equal) as u32)
        }
    }

    /// Returns the window of the bytes from an index on, or of the last bytes if there are fewer.
    /// Returns `None` if no byte follows the index.
    #[inline(always)]
    unsafe fn at(bytes: &[u8], at: usize) -> Option<Self> {
        let Some(last) = bytes.len().checked_sub(WINDOW) else {
            // SAFETY: the caller has the instructions.
            return unsafe { Self::of(&padded(bytes.get(at..)?), at) };
        };
        let start = at.min(last);
        if at - start >= WINDOW {
            return None;
        }
        // SAFETY: as above.
        unsafe { Self::of(bytes.get(start..)?.first_chunk()?, start) }
    }

    #[inline(always)]
    unsafe fn of(all: &[u8; WINDOW], start: usize) -> Option<Self> {
        // SAFETY: there are so many bytes, and the caller has the instructions.
        unsafe {
            let all = _mm256_loadu_si256(all.as_ptr().cast());
            let stops = u64::from(_mm256_movemask_epi8(all) as u32);
            Some(Self { all, start, stops })
        }
    }
}

/// Returns fewer bytes than a window has, with zeros after them.
#[cold]
#[inline(never)]
fn padded(rest: &[u8]) -> [u8; WINDOW] {
    let mut all = [0; WINDOW];
    for (to, from) in all.iter_mut().zip(rest) {
        *to = *from;
    }
    all
}

/// The stop bits of a segment.
struct Stops {
    /// The stop bits of its entities, and of the byte before the first one.
    stops: u64,
    /// The byte before the first entity.
    before: u64,
    /// The last stop bit.
    last: u64,
}

/// Returns where `count` entities end, of which the first begins at `first`, from 1 to 63. Returns
/// `None` if the window does not have all of them.
#[inline(always)]
unsafe fn stops(stops: u64, first: u32, count: u32) -> Option<Stops> {
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

/// Returns the lanes that are NULL, and the values of a segment, or `None` if something is not
/// regular. `vectors` are the previous values.
#[inline(always)]
unsafe fn read<const E: usize>(
    plan: &Plan,
    masks: &Masks,
    stops: &Stops,
    window: &Window,
    vectors: &[__m256i; E],
) -> Option<(u64, [__m256i; E])> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let nulls = irregular(plan, masks.stream, stops, window)?;
        if any_long(stops) {
            return None;
        }
        let entities = Entities::new(plan, masks.stream, stops, window);
        let mut results = *vectors;
        let mut good = _mm256_set1_epi32(-1);
        for (eight, result) in results.iter_mut().enumerate() {
            let value = entities.expanded(masks.stream, eight);
            *result = applied(plan, masks, eight, value, *result)?;
            good = _mm256_and_si256(good, in_range(plan, eight, *result));
        }
        (_mm256_movemask_epi8(good) == -1).then_some((nulls, results))
    }
}

/// Returns the lanes that are NULL, or `None` if an integer is overlong, a string has a zero
/// preamble, or the exponent of a decimal is NULL.
#[inline(always)]
unsafe fn irregular(plan: &Plan, stream: u64, stops: &Stops, window: &Window) -> Option<u64> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let firsts = (stops.stops ^ stops.last) << 1;
        let zeros = window.equal(0) & firsts;
        let ones = match plan.signed {
            0 => 0,
            _ => window.equal(0x7f) & firsts,
        };
        if zeros | ones != 0 {
            let signs = _mm256_movemask_epi8(_mm256_slli_epi16::<1>(window.all));
            let signs = u64::from(signs as u32) >> 1;
            let lanes = |marks: u64| _pdep_u64(_pext_u64(marks, firsts), stream);
            let repeated = zeros & !signs | ones & signs;
            if lanes(zeros) & !plan.signed | lanes(repeated) & plan.signed != 0 {
                return None;
            }
        }
        if plan.optional == 0 {
            return Some(0);
        }
        let entities = stops.stops ^ stops.before;
        let nulls = _pext_u64(window.equal(0x80) & firsts, entities);
        let nulls = _pdep_u64(nulls, stream) & plan.optional;
        (nulls & plan.leads == 0).then_some(nulls)
    }
}

/// The entities in the order of the stream, as integers.
struct Entities {
    first: __m256i,
    second: __m256i,
    third: __m256i,
    count: u32,
}

impl Entities {
    #[inline(always)]
    unsafe fn new(plan: &Plan, stream: u64, stops: &Stops, window: &Window) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe {
            let [before, later] = numbers(stops.stops);
            let ends = _mm_alignr_epi8::<1>(later, before);
            let bytes = [
                _mm256_permute2x128_si256::<0x00>(window.all, window.all),
                _mm256_permute2x128_si256::<0x11>(window.all, window.all),
            ];
            let (signed, nullable) = (
                _pext_u64(plan.signed, stream),
                _pext_u64(plan.nullable, stream),
            );
            let count = stream.count_ones();
            let first = integers::<0>((before, ends), bytes, signed, nullable);
            let (mut second, mut third) = (first, first);
            if count > 8 {
                second = integers::<1>((before, ends), bytes, signed >> 8, nullable >> 8);
            }
            if count > 16 {
                let ends = _mm_srli_si128::<1>(later);
                third = integers::<0>((later, ends), bytes, signed >> 16, nullable >> 16);
            }
            Self {
                first,
                second,
                third,
                count,
            }
        }
    }

    /// Returns the values of eight lanes that are in the stream, each in its lane.
    #[inline(always)]
    unsafe fn expanded(&self, stream: u64, eight: usize) -> __m256i {
        let lanes = (stream >> (EIGHT * eight)) as u8;
        let numbers = &EXPANDED[usize::from(lanes)];
        let passed = (stream & ((1 << (EIGHT * eight)) - 1)).count_ones() as i32;
        // SAFETY: the caller has the instructions, and there are eight bytes.
        unsafe {
            let numbers = _mm_loadl_epi64(numbers.as_ptr().cast());
            let numbers = _mm256_cvtepu8_epi32(numbers);
            if eight == 0 {
                return _mm256_permutevar8x32_epi32(self.first, numbers);
            }
            let numbers = _mm256_add_epi32(numbers, _mm256_set1_epi32(passed));
            let first = _mm256_permutevar8x32_epi32(self.first, numbers);
            let second = _mm256_permutevar8x32_epi32(self.second, numbers);
            // Bits 3 and 4 say which.
            let value = chosen(first, second, _mm256_slli_epi32::<28>(numbers));
            if eight == 1 || self.count <= 16 {
                return value;
            }
            let third = _mm256_permutevar8x32_epi32(self.third, numbers);
            chosen(value, third, _mm256_slli_epi32::<27>(numbers))
        }
    }
}

/// Returns the lanes of `second` if the topmost bit of `which` is set, and those of `first`
/// otherwise.
#[inline(always)]
unsafe fn chosen(first: __m256i, second: __m256i, which: __m256i) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let (first, second) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
        _mm256_castps_si256(_mm256_blendv_ps(first, second, _mm256_castsi256_ps(which)))
    }
}

/// Returns the numbers of the marked bytes of 32: sixteen of them, and the next sixteen. The places
/// after them are undefined.
#[inline(always)]
unsafe fn numbers(marks: u64) -> [__m128i; 2] {
    // SAFETY: the caller has the instructions.
    unsafe {
        // Four bits each.
        let of = |marks: u64| {
            let wanted = _pdep_u64(marks, 0x1111_1111_1111_1111).wrapping_mul(15);
            _pext_u64(0xfedc_ba98_7654_3210, wanted) as i64
        };
        let lower = marks & 0xffff;
        let pairs = _mm256_set_epi64x(0, of(marks >> 16), 0, of(lower));
        let single = _mm256_unpacklo_epi8(pairs, _mm256_srli_epi16::<4>(pairs));
        let single = _mm256_and_si256(single, _mm256_set1_epi8(15));
        let upper = _mm256_extracti128_si256::<1>(single);
        let upper = _mm_add_epi8(upper, _mm_set1_epi8(16));
        let iota = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        // Those of the upper half come behind those of the lower one.
        let index = _mm_sub_epi8(iota, _mm_set1_epi8(lower.count_ones() as i8));
        let first = _mm_or_si128(
            _mm256_castsi256_si128(single),
            _mm_shuffle_epi8(upper, index),
        );
        let index = _mm_add_epi8(index, _mm_set1_epi8(16));
        [first, _mm_shuffle_epi8(upper, index)]
    }
}

/// Returns the first or second eight of sixteen entities as integers, from the bytes at which they
/// and the entities before them end. `signed` and `nullable` are masks by the number of the entity.
#[inline(always)]
unsafe fn integers<const PART: usize>(
    (before, end): (__m128i, __m128i),
    [lower, upper]: [__m256i; 2],
    signed: u64,
    nullable: u64,
) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let entities = pattern(&ENTITIES[PART]);
        let end = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(end), entities);
        let before = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(before), entities);
        let index = _mm256_sub_epi8(end, _mm256_set1_epi32(BACK));
        let valid = _mm256_cmpgt_epi8(index, before);
        let lower = _mm256_shuffle_epi8(lower, index);
        let upper = _mm256_shuffle_epi8(upper, index);
        // Bit 4 says which.
        let bytes = _mm256_blendv_epi8(lower, upper, _mm256_slli_epi16::<3>(index));
        let sevens = _mm256_and_si256(valid, _mm256_set1_epi8(0x7f));
        let sevens = _mm256_and_si256(bytes, sevens);
        let fourteens = _mm256_maddubs_epi16(_mm256_set1_epi16(0x8001_u16 as i16), sevens);
        let mut value = _mm256_madd_epi16(fourteens, _mm256_set1_epi32(1 << 30 | 1));
        if signed != 0 {
            // How many bits of 32 the entity leaves unused, by its length.
            let len = _mm256_sub_epi8(end, before);
            let len = _mm256_or_si256(len, _mm256_set1_epi32(0x8080_8000_u32 as i32));
            let unused = _mm256_set1_epi64x(0x0004_0b12_1920);
            let unused = _mm256_shuffle_epi8(unused, len);
            let extended = _mm256_srav_epi32(_mm256_sllv_epi32(value, unused), unused);
            value = _mm256_blendv_epi8(value, extended, spread(signed));
        }
        if nullable != 0 {
            let more = _mm256_cmpgt_epi32(value, _mm256_setzero_si256());
            value = _mm256_add_epi32(value, _mm256_and_si256(more, spread(nullable)));
        }
        value
    }
}

/// Returns the results of the operators of eight lanes. `value` has the values of the lanes that
/// are in the stream.
#[inline(always)]
unsafe fn applied(
    plan: &Plan,
    masks: &Masks,
    eight: usize,
    value: __m256i,
    old: __m256i,
) -> Option<__m256i> {
    let wide = &plan.wide;
    // SAFETY: the caller has the instructions.
    unsafe {
        let stream = spread(masks.stream >> (EIGHT * eight));
        let previous = match masks.is_steady {
            true => half_of(&wide.previous, eight)?,
            false => spread(masks.previous >> (EIGHT * eight)),
        };
        let mut base = _mm256_blendv_epi8(half_of(&plan.initials, eight)?, old, previous);
        let delta = half_of(&wide.delta, eight)?;
        let added = _mm256_and_si256(_mm256_and_si256(stream, delta), base);
        if plan.increment != 0 {
            let add = _mm256_and_si256(half_of(&wide.increment, eight)?, previous);
            base = _mm256_sub_epi32(base, add);
        }
        let value = _mm256_add_epi32(value, added);
        Some(_mm256_blendv_epi8(base, value, stream))
    }
}

/// Returns eight bits of a mask as eight lanes.
#[inline(always)]
pub(super) unsafe fn spread(mask: u64) -> __m256i {
    // SAFETY: the caller has the instructions.
    unsafe {
        let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        let all = _mm256_set1_epi32(mask as i32);
        _mm256_cmpeq_epi32(_mm256_and_si256(all, bits), bits)
    }
}

#[inline(always)]
unsafe fn pattern(pattern: &Pattern) -> __m256i {
    // SAFETY: the caller has the instructions, and the pattern 32 bytes.
    unsafe { _mm256_load_si256(pattern.0.as_ptr().cast()) }
}

/// Returns the columns of a segment.
#[inline(always)]
pub(super) unsafe fn load<const E: usize>(values: &[Vector]) -> Option<[__m256i; E]> {
    // SAFETY: the caller has the instructions.
    unsafe {
        let mut vectors = [_mm256_setzero_si256(); E];
        for (eight, vector) in vectors.iter_mut().enumerate() {
            *vector = half_of(values, eight)?;
        }
        Some(vectors)
    }
}

/// Stores the columns of a segment.
#[inline(always)]
pub(super) unsafe fn save<const E: usize>(values: &mut [Vector], vectors: &[__m256i; E]) {
    let eights = values
        .iter_mut()
        .flat_map(|vector| vector.0.as_chunks_mut().0);
    for (to, vector) in eights.zip(vectors) {
        // SAFETY: the caller has the instructions.
        unsafe { store_eight(to, *vector) };
    }
}

/// Writes the values and the presence of a row.
#[inline(always)]
unsafe fn fill<const E: usize>(
    plan: &Plan,
    masks: &Masks,
    nulls: u64,
    vectors: &[__m256i; E],
    row: &mut Row,
) {
    for (to, vector) in row.values.as_chunks_mut().0.iter_mut().zip(vectors) {
        // SAFETY: the caller has the instructions.
        unsafe { store_eight(to, *vector) };
    }
    row.present = plan.all & !(masks.absent | nulls);
}

/// Returns the number of entities of a segment by its presence map.
#[inline]
#[target_feature(enable = "popcnt")]
fn count(plan: &Plan, map: u64) -> u32 {
    let [once, twice] = plan.counted;
    let count = plan.always_count + (map & once).count_ones();
    match twice {
        0 => count,
        _ => count + (map & twice).count_ones(),
    }
}

/// Returns the bits of a presence map, the first one lowest.
#[inline]
#[target_feature(enable = "bmi2")]
fn map_bits(map: u64) -> u64 {
    // The bits of each byte turned round: the lowest is the stop bit.
    let turned = map.reverse_bits().swap_bytes();
    _pext_u64(turned, 0xfefe_fefe_fefe_fefe)
}

/// Returns whether any entity has more than four bytes.
#[inline(always)]
const fn any_long(stops: &Stops) -> bool {
    let inner = (stops.last - stops.before) & !stops.stops;
    let two = inner & inner >> 1;
    two & two >> 2 != 0
}

/// Returns the lanes whose value is in the range of their type.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn in_range(plan: &Plan, eight: usize, value: __m256i) -> __m256i {
    let low = half_of(&plan.low, eight).unwrap_or(value);
    let range = half_of(&plan.range, eight).unwrap_or(value);
    let above = _mm256_sub_epi32(value, low);
    _mm256_cmpeq_epi32(_mm256_max_epu32(above, range), range)
}

/// Returns a group of eight lanes, or `None` if there are not that many.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn half_of(vectors: &[Vector], eight: usize) -> Option<__m256i> {
    let vector = vectors.get(eight / 2)?;
    // SAFETY: a vector has twice eight.
    Some(unsafe { _mm256_loadu_si256(vector.0.as_ptr().add(EIGHT * (eight % 2)).cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_eight(to: &mut [i32; EIGHT], value: __m256i) {
    // SAFETY: there is room for eight.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) };
}
