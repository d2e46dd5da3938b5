//! Watermarks in the ring of market events: its readers know by them that no earlier trade follows.

use crate::market::ring::EventRing;
use fanfare_fix::session::{Now, SECOND};

/// The longest time between the kernel's time of arrival of a datagram and the time at which it can
/// be read, in nanoseconds. It is a few microseconds, unless the machine is stopped in between.
const IN_KERNEL: u64 = 5_000_000;

/// The longest time that events take from another gateway, which has stamped them.
const FROM_GATEWAY: u64 = SECOND / 2;

/// The interval at which feeds that are behind are looked at again, in nanoseconds.
const RETRY: u64 = 1_000_000;

/// The watermarks of all feeds: one after the end of each second, as soon as everything that had
/// arrived by then is in the ring.
///
/// Messages that wait for the recovery of their instrument are not waited for.
pub(crate) struct Watermarks {
    delay: u64,
    /// The end of the current second, in nanoseconds since 1970.
    end: u64,
    /// The monotonic time at which the next turn is due.
    due: u64,
}

impl Watermarks {
    /// Creates the watermarks of feeds. `has_edges` is set if other gateways receive some of them.
    pub(crate) const fn new(has_edges: bool) -> Self {
        let delay = if has_edges { FROM_GATEWAY } else { IN_KERNEL };
        Self {
            delay,
            end: 0,
            due: 0,
        }
    }

    /// Writes a watermark if a second has ended and the feeds are not behind. They have read their
    /// sockets after `now`.
    #[inline]
    pub(super) fn turn(&mut self, now: Now, is_behind: bool, ring: &mut EventRing) {
        if now.mono >= self.due {
            self.look(now, is_behind, ring);
        }
    }

    #[cold]
    fn look(&mut self, now: Now, is_behind: bool, ring: &mut EventRing) {
        let passed = now.utc.nanos().unsigned_abs().saturating_sub(self.delay);
        // The end is computed again, because UTC may be set.
        let end = passed - passed % SECOND + SECOND;
        if is_behind && end != self.end {
            self.due = now.mono + RETRY;
            return;
        }
        if end != self.end {
            self.end = end;
            ring.put_watermark(passed);
        }
        self.due = now.mono + (end - passed);
    }

    /// Returns when the next watermark is due, monotonic, in nanoseconds.
    pub(super) const fn next_timer(&self) -> u64 {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::poll::Waker;
    use fanfare_market::Delivery;
    use fanfare_wire::UtcTimestamp;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_watermark_follows_each_second_once_the_feeds_are_not_behind() {
        let waker = || Waker::detached().unwrap();
        let mut ring = EventRing::new(1, 1, waker(), 1);
        let mut reader = ring.reader(waker()).unwrap();
        let mut watermarks = Watermarks::new(false);
        let mut last = 0;
        let mut turn = |millis: u64, is_behind| {
            let now = Now {
                mono: (millis - 90_000) * MS,
                utc: UtcTimestamp::from_nanos((millis * MS) as i64),
            };
            watermarks.turn(now, is_behind, &mut ring);
            reader.read(8, |delivery| match delivery {
                Delivery::Watermark(mark) => last = mark.time,
                other => panic!("{other:?}"),
            });
            let due = watermarks.next_timer() / MS + 90_000;
            (last / MS, due)
        };
        assert_eq!(turn(100_300, true), (0, 100_301));
        assert_eq!(turn(100_301, false), (100_296, 101_005));
        assert_eq!(turn(101_004, false), (100_296, 101_005));
        assert_eq!(turn(101_006, true), (100_296, 101_007));
        assert_eq!(turn(101_009, false), (101_004, 102_005));
        assert_eq!(
            turn(104_000, false),
            (103_995, 104_005),
            "several seconds later"
        );
        let edges = Watermarks::new(true);
        assert!(edges.delay > Watermarks::new(false).delay);
    }
}
