//! Snapshots of instruments: whether they are newer than the books, and what they replace.

use super::{Numbering, Recovery, Refused, Sink, Snapshot, State};
use crate::serial::extend;

impl<T: Copy> Recovery<T> {
    /// Takes a snapshot, from a snapshot line or by replay.
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
        self.take_snapshot(now, snapshot, false, sink)
    }

    /// Takes a snapshot as [`Self::snapshot`] does, which the caller knows to be made after the
    /// last reset. One with LastMsgSeqNumProcessed(369) of a message since then is taken at once.
    ///
    /// # Errors
    ///
    /// There are more instruments than configured; nothing is done.
    pub fn snapshot_since_reset(
        &mut self,
        now: u64,
        snapshot: Snapshot<'_, T>,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        self.take_snapshot(now, snapshot, true, sink)
    }

    /// Places a snapshot among the changes and [restores](Self::restore) the book from it. One
    /// without a place, or of the time before a reset, is counted as unusable.
    fn take_snapshot(
        &mut self,
        now: u64,
        snapshot: Snapshot<'_, T>,
        is_since_reset: bool,
        sink: &mut impl Sink<T>,
    ) -> Result<(), Refused> {
        let id = snapshot.instrument;
        let last = snapshot.last_processed.map(|last| extend(self.next, last));
        let known = self.instrument(id)?;
        known.lost_at = known.lost_at.min(now);
        let (lost_end, lost_at) = (known.lost_end, known.lost_at);
        let key = match self.config.numbering {
            Numbering::Instrument => snapshot.rpt_seq.map(u64::from),
            Numbering::Channel => last,
        };
        let Some(key) = key else {
            // The place of the snapshot among the changes is unknown.
            self.stats.snapshots_unusable += 1;
            return Ok(());
        };
        let gap_at = *self.gap_at.get_or_insert(now);
        let age = self.config.snapshot_age;
        let is_aged = |since: u64| now.saturating_sub(since) >= age;
        // A snapshot made after a gap contains the messages lost in it; one made after a message of
        // which a change was lost contains that one.
        let of_gap = if is_aged(gap_at) { self.next } else { None };
        let of_gap = of_gap.unwrap_or(1);
        let known_end = match last {
            Some(last) => last + 1,
            None if lost_end == 0 => of_gap,
            None if is_aged(lost_at) => of_gap.max(lost_end),
            None => of_gap.min(lost_end - 1),
        };
        // Numbers from before a reset may look like those after it.
        let is_of_before = self.reset_at.is_some_and(|(at, next)| {
            let is_since = is_since_reset && last.is_some_and(|last| last + 1 >= next);
            !is_since && now.saturating_sub(at) < age
        });
        if is_of_before || last.is_some_and(|last| self.is_far_ahead(last)) {
            self.stats.snapshots_unusable += 1;
            return Ok(());
        }
        self.restore(key, known_end, snapshot, sink);
        self.settle(id, sink);
        Ok(())
    }

    /// Takes a snapshot that the caller assembled from changes of the channel (natural refresh), as
    /// of the message with this number. Only where instruments have numbers of their own.
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
            rpt_seq: Some(rpt_seq),
            last_processed: Some(sequence as u32),
            items,
        };
        self.restore(u64::from(rpt_seq), sequence + 1, snapshot, sink);
        self.settle(instrument, sink);
        Ok(())
    }

    /// Replaces the book by a snapshot with this key, which contains the messages of the channel
    /// below `known_end`. One that is not newer than the book, or that lacks lost changes, is
    /// counted as old. The first one that is ahead of a live book is only noted.
    fn restore(
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
        let is_complete = matches!(known.state, Some(State::Live | State::Stale));
        // A complete book is as of the last message, though the last change of it may be older.
        let newest = match self.next {
            Some(next) if !is_numbered && is_complete => known.applied.max(next.saturating_sub(1)),
            _ => known.applied,
        };
        let is_old = known.has_book && key <= newest;
        let needed_end = match is_numbered {
            true => known.lost_end,
            false => unseen.max(known.lost_end),
        };
        if is_old || known_end < needed_end || key < known.floor {
            if known.is_new() {
                // The snapshot is empty, too.
                sink.clear(id);
            }
            if known.has_book && key == known.applied {
                // Its content is the same, and may be known to be as new as later messages.
                known.known_end = known.known_end.max(known_end);
            }
            self.stats.snapshots_old += 1;
            return;
        }
        let is_live = known.state == Some(State::Live);
        if is_live && (known.ahead == 0 || newest >= known.ahead) {
            // The changes are under way, or lost with none after them: the next snapshot decides.
            known.ahead = key;
            self.stats.snapshots_ahead += 1;
            return;
        }
        known.replace_book(key, known_end, snapshot.last_processed.is_some());
        self.stats.snapshots_taken += 1;
        sink.snapshot(id, snapshot.items);
        self.drain_below(id, sink);
        if is_numbered {
            self.drain(id, sink);
        }
    }

    /// Reports waiting changes that are part of the snapshot as superseded.
    fn drain_below(&mut self, id: u32, sink: &mut impl Sink<T>) {
        let known = &mut self.instruments[id as usize];
        while let Some(waited) = self.held.pop(&mut known.list, known.snapshot_key) {
            known.held -= 1;
            self.stats.superseded += 1;
            sink.superseded(id, &waited.item);
        }
    }
}
