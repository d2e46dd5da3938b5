//! The instruments that the plants of an edge know.

use crate::event::InstrumentId;
use fanfare_feed::Line;

/// The instruments that each plant knows.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// A bit for each line, by the edge's number of the instrument.
    masks: Vec<u8>,
    /// The number of instruments that at least one plant knows.
    pub(super) known: u32,
    /// Whether the last plant is gone and none has delivered since, so that its instruments are as
    /// it left them.
    pub(super) is_left: bool,
    /// The last number that each line has delivered, followed by the one of lines that are gone.
    brought: [Option<u32>; Line::MAX + 1],
    /// By the edge's number of the instrument: the last number that others had delivered when the
    /// first line that knows it named it. Those may have left out its changes, which a snapshot has
    /// to contain.
    floors: Vec<Option<u32>>,
}

/// Returns the later of two numbers that may have wrapped.
fn later(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    match (a, b) {
        (Some(a), Some(b)) if b.wrapping_sub(a).cast_signed() > 0 => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Returns whether a number is before another one, where they may have wrapped.
pub(super) const fn is_before(number: u32, other: u32) -> bool {
    number.wrapping_sub(other).cast_signed() < 0
}

impl Coverage {
    /// Adds an instrument to those that a line knows. Returns true if it was not one of them.
    pub(super) fn add(&mut self, line: Line, instrument: u32) -> bool {
        let place = instrument as usize;
        if place >= self.masks.len() {
            self.masks.resize(place + 1, 0);
            self.floors.resize(place + 1, None);
        }
        let bit = 1 << line.index();
        let Some(mask) = self.masks.get_mut(place).filter(|mask| **mask & bit == 0) else {
            return false;
        };
        if *mask == 0 {
            self.known += 1;
            let others = self.brought.iter().enumerate();
            let others = others.filter(|(other, _)| *other != line.index());
            let floor = others.fold(None, |last, (_, number)| later(last, *number));
            self.floors[place] = floor;
        }
        *mask |= bit;
        true
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
        floor.is_none_or(|floor| !is_before(last, floor))
    }

    /// Restarts the numbers.
    pub(super) fn restart(&mut self) {
        self.brought = Default::default();
        self.floors.fill(None);
    }

    /// Returns the instruments that no line knows.
    pub(super) fn unknown(&self) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let all = (0..).zip(&self.masks);
        all.filter_map(|(number, mask)| (*mask == 0).then_some(InstrumentId(number)))
    }

    /// Removes a line, and calls `lost` with the instruments that no other line knows.
    pub(super) fn remove(&mut self, line: Line, mut lost: impl FnMut(InstrumentId)) {
        let gone = self.brought[line.index()].take();
        self.brought[Line::MAX] = later(self.brought[Line::MAX], gone);
        let bit = 1 << line.index();
        for (number, mask) in (0..).zip(&mut self.masks) {
            if *mask & bit != 0 {
                *mask &= !bit;
                if *mask == 0 {
                    self.known -= 1;
                    lost(InstrumentId(number));
                }
            }
        }
    }
}
