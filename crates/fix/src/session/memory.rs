//! A message store in memory.

use std::collections::VecDeque;
use std::hint::black_box;
use std::ops::Range;

use fanfare_wire::UtcTimestamp;

use super::chunks::Chunks;
use super::config::Limits;
use super::store::{Again, Entry, Kind, MessageStore, OurReset, Search, StoreError, Stored};

/// A message store that keeps the newest messages in memory, within limits. The oldest make room
/// for new ones, and a resend of those is answered with a gap fill. The store allocates only while
/// it grows to its limits, in pieces of at most 256 KiB or the longest message, and never moves
/// what it keeps.
#[derive(Debug)]
pub struct MemoryStore {
    numbers: Numbers,
    our_reset: OurReset,
    outbox: Chunks,
    index: VecDeque<Slot>,
    /// The number of places of the index that have been touched, from its start.
    touched: usize,
    limits: MemoryLimits,
    retain_from: Option<u64>,
    /// The number of the last application message that made room.
    dropped: u64,
}

/// The limits of a [`MemoryStore`], all of which apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The most messages. With 0 only the numbers are kept, and a resend is answered with one gap
    /// fill.
    pub messages: usize,
    /// The most bytes, those that wait for transmission included. Up to 6 % of them stay empty.
    pub bytes: usize,
    /// The part of `bytes` that is in memory from the start, with the index of the same share of
    /// the messages. The rest is allocated when it is needed, so that a quiet session stays small.
    pub ready: usize,
}

impl Default for MemoryLimits {
    /// Returns limits of 65,536 messages and 16 MiB, with nothing in memory from the start.
    fn default() -> Self {
        Self {
            messages: 1 << 16,
            bytes: 16 << 20,
            ready: 0,
        }
    }
}

impl From<Limits> for MemoryLimits {
    /// Returns the same limits, with nothing in memory from the start.
    fn from(Limits { messages, bytes }: Limits) -> Self {
        let ready = 0;
        Self {
            messages,
            bytes,
            ready,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    seq: u64,
    start: u64,
    len: u32,
    kind: Kind,
}

impl MemoryStore {
    /// Returns a store with these limits. The memory that is ready from the start is allocated and
    /// touched. A resend needs a [`SideBuffer`](super::SideBuffer) besides it.
    pub fn new(limits: impl Into<MemoryLimits>) -> Self {
        let limits = limits.into();
        let ready = limits.ready.min(limits.bytes);
        let mut store = Self {
            numbers: Numbers::default(),
            our_reset: OurReset::None,
            outbox: Chunks::new(limits.bytes, ready),
            index: VecDeque::new(),
            touched: 0,
            limits,
            retain_from: None,
            dropped: 0,
        };
        let share = limits.messages as u128 * ready as u128 / limits.bytes.max(1) as u128;
        store.touch(share as usize);
        store
    }

    /// Returns a store that keeps only the numbers, and answers a resend with one gap fill. Up to
    /// `limit` bytes may wait for transmission. The store allocates no more than waits, so that a
    /// thousand idle sessions cost little.
    pub fn without_resends(limit: usize) -> Self {
        Self::new(MemoryLimits {
            messages: 0,
            bytes: limit,
            ready: 0,
        })
    }

    /// Brings `count` more places of the index into memory.
    fn touch(&mut self, count: usize) {
        let none = Slot {
            seq: 0,
            start: 0,
            len: 0,
            kind: Kind::Admin,
        };
        let len = self.index.len();
        self.index.reserve(count);
        for _ in 0..count {
            self.index.push_back(black_box(none));
        }
        self.index.truncate(len);
        self.touched = len + count;
    }

    /// Returns the number of messages that are kept.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns whether no message is kept.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the number of bytes allocated.
    pub fn capacity(&self) -> usize {
        self.outbox.capacity() + self.index.capacity() * size_of::<Slot>()
    }

    fn may_evict(&self, slot: &Slot) -> bool {
        self.retain_from.is_none_or(|from| slot.seq < from)
    }

    /// Discards the messages of the oldest chunk, and returns whether it could. It cannot if there
    /// are none or one of them is in use.
    fn evict_chunk(&mut self) -> bool {
        let end = self.outbox.oldest_end();
        let is_of_it = |slot: &Slot| slot.start < end;
        if !self.index.front().is_some_and(is_of_it) || self.outbox.waits_below(end) {
            return false;
        }
        while let Some(oldest) = self.index.front().filter(|slot| is_of_it(slot)) {
            if !self.may_evict(oldest) {
                return false;
            }
            self.drop_oldest();
        }
        true
    }

    fn drop_oldest(&mut self) {
        let oldest = self.index.pop_front();
        if let Some(oldest) = oldest.filter(|slot| slot.kind == Kind::App) {
            self.dropped = oldest.seq;
        }
    }

    fn keep_from(&self) -> u64 {
        self.index.front().map_or(u64::MAX, |slot| slot.start)
    }

    #[inline]
    fn make_room(&mut self, len: usize) -> Result<(), StoreError> {
        if self.outbox.has_room(len) {
            return Ok(());
        }
        self.next_chunk(len)
    }

    #[cold]
    fn next_chunk(&mut self, len: usize) -> Result<(), StoreError> {
        loop {
            match self.outbox.make_room(len, self.keep_from()) {
                Err(StoreError::Full) if self.evict_chunk() => {}
                made => return made,
            }
        }
    }

    fn keep(&mut self, range: Range<u64>, kind: Kind) -> Result<(), StoreError> {
        if self.index.len() >= self.limits.messages {
            match self.index.front() {
                Some(oldest) if self.may_evict(oldest) => self.drop_oldest(),
                _ => return Err(StoreError::Full),
            }
        }
        let len = (range.end - range.start) as u32;
        self.index.push_back(Slot {
            seq: self.numbers.sender,
            start: range.start,
            len,
            kind,
        });
        Ok(())
    }
}

impl Default for MemoryStore {
    /// Returns a store with limits of 16 MiB and 65,536 messages.
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl MessageStore for MemoryStore {
    fn next_sender(&self) -> u64 {
        self.numbers.sender
    }

    fn next_target(&self) -> u64 {
        self.numbers.target
    }

    fn set_next_sender(&mut self, seq: u64) -> Result<(), StoreError> {
        self.index
            .truncate(self.index.partition_point(|slot| slot.seq < seq));
        self.numbers.sender = seq;
        self.dropped = self.dropped.min(seq.saturating_sub(1));
        Ok(())
    }

    fn set_next_target(&mut self, seq: u64) -> Result<(), StoreError> {
        self.numbers.target = seq;
        Ok(())
    }

    fn created(&self) -> UtcTimestamp {
        self.numbers.created
    }

    fn reset(&mut self, created: UtcTimestamp) -> Result<(), StoreError> {
        self.numbers = Numbers {
            created,
            ..Numbers::default()
        };
        self.index.clear();
        self.retain_from = None;
        self.dropped = 0;
        Ok(())
    }

    fn our_reset(&self) -> OurReset {
        self.our_reset
    }

    fn set_our_reset(&mut self, reset: OurReset) -> Result<(), StoreError> {
        self.our_reset = reset;
        Ok(())
    }

    fn reserve(&mut self, len: usize) -> Result<&mut [u8], StoreError> {
        self.make_room(len)?;
        Ok(self.outbox.room())
    }

    fn commit(&mut self, range: Range<usize>, entry: Entry) -> Result<(), StoreError> {
        let Entry { kind, transmit } = entry;
        // Without resends nothing ever has to wait behind one.
        if self.keeps() && (kind == Kind::App || !transmit) {
            let start = self.outbox.end();
            self.keep(start..start + range.len() as u64, kind)?;
        }
        self.outbox.append(range, transmit);
        self.numbers.sender += 1;
        Ok(())
    }

    fn record(&mut self, message: &[u8]) -> Result<(), StoreError> {
        if !self.keeps() {
            self.numbers.sender += 1;
            return Ok(());
        }
        let len = message.len();
        self.make_room(len)?;
        let start = self.outbox.end();
        self.keep(start..start + len as u64, Kind::App)?;
        self.outbox.room()[..len].copy_from_slice(message);
        self.outbox.append(0..len, false);
        self.numbers.sender += 1;
        Ok(())
    }

    #[inline]
    fn keeps(&self) -> bool {
        self.limits.messages > 0
    }

    fn dropped(&self) -> u64 {
        self.dropped
    }

    fn search_from(&self, seq: u64) -> Search<'_> {
        let at = self.index.partition_point(|slot| slot.seq < seq);
        let Some(slot) = self.index.get(at) else {
            return Search::Nothing;
        };
        let bytes = self.outbox.bytes(slot.start, slot.len as usize);
        Search::Kept(Stored {
            seq: slot.seq,
            kind: slot.kind,
            bytes,
        })
    }

    fn transmit_again(&mut self, again: &Again<'_>) -> Result<(), StoreError> {
        let place = match &again.kept {
            None => 0..0,
            Some((seq, range)) => {
                let at = self.index.partition_point(|slot| slot.seq < *seq);
                let slot = self.index.get(at).filter(|slot| slot.seq == *seq);
                let slot = slot.filter(|slot| range.end <= slot.len as usize);
                let start = slot.ok_or(StoreError::NotKept)?.start;
                start + range.start as u64..start + range.end as u64
            }
        };
        self.outbox.transmit_again(again, place)
    }

    fn retain_from(&mut self, seq: Option<u64>) {
        self.retain_from = seq;
    }

    /// Grows the index if necessary, and touches the places of the next entries, so that no message
    /// waits for the kernel to map a page. The index doubles, by up to 64 KiB at once, as growth by
    /// single pages would delay every hundredth message.
    fn prepare(&mut self) {
        let len = self.index.len();
        if len >= self.touched && len < self.limits.messages {
            let step = len.clamp(FIRST_STEP, STEP);
            self.touch(step.min(self.limits.messages - len));
        }
    }

    fn unsent(&self) -> &[u8] {
        self.outbox.unsent()
    }

    fn unsent_len(&self) -> usize {
        self.outbox.unsent_len()
    }

    fn sent(&mut self, n: usize) {
        self.outbox.sent(n);
    }

    fn drop_unsent(&mut self) {
        self.outbox.drop_unsent();
    }
}

/// The number of places of the index that are touched at once, at first and at most: 2 and 64 KiB.
const FIRST_STEP: usize = 64;
const STEP: usize = 2048;

#[derive(Clone, Copy, Debug)]
struct Numbers {
    sender: u64,
    target: u64,
    created: UtcTimestamp,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            sender: 1,
            target: 1,
            created: UtcTimestamp::from_nanos(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &mut impl MessageStore, text: &[u8], entry: Entry) -> Result<(), StoreError> {
        // As an encoder does it: room in front, the message behind it.
        let place = store.reserve(text.len() + 8)?;
        place[8..8 + text.len()].copy_from_slice(text);
        store.commit(8..8 + text.len(), entry)
    }

    fn again(
        store: &mut impl MessageStore,
        head: &[u8],
        kept: Option<(u64, Range<usize>)>,
    ) -> Result<(), StoreError> {
        let tail = b"";
        store.transmit_again(&Again { head, kept, tail })
    }

    const APP: Entry = Entry {
        kind: Kind::App,
        transmit: true,
    };
    const ADMIN: Entry = Entry {
        kind: Kind::Admin,
        transmit: true,
    };
    const LATER: Entry = Entry {
        kind: Kind::Admin,
        transmit: false,
    };

    #[test]
    fn the_last_application_message_that_made_room_is_known() {
        let mut store = MemoryStore::new(Limits {
            messages: 2,
            bytes: 1 << 20,
        });
        for entry in [ADMIN, APP, APP, LATER, APP] {
            put(&mut store, b"x", entry).unwrap();
            store.drop_unsent();
        }
        // 4 and 5 are kept.
        assert_eq!((store.dropped(), store.len()), (3, 2));
        put(&mut store, b"x", APP).unwrap();
        assert_eq!(store.dropped(), 3, "4 is none");
        store.set_next_sender(3).unwrap();
        assert_eq!(store.dropped(), 2);
        store.reset(UtcTimestamp::from_nanos(0)).unwrap();
        assert_eq!(store.dropped(), 0);
        // By their bytes.
        let mut store = MemoryStore::new(Limits {
            messages: 1000,
            bytes: 1 << 16,
        });
        while store.first_from(1).is_none_or(|first| first.seq == 1) {
            put(&mut store, &[b'x'; 5000], APP).unwrap();
            store.drop_unsent();
        }
        assert_eq!(store.dropped(), store.first_from(1).unwrap().seq - 1);
    }

    #[test]
    fn transmits_in_order_and_finds_what_it_keeps() {
        let mut store = MemoryStore::default();
        put(&mut store, b"one", APP).unwrap();
        put(&mut store, b"two", ADMIN).unwrap();
        put(&mut store, b"three", APP).unwrap();
        assert_eq!(store.unsent(), b"onetwothree");
        store.sent(4);
        assert_eq!(store.unsent(), b"wothree");
        assert_eq!(store.next_sender(), 4);
        let found = store.first_from(2).unwrap();
        assert_eq!((found.seq, found.bytes), (3, &b"three"[..]));
        assert!(store.first_from(4).is_none());
    }

    #[test]
    fn what_waits_is_kept_but_not_transmitted() {
        let mut store = MemoryStore::default();
        again(&mut store, b"resent", None).unwrap();
        put(&mut store, b"later", LATER).unwrap();
        again(&mut store, b"resent too", None).unwrap();
        assert_eq!(store.unsent(), b"resentresent too");
        store.sent(16);
        assert_eq!(store.unsent(), b"");
        let found = store.first_from(1).unwrap();
        assert_eq!(
            (found.seq, found.kind, found.bytes),
            (1, Kind::Admin, &b"later"[..])
        );
    }

    #[test]
    fn full_store_gives_up_the_oldest_but_never_what_waits() {
        let mut store = MemoryStore::new(Limits {
            messages: 100,
            bytes: 512,
        });
        for i in 0..200_u64 {
            put(&mut store, &[b'a' + (i % 26) as u8; 30], APP).unwrap();
            assert_eq!(store.unsent().len(), 30);
            store.sent(30);
        }
        let oldest = store.first_from(1).unwrap();
        assert!(oldest.seq > 150, "{}", oldest.seq);
        assert_eq!(oldest.bytes[0], b'a' + ((oldest.seq - 1) % 26) as u8);
        // Nothing is taken away any more: the store fills up and returns `Full`.
        let full = (0..200).find_map(|_| put(&mut store, &[b'x'; 30], APP).err());
        assert_eq!(full, Some(StoreError::Full));
        assert!(store.unsent().iter().all(|byte| *byte == b'x'));
        while !store.unsent().is_empty() {
            let waiting = store.unsent().len();
            store.sent(waiting);
        }
        put(&mut store, b"again", APP).unwrap();
        assert_eq!(store.unsent(), b"again");
        assert_eq!(put(&mut store, &[0; 600], APP), Err(StoreError::TooLong));
    }

    #[test]
    fn what_is_ready_from_the_start_is_used_and_stays_within_the_limits() {
        let limits = MemoryLimits {
            messages: 1000,
            bytes: 1 << 20,
            ready: 600 << 10,
        };
        let mut store = MemoryStore::new(limits);
        let ready = store.outbox.capacity();
        assert!((600 << 10..1 << 20).contains(&ready), "{ready}");
        for i in 0..3000_u64 {
            put(&mut store, &[i as u8; 170], APP).unwrap();
            store.prepare();
            store.sent(170);
            if i == 1500 {
                assert_eq!(store.outbox.capacity(), ready, "nothing new was needed");
            }
        }
        for _ in 0..100 {
            put(&mut store, &[1; 60_000], APP).unwrap();
            store.sent(60_000);
            assert!(store.outbox.capacity() <= 1 << 20);
        }
        assert_eq!(store.first_from(0).unwrap().bytes, [1; 60_000]);
        assert_eq!(MemoryStore::default().capacity(), 0);
    }

    #[test]
    fn limit_by_count() {
        let mut store = MemoryStore::new(Limits {
            messages: 3,
            bytes: 4096,
        });
        for _ in 0..10 {
            put(&mut store, b"m", APP).unwrap();
        }
        assert_eq!((store.len(), store.first_from(0).unwrap().seq), (3, 8));
        store.retain_from(Some(8));
        assert_eq!(put(&mut store, b"m", APP), Err(StoreError::Full));
    }

    #[test]
    fn lowering_the_number_forgets_what_is_above() {
        let mut store = MemoryStore::default();
        for text in [b"a", b"b", b"c"] {
            put(&mut store, text, APP).unwrap();
        }
        store.set_next_sender(2).unwrap();
        put(&mut store, b"B", APP).unwrap();
        assert_eq!(store.first_from(2).unwrap().bytes, b"B");
        store.reset(UtcTimestamp::from_nanos(7)).unwrap();
        assert_eq!((store.next_sender(), store.created().nanos()), (1, 7));
        assert!(store.first_from(0).is_none() && !store.unsent().is_empty());
    }

    #[test]
    fn store_without_resend_stays_small() {
        let mut store = MemoryStore::without_resends(1 << 16);
        for _ in 0..1000 {
            put(&mut store, &[b'h'; 80], ADMIN).unwrap();
            let waiting = store.unsent().len();
            store.sent(waiting);
        }
        assert_eq!(store.next_sender(), 1001);
        assert!(store.capacity() <= 256, "{}", store.capacity());
        store.record(b"headbody").unwrap();
        assert_eq!((store.next_sender(), store.unsent().len()), (1002, 0));
        assert!(store.first_from(1).is_none());
    }
}
