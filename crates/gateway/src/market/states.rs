//! How many instruments of a feed are in which state.

use fanfare_feed::recovery::State;
use fanfare_market::event::Event;
use fanfare_market::state;

/// Instruments of a feed by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Their books are whole.
    pub live: u64,
    /// Something of them is missing.
    pub recovering: u64,
    /// They were live when the lines fell silent.
    pub stale: u64,
    /// They are not traded any more.
    pub closed: u64,
}

impl StateCounts {
    /// All of them.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.live + self.recovering + self.stale + self.closed
    }

    const fn of(&mut self, state: State) -> &mut u64 {
        match state {
            State::Live => &mut self.live,
            State::Recovering(_) => &mut self.recovering,
            State::Stale => &mut self.stale,
            State::Closed => &mut self.closed,
        }
    }
}

/// The state of each instrument of a feed, as its events say.
#[derive(Debug, Default)]
pub(crate) struct States {
    by_number: Vec<Option<State>>,
    counts: StateCounts,
}

impl States {
    pub(crate) const fn counts(&self) -> StateCounts {
        self.counts
    }

    /// Takes an event; one of another kind changes nothing. Allocates for new instruments.
    pub(crate) fn take(&mut self, event: &Event) {
        let Some(state) = state::of_event(event) else {
            return;
        };
        let at = event.instrument.0 as usize;
        if at >= self.by_number.len() {
            self.by_number.resize(at + 1, None);
        }
        if let Some(place) = self.by_number.get_mut(at) {
            if let Some(before) = place.replace(state) {
                *self.counts.of(before) -= 1;
            }
            *self.counts.of(state) += 1;
        }
    }
}
