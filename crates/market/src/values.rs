//! The values that feeds last brought besides the books, to show them to readers that lost them,
//! and to recognise those that are shown again.

use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::last::LastValues;

/// The last status of an instrument, its last trade, and the last value of each statistic.
#[derive(Debug, Default)]
struct Said {
    status: Option<Event>,
    last: LastValues,
}

/// The last trade, status and statistics of each instrument, by number, and the last status of each
/// feed's trading session. Allocates for the first ones.
#[derive(Debug, Default)]
pub struct Values {
    all: Vec<Option<Box<Said>>>,
    /// By [`Event::source`].
    sessions: Vec<Event>,
}

impl Values {
    /// Keeps the value in an event, if it has one. Returns whether the event only shows the last
    /// value again, to readers that lost it: it has [`Flags::SNAPSHOT`] and
    /// [repeats](Event::repeats) the value.
    #[inline]
    pub fn take(&mut self, event: &Event) -> bool {
        let is_value = matches!(event.kind, Kind::Trade | Kind::Statistic | Kind::Status);
        is_value && self.keep(event)
    }

    fn keep(&mut self, event: &Event) -> bool {
        let is_again = |known: Option<&Event>| {
            event.flags.has(Flags::SNAPSHOT) && known.is_some_and(|known| known.repeats(event))
        };
        if event.instrument == InstrumentId::ALL {
            let mut sessions = self.sessions.iter_mut();
            let known = sessions.find(|own| own.source == event.source);
            let is_again = is_again(known.as_deref());
            match known {
                Some(own) => *own = *event,
                None => self.sessions.push(*event),
            }
            return is_again;
        }
        let place = event.instrument.0 as usize;
        if place >= self.all.len() {
            self.all.resize_with(place + 1, || None);
        }
        let Some(said) = self.all.get_mut(place) else {
            return false;
        };
        let said = said.get_or_insert_default();
        if event.kind == Kind::Status {
            let is_again = is_again(said.status.as_ref());
            said.status = Some(*event);
            return is_again;
        }
        let is_again = is_again(said.last.iter().find(|own| own.entry == event.entry));
        said.last.take(event);
        is_again
    }

    /// Adds the values of an instrument to the events from `start` on, which show its book and its
    /// state: before the state, with [`Flags::SNAPSHOT`].
    pub fn show(
        &self,
        instrument: InstrumentId,
        ts_recv: u64,
        events: &mut Vec<Event>,
        start: usize,
    ) {
        let said = self.all.get(instrument.0 as usize);
        let Some(said) = said.and_then(Option::as_ref) else {
            return;
        };
        let shown = events.len() > start;
        let state = events.pop_if(|event| shown && event.kind == Kind::State);
        let book = events.get(start..).and_then(<[Event]>::last);
        let rpt_seq = book.map_or(0, |event| event.rpt_seq);
        events.extend(said.last.iter().chain(&said.status).map(|event| Event {
            flags: Flags::SNAPSHOT,
            rpt_seq,
            ts_recv,
            ..*event
        }));
        events.extend(state);
        if let Some(last) = events.last_mut() {
            last.flags = last.flags.with(Flags::LAST);
        }
    }

    /// Returns the last status of the trading session of a feed, by [`Event::source`].
    pub fn session(&self, source: u16) -> Option<&Event> {
        let mut sessions = self.sessions.iter();
        sessions.find(|session| session.source == source)
    }

    /// Returns events that show the statuses of the trading sessions.
    pub fn sessions(&self, ts_recv: u64) -> impl Iterator<Item = Event> + '_ {
        self.sessions.iter().map(move |session| Event {
            flags: Flags::SNAPSHOT.with(Flags::LAST),
            ts_recv,
            ..*session
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BookConfig, View, state};
    use fanfare_feed::recovery::State;

    fn event(kind: Kind, entry: u8, size: i64) -> Event {
        Event {
            kind,
            entry,
            size,
            instrument: InstrumentId(2),
            source: 1,
            flags: Flags::LAST,
            ..Event::EMPTY
        }
    }

    #[test]
    fn a_reader_that_lost_values_is_shown_the_last_ones() {
        let (mut values, mut view) = (
            Values::default(),
            View::<()>::new(vec![BookConfig::by_price(4).unwrap()]),
        );
        let halt = Event {
            id: 2,
            ..event(Kind::Status, 0, 0)
        };
        let lost = [
            event(Kind::Trade, b'2', 7),
            event(Kind::Statistic, b'4', 8),
            event(Kind::Trade, b'2', 9),
            halt,
        ];
        assert!(lost.iter().all(|event| !values.take(event)));
        view.apply(&event(Kind::Status, 0, 0));
        view.lose_all();
        assert_eq!(view.get(InstrumentId(2)).unwrap().status, None);
        let live = Event {
            instrument: InstrumentId(2),
            flags: Flags::LAST,
            ..state::to_event(State::Live)
        };
        let clear = Event {
            kind: Kind::Clear,
            rpt_seq: 5,
            ..event(Kind::Clear, 0, 0)
        };
        let mut events = vec![event(Kind::Trade, b'2', 1), clear, live];
        values.show(InstrumentId(2), 3, &mut events, 1);
        assert_eq!(events.len(), 6);
        assert_eq!(events.last(), Some(&live));
        assert!(
            events[2..5]
                .iter()
                .all(|event| event.flags == Flags::SNAPSHOT)
        );
        assert!(events[2..5].iter().all(|event| values.take(event)));
        events[1..].iter().for_each(|event| view.apply(event));
        let seen = view.get(InstrumentId(2)).unwrap();
        assert_eq!(
            seen.status.map(|status| (status.id, status.ts_recv)),
            Some((2, 3))
        );
        let sizes: Vec<_> = seen
            .last
            .iter()
            .map(|event| (event.size, event.rpt_seq))
            .collect();
        assert_eq!(sizes, [(9, 5), (8, 5)]);
        // An instrument of which nothing is known is left as it is, one without a book ends.
        let before = events.clone();
        values.show(InstrumentId(1), 3, &mut events, before.len());
        assert_eq!(events, before);
        events.clear();
        values.show(InstrumentId(2), 3, &mut events, 0);
        let ends: Vec<_> = events
            .iter()
            .map(|event| event.flags.has(Flags::LAST))
            .collect();
        assert_eq!(ends, [false, false, true]);
    }

    #[test]
    fn the_status_of_a_trading_session_is_shown_again_and_known() {
        let mut values = Values::default();
        assert_eq!(values.sessions(3).count(), 0);
        let status = |id, source| Event {
            instrument: InstrumentId::ALL,
            id,
            source,
            ..event(Kind::Status, 0, 0)
        };
        for status in [status(1, 1), status(2, 1), status(1, 2)] {
            assert!(!values.take(&status));
        }
        let shown: Vec<Event> = values.sessions(3).collect();
        assert!(shown[0].repeats(&status(2, 1)) && shown[1].repeats(&status(1, 2)));
        assert!(shown.iter().all(|event| values.take(event)));
        let other = Event { id: 9, ..shown[0] };
        assert!(!values.take(&other), "the reader lost this one");
        assert!(!values.take(&status(9, 1)), "a feed repeats it");
    }
}
