//! The entries of a sequence. What can be known of 64 bytes is found out once, for as many entries
//! as they hold; previous values stay in registers from entry to entry.

use super::avx512::{
    Entities, Masks, Stops, Window, count, fill, forwarded, front_word, irregular, keep, map_bits,
    masks, read, stops, store,
};
use super::columns::{Block, Flags, Vector};
use super::{Columns, Plan, Row};
use core::arch::x86_64::*;
use core::hint::black_box;

/// The stop bits of eight bytes.
const STOPS: u64 = 0x8080_8080_8080_8080;

/// Decodes entries with a presence map each, as long as they are regular, have no bits left, and
/// no integer of five bytes: the index behind them, and how many they are, with the number of
/// their strings in the upper half. What is returned by way of memory is waited for.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,gfni,bmi1,bmi2,popcnt")]
pub(super) fn decode<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    rows: &mut [Row],
) -> (usize, u64) {
    // SAFETY: this function has the instructions.
    unsafe { entries::<G>(plan, columns, bytes, at, rows) }.unwrap_or((at, 0))
}

#[inline(always)]
unsafe fn entries<const G: usize>(
    plan: &Plan,
    columns: &mut Columns,
    bytes: &[u8],
    at: usize,
    rows: &mut [Row],
) -> Option<(usize, u64)> {
    let Block { flags, values } = columns.blocks.get_mut(plan.block as usize)?;
    let values: &mut [Vector; G] = values.get_mut(plan.first()..)?.first_chunk_mut()?;
    let mut rest = bytes.get(at..)?;
    let mut ready = (flags.assigned & !flags.outside) >> plan.shift;
    let (mut offset, mut done, mut texts) = (0, 0, 0);
    // SAFETY: the caller has the instructions.
    unsafe {
        let mut vectors = [_mm512_setzero_si512(); G];
        for (vector, values) in vectors.iter_mut().zip(&*values) {
            *vector = forwarded(values);
        }
        let mut window = Window::new(plan, rest);
        while let Some(row) = rows.get_mut(done) {
            // Otherwise all of the plan is read in advance, only to be put aside again.
            let plan = black_box(plan);
            let Some(entry) = Entry::at(plan, &window, rest, offset) else {
                if offset == 0 {
                    break;
                }
                rest = rest.get(offset..).unwrap_or_default();
                window = Window::new(plan, rest);
                offset = 0;
                continue;
            };
            let Some(masks) = entry.masks(plan, flags, ready) else {
                break;
            };
            let Some((nulls, results)) = entry.read(plan, &masks, &window, &vectors) else {
                break;
            };
            vectors = results;
            if !masks.is_steady || nulls & plan.implied != 0 {
                keep(plan, flags, &masks, nulls);
                ready = (flags.assigned & !flags.outside) >> plan.shift;
            }
            fill(plan, &masks, nulls, &vectors, row);
            row.bits = 0;
            texts += u64::from((row.present & plan.text).count_ones());
            offset = entry.stops.last.trailing_zeros() as usize + 1;
            done += 1;
        }
        for (values, vector) in values.iter_mut().zip(vectors) {
            store(&mut values.0, vector);
        }
    }
    let at = bytes.len() - rest.len() + offset;
    Some((at, done as u64 | texts << 32))
}

/// An entry in the window.
struct Entry {
    given: u64,
    stops: Stops,
}

impl Entry {
    /// The entry that begins at this offset of the window; `None` if it goes beyond the window,
    /// has an unusual map, or bits too many.
    #[inline(always)]
    unsafe fn at(plan: &Plan, window: &Window, rest: &[u8], offset: usize) -> Option<Self> {
        // SAFETY: the caller has the instructions.
        unsafe {
            let word = front_word(rest.get(offset..)?);
            let ends = word & STOPS;
            // Of the map, in bits.
            let len = ends.trailing_zeros() + 1;
            let map = _bzhi_u64(word, len);
            let first = offset as u32 + len / 8;
            // The last byte of several has no bits.
            let is_overlong = (map >> 8) >> (len.wrapping_sub(16) & 63) == 0x80;
            if ends == 0 || first > 63 || is_overlong || map & plan.excess != 0 {
                return None;
            }
            let stops = stops(window.stops, first, count(plan, map))?;
            let given = _pdep_u64(map_bits(map), plan.bit);
            Some(Self { given, stops })
        }
    }

    /// What its presence map and the states say.
    #[inline(always)]
    fn masks(&self, plan: &Plan, flags: &Flags, ready: u64) -> Option<Masks> {
        match plan.kept & !ready {
            0 => Some(steady(plan, self.given)),
            _ => masks(plan, flags, self.given),
        }
    }

    /// The lanes that are NULL, and the values; `None` if something is not regular.
    #[inline(always)]
    unsafe fn read<const G: usize>(
        &self,
        plan: &Plan,
        masks: &Masks,
        window: &Window,
        vectors: &[__m512i; G],
    ) -> Option<(u64, [__m512i; G])> {
        // SAFETY: the caller has the instructions.
        unsafe {
            let nulls = irregular(plan, masks.stream, &self.stops, window)?;
            let entities = Entities::new(plan, masks.stream, self.stops.stops, window);
            let results = read::<G, false>(plan, masks, &entities, vectors)?;
            Some((nulls, results))
        }
    }
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
