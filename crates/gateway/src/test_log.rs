//! The feed and the instruments of the logs that tests write.

use fanfare_history::FeedInfo;
use fanfare_market::InstrumentId;
use fanfare_market::book::BookConfig;
use fanfare_market::instruments::{Definition, Instrument, Name};

/// Returns the only feed of a plant, with these books.
pub(crate) fn feed(book: BookConfig) -> FeedInfo {
    FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book,
    }
}

/// Returns the definition of an instrument with this symbol.
pub(crate) fn named(symbol: &str) -> Definition<'_> {
    Definition::named(Name::of_symbol(symbol.as_bytes()))
}

/// Returns an instrument whose status is not known.
pub(crate) const fn known(number: u32, definition: Definition<'_>) -> Instrument<'_> {
    Instrument {
        instrument: InstrumentId(number),
        definition,
        revision: 1,
        status: 0,
    }
}

/// Returns an instrument in the form of [`Instrument::write`].
pub(crate) fn instrument(number: u32, definition: Definition<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    known(number, definition).write(&mut bytes);
    bytes
}
