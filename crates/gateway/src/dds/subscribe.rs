//! The messages of other gateways from DDS.

use crate::counts::SubscribeCounts;
use crate::dds::channels::{self, Channels, Verdict};
use crate::dds::config::{DdsEnd, READER_SAMPLES};
use crate::dds::origins::{Origins, Seen};
use crate::dds::sample::{self, Inspector, Parts};
use crate::dds::topic_reader::TopicReader;
use crate::fanout::hole::{Hole, Missing};
use crate::fanout::record;
use crate::fanout::source_rings::{Put, SourceRings};
use crate::fanout::stamp::Stamp;
use crate::gateway::plan::Plan;
use crate::stages::SourceStages;
use fanfare_dds::{Domain, Error};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// The most messages that one topic forwards to the workers in one turn.
const TURN: usize = 64;

/// The agent that takes samples and forwards them to the workers. While these are behind, it leaves
/// the samples with the readers, whose limit blocks reliable writers.
pub(crate) struct DdsSubscriber {
    sources: Vec<Source>,
    waker: Waker,
    handler: SampleHandler,
}

/// A topic.
struct Source {
    reader: TopicReader,
    /// The rest of its samples, the last first.
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
}

/// The bytes that the record of a hole takes in the ring, with the headers of two records.
const HOLE_ROOM: usize = 128;

// Samples that are taken at once are in the order of their gateways.
const _: () = assert!(channels::SILENT >= READER_SAMPLES as u64);

impl DdsSubscriber {
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
            let topic = domain.topic(&name, &t, &end.qos())?;
            sources.push(Source {
                reader: TopicReader::open(&topic, &qos, READER_SAMPLES as usize, &waker, plan)?,
                left: Vec::with_capacity(READER_SAMPLES as usize),
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
            },
        })
    }
}

impl Source {
    /// Processes some samples. Returns the amount of work done.
    fn turn(&mut self, handler: &mut SampleHandler) -> Result<usize, Error> {
        if self.left.is_empty() {
            if self.reader.take(&handler.counts.closed)?.is_empty() {
                return Ok(0);
            }
            self.put_in_order(&handler.counts);
        }
        let mut done = 1;
        while let Some(&Waiting { place, .. }) = self.left.last() {
            let sample = self.reader.samples().get(place);
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

    /// Sorts the samples taken. The reader returns them by instance, and since all were taken,
    /// their numbers restore the order of their gateway. Samples that several gateways have of one
    /// feed are sorted into the feed's order.
    fn put_in_order(&mut self, counts: &SubscribeCounts) {
        let Self { reader, left, .. } = self;
        for (place, sample) in reader.samples().iter().enumerate() {
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
        let verdict = match identity.is_some() {
            true => known.channels.look(identity, stamp.origin),
            false => Verdict::New,
        };
        if missing > 0 {
            // Both must fit, or the sample is processed again.
            if !self.source_rings.has_room(record::len(&body) + HOLE_ROOM) {
                return false;
            }
            let hole = Hole::new(Missing::DdsGap, missing, self.now.utc.nanos());
            let _ = self.source_rings.put_hole(&hole);
        }
        let put = match verdict {
            Verdict::New => {
                let (stages, now) = (&mut self.stages, self.now);
                self.source_rings.put_measured(stages, now, &body, stamp)
            }
            Verdict::Before | Verdict::Behind => Put::Done,
        };
        match (put, verdict) {
            (Put::Full, _) => return false,
            (Put::TooLong, _) => counts.bad.increment(1),
            (Put::Done, Verdict::New) => counts.received.increment(1),
            (Put::Done, Verdict::Before) => counts.other.increment(1),
            (Put::Done, Verdict::Behind) => counts.behind.increment(1),
        }
        counts.missing.increment(missing);
        known.note(&stamp);
        true
    }
}

impl Agent for DdsSubscriber {
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
