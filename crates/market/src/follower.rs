//! Following a feed: the messages of its channel, its snapshot lines and its replay become events.
//!
//! A [`Follower`] has the table of instruments, the mapping and the [`Market`] of one feed. It is
//! sans-I/O: the owner of the sockets or files passes it the events of a
//! [`Channel`](fanfare_feed::Channel), and polls it for requests to a replay.

mod config;
mod course;
mod mapped;
mod parts;
mod session;

use crate::event::{Event, InstrumentId};
use crate::fragments::{FragmentStats, Fragments};
use crate::instruments::Instruments;
use crate::mapping::{Counts, FastMapper, FixMapper};
use crate::market::Market;
use crate::relay::Steps;
use crate::snapshot_fault::SnapshotFault;
use fanfare_fast::Record;
use fanfare_feed::channel;
use fanfare_feed::recovery::{Replay, ReplayStats};
use fanfare_fix::codec::Message;
use std::mem::replace;
use std::ops::Range;

pub use config::{FollowerConfig, FollowerStats};
pub(crate) use course::Course;
use course::Part;
pub(crate) use mapped::Mapped;
pub use session::SessionFollower;

/// A follower of one feed. See the module's text.
#[derive(Debug)]
pub struct Follower {
    table: Instruments,
    mapper: FastMapper,
    /// The mapper for a replay that responds in FIX.
    fix: Option<FixMapper>,
    course: Course,
}

impl Follower {
    /// Creates a follower that has received nothing of its feed.
    pub fn new(config: FollowerConfig, mut mapper: FastMapper, mut table: Instruments) -> Self {
        table.set_snapshot_age(config.market.recovery.snapshot_age);
        let course = Course::new(config);
        mapper.keep_numbers(course.market.is_numbered());
        Self {
            table,
            mapper,
            fix: None,
            course,
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

    /// Returns how often the channel has restarted since the start, as the steps show it. The count
    /// wraps. It is 0 without [`Self::with_steps`].
    pub fn restarts(&self) -> u16 {
        self.course.restarts()
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
    pub fn with_fix(mut self, mut mapper: FixMapper) -> Self {
        mapper.keep_numbers(self.course.market.is_numbered());
        self.course.parts.keep_trades();
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
        let is_numbered = self.course.market.is_numbered();
        mapper.keep_numbers(is_numbered);
        mapper.count_from(&self.mapper);
        if let Some(new) = &mut fix {
            new.keep_numbers(is_numbered);
            if let Some(old) = &self.fix {
                new.count_from(old);
            }
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

    /// Returns the mapping for responses of the replay in FIX, with its counts and the last
    /// message's faults. Returns `None` without [`Self::with_fix`].
    pub const fn fix_mapper(&self) -> Option<&FixMapper> {
        self.fix.as_ref()
    }

    /// Returns the counts of the feed's messages and of the replay's responses in FIX together.
    #[inline]
    pub fn counts(&self) -> Counts {
        let counts = self.mapper.counts();
        match &self.fix {
            Some(fix) => counts.plus(fix.counts()),
            None => counts,
        }
    }

    /// Returns the counters.
    pub const fn stats(&self) -> FollowerStats {
        self.course.stats()
    }

    /// Returns the counters of snapshots that span several messages.
    pub fn fragment_stats(&self) -> FragmentStats {
        let course = &self.course;
        let snapshots = course.fragments_of_snapshots.iter().map(Fragments::stats);
        snapshots.fold(course.fragments.stats(), FragmentStats::plus)
    }

    /// Takes the first fault of a snapshot since the last call, for which a snapshot was not read.
    /// Values that cannot be represented are among the faults of the mapping.
    pub fn take_snapshot_fault(&mut self) -> Option<SnapshotFault> {
        self.course.take_snapshot_fault()
    }

    /// Formats a fault of a snapshot, with the name of its instrument.
    pub fn describe_snapshot(&self, fault: &SnapshotFault) -> String {
        fault.describe(&self.table)
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
                if let Some(number) = number.filter(|_| self.course.has_assumed()) {
                    self.course.take_back(number, send);
                }
                let at = (message.received, self.course.place(number));
                let (mapper, table) = (&mut self.mapper, &mut self.table);
                let mapped = Mapped::fast(mapper, table, at, message.record);
                let part = Part {
                    is_first: message.index == 0,
                    is_last: message.is_last,
                    is_converted: false,
                };
                self.course.part(now, number, &mapped, part, send);
                mapped.settle(&mut self.table, &self.course.market);
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

    /// Processes an event of a channel of snapshot lines. `lines` is the channel's index from 0;
    /// each channel has its own numbers.
    pub fn snapshot_lines(
        &mut self,
        lines: usize,
        now: u64,
        event: &channel::Event<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        if let channel::Event::Message(message) = event {
            self.snapshot(lines, now, message.received, message.record, send);
        }
    }

    /// Processes a message of a channel of snapshot lines: a snapshot, a definition, a status.
    /// Changes of books are ignored there.
    pub fn snapshot(
        &mut self,
        lines: usize,
        now: u64,
        received: u64,
        record: &Record,
        send: &mut impl FnMut(&Event),
    ) {
        let at = (received, self.course.place(None));
        let mapped = Mapped::fast(&mut self.mapper, &mut self.table, at, record);
        self.course.snapshot(lines, now, &mapped, send);
        mapped.settle(&mut self.table, &self.course.market);
    }

    /// Returns the messages to request from the replay: numbers of the channel, their low 32 bits.
    /// Returns `None` if none are needed, or without a replay. Each request that is returned counts
    /// as an attempt.
    pub fn poll_request(&mut self, now: u64) -> Option<Range<u32>> {
        self.course.poll_request(now)
    }

    /// Passes on the state of an instrument again: see [`Market::show`].
    pub fn show(&mut self, ts_recv: u64, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.course.market.show(ts_recv, instrument, send);
    }

    /// Processes the messages of the replay's response that have this number: all of a packet, if
    /// that is its number.
    pub fn replayed(
        &mut self,
        now: u64,
        number: u32,
        received: u64,
        records: &[Record],
        send: &mut impl FnMut(&Event),
    ) {
        if !self.course.expects(now, number) {
            return;
        }
        let at = (received, self.course.place(Some(number)));
        for (index, record) in records.iter().enumerate() {
            let mapped = Mapped::fast(&mut self.mapper, &mut self.table, at, record);
            let part = Part {
                is_first: index == 0,
                is_last: index + 1 == records.len(),
                is_converted: false,
            };
            self.course.part(now, Some(number), &mapped, part, send);
            mapped.settle(&mut self.table, &self.course.market);
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
            mapper.set_place(self.course.place(Some(number)));
            let mapped = Mapped {
                outcome: mapper.message(&mut self.table, received, message),
                events: mapper.events(),
                faults: mapper.faults(),
                unchanged: mapper.unchanged(),
                received,
            };
            self.course
                .part(now, Some(number), &mapped, Part::WHOLE, send);
            mapped.settle(&mut self.table, &self.course.market);
        }
    }

    /// Drops the changes that still wait, because the feed has ended: see [`Market::finish`]. Must
    /// be called last.
    pub fn finish(&mut self, send: &mut impl FnMut(&Event)) {
        let instruments = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        self.course.market.finish(instruments, send);
    }

    /// Ends the replay's response.
    pub fn replay_done(&mut self) {
        self.course.replay_done();
    }

    /// Records that the replay refused the request, does not answer, or cannot be reached.
    pub fn replay_refused(&mut self, now: u64) {
        if let Some(replay) = &mut self.course.replay {
            replay.refused(now);
        }
    }
}

#[cfg(test)]
mod tests;
