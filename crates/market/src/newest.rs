//! The order of statuses and statistics that do not wait for missing messages.

use crate::event::{Event, Kind};
use std::collections::HashMap;

/// The last messages with a status of each instrument, and with a value of each of its statistics,
/// by instrument and MDEntryType(269). They are kept while messages are missing that may come late.
#[derive(Debug, Default)]
pub(crate) struct Newest(HashMap<(u32, Option<u8>), u64>);

impl Newest {
    /// Takes a status or a statistic of the message with this number. Returns false if a later
    /// message had one. `is_whole` is whether no message may come late.
    #[inline]
    pub(crate) fn take(&mut self, event: &Event, sequence: u64, is_whole: bool) -> bool {
        if is_whole && self.0.is_empty() {
            return true;
        }
        self.keep(event, sequence, is_whole)
    }

    #[cold]
    fn keep(&mut self, event: &Event, sequence: u64, is_whole: bool) -> bool {
        if is_whole {
            self.0.clear();
            return true;
        }
        let entry = match event.kind {
            Kind::Status => None,
            _ => Some(event.entry),
        };
        let last = self.0.entry((event.instrument.0, entry)).or_default();
        let is_newest = sequence >= *last;
        if is_newest {
            *last = sequence;
        }
        is_newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::InstrumentId;

    #[test]
    fn what_is_late_is_older_than_the_last_of_its_kind() {
        let mut newest = Newest::default();
        let status = Event {
            kind: Kind::Status,
            ..Event::EMPTY
        };
        let of_all = Event {
            instrument: InstrumentId::ALL,
            ..status
        };
        let value = |entry| Event {
            kind: Kind::Statistic,
            entry,
            ..Event::EMPTY
        };
        assert!(newest.take(&status, 9, true) && newest.take(&status, 8, true));
        for event in [status, of_all, value(b'4')] {
            assert!(newest.take(&event, 5, false));
            assert!(!newest.take(&event, 4, false));
            assert!(newest.take(&event, 5, false), "another one of the message");
        }
        assert!(newest.take(&value(b'7'), 4, false));
        assert!(newest.take(&status, 6, true) && newest.take(&status, 4, false));
    }
}
