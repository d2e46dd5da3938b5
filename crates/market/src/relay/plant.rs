//! A plant that relays a feed to an edge.

use super::restarts::Past;
use crate::event::{Event, InstrumentId};

/// A plant that relays the feed.
#[derive(Debug)]
pub(super) struct Plant {
    /// Its origin in this run.
    pub(super) origin: u64,
    /// The edge's numbers of its instruments, from 1, or 0 if not named.
    ids: Vec<u32>,
    pub(super) past: Past,
}

impl Plant {
    /// Returns a plant that has named no instrument.
    pub(super) const fn new(origin: u64, past: Past) -> Self {
        Self {
            origin,
            ids: Vec::new(),
            past,
        }
    }

    /// Records the edge's number of the instrument in this place.
    pub(super) fn name(&mut self, place: usize, id: InstrumentId) {
        if place >= self.ids.len() {
            self.ids.resize(place + 1, 0);
        }
        self.ids[place] = id.0 + 1;
    }

    /// Returns an event with the edge's number of its instrument, or `None` if the plant did not
    /// name that.
    #[inline]
    pub(super) fn translate(&self, event: &Event) -> Option<Event> {
        let instrument = match event.instrument {
            InstrumentId::ALL => InstrumentId::ALL,
            InstrumentId(number) => {
                let id = self.ids.get(number as usize)?;
                InstrumentId(id.checked_sub(1)?)
            }
        };
        Some(Event {
            instrument,
            ..*event
        })
    }
}
