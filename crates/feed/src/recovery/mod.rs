//! Recovery of complete books from the changes and snapshots of a channel's instruments.
//!
//! A [`Recovery`] takes the messages of the lines, the snapshot lines and a replay with the numbers
//! of the feed. It tells a [`Sink`] what a book is to do, in order: apply a change, or restart from
//! a snapshot. A change after a gap waits (bounded) for a snapshot or for the missing changes. For
//! each instrument it knows whether its book is complete ([`State::Live`]) or what is missing
//! ([`State::Recovering`]).
//!
//! Two kinds of numbers show whether a book is complete, and a feed has one of them or both:
//!
//! - RptSeq(83), of the changes of one instrument: a change is in order if its number is the next.
//! - MsgSeqNum(34) of the channel with LastMsgSeqNumProcessed(369) of a snapshot: a book is
//!   complete if no message of the channel after its snapshot is missing. Where instruments have
//!   numbers of their own this still finds lost changes that no later one follows: after a gap on
//!   all lines no instrument is live until its next change, a newer snapshot or a replay shows that
//!   it lost nothing.
//!
//! Changes that wait, or arrive later, and are contained in a snapshot are passed to
//! [`Sink::superseded`]: a book must not apply them, but a trade among them did happen. So are late
//! changes of messages before the one that closed an instrument which is open again, or in which
//! its RptSeq(83) went back.
//!
//! Every book begins with [`Sink::clear`] or [`Sink::snapshot`]: one that is empty at the start is
//! cleared in front of its first change, whatever RptSeq(83) that has. A reader that has missed
//! something knows by them which books it has whole.
//!
//! The module is sans-I/O and sans-clock; `T` is the caller's type of a change.
//!
//! ```
//! use fanfare_feed::recovery::{
//!     Increment, Numbering, Recovery, RecoveryConfig, Sink, Snapshot, State,
//! };
//!
//! #[derive(Default)]
//! struct Log(Vec<String>);
//! impl Sink<char> for Log {
//!     fn apply(&mut self, _: u32, change: &char) {
//!         self.0.push(format!("apply {change}"));
//!     }
//!     fn superseded(&mut self, _: u32, change: &char) {
//!         self.0.push(format!("superseded {change}"));
//!     }
//!     fn dropped(&mut self, _: u32, _: &char) {}
//!     fn snapshot(&mut self, _: u32, items: &[char]) {
//!         self.0.push(format!("snapshot {items:?}"));
//!     }
//!     fn clear(&mut self, _: u32) {}
//!     fn state(&mut self, _: u32, state: State) {
//!         self.0.push(format!("{state}"));
//!     }
//! }
//!
//! let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
//! let mut log = Log::default();
//! let change = |rpt_seq, sequence, item| Increment { instrument: 0, rpt_seq, sequence, item };
//! recovery.increment(change(7, 100, 'g'), &mut log);
//! recovery.increment(change(8, 101, 'h'), &mut log);
//! let items = &['x', 'y'];
//! recovery.snapshot(
//!     0,
//!     Snapshot { instrument: 0, rpt_seq: Some(7), last_processed: Some(100), items },
//!     &mut log,
//! );
//! assert_eq!(
//!     log.0,
//!     [
//!         "recovering: RptSeq 1 to 6 are missing",
//!         "snapshot ['x', 'y']",
//!         "superseded g",
//!         "apply h",
//!         "live",
//!     ]
//! );
//! ```

mod gaps;
mod held;
mod instrument;
mod replay;
mod restore;
mod state;
#[cfg(test)]
mod tests;

use crate::missing::Missing;
use held::{Held, Insertion, Waited};
use instrument::Instrument;

pub use replay::{Replay, ReplayConfig, ReplayStats};
pub use state::{Lack, Numbering, RecoveryConfig, RecoveryStats, Refused, State};

/// A change of an instrument, with the numbers of the feed.
#[derive(Debug, Clone, Copy)]
pub struct Increment<T> {
    /// The instrument, by the caller's number from 0.
    pub instrument: u32,
    /// RptSeq(83); ignored where instruments have no numbers ([`Numbering::Channel`]).
    pub rpt_seq: u32,
    /// The number of its message in the channel, extended as by the arbiter.
    pub sequence: u64,
    /// The change.
    pub item: T,
}

/// A snapshot of an instrument, with the numbers of the feed.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a, T> {
    /// The instrument, by the caller's number from 0.
    pub instrument: u32,
    /// RptSeq(83) of the last change that it contains; ignored where instruments have no numbers.
    pub rpt_seq: Option<u32>,
    /// LastMsgSeqNumProcessed(369): the last message of the channel that it contains.
    pub last_processed: Option<u32>,
    /// The parts of the snapshot.
    pub items: &'a [T],
}

/// The receiver of changes and snapshots, called in the order in which a book is to apply them.
pub trait Sink<T> {
    /// Applies the next change of its instrument.
    fn apply(&mut self, instrument: u32, change: &T);

    /// Handles a change that is part of an earlier snapshot, so that the book has it already, or
    /// that precedes the message with which the book began anew.
    fn superseded(&mut self, instrument: u32, change: &T);

    /// Handles a change that waited, or was to wait, and that no book will have: the store was
    /// full, or the missing changes will not arrive.
    fn dropped(&mut self, instrument: u32, change: &T);

    /// Replaces the book by this snapshot.
    fn snapshot(&mut self, instrument: u32, items: &[T]);

    /// Empties the book, also one that is empty at the start, in front of its first change.
    fn clear(&mut self, instrument: u32);

    /// Handles a change in the state of the instrument.
    fn state(&mut self, instrument: u32, state: State);
}

/// The recovery of the instruments of one channel. See the module's text.
///
/// Allocates for a new instrument, and for more waiting changes than ever before, both up to the
/// limits of its configuration; nothing for changes in order.
#[derive(Debug)]
pub struct Recovery<T> {
    config: RecoveryConfig,
    instruments: Vec<Instrument>,
    /// The number of the last message that opened or closed each instrument, or 0. Many that are
    /// defined have nothing else to recover.
    turned: Vec<u64>,
    held: Held<T>,
    /// Messages of the channel that did not arrive.
    unseen: Missing,
    /// The number below which messages are unknown: those before the first one, or of gaps that
    /// were dropped.
    unknown_below: u64,
    /// The number of missing messages that were dropped.
    forgotten: u64,
    /// The number after the highest message.
    next: Option<u64>,
    /// The time of the last reset, and the number of the next message then.
    reset_at: Option<(u64, u64)>,
    /// The time at which the last gap was declared, or the first snapshot arrived.
    gap_at: Option<u64>,
    is_silent: bool,
    stats: RecoveryStats,
}

impl<T: Copy> Recovery<T> {
    /// Returns a recovery that has seen nothing.
    pub fn new(config: RecoveryConfig) -> Self {
        Self {
            instruments: Vec::new(),
            turned: Vec::new(),
            held: Held::new(config.most_held),
            unseen: Missing::new(config.most_gaps),
            unknown_below: u64::MAX,
            forgotten: 0,
            next: None,
            reset_at: None,
            gap_at: None,
            is_silent: false,
            stats: RecoveryStats::default(),
            config,
        }
    }

    /// Returns the counters of the recovery.
    pub fn stats(&self) -> RecoveryStats {
        RecoveryStats {
            held: self.held.len() as u64,
            ..self.stats
        }
    }

    /// Returns the state of an instrument, or `None` if it is unknown.
    pub fn state(&self, instrument: u32) -> Option<State> {
        let known = self.instruments.get(instrument as usize)?;
        known.state
    }

    /// Returns RptSeq(83) of the last change in the book of an instrument, or the number of its
    /// message where instruments have no numbers.
    pub fn position(&self, instrument: u32) -> Option<u64> {
        let known = self.instruments.get(instrument as usize)?;
        Some(known.applied)
    }

    /// Returns the number after the highest message of the channel, or 0 before the first.
    pub fn next(&self) -> u64 {
        self.next.unwrap_or_default()
    }

    /// Returns whether the book of an instrument contains messages of the channel that have not
    /// arrived: those of a snapshot that is ahead of them.
    pub fn is_ahead(&self, instrument: u32) -> bool {
        let known = self.instruments.get(instrument as usize);
        known.is_some_and(|known| match self.config.numbering {
            Numbering::Instrument => {
                known.applied == known.snapshot_key && known.known_end > self.next()
            }
            Numbering::Channel => known.applied >= self.next(),
        })
    }

    /// Returns the missing messages of the channel, to be requested from a replay.
    pub fn missing(&self) -> &Missing {
        &self.unseen
    }

    /// Takes a change, from a line or by replay. Messages of the lines are taken in order (a gap is
    /// announced by [`Self::gap`] first); those of a replay at any time.
    ///
    /// # Errors
    ///
    /// There are more instruments than configured; nothing is done.
    #[inline]
    pub fn increment(
        &mut self,
        increment: Increment<T>,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        let is_numbered = self.config.numbering == Numbering::Instrument;
        let key = match is_numbered {
            true => u64::from(increment.rpt_seq),
            false => increment.sequence,
        };
        if let Some(known) = self.instruments.get_mut(increment.instrument as usize)
            && known.state == Some(State::Live)
            && self.next.is_some_and(|next| increment.sequence + 1 >= next)
            && match is_numbered {
                true => key == known.applied + 1,
                false => key > known.snapshot_key,
            }
        {
            known.advance(key, increment.sequence);
            known.seen = key;
            self.next = Some(increment.sequence + 1);
            self.stats.applied += 1;
            sink.apply(increment.instrument, &increment.item);
            return Ok(());
        }
        self.out_of_turn(key, increment, sink)
    }

    /// Takes a change of an instrument that is not live, or that is not the next one.
    #[inline(never)]
    fn out_of_turn(
        &mut self,
        key: u64,
        increment: Increment<T>,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        let (id, sequence) = (increment.instrument, increment.sequence);
        self.see(sequence, sink);
        let is_numbered = self.config.numbering == Numbering::Instrument;
        let known = self.instrument(id)?;
        if sequence < known.begin {
            // Its RptSeq(83) may look like one of the newer changes.
            self.stats.superseded += 1;
            sink.superseded(id, &increment.item);
            return Ok(());
        }
        if known.is_new() {
            sink.clear(id);
        }
        if is_numbered && known.is_back(key, sequence) {
            self.jumped_back(id, sequence, sink);
        }
        let known = &mut self.instruments[id as usize];
        if sequence >= known.seen_sequence {
            (known.seen, known.seen_sequence) = (key, sequence);
        }
        let is_live = known.state == Some(State::Live);
        let is_next = match is_numbered {
            true => known.has_book && key == known.applied + 1,
            false => is_live && key > known.snapshot_key && key >= known.applied,
        };
        if is_next {
            known.advance(key, sequence);
            self.stats.applied += 1;
            sink.apply(id, &increment.item);
            if is_numbered {
                self.drain(id, sink);
            }
        } else if known.is_in_book(key, is_numbered) {
            self.stats.superseded += 1;
            // One that comes again was passed on when it was applied.
            if !is_numbered || key <= known.snapshot_key {
                sink.superseded(id, &increment.item);
            }
        } else {
            self.hold(id, key, increment, sink);
        }
        self.settle(id, sink);
        Ok(())
    }

    /// Handles an earlier number in a newer message: nothing of the instrument is certain, and
    /// changes and snapshots of messages before this one have the earlier numbers.
    #[cold]
    fn jumped_back(&mut self, id: u32, sequence: u64, sink: &mut impl Sink<T>) {
        self.stats.jumped_back += 1;
        self.forget(id, sink);
        let known = &mut self.instruments[id as usize];
        known.fault(0, sequence + 1);
        known.begin = sequence;
        sink.clear(id);
    }

    /// Returns whether a message precedes the one that closed the instrument, which is open again,
    /// or the one in which its RptSeq(83) went back: its changes do not belong to the book.
    pub fn precedes(&self, instrument: u32, sequence: u64) -> bool {
        let known = self.instruments.get(instrument as usize);
        known.is_some_and(|known| sequence < known.begin)
    }

    /// Drops all waiting changes of an instrument.
    fn forget(&mut self, id: u32, sink: &mut impl Sink<T>) {
        let known = &mut self.instruments[id as usize];
        known.held = 0;
        while let Some(waited) = self.held.pop(&mut known.list, u64::MAX) {
            self.stats.dropped += 1;
            sink.dropped(id, &waited.item);
        }
    }

    fn hold(&mut self, id: u32, key: u64, increment: Increment<T>, sink: &mut impl Sink<T>) {
        let is_unique = self.config.numbering == Numbering::Instrument;
        let known = &mut self.instruments[id as usize];
        let waited = Waited {
            key,
            sequence: increment.sequence,
            item: increment.item,
        };
        let is_over = known.held >= self.config.most_held_each;
        let inserted = match is_over {
            true => Insertion::Full,
            false => self.held.insert(&mut known.list, waited, is_unique),
        };
        match inserted {
            Insertion::Done => known.held += 1,
            Insertion::Repeated => self.stats.repeated += 1,
            // The held changes are useless without this one: only a later snapshot helps.
            Insertion::Full => {
                let last = self.held.last_key(known.list).unwrap_or_default();
                known.floor = known.floor.max(last).max(key);
                known.has_book = false;
                self.stats.overflows += 1;
                self.forget(id, sink);
                self.stats.dropped += 1;
                sink.dropped(id, &increment.item);
            }
        }
    }

    /// Applies waiting changes that are next now.
    fn drain(&mut self, id: u32, sink: &mut impl Sink<T>) {
        let is_numbered = self.config.numbering == Numbering::Instrument;
        let known = &mut self.instruments[id as usize];
        loop {
            let most = match is_numbered {
                true => known.applied + 1,
                false => u64::MAX,
            };
            let Some(waited) = self.held.pop(&mut known.list, most) else {
                break;
            };
            known.held -= 1;
            if known.is_in_book(waited.key, is_numbered) {
                self.stats.superseded += 1;
                sink.superseded(id, &waited.item);
            } else {
                known.advance(waited.key, waited.sequence);
                if self.unseen.contains(waited.sequence) {
                    // The rest of its message is missing.
                    known.doubt(waited.sequence);
                }
                self.stats.applied += 1;
                sink.apply(id, &waited.item);
            }
        }
    }

    /// Notes that a message of the channel arrived, with or without changes: those without must be
    /// noted too.
    #[inline]
    pub fn see(&mut self, sequence: u64, sink: &mut impl Sink<T>) {
        match self.next {
            Some(next) => self.next = Some(next.max(sequence + 1)),
            None => self.begin(sequence, sink),
        }
    }

    /// Begins with the first message: earlier ones are not known.
    #[cold]
    fn begin(&mut self, sequence: u64, sink: &mut impl Sink<T>) {
        self.next = Some(sequence + 1);
        self.unknown_below = sequence;
        // The age of snapshots counts from here on.
        self.gap_at = None;
        self.settle_all(sink);
    }

    /// Restarts the channel (SequenceReset(4)): books are empty, RptSeq(83) restarts at 1, and the
    /// next message of the channel has this number. Closed instruments stay closed.
    ///
    /// `now` is the caller's time in nanoseconds.
    pub fn reset(&mut self, now: u64, next: u64, sink: &mut impl Sink<T>) {
        (self.unseen, self.forgotten) = (Missing::new(self.config.most_gaps), 0);
        (self.unknown_below, self.reset_at) = (next, Some((now, next)));
        (self.next, self.gap_at) = (Some(next), Some(now));
        for id in 0..self.instruments.len() as u32 {
            if self.instruments[id as usize].state.is_some() {
                self.begin_anew(id, 0, sink);
            }
        }
        self.settle_all(sink);
    }

    /// Discards what is known of an instrument, except whether it is closed. Changes of messages
    /// below `begin` do not belong to its book.
    fn begin_anew(&mut self, id: u32, begin: u64, sink: &mut impl Sink<T>) {
        self.forget(id, sink);
        let known = &mut self.instruments[id as usize];
        known.begin_anew(0);
        (known.begin, known.ended) = (begin, 0);
        known.has_book = self.config.begins_with_a_book();
        sink.clear(id);
    }

    /// Distrusts all books, as the channel is interpreted differently from here on: they must come
    /// from snapshots that contain its messages up to here. Waiting changes are dropped; numbers
    /// continue, and missing messages stay missing. Closed instruments stay closed.
    ///
    /// `now` is the caller's time in nanoseconds.
    pub fn distrust(&mut self, now: u64, sink: &mut impl Sink<T>) {
        if let Some(next) = self.next {
            (self.unknown_below, self.gap_at) = (next, Some(now));
        }
        for id in 0..self.instruments.len() as u32 {
            let known = &self.instruments[id as usize];
            if known.state.is_none() || known.is_closed {
                continue;
            }
            self.forget(id, sink);
            self.instruments[id as usize].distrust();
            sink.clear(id);
            self.settle(id, sink);
        }
    }

    /// Notes that the book of an instrument is wrong (crossed, a change that cannot be applied), or
    /// that a change was lost, of a message below `end` (0 if none was): only a snapshot that
    /// contains the changes applied so far and the messages below `end` is trusted from here on.
    pub fn fault(&mut self, instrument: u32, end: u64, sink: &mut impl Sink<T>) {
        let Ok(known) = self.instrument(instrument) else {
            return;
        };
        known.fault(known.applied.max(known.floor), end);
        self.stats.faults += 1;
        sink.clear(instrument);
        self.settle(instrument, sink);
    }

    /// Notes that the instrument is no longer traded after the message of this number, or without
    /// one after all so far: nothing of it is awaited. Ignored unless it
    /// [may close](Self::may_close).
    pub fn close(&mut self, instrument: u32, number: Option<u64>, sink: &mut impl Sink<T>) {
        let sequence = number.unwrap_or(self.next());
        if self.may_close(instrument, sequence)
            && self.instrument(instrument).is_ok()
            && self.turn(instrument, sequence)
        {
            self.forget(instrument, sink);
            let known = &mut self.instruments[instrument as usize];
            if !std::mem::replace(&mut known.is_closed, true) {
                known.ended = number.unwrap_or_default();
            }
            self.settle(instrument, sink);
        }
    }

    /// Returns whether this message may close the instrument: no later one has a change of it, or
    /// closed or opened it.
    pub fn may_close(&self, instrument: u32, sequence: u64) -> bool {
        let at = instrument as usize;
        let seen = self.instruments.get(at).map(|known| known.seen_sequence);
        let turned = self.turned.get(at).copied();
        seen.into_iter().chain(turned).all(|last| sequence >= last)
    }

    /// Notes that the instrument is traded after this message of the channel. One that was closed
    /// begins anew: changes of messages before the numbered one that closed it are not of its book.
    /// Changes of later ones are, as its definition may be later than they are, or have no number.
    /// Ignored if a later message closed or opened it.
    pub fn open(&mut self, instrument: u32, sequence: u64, sink: &mut impl Sink<T>) {
        if self.turn(instrument, sequence)
            && let Some(known) = self.instruments.get_mut(instrument as usize)
            && std::mem::take(&mut known.is_closed)
        {
            let begin = known.begin.max(known.ended);
            self.begin_anew(instrument, begin, sink);
            // Snapshots of earlier messages may be of the time before it was closed.
            let known = &mut self.instruments[instrument as usize];
            (known.lost_end, known.lost_at) = (self.next.unwrap_or_default(), u64::MAX);
            self.settle(instrument, sink);
        }
    }

    /// Notes that this message opens or closes an instrument. Returns false if a later one did, or
    /// if there are more instruments than configured.
    fn turn(&mut self, id: u32, sequence: u64) -> bool {
        let at = id as usize;
        if at >= self.config.most_instruments {
            return false;
        }
        if at >= self.turned.len() {
            self.turned.resize(at + 1, 0);
        }
        let is_latest = sequence >= self.turned[at];
        if is_latest {
            self.turned[at] = sequence;
        }
        is_latest
    }

    /// Notes that all lines fell silent for longer than the feed does, or are active again.
    pub fn silence(&mut self, is_silent: bool, sink: &mut impl Sink<T>) {
        if self.is_silent != is_silent {
            self.is_silent = is_silent;
            self.settle_all(sink);
        }
    }

    fn instrument(&mut self, id: u32) -> Result<&mut Instrument, Refused> {
        let at = id as usize;
        if at >= self.config.most_instruments {
            self.stats.refused += 1;
            return Err(Refused::TooManyInstruments(self.config.most_instruments));
        }
        if at >= self.instruments.len() {
            let new = Instrument::new(self.config.begins_with_a_book());
            self.instruments.resize(at + 1, new);
        }
        Ok(&mut self.instruments[at])
    }

    fn is_far_ahead(&self, last: u64) -> bool {
        self.next
            .is_some_and(|next| last > next + u64::from(self.config.most_ahead))
    }

    /// Returns the number after the last message of the channel that did not arrive.
    fn unseen_end(&self) -> u64 {
        let last = self.unseen.last_end().unwrap_or_default();
        last.max(self.unknown_below)
    }

    /// Passes the state of an instrument to the sink, if it changed.
    fn settle(&mut self, id: u32, sink: &mut impl Sink<T>) {
        let unseen = self.unseen_end();
        let is_numbered = self.config.numbering == Numbering::Instrument;
        let known = &self.instruments[id as usize];
        if !is_numbered && known.has_book && known.known_end >= unseen {
            // No message in front of the waiting ones is missing any more.
            self.drain(id, sink);
        }
        let known = &mut self.instruments[id as usize];
        let first = self.held.first_key(known.list);
        let state = known.judge(first, unseen, self.is_silent);
        if known.state == Some(state) {
            return;
        }
        let was = known.state.replace(state);
        match (was, state) {
            (Some(State::Recovering(_)), State::Live) => self.stats.recovered += 1,
            (Some(State::Recovering(_)), _) => {}
            (_, State::Recovering(_)) => self.stats.recoveries += 1,
            _ => {}
        }
        sink.state(id, state);
    }

    #[cold]
    fn settle_all(&mut self, sink: &mut impl Sink<T>) {
        for id in 0..self.instruments.len() as u32 {
            if self.instruments[id as usize].state.is_some() {
                self.settle(id, sink);
            }
        }
    }
}
