//! Strays: units far ahead of all others, which one line alone brings while another one goes on
//! below. The number may be wrong, so that they show no hole until another unit agrees.

use super::{Arbiter, Refusal, Verdict};
use crate::hold::{Held, Stray};
use crate::line::{Line, REORDER};

/// How far ahead of all others a unit is a stray. One at most as far from a stray agrees with it,
/// if it is of another line, or if their line has brought nothing new in between.
pub(super) const FAR: u64 = 256;
/// How many units are delivered from below until the number of a stray is known to be wrong.
const REFUTING: u64 = 3;

impl Arbiter {
    /// Judges a unit that is more than [`FAR`] ahead of the stream; returns `None` for one that is
    /// no stray.
    #[cold]
    pub(super) fn doubt(&mut self, line: Line, span: (u64, u64), bytes: &[u8]) -> Option<Verdict> {
        if self.is_stray_again(line, span.0) {
            self.lines[line.index()].duplicate += 1;
            return Some(Verdict::Duplicate);
        }
        if !self.is_stray(line, span.0) || self.is_backed(line, span) {
            self.trust_near(span);
            return None;
        }
        let times = (self.now, self.stamp);
        self.ticket = self.hold.insert(span, times, line, bytes);
        let Some(ticket) = self.ticket else {
            return Some(self.refuse(line, Refusal::Full));
        };
        let wait = if span.0 - self.base() > REORDER {
            self.config.gap_timeout.max(self.config.stale_timeout)
        } else {
            self.config.gap_timeout
        };
        let stray = Stray {
            own: self.tracks[line.index()].highest(),
            refuted_at: self.delivered() + REFUTING,
            due: self.now.saturating_add(wait),
        };
        self.hold.doubt(ticket, stray);
        self.stats.held_max = self.stats.held_max.max(self.hold.len());
        Some(Verdict::Held)
    }

    /// Returns whether a unit is far ahead of its line and of all that is known of the newest run,
    /// while another line is alive.
    fn is_stray(&self, line: Line, start: u64) -> bool {
        let own = self.tracks[line.index()].highest();
        start > self.base() + FAR
            && own.is_none_or(|own| own + 1 >= self.epoch_start && own + FAR < start)
            && !self.hold.reaches(start, FAR)
            && self.is_accompanied(line)
    }

    /// Returns the next number of the stream, or the first one of a run that is about to begin.
    fn base(&self) -> u64 {
        self.next.max(self.epoch_start)
    }

    /// Returns whether a line sends its stray again.
    fn is_stray_again(&self, line: Line, start: u64) -> bool {
        let mut strays = self.hold.strays();
        strays.any(|(_, held, _)| held.line == line && held.start == start)
    }

    /// Returns whether a stray agrees with a unit.
    fn is_backed(&self, line: Line, span: (u64, u64)) -> bool {
        let own = self.tracks[line.index()].highest();
        let mut strays = self.hold.strays();
        strays
            .any(|(_, held, stray)| is_near(held, span) && (held.line != line || stray.own == own))
    }

    /// Trusts the strays near a unit that is none, and those near them.
    fn trust_near(&mut self, (mut start, mut end): (u64, u64)) {
        let near = |arbiter: &Self, span| {
            let mut strays = arbiter.hold.strays();
            strays.find_map(|(index, held, _)| is_near(held, span).then_some((index, *held)))
        };
        while let Some((index, held)) = near(self, (start, end)) {
            self.trust(index);
            (start, end) = (start.min(held.start), end.max(held.end));
        }
    }

    /// Makes a stray wait as any other unit.
    fn trust(&mut self, index: usize) {
        let Some(held) = self.hold.trust(index) else {
            return;
        };
        // Without the time-out of the hole before it, which may have begun later.
        self.hole = None;
        if held.start < self.epoch_start {
            return;
        }
        self.enter_run(held.line, held.start);
        let track = &mut self.tracks[held.line.index()];
        track.record(
            held.start,
            held.end,
            &mut self.lines[held.line.index()].lost,
        );
        let in_hand = (self.stamp, self.evidence.digest);
        (self.stamp, self.evidence.digest) = (held.stamp, 0);
        self.note_arrival(held.line, held.start);
        (self.stamp, self.evidence.digest) = in_hand;
    }

    /// Removes the strays that are known to be wrong, and trusts those that have waited for too
    /// long, or for which the stream would wait. Returns whether there were any.
    #[cold]
    pub(super) fn settle_strays(&mut self) -> bool {
        let mut has_settled = false;
        while let Some((index, is_wrong)) = self.settled() {
            has_settled = true;
            if !is_wrong {
                self.trust(index);
            } else if let Some(line) = self.hold.remove(index) {
                self.lines[line.index()].refused += 1;
            }
        }
        has_settled
    }

    /// Returns the index of a stray that is no longer one, and whether its number is wrong.
    fn settled(&self) -> Option<(usize, bool)> {
        let delivered = self.delivered();
        let is_full = self.hold.len() > self.config.hold_back;
        let is_end = self.flush_below == u64::MAX;
        self.hold.strays().find_map(|(index, held, stray)| {
            // Its run is over without it.
            let is_passed = held.start < self.epoch_start && !self.pending.is_empty();
            let is_wrong = is_passed || delivered >= stray.refuted_at;
            let is_next = held.start <= self.next || is_full && (is_wrong || index == 0);
            let is_due = self.now >= self.due(held, stray);
            (is_passed || is_next || is_end || is_due).then_some((index, is_wrong))
        })
    }

    /// Returns when a stray is removed or trusted, by what is delivered so far.
    fn due(&self, held: &Held, stray: Stray) -> u64 {
        if self.delivered() >= stray.refuted_at {
            held.since.saturating_add(self.config.gap_timeout)
        } else {
            stray.due
        }
    }

    /// Returns when the next stray is removed or trusted; `None` without one.
    pub(super) fn stray_timeout(&self) -> Option<u64> {
        let strays = self.hold.strays();
        strays.map(|(_, held, stray)| self.due(held, stray)).min()
    }

    /// Returns the number of units delivered.
    fn delivered(&self) -> u64 {
        self.lines.iter().map(|stats| stats.first).sum()
    }
}

/// Returns whether a unit is at most [`FAR`] from one that waits.
const fn is_near(held: &Held, (start, end): (u64, u64)) -> bool {
    start <= held.end + FAR && held.start <= end + FAR
}
