//! Lines that are new, or return after a silence: they may be behind the others or bring another
//! run, and only the others show which.

use super::jump::near;
use super::{Arbiter, Arrival};
use crate::line::{Line, REORDER};
use crate::serial::extend;

/// How many times `restart_timeout`, or `stale_timeout` if that is longer, a line may be behind
/// another for its duplicates to show that it brings the same run.
const MEETING: u64 = 10;
/// How far above its highest number a line that was silent may go on, because a few numbers may be
/// lost. A restart seldom begins so near to where a line was.
const DELAYED: u64 = 64;

/// What is known of a line besides its numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Heard {
    /// The time at which it last brought a unit; `None` before.
    at: Option<u64>,
    /// The time at which it last returned after it was silent for `stale_timeout`, if it went on
    /// where it was.
    went_on: Option<u64>,
    /// Whether it brings the run in which its highest number is. It does if, since it entered the
    /// run or was silent for `stale_timeout` and did not go on where it was, it has brought a
    /// number that was new, or one that another line had brought not long before; or if a snapshot
    /// was taken.
    has_met: bool,
    /// The end of the last run whose last unit it brought, and when it brought that first, by its
    /// stamp.
    ended: Option<(u64, u64)>,
}

impl Heard {
    /// Notes that the line brings the last unit of a run, which ends at `end`.
    pub(super) fn note_end(&mut self, end: u64, stamp: u64) {
        if self.ended.is_none_or(|(known, _)| known != end) {
            self.ended = Some((end, stamp));
        }
    }

    /// Returns when the line first brought the last unit of the run that ends at `end`; `None` if
    /// the last end that it brought is another one.
    pub(super) fn ended_at(&self, end: u64) -> Option<u64> {
        let (known, at) = self.ended?;
        (known == end).then_some(at)
    }
}

/// The next number of the stream at a time. A line that is far behind and has not met the others
/// has met them if it brings the number not long afterwards.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    number: u64,
    at: u64,
}

impl Arbiter {
    /// Notes that `line` brings this number now, and whether a silence of all lines preceded it.
    pub(super) fn hear(&mut self, line: Line, sequence: u32) {
        let silent = self.now - std::mem::replace(&mut self.last_heard, self.now);
        let timeout = self.config.restart_timeout;
        self.paused |= timeout > 0 && self.next != 0 && silent >= timeout;
        let last = self.heard[line.index()].at.replace(self.now);
        let last = last.or(self.resumed);
        if last.is_some_and(|at| self.now - at >= self.config.stale_timeout) {
            self.note_return(line, sequence);
        }
    }

    /// Notes that `line`, which was silent for `stale_timeout`, returns with this number.
    #[cold]
    fn note_return(&mut self, line: Line, sequence: u32) {
        let goes_on = self.goes_on(line, sequence);
        self.heard[line.index()].went_on = goes_on.then_some(self.now);
        // The last line that brings the run stays the one by which others are judged.
        if !goes_on && self.silence_of_others(line).is_some() {
            self.set_met(line, false);
        }
    }

    /// Returns whether the line returned at this time or later, and went on where it was.
    pub(super) fn has_gone_on_since(&self, line: Line, time: u64) -> bool {
        let went_on = self.heard[line.index()].went_on;
        went_on.is_some_and(|at| at >= time)
    }

    /// Returns whether a line whose highest number is `own`, in a run that was over at `over`,
    /// brings the rest of that run: it went on where it was, not longer ago than a line may be
    /// late, and does not pass on to the newest run.
    pub(super) fn is_backlog(&self, line: Line, own: u64, sequence: u32, over: u64) -> bool {
        let went_on = self.heard[line.index()].went_on;
        let may_last = |at: u64| self.now - at.max(over) < self.most_late();
        went_on.is_some_and(may_last)
            && near(own, sequence, REORDER, self.config.max_jump).is_some()
            && !self.passes_on(own, sequence)
    }

    /// Returns whether the number is the line's highest one, or is at most [`DELAYED`] after it:
    /// the line was only delayed.
    fn goes_on(&self, line: Line, sequence: u32) -> bool {
        let own = self.tracks[line.index()].highest();
        // A line between two runs may begin another one.
        let own = own.filter(|own| *own + 1 != self.epoch_start);
        own.is_some_and(|own| u64::from(sequence.wrapping_sub(own as u32)) <= DELAYED)
    }

    /// Returns whether the line is new, or was silent for `stale_timeout`, and has not met another
    /// one since.
    pub(super) fn has_returned(&self, line: Line) -> bool {
        !self.heard[line.index()].has_met
    }

    /// Returns how long the other lines that bring the run have been silent, in ns; `None` if there
    /// is none.
    fn silence_of_others(&self, line: Line) -> Option<u64> {
        let others = (0..Line::MAX).filter(|index| *index != line.index());
        let others = others.map(|index| &self.heard[index]);
        let last = others.filter(|heard| heard.has_met).filter_map(|h| h.at);
        Some(self.now - last.max()?)
    }

    /// Returns whether another line that brings the run was heard within `stale_timeout`.
    pub(super) fn is_accompanied(&self, line: Line) -> bool {
        let silent = self.silence_of_others(line);
        silent.is_some_and(|silent| silent < self.config.stale_timeout)
    }

    /// Returns whether a unit of the line at `start` may be of another run than the newest one: no
    /// line that brings the newest run was heard for `restart_timeout`.
    pub(super) fn may_be_of_another_run(&self, line: Line, start: u64) -> bool {
        let timeout = self.config.restart_timeout;
        let is_silent = |silent| timeout > 0 && silent >= timeout;
        let meets = |known| self.meets(line, known);
        !self.has_met(line)
            && self.silence_of_others(line).is_some_and(is_silent)
            && !self.arrival(start).is_some_and(meets)
    }

    /// Returns whether the line brings the run of the others, and is in the newest one or about to
    /// begin it.
    pub(super) fn has_met(&self, line: Line) -> bool {
        let own = self.tracks[line.index()].highest();
        let is_in_newest = own.is_none_or(|own| own + 1 >= self.epoch_start);
        self.heard[line.index()].has_met && is_in_newest
    }

    /// Returns whether a line whose highest number is `own` passes with this number from the end of
    /// the run before to the beginning of the newest one. It may lose up to [`DELAYED`] numbers at
    /// either.
    pub(super) fn passes_on(&self, own: u64, sequence: u32) -> bool {
        let end = self.newest().map_or(self.old_end, |ended| ended.end);
        let beyond = u64::from(sequence.wrapping_sub(self.epoch_start as u32));
        let is_nearer = beyond < extend(own, sequence).abs_diff(own);
        own + 1 + DELAYED >= end && beyond <= DELAYED && is_nearer
    }

    /// Notes whether the line brings the run of the others.
    pub(super) fn set_met(&mut self, line: Line, has_met: bool) {
        self.heard[line.index()].has_met = has_met;
        if !has_met {
            self.goals[line.index()] = None;
        }
    }

    /// Notes that a line that has not met the others brings `start`, whose arrival is no longer
    /// remembered. The line has met them once it reaches its [`Goal`] in time.
    #[cold]
    pub(super) fn follow(&mut self, line: Line, start: u64) {
        let goal = self.goals[line.index()].filter(|goal| goal.number >= self.epoch_start);
        match goal {
            Some(goal) if start < goal.number => {}
            Some(goal) if self.now - goal.at < self.most_late() => self.set_met(line, true),
            _ => {
                self.goals[line.index()] = Some(Goal {
                    number: self.next,
                    at: self.now,
                });
            }
        }
    }

    /// Notes that all lines bring the run of a snapshot: one that is behind does not restart it.
    pub(super) fn meet_all(&mut self) {
        for heard in &mut self.heard {
            heard.has_met = true;
        }
    }

    /// Returns whether `line` brings the run of another one, if it brings a number now that arrived
    /// as `known`: not long after the other.
    pub(super) fn meets(&self, line: Line, known: &Arrival) -> bool {
        let late = self.stamp.saturating_sub(known.at);
        known.line != line.index() && late < self.most_late()
    }

    /// Returns how long after another line a line that brings the same run may bring a number.
    fn most_late(&self) -> u64 {
        let timeout = self.config.restart_timeout.max(self.config.stale_timeout);
        timeout.saturating_mul(MEETING)
    }
}
