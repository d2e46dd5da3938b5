//! The trades that have come lately, by which those of a past that is requested again are known.

use fanfare_market::{Event, Flags};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

/// The most trades that are remembered, which takes 3 MiB.
const MOST: usize = 1 << 17;

/// The latest trades of a feed.
#[derive(Default)]
pub(super) struct Trades {
    recent: VecDeque<Trade>,
    /// The number of trades with each hash that may come again.
    expected: HashMap<u64, u32>,
    /// The latest time of those that are no longer remembered, or 0.
    forgotten: u64,
}

struct Trade {
    hash: u64,
    /// The times of the exchange and of arrival, or 0 if unknown.
    times: [u64; 2],
}

impl Trades {
    /// Returns the latest time of a trade that is no longer remembered, in nanoseconds since 1970,
    /// or 0. A past from here on would bring it again.
    pub(super) const fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Records that a past from this time on is requested: its trades may have come before.
    pub(super) fn expect(&mut self, start: u64) {
        self.expected.clear();
        for trade in &self.recent {
            if trade.times.iter().any(|time| *time >= start) {
                *self.expected.entry(trade.hash).or_default() += 1;
            }
        }
    }

    /// Records that the past has come, and only new trades follow.
    pub(super) fn settle(&mut self) {
        self.expected = HashMap::new();
    }

    /// Returns whether a trade has not come before.
    pub(super) fn is_new(&mut self, event: &Event) -> bool {
        let hash = hash(event);
        if let Some(count) = self.expected.get_mut(&hash)
            && *count > 0
        {
            *count -= 1;
            return false;
        }
        if self.recent.len() >= MOST
            && let Some(first) = self.recent.pop_front()
        {
            self.forgotten = first.times.into_iter().fold(self.forgotten, u64::max);
        }
        let times = [event.ts_event, event.ts_recv];
        let times = times.map(|time| if time == Event::NO_TIME { 0 } else { time });
        self.recent.push_back(Trade { hash, times });
        true
    }
}

/// Returns the hash of what a trade has whenever it comes.
fn hash(event: &Event) -> u64 {
    let essence = Event {
        number: 0,
        flags: Flags::NONE,
        ..*event
    };
    let mut hasher = DefaultHasher::new();
    hasher.write(&essence.to_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::Kind;

    fn trade(time: u64, size: i64) -> Event {
        Event {
            kind: Kind::Trade,
            ts_event: time,
            ts_recv: time + 1,
            size,
            ..Event::EMPTY
        }
    }

    #[test]
    fn each_trade_of_the_past_comes_once() {
        let mut trades = Trades::default();
        let came = [trade(1, 5), trade(2, 5), trade(2, 5), trade(3, 7)];
        assert!(came.iter().all(|event| trades.is_new(event)));
        trades.expect(2);
        let marked = Event {
            number: 99,
            flags: Flags::LAST,
            ..trade(2, 5)
        };
        let past = [trade(2, 5), marked, trade(2, 5), trade(3, 7), trade(4, 7)];
        let new = past.map(|event| trades.is_new(&event));
        assert_eq!(new, [false, false, true, false, true]);
        // The first one is before the past.
        assert!(trades.is_new(&trade(0, 5)));
        trades.settle();
        assert!(trades.is_new(&trade(4, 7)));
    }

    #[test]
    fn what_is_forgotten_is_told_by_its_time() {
        let mut trades = Trades::default();
        for time in 0..=MOST as u64 {
            assert!(trades.is_new(&trade(100 + time, 1)));
        }
        assert_eq!((trades.recent.len(), trades.forgotten()), (MOST, 101));
    }
}
