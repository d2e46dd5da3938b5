//! The place of a sequence number: near those known, or, once two units agree, elsewhere.

use super::{Arbiter, MAX_PENDING, Unit, Verdict};
use crate::line::{Line, REORDER, Track};
use crate::serial::{extend, is_before};

/// A confirmed jump ahead of less than this is a gap, not a reset.
const MAX_GAP: u32 = 1 << 24;

#[derive(Debug, Clone, Copy)]
pub(super) struct Suspect {
    sequence: u32,
    count: u32,
    pub(super) line: Line,
}

/// The reason why a unit is doubtful.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doubt {
    /// The unit is far from all known numbers.
    Far,
    /// The number is from before the last reset, and no other numbers arrive.
    Stale,
    /// The unit is repeated after a silence.
    Restart,
}

impl Arbiter {
    /// Returns the extended number of `sequence` from `line`; `None` if it is far from all known
    /// numbers.
    pub(super) fn place(&self, line: Line, sequence: u32) -> Option<u64> {
        if !self.ended.is_empty()
            && let Some(start) = self.place_by_runs(line, sequence)
        {
            return Some(start);
        }
        self.place_near(line, sequence)
    }

    /// Returns the extended number of `sequence` from `line` that is near to those known, whatever
    /// run is over; `None` if it is far from all of them.
    fn place_near(&self, line: Line, sequence: u32) -> Option<u64> {
        let ahead = self.config.max_jump;
        let own = self.tracks[line.index()].highest();
        if let Some(start) = own.and_then(|own| near(own, sequence, REORDER, ahead)) {
            return Some(start);
        }
        // A line that is new in this run may be anywhere in it, and any other one above its own.
        let from = self.epoch_start.max(own.unwrap_or(0));
        let heads = self.tracks.iter().filter_map(Track::highest);
        let heads = heads.filter(|head| head + 1 >= self.epoch_start);
        let known = self.pending.back().copied().into_iter().chain(heads);
        known.chain([self.next]).find_map(|reference| {
            let back = reference.saturating_sub(from).max(REORDER);
            near(reference, sequence, back, ahead)
        })
    }

    /// Returns whether a number that is far from all known ones is of a line that is behind: the
    /// line has brought nothing of the newest run, in which another one brings new numbers.
    pub(super) fn is_behind(&self, line: Line, sequence: u32) -> bool {
        let is_below = is_before(sequence, self.head() as u32);
        let goes_on = self.now - self.progress < self.config.stale_timeout;
        let own = self.tracks[line.index()].highest();
        let is_new = own.is_none_or(|own| own < self.epoch_start);
        is_below && goes_on && is_new && self.is_accompanied(line)
    }

    /// Returns whether the number is from before the last reset, beyond those delivered then.
    pub(super) fn is_stale(&self, start: u64) -> bool {
        let dead = self.old_end..self.epoch_start;
        self.old_end != 0 && self.pending.is_empty() && dead.contains(&start)
    }

    /// Judges a doubtful unit, which is accepted if the last such unit agrees with it, and the line
    /// of that one has brought nothing else since.
    #[cold]
    pub(super) fn suspect(&mut self, line: Line, unit: Unit<'_>, doubt: Doubt) -> Verdict {
        if let Some(other) = self.suspect_near(unit.sequence) {
            if unit.sequence == other.sequence && line == other.line {
                self.lines[line.index()].duplicate += 1;
                return Verdict::Duplicate;
            }
            if self.pending.len() < MAX_PENDING {
                return self.believe(other, line, unit, doubt);
            }
        }
        if let Some(dropped) = self.suspect.replace(Suspect {
            sequence: unit.sequence,
            count: unit.count,
            line,
        }) {
            self.lines[dropped.line.index()].refused += 1;
        }
        self.suspect_bytes.clear();
        self.suspect_bytes.extend_from_slice(unit.bytes);
        Verdict::Suspect
    }

    /// Accepts that the sequence continues elsewhere, as two units agree.
    fn believe(&mut self, other: Suspect, line: Line, unit: Unit<'_>, doubt: Doubt) -> Verdict {
        self.suspect = None;
        self.paused = false;
        let first = if is_before(unit.sequence, other.sequence) {
            unit.sequence
        } else {
            other.sequence
        };
        let head = self.head();
        let ahead = first.wrapping_sub(head as u32);
        if doubt == Doubt::Restart {
            self.leave_unmet([(other.line, other.sequence), (line, unit.sequence)]);
        }
        let begin = match doubt {
            Doubt::Far if ahead < MAX_GAP => head + u64::from(ahead),
            Doubt::Far | Doubt::Stale => self.new_epoch(first),
            Doubt::Restart => self.end_run(head, first, false),
        };
        let span = |sequence: u32, count: u32| {
            let start = begin + u64::from(sequence.wrapping_sub(first));
            (start, start + u64::from(count))
        };
        self.evidence.digest = self.digest_of_unit(unit.bytes);
        self.take_in(other.line, span(other.sequence, other.count));
        self.arbitrate(line, span(unit.sequence, unit.count), unit.bytes)
    }

    /// Arbitrates the last suspect, which the unit in hand has confirmed.
    #[cold]
    fn take_in(&mut self, line: Line, span: (u64, u64)) {
        let bytes = std::mem::take(&mut self.suspect_bytes);
        let of_suspect = self.digest_of_unit(&bytes);
        let in_hand = std::mem::replace(&mut self.evidence.digest, of_suspect);
        self.arbitrate(line, span, &bytes);
        self.confirmed = self.ticket;
        self.evidence.digest = in_hand;
        self.suspect_bytes = bytes;
    }

    /// Returns the suspect that is within [`REORDER`] of `sequence`.
    fn suspect_near(&self, sequence: u32) -> Option<Suspect> {
        let distance = |suspect: &Suspect| sequence.wrapping_sub(suspect.sequence).cast_signed();
        let is_near = |suspect: &Suspect| u64::from(distance(suspect).unsigned_abs()) <= REORDER;
        self.suspect.filter(is_near)
    }

    /// Returns the first number of a run that is known by a unit with `sequence`, and by the
    /// suspect if that is near.
    pub(super) fn first_of_run(&self, begin: u32, sequence: u32) -> u32 {
        let suspect = self.suspect_near(sequence).map(|suspect| suspect.sequence);
        suspect
            .filter(|first| is_before(*first, begin))
            .unwrap_or(begin)
    }

    /// Takes the suspect into the run that begins now, of which a unit with `sequence` is, if it is
    /// near.
    pub(super) fn join_suspect(&mut self, sequence: u32) {
        if let Some(suspect) = self.suspect_near(sequence) {
            self.suspect = None;
            let start = extend(self.epoch_start, suspect.sequence);
            self.take_in(suspect.line, (start, start + u64::from(suspect.count)));
        }
    }

    /// Returns whether the unit that the line brought last is doubtful. One behind it in the same
    /// packet cannot confirm it, and is counted as refused.
    pub(crate) fn refuses_rest(&mut self, line: Line) -> bool {
        let is_doubtful = self.suspect.is_some_and(|suspect| suspect.line == line);
        if is_doubtful {
            self.lines[line.index()].received += 1;
            self.lines[line.index()].refused += 1;
        }
        is_doubtful
    }

    pub(super) fn drop_suspect(&mut self) {
        if let Some(suspect) = self.suspect.take() {
            self.lines[suspect.line.index()].refused += 1;
        }
    }

    /// Opens a run of sequence numbers above all known ones; it begins when the waiting units of
    /// the run before are delivered.
    pub(super) fn new_epoch(&mut self, sequence: u32) -> u64 {
        let upper = ((self.head() >> 32) + 2) << 32;
        self.epoch_start = upper | u64::from(sequence);
        (self.epoch_at, self.progress) = (self.now, self.now);
        self.begin_deadline = self.now.saturating_add(self.begin_wait());
        if self.pending.len() >= MAX_PENDING {
            self.pending.pop_back();
        }
        self.pending.push_back(self.epoch_start);
        self.epoch_start
    }
}

/// Returns [`extend`], if the result is from `back` below to `ahead` above `reference`.
pub(super) fn near(reference: u64, sequence: u32, back: u64, ahead: u32) -> Option<u64> {
    let found = extend(reference, sequence);
    let ok = if found < reference {
        reference - found <= back
    } else {
        found - reference <= u64::from(ahead)
    };
    ok.then_some(found)
}
