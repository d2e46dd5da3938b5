//! Runs of restarted numbers, distinguished by the bytes of units: where each run has other bytes
//! for a number (a SendingTime is enough) and each line the same, a unit belongs to the run in
//! which its bytes arrived.

use super::{ARRIVALS, Arbiter, Arrival};
use crate::line::Line;
use crate::serial::extend;

/// Runs are distinguished by bytes if more than this many numbers had other bytes in two runs for
/// each that had the same. A few have the same because a unit was attributed to another run.
const APART: u64 = 64;
/// The number by which numbers that kept their bytes from run to run may exceed those that did not,
/// before the bytes of a new line tell nothing.
const FEW: u64 = 8;
/// Numbers in a row with the same bytes on two lines that restore the trust in it.
const TRUST: u8 = 64;
/// The trust that a number with other bytes takes away. One alone may have been attributed to
/// another run.
const DOUBT: u8 = 32;

/// The evidence from the bytes of a feed that announces its runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Evidence {
    /// The digest of the current unit's bytes. It is 0 while no run is known to be over, except for
    /// the first units.
    pub(super) digest: u64,
    /// The count of the current unit's numbers, once a run is known to be over.
    pub(super) count: u32,
    /// The number of units that still get a digest while no run is known to be over. A line may
    /// begin when the first run of another one is over.
    pub(super) early: usize,
    pub(super) lines: Agreement,
    /// The count of numbers that had other bytes in the run before, of those that had the same, and
    /// of those among these that did not have them in the run before that.
    runs_differ: u64,
    runs_agree: u64,
    newly_agree: u64,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            digest: 0,
            count: 0,
            early: ARRIVALS,
            lines: Agreement::default(),
            runs_differ: 0,
            runs_agree: 0,
            newly_agree: 0,
        }
    }
}

/// Whether lines bring the same bytes for a number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Agreement {
    /// Up to [`TRUST`]; `None` before any number was brought by two lines.
    trust: Option<u8>,
    holds: bool,
}

impl Agreement {
    /// Notes that two lines have brought the same bytes for a number. The first one is enough,
    /// unless others came before.
    pub(super) fn confirm(&mut self) {
        let trust = self.trust.map_or(TRUST, |trust| TRUST.min(trust + 1));
        self.holds |= trust == TRUST;
        self.trust = Some(trust);
    }

    /// Notes that two lines seem to have brought other bytes for a number.
    pub(super) fn doubt(&mut self) {
        let trust = self.trust.filter(|_| self.holds).unwrap_or(0);
        let trust = trust.saturating_sub(DOUBT);
        self.holds &= trust > 0;
        self.trust = Some(trust);
    }
}

impl Evidence {
    /// Returns whether the bytes of units distinguish runs.
    fn are_runs_apart(&self) -> bool {
        self.runs_differ > self.newly_agree.saturating_mul(APART)
    }

    /// Returns whether numbers had the same bytes in two runs as often as other ones.
    fn may_runs_agree(&self) -> bool {
        self.runs_agree > self.runs_differ
    }
}

impl Arbiter {
    /// Learns from the current unit, the first of its number, brought by `line`.
    pub(super) fn compare_runs(&mut self, line: Line, start: u64) {
        let newest = self.newest().filter(|newest| !newest.is_inferred);
        let Some(newest) = newest.filter(|newest| start >= newest.next) else {
            return;
        };
        let arrival = self.arrival(extend(newest.begin, start as u32)).copied();
        let Some(before) = arrival.filter(|before| before.digest != 0) else {
            return;
        };
        let begin = newest.begin;
        let preceding = self.ended.iter().rev().find(|ended| ended.next == begin);
        let preceding = preceding.map(|ended| extend(ended.begin, start as u32));
        let is_constant = preceding.and_then(|start| self.digest_of(start)) == Some(before.digest);
        let evidence = &mut self.evidence;
        if before.digest != evidence.digest {
            evidence.runs_differ += 1;
            if before.other == evidence.digest {
                // Another line is ahead: it brought this unit, which was then attributed to the run
                // before.
                evidence.lines.confirm();
            } else if before.other != 0 {
                evidence.lines.doubt();
            }
        } else if before.line == line.index() {
            evidence.runs_agree += 1;
            evidence.newly_agree += u64::from(!is_constant);
        } else {
            // Either the runs have the same bytes, or the other line is ahead.
            evidence.lines.confirm();
        }
    }

    /// Returns the number, in the newest run or one that is over, for which the bytes of the
    /// current unit arrived on another line, if the run is that of `line` and the line has not
    /// brought the number, or on any line, if the bytes came in one run alone.
    pub(super) fn known_as(&self, line: Line, sequence: u32) -> Option<u64> {
        let track = &self.tracks[line.index()];
        let own = track.highest();
        // A few numbers tell little of a line that is new.
        let few = if own.is_none() { FEW } else { 0 };
        if self.evidence.runs_agree > self.evidence.runs_differ + few {
            return None;
        }
        let is_known = |start: &u64| self.is_of_bytes(*start);
        let here = own.map(|own| extend(own, sequence)).filter(is_known);
        let is_again = |here: &u64| !track.has(*here) || self.evidence.newly_agree == 0;
        if let Some(here) = here.filter(is_again) {
            return Some(here);
        }
        // A new line is placed by its bytes before there is evidence of others.
        if own.is_some() && !self.evidence.are_runs_apart() {
            return None;
        }
        let begins = self
            .ended
            .iter()
            .map(|ended| ended.begin)
            .chain([self.epoch_start]);
        let mut known = begins.map(|begin| extend(begin, sequence)).filter(is_known);
        let first = known.next();
        here.or(first.filter(|_| known.next().is_none()))
    }

    /// Returns whether the bytes of the current unit arrived with this number.
    pub(super) fn is_of_bytes(&self, start: u64) -> bool {
        self.digest_of(start) == Some(self.evidence.digest)
    }

    /// Returns whether the unit received last, of `count` numbers, has a place for which its bytes
    /// arrived.
    pub(crate) fn is_again(&self, count: u32) -> bool {
        let start = self.placed.map(|end| end - u64::from(count));
        start.is_some_and(|start| self.is_of_bytes(start))
    }

    /// Returns whether bytes distinguish runs and are the same on all lines.
    pub(super) fn do_bytes_tell(&self) -> bool {
        self.evidence.lines.holds && self.evidence.are_runs_apart()
    }

    /// Returns whether the current unit is not the one that arrived with this number.
    pub(super) fn differs(&self, start: u64) -> bool {
        let is_other = |digest| digest != self.evidence.digest;
        self.do_bytes_tell() && self.digest_of(start).is_some_and(is_other)
    }

    /// Returns whether the current unit is one of this number that `line` sends again: its bytes
    /// came before, and nothing shows that each run has the same.
    pub(super) fn is_repeat(&self, line: Line, start: u64) -> bool {
        let digest = self.evidence.digest;
        let is_same = |known: &Arrival| {
            let is_first = known.digest == digest;
            // Lines that have other bytes for a number.
            let is_own = known.other == digest && known.line != line.index();
            digest != 0 && (is_first || is_own && !self.evidence.lines.holds)
        };
        !self.evidence.may_runs_agree() && self.arrival(start).is_some_and(is_same)
    }

    /// Returns the digest of a unit with these bytes; 0 if it is not needed.
    pub(super) fn digest_of_unit(&self, bytes: &[u8]) -> u64 {
        let is_needed = self.evidence.early > 0 || !self.ended.is_empty();
        if is_needed { digest(bytes) } else { 0 }
    }

    /// Returns the digest of the unit that arrived with this number, while it is remembered.
    fn digest_of(&self, start: u64) -> Option<u64> {
        let arrival = self.arrival(start)?;
        (arrival.digest != 0).then_some(arrival.digest)
    }
}

/// Returns a digest of the bytes that is hardly ever that of others; never 0.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(ODD).rotate_left(29);
    let (words, rest) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let last = rest
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte));
    let sum = words.chain([last, ODD]).fold(bytes.len() as u64, mix);
    sum | 1
}

#[cfg(test)]
mod tests {
    use super::{Agreement, DOUBT, TRUST, digest};

    #[test]
    fn an_agreement_holds_until_it_is_doubted_twice_and_again_after_many_numbers() {
        let mut lines = Agreement::default();
        assert!(!lines.holds);
        lines.confirm();
        assert!(lines.holds);
        for _ in 0..3 {
            lines.doubt();
            assert!(lines.holds, "one may be of another run");
            (0..TRUST).for_each(|_| lines.confirm());
        }
        lines.doubt();
        (1..DOUBT).for_each(|_| lines.confirm());
        lines.doubt();
        assert!(lines.holds);
        lines.doubt();
        assert!(!lines.holds);
        (1..TRUST).for_each(|_| lines.confirm());
        assert!(!lines.holds);
        lines.doubt();
        (0..TRUST).for_each(|_| lines.confirm());
        assert!(lines.holds);
    }

    #[test]
    fn other_bytes_have_other_digests() {
        let all: Vec<u8> = (0..64).collect();
        let mut digests: Vec<u64> = (0..64).map(|len| digest(&all[..len])).collect();
        for at in 0..64 {
            let mut changed = all.clone();
            changed[at] ^= 0x80;
            digests.push(digest(&changed));
        }
        digests.push(digest(&[0; 8]));
        digests.push(digest(&[0; 9]));
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }
}
