//! Snapshots of plants that come in front of the steps that show of which numbers they are.

use super::types::Relayed;
use crate::event::Event;
use crate::instruments::Instrument;
use std::collections::BTreeMap;

/// The most snapshots that wait. Further ones are left out, and come again in rotation.
const MOST: usize = 1 << 14;

/// The most events of all of them.
const MOST_EVENTS: usize = 1 << 17;

/// Snapshots of later numbers than those of the last steps of their plants, or of plants without
/// steps so far. Snapshots and steps are of two topics, between which there is no order.
#[derive(Debug, Default)]
pub(super) struct Early {
    /// The last snapshot of each, by the plant's origin and its number of the instrument.
    all: BTreeMap<(u64, u32), Kept>,
    /// The number of their events.
    events: usize,
}

/// A snapshot that waits.
#[derive(Debug)]
pub(super) struct Kept {
    instrument: Box<[u8]>,
    is_closed: bool,
    last: Option<u32>,
    received: u64,
    events: Box<[Event]>,
}

impl Kept {
    pub(super) fn relayed(&self) -> Relayed<'_> {
        Relayed {
            instrument: &self.instrument,
            is_closed: self.is_closed,
            last: self.last,
            received: self.received,
            events: &self.events,
        }
    }
}

impl Early {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Keeps a snapshot of a plant, in place of an earlier one of the instrument.
    #[cold]
    pub(super) fn keep(&mut self, origin: u64, snapshot: &Relayed<'_>) {
        let Some(instrument) = Instrument::read(snapshot.instrument) else {
            return;
        };
        let key = (origin, instrument.instrument.0);
        self.remove(key);
        let events = self.events + snapshot.events.len();
        if self.all.len() < MOST && events <= MOST_EVENTS {
            self.events = events;
            let kept = Kept {
                instrument: snapshot.instrument.into(),
                is_closed: snapshot.is_closed,
                last: snapshot.last,
                received: snapshot.received,
                events: snapshot.events.into(),
            };
            self.all.insert(key, kept);
        }
    }

    fn remove(&mut self, key: (u64, u32)) -> Option<Kept> {
        let kept = self.all.remove(&key)?;
        self.events -= kept.events.len();
        Some(kept)
    }

    /// Removes and returns those snapshots of a plant that are due.
    #[cold]
    pub(super) fn take(&mut self, origin: u64, is_due: impl Fn(&Relayed<'_>) -> bool) -> Vec<Kept> {
        let of_plant = self.all.range((origin, 0)..=(origin, u32::MAX));
        let due = of_plant.filter(|(_, kept)| is_due(&kept.relayed()));
        let due: Vec<_> = due.map(|(key, _)| *key).collect();
        due.into_iter().filter_map(|key| self.remove(key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::InstrumentId;
    use crate::instruments::{Definition, Name};

    fn keep(early: &mut Early, origin: u64, instrument: u32, events: usize) {
        let mut bytes = Vec::new();
        Instrument {
            instrument: InstrumentId(instrument),
            definition: Definition::named(Name::of_symbol(b"A")),
            revision: 1,
            status: 0,
        }
        .write(&mut bytes);
        let snapshot = Relayed {
            instrument: &bytes,
            is_closed: false,
            last: Some(instrument),
            received: 0,
            events: &vec![Event::EMPTY; events],
        };
        early.keep(origin, &snapshot);
    }

    fn sizes(kept: &[Kept]) -> Vec<usize> {
        kept.iter().map(|kept| kept.events.len()).collect()
    }

    #[test]
    fn the_last_snapshot_of_a_plant_and_an_instrument_waits() {
        let mut early = Early::default();
        for (origin, instrument, events) in [(1, 7, 2), (2, 7, 3), (1, 7, 4), (1, 8, 5)] {
            keep(&mut early, origin, instrument, events);
        }
        assert!(early.take(1, |_| false).is_empty());
        assert_eq!(sizes(&early.take(1, |kept| kept.last == Some(8))), [5]);
        assert_eq!(sizes(&early.take(1, |_| true)), [4]);
        assert_eq!((early.events, early.is_empty()), (3, false));
        assert_eq!(sizes(&early.take(2, |_| true)), [3]);
        assert_eq!((early.events, early.is_empty()), (0, true));
    }

    #[test]
    fn no_more_wait_than_there_is_room_for() {
        let mut early = Early::default();
        for instrument in 0..MOST as u32 + 1_000 {
            keep(&mut early, 1, instrument, 1);
        }
        assert_eq!(early.take(1, |_| true).len(), MOST);
        for instrument in 0..3 {
            keep(&mut early, 1, instrument, MOST_EVENTS / 2);
        }
        assert_eq!((early.take(1, |_| true).len(), early.events), (2, 0));
    }
}
