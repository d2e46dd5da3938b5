//! The publisher of the gateway's messages on DDS.

use crate::counts::{PublishCounts, TopicCounts};
use crate::dds::ack_wait::{AckWait, OfWriter, Written};
use crate::dds::channels;
use crate::dds::config::DdsEnd;
use crate::dds::entry::{self, Entry, MAX_SYMBOL};
use crate::dds::omissions::Omissions;
use crate::dds::sample::{self, OVERHEAD};
use crate::fanout::hole::Hole;
use crate::gateway::plan::Plan;
use crate::notice::{Outlet as Way, Why};
use crate::stages::{End, Mark, OutletStages};
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Domain, Error, Qos, Writer};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::BroadcastReader;
use fanfare_fix::session::Now;

/// The most messages of one turn.
const TURN: usize = 64;

/// The agent that reads the rings to DDS and writes samples. It has a thread of its own, because a
/// reliable write may block.
pub(crate) struct DdsPublisher {
    rings: Vec<Ring>,
    waker: Waker,
    stages: Option<OutletStages>,
    outlets: Outlets,
}

/// The ring of a source.
struct Ring {
    reader: BroadcastReader,
    /// The sequence number of the next record, if none is lost.
    next: u64,
    /// The messages of its feed that are missing before the next one that is written.
    hole: Option<Hole>,
}

/// The writers, by MsgType(35).
struct Outlets {
    outlets: Vec<Outlet>,
    /// This gateway's origin in this run.
    origin: u64,
    /// The number of the last message of this gateway's own that was written, on any topic.
    order: u64,
    /// The MsgTypes(35) of the topics, separated by spaces.
    types: Vec<u8>,
    buffer: CdrBuffer,
    patience: AckWait,
    omissions: Omissions,
    counts: PublishCounts,
}

struct Outlet {
    msg_type: Vec<u8>,
    writer: Writer,
    /// The number of the last message of this gateway's own.
    number: u64,
}

impl DdsPublisher {
    /// Opens the topics.
    pub(crate) fn open(
        end: &DdsEnd,
        domain: &Domain,
        rings: Vec<BroadcastReader>,
        waker: Waker,
        plan: Plan<'_>,
    ) -> Result<Self, Error> {
        // A topic has no policies of its own, as both directions may have one participant, in which
        // all topics of a name need the same.
        let (t, qos) = (sample::sample_type(), end.qos());
        let mut outlets = Vec::new();
        for msg_type in &end.msg_types {
            let name = sample::topic_name(&end.topics, msg_type);
            let writer = domain.topic(&name, &t, &Qos::default())?.writer(&qos);
            let counts = TopicCounts::new(plan.counters, &name, "dds_readers");
            let writer = writer.on_status(counts.listener(plan.notices));
            outlets.push(Outlet {
                msg_type: msg_type.clone().into_bytes(),
                writer: writer.open()?,
                number: 0,
            });
        }
        let types = end.msg_types.join(" ").into_bytes();
        let longest = plan.message_bytes + MAX_SYMBOL + OVERHEAD + types.len();
        let rings = rings.into_iter().map(|reader| Ring {
            reader,
            next: 0,
            hole: None,
        });
        Ok(Self {
            rings: rings.collect(),
            waker,
            stages: plan.stages.outlet("dds", End::Dds),
            outlets: Outlets {
                outlets,
                origin: plan.origin,
                order: 0,
                types,
                buffer: CdrBuffer::with_capacity(longest),
                patience: AckWait::new(end.wait_ms, plan.stop.clone(), plan.notices.clone()),
                omissions: Omissions::new(Way::Dds, plan.notices.clone()),
                counts: PublishCounts::new(plan.counters, ""),
            },
        })
    }
}

impl Agent for DdsPublisher {
    fn name(&self) -> &str {
        "dds-publisher"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.outlets.omissions.look();
        Ok(self.turn(now)?)
    }

    /// Writes the messages from before the stop, while subscribers accept them in time. A
    /// subscriber that does not would delay the stop by its time-out with each message.
    fn on_close(&mut self, now: Now) {
        while matches!(self.turn(now), Ok(1..)) {}
        let Outlets {
            outlets, patience, ..
        } = &mut self.outlets;
        for outlet in outlets {
            // A subscriber that does not acknowledge in time loses the unacknowledged messages, and
            // counts them.
            let left = patience.left(|topic| topic == outlet.writer.topic().name());
            let _ = outlet.writer.wait_for_acks(left);
        }
    }

    fn waker(&self) -> Option<&Waker> {
        Some(&self.waker)
    }
}

impl DdsPublisher {
    /// Reads up to `TURN` records of each ring, fewer if writes may wait for long.
    fn turn(&mut self, now: Now) -> Result<usize, Error> {
        let mut work = 0;
        let before = self.outlets.counts.published.value();
        let patience = &self.outlets.patience;
        let most = patience.samples_of_turn(TURN, self.rings.len());
        for Ring { reader, next, hole } in &mut self.rings {
            let mut failed = None;
            let batch = reader.read(most, |record| {
                let (mark, bytes) = Mark::split(record.kind, record.bytes);
                if let (Some(mark), Some(stages)) = (mark, &mut self.stages) {
                    stages.take(mark, now.mono);
                }
                let Some(entry) = entry::read(bytes) else {
                    return;
                };
                let lost = record.sequence.saturating_sub(*next);
                *next = record.sequence + 1;
                if lost > 0 {
                    self.outlets.lose(lost, &entry);
                }
                if failed.is_none() {
                    failed = self.outlets.publish(&entry, hole).err();
                }
            });
            work += batch.read;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        if let Some(stages) = &mut self.stages {
            stages.end(self.outlets.counts.published.value() != before);
        }
        Ok(work)
    }
}

impl Outlets {
    /// Counts messages that were overwritten, of which `next` is the next one of the same source.
    /// Each topic leaves out as many numbers, because any of them may have been of its type:
    /// subscribers notice a gap, and count no fewer messages than are missing.
    fn lose(&mut self, lost: u64, next: &Entry<'_>) {
        self.counts.overrun.increment(lost);
        self.omissions.add(Why::Overrun, lost);
        // Messages of other gateways have numbers already.
        if next.stamp.origin == 0 {
            for outlet in &mut self.outlets {
                outlet.number += lost;
            }
        }
    }

    /// Publishes a message behind a hole of its source, if there is one, and clears that if the
    /// message is written.
    fn publish(&mut self, entry: &Entry<'_>, hole: &mut Option<Hole>) -> Result<(), Error> {
        // Relayed messages are of several feeds: the numbers of one mean nothing in another.
        if let Some(hole) = hole.as_mut().filter(|_| entry.stamp.origin != 0) {
            (hole.first, hole.last) = (0, 0);
        }
        if let Some(missing) = &entry.stamp.hole {
            Hole::join(hole, missing);
        }
        let of_type = |o: &Outlet| o.msg_type == entry.body.msg_type();
        let Some(place) = self.outlets.iter().position(of_type) else {
            self.counts.other_types.increment(1);
            return Ok(());
        };
        let Some(outlet) = self.outlets.get_mut(place) else {
            return Ok(());
        };
        let mut entry = *entry;
        let stamp = &mut entry.stamp;
        stamp.hole = *hole;
        let own = stamp.origin == 0;
        if own {
            // A message that is then dropped also takes a number, so that subscribers notice the
            // gap.
            outlet.number += 1;
            (stamp.origin, stamp.number) = (self.origin, outlet.number);
            // Subscribers wait for an Order that they lack: only what is written has one.
            stamp.order = self.order + 1;
        }
        // A string ends at a NUL: Symbols that differ after it would be one instance.
        if stamp.symbol.contains(&0) {
            self.refuse();
            return Ok(());
        }
        let identity = &mut stamp.identity;
        if identity.is_some() && identity.epoch == 0 {
            let epoch = channels::epoch(entry.body.msg_type(), entry.body.fields());
            identity.epoch = channels::epoch_at(epoch, stamp.sent);
        }
        let types = if own { self.types.as_slice() } else { &[] };
        let Ok(bytes) = sample::write(&entry, types, &mut self.buffer) else {
            self.counts.unsent.increment(1);
            return Ok(());
        };
        let writer = &outlet.writer;
        match self.patience.write(OfWriter { writer, bytes }) {
            Ok(Written::Done(())) => {
                *hole = None;
                self.order += u64::from(own);
                self.counts.published.increment(1);
                self.counts.relayed.increment(u64::from(!own));
            }
            Ok(Written::InVain) => {
                self.counts.unsent.increment(1);
                self.omissions.add(Why::Unacknowledged, 1);
            }
            Ok(Written::Stopped) => self.counts.left.increment(1),
            // Producers may invent any number of symbols, of any length.
            Err(Error::TooManyKeys { .. } | Error::LongKey { .. }) => self.refuse(),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Counts a message of a Symbol beyond a limit.
    fn refuse(&mut self) {
        self.counts.refused.increment(1);
        self.omissions.add(Why::OverLimit, 1);
    }
}
