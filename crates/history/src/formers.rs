//! Instruments as they were at the last event, where records of the next one have replaced them.
//!
//! A log has an instrument in front of its first event, and again in front of the event that
//! renames it. A checkpoint between the two has the later one, which readers that begin behind it
//! need, and the former one, which counts at its moment.

use crate::format::{Kind, push_record, u32_at};
use fanfare_market::event::InstrumentId;
use fanfare_market::instruments::{Directory, Instrument};
use std::collections::BTreeMap;

/// The instruments that records in front of the next event have replaced.
#[derive(Debug, Default)]
pub(crate) struct Formers {
    is_kept: bool,
    /// The number of the next event.
    next: u64,
    /// What each was, in the form of `Instrument::write`; empty if it was not known.
    all: BTreeMap<u32, Box<[u8]>>,
}

impl Formers {
    /// Keeps what is replaced from now on.
    pub(crate) const fn keep(&mut self) {
        self.is_kept = true;
    }

    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Adds an instrument to the directory in front of the event `next`, and keeps what it
    /// replaces.
    pub(crate) fn replace(&mut self, next: u64, bytes: &[u8], directory: &mut Directory) {
        if self.is_kept {
            self.keep_former(next, bytes, directory);
        }
        directory.take(bytes);
    }

    fn keep_former(&mut self, next: u64, bytes: &[u8], directory: &Directory) {
        if self.next != next {
            self.all.clear();
            self.next = next;
        }
        let Some(Instrument { instrument, .. }) = Instrument::read(bytes) else {
            return;
        };
        let before = directory.bytes(instrument).unwrap_or_default();
        // A start writes all instruments, most of them as they were.
        if before != bytes {
            self.all.entry(instrument.0).or_insert(before.into());
        }
    }

    /// Returns a record for a checkpoint of each instrument that was replaced in front of the event
    /// `next`.
    pub(crate) fn records(&self, next: u64) -> impl Iterator<Item = Vec<u8>> {
        let current = self.all.iter().filter(move |_| self.next == next);
        current.map(|(number, bytes)| [&number.to_le_bytes()[..], &**bytes].concat())
    }

    /// Takes a record of a checkpoint in front of the event `next`.
    pub(crate) fn take(&mut self, next: u64, record: &[u8]) {
        self.next = next;
        let bytes = record.get(size_of::<u32>()..).unwrap_or_default();
        self.all.insert(u32_at(record, 0), bytes.into());
    }

    /// Makes the directory that of the last event. Returns the records of the next one, which
    /// replace its instruments again.
    pub(crate) fn restore(&mut self, directory: &mut Directory) -> Vec<u8> {
        let mut records = Vec::new();
        for (number, bytes) in std::mem::take(&mut self.all) {
            let number = InstrumentId(number);
            if let Some(later) = directory.bytes(number) {
                push_record(&mut records, Kind::Instrument, &[later]);
            }
            if bytes.is_empty() {
                directory.remove(number);
            } else {
                directory.take(&bytes);
            }
        }
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::instruments::{Definition, IdSource, Name, SecurityId};

    fn bytes(number: u32, symbol: &[u8]) -> Vec<u8> {
        let name = Name {
            symbol,
            id: SecurityId::Number(u64::from(number)),
            source: IdSource::NONE,
        };
        let definition = Definition::named(name);
        let mut out = Vec::new();
        Instrument {
            instrument: InstrumentId(number),
            definition,
            revision: 1,
            status: 17,
        }
        .write(&mut out);
        out
    }

    #[test]
    fn only_what_changes_is_kept_as_it_was_at_the_last_event() {
        let (mut formers, mut directory) = (Formers::default(), Directory::new());
        formers.keep();
        formers.replace(1, &bytes(1, b"A"), &mut directory);
        formers.replace(1, &bytes(2, b"B"), &mut directory);
        assert_eq!(formers.records(1).count(), 2, "unknown before");
        // A start writes them again, and then one is renamed twice.
        for again in [bytes(1, b"A"), bytes(2, b"B")] {
            formers.replace(9, &again, &mut directory);
        }
        assert_eq!(formers.records(9).count(), 0);
        formers.replace(9, &bytes(2, b"C"), &mut directory);
        formers.replace(9, &bytes(2, b"D"), &mut directory);
        assert_eq!(formers.records(8).count(), 0);
        let former = [&2_u32.to_le_bytes()[..], &bytes(2, b"B")].concat();
        assert_eq!(formers.records(9).collect::<Vec<_>>(), [former]);
    }
}
