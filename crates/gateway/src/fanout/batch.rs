//! A batch of messages that a worker took from the ring, and its delivery to one consumer. A single
//! message is sent from a frame that holds the body once; several are written into one buffer, from
//! which they go out in one send.

use crate::fanout::consumer::Consumer;
use crate::fanout::hole::{self, Hole};
use crate::fanout::record;
use crate::notice::PeerEnd;
use crate::stages::{MARKED, Mark, OutletStages};
use fanfare_engine::host::Peer;
use fanfare_engine::outbound::OutboundError;
use fanfare_engine::ring::BroadcastReader;
use fanfare_fix::codec::{SendingTime, SharedBody, SharedFrame};
use fanfare_fix::session::Now;
use fanfare_wire::{Precision, UtcTimestamp};
use std::ops::Range;

/// The most messages of one batch. A consumer that keeps up receives them in one write.
pub(crate) const MAX_MESSAGES: usize = 64;

/// The most bytes that the header, the lead and the trailer of a message take, rounded up.
pub(crate) const ENVELOPE: usize = 1024;

const _: () = assert!(ENVELOPE >= SharedBody::ENVELOPE);

/// A batch of up to 64 messages with the buffers for sending them. Allocates on construction, and
/// for a message that is longer than all before.
pub(crate) struct Batch {
    arena: Vec<u8>,
    records: Vec<Record>,
    holes: Vec<PlacedHole>,
    /// Whether the only message is in the frame. A body of the feed may be too long for the frame.
    framed: bool,
    frame: SharedFrame,
    outgoing: Outgoing,
    times: Times,
}

/// A message in the batch.
struct Record {
    /// The versions that it is for.
    versions: u32,
    /// Its range in the arena.
    range: Range<usize>,
}

/// A hole in the batch.
#[derive(Clone, Copy)]
struct PlacedHole {
    /// The index of the record that it precedes.
    before: usize,
    /// The versions that it is for.
    versions: u32,
    hole: Hole,
}

/// The outcome of delivering a batch to one consumer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delivered {
    /// Messages handed to its connection.
    pub(crate) sent: usize,
    /// Messages that did not fit into its queue.
    pub(crate) unsent: usize,
}

impl Batch {
    /// Creates a batch for messages whose fields after the header have at most `max_message` bytes.
    pub(crate) fn new(max_message: usize) -> Self {
        Self {
            arena: Vec::with_capacity(MAX_MESSAGES * (max_message + ENVELOPE)),
            records: Vec::with_capacity(MAX_MESSAGES),
            holes: Vec::with_capacity(MAX_MESSAGES),
            framed: false,
            frame: SharedFrame::new(max_message),
            outgoing: Outgoing::new(),
            times: Times::default(),
        }
    }

    /// Reads up to one batch from the ring. Returns the number of messages and holes.
    pub(crate) fn fill(
        &mut self,
        ring: &mut BroadcastReader,
        now: Now,
        mut stages: Option<&mut OutletStages>,
    ) -> usize {
        self.arena.clear();
        self.records.clear();
        self.holes.clear();
        self.times = Times::at(now);
        ring.read(MAX_MESSAGES, |message| {
            if message.kind & hole::HOLE != 0 {
                let hole = Hole::read(message.bytes).map(|hole| PlacedHole {
                    before: self.records.len(),
                    versions: message.kind & !hole::HOLE,
                    hole,
                });
                return self.holes.extend(hole);
            }
            let (mark, record) = Mark::split(message.kind, message.bytes);
            if let (Some(mark), Some(stages)) = (mark, &mut stages) {
                stages.take(mark, now.mono);
            }
            let start = self.arena.len();
            self.arena.extend_from_slice(record);
            self.records.push(Record {
                versions: message.kind & !MARKED,
                range: start..self.arena.len(),
            });
        });
        let only = match self.records.as_slice() {
            [only] => self.arena.get(only.range.clone()).and_then(record::read),
            _ => None,
        };
        self.framed = only.is_some_and(|body| self.frame.load(&body).is_ok());
        self.records.len() + self.holes.len()
    }

    /// Sends the batch to one consumer. A message that would make its queue longer than `limit` is
    /// not sent, nor is any after it, and takes no sequence number. The consumer is notified of
    /// missing messages in their place, or later, before the next message that it receives.
    pub(crate) fn deliver(
        &mut self,
        peer: &mut Peer<'_>,
        consumer: &mut Consumer,
        limit: usize,
    ) -> Result<Delivered, PeerEnd> {
        if consumer.has_holes() || !self.holes.is_empty() {
            return self.deliver_with_holes(peer, consumer, limit);
        }
        let time = self.times.with(peer.config().precision);
        let total = self.wanted(consumer, 0..self.records.len());
        let sent = if total == 0 {
            0
        } else if self.framed && peer.queued() == 0 {
            match peer.send_shared(&mut self.frame, &time) {
                Ok(message) => send(peer, message).map(|()| 1)?,
                Err(_) => 0,
            }
        } else {
            let all = 0..self.records.len();
            self.deliver_range(peer, consumer, limit, all, &time)?
        };
        consumer.offered += sent as u64;
        let unsent = total - sent;
        if unsent > 0 {
            consumer.leave_out(peer.now(), unsent as u64);
        }
        Ok(Delivered { sent, unsent })
    }

    /// Returns how many messages of a range are of this session's version.
    fn wanted(&self, consumer: &Consumer, range: Range<usize>) -> usize {
        let records = self.records.get(range).unwrap_or_default().iter();
        records
            .filter(|record| consumer.takes(record.versions))
            .count()
    }

    /// Sends the batch with each hole in its place. A hole that cannot be reported now is kept with
    /// the session.
    #[cold]
    fn deliver_with_holes(
        &mut self,
        peer: &mut Peer<'_>,
        consumer: &mut Consumer,
        limit: usize,
    ) -> Result<Delivered, PeerEnd> {
        let time = self.times.with(peer.config().precision);
        let (mut sent, mut unsent) = (0, 0);
        let mut at = 0;
        for next in 0..=self.holes.len() {
            consumer.send_holes(peer, limit);
            let hole = self.holes.get(next).copied();
            let end = hole.map_or(self.records.len(), |hole| hole.before);
            let wanted = self.wanted(consumer, at..end);
            let count = match consumer.has_holes() {
                true => 0,
                false => self.deliver_range(peer, consumer, limit, at..end, &time)?,
            };
            sent += count;
            consumer.offered += count as u64;
            unsent += wanted - count;
            consumer.leave_out(peer.now(), (wanted - count) as u64);
            at = end;
            if let Some(hole) = hole.filter(|hole| consumer.takes(hole.versions)) {
                consumer.miss(&hole.hole);
            }
        }
        Ok(Delivered { sent, unsent })
    }

    /// Sends as many messages of a range as fit into the queue. Returns their number.
    fn deliver_range(
        &mut self,
        peer: &mut Peer<'_>,
        consumer: &mut Consumer,
        limit: usize,
        mut range: Range<usize>,
        time: &SendingTime,
    ) -> Result<usize, PeerEnd> {
        let mut sent = 0;
        while !range.is_empty() {
            let (count, next) = self.deliver_some(peer, consumer, limit, range.clone(), time)?;
            if count == 0 {
                break;
            }
            (sent, range.start) = (sent + count, next);
        }
        Ok(sent)
    }

    /// Sends as many messages of a range as are certain to fit into the queue, in one send.
    /// Returns their number, and the index after the last.
    fn deliver_some(
        &mut self,
        peer: &mut Peer<'_>,
        consumer: &mut Consumer,
        limit: usize,
        range: Range<usize>,
        time: &SendingTime,
    ) -> Result<(usize, usize), PeerEnd> {
        let Self {
            arena,
            records,
            outgoing,
            ..
        } = self;
        let start = range.start;
        let waiting = records.get(range.clone()).unwrap_or(&[]);
        let wanted = range.zip(waiting);
        let wanted = wanted.filter(|(_, record)| consumer.takes(record.versions));
        let bodies = wanted.map_while(|(at, record)| {
            let body = arena.get(record.range.clone()).and_then(record::read)?;
            Some((at, body))
        });
        let (count, last) = outgoing.send(peer, limit, time, bodies)?;
        Ok((count, last.map_or(start, |last| last + 1)))
    }
}

/// The buffer of the messages of one send. Grows to the longest message, which the limit of a
/// queue bounds.
pub(crate) struct Outgoing(Vec<u8>);

/// The most bytes of one send, unless a single message is longer: what the processor's nearest
/// caches hold beside the bodies, and a small part of what the kernel queues for a connection.
const SEND: usize = 1 << 15;

impl Outgoing {
    pub(crate) fn new() -> Self {
        Self(vec![0; SEND])
    }

    /// Writes bodies, each with its index, to a connection in one send: only those that are
    /// certain to fit into the buffer and into a queue of `limit` bytes. Returns their number, and
    /// the index of the last.
    pub(crate) fn send<'b>(
        &mut self,
        peer: &mut Peer<'_>,
        limit: usize,
        time: &SendingTime,
        bodies: impl Iterator<Item = (usize, SharedBody<'b>)>,
    ) -> Result<(usize, Option<usize>), PeerEnd> {
        let room = limit.saturating_sub(peer.queued());
        let (mut len, mut count, mut last) = (0, 0, None);
        for (at, body) in bodies {
            let end = len + body.fields().len() + ENVELOPE;
            if end > room || (end > self.0.len() && count > 0) {
                break;
            }
            if end > self.0.len() {
                self.0.resize(end, 0);
            }
            let out = self.0.get_mut(len..).unwrap_or_default();
            let Ok(written) = peer.send_shared_into(&body, time, out) else {
                break;
            };
            len += written;
            (count, last) = (count + 1, Some(at));
        }
        if let (Some(messages), true) = (self.0.get(..len), count > 0) {
            send(peer, messages)?;
        }
        Ok((count, last))
    }
}

fn send(peer: &mut Peer<'_>, messages: &[u8]) -> Result<(), PeerEnd> {
    peer.write(messages).map(drop).map_err(end_of)
}

/// Returns the reason for ending a session whose connection does not accept a write.
pub(crate) fn end_of(error: OutboundError) -> PeerEnd {
    match error {
        OutboundError::Io(error) => PeerEnd::Broken(error.to_string()),
        OutboundError::Overflow(full) => PeerEnd::SlowConsumer {
            queued: full.queued,
        },
    }
}

/// `SendingTime(52)` of one moment in the precisions that sessions use, each formatted on first
/// use.
#[derive(Default)]
pub(crate) struct Times {
    utc: UtcTimestamp,
    texts: [Option<SendingTime>; 4],
}

impl Times {
    pub(crate) fn at(now: Now) -> Self {
        Self {
            utc: now.utc,
            texts: [None; 4],
        }
    }

    pub(crate) fn with(&mut self, precision: Precision) -> SendingTime {
        let utc = self.utc;
        let text = &mut self.texts[precision as usize];
        *text.get_or_insert_with(|| SendingTime::new(utc, precision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fanout::source_rings::{Put, SourceRings};
    use crate::stages::{End, StagePlan};
    use fanfare_engine::clock::Clock;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::ring::{Broadcast, Policy};

    /// Returns the messages of a batch with their versions, and whether the only one is in the
    /// frame.
    fn fill(marked: &[bool], stages: Option<&mut OutletStages>) -> (Vec<(u32, Vec<u8>)>, bool) {
        let mut ring = Broadcast::new(1 << 16, 1, Policy::Gate);
        let mut reader = ring.subscribe().unwrap();
        let mut rings = SourceRings::new(ring, None, Vec::new());
        for (i, &is_marked) in marked.iter().enumerate() {
            if is_marked {
                rings.mark(i as u64);
            }
            let fields = format!("55={i}\x01");
            let body = SharedBody::new(b"W", fields.as_bytes()).unwrap();
            assert_eq!(rings.put_for(i as u32, &body), Put::Done);
            assert_eq!(rings.end_mark().is_some(), is_marked);
        }
        let mut batch = Batch::new(1_000);
        let count = batch.fill(&mut reader, Clock::new().read(), stages);
        assert_eq!(count, marked.len());
        let bodies = batch.records.iter().map(|record| {
            let body = record::read(&batch.arena[record.range.clone()]).unwrap();
            (record.versions, body.fields().to_vec())
        });
        (bodies.collect(), batch.framed)
    }

    #[test]
    fn messages_with_marks_are_those_without() {
        let counters = Counters::new();
        let mut stages = StagePlan::new(&counters, true).outlet("w", End::Socket);
        for marked in [&[true][..], &[true, false, true], &[false, true]] {
            let plain = vec![false; marked.len()];
            assert_eq!(fill(marked, None), fill(&plain, None));
            assert_eq!(fill(marked, stages.as_mut()), fill(&plain, None));
        }
        let ring = &counters.histograms()[0];
        assert_eq!((&*ring.name, ring.distribution.count()), ("stage_ring", 4));
    }
}
