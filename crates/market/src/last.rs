//! The last trade of an instrument, and the last value of each of its statistics.

use crate::event::{Action, Event, Flags, Kind};

/// The most kinds of values that are kept. MDEntryType(269) has fewer.
const MOST: usize = 64;

/// The newest event of each MDEntryType(269). Allocates for the first one of each.
#[derive(Debug, Clone, Default)]
pub struct LastValues(Vec<Event>);

impl LastValues {
    /// Keeps a trade or a statistic instead of the previous one of its kind. A deletion removes the
    /// one that it names, and a deletion or a change of another trade is ignored, as is the 65th
    /// kind.
    pub fn take(&mut self, event: &Event) {
        let place = self.0.iter().position(|own| own.entry == event.entry);
        let own = place.and_then(|place| self.0.get(place));
        match (place, after(own, event)) {
            (Some(place), Some(left)) => self.0[place] = left,
            (Some(place), None) => _ = self.0.remove(place),
            (None, Some(new)) if self.0.len() < MOST => self.0.push(new),
            (None, _) => {}
        }
    }

    /// Reserves capacity for `more` kinds.
    pub fn reserve(&mut self, more: usize) {
        self.0.reserve(more);
    }

    /// Returns the events, in the order in which their kinds first appeared.
    pub fn iter(&self) -> std::slice::Iter<'_, Event> {
        self.0.iter()
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Returns the last trade or statistic of a kind after an event of this kind, if there is one.
/// `own` is the one before it.
pub(crate) fn after(own: Option<&Event>, event: &Event) -> Option<Event> {
    let is_of_another = own.is_some_and(|own| !event.is_about(own));
    let is_shown = event.flags.has(Flags::SNAPSHOT);
    match event.action {
        Action::Delete | Action::DeleteThru | Action::DeleteFrom => {
            own.copied().filter(|_| is_of_another)
        }
        Action::Change if is_of_another && event.kind == Kind::Trade && !is_shown => own.copied(),
        _ => Some(*event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_kind_stays() {
        let mut last = LastValues::default();
        let event = |entry, size| Event {
            entry,
            size,
            ..Event::EMPTY
        };
        for (entry, size) in [(b'2', 1), (b'4', 2), (b'2', 3)] {
            last.take(&event(entry, size));
        }
        let kept: Vec<_> = last.iter().map(|event| (event.entry, event.size)).collect();
        assert_eq!(kept, [(b'2', 3), (b'4', 2)]);
        (0..=255).for_each(|entry| last.take(&event(entry, 0)));
        assert_eq!(last.iter().count(), MOST);
    }

    #[test]
    fn a_trade_that_was_deleted_is_not_the_last_one() {
        let trade = |action, id, size| Event {
            kind: Kind::Trade,
            entry: b'2',
            action,
            id,
            size,
            ..Event::EMPTY
        };
        let mut last = LastValues::default();
        let mut left = |event: Event| {
            last.take(&event);
            last.iter().next().map(|own| own.size)
        };
        assert_eq!(left(trade(Action::Delete, 1, 5)), None);
        assert_eq!(left(trade(Action::New, 1, 5)), Some(5));
        assert_eq!(left(trade(Action::New, 2, 6)), Some(6));
        assert_eq!(left(trade(Action::Change, 1, 7)), Some(6));
        assert_eq!(left(trade(Action::Delete, 1, 7)), Some(6));
        assert_eq!(left(trade(Action::Change, 2, 8)), Some(8));
        let shown = Event {
            flags: Flags::SNAPSHOT,
            ..trade(Action::Change, 3, 9)
        };
        assert_eq!(left(shown), Some(9), "as a reader that lost some is told");
        assert_eq!(left(trade(Action::Delete, 3, 9)), None);
        assert_eq!(left(trade(Action::New, 4, 5)), Some(5));
        assert_eq!(left(trade(Action::Delete, 0, 5)), None);
        // A change of a statistic is its next value.
        let value = |action, size| Event {
            kind: Kind::Statistic,
            entry: b'4',
            ..trade(action, 0, size)
        };
        assert_eq!(left(value(Action::Change, 1)), Some(1));
        assert_eq!(left(value(Action::Change, 2)), Some(2));
        assert_eq!(left(value(Action::Delete, 2)), None);
    }
}
