//! Following a feed: the messages of its channel, its snapshot lines and its replay become events.
//!
//! A [`Follower`] has the table of instruments, the mapping and the [`Market`] of one feed. It is
//! sans-I/O: the owner of the sockets or files passes it the events of a
//! [`Channel`](fanfare_feed::Channel), and polls it for requests to a replay.

use crate::event::{Event, InstrumentId, Kind};
use crate::fragments::{FragmentConfig, FragmentStats, Fragments};
use crate::instruments::Instruments;
use crate::mapping::{Does, FastMapper, FixMapper, MapError, Outcome};
use crate::market::{Market, MarketConfig};
use crate::relay::{Step, Steps};
use fanfare_fast::Record;
use fanfare_feed::channel;
use fanfare_feed::recovery::{Replay, ReplayConfig, ReplayStats};
use fanfare_fix::codec::Message;
use std::mem::replace;
use std::ops::Range;

/// The configuration of a follower.
#[derive(Debug, Clone)]
pub struct FollowerConfig {
    /// The books, numbers and limits.
    pub market: MarketConfig,
    /// The limits of requests to the replay, if there is one.
    pub replay: Option<ReplayConfig>,
    /// The time after which lines without traffic are silent and books stale, in nanoseconds, or
    /// `u64::MAX` if a feed may be quiet for any time.
    pub silence: u64,
    /// The plant's number of the first event.
    pub first: u64,
    /// The limits of incomplete snapshots that span several messages: those of the channel, and
    /// separately those of the snapshot lines.
    pub fragments: FragmentConfig,
}

impl FollowerConfig {
    /// Returns a configuration without a replay, with 30 s of silence and numbers from 1.
    pub fn new(market: MarketConfig) -> Self {
        Self {
            market,
            replay: None,
            silence: 30_000_000_000,
            first: 1,
            fragments: FragmentConfig::default(),
        }
    }
}

/// The counts of a follower, besides those of its mapper, its market and its replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowerStats {
    /// Messages of the channel.
    pub messages: u64,
    /// Messages of the channel without a number, for which gaps are not detected.
    pub unnumbered: u64,
    /// Messages that arrived late: by a slower line, or by replay.
    pub late: u64,
    /// Messages that were repeated, and ignored.
    pub repeated: u64,
    /// Packets that could not be decoded, whose messages are missing.
    pub bad: u64,
    /// Snapshots that could not be read, or arrived on the channel without a number.
    pub bad_pictures: u64,
    /// The number of restarts of the channel.
    pub resets: u64,
}

/// A follower of one feed. See the module's text.
#[derive(Debug)]
pub struct Follower {
    table: Instruments,
    mapper: FastMapper,
    /// The mapper for a replay that responds in FIX.
    fix: Option<FixMapper>,
    course: Course,
}

/// The position in the channel, and the market built from it.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) market: Market,
    /// The incomplete snapshots of the channel, and those of the snapshot lines.
    fragments: Fragments,
    fragments_of_pictures: Fragments,
    replay: Option<Replay>,
    silence: u64,
    /// The number after the highest message, extended, or `None` before the first.
    next: Option<u64>,
    /// The time at which the channel was last heard.
    heard: u64,
    is_silent: bool,
    /// The steps for edges that follow the feed by this follower, if any.
    steps: Option<Steps>,
    stats: FollowerStats,
}

/// A message with its mapped events.
pub(crate) struct Mapped<'a> {
    pub(crate) outcome: Result<Outcome, MapError>,
    pub(crate) events: &'a [Event],
    pub(crate) faults: &'a [MapError],
    pub(crate) received: u64,
}

/// The place of a message in the order of the channel.
enum Turn {
    Next(u64),
    /// The message was missing.
    Late(u64),
    Repeated,
}

impl<'a> Mapped<'a> {
    #[inline]
    fn fast(mapper: &'a mut FastMapper, table: &mut Instruments, at: u64, record: &Record) -> Self {
        Self {
            outcome: mapper.record(table, at, record),
            events: mapper.events(),
            faults: mapper.faults(),
            received: at,
        }
    }
}

impl Follower {
    /// Creates a follower that has received nothing of its feed.
    pub fn new(config: FollowerConfig, mapper: FastMapper, table: Instruments) -> Self {
        Self {
            table,
            mapper,
            fix: None,
            course: Course::new(config),
        }
    }

    /// Keeps the steps for edges that follow the feed by this follower, for [`Self::steps`].
    #[must_use]
    pub fn with_steps(mut self) -> Self {
        self.course.keep_steps();
        self
    }

    /// Returns the steps for edges since the last call. The caller clears them. Returns `None`
    /// without [`Self::with_steps`].
    #[inline]
    pub const fn steps(&mut self) -> Option<&mut Steps> {
        self.course.steps()
    }

    /// Adds the position in the channel, and whether its lines are silent, to [`Self::steps`].
    /// Edges need both from time to time.
    pub fn keep_alive(&mut self) {
        self.course.keep_alive();
    }

    /// Returns the low 32 bits of MsgSeqNum(34) of the last message of the channel, or `None`
    /// before the first.
    pub fn last_number(&self) -> Option<u32> {
        self.course.last_number()
    }

    /// Sets the mapping for responses of the replay in FIX.
    #[must_use]
    pub fn with_fix(mut self, mapper: FixMapper) -> Self {
        self.fix = Some(mapper);
        self
    }

    /// Adopts another mapping of the same templates, between two messages. Instruments keep their
    /// numbers, and no book is live until a snapshot arrives that contains all messages so far.
    /// Counts continue. Returns the previous mapping.
    pub fn remap(
        &mut self,
        now: u64,
        (mut mapper, mut fix): (FastMapper, Option<FixMapper>),
        send: &mut impl FnMut(&Event),
    ) -> (FastMapper, Option<FixMapper>) {
        mapper.count_from(&self.mapper);
        if let (Some(new), Some(old)) = (&mut fix, &self.fix) {
            new.count_from(old);
        }
        self.course.distrust(now, send);
        (
            replace(&mut self.mapper, mapper),
            replace(&mut self.fix, fix),
        )
    }

    /// Returns the books and states.
    pub const fn market(&self) -> &Market {
        &self.course.market
    }

    /// Returns the instruments.
    pub const fn instruments(&self) -> &Instruments {
        &self.table
    }

    /// Returns the mapping, with its counts and the last message's faults.
    pub const fn mapper(&self) -> &FastMapper {
        &self.mapper
    }

    /// Returns the counters.
    pub const fn stats(&self) -> FollowerStats {
        self.course.stats
    }

    /// Returns the counters of snapshots that span several messages.
    pub const fn fragment_stats(&self) -> FragmentStats {
        let course = &self.course;
        let channel = course.fragments.stats();
        channel.plus(course.fragments_of_pictures.stats())
    }

    /// Returns the counters of the replay, if there is one.
    pub fn replay_stats(&self) -> Option<ReplayStats> {
        self.course.replay.as_ref().map(Replay::stats)
    }

    /// Processes an event of the channel of changes. `now` is the caller's time in nanoseconds, and
    /// never goes back.
    #[inline]
    pub fn channel(&mut self, now: u64, event: &channel::Event<'_>, send: &mut impl FnMut(&Event)) {
        match event {
            channel::Event::Message(message) => {
                self.course.hear(now, send);
                let number = message.number.map(|number| number as u32);
                let (mapper, table) = (&mut self.mapper, &mut self.table);
                let mapped = Mapped::fast(mapper, table, message.received, message.record);
                self.course.message(now, number, &mapped, send);
            }
            other => self.course.unusual(now, other, send),
        }
    }

    /// Returns when to call [`Self::handle_timeout`], in nanoseconds.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.course.poll_timeout()
    }

    /// Checks whether the lines are silent, and whether a request has timed out.
    pub fn handle_timeout(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.course.handle_timeout(now, send);
    }

    /// Processes an event of the channel of the snapshot lines.
    pub fn snapshot_channel(
        &mut self,
        now: u64,
        event: &channel::Event<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        if let channel::Event::Message(message) = event {
            self.snapshot(now, message.received, message.record, send);
        }
    }

    /// Processes a message of the snapshot lines: a snapshot, a definition, a status. Changes of
    /// books are ignored there.
    pub fn snapshot(
        &mut self,
        now: u64,
        received: u64,
        record: &Record,
        send: &mut impl FnMut(&Event),
    ) {
        let mapped = Mapped::fast(&mut self.mapper, &mut self.table, received, record);
        self.course.snapshot(now, &mapped, send);
    }

    /// Returns the messages to request from the replay: numbers of the channel, their low 32 bits.
    /// Returns `None` if none are needed, or without a replay.
    pub fn poll_request(&mut self, now: u64) -> Option<Range<u32>> {
        self.course.poll_request(now)
    }

    /// Passes on the state of an instrument again: see [`Market::show`].
    pub fn show(&mut self, ts_recv: u64, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.course.market.show(ts_recv, instrument, send);
    }

    /// Processes a message of the replay's response.
    pub fn replayed(
        &mut self,
        now: u64,
        number: u32,
        received: u64,
        record: &Record,
        send: &mut impl FnMut(&Event),
    ) {
        if self.course.expects(now, number) {
            let mapped = Mapped::fast(&mut self.mapper, &mut self.table, received, record);
            self.course.message(now, Some(number), &mapped, send);
        }
    }

    /// Processes a message of the replay's response in FIX. Without [`Self::with_fix`] it is
    /// ignored, and its messages stay missing.
    pub fn replayed_fix(
        &mut self,
        now: u64,
        number: u32,
        received: u64,
        message: &Message<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        let Some(mapper) = &mut self.fix else {
            return;
        };
        if self.course.expects(now, number) {
            let mapped = Mapped {
                outcome: mapper.message(&mut self.table, received, message),
                events: mapper.events(),
                faults: mapper.faults(),
                received,
            };
            self.course.message(now, Some(number), &mapped, send);
        }
    }

    /// Ends the replay's response.
    pub fn replay_done(&mut self) {
        self.course.replay_done();
    }

    /// Records that the replay refused the request, or cannot be reached.
    pub fn replay_refused(&mut self, now: u64) {
        if let Some(replay) = &mut self.course.replay {
            replay.refused(now);
        }
    }
}

impl Course {
    /// Creates a course without messages.
    pub(crate) fn new(config: FollowerConfig) -> Self {
        Self {
            market: Market::new(config.market, config.first),
            fragments: Fragments::new(config.fragments),
            fragments_of_pictures: Fragments::new(config.fragments),
            replay: config.replay.map(Replay::new),
            silence: config.silence,
            next: None,
            heard: 0,
            is_silent: false,
            steps: None,
            stats: FollowerStats::default(),
        }
    }

    /// Returns the counters.
    pub(crate) const fn stats(&self) -> FollowerStats {
        self.stats
    }

    #[cold]
    pub(crate) fn unusual(
        &mut self,
        now: u64,
        event: &channel::Event<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        match event {
            channel::Event::Gap(gap) => {
                let next = self.next.unwrap_or_else(|| u64::from(gap.first));
                let end = extend(Some(next), gap.last()) + 1;
                self.lose_up_to(now, end, send);
            }
            channel::Event::Bad(_) => {
                self.stats.bad += 1;
                // The number is unknown, but most likely the next one. If a message with that
                // number arrives, it counts as late.
                if let Some(next) = self.next {
                    self.lose_up_to(now, next + 1, send);
                }
            }
            channel::Event::Reset { next, .. } => {
                self.stats.resets += 1;
                let run = self.next.map_or(0, |before| (before >> 32) + 1);
                let next = (run << 32) + u64::from(*next);
                self.next = Some(next);
                if let Some(steps) = &mut self.steps {
                    steps.reset(next as u32);
                }
                self.market.reset(now, next, send);
                if let Some(replay) = &mut self.replay {
                    replay.reset();
                }
            }
            channel::Event::Message(_) | channel::Event::Recover(_) => {}
        }
    }

    /// Records that messages are mapped differently from here on.
    pub(crate) fn distrust(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        if let Some(steps) = &mut self.steps {
            steps.remapped();
        }
        self.fragments.lose();
        self.fragments_of_pictures.lose();
        self.market.distrust(now, send);
    }

    /// Records that all messages before this number that did not arrive are missing.
    fn lose_up_to(&mut self, now: u64, end: u64, send: &mut impl FnMut(&Event)) {
        let from = self.next.unwrap_or(end);
        if from < end {
            self.market.gap(now, from..end, send);
        }
        self.next = Some(from.max(end));
    }

    /// Records that the lines are heard.
    #[inline]
    pub(crate) fn hear(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.heard = now;
        if self.is_silent {
            self.is_silent = false;
            self.fall_silent(false, send);
        }
    }

    /// Adds the position in the channel, and whether its lines are silent, to the steps.
    pub(crate) fn keep_alive(&mut self) {
        let (position, is_silent) = (self.last_number(), self.is_silent);
        if let Some(steps) = &mut self.steps {
            steps.silence(is_silent);
            if let Some(number) = position {
                steps.push(Step::position(number), &[]);
            }
        }
    }

    pub(crate) fn keep_steps(&mut self) {
        self.steps = Some(Steps::with_room());
    }

    pub(crate) const fn steps(&mut self) -> Option<&mut Steps> {
        self.steps.as_mut()
    }

    pub(crate) fn last_number(&self) -> Option<u32> {
        Some(self.next?.wrapping_sub(1) as u32)
    }

    /// Returns whether anything of the channel was received.
    pub(crate) const fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Records that the last message of the channel so far has this number, so that those before it
    /// that did not arrive are missing.
    pub(crate) fn position(&mut self, now: u64, number: u32, send: &mut impl FnMut(&Event)) {
        let sequence = extend(self.next, number);
        if self.next.is_some() {
            self.lose_up_to(now, sequence + 1, send);
        } else {
            self.next = Some(sequence + 1);
            self.market.see(sequence, send);
        }
    }

    /// Records that the lines are silent, or are heard again.
    pub(crate) fn set_silent(&mut self, now: u64, is_silent: bool, send: &mut impl FnMut(&Event)) {
        if !is_silent {
            self.heard = now;
        }
        if self.is_silent != is_silent {
            self.is_silent = is_silent;
            self.fall_silent(is_silent, send);
        }
    }

    #[cold]
    fn fall_silent(&mut self, is_silent: bool, send: &mut impl FnMut(&Event)) {
        if let Some(steps) = &mut self.steps {
            steps.silence(is_silent);
        }
        self.market.silence(is_silent, send);
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let silence = self.heard.checked_add(self.silence);
        let silence = silence.filter(|_| !self.is_silent && self.next.is_some());
        let replay = self.replay.as_ref().and_then(Replay::poll_timeout);
        silence.into_iter().chain(replay).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        let is_silent = now.saturating_sub(self.heard) >= self.silence && self.next.is_some();
        if is_silent && !self.is_silent {
            self.is_silent = true;
            self.fall_silent(true, send);
        }
        if let Some(replay) = &mut self.replay {
            replay.handle_timeout(now);
        }
    }

    /// Records the number of a message, and reports missing messages before it.
    #[inline]
    fn turn(&mut self, now: u64, number: u32, send: &mut impl FnMut(&Event)) -> Turn {
        let sequence = extend(self.next, number);
        let next = self.next.unwrap_or(sequence);
        if sequence == next || sequence + 1 == next {
            self.next = Some(sequence + 1);
            return Turn::Next(sequence);
        }
        if sequence > next {
            self.lose_up_to(now, sequence, send);
            self.next = Some(sequence + 1);
            return Turn::Next(sequence);
        }
        match self.market.missing().contains(sequence) {
            true => Turn::Late(sequence),
            false => Turn::Repeated,
        }
    }

    #[inline]
    pub(crate) fn message(
        &mut self,
        now: u64,
        number: Option<u32>,
        mapped: &Mapped<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        self.stats.messages += 1;
        let Some(number) = number else {
            self.stats.unnumbered += 1;
            return self.without_number(mapped, send);
        };
        let (sequence, is_late) = match self.turn(now, number, send) {
            Turn::Next(sequence) => (sequence, false),
            Turn::Late(sequence) => (sequence, true),
            Turn::Repeated => {
                self.stats.repeated += 1;
                return;
            }
        };
        let mark = self.steps.as_ref().map(Steps::mark);
        self.take(now, sequence, mapped, send);
        let mut is_whole = true;
        if mapped.outcome.is_err() {
            is_whole = self.faults(mapped.faults, send);
        }
        if let (Some(steps), Some(mark), false) = (&mut self.steps, mark, is_whole) {
            // The message stays missing for the edges too.
            steps.cut(mark);
        }
        if is_late {
            self.stats.late += 1;
        }
        match (is_late, is_whole) {
            (true, true) => self.market.replayed(sequence..sequence + 1, send),
            (false, false) => self.market.gap(now, sequence..sequence + 1, send),
            _ => {}
        }
    }

    /// Passes the events of a message to the market.
    #[inline]
    fn take(
        &mut self,
        now: u64,
        sequence: u64,
        mapped: &Mapped<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        match &mapped.outcome {
            Ok(
                outcome @ Outcome {
                    picture: Some(picture),
                    ..
                },
            ) => {
                // Within the channel itself: as of its first message, unless specified otherwise.
                self.market.see(sequence, send);
                let lost = self.fragments.stats().lost();
                let Some(whole) = self.fragments.take(outcome, mapped.events) else {
                    if let Some(steps) = &mut self.steps
                        && self.fragments.stats().lost() == lost
                    {
                        steps.changes(sequence as u32, mapped.received, &[]);
                    }
                    return;
                };
                let last = picture.last_processed.or(whole.number);
                let last = last.unwrap_or(sequence) as u32;
                let times = (now, mapped.received);
                if let Some(steps) = &mut self.steps {
                    steps.picture(sequence as u32, mapped.received, last, whole.events);
                }
                self.market.snapshot(times, Some(last), whole.events, send);
            }
            other => {
                if let Ok(outcome) = other {
                    self.fragments.pass(outcome);
                }
                if let Some(steps) = &mut self.steps {
                    steps.changes(sequence as u32, mapped.received, mapped.events);
                }
                self.market
                    .changes(mapped.received, sequence, mapped.events, send);
            }
        }
    }

    /// Handles values that no event can hold, whose instruments lack a change. Returns false if the
    /// instrument is unknown, so that any instrument may lack one.
    #[cold]
    fn faults(&mut self, faults: &[MapError], send: &mut impl FnMut(&Event)) -> bool {
        let mut is_whole = true;
        for fault in faults {
            match fault.instrument {
                Some(instrument) => {
                    if let Some(steps) = &mut self.steps {
                        steps.fault(instrument);
                    }
                    self.market.fault(instrument, send);
                }
                None => is_whole = false,
            }
        }
        is_whole
    }

    /// Processes a message without a number. Its definitions and states are applied, but its
    /// changes of books have no place in the order of the channel.
    #[cold]
    fn without_number(&mut self, mapped: &Mapped<'_>, send: &mut impl FnMut(&Event)) {
        if let Ok(Outcome {
            does: Some(Does::Snapshot),
            ..
        }) = mapped.outcome
        {
            self.stats.bad_pictures += 1;
            return;
        }
        if let Some(steps) = &mut self.steps {
            steps.unnumbered(mapped.received, mapped.events);
        }
        for event in mapped.events {
            match event.kind {
                Kind::Definition | Kind::Status | Kind::Trade | Kind::Statistic => {
                    self.market.pass_on(mapped.received, event, send);
                }
                _ => self.market.fault(event.instrument, send),
            }
        }
    }

    fn snapshot(&mut self, now: u64, mapped: &Mapped<'_>, send: &mut impl FnMut(&Event)) {
        match &mapped.outcome {
            Ok(
                outcome @ Outcome {
                    picture: Some(picture),
                    ..
                },
            ) => {
                let fragments = &mut self.fragments_of_pictures;
                let Some(whole) = fragments.take(outcome, mapped.events) else {
                    return;
                };
                let last = picture.last_processed.map(|last| last as u32);
                let times = (now, mapped.received);
                self.market.snapshot(times, last, whole.events, send);
            }
            Ok(outcome) => {
                self.fragments_of_pictures.pass(outcome);
                let is_passed_on =
                    |event: &&Event| matches!(event.kind, Kind::Definition | Kind::Status);
                for event in mapped.events.iter().filter(is_passed_on) {
                    if let Some(steps) = &mut self.steps {
                        steps.unnumbered(mapped.received, std::slice::from_ref(event));
                    }
                    self.market.pass_on(mapped.received, event, send);
                }
            }
            Err(_) => self.stats.bad_pictures += 1,
        }
    }

    fn poll_request(&mut self, now: u64) -> Option<Range<u32>> {
        let replay = self.replay.as_mut()?;
        let range = replay.poll_request(now, self.market.missing())?;
        let (start, len) = (range.start as u32, range.end - range.start);
        Some(start..u32::try_from(u64::from(start) + len).unwrap_or(u32::MAX))
    }

    /// Returns whether a message of this number was requested from the replay.
    fn expects(&mut self, now: u64, number: u32) -> bool {
        let sequence = extend(self.next, number);
        let missing = self.market.missing();
        let replay = self.replay.as_mut();
        replay.is_some_and(|replay| replay.expects(now, sequence, missing))
    }

    fn replay_done(&mut self) {
        if let Some(replay) = &mut self.replay {
            replay.answered(self.market.missing());
        }
    }
}

/// Returns the number nearest to `next` with these low bits.
#[inline]
fn extend(next: Option<u64>, low: u32) -> u64 {
    let Some(next) = next else {
        return u64::from(low);
    };
    let distance = low.wrapping_sub(next as u32).cast_signed();
    next.saturating_add_signed(distance.into())
}
