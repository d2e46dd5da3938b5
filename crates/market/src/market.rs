//! The market of one feed: the events of its messages, ordered by a [`Recovery`], applied to books,
//! and passed on as events with the plant's numbers.

mod out;

use crate::book::{Book, BookConfig, BookKind, Books};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::newest::Newest;
use crate::refresh::{self, Refresh};
use crate::snapshot;
use crate::state;
use fanfare_feed::recovery::{
    Increment, Numbering, Recovery, RecoveryConfig, RecoveryStats, Sink, Snapshot, State,
};
use fanfare_feed::{Missing, recovery::Refused};
use out::{Out, To, Waiting};
use std::ops::Range;

/// The kind and size of the books, and the numbers and limits of a feed.
#[derive(Debug, Clone)]
pub struct MarketConfig {
    /// The books of each instrument, unless its definition specifies otherwise.
    pub book: BookConfig,
    /// The numbers and limits.
    pub recovery: RecoveryConfig,
    /// Whether the feed sends levels anew often enough to restore a book by them alone. Without
    /// effect unless [`Self::can_refresh`]. A side with fewer levels than its depth does not come
    /// back.
    pub has_natural_refresh: bool,
    /// The [`Event::source`] of all events, from 1.
    pub source: u16,
}

impl MarketConfig {
    /// The most levels of a side that can be restored by levels that are sent anew.
    pub const MOST_REFRESHED_LEVELS: u16 = refresh::MOST_LEVELS;

    /// Returns whether levels that are sent anew can restore a book: they are numbered, at most
    /// [`Self::MOST_REFRESHED_LEVELS`] on a side, and have RptSeq(83).
    pub fn can_refresh(&self) -> bool {
        self.recovery.numbering == Numbering::Instrument
            && self.book.kind() == BookKind::Levels
            && self.book.levels() <= u32::from(Self::MOST_REFRESHED_LEVELS)
    }
}

/// The counts of a market.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MarketStats {
    /// Changes that a book refused, or after which it was crossed or in disorder.
    pub faults: u64,
    /// Changes of books without RptSeq(83) in a feed that numbers them. Those of a message and an
    /// instrument count as one fault of the recovery.
    pub unnumbered: u64,
    /// Changes that were ignored because a snapshot contained them, because they preceded a new
    /// beginning of the book, because they followed a fault, or because they were dropped
    /// ([`RecoveryStats::dropped`]), the rest of snapshots with a fault, and late statistics that
    /// later messages had replaced. Trades among them were passed on.
    pub left_out: u64,
    /// Events of instruments beyond the limit.
    pub refused: u64,
    /// Books that were restored by levels that were sent anew.
    pub refreshed: u64,
}

/// The books and states of one feed's instruments. See the module's text.
///
/// Events are passed on in the order in which they apply to the book, so that after each call the
/// books reflect the events so far. A queued change is passed on when it is in sequence. The
/// numbers of all events are without gaps. Every book begins with a [`Kind::Clear`].
///
/// Allocates for new instruments and books, for queued changes beyond the most queued before, and
/// while messages are missing that may come late ([`Self::expect_late`]) for the first value of
/// each statistic without RptSeq(83). Changes in sequence do not allocate.
///
/// A book with a fault is cleared at the end of the message: from the fault on, no event of the
/// instrument in front of that [`Kind::Clear`] has [`Flags::LAST`]. A live book is checked at the
/// last event of a message, of whatever kind.
///
/// The state of a book that becomes complete within a message is passed on after the message's
/// events, so that no reader shows a part of the message.
///
/// Statuses are passed on in the order in which they arrive. A mapper leaves out one that a later
/// message has replaced.
#[derive(Debug)]
pub struct Market {
    recovery: Recovery<Event>,
    out: Out,
    is_numbered: bool,
    refresh: Option<Refresh>,
}

/// The most concurrent instruments that recover by natural refresh.
const MOST_REFRESHED: usize = 4_096;

impl Market {
    /// Creates a market without instruments, whose first event has number `first`.
    pub fn new(config: MarketConfig, first: u64) -> Self {
        let most = u32::try_from(config.recovery.most_instruments).unwrap_or(u32::MAX);
        let is_numbered = config.recovery.numbering == Numbering::Instrument;
        let depth = u16::try_from(config.book.levels()).unwrap_or(u16::MAX);
        Self {
            is_numbered,
            refresh: (config.has_natural_refresh && config.can_refresh())
                .then(|| Refresh::new(depth, MOST_REFRESHED)),
            recovery: Recovery::new(config.recovery),
            out: Out {
                books: Books::new(config.book, most),
                next: first,
                source: config.source,
                ts_recv: Event::NO_TIME,
                faulty: Vec::new(),
                is_within: false,
                completed: Vec::new(),
                snapshotted: None,
                expects_late: false,
                newest: Newest::default(),
                stats: MarketStats::default(),
            },
        }
    }

    /// Expects messages that are missing to come late, as by a replay: from then on, a statistic
    /// without RptSeq(83) is left out if a later message has replaced it.
    pub const fn expect_late(&mut self) {
        self.out.expects_late = true;
    }

    /// Returns the number of the next event.
    pub const fn next_number(&self) -> u64 {
        self.out.next
    }

    /// Returns the counters.
    pub const fn stats(&self) -> MarketStats {
        self.out.stats
    }

    /// Returns the counters of its recovery.
    pub fn recovery_stats(&self) -> RecoveryStats {
        self.recovery.stats()
    }

    /// Returns the messages of the channel that are missing.
    pub fn missing(&self) -> &Missing {
        self.recovery.missing()
    }

    /// Returns the state of an instrument, or `None` before its first event.
    pub fn state(&self, instrument: InstrumentId) -> Option<State> {
        self.recovery.state(instrument.0)
    }

    /// Returns RptSeq(83) of the last change in the book of an instrument, or the low 32 bits of
    /// the number of its message if the feed does not number by instrument.
    pub fn position(&self, instrument: InstrumentId) -> Option<u32> {
        Some(self.recovery.position(instrument.0)? as u32)
    }

    /// Returns whether the book of an instrument contains messages of the channel that have not
    /// arrived: those of a snapshot that is ahead of them.
    pub fn is_ahead(&self, instrument: InstrumentId) -> bool {
        self.recovery.is_ahead(instrument.0)
    }

    /// Returns the book of an instrument, or `None` if it has never had a level or an order. It is
    /// reliable if [`Self::state`] is [`State::Live`]. A live instrument without a book has an
    /// empty one.
    pub fn book(&self, instrument: InstrumentId) -> Option<&Book> {
        self.out.books.get(instrument)
    }

    /// Returns all books, in the order of their instruments.
    pub const fn books(&self) -> &Books {
        &self.out.books
    }

    /// Processes the changes of one message of the channel. `sequence` is its number, extended as
    /// by the arbiter, and `ts_recv` its time of arrival.
    #[inline]
    pub fn changes(
        &mut self,
        ts_recv: u64,
        sequence: u64,
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        self.out.ts_recv = ts_recv;
        let mut to = To {
            out: &mut self.out,
            send,
        };
        self.recovery.see(sequence, &mut to);
        to.out.is_within = true;
        for event in events {
            let bare;
            let mut item = event;
            if (event.rpt_seq == 0 && self.is_numbered) || !Self::is_ordered(event.kind) {
                let is_of_book = event.kind.is_of_book();
                if is_of_book && self.recovery.precedes(event.instrument.0, sequence) {
                    to.out.stats.left_out += 1;
                } else if is_of_book {
                    to.out.stats.unnumbered += 1;
                    to.out.note_fault(event.instrument, sequence + 1);
                } else {
                    pass(&mut self.recovery, &mut to, event, Some(sequence));
                }
                if event.rpt_seq == 0 || !self.is_numbered {
                    continue;
                }
                // The changes after it are in sequence only with its number.
                bare = Event::bare_number(event.instrument, event.rpt_seq);
                item = &bare;
            }
            let increment = Increment {
                instrument: item.instrument.0,
                rpt_seq: item.rpt_seq,
                sequence,
                item: *item,
            };
            if let Err(Refused::TooManyInstruments(_)) = self.recovery.increment(increment, &mut to)
            {
                to.out.stats.refused += 1;
            }
        }
        self.out.is_within = false;
        if !self.out.completed.is_empty() {
            self.tell_completed(send);
        }
        if self.refresh.is_some() {
            self.refresh(sequence, events, send);
        }
        self.end(send);
    }

    /// Passes on the states of the books that became complete in the message. One that had a fault
    /// in it is cleared instead.
    #[cold]
    fn tell_completed(&mut self, send: &mut impl FnMut(&Event)) {
        let mut completed = std::mem::take(&mut self.out.completed);
        let out = &mut self.out;
        let mut to = To { out, send };
        for (instrument, state) in completed.drain(..) {
            if !to.is_faulty(instrument) {
                to.emit_state(instrument, state);
            }
        }
        // Its room is used again.
        self.out.completed = completed;
    }

    /// Tries to restore the instruments of a message by the levels that it sends anew.
    fn refresh(&mut self, sequence: u64, events: &[Event], send: &mut impl FnMut(&Event)) {
        let Some(refresh) = &mut self.refresh else {
            return;
        };
        let out = &mut self.out;
        let mut to = To { out, send };
        for event in events {
            let id = event.instrument;
            if self.recovery.precedes(id.0, sequence) {
                continue;
            }
            if !matches!(self.recovery.state(id.0), Some(State::Recovering(_))) {
                refresh.forget(id);
                continue;
            }
            let Some(items) = refresh.take(event) else {
                continue;
            };
            // The instrument is known, so it is not refused.
            let place = (id.0, event.rpt_seq);
            if self
                .recovery
                .rebuilt(place, sequence, items, &mut to)
                .is_ok()
            {
                to.out.stats.refreshed += 1;
            }
            to.out.snapshotted = None;
        }
    }

    /// Returns whether the feed numbers the changes of each instrument.
    pub(crate) const fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// Returns whether changes of this kind are queued until they are in sequence.
    const fn is_ordered(kind: Kind) -> bool {
        !matches!(kind, Kind::Definition | Kind::Status | Kind::State)
    }

    /// Processes the snapshot of one instrument: a Clear and entries, all with [`Flags::SNAPSHOT`],
    /// and LastMsgSeqNumProcessed(369). `now` is the caller's time in nanoseconds.
    pub fn snapshot(
        &mut self,
        times: (u64, u64),
        last_processed: Option<u32>,
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        self.take_snapshot(times, (last_processed, false), events, send);
    }

    /// Processes a snapshot as [`Self::snapshot`] does. `is_since_reset` is whether it is known to
    /// be made after the last restart of the channel.
    pub(crate) fn take_snapshot(
        &mut self,
        (now, ts_recv): (u64, u64),
        (last_processed, is_since_reset): (Option<u32>, bool),
        events: &[Event],
        send: &mut impl FnMut(&Event),
    ) {
        let Some(first) = events.first() else {
            return;
        };
        self.out.ts_recv = ts_recv;
        let mut to = To {
            out: &mut self.out,
            send,
        };
        // A book without RptSeq(83) has no place among the changes. An empty one may precede them.
        let is_empty = !events
            .iter()
            .any(|event| matches!(event.kind, Kind::Level | Kind::Order));
        let snapshot = Snapshot {
            instrument: first.instrument.0,
            rpt_seq: (first.rpt_seq != 0 || is_empty).then_some(first.rpt_seq),
            last_processed,
            items: events,
        };
        let taken = match is_since_reset {
            true => self.recovery.snapshot_since_reset(now, snapshot, &mut to),
            false => self.recovery.snapshot(now, snapshot, &mut to),
        };
        to.out.stats.refused += u64::from(taken.is_err());
        to.out.snapshotted = None;
        self.end(send);
    }

    /// Ends a message. Books with a fault recover by a snapshot.
    #[inline]
    fn end(&mut self, send: &mut impl FnMut(&Event)) {
        if !self.out.faulty.is_empty() {
            self.give_up(send);
        }
    }

    #[cold]
    fn give_up(&mut self, send: &mut impl FnMut(&Event)) {
        self.with(send, |_, _| {});
    }

    /// Starts the recovery of an instrument of which a change in the messages so far could not be
    /// read, or may be missing. Only a snapshot that contains these messages restores it.
    pub fn fault(&mut self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        let end = self.recovery.next();
        self.with(send, |recovery, to| recovery.fault(instrument.0, end, to));
    }

    /// Starts the recovery of an instrument with a change of its book in a message without a
    /// number. Only a snapshot that contains a later message is known to contain that one.
    pub fn fault_without_number(
        &mut self,
        instrument: InstrumentId,
        send: &mut impl FnMut(&Event),
    ) {
        let end = self.recovery.next() + 1;
        self.with(send, |recovery, to| recovery.fault(instrument.0, end, to));
    }

    /// Records a message of the channel without changes.
    pub fn see(&mut self, sequence: u64, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.see(sequence, to));
    }

    /// Records that these messages arrived on no line.
    pub fn gap(&mut self, now: u64, range: Range<u64>, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.gap(now, range, to));
    }

    /// Takes back a gap from this number on, which the next message of the channel has.
    pub fn take_back(&mut self, from: u64, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.take_back(from, to));
    }

    /// Records that these messages arrived by replay. Must be called after their changes.
    pub fn replayed(&mut self, range: Range<u64>, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.replayed(range, to));
    }

    /// Restarts the channel: SequenceReset(4) to this number.
    pub fn reset(&mut self, now: u64, next: u64, send: &mut impl FnMut(&Event)) {
        if let Some(refresh) = &mut self.refresh {
            refresh.clear();
        }
        self.with(send, |recovery, to| recovery.reset(now, next, to));
    }

    /// Records that messages are mapped differently from here on, so that no book is live until a
    /// snapshot arrives that contains all messages so far. `now` is the caller's time in
    /// nanoseconds.
    pub fn distrust(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        if let Some(refresh) = &mut self.refresh {
            refresh.clear();
        }
        self.with(send, |recovery, to| recovery.distrust(now, to));
    }

    /// Records that all lines are silent, or are heard again.
    pub fn silence(&mut self, is_silent: bool, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.silence(is_silent, to));
    }

    /// Records that the instrument is no longer traded. Its next definition opens it.
    pub fn close(&mut self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.with(send, |recovery, to| recovery.close(instrument.0, None, to));
    }

    /// Ends the waiting of changes at the end of the feed, for instruments below the number
    /// `instruments`. Trades are passed on, each with [`Flags::LAST`]. Other changes are dropped,
    /// and all are counted ([`RecoveryStats::dropped`]). This is the last call: the states of these
    /// instruments are invalid behind it, and are not passed on.
    pub fn finish(&mut self, instruments: u32, send: &mut impl FnMut(&Event)) {
        let out = &mut self.out;
        let mut to = To { out, send };
        for instrument in 0..instruments {
            if self.recovery.stats().held == 0 {
                return;
            }
            if self.recovery.state(instrument).is_some() {
                // A closed instrument waits for nothing, whatever its last message.
                let waiting = &mut Waiting(&mut to);
                self.recovery.close(instrument, Some(u64::MAX), waiting);
            }
        }
    }

    /// Returns whether a change of this message that cannot be read precedes the book of the
    /// instrument. The change then counts as left out.
    pub(crate) fn leaves_out(&mut self, instrument: InstrumentId, sequence: u64) -> bool {
        let is_left_out = self.recovery.precedes(instrument.0, sequence);
        self.out.stats.left_out += u64::from(is_left_out);
        is_left_out
    }

    /// Returns whether this message may close the instrument: no later one has a change of it, or
    /// closed or opened it.
    pub(crate) fn may_close(&self, instrument: InstrumentId, sequence: u64) -> bool {
        self.recovery.may_close(instrument.0, sequence)
    }

    /// Records that the instrument is traded. The book of one that was closed begins anew.
    pub(crate) fn open(&mut self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        self.open_at(self.recovery.next(), instrument, send);
    }

    /// Records that the instrument is traded after this message, as [`Self::open`] does.
    pub(crate) fn open_at(
        &mut self,
        sequence: u64,
        instrument: InstrumentId,
        send: &mut impl FnMut(&Event),
    ) {
        self.with(send, |recovery, to| {
            recovery.open(instrument.0, sequence, to);
        });
    }

    /// Passes on an event that belongs to no channel: a definition, a status, the end of an
    /// instrument.
    pub fn pass_on(&mut self, ts_recv: u64, event: &Event, send: &mut impl FnMut(&Event)) {
        self.out.ts_recv = ts_recv;
        self.with(send, |recovery, to| pass(recovery, to, event, None));
    }

    /// Passes on the state of an instrument again: a snapshot of its book, and its state. It serves
    /// readers that lost events, or join late, and adds nothing for the others. A book that only a
    /// snapshot of the feed can restore is left out, and so is an instrument without a state, whose
    /// book is yet to begin. Allocates nothing.
    pub fn show(&mut self, ts_recv: u64, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        let Some(state) = self.recovery.state(instrument.0) else {
            return;
        };
        let (mut next, source) = (self.out.next, self.out.source);
        let mut emit = |event: &Event| {
            send(&Event {
                number: next,
                source,
                instrument,
                ts_recv,
                ..*event
            });
            next += 1;
        };
        if state::keeps_book(state) {
            self.snapshot_of(instrument, &mut emit);
        }
        let mut event = state::to_event(state);
        event.flags = Flags::LAST;
        emit(&event);
        self.out.next = next;
    }

    /// Calls `send` with a snapshot of the instrument's current book, complete or not: a Clear and
    /// the book, with the last RptSeq(83) and without the plant's numbers. Allocates nothing.
    pub fn snapshot_of(&self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        let rpt_seq = match self.is_numbered {
            true => self.position(instrument).unwrap_or_default(),
            false => 0,
        };
        let clear = Event {
            flags: Flags::SNAPSHOT,
            instrument,
            rpt_seq,
            source: self.out.source,
            ..Event::EMPTY
        };
        snapshot::of_book(&clear, self.out.books.get(instrument), send);
    }

    fn with<F: FnMut(&Event)>(
        &mut self,
        send: &mut F,
        work: impl FnOnce(&mut Recovery<Event>, &mut To<'_, F>),
    ) {
        let out = &mut self.out;
        work(&mut self.recovery, &mut To { out, send });
        // The drained changes may have been invalid for the book.
        while let Some((instrument, end)) = self.out.faulty.pop() {
            let out = &mut self.out;
            let mut to = To { out, send };
            self.recovery.fault(instrument.0, end, &mut to);
        }
    }
}

/// Passes on an event that is not queued, of the message with this number, if it has one. The end
/// of an instrument is passed on as its state, and a definition opens an instrument that was
/// closed, unless a later message closed or opened it: the state of one that stays closed follows
/// its definition. A statistic that a later message has replaced is left out. At the last event of
/// a message, the book must be in order.
fn pass<F: FnMut(&Event)>(
    recovery: &mut Recovery<Event>,
    to: &mut To<'_, F>,
    event: &Event,
    number: Option<u64>,
) {
    if event.flags.has(Flags::LAST) {
        to.end_message(event.instrument, recovery.state(event.instrument.0));
    }
    if state::closes(event) {
        return recovery.close(event.instrument.0, number, to);
    }
    let sequence = number.unwrap_or_else(|| recovery.next());
    if event.kind == Kind::Statistic {
        let is_whole = !to.out.expects_late || recovery.missing().is_empty();
        if !to.out.newest.take(event, sequence, is_whole) {
            to.out.stats.left_out += 1;
            return;
        }
    }
    to.emit_beside(event);
    if event.kind == Kind::Definition {
        recovery.open(event.instrument.0, sequence, to);
        if recovery.state(event.instrument.0) == Some(State::Closed) {
            to.state(event.instrument.0, State::Closed);
        }
    }
}
