//! The publisher of a feed's market events on DDS, on a thread of its own.

use super::config::FeedEdges;
use super::relay::{HEAD, INSTRUMENT, Relay, RelayEnd, SNAPSHOT, STEPS, book_kind};
use super::sample::{self, BookKind, OVERHEAD, SnapshotSample, Source, StepsSample};
use crate::counts::{EdgesCounts, RelayCounts, TopicCounts};
use crate::dds::ack_wait::{AckWait, OfWriter, Written};
use crate::dds::omissions::Omissions;
use crate::feed::FeedError;
use crate::feed::config::Feed;
use crate::gateway::plan::Plan;
use crate::gateway::start_error::StartError;
use crate::notice::{Outlet, Why};
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Error as DdsError, Status, Writer};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{BroadcastReader, Record};
use fanfare_fix::session::Now;
use fanfare_market::Event;
use fanfare_market::instruments::Instrument;
use fanfare_market::relay::Step;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most records of one turn.
const TURN: usize = 256;

/// The bytes of instruments that are kept for the next steps.
const INSTRUMENTS: usize = 1 << 16;

/// The agent that reads the ring and writes samples.
pub(crate) struct EdgesPublisher {
    ring: BroadcastReader,
    waker: Waker,
    topics: Topics,
}

/// The two topics of a feed.
struct Topics {
    steps: Writer,
    snapshots: Writer,
    channel: Vec<u8>,
    origin: u64,
    book: BookKind,
    /// The number of samples of the steps so far.
    number: u64,
    /// The number of the next record in the ring.
    next: u64,
    /// The instruments that are sent with the next steps, each preceded by its length.
    instruments: Vec<u8>,
    buffer: CdrBuffer,
    asked: Arc<AtomicBool>,
    patience: AckWait,
    omissions: Omissions,
    counts: EdgesCounts,
}

/// Opens the topics of a feed. Returns the end for the thread of the feeds, which `feeds` wakes,
/// and the agent that writes.
pub(crate) fn open(
    feed: &Feed,
    edges: &FeedEdges,
    ring_bytes: usize,
    feeds: &Waker,
    plan: Plan<'_>,
) -> Result<(Relay, EdgesPublisher), StartError> {
    let waker = Waker::detached()?;
    let interval = edges.snapshots_ms * 1_000_000;
    let counts = RelayCounts::new(plan.counters, "");
    let ends = Relay::new(ring_bytes, interval, waker, counts);
    let (relay, end) = ends.ok_or(StartError::Ring)?;
    let topics = Topics::open(feed, edges, &end, feeds, plan).map_err(FeedError::Dds)?;
    let publisher = EdgesPublisher {
        ring: end.ring,
        waker: end.waker,
        topics,
    };
    Ok((relay, publisher))
}

impl Topics {
    fn open(
        feed: &Feed,
        edges: &FeedEdges,
        end: &RelayEnd,
        feeds: &Waker,
        plan: Plan<'_>,
    ) -> Result<Self, DdsError> {
        let domain = edges.member().open()?;
        let open = |name: &str, t, qos, asked: Option<Arc<AtomicBool>>| {
            let name = format!("{}_{name}", edges.topics);
            let topic = domain.topic(&name, &t, &qos)?;
            let counts = TopicCounts::new(plan.counters, &name, "dds_readers");
            let mut listener = counts.listener(plan.notices);
            let feeds = feeds.clone();
            let writer = topic.writer(&qos).on_status(move |status| {
                if let (Some(asked), Status::Matched { change: 1.., .. }) = (&asked, status) {
                    // An edge has joined, and the samples of instruments at rest may be outdated.
                    asked.store(true, Ordering::Relaxed);
                    feeds.wake();
                }
                listener(status);
            });
            writer.open()
        };
        let asked = Some(Arc::clone(&end.asked));
        Ok(Self {
            snapshots: open(
                "Snapshots",
                sample::snapshots_type(),
                edges.snapshots_qos(),
                None,
            )?,
            steps: open("Steps", sample::steps_type(), edges.steps_qos(), asked)?,
            channel: feed.channel().into_bytes(),
            origin: plan.origin,
            book: book_kind(&feed.book.clone().unwrap_or_default()),
            number: 0,
            next: 0,
            instruments: Vec::with_capacity(INSTRUMENTS),
            buffer: CdrBuffer::with_capacity(2 * end.longest + OVERHEAD),
            asked: Arc::clone(&end.asked),
            patience: AckWait::new(edges.wait_ms, plan.stop.clone(), plan.notices.clone()),
            omissions: Omissions::new(Outlet::Edges, plan.notices.clone()),
            counts: EdgesCounts::new(plan.counters, ""),
        })
    }

    /// Writes the samples of a record of the ring.
    fn take(&mut self, record: &Record<'_>) -> Result<(), DdsError> {
        let lost = record.sequence.saturating_sub(self.next);
        if lost > 0 {
            self.counts.overrun.increment(lost);
            self.omissions.add(Why::Overrun, lost);
            self.asked.store(true, Ordering::Relaxed);
        }
        self.next = record.sequence + 1;
        match record.kind {
            INSTRUMENT => {
                let len = u32::try_from(record.bytes.len()).unwrap_or(u32::MAX);
                self.instruments.extend(len.to_le_bytes());
                self.instruments.extend_from_slice(record.bytes);
                // They are kept for the next steps, which follow within a fraction of a second.
                match self.instruments.len() > INSTRUMENTS {
                    true => self.write_steps(&[], &[]),
                    false => Ok(()),
                }
            }
            STEPS => self.steps(record.bytes),
            SNAPSHOT => self.snapshot(record.bytes),
            _ => Ok(()),
        }
    }

    fn steps(&mut self, bytes: &[u8]) -> Result<(), DdsError> {
        let Some((count, rest)) = bytes.split_first_chunk() else {
            return Ok(());
        };
        let len = u32::from_le_bytes(*count) as usize * Step::SIZE;
        let Some((steps, events)) = rest.split_at_checked(len) else {
            return Ok(());
        };
        self.write_steps(steps.as_chunks().0, events.as_chunks().0)
    }

    fn write_steps(
        &mut self,
        steps: &[[u8; Step::SIZE]],
        events: &[[u8; Event::SIZE]],
    ) -> Result<(), DdsError> {
        self.number += 1;
        let sample = StepsSample {
            source: Source {
                channel: &self.channel,
                origin: self.origin,
            },
            number: self.number,
            book: self.book,
            instruments: &self.instruments,
            steps,
            events,
        };
        let left_out = match sample.write(&mut self.buffer) {
            Ok(bytes) => write(&self.steps, bytes, &mut self.patience)?,
            Err(_) => Some(Why::OverLimit),
        };
        self.instruments.clear();
        match left_out {
            Some(why) => self.leave_out(why),
            None => self.counts.samples.increment(1),
        }
        Ok(())
    }

    fn snapshot(&mut self, bytes: &[u8]) -> Result<(), DdsError> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Ok(());
        };
        let (words, _) = head.as_chunks::<8>();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        let (code, last) = (word(0) as u8, (word(0) >> 32) as u32);
        let Some((definition, events)) = rest.split_at_checked(word(2) as usize) else {
            return Ok(());
        };
        let Some(instrument) = Instrument::read(definition) else {
            return Ok(());
        };
        let sample = SnapshotSample {
            source: Source {
                channel: &self.channel,
                origin: self.origin,
            },
            instrument: instrument.instrument.0,
            symbol: instrument.definition.name.symbol,
            book: self.book,
            state: code,
            has_last: word(0) >> 8 & 1 == 1,
            last,
            received: word(1),
            definition,
            events: events.as_chunks().0,
        };
        let left_out = match sample.write(&mut self.buffer) {
            Ok(bytes) => write(&self.snapshots, bytes, &mut self.patience)?,
            Err(_) => Some(Why::OverLimit),
        };
        match left_out {
            Some(why) => self.leave_out(why),
            None => self.counts.snapshots.increment(1),
        }
        Ok(())
    }

    /// Counts a sample that was left out.
    fn leave_out(&mut self, why: Why) {
        self.omissions.add(why, 1);
        let counter = match why {
            Why::OverLimit => &self.counts.beyond,
            Why::Unacknowledged | Why::Overrun => &self.counts.unsent,
        };
        counter.increment(1);
    }
}

/// Writes a sample. Returns why it was left out, if it was.
fn write(writer: &Writer, bytes: &[u8], patience: &mut AckWait) -> Result<Option<Why>, DdsError> {
    match patience.write(OfWriter { writer, bytes }) {
        Ok(Written::Done(())) => Ok(None),
        Ok(Written::InVain | Written::Stopped) => Ok(Some(Why::Unacknowledged)),
        Err(DdsError::TooManyKeys { .. } | DdsError::LongKey { .. }) => Ok(Some(Why::OverLimit)),
        Err(error) => Err(error),
    }
}

impl EdgesPublisher {
    fn turn(&mut self) -> Result<usize, DdsError> {
        let (mut failed, topics) = (None, &mut self.topics);
        let most = topics.patience.samples_of_turn(TURN, 1);
        let batch = self.ring.read(most, |record| {
            if failed.is_none() {
                failed = topics.take(&record).err();
            }
        });
        failed.map_or(Ok(batch.read), Err)
    }
}

impl Agent for EdgesPublisher {
    fn name(&self) -> &str {
        "edges-publisher"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        self.topics.omissions.look();
        Ok(self.turn()?)
    }

    fn on_close(&mut self, _now: Now) {
        while matches!(self.turn(), Ok(1..)) {}
        let Topics {
            steps, patience, ..
        } = &mut self.topics;
        // An edge that does not acknowledge in time has other publishers, or snapshots.
        let _ = steps.wait_for_acks(patience.left(|_| true));
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }
}
