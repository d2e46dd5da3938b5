//! The feed's decoded messages to DDS topics of their own types, on a thread of its own.
//!
//! The feed's thread copies each packet into a ring that overwrites what was not read. This thread
//! decodes it a second time, straight into samples, and writes those: no other thread ever waits
//! for a subscriber.

use super::FeedError;
use super::config::FeedTopics;
use crate::bridge::Plan;
use crate::bridge::patience::{Omissions, Patience, Written};
use crate::counts::TopicsCounts;
use crate::notice::{Notice, Notices, Outlet, Why};
use fanfare_bus::Error as BusError;
use fanfare_bus::distribute::Publisher;
use fanfare_bus::fast::{Converted, Converter};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy};
use fanfare_fast::{Decoder, Program};
use fanfare_fix::session::Now;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// The longest sample.
const SAMPLE: usize = 1 << 20;

/// The least size of the ring: the longest datagram fits twice.
const LEAST: usize = 1 << 18;

/// Packets of one turn.
const TURN: usize = 64;

/// The feed's end of the ring of packets.
pub(crate) struct PacketRing {
    ring: Broadcast,
    waker: Waker,
    /// Messages of all packets so far.
    messages: u64,
    wrote: bool,
}

impl PacketRing {
    /// A ring of at least `bytes` bytes, and its reading end.
    pub(crate) fn new(bytes: usize, waker: Waker) -> Option<(Self, BroadcastReader)> {
        let mut ring = Broadcast::new(bytes.max(LEAST), 1, Policy::Lap);
        let reader = ring.subscribe()?;
        let this = Self {
            ring,
            waker,
            messages: 0,
            wrote: false,
        };
        Some((this, reader))
    }

    /// Takes a packet, whose first `skip` messages were delivered before, and `messages` behind
    /// them now. Does not allocate, and never waits.
    pub(crate) fn put(&mut self, bytes: &[u8], skip: u32, messages: u32) {
        let head = Head {
            skip,
            messages,
            before: self.messages,
        };
        self.messages += u64::from(messages);
        // Every datagram fits: see `LEAST`.
        let _ = self.ring.write(0, Head::LEN + bytes.len(), |room| {
            head.write(bytes, room);
        });
        self.wrote = true;
    }

    /// Wakes the reading thread, once for all packets of a turn.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.wrote) {
            self.waker.wake();
        }
    }
}

/// What stands in front of a packet in the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    skip: u32,
    messages: u32,
    /// Messages of the packets in front: a difference tells how many were overwritten.
    before: u64,
}

impl Head {
    const LEN: usize = 16;

    fn write(self, packet: &[u8], room: &mut [u8]) {
        let Some((head, rest)) = room.split_first_chunk_mut::<{ Self::LEN }>() else {
            return;
        };
        let [skip, messages] = [self.skip, self.messages].map(u64::from);
        let words = [skip | messages << 32, self.before];
        for (place, word) in head.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        rest.copy_from_slice(packet);
    }

    fn read(record: &[u8]) -> Option<(Self, &[u8])> {
        let (counts, rest) = record.split_first_chunk()?;
        let (before, packet) = rest.split_first_chunk()?;
        let counts = u64::from_le_bytes(*counts);
        let head = Self {
            skip: counts as u32,
            messages: (counts >> 32) as u32,
            before: u64::from_le_bytes(*before),
        };
        Some((head, packet))
    }
}

/// Reads the ring and writes samples.
pub(crate) struct TopicsPublisher {
    ring: BroadcastReader,
    waker: Waker,
    topics: Topics,
}

/// The topics of the templates.
struct Topics {
    decoder: Decoder,
    converter: Converter,
    publisher: Publisher,
    /// The template that says that the feed is over.
    last: Option<u32>,
    /// Whether every topic had a subscriber at the last look.
    matched: bool,
    /// Messages up to the end of the packet read last.
    messages: u64,
    patience: Patience,
    omissions: Omissions,
    counts: TopicsCounts,
    notices: Notices,
}

impl TopicsPublisher {
    /// Opens the topics.
    pub(crate) fn open(
        topics: &FeedTopics,
        program: &Arc<Program>,
        ring: BroadcastReader,
        waker: Waker,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
        let mapping = Arc::new(super::mapping(topics, Arc::clone(program))?);
        let distribution = topics.distribution();
        let domain = topics.participant().open()?;
        // Without echo there are no round trips.
        let publisher = Publisher::open(&domain, &mapping, &distribution, |_| Box::new(|_| {}))?;
        Ok(Self {
            ring,
            waker,
            topics: Topics {
                decoder: Decoder::new(Arc::clone(program)),
                last: program.by_name(&distribution.end).map(|t| t.index()),
                converter: Converter::new(mapping, SAMPLE),
                publisher,
                matched: false,
                messages: 0,
                patience: Patience::new(topics.wait_ms, plan.stop.clone()),
                omissions: Omissions::new(Outlet::Feed, plan.notices.clone()),
                counts: TopicsCounts::new(plan.counters),
                notices: plan.notices.clone(),
            },
        })
    }

    fn turn(&mut self) -> Result<usize, BusError> {
        let mut failed = None;
        let topics = &mut self.topics;
        let batch = self.ring.read(TURN, |record| {
            if failed.is_none() {
                failed = topics.packet(record.bytes).err();
            }
        });
        failed.map_or(Ok(batch.read), Err)
    }
}

impl Topics {
    /// Tells when all topics have a subscriber, and when they no longer have.
    fn look(&mut self) {
        let matched = self.publisher.is_matched();
        if matched != self.matched {
            self.matched = matched;
            self.notices.tell(Notice::FeedTopics { matched });
        }
        self.omissions.look();
    }

    /// Publishes what is new in a packet.
    fn packet(&mut self, record: &[u8]) -> Result<(), BusError> {
        let Some((head, packet)) = Head::read(record) else {
            return Ok(());
        };
        let lost = head.before.saturating_sub(self.messages);
        if lost > 0 {
            self.counts.overrun.increment(lost);
            self.omissions.add(Why::Overrun, lost);
        }
        self.messages = head.before + u64::from(head.messages);
        self.decoder.reset();
        let mut rest = packet;
        for message in 0..head.skip.saturating_add(head.messages) {
            // One that is no message was counted by the feed, which decoded it too.
            let Ok(len) = self.converter.decode(&mut self.decoder, rest) else {
                break;
            };
            if message >= head.skip {
                self.publish()?;
            }
            rest = rest.get(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes the samples of the message just decoded.
    fn publish(&mut self) -> Result<(), BusError> {
        if self.last.is_some() && self.converter.template() == self.last {
            // The token is written, and no subscriber is waited for.
            return self.publisher.finish(Duration::ZERO).map(|_| ());
        }
        let Self {
            converter,
            publisher,
            patience,
            counts,
            ..
        } = self;
        let (mut failed, mut unsent) = (None, 0);
        let converted = converter.samples(|sample| {
            let write = || publisher.publish(&sample);
            match patience.write(writer_of(&sample), write) {
                Ok(Written::Done(true)) => counts.samples.increment(1),
                // Which of the two the publisher knows.
                Ok(Written::Done(false)) => {}
                Ok(Written::InVain) => unsent += 1,
                Ok(Written::Stopped) => counts.left.increment(1),
                Err(error) => failed = Some(error),
            }
        });
        // A sample that is too long counts as the others that were left out.
        unsent += u64::from(converted.is_err());
        if unsent > 0 {
            counts.unsent.increment(unsent);
            self.omissions.add(Why::Unacknowledged, unsent);
        }
        counts.no_topic.set(publisher.without_topic());
        counts.refused.set(publisher.refused());
        failed.map_or(Ok(()), Err)
    }
}

/// A number for the writer that a sample goes to.
fn writer_of(sample: &Converted<'_>) -> u64 {
    let key = sample.key.unwrap_or(0);
    key.rotate_left(32) ^ u64::from(sample.template.index)
}

impl Agent for TopicsPublisher {
    fn name(&self) -> &str {
        "feed-publisher"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        self.topics.look();
        Ok(self.turn()?)
    }

    /// Writes what came before the stop, while subscribers take it in time.
    fn on_close(&mut self, _now: Now) {
        while matches!(self.turn(), Ok(1..)) {}
        let Topics {
            publisher,
            patience,
            ..
        } = &mut self.topics;
        // A subscriber that does not acknowledge in time loses what it has not received.
        let _ = publisher.wait_for_acks(patience.left());
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.waker.as_fd());
    }

    fn before_sleep(&mut self) {
        self.waker.prepare_sleep();
    }

    fn after_sleep(&mut self) {
        self.waker.awake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_front_of_a_packet_is_read_back() {
        let head = Head {
            skip: 3,
            messages: u32::MAX,
            before: 1 << 40,
        };
        let mut room = [0; Head::LEN + 2];
        head.write(b"ab", &mut room);
        assert_eq!(Head::read(&room), Some((head, &b"ab"[..])));
        assert_eq!(Head::read(&room[..15]), None);
    }

    #[test]
    fn messages_that_were_overwritten_are_known_by_number() {
        let waker = Waker::detached().unwrap();
        let (mut ring, mut reader) = PacketRing::new(0, waker).unwrap();
        let packet = [7; 60_000];
        let mut messages = 0;
        for count in 1..=20 {
            ring.put(&packet, 0, count);
            messages += u64::from(count);
        }
        let mut heads = Vec::new();
        let batch = reader.read(64, |record| {
            heads.push(Head::read(record.bytes).unwrap().0);
        });
        assert!(batch.lost > 0 && !heads.is_empty());
        let read: u64 = heads.iter().map(|head| u64::from(head.messages)).sum();
        assert_eq!(heads[0].before + read, messages);
        assert_eq!(u64::from(heads[0].messages), 20 - heads.len() as u64 + 1);
    }
}
