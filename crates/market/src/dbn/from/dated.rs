//! The symbols of a stream of several days, in which a number may stand for another instrument each
//! day.

use crate::event::{Event, InstrumentId};
use std::collections::{HashMap, HashSet};

/// The nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// The instrument of a number from a time on, and before another one.
#[derive(Debug)]
pub(super) struct Dated {
    pub(super) number: u32,
    pub(super) instrument: InstrumentId,
    /// Nanoseconds since 1970.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// The numbers that stand for several instruments.
#[derive(Debug, Default)]
pub(super) struct ByDay {
    all: Vec<Dated>,
    /// The day of the last record.
    day: Option<u64>,
}

impl ByDay {
    /// Returns the numbers of a list that stand for several instruments.
    pub(super) fn new(mut all: Vec<Dated>) -> Self {
        let (mut first, mut several) = (HashMap::new(), HashSet::new());
        for own in &all {
            if *first.entry(own.number).or_insert(own.instrument) != own.instrument {
                several.insert(own.number);
            }
        }
        all.retain(|own| several.contains(&own.number));
        Self { all, day: None }
    }

    /// Maps the numbers to the instruments of the day of a record, if the record before was of
    /// another day. Numbers without an instrument on that day keep theirs.
    pub(super) fn apply(&mut self, time: u64, numbers: &mut HashMap<u32, InstrumentId>) {
        if self.all.is_empty() || time == Event::NO_TIME {
            return;
        }
        let day = time / DAY;
        if self.day.replace(day) == Some(day) {
            return;
        }
        for own in &self.all {
            if (own.from..own.to).contains(&time) {
                numbers.insert(own.number, own.instrument);
            }
        }
    }
}
