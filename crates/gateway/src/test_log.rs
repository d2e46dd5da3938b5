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
    let name = Name {
        symbol: symbol.as_bytes(),
        ..Name::default()
    };
    Definition {
        name,
        ..Definition::default()
    }
}

/// Returns an instrument in the form of [`Instrument::write`].
pub(crate) fn instrument(number: u32, definition: Definition<'_>) -> Vec<u8> {
    let instrument = Instrument {
        instrument: InstrumentId(number),
        definition,
        revision: 1,
        status: 0,
    };
    let mut bytes = Vec::new();
    instrument.write(&mut bytes);
    bytes
}
