//! The choice of the plant that an edge uses.

use super::coverage::Coverage;
use fanfare_feed::Line;
use fanfare_feed::serial::is_before;
use std::cmp::Reverse;

/// The time for which a plant may be behind another one, or silent while another one is not, and
/// for which one that knows more instruments but not all of the leading one waits, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

/// The choice of the plant whose definitions and unnumbered messages are used, and whose
/// instruments another plant has to know for its messages to count.
///
/// A plant that brings the messages of the channel leads before one that does not. Of those, the
/// one that knows most instruments leads.
#[derive(Debug, Default)]
pub(super) struct Election {
    leader: Option<Line>,
    /// The plant that waits to lead, and since when.
    challenger: Option<(Line, u64)>,
    plants: [Progress; Line::MAX],
}

/// What a plant brings.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    is_silent: bool,
    /// The time since which it is silent while another one that brings messages is not.
    deaf: Option<u64>,
    /// The last number of the channel that it has shown.
    last: Option<u32>,
    /// The time from which on it brings nothing: 0 before its first message, and `u64::MAX` while
    /// no other plant has shown a later number.
    end: u64,
}

impl Election {
    /// Returns the plant that leads.
    #[inline]
    pub(super) const fn leader(&self) -> Option<Line> {
        self.leader
    }

    /// Records whether the lines of a plant are silent.
    pub(super) fn set_silent(&mut self, now: u64, line: Line, is_silent: bool) {
        self.plants[line.index()].is_silent = is_silent;
        let is_heard = self.plants.iter().any(|own| own.end > 0 && !own.is_silent);
        for own in &mut self.plants {
            let since = own.deaf.unwrap_or(now);
            own.deaf = (own.is_silent && is_heard).then_some(since);
        }
    }

    /// Returns whether the lines of a plant are silent.
    #[inline]
    pub(super) const fn is_silent(&self, line: Line) -> bool {
        self.plants[line.index()].is_silent
    }

    /// Returns whether nothing is to be awaited from a plant: its lines are silent, or it has been
    /// behind another one for a second.
    pub(super) fn is_idle(&self, now: u64, line: Line) -> bool {
        let own = &self.plants[line.index()];
        own.is_silent || (own.end > 0 && now >= own.end)
    }

    /// Returns whether one of these plants has brought anything since it came, and its lines are
    /// heard. With `at`, its last number also has to be this one, and no other plant whose lines
    /// are heard may have shown a later one.
    pub(super) fn hears(&self, lines: impl Iterator<Item = Line>, at: Option<u32>) -> bool {
        let mut is_any_there = false;
        for line in lines {
            let own = &self.plants[line.index()];
            if own.end == 0 || own.is_silent {
                continue;
            }
            if let (Some(at), Some(last)) = (at, own.last)
                && is_before(at, last)
            {
                return false;
            }
            is_any_there |= at.is_none() || own.last == at;
        }
        is_any_there
    }

    /// Returns the last number of the channel that a plant has shown.
    #[inline]
    pub(super) const fn shown(&self, line: Line) -> Option<u32> {
        self.plants[line.index()].last
    }

    /// Records a message of a plant without a number. Where messages have numbers, only these show
    /// that it brings them.
    pub(super) fn speak(&mut self, line: Line) {
        if self.plants.iter().all(|own| own.last.is_none()) {
            self.plants[line.index()].end = u64::MAX;
        }
    }

    /// Records a number of the channel that a plant has shown, by a message or by its position.
    #[inline]
    pub(super) fn bring(&mut self, now: u64, line: Line, number: u32) {
        let own = line.index();
        let before = self.plants[own].last;
        if before.is_some_and(|last| !is_before(last, number)) {
            return;
        }
        let soon = now.saturating_add(PATIENCE);
        let mut end = u64::MAX;
        for other in &mut self.plants {
            match other.last {
                Some(last) if last == number => {}
                Some(last) if is_before(number, last) => end = soon,
                _ => other.end = other.end.min(soon),
            }
        }
        let own = &mut self.plants[own];
        (own.last, own.end) = (Some(number), end);
    }

    /// Forgets the numbers, as those of the channel begin again.
    pub(super) fn restart(&mut self) {
        for plant in &mut self.plants {
            plant.last = None;
        }
    }

    /// Removes a plant.
    pub(super) fn leave(&mut self, line: Line) {
        self.plants[line.index()] = Progress::default();
        self.leader.take_if(|leader| *leader == line);
    }

    /// Chooses the leading plant of those that may lead. Of equals it is the one that leads.
    /// Returns whether a new plant leads that does not know all instruments of the one before, or
    /// that follows none.
    pub(super) fn elect(
        &mut self,
        now: u64,
        coverage: &Coverage,
        may_lead: [bool; Line::MAX],
    ) -> bool {
        let lines = (0..Line::MAX).filter_map(Line::new);
        let best = lines
            .filter(|line| may_lead[line.index()])
            .max_by_key(|line| {
                let leads = self.leader == Some(*line);
                let knows = coverage.count(*line);
                (self.is_bringing(now, *line), knows, leads, Reverse(*line))
            });
        if best == self.leader {
            self.challenger = None;
            return false;
        }
        let both = best.zip(self.leader);
        if both.is_some_and(|(new, old)| coverage.includes(new, old)) {
            (self.leader, self.challenger) = (best, None);
            return false;
        }
        let is_led = |old: Line| may_lead[old.index()] && self.is_bringing(now, old);
        if let Some((new, _)) = both.filter(|(_, old)| is_led(*old))
            && !self.has_waited(now, new)
        {
            return false;
        }
        (self.leader, self.challenger) = (best, None);
        true
    }

    fn is_bringing(&self, now: u64, line: Line) -> bool {
        let own = &self.plants[line.index()];
        let is_past = |since: u64| now.saturating_sub(since) >= PATIENCE;
        let is_deaf = own.deaf.is_some_and(is_past);
        !is_deaf && now < own.end
    }

    /// Returns whether a plant has waited to lead for long enough.
    fn has_waited(&mut self, now: u64, line: Line) -> bool {
        let known = self.challenger.filter(|(own, _)| *own == line);
        let (_, since) = *self.challenger.insert(known.unwrap_or((line, now)));
        now.saturating_sub(since) >= PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const BOTH: [bool; Line::MAX] = [true, true, false, false];

    fn coverage(sets: [&[u32]; 2]) -> Coverage {
        let mut coverage = Coverage::default();
        for (line, set) in [Line::A, Line::B].into_iter().zip(sets) {
            for instrument in set {
                coverage.add(line, *instrument, None);
            }
        }
        coverage
    }

    /// Returns an election of two plants that have brought a message, of which the first one leads.
    fn led() -> Election {
        let mut election = Election::default();
        election.bring(0, Line::A, 1);
        assert!(election.elect(0, &coverage([&[1, 2], &[]]), BOTH));
        election.bring(0, Line::B, 1);
        election
    }

    #[test]
    fn one_that_knows_all_and_more_leads_at_once() {
        let mut election = led();
        let more = coverage([&[1, 2], &[1, 2, 3]]);
        assert!(!election.elect(0, &more, BOTH));
        assert_eq!(election.leader(), Some(Line::B));
    }

    #[test]
    fn one_that_knows_more_and_not_all_leads_after_a_second() {
        let mut election = led();
        let [more, equal] = [&[2, 3, 4][..], &[2, 3]].map(|own| coverage([&[1, 2], own]));
        for (ms, coverage, leader) in [
            (0, &more, Line::A),
            (999, &more, Line::A),
            (999, &equal, Line::A),
            (1_000, &more, Line::A),
            (1_999, &more, Line::A),
            (2_000, &more, Line::B),
            (9_000, &equal, Line::B),
        ] {
            let leaves = election.elect(ms * MS, coverage, BOTH);
            assert_eq!(election.leader(), Some(leader));
            assert_eq!(leaves, ms == 2_000);
        }
    }

    #[test]
    fn one_that_brings_nothing_does_not_lead() {
        let mut election = led();
        let fewer = coverage([&[1, 2], &[1]]);
        // The second one has a later message, which the first one has within a second, and then
        // another one.
        for (ms, line, number, leader) in [
            (10, Line::B, 2, Line::A),
            (1_009, Line::A, 2, Line::A),
            (5_000, Line::B, 3, Line::A),
            (6_000, Line::B, 4, Line::B),
            (6_001, Line::A, 4, Line::A),
        ] {
            election.bring(ms * MS, line, number);
            election.elect(ms * MS, &fewer, BOTH);
            assert_eq!(election.leader(), Some(leader), "{ms}");
        }
        election.set_silent(7_000 * MS, Line::A, true);
        assert!(!election.elect(7_999 * MS, &fewer, BOTH));
        assert!(election.elect(8_000 * MS, &fewer, BOTH));
        assert_eq!(election.leader(), Some(Line::B));
    }

    #[test]
    fn without_numbers_one_that_has_messages_leads() {
        let mut election = Election::default();
        let more = coverage([&[1, 2], &[1, 3, 4]]);
        assert!(election.elect(0, &more, BOTH));
        assert_eq!(election.leader(), Some(Line::B));
        election.speak(Line::A);
        assert!(election.elect(0, &more, BOTH));
        assert_eq!(election.leader(), Some(Line::A));
        election.speak(Line::B);
        for (ms, leader) in [(0, Line::A), (999, Line::A), (1_000, Line::B)] {
            election.elect(ms * MS, &more, BOTH);
            assert_eq!(election.leader(), Some(leader), "{ms}");
        }
    }

    #[test]
    fn one_that_has_brought_nothing_yet_does_not_lead() {
        let mut election = led();
        election.leave(Line::B);
        let more = coverage([&[1, 2], &[1, 2, 3]]);
        election.elect(0, &more, BOTH);
        assert_eq!(election.leader(), Some(Line::A));
        // It has an old position.
        election.bring(0, Line::B, 0);
        election.elect(1_000 * MS, &more, BOTH);
        assert_eq!(election.leader(), Some(Line::A));
        election.leave(Line::A);
        assert!(election.elect(1_000 * MS, &more, [false, true, false, false]));
        assert_eq!(election.leader(), Some(Line::B));
    }
}
