//! The market as built by a reader of events: the book, the state and the last values of each
//! instrument.

use crate::book::BookConfig;
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::{Book, LastValues, snapshot, state};
use fanfare_feed::recovery::{Lack, State};

/// The state of a book that is not known.
const UNKNOWN: State = State::Recovering(Lack::Snapshot);

/// The state of an instrument, with a value of the reader.
#[derive(Debug)]
pub struct Seen<T = ()> {
    /// The book, or `None` until the first level or order.
    pub book: Option<Book>,
    /// The state, which shows whether the book is reliable.
    pub state: State,
    /// The state in the last event. A book that was lost does not have it until it is shown.
    told: State,
    /// Whether events were lost, and it has not been shown since.
    is_lost: bool,
    /// The last event of the trading status.
    pub status: Option<Event>,
    /// The last trade, and the last value of each statistic.
    pub last: LastValues,
    /// The reader's own value.
    pub own: T,
}

impl<T: Default> Default for Seen<T> {
    fn default() -> Self {
        Self {
            book: None,
            state: UNKNOWN,
            told: UNKNOWN,
            is_lost: false,
            status: None,
            last: LastValues::default(),
            own: T::default(),
        }
    }
}

impl<T> Seen<T> {
    /// Returns whether snapshots of the book may be shown. An instrument that is stale or closed
    /// keeps its last book.
    pub const fn has_snapshot(&self) -> bool {
        !self.is_lost && !matches!(self.state, State::Recovering(_))
    }

    /// Records that events were lost, so that the book, the values and the status are unknown until
    /// they are shown again.
    pub fn lose(&mut self) {
        (self.state, self.told) = (UNKNOWN, UNKNOWN);
        self.is_lost = true;
        self.book = None;
        self.status = None;
        self.last.clear();
    }

    /// Returns whether events were lost, and it has not been shown since, or its book is of a feed
    /// that the view does not have.
    pub const fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Calls `send` with events that bring a reader to this state: the book, if the state allows
    /// showing it, the last values, the trading status, and the state as the last event. Values and
    /// status keep their numbers and times, and the others have none. Allocates nothing.
    pub fn show(&self, instrument: InstrumentId, source: u16, send: &mut impl FnMut(&Event)) {
        let base = Event {
            instrument,
            source,
            flags: Flags::SNAPSHOT,
            ..Event::EMPTY
        };
        if let Some(book) = &self.book {
            let rpt_seq = book.rpt_seq();
            send(&Event { rpt_seq, ..base });
            snapshot::entries(book, instrument, &mut |event| {
                send(&Event {
                    rpt_seq,
                    source,
                    ..*event
                });
            });
        }
        for event in self.last.iter().chain(&self.status) {
            send(&Event {
                flags: event.flags.without(Flags::LAST),
                ..*event
            });
        }
        send(&Event {
            instrument,
            source,
            flags: Flags::LAST,
            ..state::to_event(self.state)
        });
    }
}

/// All instruments, by the plant's numbers.
#[derive(Debug)]
pub struct View<T = ()> {
    /// The books of each feed.
    books: Vec<BookConfig>,
    seen: Vec<Option<Box<Seen<T>>>>,
    /// Whether events were lost, so that the books of other instruments may have begun in them.
    is_lost: bool,
}

impl<T: Default> View<T> {
    /// Creates a view of feeds whose books are of these kinds, in the order of [`Event::source`],
    /// from 1. The book of an instrument of another source is not known: once it has a level or an
    /// order, the instrument is [lost](Seen::is_lost).
    pub const fn new(books: Vec<BookConfig>) -> Self {
        Self {
            books,
            seen: Vec::new(),
            is_lost: false,
        }
    }

    /// Returns the books of the feeds.
    pub fn configs(&self) -> &[BookConfig] {
        &self.books
    }

    /// Returns the state of an instrument, if it has any.
    pub fn get(&self, instrument: InstrumentId) -> Option<&Seen<T>> {
        self.seen.get(instrument.0 as usize)?.as_deref()
    }

    /// Returns a mutable reference to the state of an instrument, if it has any.
    pub fn get_mut(&mut self, instrument: InstrumentId) -> Option<&mut Seen<T>> {
        self.seen.get_mut(instrument.0 as usize)?.as_deref_mut()
    }

    /// Returns the state of an instrument, which is created if absent. Allocates for a new one. If
    /// events were lost, it is lost, too.
    pub fn open(&mut self, instrument: InstrumentId) -> &mut Seen<T> {
        open(&mut self.seen, instrument, self.is_lost)
    }

    /// Returns the numbers of all instruments with a state.
    pub fn numbers(&self) -> impl Iterator<Item = InstrumentId> + use<'_, T> {
        let all = (0..).zip(&self.seen);
        all.filter_map(|(number, seen)| seen.as_ref().map(|_| InstrumentId(number)))
    }

    /// Applies an event of one instrument. Allocates for an instrument's first event, book and
    /// values.
    pub fn apply(&mut self, event: &Event) {
        let seen = open(&mut self.seen, event.instrument, self.is_lost);
        match event.kind {
            // Without its beginning, the book would be a part of the real one.
            Kind::Level | Kind::Order if seen.is_lost => {}
            Kind::Level | Kind::Order => {
                let book = match &mut seen.book {
                    Some(book) => book,
                    None => {
                        let source = usize::from(event.source).wrapping_sub(1);
                        let Some(config) = self.books.get(source) else {
                            // Without a book, a live instrument would have an empty one.
                            (seen.is_lost, seen.state) = (true, UNKNOWN);
                            return;
                        };
                        seen.book.insert(Book::new(config))
                    }
                };
                // The feed's own book applied it, and a fault found after it is in the state.
                let _ = book.apply(event);
            }
            Kind::Clear => {
                seen.is_lost = false;
                seen.state = seen.told;
                if let Some(book) = &mut seen.book {
                    let _ = book.apply(event);
                }
            }
            Kind::Trade | Kind::Statistic => seen.last.take(event),
            Kind::Status => seen.status = Some(*event),
            Kind::State => {
                if let Some(state) = state::of_event(event) {
                    seen.told = state;
                    seen.state = match seen.is_lost && state::has_book(state) {
                        true => UNKNOWN,
                        false => state,
                    };
                }
            }
            Kind::Definition => {}
        }
    }

    /// Records a restart of the plant: no book is known, until later events show it.
    pub fn restart(&mut self) {
        self.is_lost = false;
        for seen in self.seen.iter_mut().flatten() {
            seen.lose();
            seen.is_lost = false;
        }
    }

    /// Records that events were lost: no book is known until it is shown again, not even that of
    /// an instrument without events so far.
    pub fn lose_all(&mut self) {
        self.lose_others();
        for seen in self.seen.iter_mut().flatten() {
            seen.lose();
        }
    }

    /// Records that events of instruments without events so far were lost: their books are not
    /// known until they are shown.
    pub const fn lose_others(&mut self) {
        self.is_lost = true;
    }

    /// Returns whether the books of instruments without events so far are not known until they are
    /// shown.
    pub const fn has_lost_others(&self) -> bool {
        self.is_lost
    }
}

fn open<T: Default>(
    seen: &mut Vec<Option<Box<Seen<T>>>>,
    instrument: InstrumentId,
    is_lost: bool,
) -> &mut Seen<T> {
    let place = instrument.0 as usize;
    if place >= seen.len() {
        seen.resize_with(place + 1, || None);
    }
    seen[place].get_or_insert_with(|| {
        Box::new(Seen {
            is_lost,
            ..Seen::default()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, entry};
    use crate::price::Price;

    #[test]
    fn what_is_shown_is_what_is_known() {
        let books = vec![BookConfig::by_price(4).unwrap()];
        let mut view: View = View::new(books.clone());
        let live = state::to_event(State::Live);
        let event = |kind, entry, price| Event {
            kind,
            entry,
            action: Action::New,
            price: Price::from_units(price),
            size: 3,
            instrument: InstrumentId(2),
            source: 1,
            rpt_seq: 9,
            ..Event::EMPTY
        };
        for event in [
            event(Kind::Clear, 0, 0),
            event(Kind::Level, entry::BID, 5),
            event(Kind::Level, entry::OFFER, 6),
            event(Kind::Trade, entry::TRADE, 6),
            event(Kind::Status, 0, 0),
            Event {
                instrument: InstrumentId(2),
                source: 1,
                ..live
            },
        ] {
            view.apply(&event);
        }
        let mut copy: View = View::new(books);
        let seen = view.get(InstrumentId(2)).unwrap();
        let mut last = Event::EMPTY;
        seen.show(InstrumentId(2), 1, &mut |event| {
            copy.apply(event);
            last = *event;
        });
        assert!(last.flags.has(Flags::LAST));
        let other = copy.get(InstrumentId(2)).unwrap();
        assert!(other.has_snapshot() && seen.has_snapshot());
        assert_eq!(other.book, seen.book);
        assert_eq!(other.book.as_ref().unwrap().rpt_seq(), 9);
        assert_eq!(other.status, seen.status);
        assert!(other.last.iter().eq(seen.last.iter()));
        view.lose_all();
        assert!(view.get(InstrumentId(2)).unwrap().is_lost());
        let mut shown = 0;
        let seen = view.get(InstrumentId(2)).unwrap();
        seen.show(InstrumentId(2), 1, &mut |_| shown += 1);
        assert_eq!(shown, 1, "that it is recovering");
        let has_snapshot = |view: &View| view.get(InstrumentId(2)).unwrap().has_snapshot();
        let live = Event {
            instrument: InstrumentId(2),
            ..live
        };
        view.apply(&live);
        assert!(!has_snapshot(&view), "it was not shown");
        view.restart();
        assert!(!has_snapshot(&view));
        view.apply(&live);
        assert!(has_snapshot(&view), "a plant that starts shows every book");
    }

    #[test]
    fn a_book_that_began_in_lost_events_is_unknown_until_it_is_shown() {
        let mut view: View = View::new(vec![BookConfig::by_price(4).unwrap()]);
        let event = |number, kind, price| Event {
            kind,
            entry: entry::BID,
            price: Price::from_units(price),
            size: 3,
            instrument: InstrumentId(number),
            source: 1,
            ..Event::EMPTY
        };
        let live = |number| Event {
            instrument: InstrumentId(number),
            ..state::to_event(State::Live)
        };
        let known = |view: &View, number| {
            let seen = view.get(InstrumentId(number)).unwrap();
            let is_empty = seen.book.as_ref().is_none_or(Book::is_empty);
            (seen.state, seen.has_snapshot(), is_empty)
        };
        view.lose_all();
        // Its beginning is missing, and another one begins.
        view.apply(&event(1, Kind::Level, 5));
        view.apply(&event(2, Kind::Clear, 0));
        view.apply(&event(2, Kind::Level, 5));
        for number in [1, 2] {
            view.apply(&live(number));
        }
        assert_eq!(known(&view, 1), (UNKNOWN, false, true));
        assert_eq!(known(&view, 2), (State::Live, true, false));
        // Its state came before.
        view.apply(&event(1, Kind::Clear, 0));
        view.apply(&event(1, Kind::Level, 6));
        assert_eq!(known(&view, 1), (State::Live, true, false));
        assert!(view.open(InstrumentId(3)).is_lost());
        assert!(view.has_lost_others());
        view.restart();
        view.apply(&event(4, Kind::Level, 5));
        view.apply(&live(4));
        assert_eq!(known(&view, 4), (State::Live, true, false));
        view.lose_others();
        assert!(view.open(InstrumentId(5)).is_lost());
        assert_eq!(known(&view, 4), (State::Live, true, false));
    }

    #[test]
    fn a_book_of_a_feed_that_the_view_does_not_have_is_unknown() {
        let mut view: View = View::new(vec![BookConfig::by_price(4).unwrap()]);
        let event = |source: u16, kind, entry| Event {
            kind,
            entry,
            price: Price::from_units(5),
            size: 3,
            instrument: InstrumentId(source.into()),
            source,
            ..Event::EMPTY
        };
        let seen = [0_u16, 1, 2].map(|source| {
            let live = Event {
                instrument: InstrumentId(source.into()),
                source,
                ..state::to_event(State::Live)
            };
            view.apply(&event(source, Kind::Clear, 0));
            view.apply(&event(source, Kind::Trade, entry::TRADE));
            view.apply(&event(source, Kind::Level, entry::BID));
            view.apply(&live);
            let seen = view.get(InstrumentId(source.into())).unwrap();
            (seen.state, seen.has_snapshot(), seen.last.iter().count())
        });
        let unknown = (UNKNOWN, false, 1);
        assert_eq!(seen, [unknown, (State::Live, true, 1), unknown]);
    }
}
