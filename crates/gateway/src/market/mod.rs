//! A feed as market events: its instruments, books and states, kept by the thread that receives it,
//! and a ring that carries the events to every outlet.

pub(crate) mod config;
pub(crate) mod error;
mod files;
pub(crate) mod mappings;
pub(crate) mod ring;
pub(crate) mod states;

use crate::bridge::Plan;
use crate::counts::MarketCounts;
use crate::feed::config::Feed;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::notice::{Limit, Notice, Notices};
use error::MarketError;
use fanfare_engine::agent::AgentError;
use fanfare_engine::feed::Receiver;
use fanfare_engine::poll::Waker;
use fanfare_engine::replay::{Answer, Replayer};
use fanfare_fast::{Decoder, Program};
use fanfare_feed::channel::Event as ChannelEvent;
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::session::Now;
use fanfare_market::{Event, Follower, InstrumentId, Instruments, Kind};
pub(crate) use files::check;
use mappings::{InForce, Mappings, Slot};
use ring::{Brought, EventRing};
use states::{StateCounts, States};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Answers of a replay that are taken in a turn.
const ANSWERS: usize = 64;

/// Instruments that are shown once more in a turn, where a reader has lost events.
const SHOWN: u32 = 16;

/// How long pictures wait at most while changes come, in nanoseconds: a look is a system call.
const BETWEEN_LOOKS: u64 = 1_000_000;

/// The shortest time between two notices of the states of a feed's instruments, in nanoseconds;
/// while some recover, the longer one.
const BETWEEN: u64 = 1_000_000_000;
const WHILE_RECOVERING: u64 = 10_000_000_000;

/// A feed's market.
pub(crate) struct MarketFeed {
    follower: Follower,
    /// Another mapping, if a reload brings one.
    slot: Slot,
    snapshots: Vec<Receiver>,
    /// When they were looked at last.
    looked: u64,
    replay: Option<(Replayer, FixDecoder)>,
    /// The plant's number of the feed's first instrument.
    base: u32,
    brought: Brought,
    /// Instruments of the table that the ring has.
    known: u32,
    /// The next instrument to be shown once more; `None` if all were.
    shown: Option<u32>,
    /// All are to be shown again behind it: what was lost may have been among the first.
    is_asked_again: bool,
    states: States,
    /// The states of the last notice, and when it was sent.
    notice: (StateCounts, u64),
    channel: String,
    /// The time of the turn, in nanoseconds since 1970.
    utc_nanos: i64,
    /// Values so far that no event can hold.
    faults: u64,
    /// What the last notice of left out entries counted.
    left_out: u64,
    limit: Limit,
    counts: MarketCounts,
    notices: Notices,
}

impl MarketFeed {
    /// Joins the lines with pictures, and starts the replay, which wakes the feed's thread by
    /// `waker`. `source` is the place of the feed in the configuration, `base` the plant's number
    /// of its first instrument. What changes its mapping is added to `mappings`.
    pub(crate) fn open(
        feed: &Feed,
        program: &Arc<Program>,
        (source, base): (u16, u32),
        waker: &Waker,
        mappings: &Mappings,
        plan: Plan<'_>,
    ) -> Result<Self, MarketError> {
        let mapping = files::mapping(feed, program)?;
        let mappers = files::mappers(feed, &mapping, program, source)?;
        let follower = files::follower(feed, mappers, source)?;
        let open = |lines| {
            let decoder = Decoder::new(Arc::clone(program));
            Ok::<_, MarketError>(Receiver::open(feed.snapshot_receiver(lines), decoder)?)
        };
        let snapshots = feed.snapshot.iter().map(open);
        let snapshots = snapshots.collect::<Result<Vec<_>, _>>()?;
        let small = snapshots.iter().find_map(Receiver::small_buffer);
        if let Some(small) = small {
            plan.notices.send(Notice::SmallBuffer(small));
        }
        let replay = match &feed.replay {
            Some(replay) => Some(files::replayer(feed, replay, program, waker)?),
            None => None,
        };
        let slot = Slot::default();
        mappings.add(InForce {
            channel: feed.channel(),
            mapping,
            program: Arc::clone(program),
            source,
            slot: slot.clone(),
            waker: waker.clone(),
        });
        Ok(Self {
            follower,
            slot,
            snapshots,
            looked: 0,
            replay: replay.map(|replayer| (replayer, FixDecoder::new())),
            base,
            brought: Brought::default(),
            known: 0,
            shown: None,
            is_asked_again: false,
            states: States::default(),
            notice: Default::default(),
            channel: feed.channel(),
            utc_nanos: 0,
            faults: 0,
            left_out: 0,
            limit: Limit::default(),
            counts: MarketCounts::new(plan.counters, ""),
            notices: plan.notices.clone(),
        })
    }

    /// Takes what the channel of changes says. Allocates for new instruments and books, and for
    /// changes that wait.
    #[inline]
    pub(crate) fn channel(&mut self, now: u64, event: &ChannelEvent<'_>, ring: &mut EventRing) {
        let brought = &mut self.brought;
        self.follower
            .channel(now, event, &mut |event| brought.take(event));
        self.pass_on(ring);
    }

    /// What there is to do besides the changes, of which the turn brought `changes` datagrams:
    /// pictures, the replay, silence. Returns the datagrams and answers taken.
    pub(crate) fn turn(
        &mut self,
        now: Now,
        changes: usize,
        ring: &mut EventRing,
    ) -> Result<usize, AgentError> {
        self.utc_nanos = now.utc.nanos();
        self.remap(now, ring);
        let mut work = self.answers(now, ring);
        if changes == 0 || now.mono.saturating_sub(self.looked) >= BETWEEN_LOOKS {
            self.looked = now.mono;
            work += self.pictures(now, ring)?;
        }
        if self
            .follower
            .poll_timeout()
            .is_some_and(|at| at <= now.mono)
        {
            let brought = &mut self.brought;
            self.follower
                .handle_timeout(now.mono, &mut |event| brought.take(event));
            self.pass_on(ring);
        }
        if let Some((replayer, _)) = &self.replay
            && let Some(range) = self.follower.poll_request(now.mono)
            && !replayer.request(range)
        {
            // The last request is still under way: its answers are taken first.
            self.follower.replay_refused(now.mono);
        }
        self.count(now.mono);
        self.describe_left_out();
        Ok(work)
    }

    /// Takes another mapping, if a reload has brought one.
    #[inline]
    fn remap(&mut self, now: Now, ring: &mut EventRing) {
        let (follower, brought) = (&mut self.follower, &mut self.brought);
        let is_taken = self
            .slot
            .take(|mappers| follower.remap(now.mono, mappers, &mut |event| brought.take(event)));
        if is_taken {
            self.pass_on(ring);
        }
    }

    fn pictures(&mut self, now: Now, ring: &mut EventRing) -> Result<usize, AgentError> {
        let mut datagrams = 0;
        let mut snapshots = std::mem::take(&mut self.snapshots);
        for lines in &mut snapshots {
            let turn = lines.turn(now.mono, |event| {
                if let ChannelEvent::Bad(_) = event {
                    self.counts.bad_pictures.increment(1);
                }
                let brought = &mut self.brought;
                self.follower
                    .snapshot_channel(now.mono, &event, &mut |event| brought.take(event));
                self.pass_on(ring);
                Ok::<_, AgentError>(ControlFlow::Continue(()))
            })?;
            datagrams += turn.datagrams;
        }
        self.snapshots = snapshots;
        self.counts.pictures.increment(datagrams as u64);
        Ok(datagrams)
    }

    /// Takes answers of the replay.
    fn answers(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let Some((replayer, decoder)) = &mut self.replay else {
            return 0;
        };
        let received = now.utc.nanos().unsigned_abs();
        let mut taken = 0;
        while taken < ANSWERS
            && let Some(answer) = replayer.poll()
        {
            taken += 1;
            let (follower, brought) = (&mut self.follower, &mut self.brought);
            let send = &mut |event: &Event| brought.take(event);
            match answer {
                Answer::Fast { number, record } => {
                    follower.replayed(now.mono, number, received, &record, send);
                }
                Answer::Fix { number, message } => {
                    // One that cannot be decoded stays missing.
                    if let Ok(message) = decoder.decode(&message) {
                        follower.replayed_fix(now.mono, number, received, &message, send);
                    }
                }
                Answer::Done => follower.replay_done(),
                Answer::Refused(why) => {
                    follower.replay_refused(now.mono);
                    let (channel, what) = (self.channel.clone(), MarketNotice::Replay(why));
                    let notice = FeedNotice::Market { channel, what };
                    self.notices.send(Notice::Feed(notice));
                }
            }
        }
        if taken > 0 {
            self.pass_on(ring);
        }
        taken
    }

    /// Shows the next instruments once more where a reader has lost events. Returns their number.
    pub(crate) fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let Some(from) = self.shown else {
            return 0;
        };
        let end = from.saturating_add(SHOWN).min(self.known);
        let received = now.utc.nanos().unsigned_abs();
        for number in from..end {
            let (instrument, brought) = (InstrumentId(number), &mut self.brought);
            brought.changed.push(instrument);
            self.follower.show(received, instrument, &mut |event| {
                brought.events.push(*event);
            });
        }
        self.shown = match end < self.known {
            true => Some(end),
            false => std::mem::take(&mut self.is_asked_again).then_some(0),
        };
        self.pass_on(ring);
        (end - from) as usize
    }

    /// All instruments are to be shown once more.
    pub(crate) const fn show_all(&mut self) {
        match self.shown {
            Some(_) => self.is_asked_again = true,
            None => self.shown = Some(0),
        }
    }

    /// Whether some instruments are still to be shown.
    pub(crate) const fn is_showing(&self) -> bool {
        self.shown.is_some()
    }

    /// Writes what came to the ring: instruments that are new or have changed, then events.
    #[inline]
    fn pass_on(&mut self, ring: &mut EventRing) {
        let table = self.follower.instruments();
        if table.len() > self.known as usize || !self.brought.changed.is_empty() {
            put_instruments(table, self.base, &mut self.known, &mut self.brought, ring);
        }
        for event in &mut self.brought.events {
            if event.kind == Kind::State {
                self.states.take(event);
            }
            if event.instrument != InstrumentId::ALL {
                event.instrument.0 += self.base;
            }
        }
        let events = self.brought.events.len() as u64;
        self.counts.events.increment(events);
        ring.put(&mut self.brought.events);
        self.brought.events.clear();
        if self.follower.mapper().counts().faults != self.faults {
            self.describe_faults();
        }
    }

    /// Sends notices of values that no event can hold.
    #[cold]
    fn describe_faults(&mut self) {
        let mapper = self.follower.mapper();
        self.faults = mapper.counts().faults;
        for fault in mapper.faults() {
            if self.limit.lets(self.utc_nanos) {
                let what = mapper.describe(fault, self.follower.instruments());
                let (channel, what) = (self.channel.clone(), MarketNotice::Value(what));
                let notice = FeedNotice::Market { channel, what };
                self.notices.send(Notice::Feed(notice));
            }
        }
    }

    /// Sends a notice of what the mapping and the limits leave out: of the first, and whenever it
    /// has doubled.
    fn describe_left_out(&mut self) {
        let (counts, market) = (self.follower.mapper().counts(), self.follower.market());
        let left_out = [
            (counts.no_rule, "that no rule of the mapping fits"),
            (counts.without_instrument, "without an instrument"),
            (counts.unknown_instrument, "of instruments never defined"),
            (
                counts.table_full + market.stats().refused,
                "of instruments beyond the limit",
            ),
        ];
        let total = left_out.iter().map(|(count, _)| count).sum();
        if total == 0 || total < 2 * self.left_out {
            return;
        }
        self.left_out = total;
        let parts = left_out.iter().filter(|(count, _)| *count > 0);
        let parts: Vec<_> = parts
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let what = format!("left out so far, entries: {}", parts.join(", "));
        let (channel, what) = (self.channel.clone(), MarketNotice::LeftOut(what));
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Publishes how many instruments are in which state, and sends a notice of it.
    fn count(&mut self, now: u64) {
        let counts = self.states.counts();
        let (before, at) = self.notice;
        if counts == before {
            return;
        }
        let are_whole = |counts: StateCounts| counts.recovering + counts.stale == 0;
        let is_news = are_whole(before) || are_whole(counts) || before.all() != counts.all();
        let between = if is_news { BETWEEN } else { WHILE_RECOVERING };
        if now.saturating_sub(at) < between {
            return;
        }
        self.notice = (counts, now);
        self.set_counts();
        let (channel, what) = (self.channel.clone(), MarketNotice::States(counts));
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    fn set_counts(&self) {
        let (counts, states) = (&self.counts, self.states.counts());
        counts.live.set(states.live);
        counts.recovering.set(states.recovering);
        counts.stale.set(states.stale);
        counts.closed.set(states.closed);
    }

    /// The end: what was counted.
    pub(crate) fn close(&mut self) {
        self.set_counts();
        let market = self.follower.market();
        let (counts, recovery) = (&self.counts, market.recovery_stats());
        let mapper = self.follower.mapper().counts();
        counts.instruments.set(self.known.into());
        let fragments = self.follower.fragment_stats();
        let in_parts = fragments.discarded + fragments.no_room + fragments.without_beginning;
        let bad = self.follower.stats().bad_pictures + in_parts;
        counts.bad_pictures.increment(bad);
        let left_out = mapper.no_rule + mapper.without_instrument + mapper.unknown_instrument;
        counts.left_out.set(left_out);
        let drops = self.snapshots.iter().map(Receiver::kernel_drops);
        counts.picture_drops.set(drops.sum());
        counts
            .refused
            .set(self.follower.instruments().refused() + market.stats().refused);
        counts.faults.set(market.stats().faults);
        counts.recoveries.set(recovery.recoveries);
        counts.recovered.set(recovery.recovered);
        counts.taken.set(recovery.snapshots_taken);
        counts.dropped.set(recovery.dropped);
        counts.errors.set(mapper.faults);
        if let Some(replay) = self.follower.replay_stats() {
            counts.requests.set(replay.requests);
            counts.given_up.set(replay.given_up);
        }
    }

    pub(crate) fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.snapshots.iter().map(Receiver::descriptor));
    }

    pub(crate) fn next_timer(&self) -> Option<u64> {
        let lines = self.snapshots.iter().filter_map(Receiver::next_timer);
        lines.chain(self.follower.poll_timeout()).min()
    }
}

/// Writes new and changed instruments to the ring.
#[cold]
fn put_instruments(
    table: &Instruments,
    base: u32,
    known: &mut u32,
    brought: &mut Brought,
    ring: &mut EventRing,
) {
    let mut put = |number: u32| {
        if let Some(mut instrument) = table.get(InstrumentId(number)) {
            instrument.instrument.0 += base;
            ring.put_instrument(&instrument);
        }
    };
    for changed in brought.changed.drain(..) {
        if changed.0 < *known {
            put(changed.0);
        }
    }
    let len = u32::try_from(table.len()).unwrap_or(u32::MAX);
    for number in *known..len {
        put(number);
    }
    *known = len;
}
