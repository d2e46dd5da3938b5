//! The encoding of states of instruments in events.

use crate::event::{Event, Flags, InstrumentId, Kind};
use fanfare_feed::recovery::{Lack, State};

/// The codes of states in the `id` of a [`Kind::State`] event.
pub mod code {
    /// The book is complete, as of the last change applied.
    pub const LIVE: u64 = 1;
    /// The book is incomplete, and `level` is what it lacks.
    pub const RECOVERING: u64 = 2;
    /// The book was complete when all lines fell silent.
    pub const STALE: u64 = 3;
    /// The instrument is no longer traded.
    pub const CLOSED: u64 = 4;
}

/// The codes of what a recovering instrument lacks, in the `level` of a [`Kind::State`] event.
pub mod lack {
    /// A first snapshot.
    pub const SNAPSHOT: u16 = 1;
    /// A snapshot, because the book had a fault.
    pub const SNAPSHOT_AFTER_FAULT: u16 = 2;
    /// Changes, of which `rpt_seq` is the first, and `size` the number.
    pub const CHANGES: u16 = 3;
    /// Certainty that nothing was lost in the messages of the channel before number `size` (its low
    /// 32 bits are MsgSeqNum(34)). It is [`Event::NO_SIZE`](crate::Event::NO_SIZE) before anything
    /// of the channel was received.
    pub const CERTAINTY: u16 = 4;
}

/// Returns the fields of an event for the state of its instrument. Allocates nothing.
pub fn to_event(state: State) -> Event {
    let mut event = Event {
        kind: Kind::State,
        ..Event::EMPTY
    };
    let lack = match state {
        State::Live => {
            event.id = code::LIVE;
            return event;
        }
        State::Stale => {
            event.id = code::STALE;
            return event;
        }
        State::Closed => {
            event.id = code::CLOSED;
            return event;
        }
        State::Recovering(lack) => lack,
    };
    event.id = code::RECOVERING;
    match lack {
        Lack::Snapshot => event.level = lack::SNAPSHOT,
        Lack::SnapshotAfterFault => event.level = lack::SNAPSHOT_AFTER_FAULT,
        Lack::Changes(from, to) => {
            event.level = lack::CHANGES;
            event.rpt_seq = u32::try_from(from).unwrap_or(u32::MAX);
            event.size = i64::try_from(to - from + 1).unwrap_or(Event::NO_SIZE);
        }
        Lack::Certainty(end) => {
            event.level = lack::CERTAINTY;
            event.size = i64::try_from(end).unwrap_or(Event::NO_SIZE);
        }
    }
    event
}

/// Returns the events that clear the book of an instrument and state that it is unknown. Allocates
/// nothing.
pub fn forget_book(instrument: InstrumentId, source: u16, ts_recv: u64) -> [Event; 2] {
    let clear = Event {
        kind: Kind::Clear,
        ..Event::EMPTY
    };
    [clear, to_event(State::Recovering(Lack::Snapshot))].map(|event| Event {
        instrument,
        source,
        ts_recv,
        flags: Flags::LAST,
        ..event
    })
}

/// Returns whether an event closes its instrument, as the events of a mapping and of a relay do.
pub(crate) const fn closes(event: &Event) -> bool {
    matches!(event.kind, Kind::State) && event.id == code::CLOSED
}

/// Returns whether an instrument in this state has a complete book, as of the last change.
pub const fn has_book(state: State) -> bool {
    matches!(state, State::Live | State::Stale)
}

/// Returns whether an instrument in this state has the book that its next changes apply to. It
/// becomes live again without a snapshot, so a reader that has lost the book needs it before.
pub(crate) const fn keeps_book(state: State) -> bool {
    !matches!(
        state,
        State::Recovering(Lack::Snapshot | Lack::SnapshotAfterFault)
    )
}

/// Returns the state in an event, or `None` if it is of another kind or has an unknown code.
pub fn of_event(event: &Event) -> Option<State> {
    if event.kind != Kind::State {
        return None;
    }
    let lack = match (event.id, event.level) {
        (code::LIVE, _) => return Some(State::Live),
        (code::STALE, _) => return Some(State::Stale),
        (code::CLOSED, _) => return Some(State::Closed),
        (code::RECOVERING, lack::SNAPSHOT) => Lack::Snapshot,
        (code::RECOVERING, lack::SNAPSHOT_AFTER_FAULT) => Lack::SnapshotAfterFault,
        (code::RECOVERING, lack::CHANGES) => {
            let from = u64::from(event.rpt_seq);
            let count = u64::try_from(event.size).ok()?;
            Lack::Changes(from, (from + count).checked_sub(1)?)
        }
        (code::RECOVERING, lack::CERTAINTY) => match event.size {
            Event::NO_SIZE => Lack::Certainty(u64::MAX),
            size => Lack::Certainty(size.try_into().ok()?),
        },
        _ => return None,
    };
    Some(State::Recovering(lack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_what_their_events_say() {
        let lacks = [
            Lack::Snapshot,
            Lack::SnapshotAfterFault,
            Lack::Changes(5, 5),
            Lack::Changes(1, 226_147),
            Lack::Certainty(482_727),
            Lack::Certainty(u64::MAX),
        ];
        let states = [State::Live, State::Stale, State::Closed];
        for state in states.into_iter().chain(lacks.map(State::Recovering)) {
            assert_eq!(of_event(&to_event(state)), Some(state));
        }
        assert_eq!(of_event(&Event::EMPTY), None);
        let strange = Event {
            id: 99,
            ..to_event(State::Live)
        };
        assert_eq!(of_event(&strange), None);
    }
}
