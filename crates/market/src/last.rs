//! The last trade of an instrument, and the last value of each of its statistics.

use crate::event::Event;

/// The most kinds of values that are kept. MDEntryType(269) has fewer.
const MOST: usize = 64;

/// The newest event of each MDEntryType(269). Allocates for the first one of each.
#[derive(Debug, Clone, Default)]
pub struct LastValues(Vec<Event>);

impl LastValues {
    /// Keeps a trade or a statistic instead of the previous one of its kind. The 65th kind is
    /// ignored.
    pub fn take(&mut self, event: &Event) {
        if let Some(own) = self.0.iter_mut().find(|own| own.entry == event.entry) {
            *own = *event;
        } else if self.0.len() < MOST {
            self.0.push(*event);
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
}
