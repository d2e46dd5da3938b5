//! What a feed last said of its instruments besides their books, for readers that lost it.

use fanfare_market::{Event, Flags, InstrumentId, Kind, LastValues};

/// The last status of an instrument, its last trade, and the last value of each statistic.
#[derive(Default)]
struct Said {
    status: Option<Event>,
    last: LastValues,
}

/// The values of all instruments, by the feed's own numbers. Allocates for new ones.
#[derive(Default)]
pub(super) struct Values(Vec<Option<Box<Said>>>);

impl Values {
    /// Keeps the value in an event, if it has one.
    #[inline]
    pub(super) fn see(&mut self, event: &Event) {
        let is_value = matches!(event.kind, Kind::Trade | Kind::Statistic | Kind::Status);
        if is_value && event.instrument != InstrumentId::ALL {
            self.keep(event);
        }
    }

    fn keep(&mut self, event: &Event) {
        let place = event.instrument.0 as usize;
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        let Some(said) = self.0.get_mut(place) else {
            return;
        };
        let said = said.get_or_insert_default();
        match event.kind {
            Kind::Status => said.status = Some(*event),
            _ => said.last.take(event),
        }
    }

    /// Adds the values of an instrument to the events from `start` on, which show its book and its
    /// state: before the state, as parts of the snapshot.
    pub(super) fn show(
        &self,
        instrument: InstrumentId,
        ts_recv: u64,
        events: &mut Vec<Event>,
        start: usize,
    ) {
        let said = self.0.get(instrument.0 as usize);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_feed::recovery::State;
    use fanfare_market::{BookConfig, View, state};

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
        lost.iter().for_each(|event| values.see(event));
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
}
