//! The messages of other gateways from DDS.

use crate::bridge::channels::{self, Channels, Turn};
use crate::bridge::config::{DdsEnd, READER_SAMPLES};
use crate::bridge::origins::{Origins, Seen};
use crate::bridge::sample::{self, Inspector, Parts};
use crate::counts::{SubscribeCounts, TopicCounts};
use crate::hole::{Hole, Missing};
use crate::notice::{Notice, Notices};
use crate::plan::Plan;
use crate::record;
use crate::source_rings::{Put, SourceRings};
use crate::stages::SourceStages;
use crate::stamp::Stamp;
use fanfare_dds::{Domain, Error, Reader, Samples};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most messages that one topic forwards to the workers in one turn.
const TURN: usize = 64;

/// The agent that takes samples and forwards them to the workers. While these are behind, it leaves
/// the samples with the readers, whose limit blocks reliable writers.
pub(crate) struct BusSubscriber {
    sources: Vec<Source>,
    waker: Waker,
    handler: SampleHandler,
}

/// A topic.
struct Source {
    /// The reader, or `None` once it was closed because its writers had too many keys.
    reader: Option<Reader>,
    /// Whether the library has called since the last look.
    called: Arc<AtomicBool>,
    /// Whether the reader may have more samples.
    hungry: bool,
    samples: Samples,
    /// The rest of `samples`, the last first.
    left: Vec<Waiting>,
    known: Known,
    msg_type: Vec<u8>,
}

/// The messages that have arrived on one topic.
#[derive(Default)]
struct Known {
    origins: Origins,
    channels: Channels,
}

/// A sample that is queued for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    origin: u64,
    number: u64,
    /// The index of the sample.
    place: usize,
    /// A hash of its channel, its number and index there, or 0 if it belongs to no feed.
    channel: u64,
    in_feed: (u64, u32),
}

/// The state needed to process a sample.
struct SampleHandler {
    source_rings: SourceRings,
    inspector: Inspector,
    origin: u64,
    /// The feeds that this gateway receives itself.
    ours: Vec<Vec<u8>>,
    /// The time of this turn.
    now: Now,
    stages: Option<SourceStages>,
    counts: SubscribeCounts,
    notices: Notices,
}

/// The bytes that the record of a hole takes in the ring, with the headers of two records.
const HOLE_ROOM: usize = 128;

// Samples that are taken at once are in the order of their gateways.
const _: () = assert!(channels::SILENT >= READER_SAMPLES as u64);

impl BusSubscriber {
    /// Opens the topics.
    pub(crate) fn open(
        end: &DdsEnd,
        domain: &Domain,
        source_rings: SourceRings,
        waker: Waker,
        plan: Plan<'_>,
    ) -> Result<Self, Error> {
        let (t, qos) = (sample::sample_type(), end.reader_qos());
        let mut sources = Vec::new();
        for msg_type in &end.msg_types {
            let name = sample::topic_name(&end.topics, msg_type);
            let called = Arc::new(AtomicBool::new(true));
            let (flag, bell) = (Arc::clone(&called), waker.clone());
            let counts = TopicCounts::new(plan.counters, &name, "dds_writers");
            let reader = domain
                .topic(&name, &t, &end.qos())?
                .reader(&qos)
                .on_data(move || {
                    flag.store(true, Ordering::Release);
                    bell.wake();
                })
                .on_status(counts.listener(plan.notices))
                .open()?;
            sources.push(Source {
                samples: reader.samples(READER_SAMPLES as usize),
                left: Vec::with_capacity(READER_SAMPLES as usize),
                reader: Some(reader),
                called,
                hungry: false,
                known: Known {
                    origins: Origins::new(),
                    channels: Channels::default(),
                },
                msg_type: msg_type.clone().into_bytes(),
            });
        }
        Ok(Self {
            sources,
            waker,
            handler: SampleHandler {
                source_rings,
                inspector: Inspector::new(plan.message_bytes),
                origin: plan.origin,
                ours: plan
                    .channels
                    .iter()
                    .map(|name| name.as_bytes().to_vec())
                    .collect(),
                now: Now {
                    mono: 0,
                    utc: UtcTimestamp::from_nanos(0),
                },
                stages: plan.stages.source("dds"),
                counts: SubscribeCounts::new(plan.counters, ""),
                notices: plan.notices.clone(),
            },
        })
    }
}

impl Source {
    /// Processes some samples. Returns the amount of work done.
    fn turn(&mut self, handler: &mut SampleHandler) -> Result<usize, Error> {
        if self.left.is_empty() {
            if !self.hungry && !self.called.swap(false, Ordering::Acquire) {
                return Ok(0);
            }
            self.take(handler)?;
            self.put_in_order(&handler.counts);
        }
        let mut done = usize::from(self.hungry);
        while let Some(&Waiting { place, .. }) = self.left.last() {
            let sample = self.samples.get(place);
            let taken = sample
                .is_none_or(|sample| handler.take(sample.bytes(), &self.msg_type, &mut self.known));
            done += 1;
            if !taken {
                // The ring is full: this sample is the first of the next turn, which follows at
                // once.
                break;
            }
            self.left.pop();
            if done > TURN {
                break;
            }
        }
        Ok(done)
    }

    /// Takes the samples of the reader. A closed reader is removed, and the other topics remain.
    fn take(&mut self, handler: &SampleHandler) -> Result<(), Error> {
        let Some(reader) = &self.reader else {
            self.hungry = false;
            return Ok(());
        };
        match reader.take(&mut self.samples) {
            Ok(n) => self.hungry = n > 0,
            Err(error @ Error::ReaderClosed { .. }) => {
                handler.counts.closed.increment(1);
                let why = error.to_string();
                handler.notices.send(Notice::BusClosed { why });
                self.samples.clear();
                (self.reader, self.hungry) = (None, false);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sorts the samples taken. The reader returns them by instance, and since all were taken,
    /// their numbers restore the order of their gateway. Samples that several gateways have of one
    /// feed are sorted into the feed's order.
    fn put_in_order(&mut self, counts: &SubscribeCounts) {
        let Self { samples, left, .. } = self;
        for (place, sample) in samples.iter().enumerate() {
            if !sample.info.has_data {
                continue;
            }
            match sample::read(sample.bytes()) {
                Ok(Parts { stamp, .. }) => left.push(Waiting {
                    origin: stamp.origin,
                    number: stamp.number,
                    place,
                    channel: match stamp.identity.is_some() {
                        true => channels::hash_of(stamp.identity.channel),
                        false => 0,
                    },
                    in_feed: (stamp.identity.number, stamp.identity.index),
                }),
                Err(_) => counts.bad.increment(1),
            }
        }
        left.sort_unstable_by_key(|w| (w.origin, w.number));
        if is_one_feed(left) {
            left.sort_unstable_by_key(|w| (w.in_feed, w.origin));
        }
        left.reverse();
    }
}

/// Returns whether samples, sorted by gateway, belong to one feed from several gateways, with no
/// restart of its numbers among them, so that they have an order in common.
fn is_one_feed(waiting: &[Waiting]) -> bool {
    let [first, .., last] = waiting else {
        return false;
    };
    let goes_on = |pair: &[Waiting]| match pair {
        [a, b] => a.channel == b.channel && (a.origin != b.origin || a.in_feed < b.in_feed),
        _ => true,
    };
    first.channel != 0 && first.origin != last.origin && waiting.windows(2).all(goes_on)
}

impl Known {
    /// Looks up a message without recording it.
    fn look(&self, stamp: &Stamp<'_>) -> Seen {
        let (origin, channels) = (stamp.origin, &self.channels);
        let are_shared = || channels.are_shared(&stamp.identity, origin);
        match self.origins.look(origin, stamp.number) {
            // Where other gateways publish the same feeds, they may deliver what this one lacks.
            Seen::New { missing: 1.. } if !self.origins.has_plain(origin) && are_shared() => {
                Seen::New { missing: 0 }
            }
            seen => seen,
        }
    }

    /// Records a message that was new.
    fn note(&mut self, stamp: &Stamp<'_>) {
        let is_plain = !stamp.identity.is_some();
        if !is_plain {
            self.channels.take(&stamp.identity, stamp.origin);
        }
        self.origins.note(stamp.origin, stamp.number, is_plain);
    }
}

impl SampleHandler {
    /// Processes one sample. Returns `false` if the ring to the workers is full.
    fn take(&mut self, bytes: &[u8], msg_type: &[u8], known: &mut Known) -> bool {
        let counts = &self.counts;
        let parts = sample::read(bytes).ok().filter(|p| p.msg_type == msg_type);
        let body = parts.and_then(|p| Some((p.stamp, SharedBody::new(p.msg_type, p.body).ok()?)));
        let Some((stamp, body)) = body else {
            counts.bad.increment(1);
            return true;
        };
        let identity = &stamp.identity;
        let is_ours = self.ours.iter().any(|channel| channel == identity.channel);
        if stamp.origin == self.origin || stamp.origin == 0 || is_ours {
            counts.own.increment(1);
            return true;
        }
        let Seen::New { missing } = known.look(&stamp) else {
            counts.before.increment(1);
            return true;
        };
        if !self.inspector.passes(&body) {
            counts.bad.increment(1);
            return true;
        }
        let turn = match identity.is_some() {
            true => known.channels.look(identity, stamp.origin),
            false => Turn::New,
        };
        if missing > 0 {
            // Both must fit, or the sample is processed again.
            if !self.source_rings.has_room(record::len(&body) + HOLE_ROOM) {
                return false;
            }
            let hole = Hole::new(Missing::DdsGap, missing, self.now.utc.nanos());
            let _ = self.source_rings.put_hole(&hole);
        }
        let put = match turn {
            Turn::New => {
                let (stages, now) = (&mut self.stages, self.now);
                self.source_rings.put_measured(stages, now, &body, stamp)
            }
            Turn::Before | Turn::Behind => Put::Done,
        };
        match (put, turn) {
            (Put::Full, _) => return false,
            (Put::TooLong, _) => counts.bad.increment(1),
            (Put::Done, Turn::New) => counts.received.increment(1),
            (Put::Done, Turn::Before) => counts.other.increment(1),
            (Put::Done, Turn::Behind) => counts.behind.increment(1),
        }
        counts.missing.increment(missing);
        known.note(&stamp);
        true
    }
}

impl Agent for BusSubscriber {
    fn name(&self) -> &str {
        "dds-subscriber"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.handler.now = now;
        let mut work = 0;
        for source in &mut self.sources {
            work += source.turn(&mut self.handler)?;
        }
        self.handler.source_rings.wake();
        Ok(work)
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }
}
