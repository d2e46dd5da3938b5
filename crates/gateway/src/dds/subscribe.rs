//! The messages of other gateways from DDS.

use crate::counts::SubscribeCounts;
use crate::dds::channels::{self, Channels, Verdict};
use crate::dds::config::{DdsEnd, READER_SAMPLES};
use crate::dds::endpoint::DdsQos;
use crate::dds::merge::{Arrival, Ends, GONE, Lateness, Merge, Outcome};
use crate::dds::origins::{Origins, Seen};
use crate::dds::sample::{self, Inspector, Parts};
use crate::dds::topic_reader::TopicReader;
use crate::fanout::hole::{Hole, Missing};
use crate::fanout::record;
use crate::fanout::source_rings::{Put, SourceRings};
use crate::fanout::stamp::Stamp;
use crate::gateway::plan::Plan;
use crate::stages::SourceStages;
use fanfare_dds::{Domain, Error, Qos, Sample};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// The most messages that are forwarded to the workers in one turn.
const TURN: usize = 256;

/// The most samples of a topic that are taken: a reader hands them out by instance, so that their
/// order is known only if all that it holds are taken at once, beside those that wait for others.
const MOST: usize = 2 * READER_SAMPLES as usize;

/// The agent that takes samples and forwards them to the workers. While these are behind, it leaves
/// the samples with the readers, whose limit blocks reliable writers.
pub(crate) struct DdsSubscriber {
    merge: Merge,
    inlet: Inlet,
    waker: Waker,
}

/// The topics, and the way to the workers.
struct Inlet {
    sources: Vec<Source>,
    types: TypeLists,
    handler: SampleHandler,
}

/// A topic.
struct Source {
    reader: TopicReader,
    known: Known,
    msg_type: Vec<u8>,
}

/// The messages that have arrived on one topic.
#[derive(Default)]
struct Known {
    origins: Origins,
    channels: Channels,
}

/// The lists of types that publishers send, as topics.
struct TypeLists {
    /// The MsgTypes(35) of the topics.
    msg_types: Vec<Vec<u8>>,
    /// The last list, and its topics.
    last: Vec<u8>,
    topics: u64,
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
            let topic = domain.topic(&name, &t, &Qos::default())?;
            sources.push(Source {
                reader: TopicReader::open(&topic, &qos, MOST, &waker, plan)?,
                known: Known {
                    origins: Origins::new(end.qos == DdsQos::LastValue),
                    channels: Channels::default(),
                },
                msg_type: msg_type.clone().into_bytes(),
            });
        }
        // Of the last values alone, those that were replaced leave holes that nothing fills.
        let are_reliable = end.qos == DdsQos::Reliable;
        Ok(Self {
            merge: Merge::new(sources.len(), READER_SAMPLES as usize, are_reliable),
            inlet: Inlet {
                types: TypeLists::new(&end.msg_types),
                sources,
                handler: SampleHandler::new(source_rings, plan),
            },
            waker,
        })
    }
}

impl Ends for Inlet {
    type Error = Error;

    fn take(&mut self, topic: usize, merge: &mut Merge) -> Result<usize, Error> {
        let Self {
            sources,
            types,
            handler,
        } = self;
        let Some(Source { reader, .. }) = sources.get_mut(topic) else {
            return Ok(0);
        };
        let len = reader.samples().len();
        if len > 0 {
            let moved = merge.compact(topic, len);
            reader.keep(|place| moved.get(place).is_some_and(|new| *new != GONE));
        }
        let taken = reader.take_more(&handler.counts.closed)?;
        if reader.is_closed() {
            merge.close(topic);
            if merge.left(topic) == 0 {
                reader.close();
            }
        }
        for place in taken.clone() {
            let sample = reader.samples().get(place);
            let Some(sample) = sample.filter(|sample| sample.info.has_data) else {
                continue;
            };
            match sample::read(sample.bytes()) {
                Ok(parts) => merge.push(topic, handler.arrival(&parts, types, place)),
                Err(_) => handler.counts.bad.increment(1),
            }
        }
        Ok(taken.len())
    }

    fn deliver(&mut self, topic: usize, sample: &Arrival, late: Lateness) -> Outcome {
        let is_filled = sample.has_hole && self.is_filled(topic, sample);
        let Some(source) = self.sources.get_mut(topic) else {
            return Outcome::Dropped;
        };
        let Source {
            reader,
            known,
            msg_type,
        } = source;
        let sample = reader.samples().get(sample.place as usize);
        sample.map_or(Outcome::Dropped, |sample| {
            self.handler
                .take(&sample, (msg_type, known), late, is_filled)
        })
    }
}

impl Inlet {
    /// Returns whether another gateway has delivered what is missing before a sample at its
    /// origin. Without numbers nothing shows that: what cannot be decoded at one gateway, or
    /// expressed in FIX, is missing at the others, too.
    fn is_filled(&self, topic: usize, sample: &Arrival) -> bool {
        let reader = self.sources.get(topic).map(|source| &source.reader);
        let sample = reader.and_then(|reader| reader.samples().get(sample.place as usize));
        let parts = sample.as_ref().map(|sample| sample::read(sample.bytes()));
        let Some(Ok(Parts { stamp, .. })) = parts else {
            return false;
        };
        let Some(last) = stamp.hole.map(|hole| hole.last).filter(|last| *last > 0) else {
            return false;
        };
        let reach = |known: &Known| {
            let channel = stamp.identity.channel;
            known
                .channels
                .is_reached_by_another(channel, stamp.origin, last)
        };
        self.sources.iter().any(|source| reach(&source.known))
    }
}

impl TypeLists {
    fn new(msg_types: &[String]) -> Self {
        Self {
            msg_types: msg_types.iter().map(|t| t.as_bytes().to_vec()).collect(),
            last: Vec::new(),
            topics: 0,
        }
    }

    /// Returns the topics of a list, as bits by index, or 0 if it is empty or one of its types has
    /// no topic here. Allocates only for a list that is longer than all before.
    fn topics(&mut self, list: &[u8]) -> u64 {
        if self.last != list {
            let all = &self.msg_types;
            let place = |t: &[u8]| all.iter().position(|own| own == t);
            let bits = list.split(|byte| *byte == b' ');
            let mut bits = bits.map(|t| place(t).map(|place| 1 << place));
            self.topics = bits.try_fold(0, |sum, bit| Some(sum | bit?)).unwrap_or(0);
            list.clone_into(&mut self.last);
        }
        self.topics
    }
}

impl Known {
    /// Looks up a message that was written at this time, without recording it. `mono` is
    /// [`Now::mono`].
    fn look(&self, stamp: &Stamp<'_>, written: i64, mono: u64) -> Seen {
        let (origin, channels) = (stamp.origin, &self.channels);
        let are_shared = || channels.are_shared(&stamp.identity, origin);
        match self.origins.look(origin, stamp.number, written, mono) {
            // Where other gateways publish the same feeds, they may deliver what this one lacks.
            Seen::New { missing: 1.. } if !self.origins.has_plain(origin) && are_shared() => {
                Seen::New { missing: 0 }
            }
            seen => seen,
        }
    }

    /// Records a message that was new, at this time.
    fn note(&mut self, stamp: &Stamp<'_>, now: Now) {
        let is_plain = !stamp.identity.is_some();
        if !is_plain {
            self.channels.take(&stamp.identity, stamp.origin);
        }
        self.origins.note(stamp.origin, stamp.number, is_plain, now);
    }
}

impl SampleHandler {
    fn new(source_rings: SourceRings, plan: Plan<'_>) -> Self {
        let ours = plan.channels.iter().map(|name| name.as_bytes().to_vec());
        Self {
            source_rings,
            inspector: Inspector::new(plan.message_bytes),
            origin: plan.origin,
            ours: ours.collect(),
            now: Now {
                mono: 0,
                utc: UtcTimestamp::from_nanos(0),
            },
            stages: plan.stages.source("dds"),
            counts: SubscribeCounts::new(plan.counters, ""),
        }
    }

    /// Returns what the order of a sample depends on. Samples that come back to their own gateway
    /// need none.
    fn arrival(&self, parts: &Parts<'_>, types: &mut TypeLists, place: usize) -> Arrival {
        let Stamp {
            origin, identity, ..
        } = parts.stamp;
        let is_foreign = origin != 0 && origin != self.origin;
        Arrival {
            origin,
            order: if is_foreign { parts.stamp.order } else { 0 },
            number: parts.stamp.number,
            types: types.topics(parts.types),
            channel: match identity.is_some() {
                true => channels::hash_of(identity.channel),
                false => 0,
            },
            in_feed: (identity.number, identity.index),
            has_hole: parts.stamp.hole.is_some(),
            place: u32::try_from(place).unwrap_or(GONE),
        }
    }

    /// Returns the message of a sample that may be forwarded, with the number of those that are
    /// missing before it. Counts a sample that is dropped.
    fn admit<'s>(
        &mut self,
        sample: &'s Sample<'_>,
        (msg_type, known): (&[u8], &Known),
    ) -> Option<(Stamp<'s>, SharedBody<'s>, u64)> {
        let counts = &self.counts;
        let parts = sample::read(sample.bytes());
        let parts = parts.ok().filter(|p| p.msg_type == msg_type);
        let body = parts.and_then(|p| Some((p.stamp, SharedBody::new(p.msg_type, p.body).ok()?)));
        let Some((stamp, body)) = body else {
            counts.bad.increment(1);
            return None;
        };
        let channel = stamp.identity.channel;
        let is_ours = self.ours.iter().any(|own| own == channel);
        if stamp.origin == self.origin || stamp.origin == 0 || is_ours {
            counts.own.increment(1);
            return None;
        }
        let written = sample.info.source_nanos;
        let Seen::New { missing } = known.look(&stamp, written, self.now.mono) else {
            counts.before.increment(1);
            return None;
        };
        if !self.inspector.passes(&body) {
            counts.bad.increment(1);
            return None;
        }
        Some((stamp, body, missing))
    }

    /// Processes one sample. The outcome is `Full` if the ring to the workers is.
    fn take(
        &mut self,
        sample: &Sample<'_>,
        (msg_type, known): (&[u8], &mut Known),
        late: Lateness,
        is_filled: bool,
    ) -> Outcome {
        known.channels.set_time(self.now.mono);
        let Some((stamp, body, missing)) = self.admit(sample, (msg_type, known)) else {
            return Outcome::Dropped;
        };
        let identity = &stamp.identity;
        let verdict = match identity.is_some() {
            true => known.channels.look(identity, stamp.origin),
            false => Verdict::New,
        };
        let is_new = verdict == Verdict::New;
        let is_late = is_new && late == Lateness::First;
        let (written, mono) = (sample.info.source_nanos, self.now.mono);
        // What is missing before a last value that is replayed is old.
        let of_feed = stamp.hole.filter(|_| {
            let origins = &known.origins;
            is_new && !is_filled && !origins.is_replayed(stamp.origin, written, mono)
        });
        let of_feed = of_feed.map(|hole| Hole {
            feed: channels::hash_of(identity.channel),
            ..hole
        });
        let nanos = self.now.utc.nanos();
        let holes = [
            of_feed,
            (missing > 0).then(|| Hole::new(Missing::DdsGap, missing, nanos)),
            is_late.then(|| Hole::new(Missing::DdsLate, 0, nanos)),
        ];
        if !self.put_holes(&body, &holes) {
            return Outcome::Full;
        }
        let counts = &self.counts;
        let put = match verdict {
            Verdict::New => {
                let (stages, now) = (&mut self.stages, self.now);
                // A relayed message reports the hole that is reported here.
                let hole = of_feed;
                let stamp = Stamp { hole, ..stamp };
                self.source_rings.put_measured(stages, now, &body, stamp)
            }
            Verdict::Before | Verdict::Behind => Put::Done,
        };
        match (put, verdict) {
            (Put::Full, _) => return Outcome::Full,
            (Put::TooLong, _) => counts.bad.increment(1),
            (Put::Done, Verdict::New) => counts.received.increment(1),
            (Put::Done, Verdict::Before) => counts.other.increment(1),
            (Put::Done, Verdict::Behind) => counts.behind.increment(1),
        }
        counts.missing.increment(missing);
        counts.feed_gaps.increment(u64::from(of_feed.is_some()));
        known.note(&stamp, self.now);
        if !is_new || put == Put::TooLong {
            return Outcome::Dropped;
        }
        let is_overtaken = late != Lateness::None;
        counts.overtaken.increment(u64::from(is_overtaken));
        Outcome::Delivered
    }

    /// Writes the holes before a message that is written next. Returns `false` if the ring has no
    /// room for all: the sample is processed again.
    fn put_holes(&mut self, body: &SharedBody<'_>, holes: &[Option<Hole>]) -> bool {
        let holes = holes.iter().flatten();
        let count = holes.clone().count();
        let room = record::len(body) + count * HOLE_ROOM;
        let has_room = count == 0 || self.source_rings.has_room(room);
        for hole in holes.filter(|_| has_room) {
            let _ = self.source_rings.put_hole(hole);
        }
        has_room
    }
}

impl Agent for DdsSubscriber {
    fn name(&self) -> &str {
        "dds-subscriber"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.inlet.handler.now = now;
        let work = self.merge.turn(&mut self.inlet, now.mono, TURN)?;
        self.inlet.handler.source_rings.wake();
        Ok(work)
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }

    fn next_timer(&self) -> Option<u64> {
        self.merge.deadline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_types_is_known_only_if_all_have_topics() {
        let mut lists = TypeLists::new(&["W", "X", "AE"].map(str::to_owned));
        for (list, topics) in [
            ("W X", 0b011),
            ("AE", 0b100),
            ("AE W X", 0b111),
            ("AE W X d", 0),
            ("", 0),
            ("W", 0b001),
            ("W", 0b001),
            ("W X ", 0),
        ] {
            assert_eq!(lists.topics(list.as_bytes()), topics, "{list}");
        }
    }
}
