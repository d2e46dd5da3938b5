//! The messages of a topic that have been seen: the numbers of each origin only increase.

use crate::dds::channels::SILENT;

/// The most origins that are remembered. The one silent for longest is forgotten.
const MOST: usize = 256;

/// The last number of each gateway that messages of a topic entered first.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    known: Vec<Origin>,
    clock: u64,
}

/// A gateway that messages of a topic entered first.
#[derive(Debug)]
struct Origin {
    name: u64,
    /// Its last number, and the last one of a message that belongs to no feed, 0 before any.
    last: u64,
    plain: u64,
    /// The time at which it was last seen.
    last_seen: u64,
}

/// The result of looking up a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The number is new. `missing` messages before it have not arrived and will not.
    New { missing: u64 },
    /// This number or a later one was seen before: the message has looped, or arrived on two paths.
    Before,
}

impl Origins {
    pub(crate) fn new() -> Self {
        Self {
            known: Vec::with_capacity(MOST),
            clock: 0,
        }
    }

    /// Looks up a message's number without recording it.
    pub(crate) fn look(&self, origin: u64, number: u64) -> Seen {
        match self.find(origin) {
            Some(known) if number <= known.last => Seen::Before,
            Some(known) => Seen::New {
                missing: number - known.last - 1,
            },
            None => Seen::New { missing: 0 },
        }
    }

    /// Returns whether an origin lately had messages that belong to no feed.
    pub(crate) fn has_plain(&self, origin: u64) -> bool {
        let known = self.find(origin);
        known.is_some_and(|known| known.plain > 0 && known.last - known.plain < SILENT)
    }

    fn find(&self, origin: u64) -> Option<&Origin> {
        self.known.iter().find(|known| known.name == origin)
    }

    /// Records a message that was new. `is_plain` is whether it belongs to no feed.
    pub(crate) fn note(&mut self, origin: u64, number: u64, is_plain: bool) {
        self.clock += 1;
        let mut new = Origin {
            name: origin,
            last: number,
            plain: if is_plain { number } else { 0 },
            last_seen: self.clock,
        };
        if let Some(known) = self.known.iter_mut().find(|known| known.name == origin) {
            new.plain = new.plain.max(known.plain);
            *known = new;
        } else if self.known.len() < MOST {
            self.known.push(new);
        } else if let Some(oldest) = self.known.iter_mut().min_by_key(|known| known.last_seen) {
            *oldest = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_up_gaps_are_counted_and_nothing_comes_twice() {
        let mut origins = Origins::new();
        let mut take = |origin, number| {
            let seen = origins.look(origin, number);
            if seen != Seen::Before {
                origins.note(origin, number, true);
            }
            seen
        };
        assert_eq!(take(1, 5), Seen::New { missing: 0 }, "who comes late");
        assert_eq!(take(1, 6), Seen::New { missing: 0 });
        assert_eq!(take(1, 9), Seen::New { missing: 2 });
        assert_eq!(take(1, 9), Seen::Before);
        assert_eq!(take(1, 7), Seen::Before);
        assert_eq!(take(2, 1), Seen::New { missing: 0 }, "another origin");
    }

    #[test]
    fn messages_that_belong_to_no_feed_are_remembered_for_a_while() {
        let mut origins = Origins::new();
        origins.note(1, 1, false);
        assert!(!origins.has_plain(1) && !origins.has_plain(2));
        origins.note(1, 2, true);
        origins.note(1, 1 + SILENT, false);
        assert!(origins.has_plain(1));
        origins.note(1, 2 + SILENT, false);
        assert!(!origins.has_plain(1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut origins = Origins::new();
        for origin in 0..10_000 {
            origins.note(origin, 1, true);
        }
        assert_eq!(origins.known.len(), MOST);
        assert_eq!(origins.look(9_999, 1), Seen::Before);
        assert_eq!(origins.look(0, 1), Seen::New { missing: 0 });
    }
}
