//! The schedule of snapshots for edges: instruments that have changed, and in rotation all others.

use std::collections::VecDeque;

/// The number of other instruments that are shown at a time.
const OTHERS: u32 = 4;

/// The least interval between two rounds of other instruments, in nanoseconds.
const BETWEEN: u64 = 10_000_000;

/// The instruments whose snapshots are due.
///
/// An instrument that changes is due once in an interval. The others are due in rotation, 400 a
/// second, and all of them at once when an edge joins. Times are nanoseconds of the caller.
/// Allocates for new instruments.
#[derive(Debug)]
pub struct Snapshots {
    interval: u64,
    /// Whether an instrument is queued among the changed and among the urgent, by its number.
    waits: Vec<[bool; 2]>,
    /// The times and the instruments, the first one first.
    changed: VecDeque<(u64, u32)>,
    /// The instruments of which anything besides the book has changed.
    urgent: VecDeque<u32>,
    /// The next of the other instruments, and its time.
    other: (u64, u32),
    /// The number left of all instruments, if all are due at once.
    all: u32,
}

impl Snapshots {
    /// Creates a schedule with at most one snapshot of an instrument in `interval` nanoseconds.
    #[must_use]
    pub const fn new(interval: u64) -> Self {
        Self {
            interval,
            waits: Vec::new(),
            changed: VecDeque::new(),
            urgent: VecDeque::new(),
            other: (0, 0),
            all: 0,
        }
    }

    /// Records that an instrument has changed.
    #[inline]
    pub fn change(&mut self, now: u64, instrument: u32) {
        let [waits, _] = self.waits(instrument);
        if !std::mem::replace(waits, true) {
            self.changed.push_back((now + self.interval, instrument));
        }
    }

    #[inline]
    fn waits(&mut self, instrument: u32) -> &mut [bool; 2] {
        let place = instrument as usize;
        if place >= self.waits.len() {
            self.waits.resize(place + 1, [false; 2]);
        }
        &mut self.waits[place]
    }

    /// Records that the state of an instrument has changed, so that its snapshot is due at once.
    pub fn hurry(&mut self, instrument: u32) {
        let [_, waits] = self.waits(instrument);
        if !std::mem::replace(waits, true) {
            self.urgent.push_back(instrument);
        }
    }

    /// Makes all instruments due at once, of which there are `count`. Those that have never changed
    /// come in rotation from then on, too.
    pub fn show_all(&mut self, count: usize) {
        if count > self.waits.len() {
            self.waits.resize(count, [false; 2]);
        }
        self.all = self.waits.len() as u32;
    }

    /// Returns the next instrument that is due, or `None` if there is none now.
    pub fn next(&mut self, now: u64) -> Option<u32> {
        if let Some(instrument) = self.urgent.pop_front() {
            self.waits(instrument)[1] = false;
            return Some(instrument);
        }
        if let Some((due, instrument)) = self.changed.front().copied()
            && due <= now
        {
            self.changed.pop_front();
            self.waits(instrument)[0] = false;
            return Some(instrument);
        }
        if self.all > 0 {
            self.all -= 1;
            return Some(self.all);
        }
        self.next_other(now)
    }

    fn next_other(&mut self, now: u64) -> Option<u32> {
        let count = self.waits.len() as u32;
        let (due, at) = self.other;
        if count == 0 || now < due {
            return None;
        }
        let next = if at < count { at } else { 0 };
        let is_last = (next + 1).is_multiple_of(OTHERS) || next + 1 >= count;
        let due = if is_last { now + BETWEEN } else { due };
        self.other = (due, next + 1);
        Some(next)
    }

    /// Returns when to call [`Self::next`], or `None` before the first instrument.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<u64> {
        if !self.urgent.is_empty() || self.all > 0 {
            return Some(0);
        }
        let changed = self.changed.front().map(|(due, _)| *due);
        let other = (!self.waits.is_empty()).then_some(self.other.0);
        changed.into_iter().chain(other).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn due(snapshots: &mut Snapshots, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| snapshots.next(now)).collect()
    }

    #[test]
    fn an_instrument_that_changes_often_is_due_once_in_an_interval() {
        let mut snapshots = Snapshots::new(100 * MS);
        snapshots.other.0 = u64::MAX;
        let mut shown = Vec::new();
        for ms in 0..250 {
            snapshots.change(ms * MS, 7);
            shown.extend(due(&mut snapshots, ms * MS).iter().map(|_| ms));
        }
        assert_eq!(shown, [100, 201]);
        snapshots.hurry(7);
        assert_eq!(due(&mut snapshots, 250 * MS), [7]);
        assert_eq!(snapshots.poll_timeout(), Some(302 * MS));
    }

    #[test]
    fn those_that_do_not_change_come_in_turn_and_all_when_asked() {
        let mut snapshots = Snapshots::new(MS);
        assert_eq!(snapshots.poll_timeout(), None);
        snapshots.change(0, 9);
        assert_eq!(due(&mut snapshots, 0), [0, 1, 2, 3]);
        assert_eq!(due(&mut snapshots, 10 * MS), [9, 4, 5, 6, 7]);
        assert_eq!(due(&mut snapshots, 15 * MS), [0; 0]);
        assert_eq!(due(&mut snapshots, 20 * MS), [8, 9]);
        snapshots.show_all(10);
        assert_eq!(snapshots.poll_timeout(), Some(0));
        assert_eq!(due(&mut snapshots, 21 * MS).len(), 10);
    }

    #[test]
    fn those_that_have_never_changed_come_when_asked_and_in_turn() {
        let mut snapshots = Snapshots::new(MS);
        snapshots.other.0 = MS;
        snapshots.show_all(3);
        assert_eq!(due(&mut snapshots, 0), [2, 1, 0]);
        assert_eq!(due(&mut snapshots, MS), [0, 1, 2]);
    }
}
