//! Runs of sequence numbers that are known to be over: the feed said so itself (SequenceReset), or
//! it began again after a silence.

use super::jump::near;
use super::{Arbiter, MAX_PENDING};
use crate::line::{Line, REORDER, Track};

/// Runs remembered: a line that is further behind gives duplicates only.
pub(super) const MAX_ENDED: usize = 8;
/// How far behind what its line has brought a number must be to begin a run whose announcement
/// was lost: reordering seldom goes so far.
const LOST_END: u64 = 4;
/// How many numbers behind what is known a run may have, whose announcement was lost.
const SLACK: u64 = 64;

/// A run that is over, and where the one behind it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    begin: u64,
    end: u64,
    next: u64,
    at: u64,
    /// Nothing said where it ends: it was over when the next one was heard.
    is_inferred: bool,
}

impl Ended {
    /// Whether a line whose highest number is `own` is within this run.
    fn holds(&self, own: u64) -> bool {
        self.begin <= own + 1 && own + 1 < self.end
    }

    /// Where a line that is within this run stands with `sequence`: it may not have heard that
    /// the run is over. What is nearer to the begin of the next run than to the line's highest
    /// number belongs to that one.
    fn place(&self, own: u64, sequence: u32, ahead: u32) -> Option<u64> {
        let run = self.begin..self.end;
        let here = near(own, sequence, REORDER, ahead).filter(|start| run.contains(start));
        let beyond = sequence.wrapping_sub(self.next as u32);
        let there = (beyond <= ahead).then(|| self.next + u64::from(beyond));
        match (here, there) {
            (Some(here), Some(_)) if u64::from(beyond) < own.saturating_sub(here) => there,
            (Some(here), _) => Some(here),
            (None, there) => there,
        }
    }
}

impl Arbiter {
    /// The unit that was received last says that `next` comes behind it (NewSeqNo(36) of a
    /// SequenceReset): call it at once after [`receive`](Self::receive), for each line. Whether
    /// it is news. What waits comes out first; each line is in the new run when it has brought
    /// that unit, or when its numbers say so.
    pub fn announce(&mut self, next: u32) -> bool {
        let Some(end) = self.placed.take() else {
            return false;
        };
        let is_known = self.ended.iter().any(|ended| ended.end == end) || self.confirm(end);
        let goes_on = end as u32 == next;
        if goes_on || is_known || end <= self.epoch_start || self.pending.len() >= MAX_PENDING {
            return false;
        }
        self.end_run(end, next, false);
        self.begin_at_once();
        true
    }

    /// Whether what ends at `end` is the end of the run that was taken to be over.
    fn confirm(&mut self, end: u64) -> bool {
        let inferred = self.ended.back_mut().filter(|ended| ended.is_inferred);
        let Some(ended) = inferred.filter(|e| e.begin < end && end < e.end) else {
            return false;
        };
        (ended.end, ended.is_inferred) = (end, false);
        let ended = *ended;
        self.pass_end(ended);
        self.begin_at_once();
        true
    }

    /// Lines that have brought all of a run that is over begin the next.
    fn pass_end(&mut self, ended: Ended) {
        let run = ended.begin..ended.next;
        for track in &mut self.tracks {
            if track
                .highest()
                .is_some_and(|h| run.contains(&h) && h + 1 >= ended.end)
            {
                track.begin_at(ended.next);
            }
        }
    }

    /// The first number of the newest run is known: no lower one is to be waited for.
    fn begin_at_once(&mut self) {
        if self.started {
            self.begin_deadline = self.now;
        }
    }

    /// The newest run is over at `end`; the next begins with `next`.
    pub(super) fn end_run(&mut self, end: u64, next: u32, is_inferred: bool) -> u64 {
        let run = self.epoch_start;
        let begin = self.new_epoch(next);
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        let ended = Ended {
            begin: run,
            end,
            next: begin,
            at: self.now,
            is_inferred,
        };
        self.ended.push_back(ended);
        self.pass_end(ended);
        begin
    }

    /// The run that was announced as the newest, and the one before it.
    fn newest(&self) -> Option<&Ended> {
        self.ended
            .back()
            .filter(|ended| ended.next == self.epoch_start)
    }

    /// In a feed that announced its run, a line that repeats itself from where that run began
    /// has a new one: what announced it was lost.
    pub(super) fn infer_end(&mut self, line: Line, sequence: u32) {
        let track = &self.tracks[line.index()];
        let (Some(newest), Some(own)) = (self.newest(), track.highest()) else {
            return;
        };
        let (next, beyond) = (
            newest.next as u32,
            sequence.wrapping_sub(newest.next as u32),
        );
        let start = own.saturating_sub(u64::from((own as u32).wrapping_sub(sequence)));
        let repeats = start >= self.epoch_start && track.has(start);
        if repeats && own - start > LOST_END && u64::from(beyond) < (own - start) / 2 {
            let heads = self.tracks.iter().filter_map(Track::highest);
            let head = heads.fold(self.head(), u64::max);
            self.end_run(head + SLACK, next, true);
            // Another line may still bring the rest of it.
            let until = self.now.saturating_add(self.config.gap_timeout);
            self.begin_deadline = self.begin_deadline.max(until);
        }
    }

    /// Where a line stands that is in the newest run, or brings its first unit, if that is of the
    /// run before: where it is nearer to what is known. Reordered units are late for their run.
    fn place_before_newest(&self, own: Option<u64>, sequence: u32) -> Option<u64> {
        let newest = self.newest()?;
        let heads = self.tracks.iter().filter_map(Track::highest);
        let head = own.unwrap_or_else(|| heads.fold(newest.next - 1, u64::max));
        let slack = if newest.is_inferred { SLACK } else { 0 };
        let last = newest.end - slack - 1;
        let before = near(last, sequence, REORDER, slack as u32)?;
        let ago = (head + 1).checked_sub(newest.next)? + last.abs_diff(before);
        let distance = (sequence.wrapping_sub(head as u32) as i32).unsigned_abs();
        (before >= newest.begin && ago + 1 < u64::from(distance)).then_some(before)
    }

    /// The run that is over in which the line is, by its highest number.
    fn ended_run(&self, own: u64) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.holds(own))
    }

    /// Where a line with this highest number stands with `sequence`, if runs that are over say so.
    pub(super) fn place_by_runs(&self, own: Option<u64>, sequence: u32) -> Option<u64> {
        let ahead = self.config.max_jump;
        let ended = own.and_then(|own| self.ended_run(own)?.place(own, sequence, ahead));
        ended.or_else(|| self.place_before_newest(own, sequence))
    }

    /// A line that is still within a run that was over long ago has missed its end.
    pub(super) fn catch_up(&mut self, line: Line) {
        let own = self.tracks[line.index()].highest();
        let ended = own.and_then(|own| self.ended_run(own));
        if ended.is_some_and(|ended| self.now - ended.at >= self.config.stale_timeout) {
            self.tracks[line.index()].begin_at(self.epoch_start);
        }
    }

    /// Before a unit that starts at `start` is marked: does its line begin another run with it?
    pub(super) fn enter_run(&mut self, line: Line, start: u64) {
        let Some(own) = self.tracks[line.index()].highest() else {
            return;
        };
        if own >= self.epoch_start {
            return;
        }
        let begins = self.ended.iter().map(|ended| ended.next);
        let run = begins.filter(|begin| *begin <= start).max();
        let left = self.ended_run(own).filter(|ended| !ended.is_inferred);
        let lost = left.map_or(0, |ended| ended.end - own - 1);
        if run.is_some_and(|run| own + 1 < run) {
            self.lines[line.index()].lost += lost;
            self.tracks[line.index()].begin_at(run.unwrap_or(start));
        }
        let track = &mut self.tracks[line.index()];
        if track.highest().is_some_and(|h| h + 1 < self.epoch_start) && start >= self.epoch_start {
            track.restart();
        }
    }

    /// After a unit was marked: is its line through with its run?
    pub(super) fn leave_run(&mut self, line: Line, (start, end): (u64, u64)) {
        let mut ended = self.ended.iter();
        let track = &mut self.tracks[line.index()];
        if let Some(ended) = ended.find(|e| e.begin <= start && start < e.end && end >= e.end)
            && track.highest().is_none_or(|own| own < ended.next)
        {
            track.begin_at(ended.next);
        }
    }

    /// Whether a unit, the first after a silence, says that the sequence begins again: below what
    /// its own line has brought, and of no use.
    pub(super) fn restarts(&self, line: Line, (start, end): (u64, u64)) -> bool {
        let own = self.tracks[line.index()].highest();
        self.paused
            && own.is_some_and(|own| end <= own)
            && start >= self.epoch_start
            && end <= self.next
            && !self.missing.has(start..end)
    }

    /// Notes that something was heard at `now`.
    pub(super) fn hear(&mut self, now: u64) {
        let silent = now.saturating_sub(self.heard);
        let timeout = self.config.restart_timeout;
        self.paused |= timeout > 0 && self.next != 0 && silent >= timeout;
        self.heard = now;
    }
}

impl Track {
    /// The line is about to begin a run with this number.
    fn begin_at(&mut self, begin: u64) {
        self.restart();
        let mut lost = 0;
        self.record(begin - 1, begin, &mut lost);
    }
}
