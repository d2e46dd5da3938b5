//! Messages of the channel that did not arrive, and those that came by replay.

use super::{Numbering, Recovery, Sink};
use std::ops::Range;

impl<T: Copy> Recovery<T> {
    /// Notes that these messages of the channel arrived over no line, or only in part, after the
    /// changes that did. No instrument is live until it is known that it lost nothing. Where
    /// instruments have no numbers, the caller leaves out changes that arrive again.
    ///
    /// `now` is the caller's time in nanoseconds.
    pub fn gap(&mut self, now: u64, range: Range<u64>, sink: &mut impl Sink<T>) {
        if range.is_empty() {
            return;
        }
        self.doubt(&range, sink);
        self.gap_at = Some(now);
        if self.next.is_none() {
            self.unknown_below = range.start;
        }
        self.next = self.next.max(Some(range.end));
        // One that arrived in part may be missing already.
        if !self.unseen.contains(range.start) {
            self.unseen.push(range);
        }
        self.note_forgotten();
        self.settle_all(sink);
    }

    /// Handles the instruments with changes in these messages, which arrived only in part: others
    /// of their changes may be missing.
    fn doubt(&mut self, range: &Range<u64>, sink: &mut impl Sink<T>) {
        for id in 0..self.instruments.len() as u32 {
            let known = &mut self.instruments[id as usize];
            if known.seen == 0 || known.is_closed || !range.contains(&known.seen_sequence) {
                continue;
            }
            match self.config.numbering {
                Numbering::Instrument => known.doubt(range.start),
                // The book would apply the changes that arrived again, if a replay repeats them.
                Numbering::Channel => self.fault(id, range.end, sink),
            }
        }
    }

    /// Takes back a gap that reaches beyond the messages sent so far: the next message of the
    /// channel has this number.
    pub fn take_back(&mut self, from: u64, sink: &mut impl Sink<T>) {
        let Some(next) = self.next.filter(|next| from < *next) else {
            return;
        };
        let is_numbered = self.config.numbering == Numbering::Instrument;
        self.unseen.take(from..next);
        self.next = Some(from);
        self.unknown_below = self.unknown_below.min(from);
        for known in &mut self.instruments {
            // A snapshot without a number counts as one that contains all messages so far.
            if is_numbered && (from + 1..=next).contains(&known.known_end) {
                known.doubt(from);
            }
        }
        for turned in &mut self.turned {
            *turned = (*turned).min(from.saturating_sub(1));
        }
        self.settle_all(sink);
    }

    /// Notes that these messages of the channel arrived by replay; called after their changes.
    pub fn replayed(&mut self, range: Range<u64>, sink: &mut impl Sink<T>) {
        let before = self.unseen_end();
        self.unseen.take(range);
        self.note_forgotten();
        if self.unseen_end() != before {
            self.settle_all(sink);
        }
    }

    /// Marks dropped ranges, which precede those that are left, as unknown for good.
    fn note_forgotten(&mut self) {
        if self.unseen.forgotten() == self.forgotten {
            return;
        }
        self.forgotten = self.unseen.forgotten();
        let left = self.unseen.ranges().next();
        let end = left.map_or(self.next.unwrap_or_default(), |range| range.start);
        self.unknown_below = self.unknown_below.max(end);
    }
}
