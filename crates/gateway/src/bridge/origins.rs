//! The messages of a topic that have been seen: the numbers of each origin only increase.

/// The most origins that are remembered. The one silent for longest is forgotten.
const MOST: usize = 256;

/// The last number of each gateway that messages of a topic entered first.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The origins, with their last numbers and the times at which they were last seen.
    known: Vec<(u64, u64, u64)>,
    clock: u64,
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
        match self.known.iter().find(|known| known.0 == origin) {
            Some((_, last, _)) if number <= *last => Seen::Before,
            Some((_, last, _)) => Seen::New {
                missing: number - last - 1,
            },
            None => Seen::New { missing: 0 },
        }
    }

    /// Records a message that was new.
    pub(crate) fn note(&mut self, origin: u64, number: u64) {
        self.clock += 1;
        let last_seen = self.clock;
        if let Some(known) = self.known.iter_mut().find(|known| known.0 == origin) {
            known.1 = number;
            known.2 = last_seen;
            return;
        }
        let new = (origin, number, last_seen);
        if self.known.len() < MOST {
            self.known.push(new);
        } else if let Some(oldest) = self.known.iter_mut().min_by_key(|known| known.2) {
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
                origins.note(origin, number);
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
    fn what_is_remembered_is_bounded() {
        let mut origins = Origins::new();
        for origin in 0..10_000 {
            origins.note(origin, 1);
        }
        assert_eq!(origins.known.len(), MOST);
        assert_eq!(origins.look(9_999, 1), Seen::Before);
        assert_eq!(origins.look(0, 1), Seen::New { missing: 0 });
    }
}
