//! The messages of a feed that have arrived, if several gateways publish the same feed.
//!
//! A message is identified by its channel, epoch, number and index ([`Identity`]). It is taken from
//! the first gateway that delivers it, so that each gateway fills the gaps of the others. See ADR
//! 0027.

use fanfare_dds::AsItIs;
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

/// Returns the hash of a name.
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
type Seen = HashMap<u64, Counts, BuildHasherDefault<AsItIs>>;

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
    /// The newest number.
    head: u64,
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
    /// The generation in which it last delivered a message that was new or that the others had.
    place: u64,
    /// The number of messages that were taken when it last delivered such a message.
    at: u64,
    /// Its last number.
    last: u64,
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
            window,
            reserved: 0,
        }
    }

    /// Decides on a message and remembers it. `origin` is a nonzero number that identifies its
    /// publisher.
    pub fn take(&mut self, identity: &Identity<'_>, origin: u64) -> Verdict {
        let verdict = self.look(identity, origin);
        self.clock += 1;
        let place = self.place(identity.channel);
        if let Some(channel) = self.known.get_mut(place) {
            channel.last_seen = self.clock;
            channel.note(identity, (origin, self.clock), verdict);
        }
        verdict
    }

    /// Decides on a message without remembering it.
    pub(crate) fn look(&self, identity: &Identity<'_>, origin: u64) -> Verdict {
        let channel = self.known.iter().find(|c| c.name == identity.channel);
        channel.map_or(Verdict::New, |channel| channel.look(identity, origin))
    }

    /// Returns whether other gateways publish the channel of this message, and every other one that
    /// its publisher does, so that they may deliver what the publisher left out.
    pub(super) fn are_shared(&self, identity: &Identity<'_>, origin: u64) -> bool {
        let is_of = |channel: &Channel| channel.name == identity.channel;
        self.known.iter().any(is_of)
            && self.known.iter().all(|channel| {
                let is_own = is_of(channel) || channel.heard().any(|own| own == origin);
                !is_own || channel.heard().any(|other| other != origin)
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
        name.clone_into(&mut self.name);
    }

    /// Returns the gateways that publish it, as far as their last messages show.
    fn heard(&self) -> impl Iterator<Item = u64> {
        let is_heard = move |g: &&Gateway| g.origin != 0 && self.taken - g.at < SILENT;
        self.gateways.iter().filter(is_heard).map(|g| g.origin)
    }

    fn counts(&self, key: u64) -> Option<Counts> {
        let young = self.young.get(&key);
        young.or_else(|| self.old.get(&key)).copied()
    }

    fn look(&self, identity: &Identity<'_>, origin: u64) -> Verdict {
        let slot = self.gateways.iter().position(|g| g.origin == origin);
        if let Some(counts) = self.counts(identity.key()) {
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
        // A gateway whose numbers go back has restarted. One ahead of all others is not behind.
        let is_behind = gateway.is_some_and(|g| {
            let (number, lost) = (identity.number, g.place + 1 < self.generation);
            lost && g.last < number && number <= self.head
        });
        if is_behind {
            Verdict::Behind
        } else {
            Verdict::New
        }
    }

    fn note(&mut self, identity: &Identity<'_>, (origin, last_seen): (u64, u64), verdict: Verdict) {
        let slot = self.slot(origin);
        self.taken += u64::from(verdict == Verdict::New);
        if let Some(gateway) = self.gateways.get_mut(slot) {
            if verdict == Verdict::New
                && (identity.number > self.head || identity.number <= gateway.last)
            {
                self.head = identity.number;
            }
            (gateway.origin, gateway.last_seen) = (origin, last_seen);
            gateway.last = identity.number;
            if verdict != Verdict::Behind {
                (gateway.place, gateway.at) = (self.generation, self.taken);
            }
        }
        if verdict == Verdict::Behind {
            return;
        }
        let key = identity.key();
        let mut counts = self.counts(key).unwrap_or_default();
        match counts.get_mut(slot) {
            Some(count) if *count < u8::MAX => *count += 1,
            _ => counts = std::array::from_fn(|place| u8::from(place == slot)),
        }
        if self.young.len() >= self.window && !self.young.contains_key(&key) {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
            self.generation += 1;
        }
        self.young.insert(key, counts);
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
            let of_slot = |counts: &mut Counts| counts.get_mut(slot).map_or((), |c| *c = 0);
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(number: u64, epoch: u64) -> Identity<'static> {
        Identity {
            channel: b"feed",
            epoch,
            number,
            index: 0,
        }
    }

    fn take(channels: &mut Channels, identity: Identity<'_>, origin: u64) -> Verdict {
        let looked = channels.look(&identity, origin);
        let verdict = channels.take(&identity, origin);
        assert_eq!(looked, verdict);
        verdict
    }

    #[test]
    fn the_first_wins_and_the_second_fills() {
        let mut channels = Channels::default();
        let mut take = |number, origin| take(&mut channels, of(number, number), origin);
        assert_eq!(take(1, 7), Verdict::New);
        assert_eq!(take(1, 8), Verdict::Before);
        assert_eq!(take(3, 7), Verdict::New);
        assert_eq!(take(2, 8), Verdict::New, "the first had lost it");
        assert_eq!(take(3, 8), Verdict::Before);
        assert_eq!(take(4, 8), Verdict::New);
        assert_eq!(take(4, 7), Verdict::Before);
    }

    #[test]
    fn a_number_that_comes_again_with_other_content_is_another_message() {
        let mut channels = Channels::default();
        let mut take = |number, epoch, origin| take(&mut channels, of(number, epoch), origin);
        for run in 1..=5 {
            for number in 1..=13 {
                let epoch = run * 100 + number;
                assert_eq!(take(number, epoch, 7), Verdict::New);
                // The second is a cycle behind, and has lost a number.
                if run > 1 && number != 5 {
                    assert_eq!(take(number, epoch - 100, 8), Verdict::Before);
                }
            }
        }
    }

    #[test]
    fn one_gateway_may_say_the_same_twice() {
        let mut channels = Channels::default();
        let mut take = |origin| take(&mut channels, of(1, 1), origin);
        assert_eq!([take(7), take(7)], [Verdict::New; 2]);
        assert_eq!([take(8), take(8)], [Verdict::Before; 2]);
        assert_eq!([take(8), take(7)], [Verdict::New, Verdict::Before]);
        (0..1_000).for_each(|_| assert_eq!(take(7), Verdict::New));
    }

    #[test]
    fn channels_and_indices_are_told_apart() {
        let mut channels = Channels::default();
        for (index, channel) in [(0, &b"a"[..]), (1, b"a"), (0, b"b")] {
            let identity = Identity {
                channel,
                index,
                ..of(1, 1)
            };
            assert_eq!(take(&mut channels, identity, 7), Verdict::New);
            assert_eq!(take(&mut channels, identity, 8), Verdict::Before);
        }
    }

    #[test]
    fn a_feed_is_shared_while_another_gateway_publishes_it() {
        let mut channels = Channels::default();
        let shared = |channels: &Channels, number| channels.are_shared(&of(number, 1), 8);
        for number in 1..=10 {
            take(&mut channels, of(number, 1), 8);
            assert_eq!(shared(&channels, number), number > 1);
            take(&mut channels, of(number, 1), 7);
        }
        // The first is stopped.
        let last = 10 + SILENT;
        for number in 11..last {
            take(&mut channels, of(number, 1), 8);
        }
        assert!(shared(&channels, last));
        take(&mut channels, of(last, 1), 8);
        assert!(!shared(&channels, last + 1));
        // It is started again, under another origin.
        take(&mut channels, of(last, 1), 9);
        assert!(shared(&channels, last + 1));
    }

    #[test]
    fn a_feed_of_one_gateway_beside_a_shared_one_may_be_what_is_missing() {
        let mut channels = Channels::default();
        for origin in [7, 8] {
            take(&mut channels, of(1, 1), origin);
        }
        let alone = Identity {
            channel: b"alone",
            ..of(1, 1)
        };
        take(&mut channels, alone, 8);
        assert!(channels.are_shared(&of(2, 1), 7));
        assert!(!channels.are_shared(&of(2, 1), 8));
        assert!(!channels.are_shared(&alone, 8));
        assert!(!channels.are_shared(&Identity::default(), 7));
    }

    #[test]
    fn who_is_behind_by_more_than_is_remembered_brings_nothing_old() {
        let mut channels = Channels::default();
        let mut take = |number, origin| take(&mut channels, of(number, number), origin);
        assert_eq!([take(1, 7), take(1, 8)], [Verdict::New, Verdict::Before]);
        let far = 3 * WINDOW as u64;
        for number in 2..=far {
            assert_eq!(take(number, 7), Verdict::New);
        }
        assert_eq!(take(2, 8), Verdict::Behind);
        assert_eq!(take(far - 1, 8), Verdict::Before, "it has caught up");
        assert_eq!(take(far, 8), Verdict::Before);
        assert_eq!(take(far + 1, 8), Verdict::New);
        for number in far + 2..=2 * far {
            assert_eq!(take(number, 7), Verdict::New);
        }
        assert_eq!(take(1, 8), Verdict::New, "its numbers begin again");
        assert_eq!(take(2, 8), Verdict::New);
        assert_eq!(take(2 * far + 9, 8), Verdict::New);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut channels = Channels::default();
        for n in 0..100_u64 {
            let name = n.to_string();
            let channel = name.as_bytes();
            for origin in 1..100 {
                take(
                    &mut channels,
                    Identity {
                        channel,
                        ..of(n, n)
                    },
                    origin,
                );
            }
        }
        assert_eq!(channels.known.len(), MOST_CHANNELS);
        let one = &mut channels.known[0];
        let capacity = one.young.capacity();
        for n in 0..5 * WINDOW as u64 {
            one.note(&of(n, 1_000 + n), (3, n), Verdict::New);
        }
        assert_eq!(
            (one.young.capacity(), one.old.capacity()),
            (capacity, capacity)
        );
    }

    #[test]
    fn an_epoch_is_of_the_whole_content() {
        let all = [
            epoch(b"X", b"1=2\x01"),
            epoch(b"W", b"1=2\x01"),
            epoch(b"X", b"1=3\x01"),
            epoch(b"X", b"1=2\x01\0"),
            epoch(b"X", b"12345678"),
            epoch(b"X", b"12345678\0"),
            epoch(b"X1", b"=2\x01"),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one), "{i}");
        }
    }

    proptest! {
        /// Checks that the messages taken are the union of both, each once, whatever either loses,
        /// and however far one is ahead.
        #[test]
        fn two_that_lose_are_one_that_loses_what_both_lost(
            lost in prop::collection::vec((any::<bool>(), any::<bool>()), 1..200),
            turns in prop::collection::vec(any::<bool>(), 400),
            cycle in 1_u64..50,
        ) {
            let of_gateway = |which: usize| {
                let all = (0..).zip(&lost);
                let has = move |lost: &(bool, bool)| !if which == 0 { lost.0 } else { lost.1 };
                all.filter(move |(_, l)| has(l)).map(|(n, _)| n).collect::<Vec<u64>>()
            };
            let streams = [of_gateway(0), of_gateway(1)];
            let (mut at, mut channels) = ([0, 0], Channels::default());
            let mut came = Vec::new();
            let rest = [false, true].map(|second| std::iter::repeat_n(second, lost.len()));
            for second in turns.into_iter().chain(rest.into_iter().flatten()) {
                let which = usize::from(second);
                let Some(&n) = streams[which].get(at[which]) else { continue };
                at[which] += 1;
                if take(&mut channels, of(n % cycle, n), 7 + which as u64) == Verdict::New {
                    came.push(n);
                }
            }
            came.sort_unstable();
            let mut wanted: Vec<u64> = streams.concat();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(came, wanted);
        }
    }
}
