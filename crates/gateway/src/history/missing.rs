//! The events that a log lacks, in the words of a notice.

use std::fmt;

/// Events that a log lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// The number of the first one, and of the last one.
    first: u64,
    last: u64,
    count: u64,
}

impl Missing {
    /// Adds the events from `first` to `last`, which come after those before.
    pub(super) fn add(&mut self, first: u64, last: u64) {
        if self.is_none() {
            self.first = first;
        }
        self.last = last;
        self.count += (last + 1).saturating_sub(first);
    }

    pub(super) const fn is_none(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last, count } = self;
        match (count, (last + 1).saturating_sub(*first)) {
            (1, 1) => write!(f, "event {first}"),
            (_, all) if *count == all => write!(f, "events {first} to {last} ({count})"),
            _ => write!(f, "{count} of the events {first} to {last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_events_are_named_by_their_numbers_and_counted() {
        let mut missing = Missing::default();
        assert!(missing.is_none());
        for (first, last, text) in [
            (7, 7, "event 7"),
            (8, 10, "events 7 to 10 (4)"),
            (20, 21, "6 of the events 7 to 21"),
        ] {
            missing.add(first, last);
            assert_eq!(missing.to_string(), text);
        }
    }
}
