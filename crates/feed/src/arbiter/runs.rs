//! Runs of sequence numbers that are known to be over: the feed announced it (SequenceReset), or it
//! restarted after a silence.

use super::jump::near;
use super::{Arbiter, MAX_PENDING};
use crate::line::{Line, REORDER, Track};
use crate::serial::{extend, is_before};

/// Most runs remembered: a line that is further behind brings only duplicates.
pub(super) const MAX_ENDED: usize = 8;
/// How far below its line's highest a number must be to begin a run whose announcement was lost:
/// reordering seldom goes so far.
const LOST_END: u64 = 4;
/// How many numbers below the known ones a run whose announcement was lost may have.
const SLACK: u64 = 64;

/// A run that is over, and the start of the one after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) next: u64,
    at: u64,
    /// Whether the end is not known, only that it was over when the next one arrived.
    pub(super) is_inferred: bool,
    /// Whether the feed announced the end.
    is_announced: bool,
}

impl Ended {
    /// Returns whether the feed announced the end, or as a rule announces it.
    fn is_told(&self) -> bool {
        self.is_announced || self.is_inferred
    }

    /// Returns whether a line whose highest number is `own` is within this run.
    fn holds(&self, own: u64) -> bool {
        self.begin <= own + 1 && own + 1 < self.end
    }

    /// Returns the place of `sequence` on a line that is within this run, which may not know that
    /// the run is over. A number that is nearer to the start of the next run than to the line's
    /// highest number belongs to that one, and so does one that `differs` from the unit received
    /// with it.
    fn place(
        &self,
        own: u64,
        sequence: u32,
        ahead: u32,
        differs: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let run = self.begin..self.end;
        let here = near(own, sequence, REORDER, ahead)
            .filter(|start| run.contains(start) && !differs(*start));
        let there = self.beyond(sequence, ahead);
        match (here, there) {
            (Some(here), Some(there)) if there - self.next < own.saturating_sub(here) => {
                Some(there)
            }
            (here, there) => here.or(there),
        }
    }

    /// Returns the number in the next run, if that begins near it.
    fn beyond(&self, sequence: u32, ahead: u32) -> Option<u64> {
        let beyond = sequence.wrapping_sub(self.next as u32);
        (beyond <= ahead).then(|| self.next + u64::from(beyond))
    }
}

impl Arbiter {
    /// Announces a new run: by the unit that was received last, `next` follows it (NewSeqNo(36) of
    /// a SequenceReset). To be called at once after [`receive`](Self::receive), for each line.
    /// Returns whether the run is new. Waiting units are delivered first; each line enters the new
    /// run when it has brought that unit, or when its numbers show it.
    pub fn announce(&mut self, next: u32) -> bool {
        let Some(end) = self.placed.take() else {
            return false;
        };
        let is_known = self.ended.iter().any(|ended| ended.end == end) || self.confirm(end);
        let goes_on = end as u32 == next;
        if goes_on || is_known || end <= self.epoch_start || self.pending.len() >= MAX_PENDING {
            return false;
        }
        if self.newest().is_some() {
            self.run_length = end - self.epoch_start;
        }
        self.end_run(end, next, false);
        if let Some(ended) = self.ended.back_mut() {
            ended.is_announced = true;
        }
        self.begin_at_once();
        true
    }

    /// Returns whether the feed has announced the run that begins with the next number: to be
    /// called at once after [`Event::Reset`](super::Event::Reset).
    pub fn is_announced(&self) -> bool {
        let mut ended = self.ended.iter();
        ended.any(|ended| ended.next == self.next && ended.is_announced)
    }

    /// Returns whether `end` is that of the run that was assumed to be over.
    fn confirm(&mut self, end: u64) -> bool {
        let inferred = self.ended.back_mut().filter(|ended| ended.is_inferred);
        let Some(ended) = inferred.filter(|e| e.begin < end && end < e.end) else {
            return false;
        };
        self.run_length = end - ended.begin;
        (ended.end, ended.is_inferred) = (end, false);
        ended.is_announced = true;
        let ended = *ended;
        self.pass_end(ended);
        self.begin_at_once();
        true
    }

    /// Moves lines that have brought all of a run that is over to the next one.
    fn pass_end(&mut self, ended: Ended) {
        let run = ended.begin..ended.next;
        for (track, heard) in self.tracks.iter_mut().zip(&mut self.heard) {
            if track
                .highest()
                .is_some_and(|h| run.contains(&h) && h + 1 >= ended.end)
            {
                track.begin_at(ended.next);
                heard.note_end(ended.end, self.stamp);
            }
        }
    }

    /// Notes that the first number of the newest run is known: no lower one is waited for.
    fn begin_at_once(&mut self) {
        if self.started {
            self.begin_deadline = self.now;
        }
    }

    /// Ends the newest run at `end`; the next one begins with `next`.
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
            is_announced: false,
        };
        self.ended.push_back(ended);
        self.pass_end(ended);
        begin
    }

    /// Returns the run that was announced as the newest, and the one before it.
    pub(super) fn newest(&self) -> Option<&Ended> {
        self.ended
            .back()
            .filter(|ended| ended.next == self.epoch_start)
    }

    /// Infers a new run, in a feed that announces its runs, when a line's numbers can no longer be
    /// of the run: the announcement was lost.
    #[inline(never)]
    pub(super) fn infer_end(&mut self, line: Line, sequence: u32) {
        let (Some(newest), Some(own)) = (self.newest(), self.tracks[line.index()].highest()) else {
            return;
        };
        let next = newest.next as u32;
        let start = extend(own, sequence);
        let is_again = self.known_as(line, sequence).is_some() || self.is_repeat(line, start);
        if is_again || !self.has_ended(line, own, sequence) {
            return;
        }
        let known = self.arrival(start);
        let is_of_other = known.is_some_and(|known| known.line != line.index());
        if is_of_other && self.differs(start) {
            // The lines may no longer bring the same bytes, either.
            self.evidence.lines.doubt();
        }
        let heads = self.tracks.iter().filter_map(Track::highest);
        let head = heads.fold(self.head(), u64::max);
        self.end_run(head + SLACK, self.first_of_run(next, sequence), true);
        self.join_suspect(sequence);
        // Another line may still bring the rest of it.
        let until = self.now.saturating_add(self.config.gap_timeout);
        self.begin_deadline = self.begin_deadline.max(until);
    }

    /// Returns whether the newest run is over for a line with this highest number that brings
    /// `sequence`. It is if the bytes are not those received with this number, or if the line goes
    /// back: to a number that it has brought before, or one that is nearer by the usual end of this
    /// feed's runs.
    fn has_ended(&self, line: Line, own: u64, sequence: u32) -> bool {
        let start = extend(own, sequence);
        if own + 1 < self.epoch_start || start < self.epoch_start {
            return false;
        }
        if start > own {
            let is_before = self.place_before_newest(line, sequence).is_some();
            return self.differs(start) && !is_before;
        }
        let (back, beyond) = (own - start, start - self.epoch_start);
        let repeats = || self.tracks[line.index()].has(start) || self.differs(start);
        let begins_again = || beyond < back / 2 && repeats();
        back > LOST_END && (self.is_nearer_by_length(own, start) || begins_again())
    }

    /// Returns whether `start` is nearer to the highest number of its line by way of the usual end
    /// of this feed's runs, and the beginning of the next one, than back to it.
    fn is_nearer_by_length(&self, own: u64, start: u64) -> bool {
        let end = self.epoch_start + self.run_length;
        // The run has come as far as any line.
        let heads = self.tracks.iter().filter_map(Track::highest);
        let head = heads.filter(|head| *head < end).fold(own, u64::max);
        let ahead = end.saturating_sub(head + 1) + (start - self.epoch_start);
        ahead < own - start && own < end + self.run_length
    }

    /// Returns the place in the run before, for a line in the newest run or at its first unit, if
    /// the number is nearer to that run. Reordered units are late for their run, but not by
    /// `stale_timeout`.
    fn place_before_newest(&self, line: Line, sequence: u32) -> Option<u64> {
        let newest = self.newest()?;
        let track = &self.tracks[line.index()];
        let own = track.highest();
        let is_long_over = self.now.saturating_sub(newest.at) >= self.config.stale_timeout;
        // A line that has brought the end of that run is in the newest one, whose first numbers it
        // may have lost. A line that was only placed there may still bring the rest of that run.
        let has_end = track.has(newest.next - 1);
        if is_long_over && own.is_some_and(|own| own >= newest.next || has_end) {
            return None;
        }
        let heads = self.tracks.iter().filter_map(Track::highest);
        let head = own.unwrap_or_else(|| heads.fold(newest.next - 1, u64::max));
        let slack = if newest.is_inferred { SLACK } else { 0 };
        let last = newest.end - slack - 1;
        let before = near(last, sequence, REORDER, slack as u32)?;
        let ago = (head + 1).checked_sub(newest.next)? + last.abs_diff(before);
        let distance = (sequence.wrapping_sub(head as u32) as i32).unsigned_abs();
        let is_nearer = before >= newest.begin && ago + 1 < u64::from(distance);
        (is_nearer && !self.differs(before)).then_some(before)
    }

    /// Returns the ended run in which the line is, by its highest number.
    fn ended_run(&self, own: u64) -> Option<&Ended> {
        self.ended.iter().find(|ended| ended.holds(own))
    }

    /// Returns the place of `sequence` on this line by the ended runs.
    pub(super) fn place_by_runs(&self, line: Line, sequence: u32) -> Option<u64> {
        let own = self.tracks[line.index()].highest();
        if let Some(again) = own.and_then(|own| self.end_again(line, own, sequence)) {
            return Some(again);
        }
        if let Some(known) = self.known_as(line, sequence) {
            let in_turn = own.and_then(|own| self.place_in_turn(own, sequence, known));
            return in_turn.or(Some(known));
        }
        let ended = own.and_then(|own| self.place_from(own, sequence));
        ended.or_else(|| self.place_before_newest(line, sequence))
    }

    /// Returns the place of the current unit if it is the one that ended the run of a line with
    /// this highest number, again at once. A run that is one unit may be followed by another one
    /// with the same bytes, but not at once, nor on a line that was late and brings the first one.
    fn end_again(&self, line: Line, own: u64, sequence: u32) -> Option<u64> {
        let left = self.ended.iter().find(|left| left.next == own + 1)?;
        let start = extend(left.end, sequence);
        let is_end = start + u64::from(self.evidence.count) == left.end;
        let is_later = |at: u64| self.stamp.saturating_sub(at) >= self.config.stale_timeout;
        let brought = self.heard[line.index()].ended_at(left.end);
        let is_next = start == left.begin && brought.is_some_and(is_later);
        (is_end && !is_next && self.is_of_bytes(start)).then_some(start)
    }

    /// Returns the place of a unit that arrived as `known` in a run before that of its line, if it
    /// is next in turn on the line, or reordered by little, and no unit has arrived there: the runs
    /// have the same bytes for the number.
    fn place_in_turn(&self, own: u64, sequence: u32, known: u64) -> Option<u64> {
        let run = self.ended_run(own);
        let (begin, end) = run.map_or((self.epoch_start, u64::MAX), |run| (run.begin, run.end));
        let start = extend(own, sequence);
        let is_near = start.abs_diff(own) <= LOST_END && (begin..end).contains(&start);
        // In a later run, it may be the next one, whose bytes another line has brought there.
        let is_own = (begin..end).contains(&known) || (known > begin && start != own + 1);
        if !is_near || is_own || own + 1 < begin || self.arrival(start).is_some() {
            return None;
        }
        // It may also be one of the run before, reordered by more.
        let left = self.ended.iter().find(|left| left.next == begin);
        let left = left.filter(|left| (left.begin..left.end).contains(&known));
        let back = left.map_or(u64::MAX, |left| own + 1 - begin + (left.end - known));
        (start.saturating_sub(own) < back).then_some(start)
    }

    /// Returns the place on a line whose highest number is in an ended run: in that one, or in the
    /// first later run in which no other unit arrived with this number.
    fn place_from(&self, own: u64, sequence: u32) -> Option<u64> {
        let ahead = self.config.max_jump;
        let mut runs = self.ended.iter().skip_while(|ended| !ended.holds(own));
        let differs = |start| self.differs(start);
        let run = runs.next()?;
        let mut start = run.place(own, sequence, ahead, differs)?;
        // The unit would be reordered far, while another line is in the run after.
        if start + LOST_END < own
            && let Some(beyond) = run.beyond(sequence, ahead)
            && let mut heads = self.tracks.iter().filter_map(Track::highest)
            && heads.any(|head| head >= run.next && head.abs_diff(beyond) <= LOST_END)
        {
            start = beyond;
        }
        while self.differs(start)
            && let Some(beyond) = runs.next().and_then(|run| run.beyond(sequence, ahead))
        {
            start = beyond;
        }
        Some(start)
    }

    /// Moves a line to the newest run if it is in one that was over long ago: it has missed the
    /// end, or was silent then and has returned, and does not bring the rest of its run. A line
    /// that returns beyond the end of its run while no other one is alive may show that the new run
    /// was false.
    pub(super) fn catch_up(&mut self, line: Line, sequence: u32) {
        let own = self.tracks[line.index()].highest();
        let Some(own) = own.filter(|own| own + 1 < self.epoch_start) else {
            return;
        };
        let ended = self.ended_run(own);
        let over = ended.map_or(self.epoch_at, |ended| ended.at);
        let is_long_over = self.now.saturating_sub(over) >= self.config.stale_timeout;
        // Announced cycles are short: a line that returns is near where it was in many of them.
        let is_cycle = ended.or(self.newest()).is_some_and(Ended::is_told);
        let is_backlog = || !is_cycle && self.is_backlog(line, own, sequence, over);
        if is_long_over && self.may_leave(line, own, sequence) && !is_backlog() {
            if !self.passes_on(own, sequence) {
                self.set_met(line, false);
            }
            self.tracks[line.index()].catch_up(self.epoch_start);
        }
    }

    /// Returns whether a line whose highest number is `own`, in a run that is over, may have left
    /// that run without having brought its end.
    fn may_leave(&self, line: Line, own: u64, sequence: u32) -> bool {
        let ended = self.ended_run(own);
        let over = ended.map_or(self.epoch_at, |ended| ended.at);
        let has_returned = self.has_returned(line) || self.has_gone_on_since(line, over);
        match ended {
            // If bytes distinguish runs, a line may be any distance behind.
            Some(_) => has_returned || !self.do_bytes_tell(),
            None => {
                let is_over = extend(own, sequence) < self.old_end;
                has_returned && (is_over || self.is_accompanied(line))
            }
        }
    }

    /// Moves the line to another run if it begins one with a unit at `start`, before the unit is
    /// marked.
    pub(super) fn enter_run(&mut self, line: Line, start: u64) {
        let Some(own) = self.tracks[line.index()].highest() else {
            return;
        };
        if own >= self.epoch_start {
            return;
        }
        if own + 1 < self.epoch_start && start >= self.epoch_start {
            self.set_met(line, false);
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

    /// Moves the line to the next run if it has completed its own, after a unit was marked.
    pub(super) fn leave_run(&mut self, line: Line, (start, end): (u64, u64)) {
        let mut ended = self.ended.iter();
        let track = &mut self.tracks[line.index()];
        if let Some(ended) = ended.find(|e| e.begin <= start && start < e.end && end >= e.end)
            && track.highest().is_none_or(|own| own < ended.next)
        {
            track.begin_at(ended.next);
            self.heard[line.index()].note_end(ended.end, self.stamp);
        }
    }

    /// Returns whether a useless unit means that the sequence restarts: it is below its own line's
    /// highest number, after a silence, or its line may bring another run.
    pub(super) fn restarts(&self, line: Line, (start, end): (u64, u64)) -> bool {
        let own = self.tracks[line.index()].highest();
        let goes_back = self.paused && end <= self.next && own.is_some_and(|own| end <= own);
        // Heartbeats have the last number.
        let may_restart = goes_back || end < self.next && self.may_be_of_another_run(line, start);
        // Below the first run, there is none to which it could belong.
        let is_first_run = self.old_end == 0 && self.pending.is_empty();
        if !self.started || !may_restart || start < self.epoch_start && !is_first_run {
            return false;
        }
        // A line that goes on, or a new one that replays, may fill a gap, but hardly one at the
        // start of a run after a silence.
        let is_far = own.is_some_and(|own| own.abs_diff(start) > REORDER);
        let may_begin = goes_back && own.is_some_and(|own| self.lacks_start(own, start));
        is_far || may_begin || !self.missing.has(start..end)
    }

    /// Returns whether the newest run lacks its first number, and a line with this highest number
    /// goes back to a number that is nearer to that one.
    fn lacks_start(&self, own: u64, start: u64) -> bool {
        let back = own.saturating_sub(start);
        let beyond = start.checked_sub(self.epoch_start);
        back > LOST_END
            && beyond.is_some_and(|beyond| beyond < back / 2)
            && self.missing.contains(self.epoch_start)
    }

    /// Removes what is known of the numbers of lines that have not met the others and continue with
    /// these: they were of the run that begins.
    pub(super) fn leave_unmet(&mut self, units: [(Line, u32); 2]) {
        for (line, sequence) in units {
            let own = self.tracks[line.index()].highest();
            if own.is_some_and(|own| is_before(own as u32, sequence)) && !self.has_met(line) {
                self.tracks[line.index()].restart();
            }
        }
    }
}

impl Track {
    /// Notes that the line is about to begin a run with this number.
    fn begin_at(&mut self, begin: u64) {
        self.restart();
        let mut lost = 0;
        self.record(begin - 1, begin, &mut lost);
    }

    /// Notes that the line may be about to begin a run with this number, but has not brought the
    /// end of the one before.
    fn catch_up(&mut self, begin: u64) {
        self.begin_at(begin);
        self.set(begin - 1..begin, false);
    }
}
