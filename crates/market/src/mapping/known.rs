//! A cache of instruments by their numbers, because most entries belong to a known one.

use crate::event::InstrumentId;
use crate::instruments::{IdSource, Instruments, SecurityId};

/// The number of instruments in the cache.
const KNOWN: usize = 1024;

/// The instruments that were found last, by number ([`place`]). An ID in the table never changes.
#[derive(Debug)]
pub(super) struct Known(Box<[Entry; KNOWN]>);

/// An instrument with its number at its source.
#[derive(Debug, Clone, Copy)]
struct Entry {
    number: u64,
    source: IdSource,
    instrument: InstrumentId,
}

impl Entry {
    /// The value for an unused entry.
    const NONE: Self = Self {
        number: 0,
        source: IdSource::NONE,
        instrument: InstrumentId::ALL,
    };
}

/// Returns the cache index of an instrument's number: the highest bits of a product, because
/// numbers of one exchange often share their lowest bits.
#[inline(always)]
const fn place(number: u64) -> usize {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % KNOWN
}

impl Known {
    pub(super) fn new() -> Self {
        Self(Box::new([Entry::NONE; KNOWN]))
    }

    #[inline(always)]
    pub(super) fn find(&self, number: u64, source: IdSource) -> Option<InstrumentId> {
        let known = &self.0[place(number)];
        let is_it = known.number == number && known.source == source;
        (is_it && known.instrument != InstrumentId::ALL).then_some(known.instrument)
    }

    /// Caches an instrument that was found by its ID.
    pub(super) fn keep(
        &mut self,
        table: &Instruments,
        (number, source): (u64, IdSource),
        instrument: InstrumentId,
    ) {
        if table.by_id(SecurityId::Number(number), source) == Some(instrument) {
            self.0[place(number)] = Entry {
                number,
                source,
                instrument,
            };
        }
    }
}
