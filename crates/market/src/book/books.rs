//! The books of all instruments, each created with its first data.

use super::{Book, BookConfig, Fault};
use crate::event::{Event, InstrumentId, Kind};

/// One book for each instrument that has data. An instrument without data costs a pointer.
///
/// Memory is bounded by the number of instruments times the memory of their books ([`BookConfig`]).
#[derive(Clone, Debug)]
pub struct Books {
    config: BookConfig,
    books: Vec<Option<Box<Book>>>,
    most: u32,
    refused: u64,
}

impl Books {
    /// Creates a set of books of this kind, for the instruments with numbers below `most`.
    pub const fn new(config: BookConfig, most: u32) -> Self {
        Self {
            config,
            books: Vec::new(),
            most,
            refused: 0,
        }
    }

    /// Applies an event to the book of its instrument. The first event of [`Kind::Level`] or
    /// [`Kind::Order`] creates that book, which allocates. Earlier events of other kinds have no
    /// effect.
    ///
    /// # Errors
    ///
    /// Returns the fault of [`Book::apply`], or [`Fault::Instrument`].
    #[inline]
    pub fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        match self.books.get_mut(event.instrument.0 as usize) {
            Some(Some(book)) => book.apply(event),
            _ => self.apply_first(event),
        }
    }

    #[cold]
    fn apply_first(&mut self, event: &Event) -> Result<(), Fault> {
        if !matches!(event.kind, Kind::Level | Kind::Order) {
            return Ok(());
        }
        let config = self.config;
        self.open(event.instrument, &config)?.apply(event)
    }

    /// Ends a message of an instrument whose last event does not apply to its book. The book must
    /// be in order and not crossed, and keeps its RptSeq(83). Without a book there is no fault.
    #[inline]
    pub(crate) fn end_message(&mut self, id: InstrumentId) -> Result<(), Fault> {
        self.get_mut(id).map_or(Ok(()), Book::end_message)
    }

    /// Creates a new book for the instrument, with a configuration of its own, and replaces any
    /// earlier one.
    ///
    /// # Errors
    ///
    /// Returns [`Fault::Instrument`] if its number is beyond the limit.
    pub fn open(&mut self, id: InstrumentId, config: &BookConfig) -> Result<&mut Book, Fault> {
        if id.0 >= self.most {
            self.refused += 1;
            return Err(Fault::Instrument);
        }
        let place = id.0 as usize;
        if place >= self.books.len() {
            self.books.resize_with(place + 1, || None);
        }
        Ok(self.books[place].insert(Box::new(Book::new(config))))
    }

    /// Returns the book of an instrument, or `None` if it has had no data.
    #[inline]
    pub fn get(&self, id: InstrumentId) -> Option<&Book> {
        self.books.get(id.0 as usize)?.as_deref()
    }

    /// Returns a mutable reference to the book of an instrument, or `None` if it has had no data.
    pub fn get_mut(&mut self, id: InstrumentId) -> Option<&mut Book> {
        self.books.get_mut(id.0 as usize)?.as_deref_mut()
    }

    /// Returns each book with its instrument, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (InstrumentId, &Book)> {
        let books = (0..).zip(&self.books);
        books.filter_map(|(id, book)| Some((InstrumentId(id), book.as_deref()?)))
    }

    /// Returns how many events were refused because their instrument's number is beyond the limit.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of bytes of all books and their table. Visits each of them.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.books.capacity() * size_of::<Option<Box<Book>>>()
            + self.iter().map(|(_, book)| book.memory()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Action, entry};
    use crate::{Price, Side};

    fn level(instrument: u32) -> Event {
        Event {
            kind: Kind::Level,
            instrument: InstrumentId(instrument),
            entry: entry::BID,
            price: Price::from_units(1),
            size: 1,
            level: 1,
            ..Event::EMPTY
        }
    }

    #[test]
    fn an_instrument_without_data_costs_a_pointer() {
        let config = BookConfig::by_level(20).unwrap();
        let mut books = Books::new(config, 1_000_000);
        assert_eq!(books.apply(&level(999_999)), Ok(()));
        assert!(books.memory() < 8_000_000 + 3_000, "{}", books.memory());
        assert_eq!(books.iter().count(), 1);
        assert!(books.get(InstrumentId(0)).is_none());
    }

    #[test]
    fn made_up_instruments_are_counted_and_cost_nothing() {
        let mut books = Books::new(BookConfig::by_price(20).unwrap(), 2);
        let status = Event {
            kind: Kind::Status,
            ..level(1)
        };
        assert_eq!(books.apply(&status), Ok(()));
        assert_eq!(books.iter().count(), 0, "nothing to keep yet");
        for instrument in [2, u32::MAX] {
            assert_eq!(books.apply(&level(instrument)), Err(Fault::Instrument));
        }
        assert_eq!(books.refused(), 2);
        assert_eq!(books.apply(&level(1)), Ok(()));
        let delete = Event {
            action: Action::Delete,
            ..level(1)
        };
        assert_eq!(books.apply(&delete), Ok(()));
        let orders = BookConfig::by_order(2, 2).unwrap();
        let book = books.open(InstrumentId(1), &orders).unwrap();
        assert!(book.best(Side::Bid).is_none());
    }
}
