//! Pairs each outgoing message with the incoming one of the same FanoutID(20001).

use std::collections::{HashMap, VecDeque};

/// The most marks remembered; beyond, the oldest is dropped, and its later deliveries count as
/// unmatched. At 100 marks per second that is eleven hours.
const MAX_MARKS: usize = 4 << 20;
/// The most deliveries kept whose incoming message has not been seen; further ones count as
/// unmatched.
const MAX_EARLY: u64 = 1 << 20;

/// The arrival of a marked message, the number of its deliveries, and the time of the last one.
#[derive(Debug)]
struct Mark {
    time: u64,
    deliveries: u64,
    last: u64,
}

impl Mark {
    const fn new(time: u64) -> Self {
        Self {
            time,
            deliveries: 0,
            last: time,
        }
    }

    /// Takes a delivery. Returns the nanoseconds since the arrival, or `None` if that was later.
    fn deliver(&mut self, time: u64) -> Option<u64> {
        let latency = time.checked_sub(self.time)?;
        self.deliveries += 1;
        self.last = self.last.max(time);
        Some(latency)
    }
}

/// A store of the marks of incoming messages, which finds them again for outgoing ones.
///
/// An incoming message may be seen after its deliveries, if its stream had a hole before it:
/// deliveries are therefore kept until it comes.
///
/// Another run of a producer repeats the marks: a mark that arrives later than its last delivery is
/// a new message.
#[derive(Debug, Default)]
pub(super) struct Matcher {
    marks: HashMap<Box<[u8]>, Mark>,
    order: VecDeque<Box<[u8]>>,
    /// Times of the deliveries without an incoming message so far.
    early: HashMap<Box<[u8]>, Vec<u64>>,
    early_count: u64,
    unmatched: u64,
    /// Marks that were never delivered and have been dropped or replaced.
    undelivered_before: u64,
    repeated: u64,
}

impl Matcher {
    /// Takes the mark of an incoming message: passes each delivery that was kept for it, as time
    /// and nanoseconds since then, to `matched`. A known mark keeps its time if the message is
    /// resent, PossDupFlag(43), or not later than the last delivery.
    pub(super) fn incoming(
        &mut self,
        mark: &[u8],
        time: u64,
        is_resent: bool,
        mut matched: impl FnMut(u64, u64),
    ) {
        if let Some(known) = self.marks.get_mut(mark) {
            if is_resent || time <= known.last {
                self.repeated += 1;
            } else {
                self.undelivered_before += u64::from(known.deliveries == 0);
                *known = Mark::new(time);
            }
            return;
        }
        let early = self.early.remove(mark).unwrap_or_default();
        self.early_count -= early.len() as u64;
        let mut entry = Mark::new(time);
        for delivered in early {
            match entry.deliver(delivered) {
                Some(latency) => matched(delivered, latency),
                None => self.unmatched += 1,
            }
        }
        self.forget_one_if_full();
        self.order.push_back(mark.into());
        self.marks.insert(mark.into(), entry);
    }

    /// Takes the mark of an outgoing message. Returns the nanoseconds since its arrival, or `None`
    /// if it has not arrived yet, or arrived later.
    pub(super) fn outgoing(&mut self, mark: &[u8], time: u64) -> Option<u64> {
        let Some(entry) = self.marks.get_mut(mark) else {
            if self.early_count < MAX_EARLY {
                self.early_count += 1;
                self.early.entry(mark.into()).or_default().push(time);
            } else {
                self.unmatched += 1;
            }
            return None;
        };
        let latency = entry.deliver(time);
        self.unmatched += u64::from(latency.is_none());
        latency
    }

    /// Returns the number of deliveries whose message did not arrive, or only later.
    pub(super) fn unmatched(&self) -> u64 {
        self.unmatched + self.early_count
    }

    /// Returns the number of marks that arrived and were never delivered.
    pub(super) fn undelivered(&self) -> u64 {
        let waiting = self.marks.values().filter(|m| m.deliveries == 0).count();
        waiting as u64 + self.undelivered_before
    }

    /// Returns the number of messages whose mark had arrived before, and which began no new one.
    pub(super) fn repeated(&self) -> u64 {
        self.repeated
    }

    fn forget_one_if_full(&mut self) {
        if self.order.len() == MAX_MARKS
            && let Some(oldest) = self.order.pop_front()
            && self
                .marks
                .remove(&oldest)
                .is_some_and(|m| m.deliveries == 0)
        {
            self.undelivered_before += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_by_mark_and_counts_what_has_no_partner() {
        let mut matcher = Matcher::default();
        let mut none = |_, _| panic!("nothing waits");
        matcher.incoming(b"1-1", 100, false, &mut none);
        matcher.incoming(b"1-2", 200, false, &mut none);
        assert_eq!(matcher.outgoing(b"1-1", 150), Some(50));
        assert_eq!(matcher.outgoing(b"1-1", 175), Some(75));
        matcher.incoming(b"1-1", 175, false, &mut none);
        assert_eq!(matcher.outgoing(b"1-1", 99), None);
        assert_eq!(matcher.outgoing(b"2-1", 150), None);
        assert_eq!(
            (
                matcher.undelivered(),
                matcher.repeated(),
                matcher.unmatched()
            ),
            (1, 1, 2)
        );
    }

    #[test]
    fn a_mark_later_than_its_last_delivery_is_a_new_message() {
        let mut matcher = Matcher::default();
        let mut none = |_, _| panic!("nothing waits");
        matcher.incoming(b"1-1", 100, false, &mut none);
        assert_eq!(matcher.outgoing(b"1-1", 150), Some(50));
        matcher.incoming(b"1-1", 900, true, &mut none);
        assert_eq!(matcher.outgoing(b"1-1", 950), Some(850));
        matcher.incoming(b"1-1", 1_000, false, &mut none);
        assert_eq!((matcher.undelivered(), matcher.repeated()), (1, 1));
        matcher.incoming(b"1-1", 2_000, false, &mut none);
        assert_eq!(matcher.outgoing(b"1-1", 2_030), Some(30));
        assert_eq!((matcher.undelivered(), matcher.unmatched()), (1, 0));
    }

    #[test]
    fn deliveries_wait_for_a_message_that_is_seen_later() {
        let mut matcher = Matcher::default();
        assert_eq!(matcher.outgoing(b"1-1", 150), None);
        assert_eq!(matcher.outgoing(b"1-1", 90), None);
        assert_eq!(matcher.unmatched(), 2);
        let mut found = Vec::new();
        let found_one = |time, latency| found.push((time, latency));
        matcher.incoming(b"1-1", 100, false, found_one);
        assert_eq!(found, [(150, 50)]);
        assert_eq!((matcher.undelivered(), matcher.unmatched()), (0, 1));
    }
}
