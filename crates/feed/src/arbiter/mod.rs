//! Arbitration: two lines that carry the same feed, each with losses, become one stream in order.
//!
//! [`Arbiter::receive`] returns at once the verdict on a unit; one that is in order is not copied.
//! After each `receive` and each `handle_timeout` the caller takes [`Arbiter::poll_event`] until it
//! returns `None`: units that are now in order, gaps, resets. [`Arbiter::poll_timeout`] returns
//! when to call [`Arbiter::handle_timeout`].
//!
//! Sequence numbers are 32 bits wide and wrap. Internally they are extended to 64 bits: the upper
//! half rises with each wrap and each reset, so that "before" is always "lower".
//!
//! # The rules
//!
//! [`Arbiter::receive`] asks these questions of a unit, in this order, each for the reason behind
//! it. Where nothing decides, old data must never pass for new.
//!
//! 1. `hear`: Was the line, or were all lines, silent? What returns may be of another run.
//! 2. `limit`: Is the unit within the limits? Memory is bounded.
//! 3. `catch_up`: Is its line in a run that was over long ago? The line has missed the end, and is
//!    in the newest run.
//! 4. `infer_end`: Do its numbers, its bytes or the usual length of runs show that the run is over?
//!    All lines may lose an announcement.
//! 5. `end_again`: Is it the end of its line's run, again at once? Networks double packets.
//! 6. `known_as`: Did its bytes come in a run? Where each run has other bytes, it is of that one.
//! 7. `place_in_turn`: But is its number next in turn? Some messages never change.
//! 8. `place_from`: Is its line in a run that is over? Each line passes the end at its own time.
//! 9. `place_before_newest`: Is it nearer to the run before the newest one? Reordered packets are
//!    late.
//! 10. `place_near`: Is it near the numbers of its line, or of another one? Lines reorder, lose,
//!     and are apart.
//! 11. `is_behind`: If it is far, is its line behind? A line that begins may be far behind.
//! 12. `suspect`: If it is far, does a second unit agree? One garbled number must not derail the
//!     feed.
//! 13. `restarts`: Does it go back, after a silence or on a line that is alone? A run may begin
//!     without an announcement; a second unit has to agree.
//! 14. `judge_stale`: Is it from before the last reset? That reset was false if nothing else comes.
//! 15. `arbitrate`: Is it new? The first copy is delivered, or waits for its turn.
//!
//! After that, `announce` ends the run if the unit is a SequenceReset.
//!
//! The evidence that these use:
//! - `tracks`: what each line brought of its last 1,024 numbers, so that a line is compared with
//!   itself first. One that runs seconds behind the others brings duplicates; one that falls behind
//!   *itself*, or jumps ahead by more than `max_jump`, is a suspect.
//! - `heard`: whether a line that is new, or returns after a silence, has met the others. Until
//!   then it may be anywhere in the run, and once the others have been silent for
//!   `restart_timeout`, it may have another one. Also when it brought the end of its last run.
//! - `arrivals`: the time, line and digest of the last 4,096 numbers.
//! - `evidence`: how often runs had other bytes for a number, and lines the same.
//! - `ended`: the last eight runs that are over. A run ends by the feed's announcement, by two
//!   units that agree after a silence, or by inference from the numbers of a line, the length of
//!   the run before and the bytes.
//!
//! `docs/adr/0007-numbers-that-begin-again.md` has the reasons at length, and what was tried.

mod bytes;
mod heard;
mod jump;
mod runs;
mod types;

pub use types::{ArbiterConfig, ArbiterStats, Delivery, Event, Gap, Refusal, Start, Unit, Verdict};

use self::bytes::Evidence;
use self::heard::{Goal, Heard};
use self::jump::{Doubt, Suspect};
use self::runs::{Ended, MAX_ENDED};
use crate::hold::{Held, HoldBack, Ticket};
use crate::line::{Line, LineStats, REORDER, Track};
use crate::missing::Missing;
use crate::serial::extend;
use std::collections::VecDeque;

/// The most sequence numbers in one unit.
pub(crate) const MAX_COUNT: u32 = 65_536;
/// Most resets that wait for units before them.
const MAX_PENDING: usize = 8;
/// Arrivals remembered to measure lateness.
const ARRIVALS: usize = 4096;
/// The upper half of the first extended number, with space below for units before the first.
const FIRST_EPOCH: u64 = 2 << 32;

/// Merges up to [`Line::MAX`] lines into one stream in order. See the module's text.
///
/// An arbiter allocates when it is made, and later only for a unit longer than `unit_bytes` and
/// than any before it in its slot.
#[derive(Debug)]
pub struct Arbiter {
    config: ArbiterConfig,
    hold: HoldBack,
    /// The unit whose bytes the last event borrows.
    lent: Option<Held>,
    /// The ticket of the unit received last, if it waits.
    ticket: Option<Ticket>,
    /// The ticket of the doubtful unit that the unit received last has confirmed.
    confirmed: Option<Ticket>,
    missing: Missing,
    tracks: [Track; Line::MAX],
    lines: [LineStats; Line::MAX],
    stats: ArbiterStats,
    arrivals: Vec<Arrival>,
    evidence: Evidence,
    /// The length of the last run whose start and end were both received; 0 before.
    run_length: u64,
    heard: [Heard; Line::MAX],
    goals: [Option<Goal>; Line::MAX],
    /// The time at which any line last brought a unit.
    last_heard: u64,
    /// The time of the last [`resume`](Self::resume).
    resumed: Option<u64>,
    suspect: Option<Suspect>,
    suspect_bytes: Vec<u8>,
    started: bool,
    /// The time until which the first units of a run wait for lower ones.
    begin_deadline: u64,
    /// The next sequence number to deliver, extended; 0 before any is known.
    next: u64,
    /// The start of the newest run of sequence numbers.
    epoch_start: u64,
    /// The time at which that run began.
    epoch_at: u64,
    /// The end of the run before it.
    old_end: u64,
    /// The starts of runs that are still to come.
    pending: VecDeque<u64>,
    /// Runs known to be over, oldest first.
    ended: VecDeque<Ended>,
    /// The end of the unit received last, if it has a place.
    placed: Option<u64>,
    /// Whether all lines were silent for `restart_timeout`, and no unit since shows that the run
    /// goes on.
    paused: bool,
    /// Gaps that end at or below this are declared at once.
    flush_below: u64,
    /// Gaps that end at or below this have been returned as [`Event::Recover`].
    asked_below: u64,
    hole: Option<Hole>,
    /// The time at which the newest run last brought a new unit.
    progress: u64,
    now: u64,
    /// The time at which the current unit was received, by its line's stamp.
    stamp: u64,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    start: u64,
    at: u64,
    line: usize,
    /// The digest of its bytes; 0 if it was not needed.
    digest: u64,
    /// The digest of other bytes that another line brought for the number; 0 if none did.
    other: u64,
}

impl Arrival {
    /// An empty arrival: no unit has this number. It is not zero, so that its memory is written
    /// when the arbiter is made: the first write to a page takes longer than a unit does.
    const NONE: Self = Self {
        start: u64::MAX,
        at: 0,
        line: 0,
        digest: 0,
        other: 0,
    };
}

/// Returns the place of an arrival: consecutive numbers are adjacent, and runs of the same numbers
/// are apart: four runs of up to 835 numbers each, and nine of up to 252.
const fn place_of(start: u64) -> usize {
    start.wrapping_add((start >> 33).wrapping_mul(1087)) as usize % ARRIVALS
}

#[derive(Debug, Clone, Copy)]
struct Hole {
    at: u64,
    since: u64,
}

impl Arbiter {
    /// Returns an arbiter that has seen nothing.
    pub fn new(config: ArbiterConfig) -> Self {
        let hold_back = config.hold_back.max(1);
        let first = match config.start {
            Start::At(sequence) => FIRST_EPOCH | u64::from(sequence),
            Start::First { .. } => 0,
        };
        Self {
            config: ArbiterConfig {
                hold_back,
                ..config
            },
            // One is over the limit, one confirms a suspect, and one is lent.
            hold: HoldBack::new(hold_back + 3, config.unit_bytes),
            lent: None,
            ticket: None,
            confirmed: None,
            missing: Missing::new(config.missing_ranges),
            tracks: Default::default(),
            lines: Default::default(),
            stats: ArbiterStats::default(),
            arrivals: vec![Arrival::NONE; ARRIVALS],
            evidence: Evidence::default(),
            run_length: 0,
            heard: Default::default(),
            goals: [None; Line::MAX],
            last_heard: 0,
            resumed: None,
            suspect: None,
            suspect_bytes: Vec::with_capacity(config.unit_bytes),
            started: first != 0,
            begin_deadline: 0,
            next: first,
            epoch_start: first,
            epoch_at: 0,
            old_end: 0,
            pending: VecDeque::with_capacity(MAX_PENDING),
            ended: VecDeque::with_capacity(MAX_ENDED),
            placed: None,
            paused: false,
            flush_below: 0,
            asked_below: 0,
            hole: None,
            progress: 0,
            now: 0,
            stamp: 0,
        }
    }

    /// Takes a unit from `line` at `now` (in nanoseconds, never decreasing) and returns the verdict
    /// on it.
    pub fn receive(&mut self, now: u64, line: Line, unit: Unit<'_>) -> Verdict {
        self.receive_stamped(now, now, line, unit)
    }

    /// Takes a unit as [`receive`](Self::receive) does, which the kernel or the card stamped with
    /// `received` (ns, any clock that both lines share). Lateness is measured by the stamps, while
    /// time-outs use `now`, when the unit was read.
    pub fn receive_stamped(
        &mut self,
        now: u64,
        received: u64,
        line: Line,
        unit: Unit<'_>,
    ) -> Verdict {
        self.now = self.now.max(now);
        self.stamp = received;
        (self.placed, self.ticket, self.confirmed) = (None, None, None);
        self.hear(line, unit.sequence);
        self.lines[line.index()].received += 1;
        if let Some(why) = self.limit(unit) {
            return self.refuse(line, why);
        }
        if self.next == 0 {
            self.begin(unit.sequence);
        }
        self.catch_up(line, unit.sequence);
        self.evidence.digest = self.digest_of_unit(unit.bytes);
        if !self.ended.is_empty() {
            self.evidence.count = unit.count;
            self.infer_end(line, unit.sequence);
        }
        let Some(start) = self.place(line, unit.sequence) else {
            return if self.is_behind(line, unit.sequence) {
                self.refuse(line, Refusal::Stale)
            } else {
                self.suspect(line, unit, Doubt::Far)
            };
        };
        let span = (start, start + u64::from(unit.count));
        if self.restarts(line, span) {
            return self.suspect(line, unit, Doubt::Restart);
        }
        if self.is_stale(start) {
            return self.judge_stale(line, span, unit);
        }
        let own = self.tracks[line.index()].highest();
        let verdict = self.arbitrate(line, span, unit.bytes);
        self.paused &= match verdict {
            Verdict::Deliver { .. } | Verdict::Held => false,
            // The unit is sent again. On a line that did not go back, it may be of another run.
            Verdict::Late { .. } => own.is_none_or(|own| own < span.1),
            _ => true,
        };
        if self.suspect.is_some_and(|suspect| suspect.line == line) {
            self.drop_suspect();
        }
        verdict
    }

    /// Returns the limit that the unit exceeds.
    #[inline(always)]
    fn limit(&self, unit: Unit<'_>) -> Option<Refusal> {
        if unit.count == 0 || unit.count > MAX_COUNT {
            Some(Refusal::Count)
        } else if unit.bytes.len() > self.config.max_unit_bytes {
            Some(Refusal::TooLong)
        } else if self.hold.len() > self.config.hold_back {
            Some(Refusal::Full)
        } else {
            None
        }
    }

    /// Sets the time to `now`: gaps that are too old are declared by the next
    /// [`poll_event`](Self::poll_event).
    pub fn handle_timeout(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), in nanoseconds; valid once
    /// [`poll_event`](Self::poll_event) has returned `None`.
    pub fn poll_timeout(&self) -> Option<u64> {
        let front = self.hold.front()?;
        if !self.started || self.pending.front().is_some_and(|b| *b <= front.start) {
            return Some(self.begin_deadline);
        }
        let declared = self.hole?.since.saturating_add(self.config.gap_timeout);
        if self.config.recovery_timeout > 0 && front.start <= self.asked_below {
            return Some(declared.saturating_add(self.config.recovery_timeout));
        }
        Some(declared)
    }

    /// Returns the next event; `None` if there is none until something is received or the time-out
    /// passes.
    pub fn poll_event(&mut self) -> Option<Event<'_>> {
        if let Some(held) = self.lent.take() {
            self.hold.release(&held);
        }
        if self.next == 0 || !self.started && !self.may_begin() {
            return None;
        }
        self.started = true;
        loop {
            let Some(front) = self.hold.front().copied() else {
                return self.drained();
            };
            if let Some(&begin) = self.pending.front()
                && begin <= front.start
            {
                return self.may_begin().then(|| self.turn_epoch(begin));
            }
            if front.start > self.next {
                return self.hole_before(front.start);
            }
            self.hold.pop();
            if front.end <= self.next {
                self.lines[front.line.index()].duplicate += 1;
                self.hold.release(&front);
                continue;
            }
            return Some(self.lend(front));
        }
    }

    /// Ends the stream: everything that waits is delivered by the next
    /// [`poll_event`](Self::poll_event) calls, with the numbers that are missing as gaps.
    pub fn flush(&mut self) {
        self.flush_below = u64::MAX;
        self.drop_suspect();
    }

    /// Sets the next sequence number to `next`, as the feed itself has announced (a SequenceReset
    /// message, a new trading day). Waiting units are delivered first. Units of the old numbering
    /// that still arrive are taken as new ones: call it when both lines have passed the reset.
    pub fn reset(&mut self, next: u32) {
        let begin = self.new_epoch(next);
        self.flush_below = begin;
        self.drop_suspect();
        for track in &mut self.tracks {
            track.restart();
        }
        if self.next == 0 {
            self.started = true;
            self.next = begin;
            self.pending.clear();
        }
    }

    /// Continues the stream at `next`, if it was not further already, after a snapshot of
    /// everything before: no lower number is missing any more.
    pub fn resume(&mut self, next: u32) {
        if self.next == 0 {
            self.begin(next);
        }
        let at = extend(self.next, next);
        self.missing.take(0..at);
        if !self.started {
            self.started = true;
            self.next = at;
        }
        self.next = self.next.max(at);
        self.resumed = Some(self.now);
        self.meet_all();
    }

    /// Returns whether a unit of this line that begins with this number is certainly next in order:
    /// no unit waits, and no run has ended lately.
    pub fn is_next(&self, line: Line, sequence: u32) -> bool {
        let is_quiet = self.started
            && self.next != 0
            && self.hold.len() == 0
            && self.pending.is_empty()
            && self.ended.is_empty();
        is_quiet && self.next as u32 == sequence && self.place(line, sequence) == Some(self.next)
    }

    /// Returns the next sequence number in order; `None` before the first unit.
    pub fn expected(&self) -> Option<u32> {
        (self.next != 0).then_some(self.next as u32)
    }

    /// Returns the numbers that were declared missing and have not arrived since.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Returns the counters of a line.
    pub fn line(&self, line: Line) -> &LineStats {
        &self.lines[line.index()]
    }

    /// Returns the sums over all lines.
    pub fn stats(&self) -> ArbiterStats {
        self.stats
    }

    /// Returns the ticket of the unit received last, if it is [`Verdict::Held`].
    pub const fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// Returns the ticket of the [`Verdict::Suspect`] unit that the unit received last has
    /// confirmed.
    pub const fn confirmed(&self) -> Option<Ticket> {
        self.confirmed
    }

    /// Returns the number of units that wait.
    pub fn held(&self) -> usize {
        self.hold.len()
    }

    fn begin(&mut self, sequence: u32) {
        self.next = FIRST_EPOCH | u64::from(sequence);
        (self.epoch_start, self.epoch_at) = (self.next, self.now);
        self.started = self.begin_wait() == 0;
        self.begin_deadline = self.now.saturating_add(self.begin_wait());
    }

    fn begin_wait(&self) -> u64 {
        match self.config.start {
            Start::First { wait } => wait,
            Start::At(_) => 0,
        }
    }

    /// Returns whether a run's first units have waited long enough for lower ones.
    fn may_begin(&self) -> bool {
        let full = self.hold.len() > self.config.hold_back;
        let superseded = self.pending.len() > 1;
        self.now >= self.begin_deadline || full || superseded || self.flush_below == u64::MAX
    }

    fn arbitrate(&mut self, line: Line, (start, end): (u64, u64), bytes: &[u8]) -> Verdict {
        self.ticket = None;
        self.enter_run(line, start);
        let track = &mut self.tracks[line.index()];
        track.record(start, end, &mut self.lines[line.index()].lost);
        self.placed = Some(end);
        if !self.ended.is_empty() {
            self.leave_run(line, (start, end));
        }
        if !self.started && self.pending.is_empty() {
            self.next = self.next.min(start);
            self.epoch_start = self.next;
        } else if let Some(begin) = self.pending.back_mut()
            && (*begin).saturating_sub(start) <= REORDER
        {
            *begin = start.min(*begin);
            self.epoch_start = *begin;
        } else if end <= self.next {
            return self.behind(line, start, end);
        } else if start <= self.next {
            let skip = (self.next - start) as u32;
            self.next = end;
            self.note_arrival(line, start);
            self.lines[line.index()].first += 1;
            return Verdict::Deliver { skip };
        }
        if self.hold.covers(start, end) {
            return self.duplicate(line, start);
        }
        let times = (self.now, self.stamp);
        self.ticket = self.hold.insert((start, end), times, line, bytes);
        if self.ticket.is_none() {
            return self.refuse(line, Refusal::Full);
        }
        self.note_arrival(line, start);
        self.stats.held_max = self.stats.held_max.max(self.hold.len());
        Verdict::Held
    }

    /// Counts a unit that brings the stream nothing new.
    fn behind(&mut self, line: Line, start: u64, end: u64) -> Verdict {
        let filled = self.missing.take(start..end);
        if filled == 0 {
            return self.duplicate(line, start);
        }
        self.lines[line.index()].late += 1;
        Verdict::Late {
            filled: filled as u32,
        }
    }

    fn duplicate(&mut self, line: Line, start: u64) -> Verdict {
        let stats = &mut self.lines[line.index()];
        stats.duplicate += 1;
        let known = &mut self.arrivals[place_of(start)];
        if known.start == start && known.line != line.index() {
            stats.lateness.record(self.stamp.saturating_sub(known.at));
            let digest = self.evidence.digest;
            if digest != 0 && known.digest == digest {
                self.evidence.lines.confirm();
            } else {
                known.other = digest;
            }
            let known = *known;
            if self.has_returned(line) && self.meets(line, &known) {
                self.set_met(line, true);
            }
        } else if known.start != start && self.has_returned(line) {
            self.follow(line, start);
        }
        Verdict::Duplicate
    }

    fn note_arrival(&mut self, line: Line, start: u64) {
        if start >= self.epoch_start {
            self.progress = self.now;
        }
        self.set_met(line, true);
        if self.evidence.digest != 0 {
            self.evidence.early = self.evidence.early.saturating_sub(1);
            self.compare_runs(line, start);
        }
        self.arrivals[place_of(start)] = Arrival {
            start,
            at: self.stamp,
            line: line.index(),
            digest: self.evidence.digest,
            other: 0,
        };
    }

    /// Returns the arrival of this number, while it is remembered.
    fn arrival(&self, start: u64) -> Option<&Arrival> {
        let arrival = &self.arrivals[place_of(start)];
        (arrival.start == start).then_some(arrival)
    }

    /// Judges a unit from before the last reset.
    #[cold]
    fn judge_stale(&mut self, line: Line, span: (u64, u64), unit: Unit<'_>) -> Verdict {
        if self.now - self.progress < self.config.stale_timeout {
            return self.refuse_stale(line, span);
        }
        // The newest run may have begun without its first numbers.
        let is_near = self.epoch_start - span.0 <= REORDER;
        let doubt = match self.paused && is_near {
            true => Doubt::Restart,
            false => Doubt::Stale,
        };
        self.suspect(line, unit, doubt)
    }

    /// Refuses a unit from before the last reset. A line that goes on there is still behind.
    fn refuse_stale(&mut self, line: Line, (start, end): (u64, u64)) -> Verdict {
        let track = &mut self.tracks[line.index()];
        if track.highest().is_some_and(|own| own < start) {
            track.record(start, end, &mut self.lines[line.index()].lost);
        }
        self.refuse(line, Refusal::Stale)
    }

    fn refuse(&mut self, line: Line, why: Refusal) -> Verdict {
        self.lines[line.index()].refused += 1;
        Verdict::Refused(why)
    }

    /// Returns the extended number above all known ones.
    fn head(&self) -> u64 {
        let held = self.hold.end().unwrap_or(0);
        let begun = self.pending.back().copied().unwrap_or(0);
        self.next.max(held).max(begun)
    }

    fn turn_epoch(&mut self, begin: u64) -> Event<'_> {
        self.pending.pop_front();
        self.stats.resets += 1;
        self.old_end = self.next;
        self.next = begin;
        Event::Reset {
            expected: self.old_end as u32,
            next: begin as u32,
        }
    }

    /// Ends the wait: no unit waits any more.
    fn drained(&mut self) -> Option<Event<'_>> {
        if let Some(&begin) = self.pending.front() {
            return Some(self.turn_epoch(begin));
        }
        self.flush_below = 0;
        self.hole = None;
        None
    }

    /// Declares the gap in front of `to`, the start of the first unit that waits, if it is time.
    fn hole_before(&mut self, to: u64) -> Option<Event<'_>> {
        let since = match self.hole {
            Some(hole) if hole.at == self.next => hole.since,
            _ => self.hold.oldest().unwrap_or(self.now),
        };
        self.hole = Some(Hole {
            at: self.next,
            since,
        });
        let gap = Gap {
            first: self.next as u32,
            count: (to - self.next) as u32,
        };
        let full = self.hold.len() > self.config.hold_back;
        if !full && to > self.flush_below {
            let open = self.now.saturating_sub(since);
            let recovery = self.config.recovery_timeout;
            if open < self.config.gap_timeout {
                return None;
            }
            if recovery > 0 && to > self.asked_below {
                self.asked_below = to;
                return Some(Event::Recover(gap));
            }
            if open < self.config.gap_timeout.saturating_add(recovery) {
                return None;
            }
        }
        self.missing.push(self.next..to);
        self.stats.gaps += 1;
        self.stats.missing += to - self.next;
        self.next = to;
        Some(Event::Gap(gap))
    }

    /// Delivers a unit that was popped.
    fn lend(&mut self, held: Held) -> Event<'_> {
        let skip = (self.next - held.start) as u32;
        self.next = held.end;
        self.lines[held.line.index()].first += 1;
        let held = self.lent.insert(held);
        Event::Unit(Delivery {
            line: held.line,
            sequence: held.start as u32,
            count: (held.end - held.start) as u32,
            skip,
            received: held.stamp,
            ticket: held.ticket,
            bytes: self.hold.bytes(held),
        })
    }
}
