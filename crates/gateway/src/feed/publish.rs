//! The publisher of the feed's decoded messages on DDS topics of their own types.
//!
//! The feed's thread makes the samples of each message that it has decoded, and puts them into a
//! ring that overwrites unread ones. A thread of its own writes those, so that no other thread ever
//! waits for a subscriber.

use super::FeedError;
use super::config::FeedTopics;
use crate::counts::{TopicCounts, TopicsCounts};
use crate::dds::ack_wait::{AckWait, Attempt, Written};
use crate::dds::omissions::Omissions;
use crate::gateway::plan::Plan;
use crate::notice::{Notice, Notices, Outlet, Why};
use crate::stages::{End, MARKED, Mark, OutletStages, Pending};
use fanfare_dds::distribute::Publisher;
use fanfare_dds::fast::{Converted, Converter, Mapping, TemplateType};
use fanfare_dds::{Error as DdsError, Status};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, BroadcastReader, Policy, Record as RingRecord};
use fanfare_fast::Record;
use fanfare_fix::session::Now;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest sample, if the ring has the capacity.
const SAMPLE: usize = 1 << 20;

/// The least size of the ring, in bytes.
const LEAST: usize = 1 << 18;

/// The approximate ratio of the size of a sample to that of its message.
const PER_MESSAGE: usize = 4;

/// The most samples of one turn.
const TURN: usize = 256;

/// The kinds of records: a sample, the end of the feed, a sample that is too long.
const IS_SAMPLE: u32 = 0;
const IS_END: u32 = 1;
const IS_TOO_LONG: u32 = 2;

/// The feed's end of the ring of samples.
pub(crate) struct SampleRing {
    converter: Converter,
    /// The template that announces the end of the feed.
    last: Option<u32>,
    ring: Broadcast,
    waker: Waker,
    wrote: bool,
    /// The mark of the next sample, if it is measured.
    mark: Pending,
}

impl SampleRing {
    /// Creates a ring for the samples of these templates, and its reading end. It has four times as
    /// many `bytes`, so that it holds about as many messages as the other rings.
    pub(crate) fn new(
        topics: &FeedTopics,
        mapping: &Arc<Mapping>,
        bytes: usize,
        waker: Waker,
    ) -> Option<(Self, BroadcastReader)> {
        let bytes = bytes.saturating_mul(PER_MESSAGE).max(LEAST);
        let mut ring = Broadcast::new(bytes, 1, Policy::Lap);
        let reader = ring.subscribe()?;
        let last = mapping.program().by_name(&topics.distribution().end);
        let this = Self {
            converter: Converter::new(Arc::clone(mapping), SAMPLE),
            last: last.map(|template| template.index()),
            ring,
            waker,
            wrote: false,
            mark: Pending::default(),
        };
        Some((this, reader))
    }

    /// Marks the samples of the next message for measurement, with its time of arrival.
    pub(crate) const fn mark(&mut self, arrived: u64) {
        self.mark.set(arrived);
    }

    /// Ends the measurement of samples.
    pub(crate) fn end_mark(&mut self) {
        self.mark.end();
    }

    /// Writes the samples of a message. Does not allocate, and never waits.
    pub(crate) fn put(&mut self, message: &mut Record) {
        self.wrote = true;
        let Self {
            converter,
            ring,
            mark,
            ..
        } = self;
        // A ring that laps has capacity for every record that is not too long.
        if self.last.is_some() && message.template_index() == self.last {
            let _ = ring.push(IS_END, &[]);
            return;
        }
        let mut too_long = 0;
        let made = converter.samples(message, |sample| {
            let mark = mark.make();
            let (marked, more) = Mark::of_record(mark);
            let len = sample.written_len();
            let mut put = ring.write(IS_SAMPLE | marked, len + more, |room| {
                sample.write(Mark::write(mark, room));
            });
            if put.is_err() && mark.is_some() {
                put = ring.write(IS_SAMPLE, len, |room| sample.write(room));
            }
            too_long += usize::from(put.is_err());
        });
        for _ in 0..too_long + usize::from(made.is_err()) {
            let _ = ring.push(IS_TOO_LONG, &[]);
        }
    }

    /// Wakes the writing thread, once for all samples of a turn.
    pub(crate) fn wake(&mut self) {
        if std::mem::take(&mut self.wrote) {
            self.waker.wake();
        }
    }
}

/// The agent that reads the ring and writes samples.
pub(crate) struct TopicsPublisher {
    ring: BroadcastReader,
    waker: Waker,
    topics: Topics,
    stages: Option<OutletStages>,
}

/// The topics of the templates.
struct Topics {
    mapping: Arc<Mapping>,
    publisher: Publisher,
    /// Whether every topic had a subscriber at the last look.
    matched: bool,
    /// The number of the next record in the ring.
    next: u64,
    patience: AckWait,
    omissions: Omissions,
    counts: TopicsCounts,
    notices: Notices,
}

impl TopicsPublisher {
    /// Opens the topics of the feed of this name.
    pub(crate) fn open(
        channel: &str,
        topics: &FeedTopics,
        mapping: Arc<Mapping>,
        ring: BroadcastReader,
        waker: Waker,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
        let distribution = topics.distribution();
        let domain = topics.participant().open()?;
        let listeners = listeners(plan);
        let publisher = Publisher::open_listening(&domain, &mapping, &distribution, listeners)?;
        Ok(Self {
            ring,
            waker,
            topics: Topics {
                mapping,
                publisher,
                matched: false,
                next: 0,
                patience: AckWait::new(topics.wait_ms, plan.stop.clone(), plan.notices.clone()),
                omissions: Omissions::new(Outlet::Feed, plan.notices.clone()),
                counts: TopicsCounts::new(plan.counters, ""),
                notices: plan.notices.clone(),
            },
            stages: plan
                .stages
                .outlet(&format!("dds topics {channel}"), End::Dds),
        })
    }

    fn turn(&mut self, now: Now) -> Result<usize, DdsError> {
        let mut failed = None;
        let (topics, stages) = (&mut self.topics, &mut self.stages);
        let before = topics.counts.samples.value();
        let most = topics.patience.samples_of_turn(TURN, 1);
        let batch = self.ring.read(most, |mut record| {
            let (mark, bytes) = Mark::split(record.kind, record.bytes);
            (record.kind, record.bytes) = (record.kind & !MARKED, bytes);
            if let (Some(mark), Some(stages)) = (mark, stages.as_mut()) {
                stages.take(mark, now.mono);
            }
            if failed.is_none() {
                failed = topics.take(&record).err();
            }
        });
        if let Some(stages) = stages {
            stages.end(topics.counts.samples.value() != before);
        }
        failed.map_or(Ok(batch.read), Err)
    }
}

impl Topics {
    /// Reports when all topics have a subscriber, and when they no longer do.
    fn look(&mut self) {
        let matched = self.publisher.is_matched();
        if matched != self.matched {
            self.matched = matched;
            self.notices.send(Notice::FeedTopics { matched });
        }
        self.omissions.look();
    }

    /// Publishes one record of the ring.
    fn take(&mut self, record: &RingRecord<'_>) -> Result<(), DdsError> {
        let lost = record.sequence.saturating_sub(self.next);
        if lost > 0 {
            self.counts.overrun.increment(lost);
            self.omissions.add(Why::Overrun, lost);
        }
        self.next = record.sequence + 1;
        match record.kind {
            IS_SAMPLE => self.publish(record.bytes),
            // The token is written without waiting for a subscriber.
            IS_END => self.publisher.finish(Duration::ZERO).map(|_| ()),
            // A sample that is too long counts as dropped.
            _ => {
                self.left_out();
                Ok(())
            }
        }
    }

    fn left_out(&mut self) {
        self.counts.unsent.increment(1);
        self.omissions.add(Why::Unacknowledged, 1);
    }

    /// Writes a sample.
    fn publish(&mut self, record: &[u8]) -> Result<(), DdsError> {
        let Some(sample) = Converted::read(&self.mapping, record) else {
            return Ok(());
        };
        let written = self.patience.write(OfFeed {
            publisher: &mut self.publisher,
            sample: &sample,
        })?;
        match written {
            Written::Done(true) => self.counts.samples.increment(1),
            // The publisher counts which of the two it was.
            Written::Done(false) => {}
            Written::InVain => self.left_out(),
            Written::Stopped => self.counts.left.increment(1),
        }
        self.counts.no_topic.set(self.publisher.without_topic());
        let refused = self.publisher.refused();
        let more = refused - self.counts.refused.value();
        if more > 0 {
            self.counts.refused.set(refused);
            self.omissions.add(Why::OverLimit, more);
        }
        Ok(())
    }
}

/// A listener to the events of a topic.
type Listener = Box<dyn FnMut(Status) + Send>;

/// Returns what makes the listener to the events of each topic. The topics of the securities of one
/// template share its counters.
fn listeners(plan: Plan<'_>) -> impl FnMut(&TemplateType, &str) -> Listener {
    let mut shared = HashMap::new();
    move |template: &TemplateType, topic: &str| -> Listener {
        let counts = || TopicCounts::new(plan.counters, template.type_name(), "dds_readers");
        if topic == template.type_name() {
            return Box::new(counts().listener(plan.notices));
        }
        let new = || Arc::new(Mutex::new(counts()));
        let all = shared.entry(template.index).or_insert_with(new);
        Box::new(TopicCounts::share(all, topic, plan.notices))
    }
}

/// A sample for the topic of its template, or of its security.
struct OfFeed<'a> {
    publisher: &'a mut Publisher,
    sample: &'a Converted<'a>,
}

impl Attempt for OfFeed<'_> {
    type Done = bool;

    fn write(&mut self) -> Result<bool, DdsError> {
        self.publisher.publish(self.sample)
    }

    /// A sample without a topic is never in vain.
    fn topic(&self) -> &str {
        let writer = self.publisher.writer(self.sample);
        writer.map_or("", |writer| writer.topic().name())
    }

    fn is_acknowledged(&self) -> Result<bool, DdsError> {
        let writer = self.publisher.writer(self.sample);
        writer.map_or(Ok(true), |writer| writer.wait_for_acks(Duration::ZERO))
    }
}

impl Agent for TopicsPublisher {
    fn name(&self) -> &str {
        "feed-publisher"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.topics.look();
        Ok(self.turn(now)?)
    }

    /// Writes the samples from before the stop, while subscribers accept them in time.
    fn on_close(&mut self, now: Now) {
        while matches!(self.turn(now), Ok(1..)) {}
        let Topics {
            publisher,
            patience,
            ..
        } = &mut self.topics;
        // A subscriber that does not acknowledge in time loses the samples that it has not
        // received.
        let _ = publisher.wait_for_acks(patience.left(|_| true));
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use fanfare_fast::{Decoder, Program};

    #[test]
    fn samples_that_were_overwritten_are_known_by_number() {
        let text = "[feed]\ntemplates = \"builtin:simple\"\nlines = [\"239.1.1.1:1\"]\n\
                    [feed.publish]\nsplit = \"none\"\n";
        let feed = Config::from_toml(text).unwrap().feeds.remove(0);
        let topics = feed.publish.unwrap();
        let xml = "<templates><template name=\"T\" id=\"1\"><string name=\"S\"/></template>\
                   <template name=\"Done\" id=\"2\"><uInt32 name=\"X\"/></template></templates>";
        let program = Arc::new(Program::parse(xml).unwrap());
        let mapping = Arc::new(Mapping::new(Arc::clone(&program), &topics.types()).unwrap());
        let waker = Waker::detached().unwrap();
        let (mut ring, mut reader) = SampleRing::new(&topics, &mapping, 0, waker).unwrap();
        let mut packet = vec![0xc0, 0x81];
        packet.extend([b'x'; 60_000]);
        packet.push(b'y' | 0x80);
        let mut record = Record::new();
        Decoder::new(Arc::clone(&program))
            .decode_record(&packet, &mut record)
            .unwrap();
        for message in 0..200 {
            if message % 2 == 0 {
                ring.mark(message);
            }
            ring.put(&mut record);
            ring.end_mark();
        }
        Decoder::new(program)
            .decode_record(&[0xc0, 0x82, 0x81], &mut record)
            .unwrap();
        ring.put(&mut record);
        let mut heads = Vec::new();
        let batch = reader.read(TURN, |record| {
            let (mark, bytes) = Mark::split(record.kind, record.bytes);
            let is_even = record.kind & !MARKED == IS_SAMPLE && record.sequence % 2 == 0;
            assert_eq!(
                mark.map(|mark| mark.arrived),
                is_even.then_some(record.sequence)
            );
            heads.push((record.kind & !MARKED, record.sequence));
            if record.kind & !MARKED == IS_SAMPLE {
                let sample = Converted::read(&mapping, bytes).unwrap();
                assert_eq!((sample.template.name.as_str(), sample.key), ("T", None));
            }
        });
        assert!(batch.lost > 0 && !heads.is_empty());
        let (end, samples) = heads.split_last().unwrap();
        assert_eq!(*end, (IS_END, 200));
        let first = 200 - samples.len() as u64;
        let expected: Vec<_> = (first..200).map(|n| (IS_SAMPLE, n)).collect();
        assert_eq!(samples, expected);
    }
}
