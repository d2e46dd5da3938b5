//! The symbols of a stream of several days, in which a number may stand for another instrument each
//! day.

use crate::event::{Event, InstrumentId};
use std::collections::{BTreeMap, HashMap, HashSet};

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

/// The times at which an instrument has a number, which do not overlap: it has one number at a
/// time. Each beginning has the end and the number.
#[derive(Debug, Default)]
pub(super) struct Times(BTreeMap<u64, (u64, u32)>);

impl Times {
    /// Returns whether the instrument has no other number in this time.
    pub(super) fn may_have(&self, number: u32, from: u64, to: u64) -> bool {
        self.within(from, to).all(|(_, other)| other == number)
    }

    /// Adds the time of a number that the instrument [may have](Self::may_have).
    pub(super) fn add(&mut self, number: u32, mut from: u64, mut to: u64) {
        if from >= to {
            return;
        }
        let begins: Vec<u64> = self.within(from, to).map(|(begin, _)| begin).collect();
        for begin in begins {
            from = from.min(begin);
            if let Some((end, _)) = self.0.remove(&begin) {
                to = to.max(end);
            }
        }
        self.0.insert(from, (to, number));
    }

    /// Returns the beginnings of the times that overlap this one, with their numbers.
    fn within(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u32)> {
        // They do not overlap each other, so that their ends ascend as well.
        let all = self.0.range(..to).rev();
        all.take_while(move |(_, (end, _))| *end > from)
            .map(|(begin, (_, number))| (*begin, *number))
    }
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
    /// another day. Numbers without an instrument on that day keep theirs. Returns the numbers that
    /// have another instrument than before.
    pub(super) fn apply(
        &mut self,
        time: u64,
        numbers: &mut HashMap<u32, InstrumentId>,
    ) -> Vec<u32> {
        let mut changed = Vec::new();
        if self.all.is_empty() || time == Event::NO_TIME {
            return changed;
        }
        let day = time / DAY;
        if self.day.replace(day) == Some(day) {
            return changed;
        }
        for own in &self.all {
            if (own.from..own.to).contains(&time)
                && numbers.insert(own.number, own.instrument) != Some(own.instrument)
            {
                changed.push(own.number);
            }
        }
        changed
    }
}
