//! Restarts of the plant among the events of an encoder.

use fanfare_market::dbn::live::{Batch, Encoder};
use fanfare_market::instruments::Lookup;

/// A restart that the encoder takes with the next event, which brings the instruments' names.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    /// Whether events were lost behind the restart, if one waits.
    waiting: Option<bool>,
}

impl Restarts {
    /// Notes a restart.
    pub(super) fn note(&mut self) {
        self.waiting.get_or_insert(false);
    }

    /// Returns whether a restart waits for the next event.
    pub(super) const fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Records that events were lost: also of books that a waiting restart is yet to empty.
    pub(super) fn lose(&mut self, encoder: &mut Encoder) {
        encoder.lose_all();
        if let Some(is_lost) = &mut self.waiting {
            *is_lost = true;
        }
    }

    /// Writes the records of a waiting restart, in front of an event. Returns whether one waited.
    pub(super) fn write(
        &mut self,
        encoder: &mut Encoder,
        table: &dyn Lookup,
        batch: &mut Batch,
    ) -> bool {
        let Some(is_lost) = self.waiting.take() else {
            return false;
        };
        encoder.restart(table, batch);
        if is_lost {
            encoder.lose_all();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::book::BookConfig;
    use fanfare_market::dbn::live::LiveSchema;
    use fanfare_market::dbn::{DbnConfig, Schemas};
    use fanfare_market::event::entry;
    use fanfare_market::instruments::{Definition, Name};
    use fanfare_market::state::code;
    use fanfare_market::{Event, Flags, InstrumentId, Instruments, Kind, Price};

    /// Returns the flags of an order that is written once the instrument is live again.
    fn flags(lose: fn(&mut Restarts, &mut Encoder)) -> u8 {
        let books = vec![BookConfig::by_order(100, 100).unwrap()];
        let mut encoder = Encoder::new(books, DbnConfig::new(Schemas::MIXED)).unwrap();
        let (mut table, mut batch) = (Instruments::new(1), Batch::default());
        let name = Name::of_symbol(b"A");
        let definition = Definition::named(name);
        table.define(&definition).unwrap();
        encoder.want(LiveSchema::Mbp1.alone(), &table);
        let order = |id, price| Event {
            kind: Kind::Order,
            instrument: InstrumentId(0),
            source: 1,
            id,
            entry: entry::BID,
            price: Price::from_units(price),
            size: 5,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        encoder.event(&order(1, 90), &table, &mut batch);
        let mut restarts = Restarts::default();
        restarts.note();
        lose(&mut restarts, &mut encoder);
        restarts.write(&mut encoder, &table, &mut batch);
        let live = Event {
            kind: Kind::State,
            ..order(code::LIVE, 0)
        };
        encoder.event(&live, &table, &mut batch);
        batch.clear();
        encoder.event(&order(2, 91), &table, &mut batch);
        let mut levels = batch.records().filter(|(_, record)| record[1] == 1);
        levels.next().unwrap().1[30]
    }

    #[test]
    fn a_loss_behind_a_restart_stays_behind_its_records() {
        const MAYBE_BAD_BOOK: u8 = 1 << 2;
        assert_eq!(flags(|_, _| {}) & MAYBE_BAD_BOOK, 0);
        let lost = flags(|restarts, encoder| restarts.lose(encoder));
        assert_ne!(lost & MAYBE_BAD_BOOK, 0);
    }
}
