//! Segments in lanes. The scalar executor does, op by op, what a kernel does not do.

use fanfare_wire::lanes::{LaneKernel, MAX_LANES, Row, Shapes};

use super::{Limits, Options};
use crate::error::Failure;
use crate::program::Program;
use crate::program::lanes::Flat;

/// The number of entries that are decoded before a visitor receives them.
pub(super) const BATCH: usize = 8;

/// The number of messages that are counted before a codec may leave lanes for good. It is larger
/// than a few packets of irregular messages.
const COUNTED: u64 = 1 << 12;

/// The state that a decoder keeps for its segments.
#[derive(Debug, Clone, Default)]
pub(super) struct LaneState {
    /// The kernel that decodes flat templates, if there is one and no limit prevents it.
    pub(super) kernel: Option<LaneKernel>,
    /// The values of the segment decoded last.
    pub(super) row: Row,
    /// The rows of entries that a visitor has not received yet.
    pub(super) batch: [Row; BATCH],
    /// The shapes of the presence maps of entries.
    pub(super) shapes: Shapes,
    /// The error of the last message that had one.
    pub(super) failure: Failure,
    /// The most entries that a message may have without coming near a limit.
    pub(super) most_entries: u32,
    pub(super) tally: Tally,
}

/// The messages that were tried in lanes since the count started.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) tried: u64,
    /// The number of messages that were not done in lanes.
    pub(crate) irregular: u64,
}

impl Tally {
    /// Returns true if enough messages are counted, and lanes did not do most of them. The count
    /// starts again whenever enough are counted.
    #[inline]
    pub(crate) fn is_in_vain(&mut self) -> bool {
        if self.tried < COUNTED {
            return false;
        }
        let Self { tried, irregular } = std::mem::take(self);
        2 * irregular > tried
    }
}

impl LaneState {
    pub(super) fn new(program: &Program, options: &Options) -> Self {
        let kernel = lane_kernel(program, options);
        let most = most_entries(program, &options.limits);
        let shapes = kernel.filter(|_| most.is_some()).map(LaneKernel::shapes);
        Self {
            kernel,
            shapes: shapes.unwrap_or_default(),
            most_entries: most.unwrap_or_default(),
            ..Self::default()
        }
    }
}

/// Returns the kernel for flat templates, if there are any and no limit prevents it.
pub(crate) fn lane_kernel(program: &Program, options: &Options) -> Option<LaneKernel> {
    let (flats, limits) = (program.flats(), &options.limits);
    let fits =
        |flat: &Flat| flat.fields <= limits.fields && flat.segment.most_texts <= limits.texts;
    let kernel = options.lane_kernel();
    kernel.filter(|_| !flats.is_empty() && flats.iter().all(fits))
}

/// Returns the most entries that any message may have without coming near a limit, or `None` if no
/// message has entries.
pub(crate) fn most_entries(program: &Program, limits: &Limits) -> Option<u32> {
    let flats = program.flats().iter();
    flats.filter_map(|flat| most_entries_of(flat, limits)).min()
}

/// Returns the most entries that a message of a template may have, or `None` if it has none.
fn most_entries_of(flat: &Flat, limits: &Limits) -> Option<u32> {
    let entry = flat.entry.as_ref()?;
    let fields = limits.fields.saturating_sub(flat.fields);
    let texts = limits.texts.saturating_sub(flat.segment.most_texts);
    let by_fields = fields.checked_div(entry.fields).unwrap_or(u32::MAX);
    let by_texts = texts.checked_div(entry.at_hand.most_texts);
    let by_texts = by_texts.map_or(u32::MAX, |most| most.try_into().unwrap_or(u32::MAX));
    Some(limits.entries.min(by_fields).min(by_texts))
}

/// Returns the first eight bytes, with zeros after the end.
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

/// Returns the length of a sequence from this lane, or `None` if the sequence is absent.
#[inline(always)]
pub(super) fn length(row: &Row, lane: u8) -> Option<u32> {
    let lane = usize::from(lane) % MAX_LANES;
    let present = row.present >> lane & 1 != 0;
    present.then_some(row.values[lane] as u32)
}
