//! The number of a feed's instruments in each state.

use fanfare_market::event::{Event, Kind};
use fanfare_market::state::code;

/// The instruments of a feed by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Instruments whose books are complete.
    pub live: u64,
    /// Instruments of which something is missing.
    pub recovering: u64,
    /// Instruments that were live when the lines fell silent.
    pub stale: u64,
    /// Instruments that are no longer traded.
    pub closed: u64,
}

impl StateCounts {
    /// Returns the number of all instruments.
    #[must_use]
    pub const fn all(&self) -> u64 {
        self.live + self.recovering + self.stale + self.closed
    }

    /// Returns the count of a state, or `None` for an invalid code.
    const fn of(&mut self, state: u64) -> Option<&mut u64> {
        match state {
            code::LIVE => Some(&mut self.live),
            code::RECOVERING => Some(&mut self.recovering),
            code::STALE => Some(&mut self.stale),
            code::CLOSED => Some(&mut self.closed),
            _ => None,
        }
    }
}

/// The state of each instrument of a feed according to its events, in one byte each.
#[derive(Debug, Default)]
pub(crate) struct States {
    /// The codes of states by number of the instrument, 0 before the first event.
    codes: Vec<u8>,
    counts: StateCounts,
}

impl States {
    pub(crate) const fn counts(&self) -> StateCounts {
        self.counts
    }

    /// Applies an event of a state. Other events have no effect. Allocates for new instruments.
    pub(crate) fn take(&mut self, event: &Event) {
        let Some(count) = self
            .counts
            .of(event.id)
            .filter(|_| event.kind == Kind::State)
        else {
            return;
        };
        *count += 1;
        let at = event.instrument.0 as usize;
        if at >= self.codes.len() {
            self.codes.resize(at + 1, 0);
        }
        let Some(place) = self.codes.get_mut(at) else {
            return;
        };
        let before = std::mem::replace(place, event.id as u8);
        if let Some(count) = self.counts.of(before.into()) {
            *count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::{InstrumentId, Kind};

    #[test]
    fn an_instrument_is_in_one_state_at_a_time() {
        let mut states = States::default();
        let event = |number, kind, id| Event {
            instrument: InstrumentId(number),
            kind,
            id,
            ..Event::EMPTY
        };
        for (number, kind, id) in [
            (3, Kind::State, code::RECOVERING),
            (0, Kind::State, code::RECOVERING),
            (3, Kind::State, code::LIVE),
            (3, Kind::Trade, code::CLOSED),
            (3, Kind::State, 77),
            (7, Kind::State, code::STALE),
            (7, Kind::State, code::STALE),
        ] {
            states.take(&event(number, kind, id));
        }
        let expected = StateCounts {
            live: 1,
            recovering: 1,
            stale: 1,
            closed: 0,
        };
        assert_eq!((states.counts(), expected.all()), (expected, 3));
    }
}
