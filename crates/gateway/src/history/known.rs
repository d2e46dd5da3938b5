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
        let Some(own) = self.run.feeds.iter().find(|own| own.name == feed) else {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{instrument, named};
    use fanfare_history::{FeedInfo, Writer, WriterConfig};
    use fanfare_market::BookConfig;
    use fanfare_peers::Scratch;

    /// Writes a run with these feeds and instruments, by their numbers.
    fn run(folder: &Scratch, feeds: &[(&str, u32)], instruments: &[(u32, &str)]) {
        let book = BookConfig::by_price(5).unwrap();
        let feeds = feeds.iter().map(|(name, base)| FeedInfo {
            name: (*name).to_owned(),
            base: *base,
            book,
        });
        let config = WriterConfig::default();
        let (mut writer, _) = Writer::open(folder, config, feeds.collect(), 1).unwrap();
        for (number, symbol) in instruments {
            let known = instrument(*number, named(symbol));
            writer.instrument(&known).unwrap();
        }
        writer.close().unwrap();
    }

    #[test]
    fn a_feed_that_has_room_for_more_takes_no_instruments_of_the_next() {
        let folder = Scratch::new("known");
        let defined = |feed| {
            let mut table = Instruments::new(100);
            let known = KnownInstruments::read(&folder).unwrap();
            known.define(feed, &mut table);
            let all = table.iter();
            all.map(|own| String::from_utf8_lossy(own.definition.name.symbol).into_owned())
                .collect::<Vec<_>>()
        };
        let of_x = [(0, "X0"), (1, "X1")];
        let of_y = ["Y0", "Y1", "Y2"];
        let at = |base| (base..).zip(of_y).collect::<Vec<(u32, &str)>>();
        run(
            &folder,
            &[("x", 0), ("y", 2)],
            &[&of_x[..], &at(2)[..]].concat(),
        );
        assert_eq!(defined("x"), ["X0", "X1"]);
        assert_eq!(defined("y"), of_y);
        let of_x = [(0, "X0"), (1, "X1"), (2, "X2")];
        run(
            &folder,
            &[("x", 0), ("y", 10)],
            &[&of_x[..], &at(10)[..]].concat(),
        );
        assert_eq!(defined("x"), ["X0", "X1", "X2"]);
        assert_eq!(defined("y"), of_y);
    }
}
