//! Decoding of the entries of a sequence. The properties of 64 bytes are computed once, for as many
//! entries as they hold. Previous values stay in registers from entry to entry, and the shape of an
//! entry's presence map is known from the last time.

use super::avx512::{
    NEARER, NEXT, SEVENS, block, compressed, constant, forwarded, long, map_bits, out_of_range,
    store, sum, vector,
};
use super::columns::{Block, Vector};
use super::masks::{Masks, STOPS, map_of, masks, word_at};
use super::shapes::{Key, MAX_MAP, NOTHING, SLOTS, Shape, Shapes, found, set_states, states};
use super::{Columns, MAX_LANES, Plan, Row};
use core::arch::x86_64::*;

/// A bit matrix that copies a byte with its sign bit in the place of the stop bit.
const SIGNED: i64 = 0x0102_0408_1020_4040;
/// Decodes entries, each with a presence map, as long as they are regular, have no integer of five
/// bytes, and their shapes are known. Returns the index after them, and their count, with the
/// number of their strings in the upper half. A result by way of memory would be waited for.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    shapes: &[Shape; SLOTS],
    bytes: &[u8],
    at: usize,
    rows: &mut [Row],
) -> (usize, u64) {
    // SAFETY: this function has the instructions.
    unsafe { entries::<G>(plan, columns, shapes, (bytes, at), rows) }.unwrap_or((at, 0))
}

#[inline(always)]
unsafe fn entries<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    shapes: &[Shape; SLOTS],
    (bytes, at): (&[u8], usize),
    rows: &mut [Row],
) -> Option<(usize, u64)> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
    let mut rest = bytes.get(at..)?;
    let before = states(plan, flags)?;
    let mut now = before;
    let (mut offset, mut done) = (0, 0);
    // SAFETY: the caller has the instructions.
    unsafe {
        let mut vectors = [_mm512_setzero_si512(); G];
        for (vector, values) in vectors.iter_mut().zip(&*values) {
            *vector = forwarded(values);
        }
        let mut view = View::new(rest);
        let mut words = last_word(rest);
        let mut left = Left::all(&view);
        'entries: for row in rows {
            let entry = loop {
                let word = match offset as isize <= words {
                    // SAFETY: eight bytes follow.
                    true => rest.as_ptr().add(offset).cast::<u64>().read_unaligned(),
                    false => word_at(rest, offset),
                };
                if let Some(entry) = Entry::at(plan, shapes, word, &left, now) {
                    break entry;
                }
                if offset == 0 {
                    break 'entries;
                }
                rest = rest.get(offset..).unwrap_or_default();
                view = View::new(rest);
                words = last_word(rest);
                left = Left::all(&view);
                offset = 0;
            };
            let number = left.pass(&entry);
            let Some(told) = entry.told(plan, &view, rest, now) else {
                break;
            };
            let Some(results) = entry.read(plan, &view, number, &vectors) else {
                break;
            };
            vectors = results;
            now = told.next;
            done += told.done;
            let (chunks, _) = row.values.as_chunks_mut();
            for (to, vector) in chunks.iter_mut().zip(vectors) {
                store(to, vector);
            }
            row.present = told.present;
            offset = entry.last.trailing_zeros() as usize + 1;
        }
        for (values, vector) in values.iter_mut().zip(vectors) {
            store(&mut values.0, vector);
        }
    }
    if now != before {
        set_states(plan, flags, now);
    }
    let at = bytes.len() - rest.len() + offset;
    Some((at, done))
}

/// The next 64 bytes of the stream, with zeros after its end, and their properties.
struct View {
    block: __m512i,
    stops: u64,
    /// The position after each stop bit, by the number of the stop bit.
    ends: __m512i,
    /// The first bytes that may be irregular: those of integers of more than four bytes, and those
    /// that may be redundant.
    odd: u64,
    /// The bytes that are 0x80.
    nulls: u64,
}

impl View {
    #[inline(always)]
    unsafe fn new(rest: &[u8]) -> Self {
        // SAFETY: the caller has the instructions.
        unsafe {
            let block = block(rest);
            let stops = _mm512_movepi8_mask(block);
            let zeros = _mm512_testn_epi8_mask(block, block);
            let ones = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x7f));
            Self {
                block,
                stops,
                ends: compressed(stops, constant(&NEXT)),
                odd: zeros | ones | long(stops),
                nulls: _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(-0x80)),
            }
        }
    }
}

/// Returns the last offset at which there are eight bytes, which is negative if there is none.
#[inline(always)]
const fn last_word(rest: &[u8]) -> isize {
    rest.len() as isize - 8
}

/// The stop bits of the window that are left, and four times the number of those before them.
struct Left {
    stops: u64,
    number: u32,
}

impl Left {
    #[inline(always)]
    const fn all(view: &View) -> Self {
        Self {
            stops: view.stops,
            number: 0,
        }
    }

    /// Removes the first entry, and returns four times the number of its first stop bit.
    #[inline(always)]
    const fn pass(&mut self, entry: &Entry<'_>) -> u32 {
        let number = self.number;
        self.stops ^= entry.stops;
        self.number += entry.shape.number;
        number
    }
}

/// An entry in the window.
struct Entry<'s> {
    shape: &'s Shape,
    /// The stop bits of the entry, from that of its presence map on.
    stops: u64,
    last: u64,
}

/// The result for an entry, besides its values.
struct Told {
    present: u64,
    /// The count of the entry: see [`Shape`].
    done: u64,
    /// The states after the entry.
    next: u64,
}

impl<'s> Entry<'s> {
    /// Returns the entry that begins with the bytes of `word`, or `None` if it goes beyond the
    /// window, or its shape is not known. `left` has the stop bits of the window from there on.
    #[inline(always)]
    unsafe fn at(
        plan: &Plan,
        shapes: &'s [Shape; SLOTS],
        word: u64,
        left: &Left,
        states: u64,
    ) -> Option<Self> {
        // SAFETY: the caller has the instructions.
        unsafe {
            // Without any stop bit it is all of the word, and that is no shape's.
            let mask = _blsmsk_u64(word & STOPS);
            // The next entry waits for this: so it does not wait for the shape.
            let [once, twice] = plan
                .counted
                .map(|counted| (word & counted & mask).count_ones());
            let last = _pdep_u64(plan.always_bit << ((once + twice) & 63), left.stops);
            let key = Key::new(plan, word & mask, states);
            let shape = found(shapes, &key)?;
            (last != 0).then_some(Self {
                shape,
                stops: left.stops & _blsmsk_u64(last),
                last,
            })
        }
    }

    /// Returns the result for the entry besides its values, or `None` if it is not regular.
    #[inline(always)]
    unsafe fn told(&self, plan: &Plan, view: &View, rest: &[u8], now: u64) -> Option<Told> {
        let shape = self.shape;
        let firsts = (self.stops ^ self.last) << 1;
        // SAFETY: the caller has the instructions.
        unsafe {
            if view.odd & firsts != 0 && is_irregular(plan, shape, firsts, rest) {
                return None;
            }
            let nulls = _pext_u64(view.nulls & firsts, _blsr_u64(self.stops)) & shape.optional;
            if nulls != 0 {
                return with_nulls(plan, shape, _pdep_u64(nulls, shape.stream), now);
            }
        }
        Some(Told {
            present: shape.present,
            done: shape.done,
            next: shape.next,
        })
    }

    /// Returns the values of the entry, or `None` if one is out of its range. `number` is four
    /// times the number of its first stop bit.
    #[inline(always)]
    unsafe fn read<const G: usize>(
        &self,
        plan: &Plan,
        view: &View,
        number: u32,
        vectors: &[__m512i; G],
    ) -> Option<[__m512i; G]> {
        let shape = self.shape;
        // SAFETY: the caller has the instructions.
        unsafe {
            let first = integers(shape, 0, number, view);
            let second = match shape.beyond {
                0 => _mm512_setzero_si512(),
                beyond => _mm512_maskz_mov_epi32(beyond, integers(shape, 1, number, view)),
            };
            let (mut results, mut bad) = ([first; G], 0);
            for (group, result) in results.iter_mut().enumerate() {
                let index = vector(&shape.index[group]);
                let entity = _mm512_permutex2var_epi32(first, index, second);
                let kept = _mm512_and_si512(vectors[group], vector(&shape.keep[group]));
                let base = _mm512_add_epi32(kept, vector(&shape.addend[group]));
                *result = _mm512_add_epi32(base, entity);
                bad |= out_of_range(plan, group, *result);
            }
            (bad == 0).then_some(results)
        }
    }
}

/// Returns whether an integer has more than four bytes, or an entity has a first byte that does not
/// change its value.
#[cold]
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,bmi2")]
fn is_irregular(plan: &Plan, shape: &Shape, firsts: u64, rest: &[u8]) -> bool {
    let block = block(rest);
    let zeros = _mm512_testn_epi8_mask(block, block) & firsts;
    let ones = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(0x7f)) & firsts;
    let signs = _mm512_movepi8_mask(_mm512_slli_epi16::<1>(block)) >> 1;
    let lanes = |marks: u64| _pdep_u64(_pext_u64(marks, firsts), shape.stream);
    let repeated = zeros & !signs | ones & signs;
    firsts & long(_mm512_movepi8_mask(block)) != 0
        || lanes(zeros) & !plan.signed | lanes(repeated) & plan.signed != 0
}

/// Returns the result for an entry of which these lanes are NULL, or `None` if one is an exponent,
/// as its mantissa is then not there.
#[cold]
#[inline(never)]
fn with_nulls(plan: &Plan, shape: &Shape, nulls: u64, now: u64) -> Option<Told> {
    let present = shape.present & !nulls;
    let (gone, unchanged) = (nulls & plan.implied, nulls & plan.delta);
    let next = shape.next & !gone | gone << 32;
    (nulls & plan.leads == 0).then_some(Told {
        present,
        done: done(plan, present),
        next: next & !unchanged | now & unchanged,
    })
}

/// Returns the count of an entry in which these lanes have a value, for the result of [`decode`].
const fn done(plan: &Plan, present: u64) -> u64 {
    1 | ((present & plan.text).count_ones() as u64) << 32
}

/// The number of a stop bit for each byte of sixteen entities, from any number on.
static NUMBERS: [u8; 256 + 64 + 68] = {
    let mut numbers = [0; _];
    let mut i = 0;
    while i < numbers.len() {
        numbers[i] = (i / 4) as u8;
        i += 1;
    }
    numbers
};

/// Returns sixteen entities of up to four bytes as integers. `number` is four times the number of
/// the first stop bit of their entry. The lanes after its last entity are undefined.
#[inline(always)]
unsafe fn integers(shape: &Shape, part: usize, number: u32, view: &View) -> __m512i {
    let at = number as usize % 256 + 64 * part;
    // SAFETY: the caller has the instructions; 68 bytes are read from an index of at most 319.
    unsafe {
        let numbers = NUMBERS.as_ptr().add(at);
        let (befores, ends) = (numbers.cast(), numbers.add(4).cast());
        let end = _mm512_permutexvar_epi8(_mm512_loadu_si512(ends), view.ends);
        let start = _mm512_permutexvar_epi8(_mm512_loadu_si512(befores), view.ends);
        let index = _mm512_sub_epi8(end, constant(&NEARER));
        let valid = _mm512_cmpge_epi8_mask(index, start);
        let signs = _mm512_mask_cmpeq_epi8_mask(shape.signed[part], index, start);
        let bytes = _mm512_permutexvar_epi8(index, view.block);
        let (sevens, signed) = (_mm512_set1_epi64(SEVENS), _mm512_set1_epi64(SIGNED));
        let unsigned = _mm512_maskz_gf2p8affine_epi64_epi8::<0>(valid, bytes, sevens);
        let value = _mm512_mask_gf2p8affine_epi64_epi8::<0>(unsigned, signs, bytes, signed);
        let value = sum(value);
        let nullable = (shape.nullable >> (16 * part)) as u16;
        let zero = _mm512_setzero_si512();
        let more = _mm512_mask_cmpgt_epi32_mask(nullable, value, zero);
        _mm512_mask_add_epi32(value, more, value, _mm512_set1_epi32(-1))
    }
}

/// Keeps the shape of the presence map at an index, if the map is a regular one.
#[cold]
#[target_feature(enable = "avx512f,bmi1,bmi2,gfni")]
pub(super) fn learn(
    plan: &Plan,
    columns: &Columns,
    shapes: &mut Shapes,
    (bytes, at): (&[u8], usize),
) -> Option<()> {
    let Block { flags, .. } = columns.blocks.get(plan.block as usize)?;
    let (map, _) = map_of(word_at(bytes, at))?;
    if map & plan.excess != 0 || plan.skipped_bits != 0 || map >> (8 * MAX_MAP) != 0 {
        return None;
    }
    let key = Key::new(plan, map, states(plan, flags)?);
    let masks = masks(plan, flags, _pdep_u64(map_bits(map), plan.bit))?;
    *shapes.place(key)? = Shape::new(plan, key, &masks);
    Some(())
}

impl Shape {
    /// Returns the shape of an entry with these masks.
    fn new(plan: &Plan, key: Key, masks: &Masks) -> Self {
        let Masks { stream, absent, .. } = *masks;
        let set = plan.implied & !absent | plan.delta & stream;
        let clear = plan.implied & absent;
        let (assigned, empty) = (key.states & 0xffff_ffff, key.states >> 32);
        let present = plan.all & !absent;
        let mut shape = Self {
            key,
            next: (assigned | set) & !clear | (empty & !set | clear) << 32,
            beyond: (((1_u64 << stream.count_ones()) - 1) >> 16) as u16,
            stream,
            present,
            done: done(plan, present),
            number: 4 * (1 + stream.count_ones()),
            ..Self::default()
        };
        let mut number = 0;
        for lane in 0..MAX_LANES {
            let (group, at, bit) = (lane / 16, lane % 16, 1_u64 << lane);
            let (in_stream, is_delta) = (stream & bit != 0, plan.delta & bit != 0);
            let has_previous = masks.previous & bit != 0;
            let has_base = !in_stream || is_delta;
            shape.index[group].0[at] = if in_stream { number } else { NOTHING };
            if has_base && has_previous {
                shape.keep[group].0[at] = -1;
                shape.addend[group].0[at] = i32::from(masks.add & bit != 0);
            } else if has_base {
                shape.addend[group].0[at] = plan.initials[group].0[at];
            }
            if in_stream {
                let of = |mask: u64| u64::from(mask & bit != 0) << number;
                shape.optional |= of(plan.optional);
                shape.nullable |= of(plan.nullable);
                if plan.signed & bit != 0 {
                    shape.signed[number as usize / 16] |= 0xf << (4 * (number % 16));
                }
                number += 1;
            }
        }
        shape
    }
}
