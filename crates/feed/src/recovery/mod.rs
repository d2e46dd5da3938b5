//! Recovery: from the changes and pictures of a channel's instruments to books that are whole.
//!
//! A [`Recovery`] takes what comes over the lines, the snapshot lines and a replay with the numbers
//! of the feed; a [`Sink`] receives from it what a book is to do, in order: apply a change, or
//! begin anew with a picture. A change behind a hole waits (bounded) for a picture or for what is
//! missing. It knows for each instrument whether its book is whole ([`State::Live`]) or what is
//! missing ([`State::Recovering`]).
//!
//! Two kinds of numbers show whether a book is whole, and a feed has one of them or both:
//!
//! - RptSeq(83), of the changes of one instrument: a change is in turn if its number is the next.
//! - MsgSeqNum(34) of the channel with LastMsgSeqNumProcessed(369) of a snapshot: a book is whole
//!   if no message of the channel behind its picture is missing. Where instruments have numbers of
//!   their own this still finds changes that were lost with nothing behind them: after a gap on all
//!   lines no instrument is live until its next change, a newer picture or a replay shows that it
//!   lost nothing.
//!
//! A picture that contains changes which wait, or which come after it, passes them by
//! ([`Sink::superseded`]): a book must not apply them, but a trade among them did happen.
//!
//! Sans-I/O and sans-clock; `T` is whatever the caller makes of a change.
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
//!     fn picture(&mut self, _: u32, items: &[char]) {
//!         self.0.push(format!("picture {items:?}"));
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
//!     Snapshot { instrument: 0, rpt_seq: 7, last_processed: Some(100), items },
//!     &mut log,
//! );
//! assert_eq!(
//!     log.0,
//!     [
//!         "recovering: RptSeq 1 to 6 are missing",
//!         "picture ['x', 'y']",
//!         "superseded g",
//!         "apply h",
//!         "live",
//!     ]
//! );
//! ```

mod held;
mod instrument;
mod replay;
mod state;

use crate::missing::Missing;
use held::{Held, Insertion, Waited};
use instrument::Instrument;
use std::ops::Range;

pub use replay::{Replay, ReplayConfig, ReplayStats};
pub use state::{Lack, Numbering, RecoveryConfig, RecoveryStats, Refused, State};

/// A change of an instrument, with the numbers of the feed.
#[derive(Debug, Clone, Copy)]
pub struct Increment<T> {
    /// Which instrument, by the caller's number from 0.
    pub instrument: u32,
    /// RptSeq(83); not looked at where instruments have no numbers ([`Numbering::Channel`]).
    pub rpt_seq: u32,
    /// The number of its message in the channel, extended as by the arbiter.
    pub sequence: u64,
    /// The change.
    pub item: T,
}

/// A picture of an instrument, with the numbers of the feed.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a, T> {
    /// Which instrument, by the caller's number from 0.
    pub instrument: u32,
    /// RptSeq(83) of the last change that it contains; not looked at where instruments have no
    /// numbers.
    pub rpt_seq: u32,
    /// LastMsgSeqNumProcessed(369): the last message of the channel that it contains.
    pub last_processed: Option<u32>,
    /// What it consists of.
    pub items: &'a [T],
}

/// What becomes of changes and pictures. Called in the order in which a book is to do it.
pub trait Sink<T> {
    /// The change is the next one of its instrument.
    fn apply(&mut self, instrument: u32, change: &T);

    /// The change is part of a picture that came before it: the book has it already.
    fn superseded(&mut self, instrument: u32, change: &T);

    /// The change waited, or was to wait, and no book will have it: there was no room, or what it
    /// waited for will not come.
    fn dropped(&mut self, instrument: u32, change: &T);

    /// The book is this picture from here on.
    fn picture(&mut self, instrument: u32, items: &[T]);

    /// The book is empty from here on.
    fn clear(&mut self, instrument: u32);

    /// The state of the instrument changed.
    fn state(&mut self, instrument: u32, state: State);
}

/// The recovery of the instruments of one channel. See the module's text.
///
/// It allocates for an instrument that it has not seen, and for changes that wait beyond all that
/// waited before, both up to the limits of its configuration; nothing for changes in turn.
#[derive(Debug)]
pub struct Recovery<T> {
    config: RecoveryConfig,
    instruments: Vec<Instrument>,
    held: Held<T>,
    /// Messages of the channel that did not come.
    unseen: Missing,
    /// Of the messages below this number nothing is known: from before the first one, or of gaps
    /// that were forgotten.
    unknown_below: u64,
    /// How many missing messages were forgotten.
    forgotten: u64,
    /// The number behind the highest message.
    next: Option<u64>,
    /// The last gap was that of a reset.
    was_reset: bool,
    /// When the last gap was declared, or the first picture came.
    gap_at: Option<u64>,
    is_silent: bool,
    stats: RecoveryStats,
}

impl<T: Copy> Recovery<T> {
    /// Returns a recovery that has seen nothing.
    pub fn new(config: RecoveryConfig) -> Self {
        Self {
            instruments: Vec::new(),
            held: Held::new(config.most_held),
            unseen: Missing::new(config.most_gaps),
            unknown_below: u64::MAX,
            forgotten: 0,
            next: None,
            was_reset: false,
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

    /// Returns the state of an instrument, or `None` if nothing of it was seen.
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

    /// Returns the messages of the channel that are missing: those to ask a replay for.
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
                false => key > known.picture,
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
        if is_numbered && known.is_back(key, sequence) {
            self.jumped_back(id, sink);
        }
        let known = &mut self.instruments[id as usize];
        if sequence >= known.seen_sequence {
            (known.seen, known.seen_sequence) = (key, sequence);
        }
        let is_live = known.state == Some(State::Live);
        let is_next = match is_numbered {
            true => known.has_book && key == known.applied + 1,
            false => is_live && key > known.picture && key >= known.applied,
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
            sink.superseded(id, &increment.item);
        } else {
            self.hold(id, key, increment, sink);
        }
        self.settle(id, sink);
        Ok(())
    }

    /// A number that came before, in a newer message: nothing of the instrument is certain.
    #[cold]
    fn jumped_back(&mut self, id: u32, sink: &mut impl Sink<T>) {
        self.stats.jumped_back += 1;
        self.forget(id, sink);
        let known = &mut self.instruments[id as usize];
        known.begin_anew(0);
        known.is_faulty = true;
        sink.clear(id);
    }

    /// Drops all that waits for an instrument.
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
            // What was held is of no use without this one: only a picture behind it is.
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

    /// Applies what waits and is next now.
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
                self.stats.applied += 1;
                sink.apply(id, &waited.item);
            }
        }
    }

    /// Takes a picture, from a snapshot line or by replay.
    ///
    /// `now` is the caller's time in nanoseconds.
    ///
    /// # Errors
    ///
    /// There are more instruments than configured; nothing is done.
    pub fn snapshot(
        &mut self,
        now: u64,
        snapshot: Snapshot<'_, T>,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        let id = snapshot.instrument;
        let last = snapshot.last_processed.map(|last| self.extend(last));
        let is_numbered = self.config.numbering == Numbering::Instrument;
        self.instrument(id)?;
        let key = match (is_numbered, last) {
            (true, _) => u64::from(snapshot.rpt_seq),
            (false, Some(last)) => last,
            // Nothing says where it belongs.
            (false, None) => {
                self.stats.snapshots_unusable += 1;
                return Ok(());
            }
        };
        let gap_at = *self.gap_at.get_or_insert(now);
        let is_aged = now.saturating_sub(gap_at) >= self.config.snapshot_age;
        self.was_reset &= !is_aged;
        let known_end = match last {
            Some(last) => last + 1,
            // What was made after the gap contains what was lost in it.
            None if is_aged => self.next.unwrap_or(1),
            None => 1,
        };
        // Numbers of the time before a reset may look like those of the time behind it.
        let is_of_another_time =
            !is_aged && self.was_reset || last.is_some_and(|last| self.is_far_ahead(last));
        if is_of_another_time {
            self.stats.snapshots_unusable += 1;
            return Ok(());
        }
        self.picture(key, known_end, snapshot, sink);
        self.settle(id, sink);
        Ok(())
    }

    /// Takes a picture that the caller put together of changes of the channel (natural refresh): it
    /// is as of the message with this number. Only where instruments have numbers of their own.
    ///
    /// # Errors
    ///
    /// There are more instruments than configured; nothing is done.
    pub fn rebuilt(
        &mut self,
        (instrument, rpt_seq): (u32, u32),
        sequence: u64,
        items: &[T],
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        self.instrument(instrument)?;
        let snapshot = Snapshot {
            instrument,
            rpt_seq,
            last_processed: Some(sequence as u32),
            items,
        };
        self.picture(u64::from(rpt_seq), sequence + 1, snapshot, sink);
        self.settle(instrument, sink);
        Ok(())
    }

    /// Takes a picture, or leaves it where the book is as new.
    fn picture(
        &mut self,
        key: u64,
        known_end: u64,
        snapshot: Snapshot<'_, T>,
        sink: &mut impl Sink<T>,
    ) {
        let id = snapshot.instrument;
        let unseen = self.unseen_end();
        let is_numbered = self.config.numbering == Numbering::Instrument;
        let known = &mut self.instruments[id as usize];
        let is_old = known.has_book && key <= known.applied;
        let is_short = !is_numbered && key + 1 < unseen;
        if is_old || is_short || key < known.floor {
            if known.has_book && key == known.applied {
                // It has the same content, and may be known to be as new as later messages.
                known.known_end = known.known_end.max(known_end);
            }
            self.stats.snapshots_old += 1;
            return;
        }
        let is_live = known.state == Some(State::Live);
        if is_live && (known.ahead == 0 || known.applied >= known.ahead) {
            // The changes are under way, or lost with nothing behind them: the next picture tells.
            known.ahead = key;
            self.stats.snapshots_ahead += 1;
            return;
        }
        known.take_picture(key, known_end, snapshot.last_processed.is_some());
        self.stats.snapshots_taken += 1;
        sink.picture(id, snapshot.items);
        self.drain_below(id, sink);
        if is_numbered {
            self.drain(id, sink);
        }
    }

    /// Passes by what waits and is part of the picture.
    fn drain_below(&mut self, id: u32, sink: &mut impl Sink<T>) {
        let known = &mut self.instruments[id as usize];
        while let Some(waited) = self.held.pop(&mut known.list, known.picture) {
            known.held -= 1;
            self.stats.superseded += 1;
            sink.superseded(id, &waited.item);
        }
    }

    /// These messages of the channel did not come over any line. No instrument is live until it is
    /// known that it lost nothing.
    ///
    /// `now` is the caller's time in nanoseconds.
    pub fn gap(&mut self, now: u64, range: Range<u64>, sink: &mut impl Sink<T>) {
        if range.is_empty() {
            return;
        }
        // Behind a reset pictures are not taken for a time; a gap does not shorten it.
        self.gap_at = Some(now);
        if self.next.is_none() {
            self.unknown_below = range.start;
        }
        self.next = self.next.max(Some(range.end));
        self.unseen.push(range);
        self.note_forgotten();
        self.settle_all(sink);
    }

    /// These messages of the channel came by replay: call it behind their changes.
    pub fn replayed(&mut self, range: Range<u64>, sink: &mut impl Sink<T>) {
        let before = self.unseen_end();
        self.unseen.take(range);
        self.note_forgotten();
        if self.unseen_end() != before {
            self.settle_all(sink);
        }
    }

    /// Ranges that were forgotten stand in front of those that are left, and stay unknown.
    fn note_forgotten(&mut self) {
        if self.unseen.forgotten() == self.forgotten {
            return;
        }
        self.forgotten = self.unseen.forgotten();
        let left = self.unseen.ranges().next();
        let end = left.map_or(self.next.unwrap_or_default(), |range| range.start);
        self.unknown_below = self.unknown_below.max(end);
    }

    /// A message of the channel came, with or without changes: those without must be told too.
    #[inline]
    pub fn see(&mut self, sequence: u64, sink: &mut impl Sink<T>) {
        match self.next {
            Some(next) => self.next = Some(next.max(sequence + 1)),
            None => self.begin(sequence, sink),
        }
    }

    /// The first message: what came before it is not known.
    #[cold]
    fn begin(&mut self, sequence: u64, sink: &mut impl Sink<T>) {
        self.next = Some(sequence + 1);
        self.unknown_below = sequence;
        // The age of pictures counts from here on.
        self.gap_at = None;
        self.settle_all(sink);
    }

    /// The channel begins anew (SequenceReset(4)): books are empty, numbers count from 1 again, the
    /// next message of the channel has this number.
    ///
    /// `now` is the caller's time in nanoseconds.
    pub fn reset(&mut self, now: u64, next: u64, sink: &mut impl Sink<T>) {
        (self.unseen, self.forgotten) = (Missing::new(self.config.most_gaps), 0);
        (self.unknown_below, self.was_reset) = (next, true);
        (self.next, self.gap_at) = (Some(next), Some(now));
        for id in 0..self.instruments.len() as u32 {
            self.forget(id, sink);
            let known = &mut self.instruments[id as usize];
            if known.state.is_some() {
                known.begin_anew(0);
                known.has_book = self.config.begins_with_a_book();
                sink.clear(id);
            }
        }
        self.settle_all(sink);
    }

    /// What was made of the channel so far is not as what is made of it from here on: all books are
    /// to come from pictures that contain its messages up to here. Changes that wait are dropped;
    /// numbers go on, and missing messages stay missing. Closed instruments stay closed.
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
            self.instruments[id as usize].begin_anew(0);
            sink.clear(id);
            self.settle(id, sink);
        }
    }

    /// The book of an instrument is wrong (crossed, a change that cannot be applied): only a
    /// picture of it is trusted from here on.
    pub fn fault(&mut self, instrument: u32, sink: &mut impl Sink<T>) {
        let Some(known) = self.instruments.get_mut(instrument as usize) else {
            return;
        };
        self.stats.faults += 1;
        known.begin_anew(known.applied.max(known.floor));
        known.is_faulty = true;
        sink.clear(instrument);
        self.settle(instrument, sink);
    }

    /// The instrument is not traded any more: nothing of it is awaited.
    pub fn close(&mut self, instrument: u32, sink: &mut impl Sink<T>) {
        if self.instruments.get(instrument as usize).is_some() {
            self.forget(instrument, sink);
            let known = &mut self.instruments[instrument as usize];
            known.is_closed = true;
            self.settle(instrument, sink);
        }
    }

    /// All lines fell silent for longer than the feed does, or speak again.
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

    /// Returns the number of the channel that a snapshot means: the nearest one to the highest
    /// seen.
    fn extend(&self, low: u32) -> u64 {
        let Some(next) = self.next else {
            return u64::from(low);
        };
        let distance = low.wrapping_sub(next as u32).cast_signed();
        next.saturating_add_signed(i64::from(distance))
    }

    fn is_far_ahead(&self, last: u64) -> bool {
        self.next
            .is_some_and(|next| last > next + u64::from(self.config.most_ahead))
    }

    /// Behind the last message of the channel that did not come.
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
            // Nothing in front of what waits is missing any more.
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
