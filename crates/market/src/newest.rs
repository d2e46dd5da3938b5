//! The order of statistics that do not wait for missing messages.

use crate::event::Event;
use std::collections::HashMap;

/// The last messages with a value of each statistic, by instrument and MDEntryType(269). They are
/// kept while messages are missing that may come late.
#[derive(Debug, Default)]
pub(crate) struct Newest(HashMap<(u32, u8), u64>);

impl Newest {
    /// Takes a statistic of the message with this number. Returns false if a later message had one.
    /// `is_whole` is whether no message may come late.
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
        let key = (event.instrument.0, event.entry);
        let last = self.0.entry(key).or_default();
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
    use crate::event::{InstrumentId, Kind};

    #[test]
    fn what_is_late_is_older_than_the_last_of_its_kind() {
        let mut newest = Newest::default();
        let value = |entry| Event {
            kind: Kind::Statistic,
            entry,
            ..Event::EMPTY
        };
        let of_another = Event {
            instrument: InstrumentId(1),
            ..value(b'4')
        };
        let first = value(b'4');
        assert!(newest.take(&first, 9, true) && newest.take(&first, 8, true));
        for event in [first, of_another, value(b'5')] {
            assert!(newest.take(&event, 5, false));
            assert!(!newest.take(&event, 4, false));
            assert!(newest.take(&event, 5, false), "another one of the message");
        }
        assert!(newest.take(&value(b'7'), 4, false));
        assert!(newest.take(&first, 6, true) && newest.take(&first, 4, false));
    }
}
