//! The messages of a topic that have been seen: the numbers of each origin only increase.

use crate::dds::channels::SILENT;
use fanfare_fix::session::Now;

/// The most origins that are remembered. The one silent for longest is forgotten.
const MOST: usize = 256;
/// The time behind the first sight of an origin in which its samples may be replayed, in
/// nanoseconds. Later ones are new, whatever their publisher's clock says.
const REPLAY: u64 = 10_000_000_000;

/// The last number of each gateway that messages of a topic entered first.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    known: Vec<Origin>,
    clock: u64,
    /// Whether a writer sends its last values to a reader that comes late.
    are_replayed: bool,
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
    /// The time in nanoseconds since 1970 up to which writers wrote what they replay.
    begun: i64,
    /// The time, of a clock that never steps, from which on nothing is replayed.
    replayed_until: u64,
}

impl Origin {
    const fn replays(&self, written: i64, mono: u64) -> bool {
        written < self.begun && mono < self.replayed_until
    }
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
    pub(crate) fn new(are_replayed: bool) -> Self {
        Self {
            known: Vec::with_capacity(MOST),
            clock: 0,
            are_replayed,
        }
    }

    /// Looks up a message's number without recording it. `written` is the time of its sample, in
    /// nanoseconds since 1970, and `mono` the time now, in nanoseconds of a clock that never steps.
    /// For the first 10 s of an origin, none is missing before a replayed message: a writer replays
    /// the last values alone, without those that they replaced. The clocks of both hosts decide
    /// which messages are replayed.
    pub(crate) fn look(&self, origin: u64, number: u64, written: i64, mono: u64) -> Seen {
        match self.find(origin) {
            Some(known) if number <= known.last => Seen::Before,
            Some(known) if known.replays(written, mono) => Seen::New { missing: 0 },
            Some(known) => Seen::New {
                missing: number - known.last - 1,
            },
            None => Seen::New { missing: 0 },
        }
    }

    /// Returns whether a message may be one of the last values that a writer replays. The arguments
    /// are those of [`look`](Self::look).
    pub(crate) fn is_replayed(&self, origin: u64, written: i64, mono: u64) -> bool {
        let known = self.find(origin);
        known.map_or(self.are_replayed, |known| known.replays(written, mono))
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
    pub(crate) fn note(&mut self, origin: u64, number: u64, is_plain: bool, now: Now) {
        self.clock += 1;
        let mut new = Origin {
            name: origin,
            last: number,
            plain: if is_plain { number } else { 0 },
            last_seen: self.clock,
            begun: match self.are_replayed {
                true => now.utc.nanos(),
                false => i64::MIN,
            },
            replayed_until: now.mono.saturating_add(REPLAY),
        };
        if let Some(known) = self.known.iter_mut().find(|known| known.name == origin) {
            new.plain = new.plain.max(known.plain);
            (new.begun, new.replayed_until) = (known.begun, known.replayed_until);
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
    use fanfare_wire::UtcTimestamp;

    const START: Now = at(0, 0);

    const fn at(mono: u64, nanos: i64) -> Now {
        Now {
            mono,
            utc: UtcTimestamp::from_nanos(nanos),
        }
    }

    #[test]
    fn numbers_go_up_gaps_are_counted_and_nothing_comes_twice() {
        let mut origins = Origins::new(false);
        let mut take = |origin, number| {
            let seen = origins.look(origin, number, 0, 0);
            if seen != Seen::Before {
                origins.note(origin, number, true, START);
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
    fn none_is_missing_between_the_last_values_of_an_origin_that_is_new() {
        let mut origins = Origins::new(true);
        let mut take = |number, written, now| {
            let seen = origins.look(1, number, written, 0);
            origins.note(1, number, true, at(0, now));
            seen
        };
        assert_eq!(take(5, 10, 100), Seen::New { missing: 0 });
        assert_eq!(take(9, 20, 100), Seen::New { missing: 0 }, "replayed");
        assert_eq!(
            take(12, 99, 200),
            Seen::New { missing: 0 },
            "replayed later"
        );
        assert_eq!(take(15, 150, 200), Seen::New { missing: 2 }, "lost");
    }

    #[test]
    fn losses_count_where_the_clock_of_the_publisher_is_behind() {
        let mut origins = Origins::new(true);
        origins.note(1, 5, true, at(7, 100));
        let missing = |missing| Seen::New { missing };
        assert_eq!(origins.look(1, 9, 50, 6 + REPLAY), missing(0));
        origins.note(1, 6, true, at(8, 101));
        assert_eq!(origins.look(1, 9, 50, 7 + REPLAY), missing(2));
    }

    #[test]
    fn messages_that_belong_to_no_feed_are_remembered_for_a_while() {
        let mut origins = Origins::new(false);
        origins.note(1, 1, false, START);
        assert!(!origins.has_plain(1) && !origins.has_plain(2));
        origins.note(1, 2, true, START);
        origins.note(1, 1 + SILENT, false, START);
        assert!(origins.has_plain(1));
        origins.note(1, 2 + SILENT, false, START);
        assert!(!origins.has_plain(1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut origins = Origins::new(false);
        for origin in 0..10_000 {
            origins.note(origin, 1, true, START);
        }
        assert_eq!(origins.known.len(), MOST);
        assert_eq!(origins.look(9_999, 1, 0, 0), Seen::Before);
        assert_eq!(origins.look(0, 1, 0, 0), Seen::New { missing: 0 });
    }
}
