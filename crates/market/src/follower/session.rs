//! Following a FIX session that serves market data.

use super::config::{FollowerConfig, FollowerStats};
use super::course::{Course, Part};
use super::mapped::Mapped;
use crate::event::{Event, InstrumentId};
use crate::fragments::FragmentStats;
use crate::instruments::Instruments;
use crate::mapping::{Counts, FixMapper, MapError, Outcome};
use crate::market::Market;
use crate::snapshot_fault::SnapshotFault;
use fanfare_feed::recovery::{Numbering, State};
use fanfare_fix::codec::Message;

/// A follower of a FIX session whose counterparty answers MarketDataRequest(V).
///
/// The session delivers its messages in order and without holes, so that the messages have numbers
/// of the follower's own, which continue over logons: neither RptSeq(83), nor
/// LastMsgSeqNumProcessed(369), which is about the other direction of a session, is used. A book is
/// complete from its first snapshot after a logon on. A later snapshot replaces it, and it stays
/// complete.
///
/// Sans-I/O, as a [`Follower`](super::Follower) is. Allocates for new instruments and books, and
/// for changes that wait for a snapshot.
#[derive(Debug)]
pub struct SessionFollower {
    table: Instruments,
    mapper: FixMapper,
    course: Course,
    /// The number of the last message.
    number: u32,
    /// The number of books that the counterparty said not to have complete.
    doubts: u64,
}

impl SessionFollower {
    /// Creates a follower that has received nothing. Of the configuration, `replay`, `silence` and
    /// the numbering are not used.
    pub fn new(mut config: FollowerConfig, mut mapper: FixMapper, table: Instruments) -> Self {
        config.market.recovery.numbering = Numbering::Channel;
        config.market.has_natural_refresh = false;
        (config.replay, config.silence) = (None, u64::MAX);
        mapper.keep_numbers(false);
        let mut course = Course::new(config);
        course.replace_snapshots();
        Self {
            table,
            mapper,
            course,
            number: 0,
            doubts: 0,
        }
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
    pub const fn mapper(&self) -> &FixMapper {
        &self.mapper
    }

    /// Returns the counts of the mapping.
    #[inline]
    pub const fn counts(&self) -> Counts {
        self.mapper.counts()
    }

    /// Returns the counters.
    pub const fn stats(&self) -> FollowerStats {
        self.course.stats()
    }

    /// Returns the counters of snapshots that span several messages.
    pub const fn fragment_stats(&self) -> FragmentStats {
        self.course.fragments.stats()
    }

    /// Takes the first fault of a snapshot since the last call, for which it was not read.
    pub fn take_snapshot_fault(&mut self) -> Option<SnapshotFault> {
        self.course.take_snapshot_fault()
    }

    /// Formats a fault of a snapshot, with the name of its instrument.
    pub fn describe_snapshot(&self, fault: &SnapshotFault) -> String {
        fault.describe(&self.table)
    }

    /// Returns the number of reasons so far for which a book needs a snapshot that only a request
    /// brings: faults of books, changes and snapshots that could not be read.
    pub fn breaks(&self) -> u64 {
        let recovery = self.course.market.recovery_stats();
        let parts = self.course.fragments.stats().lost();
        let stats = self.course.market.stats();
        let faults = recovery.faults - self.doubts;
        faults + recovery.overflows + stats.faults + parts + self.counts().faults
    }

    /// Begins a session: no book is complete before its snapshot. `now` is the caller's time in
    /// nanoseconds, and never goes back.
    pub fn logged_on(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.course.distrust(now, send);
        self.course.set_silent(now, false, send);
    }

    /// Records that messages of the session were lost, so that every book needs a snapshot.
    pub fn lost(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.course.distrust(now, send);
    }

    /// Records that the counterparty says that its own book of an instrument is not complete. A
    /// complete one is cleared, and recovers by the next snapshot.
    pub fn doubt(&mut self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        if self.course.market.state(instrument) == Some(State::Live) {
            self.doubts += 1;
            self.course.market.fault(instrument, send);
        }
    }

    /// Ends the session: complete books are stale.
    pub fn ended(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        self.course.set_silent(now, true, send);
    }

    /// Processes an application message of the session, which arrived at `received`, in
    /// nanoseconds since 1970-01-01 UTC.
    pub fn message(
        &mut self,
        now: u64,
        received: u64,
        message: &Message<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        self.number = self.number.wrapping_add(1);
        let number = self.number;
        self.mapper.set_place(self.course.place(Some(number)));
        let outcome = self.mapper.message(&mut self.table, received, message);
        let mapped = Mapped {
            outcome: numbered(outcome, number),
            events: self.mapper.events(),
            faults: self.mapper.faults(),
            unchanged: self.mapper.unchanged(),
            received,
        };
        self.course
            .part(now, Some(number), &mapped, Part::OF_SESSION, send);
        mapped.settle(&mut self.table, &self.course.market);
    }

    /// Passes on the state of an instrument again: see [`Market::show`].
    pub fn show(&mut self, ts_recv: u64, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.course.market.show(ts_recv, instrument, send);
    }

    /// Drops the changes that still wait, because the feed has ended: see [`Market::finish`]. Must
    /// be called last.
    pub fn finish(&mut self, send: &mut impl FnMut(&Event)) {
        let instruments = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        self.course.market.finish(instruments, send);
    }
}

/// Gives a message the follower's number. Those of the session have holes where the session layer
/// has messages of its own, and begin again with each logon.
fn numbered(outcome: Result<Outcome, MapError>, number: u32) -> Result<Outcome, MapError> {
    let number = Some(u64::from(number));
    match outcome {
        Ok(mut outcome) => {
            outcome.number = number;
            if let Some(snapshot) = &mut outcome.snapshot {
                snapshot.last_processed = None;
            }
            Ok(outcome)
        }
        Err(error) => Err(error.numbered(number)),
    }
}
