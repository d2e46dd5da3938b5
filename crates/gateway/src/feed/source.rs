//! The receiver of a feed, and the handler of its messages.

use super::FeedError;
use super::config::Feed;
use super::fan::Fan;
use super::feed_notice::FeedNotice;
use super::files::dictionaries;
use super::meters::{LineMeters, Use};
use super::publish::SampleRing;
use crate::counts::FeedCounts;
use crate::dds::channels::{self, Identity};
use crate::fanout::hole::{Hole, Missing};
use crate::fanout::source_rings::SourceRings;
use crate::fanout::stamp::Stamp;
use crate::fanout::versions::Versions;
use crate::gateway::plan::Plan;
use crate::history::RawInlets;
use crate::market::MarketFeed;
use crate::market::ring::EventRing;
use crate::notice::{Limit, Notice, Notices};
use crate::stages::SourceStages;
use fanfare_engine::agent::AgentError;
use fanfare_engine::feed::Receiver;
use fanfare_fast::{Decoder, Program};
use fanfare_feed::Gap;
use fanfare_feed::channel::{BadPacket, Delivered, Event, Fault};
use fanfare_fix::session::Now;
use fanfare_history::Source;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The number of parts of the ring. A turn needs two of them free, or three with several versions.
const PARTS: usize = 8;

/// The receiver of a feed, which writes its messages to all outlets.
pub(crate) struct FeedSource {
    receiver: Receiver,
    handler: FeedHandler,
    market: Option<MarketFeed>,
    stages: Option<SourceStages>,
    meters: LineMeters,
    packets: PacketNotices,
    /// The size of a part of the ring, in bytes.
    part: usize,
    /// Whether the last turn had to wait for the workers.
    waits: bool,
}

/// The outlets of a feed's messages.
pub(crate) struct Outlets {
    /// The consumers, and DDS.
    pub(crate) source_rings: SourceRings,
    /// The consumers' versions.
    pub(crate) versions: Versions,
    /// Topics of the templates' own types.
    pub(crate) to_topics: Option<SampleRing>,
    /// The size of the ring to the workers, in bytes.
    pub(crate) ring_bytes: usize,
}

/// The handler of a feed's messages.
struct FeedHandler {
    fan: Fan,
    channel: Vec<u8>,
    /// The hash of `channel`.
    name: u64,
    source_rings: SourceRings,
    to_topics: Option<SampleRing>,
    utc_nanos: i64,
    counts: FeedCounts,
    /// The first packet that could not be decoded since the last notice.
    bad_packet: Option<BadPacket>,
}

/// The notices of packets that could not be decoded.
struct PacketNotices {
    channel: Arc<str>,
    notices: Notices,
    limit: Limit,
}

impl FeedSource {
    /// Reads the dictionaries, and joins the lines.
    pub(crate) fn open(
        feed: &Feed,
        program: Arc<Program>,
        outlets: Outlets,
        market: Option<MarketFeed>,
        plan: Plan<'_>,
    ) -> Result<Self, FeedError> {
        let own = dictionaries(feed, plan.notices)?;
        let fan = Fan::new(feed, &program, own, outlets.versions, plan);
        let decoder = Decoder::with_options(program, feed.decoding());
        let receiver = Receiver::open(feed.receiver(), decoder)?;
        if let Some(small) = receiver.small_buffer() {
            plan.notices.send(Notice::SmallBuffer(small));
        }
        let channel = feed.channel();
        let counters = plan.counters;
        Ok(Self {
            meters: LineMeters::new(counters, &channel, Use::Changes, feed.lines.len()),
            packets: PacketNotices {
                channel: channel.as_str().into(),
                notices: plan.notices.clone(),
                limit: Limit::default(),
            },
            receiver,
            handler: FeedHandler {
                counts: FeedCounts::new(counters, &channel),
                name: channels::hash_of(channel.as_bytes()),
                channel: channel.into_bytes(),
                fan,
                source_rings: outlets.source_rings,
                to_topics: outlets.to_topics,
                utc_nanos: 0,
                bad_packet: None,
            },
            stages: plan.stages.feed(&feed.channel(), market.is_some()),
            market,
            part: outlets.ring_bytes / PARTS,
            waits: false,
        })
    }

    /// Also writes all datagrams to the raw log. `place` is the feed's number among the markets,
    /// from 1, or 0 if it is not one.
    pub(crate) fn log_to(&mut self, log: &mut RawInlets, place: u16) {
        self.receiver.set_tap(log.tap(Source::Line, place));
        if let Some(market) = &mut self.market {
            market.log_to(log, place);
        }
    }
}

impl FeedHandler {
    fn take(&mut self, event: &mut Event<'_>) {
        match event {
            Event::Message(message) => self.message(message),
            Event::Bad(bad) if matches!(bad.fault, Fault::Refused(_)) => {
                self.counts.unusable.increment(1);
            }
            Event::Bad(bad) => {
                self.counts.bad_packets.increment(1);
                self.bad_packet.get_or_insert(*bad);
                self.fan
                    .miss(&Hole::new(Missing::Undecodable, 0, self.utc_nanos));
            }
            Event::Gap(gap) => self.gap(*gap),
            // Messages that may still arrive are not missing yet.
            Event::Recover(_) => {}
            Event::Reset { .. } => self.counts.restarts.increment(1),
        }
    }

    /// Writes a message to the workers and to DDS, then to the topics.
    fn message(&mut self, message: &mut Delivered<'_>) {
        self.counts.messages.increment(1);
        let &mut Delivered {
            ref mut record,
            program,
            number,
            index,
            ..
        } = message;
        // Its numbers are for DDS only.
        let number = number.filter(|_| self.source_rings.wants_symbol());
        let identity = number.map(|number| Identity {
            channel: &self.channel,
            number,
            index,
            // Computed by the publisher, not on the path to the consumers.
            epoch: 0,
        });
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            identity: identity.unwrap_or_default(),
            ..Stamp::default()
        };
        if let Some(view) = record.view(program) {
            self.fan.message(view, &mut self.source_rings, stamp);
        }
        if let Some(topics) = &mut self.to_topics {
            topics.put(record);
        }
    }

    fn gap(&mut self, gap: Gap) {
        self.counts.missing.increment(gap.count.into());
        self.fan.miss(&Hole {
            first: gap.first.into(),
            last: gap.last().into(),
            feed: self.name,
            ..Hole::new(Missing::FeedGap, gap.count.into(), self.utc_nanos)
        });
    }
}

impl PacketNotices {
    /// Sends a notice of the first packet since the last one that could not be decoded.
    fn tell(&mut self, handler: &mut FeedHandler) {
        let Some(bad) = handler.bad_packet.take() else {
            return;
        };
        if !self.limit.lets(handler.utc_nanos) {
            return;
        }
        let number = bad.number.map(|number| format!(", number {number}"));
        let number = number.unwrap_or_default();
        self.notices.send(Notice::Feed(FeedNotice::Packet {
            channel: Arc::clone(&self.channel),
            what: format!("packet of line {}{number}: {}", bad.line, bad.fault),
        }));
    }
}

/// Processes a message of a turn that is measured: first to FIX, then by `to_market`, which returns
/// when the market events were written.
fn measured(
    arrived: u64,
    stages: &mut SourceStages,
    handler: &mut FeedHandler,
    event: &mut Event<'_>,
    to_market: impl FnOnce(&Event<'_>) -> Option<u64>,
) {
    handler.source_rings.mark(arrived);
    if let Some(topics) = &mut handler.to_topics {
        topics.mark(arrived);
    }
    handler.take(event);
    if let Some(topics) = &mut handler.to_topics {
        topics.end_mark();
    }
    stages.end_fix(handler.source_rings.end_mark());
    stages.end_event(to_market(event));
}

impl FeedSource {
    /// Processes the datagrams that have arrived.
    pub(super) fn turn(
        &mut self,
        now: Now,
        events: Option<&mut EventRing>,
    ) -> Result<usize, AgentError> {
        if self.meters.look(now, &self.receiver) {
            self.count();
            self.packets.tell(&mut self.handler);
        }
        // While the workers are behind, the kernel holds the datagrams, and counts those it drops.
        // The bodies of several versions need more of the ring. More than half of it is never
        // certain to be free.
        let parts = if self.handler.fan.look() > 1 { 3 } else { 2 };
        self.waits = !self.handler.source_rings.has_room(self.part * parts);
        if self.waits {
            return Ok(0);
        }
        self.handler.utc_nanos = now.utc.nanos();
        let (handler, market) = (&mut self.handler, &mut self.market);
        let mut market = market.as_mut().zip(events);
        let stages = &mut self.stages;
        if let Some(stages) = stages {
            stages.turn(now);
        }
        let turn = self.receiver.turn(now.mono, |mut event| {
            if let Some(stages) = stages
                && let Event::Message(message) = &event
                && let Some(arrived) = stages.decoded(message.received)
            {
                measured(arrived, stages, handler, &mut event, |event| {
                    if let Some((market, ring)) = &mut market {
                        ring.mark(arrived);
                        market.channel(now.mono, event, ring);
                        return ring.end_mark();
                    }
                    None
                });
                return Ok::<_, AgentError>(ControlFlow::Continue(()));
            }
            handler.take(&mut event);
            if let Some((market, ring)) = &mut market {
                market.channel(now.mono, &event, ring);
            }
            Ok::<_, AgentError>(ControlFlow::Continue(()))
        })?;
        let mut work = turn.datagrams;
        if let Some((market, ring)) = market {
            work += market.turn(now, turn.datagrams, ring)?;
        }
        self.handler
            .counts
            .datagrams
            .increment(turn.datagrams as u64);
        let FeedHandler {
            fan, source_rings, ..
        } = &mut self.handler;
        fan.put_holes(source_rings);
        self.handler.source_rings.wake();
        if let Some(topics) = &mut self.handler.to_topics {
            topics.wake();
        }
        Ok(work)
    }

    /// Returns whether messages that had arrived before the last turn are still to be processed.
    pub(super) fn is_behind(&self) -> bool {
        self.waits || self.receiver.is_behind()
    }

    /// Sets the counters that are not counted on arrival.
    fn count(&self) {
        let counts = &self.handler.counts;
        counts.strangers.set(self.receiver.strangers());
        counts.kernel_drops.set(self.meters.drops());
    }

    /// Closes the feed. What waits behind a missing packet, and the last events of its market, are
    /// written to the rings.
    pub(super) fn close(&mut self, now: Now, mut events: Option<&mut EventRing>) {
        self.end_waits(now, events.as_deref_mut());
        self.packets.tell(&mut self.handler);
        self.meters.set(now, &self.receiver, true);
        self.count();
        let counts = &self.handler.counts;
        let stats = self.receiver.channel().stats();
        counts.unusable.increment(stats.unnumbered_dropped);
        // An error here means that a socket is gone, with the bytes it held.
        counts.unread.set(self.receiver.unread().unwrap_or(0));
        if let Some(market) = &mut self.market {
            market.close(now, events);
        }
    }

    /// Processes the packets that wait for a missing one before them, which is missing for good.
    fn end_waits(&mut self, now: Now, events: Option<&mut EventRing>) {
        let (handler, market) = (&mut self.handler, &mut self.market);
        let mut market = market.as_mut().zip(events);
        handler.utc_nanos = now.utc.nanos();
        let _ = self.receiver.finish(|mut event| {
            handler.take(&mut event);
            if let Some((market, ring)) = &mut market {
                market.channel(now.mono, &event, ring);
            }
            Ok::<_, Infallible>(ControlFlow::Continue(()))
        });
        handler.fan.put_holes(&mut handler.source_rings);
        handler.source_rings.wake();
        if let Some(topics) = &mut handler.to_topics {
            topics.wake();
        }
    }

    /// Returns the feed's market, if it is one.
    pub(super) const fn market(&mut self) -> Option<&mut MarketFeed> {
        self.market.as_mut()
    }

    /// Adds the descriptors that wake the feed's thread.
    pub(super) fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.receiver.descriptor());
        if let Some(market) = &self.market {
            market.wait_for(descriptors);
        }
    }

    /// Returns the time of the feed's next turn if no datagram arrives.
    pub(super) fn next_timer(&self) -> Option<u64> {
        let market = self.market.as_ref().and_then(MarketFeed::next_timer);
        self.receiver.next_timer().into_iter().chain(market).min()
    }
}
