//! The merge of the samples of several topics into the order of the gateways that published them.
//!
//! Each MsgType(35) is a topic, and DDS keeps no order between topics. A gateway numbers its
//! messages over all its topics, by `Order`. A sample whose Order does not follow the last one of
//! its origin shows a *hole*: one between the two is still on the way, or lost. The merge takes
//! once more from each topic that has nothing of the origin left, which fills the hole if the
//! takes had only raced with the publisher. A hole that stays is waited for, up to [`PATIENCE`], if
//! a sample may still fill it: the topics are reliable, all that the origin publishes on are taken
//! from, and one of them has nothing of the origin left. Samples of a topic arrive in their order,
//! so a topic that has a later sample of the origin has no earlier one to bring.

mod feeds;
mod senders;

#[cfg(test)]
mod tests;

use fanfare_fix::session::SECOND;
use feeds::{FeedOrder, Place};
use senders::Senders;

/// The longest time that a sample waits for earlier ones of its origin, from when it was taken, in
/// nanoseconds. It is longer than several retransmissions take.
pub(crate) const PATIENCE: u64 = SECOND;

/// The place of a sample that is no longer kept.
pub(crate) const GONE: u32 = u32::MAX;

/// A sample, as far as its order depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Arrival {
    /// The gateway that the message entered first.
    pub(crate) origin: u64,
    /// Its number among all that its origin published, or 0 if unknown.
    pub(crate) order: u64,
    /// Its number among those on its topic.
    pub(crate) number: u64,
    /// The topics that its origin publishes on, as bits by index. It is 0 if they are unknown, or
    /// not all taken from.
    pub(crate) types: u64,
    /// The hash of its channel, and its number and index there. The hash is 0 if it belongs to no
    /// feed.
    pub(crate) channel: u64,
    pub(crate) in_feed: (u64, u32),
    /// Whether messages of its feed are missing before it.
    pub(crate) has_hole: bool,
    /// The index among the samples that its topic keeps.
    pub(crate) place: u32,
}

/// The order of a delivered sample after the last one of its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// It comes after all that were delivered.
    None,
    /// Later ones were delivered before it, and the last one was not late.
    First,
    /// As [`First`](Self::First), but the last one was late, too.
    Further,
}

/// The outcome of delivering a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is no room: it is delivered again in the next turn.
    Full,
    Delivered,
    /// It was of no use.
    Dropped,
}

/// Both ends of a merge: the topics that it takes from, and the receiver of the samples.
pub(crate) trait Ends {
    type Error;

    /// Takes all that has arrived on a topic, beside the samples that [`Merge::compact`] keeps, and
    /// passes it to [`Merge::push`]. Returns the number of samples.
    fn take(&mut self, topic: usize, merge: &mut Merge) -> Result<usize, Self::Error>;

    /// Delivers a sample.
    fn deliver(&mut self, topic: usize, sample: &Arrival, late: Lateness) -> Outcome;
}

/// The samples of all topics that wait for their turn. Allocates on construction only.
pub(crate) struct Merge {
    /// The samples. Those before `start` are delivered, those before `sorted` are in order.
    waiting: Vec<Waiting>,
    start: usize,
    sorted: usize,
    /// Whether samples behind `start` are delivered, too.
    has_gaps: bool,
    topics: Vec<Topic>,
    senders: Senders,
    /// The most samples of a topic beside which a further take has room.
    most: usize,
    are_reliable: bool,
    /// The time of this turn, in nanoseconds.
    now: u64,
    /// The number of takes, and of walks over the samples.
    takes: u64,
    walks: u64,
    /// Whether the last walk reached the end, so that all samples that are left wait for others.
    is_walked: bool,
    /// The topics from which a further take is due, as bits.
    wanted: u64,
    /// The topics that are closed, as bits.
    closed: u64,
    deadline: Option<u64>,
    /// The new places of samples, by their former ones.
    moved: Vec<u32>,
    by_feed: FeedOrder,
}

/// A sample that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    arrival: Arrival,
    topic: u8,
    is_delivered: bool,
    /// The slot of its origin, or `None` if its Order is unknown.
    slot: Option<u16>,
    /// The time at which it was taken, and the number of that take.
    taken_at: u64,
    take: u64,
    /// The time since which an earlier sample of its origin is known to be on the way: the first
    /// time at which it or a later one was taken.
    since: u64,
    /// Its rank among those that wait, where several gateways have a feed.
    rank: usize,
}

/// A topic.
#[derive(Debug, Clone, Copy, Default)]
struct Topic {
    /// The number and the time of the last take.
    take: u64,
    taken_at: u64,
    /// The number of its samples that wait.
    left: usize,
    /// Whether so many of its samples wait for others that it cannot be taken from.
    is_stuck: bool,
}

/// The decision on a sample.
enum Fate {
    Due(Lateness),
    Held,
}

impl Merge {
    /// Creates a merge of up to 64 topics, for up to `most` samples of each that a take returns,
    /// and as many that wait. Samples wait for others only if the topics `are_reliable`.
    pub(crate) fn new(topics: usize, most: usize, are_reliable: bool) -> Self {
        Self {
            waiting: Vec::with_capacity(2 * most * topics),
            start: 0,
            sorted: 0,
            has_gaps: false,
            topics: vec![Topic::default(); topics],
            senders: Senders::new(topics),
            most,
            are_reliable,
            now: 0,
            takes: 0,
            walks: 0,
            is_walked: true,
            wanted: 0,
            closed: 0,
            deadline: None,
            moved: Vec::with_capacity(2 * most),
            by_feed: FeedOrder::new(2 * most * topics),
        }
    }

    /// Takes and delivers samples, up to `most`, at this time. Returns the amount of work, which is
    /// 0 only if nothing is due before [`deadline`](Self::deadline) or a new sample.
    ///
    /// # Errors
    /// The error of a take, after which the samples taken before it are still there.
    pub(crate) fn turn<E: Ends>(
        &mut self,
        ends: &mut E,
        now: u64,
        most: usize,
    ) -> Result<usize, E::Error> {
        self.now = now;
        // After the rest of a walk, a take is due.
        let mut work = usize::from(!self.is_walked);
        if self.is_walked {
            work += self.take(ends, u64::MAX)?;
        }
        let walked = self.walk(ends, most);
        work += walked;
        if self.wanted != 0 {
            work += self.take(ends, self.wanted)?;
            work += self.walk(ends, most.saturating_sub(walked));
        }
        Ok(work)
    }

    /// Returns the time at which samples are due without a new one, in nanoseconds.
    pub(crate) const fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Returns the number of samples of a topic that wait.
    pub(crate) fn left(&self, topic: usize) -> usize {
        self.topics.get(topic).map_or(0, |topic| topic.left)
    }

    /// Adds a sample that was taken from a topic.
    pub(crate) fn push(&mut self, topic: usize, arrival: Arrival) {
        let Some(state) = self.topics.get_mut(topic) else {
            return;
        };
        state.left += 1;
        let slot = match arrival.order {
            0 => None,
            _ => self.senders.enter(arrival.origin, topic),
        };
        self.waiting.push(Waiting {
            arrival,
            topic: topic as u8,
            is_delivered: false,
            slot,
            taken_at: self.now,
            take: self.takes,
            since: self.now,
            rank: 0,
        });
    }

    /// Marks a topic that brings nothing more.
    pub(crate) const fn close(&mut self, topic: usize) {
        self.closed |= bit(topic);
    }

    /// Moves the samples of a topic that wait together, from place 0 on. Returns the new place of
    /// each of its `len` places, or [`GONE`] if its sample was delivered.
    pub(crate) fn compact(&mut self, topic: usize, len: usize) -> &[u32] {
        let Self { waiting, moved, .. } = self;
        let own = |w: &&mut Waiting| usize::from(w.topic) == topic && !w.is_delivered;
        moved.clear();
        moved.resize(len, GONE);
        for Waiting { arrival, .. } in waiting.iter_mut().filter(own) {
            if let Some(place) = moved.get_mut(arrival.place as usize) {
                *place = 0;
            }
        }
        let kept = moved.iter_mut().filter(|place| **place != GONE);
        for (new, place) in (0..).zip(kept) {
            *place = new;
        }
        for Waiting { arrival, .. } in waiting.iter_mut().filter(own) {
            let new = moved.get(arrival.place as usize);
            arrival.place = new.copied().unwrap_or(GONE);
        }
        moved
    }

    /// Takes from each of these topics that has room. Returns the number of samples.
    fn take<E: Ends>(&mut self, ends: &mut E, topics: u64) -> Result<usize, E::Error> {
        let mut count = 0;
        for topic in 0..self.topics.len() {
            let is_full = self.left(topic) > self.most;
            if topics & !self.closed & bit(topic) == 0 || is_full {
                continue;
            }
            if self.waiting.capacity() - self.waiting.len() < self.most {
                self.drop_delivered();
            }
            self.takes += 1;
            count += ends.take(topic, self)?;
            if let Some(topic) = self.topics.get_mut(topic) {
                (topic.take, topic.taken_at) = (self.takes, self.now);
            }
        }
        self.put_in_order();
        Ok(count)
    }

    /// Sorts the samples by origin and Order. Samples that several gateways have of one feed are
    /// sorted into the feed's order.
    fn put_in_order(&mut self) {
        let (all, middle) = (&mut self.waiting, self.sorted);
        if middle == all.len() {
            return;
        }
        self.sorted = all.len();
        let own = all.get_mut(self.start..).unwrap_or_default();
        let middle = middle.saturating_sub(self.start);
        let (old, new) = own.split_at_mut(middle);
        new.sort_unstable_by_key(by_origin);
        let last = old.last().map(by_origin);
        let is_behind = new.first().map(by_origin) >= last;
        if !is_behind || !old.is_sorted_by_key(by_origin) {
            own.sort_unstable_by_key(by_origin);
        }
        if let Some(ranks) = self.by_feed.rank(own, in_feed) {
            for (waiting, rank) in own.iter_mut().zip(ranks) {
                waiting.rank = *rank;
            }
            own.sort_unstable_by_key(|w| w.rank);
        }
        self.senders.forget_times();
        for waiting in own.iter_mut().rev() {
            let first = |slot| self.senders.first_time(slot, waiting.taken_at);
            waiting.since = waiting.slot.map_or(waiting.taken_at, first);
        }
    }

    /// Delivers the samples that are due, up to `most`. Returns the amount of work.
    fn walk<E: Ends>(&mut self, ends: &mut E, most: usize) -> usize {
        self.walks += 1;
        self.wanted = 0;
        self.deadline = None;
        let (mut done, mut at) = (0, self.start);
        let mut is_full = false;
        while let (Some(&waiting), true) = (self.waiting.get(at), done < most) {
            if !waiting.is_delivered
                && let Fate::Due(late) = self.fate(&waiting)
            {
                let topic = waiting.topic.into();
                match ends.deliver(topic, &waiting.arrival, late) {
                    Outcome::Full => {
                        is_full = true;
                        break;
                    }
                    outcome => self.note(at, &waiting, (late, outcome)),
                }
                done += 1;
            }
            at += 1;
        }
        self.is_walked = at >= self.waiting.len();
        self.clear_delivered();
        done + usize::from(is_full) + self.look_for_stuck()
    }

    /// Decides on the next sample of an origin.
    fn fate(&mut self, waiting: &Waiting) -> Fate {
        let slot = waiting.slot.and_then(|slot| self.senders.get(slot));
        let Some((origin, left)) = slot else {
            return Fate::Due(Lateness::None);
        };
        if origin.held_in == self.walks {
            return Fate::Held;
        }
        let order = waiting.arrival.order;
        if let Some(last) = origin.last
            && order <= last.saturating_add(1)
        {
            return Fate::Due(match (order < last, origin.is_late) {
                (false, _) => Lateness::None,
                (true, false) => Lateness::First,
                (true, true) => Lateness::Further,
            });
        }
        let types = waiting.arrival.types;
        let may_wait = self.are_reliable && origin.last.is_some();
        let is_whole = may_wait && types != 0 && types & self.closed == 0;
        // While a hole is waited for, and before it is given up, its topics are looked at again.
        let until = match is_whole {
            true => waiting.since.saturating_add(PATIENCE),
            false => waiting.since,
        };
        let due_at = until.min(self.now);
        let (mut is_stuck, mut silent, mut wanted) = (false, 0, 0);
        for (i, (topic, left)) in self.topics.iter().zip(left).enumerate() {
            if *left > 0 {
                is_stuck |= topic.is_stuck;
                continue;
            }
            silent |= bit(i);
            let is_old = topic.take <= waiting.take || topic.taken_at < due_at;
            wanted |= u64::from(is_old) << i;
        }
        wanted &= !self.closed;
        let is_awaited = types & silent != 0 && self.now < until;
        if is_stuck || (wanted == 0 && !is_awaited) {
            return Fate::Due(Lateness::None);
        }
        self.wanted |= wanted;
        if wanted == 0 {
            self.deadline = Some(self.deadline.unwrap_or(until).min(until));
        }
        if let Some(slot) = waiting.slot {
            self.senders.hold(slot, self.walks);
        }
        Fate::Held
    }

    /// Records that a sample was delivered or dropped.
    fn note(&mut self, at: usize, waiting: &Waiting, what: (Lateness, Outcome)) {
        let topic = usize::from(waiting.topic);
        if let Some(topic) = self.topics.get_mut(topic) {
            topic.left -= 1;
        }
        if let Some(slot) = waiting.slot {
            let (late, outcome) = what;
            let is_late = (outcome == Outcome::Delivered).then_some(late != Lateness::None);
            self.senders
                .note(slot, topic, waiting.arrival.order, is_late);
        }
        if let Some(waiting) = self.waiting.get_mut(at) {
            waiting.is_delivered = true;
        }
        if at == self.start {
            self.start += 1;
        } else {
            self.has_gaps = true;
        }
    }

    /// Removes the samples that were delivered, unless they are only a small part in front.
    fn clear_delivered(&mut self) {
        let is_small = self.start <= self.waiting.len() / 2 && !self.has_gaps;
        if !is_small || self.start == self.waiting.len() {
            self.drop_delivered();
        }
    }

    /// Removes the samples that were delivered.
    fn drop_delivered(&mut self) {
        let own = self.waiting.get(..self.sorted).unwrap_or_default();
        self.sorted = own.iter().filter(|waiting| !waiting.is_delivered).count();
        self.waiting.retain(|waiting| !waiting.is_delivered);
        (self.start, self.has_gaps) = (0, false);
    }

    /// Finds the topics whose samples all wait for others and leave no room for a take: the next
    /// walk delivers them. Returns the amount of work that is due.
    fn look_for_stuck(&mut self) -> usize {
        let is_walked = self.is_walked;
        for topic in &mut self.topics {
            topic.is_stuck = is_walked && topic.left > self.most;
        }
        self.topics.iter().filter(|topic| topic.is_stuck).count()
    }
}

/// Returns the bit of a topic, of which there are at most 64.
const fn bit(topic: usize) -> u64 {
    1 << (topic & 63)
}

const fn by_origin(w: &Waiting) -> (u64, u64, u8, u64) {
    let a = &w.arrival;
    (a.origin, a.order, w.topic, a.number)
}

const fn in_feed(w: &Waiting) -> Place {
    let a = &w.arrival;
    Place {
        origin: a.origin,
        channel: a.channel,
        in_feed: a.in_feed,
    }
}
