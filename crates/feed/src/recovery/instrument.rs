//! The recovery of one instrument.

use super::held::List;
use super::state::{Lack, State};

/// The recovery of one instrument. Keys are RptSeq(83), or numbers of messages where instruments
/// have none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Instrument {
    /// The state that was reported last; `None` before anything was received.
    pub(super) state: Option<State>,
    /// The key of the last change in the book.
    pub(super) applied: u64,
    /// The key of the last snapshot taken.
    pub(super) snapshot_key: u64,
    /// The key of the newest change, and the number of its message.
    pub(super) seen: u64,
    pub(super) seen_sequence: u64,
    /// The number of the channel below which all changes of the instrument are in the book; 0 if
    /// none is known.
    pub(super) known_end: u64,
    /// The lowest useful key of a snapshot: changes after lower ones were dropped.
    pub(super) floor: u64,
    /// The number of the channel below which a message had a change that the book lacks, which a
    /// snapshot must contain; 0 if none had.
    pub(super) lost_end: u64,
    /// The time at which the first snapshot arrived after such a message; `u64::MAX` before.
    pub(super) lost_at: u64,
    /// The number of the message that closed it before it was opened again, or in which RptSeq(83)
    /// went back; 0 if none did. Changes of earlier messages do not belong to the book.
    pub(super) begin: u64,
    /// The number of the message that closed it last, if it had one; otherwise 0.
    pub(super) ended: u64,
    /// The key of a snapshot that was ahead of the live book.
    pub(super) ahead: u64,
    pub(super) list: List,
    /// The number of changes in the list.
    pub(super) held: u32,
    /// Whether there is a book: a snapshot, or the empty one at the start.
    pub(super) has_book: bool,
    /// Whether `known_end` follows from numbers, not from times.
    pub(super) is_dated: bool,
    pub(super) is_faulty: bool,
    pub(super) is_closed: bool,
}

impl Instrument {
    pub(super) const fn new(starts_empty: bool) -> Self {
        Self {
            state: None,
            applied: 0,
            snapshot_key: 0,
            seen: 0,
            seen_sequence: 0,
            known_end: 0,
            floor: 0,
            lost_end: 0,
            lost_at: 0,
            begin: 0,
            ended: 0,
            ahead: 0,
            list: List::EMPTY,
            held: 0,
            has_book: starts_empty,
            is_dated: false,
            is_faulty: false,
            is_closed: false,
        }
    }

    /// Returns whether the book is the empty one at the start, and nothing of it has arrived.
    pub(super) const fn is_new(&self) -> bool {
        let is_told = !matches!(self.state, None | Some(State::Closed));
        self.has_book && self.seen == 0 && self.known_end == 0 && !is_told
    }

    /// Notes that a change with this key, of this message, was applied.
    #[inline(always)]
    pub(super) const fn advance(&mut self, key: u64, sequence: u64) {
        self.applied = key;
        self.is_dated = true;
        if sequence >= self.known_end {
            self.known_end = sequence + 1;
        }
        if sequence > self.seen_sequence {
            self.seen_sequence = sequence;
        }
    }

    /// Notes that the book is replaced by a snapshot with this key.
    pub(super) const fn replace_book(&mut self, key: u64, known_end: u64, is_dated: bool) {
        (self.applied, self.snapshot_key) = (key, key);
        (self.known_end, self.is_dated, self.ahead) = (known_end, is_dated, 0);
        (self.has_book, self.is_faulty) = (true, false);
    }

    /// Discards the book; only snapshots with this key or a higher one are useful from now on.
    pub(super) const fn begin_anew(&mut self, floor: u64) {
        let (state, list, held) = (self.state, self.list, self.held);
        let (is_closed, begin, ended) = (self.is_closed, self.begin, self.ended);
        *self = Self::new(false);
        (self.state, self.list, self.held) = (state, list, held);
        (self.is_closed, self.begin, self.ended) = (is_closed, begin, ended);
        self.floor = floor;
    }

    /// Discards the book, which a snapshot restores that contains the changes that were lost.
    pub(super) const fn distrust(&mut self) {
        let lost = (self.lost_end, self.lost_at);
        self.begin_anew(0);
        (self.lost_end, self.lost_at) = lost;
    }

    /// Discards the book as wrong; only snapshots with this key or a higher one that contain all
    /// messages below `end` are useful from now on.
    pub(super) fn fault(&mut self, floor: u64, end: u64) {
        let before = (self.lost_end, self.lost_at);
        self.begin_anew(floor);
        self.is_faulty = true;
        (self.lost_end, self.lost_at) = match end {
            0 => before,
            _ => (end.max(before.0), u64::MAX),
        };
    }

    /// Notes that changes may be missing from this message of the channel on. A replay may repeat
    /// those that did arrive, which are then not taken for a number that went back.
    pub(super) fn doubt(&mut self, sequence: u64) {
        self.known_end = self.known_end.min(sequence);
        self.is_dated = false;
    }

    /// Returns whether the book has the change of this key. Where keys are numbers of messages, a
    /// message may have several changes: only a snapshot shows that all of them are in the book.
    pub(super) const fn is_in_book(&self, key: u64, is_numbered: bool) -> bool {
        match is_numbered {
            true => self.has_book && key <= self.applied,
            false => self.has_book && key <= self.snapshot_key,
        }
    }

    /// Returns whether RptSeq(83) went back, that is, a newer message has an earlier number.
    pub(super) const fn is_back(&self, key: u64, sequence: u64) -> bool {
        let is_repeated = self.seen != 0 && key <= self.seen && sequence > self.seen_sequence;
        let is_in_book = self.has_book && self.is_dated && key <= self.applied;
        is_repeated || is_in_book && sequence >= self.known_end
    }

    /// Returns the state, by the key of the first change that waits and the end of the messages
    /// that did not arrive.
    pub(super) fn judge(&self, first: Option<u64>, unseen: u64, is_silent: bool) -> State {
        let lack = match first {
            _ if self.is_closed => return State::Closed,
            _ if self.is_faulty => Lack::SnapshotAfterFault,
            _ if !self.has_book => Lack::Snapshot,
            Some(first) if first > self.applied + 1 => Lack::Changes(self.applied + 1, first - 1),
            None if self.known_end == 0 => Lack::Snapshot,
            // The next change waits: its message may lack others.
            Some(_) => Lack::Certainty(unseen),
            None if self.known_end < unseen => Lack::Certainty(unseen),
            None if is_silent => return State::Stale,
            None => return State::Live,
        };
        State::Recovering(lack)
    }
}
