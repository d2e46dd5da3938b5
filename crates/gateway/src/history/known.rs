//! Instruments of the log: they keep their numbers over restarts.

use fanfare_history::{At, Log, LogError, Run};
use fanfare_market::Instruments;
use fanfare_market::instruments::Instrument;
use std::path::Path;

/// The instruments that the log knows, by the plant's numbers of the run before.
#[derive(Default)]
pub(crate) struct KnownInstruments {
    run: Run,
    /// In the order of their numbers.
    all: Vec<(u32, Box<[u8]>)>,
}

impl KnownInstruments {
    /// Reads what the log of a folder has.
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

    /// Puts the instruments of a feed into its table, in the order of their numbers.
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
            // Behind a hole others have other numbers: they are taken as they come.
            if at != *number {
                return;
            }
            if let Some(instrument) = Instrument::read(bytes) {
                // One that the table refuses is refused when it comes again, and counted.
                let _ = table.define(&instrument.definition);
            }
        }
    }
}
