//! Segments in lanes. What a kernel does not do is done by the scalar executor, op by op.

use fanfare_wire::lanes::{LaneKernel, MAX_LANES, Row, Shapes};

use super::{Limits, Options};
use crate::error::CodecError;
use crate::program::Program;
use crate::program::lanes::Flat;

/// How often at most a segment is not tried after it was not regular.
const LONGEST_PAUSE: u8 = 63;

/// How many entries are decoded before a visitor is told of them.
pub(super) const BATCH: usize = 8;

/// What a decoder keeps for its segments.
#[derive(Debug, Clone, Default)]
pub(super) struct LaneState {
    /// What decodes flat templates, if anything does and no limit is in its way.
    pub(super) flat_kernel: Option<LaneKernel>,
    /// The values of the segment decoded last.
    pub(super) row: Row,
    /// Those of entries that are still to be told of.
    pub(super) batch: [Row; BATCH],
    /// What is known of the presence maps of entries.
    pub(super) shapes: Shapes,
    /// Where an attempt in lanes leaves its error.
    pub(super) failure: Option<CodecError>,
    /// For each segment at the head of a flat template, how many entries there may be behind it
    /// without coming near a limit; and the least of them.
    most_entries: Vec<u32>,
    least_most: u32,
    /// For each segment, how often it is not tried; and how often it was not, the last time.
    pauses: Vec<(u8, u8)>,
    /// How many segments were not regular the last time they were tried.
    irregular: usize,
}

impl LaneState {
    pub(super) fn new(program: &Program, options: &Options) -> Self {
        let limits = &options.limits;
        let fits = |flat: &Flat| {
            let most_texts = program.segment(flat.head).most_texts;
            flat.fields <= limits.fields && most_texts <= limits.texts
        };
        let kernel = options.lane_kernel();
        let kernel =
            kernel.filter(|_| !program.flats().is_empty() && program.flats().iter().all(fits));
        let has_entries = program.flats().iter().any(|flat| flat.entry.is_some());
        let most_entries = most_entries(program, limits);
        let flats = program.flats().iter().filter(|flat| flat.entry.is_some());
        let most = flats.map(|flat| most_entries[flat.head as usize]);
        Self {
            least_most: most.min().unwrap_or_default(),
            flat_kernel: kernel,
            shapes: kernel
                .filter(|_| has_entries)
                .map(LaneKernel::shapes)
                .unwrap_or_default(),
            most_entries,
            pauses: vec![(0, 0); program.segments()],
            ..Self::default()
        }
    }

    /// Whether there may be so many entries behind this segment without coming near a limit.
    #[inline(always)]
    pub(super) fn may_have(&self, segment: u32, entries: u32) -> bool {
        entries <= self.least_most || self.may_have_many(segment, entries)
    }

    #[cold]
    fn may_have_many(&self, segment: u32, entries: u32) -> bool {
        let most = self.most_entries.get(segment as usize);
        most.is_some_and(|most| entries <= *most)
    }

    /// Whether all segments were regular the last time they were tried.
    #[inline(always)]
    pub(super) const fn is_regular(&self) -> bool {
        self.irregular == 0
    }

    /// Whether to try a segment.
    #[inline(always)]
    pub(super) fn tries(&mut self, segment: u32) -> bool {
        self.irregular == 0 || !self.pauses(segment)
    }

    /// Whether a segment that was not regular before is left out once more.
    #[cold]
    fn pauses(&mut self, segment: u32) -> bool {
        match self.pauses.get_mut(segment as usize) {
            Some((0, _)) | None => false,
            Some((left, _)) => {
                *left -= 1;
                true
            }
        }
    }

    /// It was not regular: the pause doubles.
    #[cold]
    pub(super) fn failed(&mut self, segment: u32) {
        if let Some((left, last)) = self.pauses.get_mut(segment as usize) {
            self.irregular += usize::from(*last == 0);
            *last = (2 * *last + 1).min(LONGEST_PAUSE);
            *left = *last;
        }
    }

    #[inline(always)]
    pub(super) fn succeeded(&mut self, segment: u32) {
        if self.irregular != 0 {
            self.is_regular_again(segment);
        }
    }

    #[cold]
    fn is_regular_again(&mut self, segment: u32) {
        if let Some((_, last)) = self.pauses.get_mut(segment as usize)
            && *last != 0
        {
            *last = 0;
            self.irregular -= 1;
        }
    }
}

fn most_entries(program: &Program, limits: &Limits) -> Vec<u32> {
    let mut most = vec![0; program.segments()];
    for flat in program.flats() {
        let (Some(entry), head) = (&flat.entry, program.segment(flat.head)) else {
            continue;
        };
        let fields = limits.fields.saturating_sub(flat.fields);
        let texts = limits.texts.saturating_sub(head.most_texts);
        let by_fields = fields.checked_div(entry.fields).unwrap_or(u32::MAX);
        let by_texts = texts.checked_div(program.segment(entry.segment).most_texts);
        let by_texts = by_texts.map_or(u32::MAX, |most| most.try_into().unwrap_or(u32::MAX));
        most[flat.head as usize] = limits.entries.min(by_fields).min(by_texts);
    }
    most
}

/// The first eight bytes, zeros behind the end.
#[inline(always)]
pub(super) fn front_word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(word) => u64::from_le_bytes(*word),
        None => short_word(bytes),
    }
}

#[cold]
#[inline(never)]
fn short_word(bytes: &[u8]) -> u64 {
    let each = bytes.iter().take(8).rev();
    each.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// How many bits of the first eight bytes are the presence map, stop bits included, if it is one
/// for a kernel.
#[inline(always)]
pub(super) fn map_bits(word: u64) -> Option<u32> {
    let ends = word & 0x8080_8080_8080_8080;
    let bits = ends.trailing_zeros() + 1;
    // R7, or a habit that is rare enough.
    let is_overlong = (bits > 8) & ((word >> ((bits - 8) & 63)) as u8 == 0x80);
    ((ends != 0) & !is_overlong).then_some(bits)
}

/// The length of a sequence, which is in this lane; `None` if it is absent.
#[inline(always)]
pub(super) fn length(row: &Row, lane: u8) -> Option<u32> {
    let lane = usize::from(lane) % MAX_LANES;
    let present = row.present >> lane & 1 != 0;
    present.then_some(row.values[lane] as u32)
}
