//! The messages of a feed that have arrived, if several gateways publish the same feed.
//!
//! A message is identified by its channel, epoch, number and index ([`Identity`]). It is taken from
//! the first gateway that delivers it, so that each gateway fills the gaps of the others. See ADR
//! 0027 and 0081.

use fanfare_dds::AsItIs;
use fanfare_fix::session::SECOND;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// The most channels of a topic that are remembered. A further one replaces the one silent for
/// longest.
const MOST_CHANNELS: usize = 8;

/// The most gateways of a channel that are distinguished. A further one replaces the one silent for
/// longest.
const MOST_GATEWAYS: usize = 8;

/// The messages of a channel that are remembered: at least this many, and at most twice as many.
const WINDOW: usize = 57_344;

/// The messages of a channel without one of a gateway, after which that gateway no longer counts as
/// one that publishes the channel. It is at least the number of samples that are taken at once,
/// because these come in the order of their gateways.
pub(super) const SILENT: u64 = 8_192;

/// The time after which a gateway judged far behind is alone, if no other one has
/// brought anything new, in nanoseconds. Its numbers then began again while it was not heard.
const ALONE: u64 = 10 * SECOND;

/// The identity of a message of a feed, independent of its publisher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity<'a> {
    /// The name of the feed, or empty for a message that belongs to no feed.
    pub channel: &'a [u8],
    /// A hash that distinguishes messages of one number when numbers begin again, or 0 until it is
    /// computed.
    pub epoch: u64,
    /// The feed's own number.
    pub number: u64,
    /// The index among several messages with this number, from 0.
    pub index: u32,
}

impl Identity<'_> {
    /// Returns whether the message belongs to a feed with numbers.
    pub(crate) fn is_some(&self) -> bool {
        !self.channel.is_empty()
    }

    fn key(&self) -> u64 {
        let index = u64::from(self.index);
        mix(mix(mix(0, self.epoch), self.number), index)
    }
}

/// Returns the epoch of a message with this content. It is never 0, and is the same at every
/// publisher, whatever its start and its losses. Does not allocate.
#[must_use]
pub fn epoch(msg_type: &[u8], fields: &[u8]) -> u64 {
    let mut hash = mix(0, msg_type.len() as u64);
    for part in [msg_type, fields] {
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            hash = mix(hash, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (place, byte) in last.iter_mut().zip(rest) {
            *place = *byte;
        }
        hash = mix(hash, u64::from_le_bytes(last) ^ (part.len() as u64) << 56);
    }
    hash.max(1)
}

/// Returns the epoch of a message of this content that its feed sent at a time of this hash, or
/// with the hash 0, without a time. Equal messages of two runs differ in it.
pub(crate) fn epoch_at(epoch: u64, sent: u64) -> u64 {
    match sent {
        0 => epoch,
        _ => mix(epoch, sent).max(1),
    }
}

/// Returns the hash of a name, or of another value. It is never 0.
pub(crate) fn hash_of(name: &[u8]) -> u64 {
    epoch(b"", name)
}

/// Folds a word into a hash by both halves of a wide product, so that each bit reaches each.
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(0xd6e8_feb8_6659_fd93_u64 ^ hash.rotate_left(32));
    (product as u64) ^ (product >> 64) as u64
}

/// The number of times that each gateway has delivered a message.
type Counts = [u8; MOST_GATEWAYS];
type Seen = HashMap<u64, Taken, BuildHasherDefault<AsItIs>>;

/// A message that was taken.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    counts: Counts,
    /// Whether another gateway had passed it, so that it was taken among later ones: a gateway that
    /// delivers it again may be far behind these.
    is_late: bool,
    /// The run of numbers in which it was taken last.
    run: u32,
}

/// The messages that have arrived on one topic, of up to eight channels and from up to eight
/// publishers of each. A message is taken from the first publisher that delivers it.
///
/// ```
/// use fanfare_gateway::{Channels, Identity, Verdict, epoch};
///
/// let mut channels = Channels::of_window(1024);
/// let message = Identity {
///     channel: b"feed",
///     epoch: epoch(b"X", b"268=0\x01"),
///     number: 7,
///     index: 0,
/// };
/// let (first, second) = (1, 2);
/// assert_eq!(channels.take(&message, first), Verdict::New);
/// assert_eq!(channels.take(&message, second), Verdict::Before);
/// ```
#[derive(Debug)]
pub struct Channels {
    known: Vec<Channel>,
    clock: u64,
    /// The time, in nanoseconds of a clock that never steps, or 0 where none is set.
    now: u64,
    /// The least number of messages of a channel that are remembered.
    window: usize,
    /// The messages for which a new channel allocates memory at once.
    reserved: usize,
}

#[derive(Debug)]
struct Channel {
    name: Vec<u8>,
    last_seen: u64,
    gateways: [Gateway; MOST_GATEWAYS],
    /// The latest messages, and those from before `young` was started.
    young: Seen,
    old: Seen,
    /// The number of times that `young` became `old`.
    generation: u64,
    /// The newest number, in the newest run.
    head: u64,
    /// The number of times that the numbers are known to have begun again.
    run: u32,
    /// The time of the last message that was taken.
    taken_at: u64,
    /// The newest number when `young` was started, and when `old` was: higher ones have arrived
    /// since, and are remembered.
    young_from: u64,
    old_from: u64,
    /// The number of messages taken so far.
    taken: u64,
    /// The window of [`Channels`].
    window: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Gateway {
    /// The origin, or 0 for a free slot.
    origin: u64,
    last_seen: u64,
    /// The newest generation of the messages that it delivered and that were new or that the others
    /// had. Messages that were taken late do not count, nor, where its messages are not in order,
    /// those of the generation before the current one.
    place: u64,
    /// The number of messages that were taken when it last delivered such a message.
    at: u64,
    /// The number of the message that it wrote last, of those delivered.
    last: u64,
    /// The time at which it wrote that message.
    written: i64,
    /// The run of the message that it delivered last.
    run: u32,
    /// The time since which its messages are dropped because it is far behind.
    dropped_since: Option<u64>,
}

/// The publisher of a message.
#[derive(Debug, Clone, Copy)]
struct Source {
    origin: u64,
    /// The time at which it wrote the message, or 0 if its messages are delivered in the order in
    /// which it wrote them.
    written: i64,
    /// The time of [`Channels`].
    now: u64,
}

impl Gateway {
    /// Returns whether the numbers begin again with a message: it was written after the last one,
    /// and has a lower number. A message with the same number is of the same packet.
    const fn begins_again(&self, number: u64, written: i64) -> bool {
        number < self.last && written >= self.written
    }
}

/// The decision on a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Take it: no publisher has delivered it as often.
    New,
    /// Drop it: another publisher has delivered it.
    Before,
    /// Drop it: its publisher is behind the others by more than the window, so it may have been
    /// delivered.
    Behind,
}

impl Default for Channels {
    /// Remembers 57,344 messages of each channel, and allocates the memory of a new channel at
    /// once.
    fn default() -> Self {
        Self {
            reserved: WINDOW,
            ..Self::of_window(WINDOW)
        }
    }
}

impl Channels {
    /// Remembers at least `window` messages of each channel, and at most twice as many. The memory
    /// grows as they arrive.
    #[must_use]
    pub const fn of_window(window: usize) -> Self {
        Self {
            known: Vec::new(),
            clock: 0,
            now: 0,
            window,
            reserved: 0,
        }
    }

    /// Decides on a message and remembers it. `origin` is a nonzero number that identifies its
    /// publisher, whose messages come in the order in which it wrote them.
    pub fn take(&mut self, identity: &Identity<'_>, origin: u64) -> Verdict {
        self.take_written(identity, origin, 0)
    }

    /// Decides on a message and remembers it, as [`take`](Self::take) does. Messages of a publisher
    /// may come in another order than that in which it wrote them, as those of a keyed topic do:
    /// `written` is the publisher's time of the message.
    pub fn take_written(&mut self, identity: &Identity<'_>, origin: u64, written: i64) -> Verdict {
        let source = Source {
            origin,
            written,
            now: self.now,
        };
        let verdict = self.decide(identity, source);
        self.clock += 1;
        let place = self.place(identity.channel);
        if let Some(channel) = self.known.get_mut(place) {
            channel.last_seen = self.clock;
            channel.note(identity, source, self.clock, verdict);
        }
        verdict
    }

    /// Decides on a message without remembering it.
    pub(crate) fn look(&self, identity: &Identity<'_>, origin: u64) -> Verdict {
        let source = Source {
            origin,
            written: 0,
            now: self.now,
        };
        self.decide(identity, source)
    }

    /// Sets the time, in nanoseconds of a clock that never steps.
    pub(super) const fn set_time(&mut self, now: u64) {
        self.now = now;
    }

    fn decide(&self, identity: &Identity<'_>, source: Source) -> Verdict {
        let channel = self.known.iter().find(|c| c.name == identity.channel);
        channel.map_or(Verdict::New, |channel| channel.look(identity, source))
    }

    /// Returns whether other gateways publish the channel of this message, and every other one that
    /// its publisher does, so that they may deliver what the publisher left out.
    pub(super) fn are_shared(&self, identity: &Identity<'_>, origin: u64) -> bool {
        let is_of = |channel: &Channel| channel.name == identity.channel;
        self.known.iter().any(is_of)
            && self.known.iter().all(|channel| {
                let is_own = is_of(channel) || channel.heard().any(|own| own.origin == origin);
                !is_own || channel.heard().any(|other| other.origin != origin)
            })
    }

    /// Returns whether another gateway than `origin` publishes this channel and has delivered this
    /// number or a later one, since the numbers began again last.
    pub(super) fn is_reached_by_another(&self, name: &[u8], origin: u64, number: u64) -> bool {
        let channel = self.known.iter().find(|channel| channel.name == name);
        channel.is_some_and(|channel| {
            let is_other = |g: &&Gateway| g.origin != origin && g.run == channel.run;
            let mut lasts = channel.heard().filter(is_other).map(|other| other.last);
            lasts.any(|last| (number..=channel.head).contains(&last))
        })
    }

    fn place(&mut self, name: &[u8]) -> usize {
        if let Some(place) = self.known.iter().position(|c| c.name == name) {
            return place;
        }
        if self.known.len() < MOST_CHANNELS {
            let channel = Channel::new(name, self.window, self.reserved);
            self.known.push(channel);
            return self.known.len() - 1;
        }
        let all = self.known.iter_mut().enumerate();
        let Some((place, oldest)) = all.min_by_key(|(_, c)| c.last_seen) else {
            return 0;
        };
        oldest.forget(name);
        place
    }
}

impl Channel {
    fn new(name: &[u8], window: usize, reserved: usize) -> Self {
        let seen = || Seen::with_capacity_and_hasher(reserved, BuildHasherDefault::default());
        Self {
            name: name.to_vec(),
            last_seen: 0,
            gateways: [Gateway::default(); MOST_GATEWAYS],
            young: seen(),
            old: seen(),
            generation: 0,
            head: 0,
            run: 0,
            taken_at: 0,
            young_from: 0,
            old_from: 0,
            taken: 0,
            window,
        }
    }

    /// Resets the memory for another channel.
    fn forget(&mut self, name: &[u8]) {
        self.young.clear();
        self.old.clear();
        self.gateways = Default::default();
        (self.generation, self.head, self.taken) = (0, 0, 0);
        (self.young_from, self.old_from) = (0, 0);
        (self.run, self.taken_at) = (0, 0);
        name.clone_into(&mut self.name);
    }

    /// Returns the gateways that publish it, as far as their last messages show.
    fn heard(&self) -> impl Iterator<Item = &Gateway> {
        let is_heard = move |g: &&Gateway| g.origin != 0 && self.taken - g.at < SILENT;
        self.gateways.iter().filter(is_heard)
    }

    fn seen(&self, key: u64) -> Option<Taken> {
        let young = self.young.get(&key);
        young.or_else(|| self.old.get(&key)).copied()
    }

    fn look(&self, identity: &Identity<'_>, source: Source) -> Verdict {
        let Source {
            origin,
            written,
            now,
        } = source;
        let slot = self.gateways.iter().position(|g| g.origin == origin);
        if let Some(Taken { counts, .. }) = self.seen(identity.key()) {
            let own = slot.and_then(|slot| counts.get(slot)).copied();
            let most = counts.into_iter().max().unwrap_or(0);
            let is_new = own.unwrap_or(0) == most || own == Some(u8::MAX);
            return if is_new {
                Verdict::New
            } else {
                Verdict::Before
            };
        }
        let gateway = slot.and_then(|slot| self.gateways.get(slot));
        // A gateway whose numbers go back has restarted. One ahead of all others is not behind, nor
        // is one whose message would be remembered.
        let is_behind = gateway.is_some_and(|g| {
            let (number, lost) = (identity.number, g.place + 1 < self.generation);
            let has_restarted = g.begins_again(number, written) || self.is_alone(g, now);
            lost && self.is_forgotten(number) && !has_restarted
        });
        if is_behind {
            Verdict::Behind
        } else {
            Verdict::New
        }
    }

    /// Returns whether a message of this number may have been taken and forgotten, unless the
    /// numbers have begun again since.
    fn is_forgotten(&self, number: u64) -> bool {
        number <= self.head.min(self.old_from)
    }

    /// Returns whether a gateway judged far behind is the only one that brings the channel.
    fn is_alone(&self, gateway: &Gateway, now: u64) -> bool {
        let since = gateway.dropped_since.map(|since| since.max(self.taken_at));
        since.is_some_and(|since| now.saturating_sub(since) >= ALONE)
    }

    fn note(
        &mut self,
        identity: &Identity<'_>,
        Source {
            origin,
            written,
            now,
        }: Source,
        last_seen: u64,
        verdict: Verdict,
    ) {
        let is_known = self.gateways.iter().any(|g| g.origin == origin);
        let (slot, number) = (self.slot(origin), identity.number);
        let is_new = verdict == Verdict::New;
        let is_forgotten = is_new && self.is_forgotten(number);
        let mut is_first = is_new && !self.is_passed(slot, number);
        let (mut begins_again, mut run) = (false, self.run);
        self.taken += u64::from(is_new);
        if let Some(gateway) = self.gateways.get_mut(slot) {
            // Numbers far below, of a gateway that is new or alone, are of another run.
            let is_another = is_forgotten && (!is_known || gateway.dropped_since.is_some());
            begins_again = gateway.begins_again(number, written) || is_another;
            run = gateway.run;
            if is_new && (number > self.head || begins_again) {
                (self.head, is_first) = (number, true);
                self.run = self.run.wrapping_add(begins_again.into());
                run = self.run;
            }
            (gateway.origin, gateway.last_seen) = (origin, last_seen);
            gateway.dropped_since = match verdict {
                Verdict::Behind => gateway.dropped_since.or(Some(now)),
                Verdict::New | Verdict::Before => None,
            };
            if written >= gateway.written {
                (gateway.last, gateway.written) = (number, written);
            }
        }
        if verdict == Verdict::Behind {
            return;
        }
        if is_new {
            self.taken_at = now;
        }
        let is_late = is_new && !is_first;
        let (place, run) = self.count(identity.key(), slot, verdict, (is_late, run));
        let place = place.or(begins_again.then_some(self.generation));
        if let Some(gateway) = self.gateways.get_mut(slot) {
            (gateway.at, gateway.run) = (self.taken, run);
            let place = place.filter(|place| written == 0 || *place == self.generation);
            gateway.place = gateway.place.max(place.unwrap_or(0));
        }
    }

    /// Returns whether another gateway than the one in this slot has delivered this number or a
    /// later one lately.
    fn is_passed(&self, slot: usize, number: u64) -> bool {
        let lately = SILENT.min(self.window as u64);
        let is_heard = |g: &Gateway| g.origin != 0 && self.taken - g.at < lately;
        let others = (0..).zip(&self.gateways);
        let mut others = others.filter(|(place, other)| *place != slot && is_heard(other));
        others.any(|(_, other)| other.last >= number)
    }

    /// Counts a message that the gateway in this slot has delivered. If it is taken, it is so late
    /// or not, and in this run. Returns its generation, unless it was taken late, and its run.
    fn count(
        &mut self,
        key: u64,
        slot: usize,
        verdict: Verdict,
        (is_late, run): (bool, u32),
    ) -> (Option<u64>, u32) {
        let is_young = self.young.contains_key(&key);
        let mut taken = self.seen(key).unwrap_or_default();
        match taken.counts.get_mut(slot) {
            Some(count) if *count < u8::MAX => *count += 1,
            _ => taken.counts = std::array::from_fn(|place| u8::from(place == slot)),
        }
        if verdict == Verdict::Before && !is_young {
            // It ages as it is: among the latest it would replace those behind it, which this
            // gateway is about to deliver.
            self.old.insert(key, taken);
            let place = self.generation.saturating_sub(1);
            return ((!taken.is_late).then_some(place), taken.run);
        }
        if self.young.len() >= self.window && !is_young {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
            self.generation += 1;
            (self.old_from, self.young_from) = (self.young_from, self.head);
        }
        if verdict == Verdict::New {
            (taken.is_late, taken.run) = (is_late, run);
        }
        self.young.insert(key, taken);
        ((!taken.is_late).then_some(self.generation), taken.run)
    }

    /// Returns the gateway's slot. A new gateway takes that of the one silent for longest.
    fn slot(&mut self, origin: u64) -> usize {
        let all = &self.gateways;
        if let Some(slot) = all.iter().position(|g| g.origin == origin) {
            return slot;
        }
        let oldest = all.iter().enumerate().min_by_key(|(_, g)| g.last_seen);
        let slot = oldest.map_or(0, |(slot, _)| slot);
        if all.get(slot).is_some_and(|g| g.origin != 0) {
            let of_slot = |taken: &mut Taken| taken.counts.get_mut(slot).map_or((), |c| *c = 0);
            self.young.values_mut().for_each(of_slot);
            self.old.values_mut().for_each(of_slot);
        }
        if let Some(gateway) = self.gateways.get_mut(slot) {
            *gateway = Gateway {
                origin,
                place: self.generation,
                ..Gateway::default()
            };
        }
        slot
    }
}

#[cfg(test)]
mod tests;
