//! A feed as market events: its instruments, books and states, kept by the thread that receives it,
//! and a ring that carries the events to every outlet.

mod awaited;
pub(crate) mod config;
pub(crate) mod error;
mod files;
pub(crate) mod mappings;
pub(crate) mod outlet;
pub(crate) mod place;
pub(crate) mod ring;
pub(crate) mod states;

use crate::edges::relay::Relay;
use crate::feed::config::Feed;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::feed::meters::{LineMeters, Use};
use crate::gateway::plan::Plan;
use crate::history::{KnownInstruments, RawInlets};
use crate::notice::{Limit, Notice, Notices};
use error::MarketError;
use fanfare_engine::agent::AgentError;
use fanfare_engine::feed::Receiver;
use fanfare_engine::poll::Waker;
use fanfare_engine::replay::{Answer, Replayer};
use fanfare_fast::{Decoder, Program};
use fanfare_feed::channel::{BadPacket, Event as ChannelEvent};
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::session::Now;
use fanfare_history::Source;
use fanfare_market::{Event, Follower};
pub(crate) use files::{check, password, read_instruments, session_mapper};
use mappings::{InForce, Mappings, Slot};
use outlet::{MarketOutlet, SHOWN, left_out};
use place::Place;
use ring::EventRing;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// The most responses of a replay that are processed in a turn.
const ANSWERS: usize = 64;

/// The longest time that snapshots are delayed while changes arrive, in nanoseconds, because a look
/// is a system call.
const BETWEEN_LOOKS: u64 = 1_000_000;

/// A feed's market.
pub(crate) struct MarketFeed {
    follower: Follower,
    /// The slot for a new mapping of a reload.
    slot: Slot,
    snapshots: Vec<Receiver>,
    meters: Vec<LineMeters>,
    /// The faults of snapshots that were counted so far.
    bad_snapshots: u64,
    /// The first packet of snapshot lines since the last notice that could not be read, with the
    /// number of the lines, from 0.
    bad_packet: Option<(usize, BadPacket)>,
    snapshot_limit: Limit,
    /// The time at which snapshots were last polled.
    looked: u64,
    replay: Option<(Replayer, FixDecoder)>,
    /// The restarts of the channel that the replay was told of.
    resets: u64,
    outlet: MarketOutlet,
    /// The relay to edges, if there may be any.
    relay: Option<Relay>,
    channel: Arc<str>,
    /// The time of the turn, in nanoseconds since 1970.
    utc_nanos: i64,
    faults: Faults,
    /// The count in the last notice of entries left out.
    left_out: u64,
    limit: Limit,
    notices: Notices,
}

/// The number of values so far that no event can hold.
#[derive(Default)]
struct Faults {
    /// Of messages of the feed, and of responses of a replay in FAST.
    of_feed: u64,
    /// With those of responses in FIX.
    total: u64,
}

/// The state that all feeds of a plant share.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    /// The waker of their thread.
    pub(crate) waker: &'a Waker,
    /// The mappings in force, for reloads.
    pub(crate) mappings: &'a Mappings,
    /// The instruments in the log.
    pub(crate) known: &'a KnownInstruments,
}

impl MarketFeed {
    /// Joins the lines with snapshots, and starts the replay, which wakes the feed's thread. The
    /// slot of its mapping is added to the mappings in force.
    pub(crate) fn open(
        feed: &Feed,
        program: &Arc<Program>,
        place: Place,
        held: Held<'_>,
        relay: Option<Relay>,
        plan: Plan<'_>,
    ) -> Result<Self, MarketError> {
        let Place { source, base } = place;
        let mapping = files::mapping(feed, program)?;
        let mappers = files::mappers(feed, &mapping, program, source)?;
        let mut follower = files::follower(feed, mappers, source, held.known)?;
        if relay.is_some() {
            follower = follower.with_steps();
        }
        let open = |lines| {
            let decoder = Decoder::with_options(Arc::clone(program), feed.decoding());
            Ok::<_, MarketError>(Receiver::open(feed.snapshot_receiver(lines), decoder)?)
        };
        let snapshots = feed.snapshot.iter().map(open);
        let snapshots = snapshots.collect::<Result<Vec<_>, _>>()?;
        let small = snapshots.iter().find_map(Receiver::small_buffer);
        if let Some(small) = small {
            plan.notices.send(Notice::SmallBuffer(small));
        }
        let replay = match &feed.replay {
            Some(replay) => Some(files::replayer(feed, replay, program, held.waker)?),
            None => None,
        };
        let slot = Slot::default();
        held.mappings.add(InForce {
            channel: feed.channel(),
            mapping,
            program: Arc::clone(program),
            source,
            slot: slot.clone(),
            waker: held.waker.clone(),
        });
        let channel: Arc<str> = feed.channel().into();
        Ok(Self {
            follower,
            slot,
            meters: feed
                .snapshot
                .iter()
                .enumerate()
                .map(|(place, own)| {
                    let (what, lines) = (Use::Snapshots(place), own.lines.len());
                    LineMeters::new(plan.counters, &channel, what, lines)
                })
                .collect(),
            bad_snapshots: 0,
            bad_packet: None,
            snapshot_limit: Limit::default(),
            snapshots,
            looked: 0,
            replay: replay.map(|replayer| (replayer, FixDecoder::new())),
            resets: 0,
            outlet: MarketOutlet::new(Arc::clone(&channel), base, plan).with_values(),
            relay,
            channel,
            utc_nanos: 0,
            faults: Faults::default(),
            left_out: 0,
            limit: Limit::default(),
            notices: plan.notices.clone(),
        })
    }

    /// Also writes all datagrams with snapshots to the raw log.
    pub(crate) fn log_to(&mut self, log: &mut RawInlets, place: u16) {
        for lines in &mut self.snapshots {
            lines.set_tap(log.tap(Source::Snapshots, place));
        }
    }

    /// Processes an event of the channel of changes. Allocates for new instruments and books, and
    /// for queued changes.
    #[inline]
    pub(crate) fn channel(&mut self, now: u64, event: &ChannelEvent<'_>, ring: &mut EventRing) {
        let brought = &mut self.outlet.brought;
        self.follower
            .channel(now, event, &mut |event| brought.take(event));
        self.pass_on(now, ring);
    }

    /// Processes everything besides the changes, of which the turn brought `changes` datagrams:
    /// snapshots, the replay, silence. Returns the number of datagrams and responses.
    pub(crate) fn turn(
        &mut self,
        now: Now,
        changes: usize,
        ring: &mut EventRing,
    ) -> Result<usize, AgentError> {
        self.utc_nanos = now.utc.nanos();
        self.remap(now, ring);
        self.cancel();
        let mut work = self.answers(now, ring);
        if changes == 0 || now.mono.saturating_sub(self.looked) >= BETWEEN_LOOKS {
            self.looked = now.mono;
            work += self.snapshots(now, ring)?;
        }
        if self
            .follower
            .poll_timeout()
            .is_some_and(|at| at <= now.mono)
        {
            let brought = &mut self.outlet.brought;
            self.follower
                .handle_timeout(now.mono, &mut |event| brought.take(event));
            self.pass_on(now.mono, ring);
        }
        self.ask(now);
        self.outlet.count(now.mono);
        if self.outlet.is_due(now.mono) {
            self.count(now);
            self.describe_snapshots();
            self.outlet.tell_room(self.follower.instruments());
        }
        self.describe_left_out();
        if let Some(relay) = &mut self.relay {
            relay.turn(now, &mut self.follower);
        }
        Ok(work)
    }

    /// Introduces the instruments of a file and of the log, which are known before the feed brings
    /// anything.
    pub(crate) fn introduce(&mut self, ring: &mut EventRing) {
        self.outlet.introduce(self.follower.instruments(), ring);
    }

    /// Adopts a new mapping, if a reload has stored one.
    #[inline]
    fn remap(&mut self, now: Now, ring: &mut EventRing) {
        let (follower, brought) = (&mut self.follower, &mut self.outlet.brought);
        let is_taken = self
            .slot
            .take(|mappers| follower.remap(now.mono, mappers, &mut |event| brought.take(event)));
        if is_taken {
            self.pass_on(now.mono, ring);
        }
    }

    fn snapshots(&mut self, now: Now, ring: &mut EventRing) -> Result<usize, AgentError> {
        let mut datagrams = 0;
        let mut snapshots = std::mem::take(&mut self.snapshots);
        for (at, lines) in snapshots.iter_mut().enumerate() {
            let turn = lines.turn(now.mono, |event| {
                if let ChannelEvent::Bad(bad) = &event {
                    self.outlet.counts.bad_snapshots.increment(1);
                    self.bad_packet.get_or_insert((at, *bad));
                }
                let brought = &mut self.outlet.brought;
                self.follower
                    .snapshot_lines(at, now.mono, &event, &mut |event| brought.take(event));
                self.pass_on(now.mono, ring);
                Ok::<_, AgentError>(ControlFlow::Continue(()))
            })?;
            datagrams += turn.datagrams;
        }
        self.snapshots = snapshots;
        self.outlet.counts.snapshots.increment(datagrams as u64);
        Ok(datagrams)
    }

    /// Cancels the request to the replay if the channel has restarted: its messages are those of
    /// the run before.
    fn cancel(&mut self) {
        let resets = self.follower.stats().resets;
        if std::mem::replace(&mut self.resets, resets) != resets
            && let Some((replayer, _)) = &self.replay
        {
            replayer.cancel();
        }
    }

    /// Requests what is missing from the replay, unless a request is under way: each one that the
    /// follower returns counts as an attempt.
    fn ask(&mut self, now: Now) {
        if let Some((replayer, _)) = &self.replay
            && !replayer.is_busy()
            && let Some(range) = self.follower.poll_request(now.mono)
            && !replayer.request(range)
        {
            // Its thread has ended.
            self.follower.replay_refused(now.mono);
        }
    }

    /// Processes responses of the replay.
    fn answers(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let mut taken = 0;
        while taken < ANSWERS
            && let Some((replayer, _)) = &self.replay
            && let Some(answer) = replayer.poll()
        {
            taken += 1;
            self.answer(now, answer);
            // The mapping has the faults of the last message alone.
            self.look_for_faults();
        }
        if taken > 0 {
            self.pass_on(now.mono, ring);
        }
        taken
    }

    /// Processes a part of a response of the replay.
    fn answer(&mut self, now: Now, answer: Answer) {
        let received = now.utc.nanos().unsigned_abs();
        let (follower, brought) = (&mut self.follower, &mut self.outlet.brought);
        let send = &mut |event: &Event| brought.take(event);
        match answer {
            Answer::Fast { number, records } => {
                follower.replayed(now.mono, number, received, &records, send);
            }
            Answer::Fix { number, message } => {
                // A message that cannot be decoded stays missing.
                if let Some((_, decoder)) = &mut self.replay
                    && let Ok(message) = decoder.decode(&message)
                {
                    follower.replayed_fix(now.mono, number, received, &message, send);
                }
            }
            Answer::Done => follower.replay_done(),
            Answer::Refused(why) => {
                follower.replay_refused(now.mono);
                let (channel, what) = (Arc::clone(&self.channel), MarketNotice::Replay(why));
                let notice = FeedNotice::Market { channel, what };
                self.notices.send(Notice::Feed(notice));
            }
        }
    }

    /// Shows the next instruments again, after a reader has lost events, each in a message of its
    /// own. Returns their number.
    pub(crate) fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        for shown in 0..SHOWN {
            let (follower, outlet) = (&mut self.follower, &mut self.outlet);
            let is_there = outlet.show_next(now, |received, instrument, events| {
                follower.show(received, instrument, &mut |event| events.push(*event));
            });
            if !is_there {
                return shown;
            }
            self.pass_on(now.mono, ring);
        }
        SHOWN
    }

    /// Returns the outlet to the ring.
    pub(crate) const fn outlet(&mut self) -> &mut MarketOutlet {
        &mut self.outlet
    }

    /// Writes the collected records to the ring: new and changed instruments, then events.
    #[inline]
    fn pass_on(&mut self, now: u64, ring: &mut EventRing) {
        if let Some(relay) = &mut self.relay {
            relay.see(now, &self.outlet.brought.events);
        }
        self.outlet.pass_on(self.follower.instruments(), ring);
        self.look_for_faults();
    }

    /// Sends notices of new values that no event can hold.
    #[inline]
    fn look_for_faults(&mut self) {
        if self.follower.counts().faults != self.faults.total {
            self.describe_faults();
        }
    }

    #[cold]
    fn describe_faults(&mut self) {
        let (mapper, table) = (self.follower.mapper(), self.follower.instruments());
        let mut tell = |describe: &dyn Fn() -> String| {
            if self.limit.lets(self.utc_nanos) {
                let (channel, what) = (Arc::clone(&self.channel), MarketNotice::Value(describe()));
                let notice = FeedNotice::Market { channel, what };
                self.notices.send(Notice::Feed(notice));
            }
        };
        // The other mapping still has the faults of an earlier message.
        let of_feed = mapper.counts().faults;
        if of_feed != self.faults.of_feed {
            for fault in mapper.faults() {
                tell(&|| mapper.describe(fault, table));
            }
        } else if let Some(mapper) = self.follower.fix_mapper() {
            for fault in mapper.faults() {
                tell(&|| mapper.describe(fault, table));
            }
        }
        self.faults = Faults {
            of_feed,
            total: self.follower.counts().faults,
        };
    }

    /// Sends notices of the first snapshot, and of the first packet of its lines, that were not
    /// read since the last call.
    fn describe_snapshots(&mut self) {
        let fault = self.follower.take_snapshot_fault();
        let packet = self.bad_packet.take();
        if fault.is_none() && packet.is_none() {
            return;
        }
        let fault = fault.map(|fault| self.follower.describe_snapshot(&fault));
        let packet = packet.map(|(lines, bad)| of_packet(lines, &bad));
        for what in fault.into_iter().chain(packet) {
            if self.snapshot_limit.lets(self.utc_nanos) {
                let (channel, what) = (Arc::clone(&self.channel), MarketNotice::Snapshot(what));
                let notice = FeedNotice::Market { channel, what };
                self.notices.send(Notice::Feed(notice));
            }
        }
    }

    /// Sends a notice of entries left out by the mapping and the limits: of the first, and whenever
    /// the count has doubled.
    fn describe_left_out(&mut self) {
        let (counts, market) = (self.follower.counts(), self.follower.market());
        let refused = market.stats().refused;
        let Some(what) = left_out(counts, refused, &mut self.left_out) else {
            return;
        };
        let channel = Arc::clone(&self.channel);
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Closes the market: drops the changes that still wait, passes on the trades among them, and
    /// sets the counters.
    pub(crate) fn close(&mut self, now: Now, ring: Option<&mut EventRing>) {
        if let Some(ring) = ring {
            let brought = &mut self.outlet.brought;
            self.follower.finish(&mut |event| brought.take(event));
            if let Some(relay) = &mut self.relay {
                relay.see(now.mono, &self.outlet.brought.events);
            }
            self.outlet.pass_last(self.follower.instruments(), ring);
            self.look_for_faults();
        }
        for (meters, lines) in self.meters.iter().zip(&self.snapshots) {
            meters.set(now, lines, true);
        }
        self.count(now);
        self.describe_snapshots();
    }

    /// Sets the counters that are not counted on arrival. Allocates nothing.
    fn count(&mut self, now: Now) {
        for (meters, lines) in self.meters.iter_mut().zip(&self.snapshots) {
            meters.look(now, lines);
        }
        self.outlet.set_counts();
        let market = self.follower.market();
        let (counts, recovery) = (&self.outlet.counts, market.recovery_stats());
        let mapped = self.follower.counts();
        counts.instruments.set(self.outlet.known().into());
        let fragments = self.follower.fragment_stats();
        let in_parts = fragments.discarded + fragments.no_room + fragments.without_beginning;
        let bad = self.follower.stats().bad_snapshots + in_parts;
        counts.bad_snapshots.increment(bad - self.bad_snapshots);
        self.bad_snapshots = bad;
        let left_out = mapped.no_rule + mapped.without_instrument + mapped.unknown_instrument;
        counts.left_out.set(left_out);
        let drops = self.meters.iter().map(LineMeters::drops);
        counts.snapshot_drops.set(drops.sum());
        counts
            .refused
            .set(self.follower.instruments().refused() + market.stats().refused);
        counts.faults.set(market.stats().faults);
        counts.recoveries.set(recovery.recoveries);
        counts.recovered.set(recovery.recovered);
        counts.taken.set(recovery.snapshots_taken);
        counts.dropped.set(recovery.dropped);
        counts.errors.set(mapped.faults);
        if let Some(replay) = self.follower.replay_stats() {
            let sent = self.replay.as_ref().map(|(replayer, _)| replayer.sent());
            counts.requests.set(sent.unwrap_or_default());
            counts.given_up.set(replay.given_up);
        }
    }

    pub(crate) fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.snapshots.iter().map(Receiver::descriptor));
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        let lines = self.snapshots.iter().filter_map(Receiver::next_timer);
        let relay = self.relay.as_ref().and_then(Relay::next_timer);
        lines.chain(self.follower.poll_timeout()).chain(relay).min()
    }
}

/// Describes a packet of snapshot lines, whose groups are numbered from 0, that could not be read.
fn of_packet(lines: usize, bad: &BadPacket) -> String {
    let (line, fault) = (bad.line, bad.fault);
    let number = bad.number.map(|number| format!(", number {number}"));
    let number = number.unwrap_or_default();
    match lines {
        0 => format!("packet of the snapshots, line {line}{number}: {fault}"),
        more => format!(
            "packet of snapshots {}, line {line}{number}: {fault}",
            more + 1
        ),
    }
}
