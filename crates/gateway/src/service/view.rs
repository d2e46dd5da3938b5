//! The market as a worker sees it: the book, the state and the last values of each instrument, kept
//! from the events of the plant's ring.

use fanfare_feed::recovery::{Lack, State};
use fanfare_market::book::{BookConfig, BookKind};
use fanfare_market::{Book, Event, InstrumentId, Kind, LastValues, state};

/// What is known of an instrument.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The book; `None` until the first level or order.
    pub(crate) book: Option<Book>,
    /// Whether the book can be trusted.
    pub(crate) state: State,
    /// Events of it were lost, and it has not been shown since.
    is_lost: bool,
    /// The state that subscribers were told last.
    pub(crate) told: Option<State>,
    /// SecurityTradingStatus(326) as the last event said it.
    pub(crate) status: Option<Event>,
    /// The last trade, and the last value of each statistic.
    pub(crate) last: LastValues,
    /// The classes of subscriptions to it.
    pub(crate) classes: Vec<u32>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            book: None,
            state: State::Recovering(Lack::Picture),
            is_lost: false,
            told: None,
            status: None,
            last: LastValues::default(),
            classes: Vec::new(),
        }
    }
}

impl Seen {
    /// Whether pictures of the book may be shown: an instrument that is stale or closed has the
    /// book that it had.
    pub(crate) const fn has_picture(&self) -> bool {
        !self.is_lost && !matches!(self.state, State::Recovering(_))
    }
}

/// All instruments, by the plant's numbers.
#[derive(Debug)]
pub(crate) struct View {
    /// Of the books of each feed.
    books: Vec<BookConfig>,
    seen: Vec<Option<Box<Seen>>>,
}

impl View {
    /// For feeds whose books are of these kinds, in the order of [`Event::source`], from 1.
    pub(crate) const fn new(books: Vec<BookConfig>) -> Self {
        Self {
            books,
            seen: Vec::new(),
        }
    }

    /// The books of the feeds.
    pub(crate) fn configs(&self) -> &[BookConfig] {
        &self.books
    }

    /// What the book of an instrument is, once it has one.
    pub(crate) fn kind(&self, instrument: InstrumentId) -> Option<BookKind> {
        Some(self.get(instrument)?.book.as_ref()?.kind())
    }

    /// What is known of an instrument, if anything.
    pub(crate) fn get(&self, instrument: InstrumentId) -> Option<&Seen> {
        self.seen.get(instrument.0 as usize)?.as_deref()
    }

    /// What is known of an instrument, to be changed.
    pub(crate) fn get_mut(&mut self, instrument: InstrumentId) -> Option<&mut Seen> {
        self.seen.get_mut(instrument.0 as usize)?.as_deref_mut()
    }

    /// What is known of an instrument, which may be nothing yet. Allocates for a new one.
    pub(crate) fn open(&mut self, instrument: InstrumentId) -> &mut Seen {
        let place = instrument.0 as usize;
        if place >= self.seen.len() {
            self.seen.resize_with(place + 1, || None);
        }
        self.seen[place].get_or_insert_default()
    }

    /// The numbers of all instruments of which something is known.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let all = (0..).zip(&self.seen);
        all.filter_map(|(number, seen)| seen.as_ref().map(|_| InstrumentId(number)))
    }

    /// Applies an event of one instrument. Allocates for an instrument's first event, book and
    /// values.
    pub(crate) fn apply(&mut self, event: &Event) {
        let Self { books, seen } = self;
        let place = event.instrument.0 as usize;
        if place >= seen.len() {
            seen.resize_with(place + 1, || None);
        }
        let seen = seen[place].get_or_insert_default();
        match event.kind {
            Kind::Level | Kind::Order => {
                let book = match &mut seen.book {
                    Some(book) => book,
                    None => {
                        let source = usize::from(event.source).wrapping_sub(1);
                        let Some(config) = books.get(source) else {
                            return;
                        };
                        seen.book.insert(Book::new(config))
                    }
                };
                // The feed's own book took it; what it found wrong behind it is in the state.
                let _ = book.apply(event);
            }
            Kind::Clear => {
                seen.is_lost = false;
                if let Some(book) = &mut seen.book {
                    let _ = book.apply(event);
                }
            }
            Kind::Trade | Kind::Statistic => seen.last.take(event),
            Kind::Status => seen.status = Some(*event),
            Kind::State => {
                if let Some(state) = state::of_event(event) {
                    seen.state = state;
                }
            }
            Kind::Definition => {}
        }
    }

    /// Events were lost: nothing is known of any book until it is shown again.
    pub(crate) fn lose_all(&mut self) {
        for seen in self.seen.iter_mut().flatten() {
            seen.state = State::Recovering(Lack::Picture);
            seen.is_lost = true;
            seen.book = None;
            seen.last.clear();
        }
    }
}
