//! The instruments of the log, which keep their numbers over restarts.

use fanfare_history::{At, Log, LogError, Run};
use fanfare_market::Instruments;
use fanfare_market::instruments::Instrument;
use std::path::Path;

/// The instruments in the log, by the plant's numbers of the previous run.
#[derive(Default)]
pub(crate) struct KnownInstruments {
    run: Run,
    /// The instruments in the order of their numbers.
    all: Vec<(u32, Box<[u8]>)>,
}

impl KnownInstruments {
    /// Reads the instruments of the log in a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self, LogError> {
        let end = Log::open(folder)?.as_of(At::End)?;
        let all = end.directory().iter();
        Ok(Self {
            all: all
                .map(|(number, bytes)| (number.0, bytes.into()))
                .collect(),
            run: end.run,
        })
    }

    /// Defines the instruments of a feed in its table, in the order of their numbers.
    pub(crate) fn define(&self, feed: &str, table: &mut Instruments) {
        let place = self.run.feeds.iter().position(|own| own.name == feed);
        let Some(own) = place.and_then(|place| self.run.feeds.get(place)) else {
            return;
        };
        let behind = self.run.feeds.iter().map(|other| other.base);
        let end = behind.filter(|base| *base > own.base).min();
        let range = own.base..end.unwrap_or(u32::MAX);
        let of_feed = self.all.iter().filter(|(number, _)| range.contains(number));
        for (at, (number, bytes)) in (own.base..).zip(of_feed) {
            // After a hole, instruments have other numbers, and are defined as they arrive.
            if at != *number {
                return;
            }
            if let Some(instrument) = Instrument::read(bytes) {
                // An instrument that the table refuses is refused again when it arrives, and
                // counted.
                let _ = table.define(&instrument.definition);
            }
        }
    }
}
