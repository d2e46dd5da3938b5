//! The instruments that the plants of an edge know.

use crate::event::InstrumentId;
use fanfare_feed::Line;
use fanfare_feed::serial::is_before;

/// The instruments that each plant knows.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// A bit for each line, by the edge's number of the instrument.
    masks: Vec<u8>,
    /// The number of instruments that at least one plant knows.
    known: u32,
    /// The number of instruments that two lines both know, and on the diagonal that one knows.
    shared: [[u32; Line::MAX]; Line::MAX],
    /// Whether another plant leads that knows less, and none has delivered since, so that the
    /// instruments that it does not know are as the one before left them.
    pub(super) is_left: bool,
    /// The last number that each line has delivered, followed by the one of lines that are gone.
    brought: [Option<u32>; Line::MAX + 1],
    /// By the edge's number of the instrument: the last number that a line had delivered when the
    /// line named the instrument, or left without naming it. It may have left out changes, which a
    /// snapshot has to contain.
    floors: Vec<Option<u32>>,
}

/// Returns the later of two numbers that may have wrapped.
fn later(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) if is_before(a, b) => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Returns the number, or the limit if that is before it.
fn at_most(number: Option<u32>, limit: Option<u32>) -> Option<u32> {
    let is_over = |limit: &u32| number.is_some_and(|number| is_before(*limit, number));
    limit.filter(is_over).or(number)
}

impl Coverage {
    /// Adds an instrument to those that a line knows. `last` is the message of the snapshot that
    /// names it, if one does: the line leaves out none of its later changes. Returns true if it was
    /// not one of them.
    pub(super) fn add(&mut self, line: Line, instrument: u32, last: Option<u32>) -> bool {
        let (place, own) = (instrument as usize, line.index());
        if place >= self.masks.len() {
            self.masks.resize(place + 1, 0);
            self.floors.resize(place + 1, self.brought[Line::MAX]);
        }
        let bit = 1 << own;
        let Some(mask) = self.masks.get_mut(place).filter(|mask| **mask & bit == 0) else {
            return false;
        };
        self.known += u32::from(*mask == 0);
        *mask |= bit;
        let mask = *mask;
        for other in (0..Line::MAX).filter(|other| mask & (1 << *other) != 0) {
            self.shared[own][other] += 1;
            self.shared[other][own] = self.shared[own][other];
        }
        let floor = &mut self.floors[place];
        *floor = later(*floor, at_most(self.brought[own], last));
        true
    }

    /// Returns the number of instruments that a line knows.
    pub(super) const fn count(&self, line: Line) -> u32 {
        self.shared[line.index()][line.index()]
    }

    /// Returns the number of instruments that other lines know and this one, if any, does not.
    pub(super) fn lacking(&self, line: Option<Line>) -> u32 {
        self.known - line.map_or(0, |line| self.count(line))
    }

    /// Returns whether a line knows an instrument.
    pub(super) fn knows(&self, line: Line, instrument: InstrumentId) -> bool {
        let mask = self.masks.get(instrument.0 as usize);
        mask.is_some_and(|mask| *mask & (1 << line.index()) != 0)
    }

    /// Returns whether a line knows every instrument that the other one knows.
    #[inline]
    pub(super) const fn includes(&self, line: Line, other: Line) -> bool {
        self.shared[line.index()][other.index()] == self.count(other)
    }

    /// Returns whether two lines know the same instruments.
    #[inline]
    pub(super) const fn are_alike(&self, line: Line, other: Line) -> bool {
        self.includes(line, other) && self.includes(other, line)
    }

    /// Records that a line delivers a packet with this number.
    pub(super) fn bring(&mut self, line: Line, number: u32) {
        let own = &mut self.brought[line.index()];
        *own = later(*own, Some(number));
    }

    /// Returns whether a snapshot as of message `last` contains all changes that may have been left
    /// out.
    pub(super) fn suffices(&self, instrument: InstrumentId, last: u32) -> bool {
        let floor = self.floors.get(instrument.0 as usize).copied().flatten();
        let lines = (0..Line::MAX).filter_map(Line::new);
        let others = lines.filter(|line| !self.knows(*line, instrument));
        let left_out = others.filter_map(|line| self.brought[line.index()]);
        left_out.chain(floor).all(|number| !is_before(last, number))
    }

    /// Restarts the numbers.
    pub(super) fn restart(&mut self) {
        self.brought = Default::default();
        self.floors.fill(None);
    }

    /// Returns the instruments that a line does not know.
    pub(super) fn unknown_to(&self, line: Line) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let bit = 1 << line.index();
        let all = (0..).zip(&self.masks);
        all.filter_map(move |(number, mask)| (*mask & bit == 0).then_some(InstrumentId(number)))
    }

    /// Removes a line, and calls `lost` with the instruments that no other line knows.
    pub(super) fn remove(&mut self, line: Line, mut lost: impl FnMut(InstrumentId)) {
        let own = line.index();
        let gone = self.brought[own].take();
        self.brought[Line::MAX] = later(self.brought[Line::MAX], gone);
        let bit = 1 << own;
        for ((number, mask), floor) in (0..).zip(&mut self.masks).zip(&mut self.floors) {
            if *mask & bit == 0 {
                *floor = later(*floor, gone);
                continue;
            }
            *mask &= !bit;
            if *mask == 0 {
                self.known -= 1;
                lost(InstrumentId(number));
            }
        }
        self.shared[own] = [0; Line::MAX];
        for others in &mut self.shared {
            others[own] = 0;
        }
    }
}
