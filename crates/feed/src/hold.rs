//! Units that arrived early, in sequence order, with their bytes in slots that are reused.

use crate::line::Line;
use std::collections::VecDeque;

/// The identity of a unit that waits, which is never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    slot: usize,
    number: u64,
}

impl Ticket {
    /// Returns the slot in which the unit waits, below the number of units that may wait at once,
    /// and three more. Units that wait at the same time have different slots.
    pub const fn slot(self) -> usize {
        self.slot
    }
}

/// The limits of the doubt about a unit that is far ahead of all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stray {
    /// The highest number of its line when it came.
    pub(crate) own: Option<u64>,
    /// The number of delivered units from which on its number is wrong.
    pub(crate) refuted_at: u64,
    /// The time from which on it waits as any other unit.
    pub(crate) due: u64,
}

/// A unit that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The time at which it was read.
    pub(crate) since: u64,
    /// The time at which it was received, by its line's stamp.
    pub(crate) stamp: u64,
    pub(crate) line: Line,
    pub(crate) ticket: Ticket,
    /// Whether its number may be wrong: it then shows no hole, and covers no other unit.
    pub(crate) is_stray: bool,
    len: usize,
}

/// The waiting units. Slots are taken last in, first out, so that few are ever touched while few
/// units wait.
#[derive(Debug)]
pub(crate) struct HoldBack {
    queue: VecDeque<Held>,
    slots: Vec<Vec<u8>>,
    free: Vec<usize>,
    /// The number of units kept so far.
    tickets: u64,
    /// How many of the waiting ones are strays.
    strays: usize,
    /// The limits of the strays, by slot.
    limits: Vec<Stray>,
}

impl HoldBack {
    pub(crate) fn new(units: usize, unit_bytes: usize) -> Self {
        Self {
            queue: VecDeque::with_capacity(units),
            slots: (0..units).map(|_| Vec::with_capacity(unit_bytes)).collect(),
            free: (0..units).rev().collect(),
            tickets: 0,
            strays: 0,
            limits: vec![Stray::default(); units],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the unit with the lowest sequence number.
    pub(crate) fn front(&self) -> Option<&Held> {
        self.queue.front()
    }

    /// Returns the end of the unit with the highest sequence number, other than strays.
    pub(crate) fn end(&self) -> Option<u64> {
        let mut downwards = self.queue.iter().rev();
        let held = downwards.find(|held| !held.is_stray);
        held.map(|held| held.end)
    }

    /// Returns when the unit that has waited longest was read, other than strays.
    pub(crate) fn oldest(&self) -> Option<u64> {
        let sure = self.queue.iter().filter(|held| !held.is_stray);
        sure.map(|held| held.since).min()
    }

    /// Returns whether a stray waits.
    pub(crate) fn has_strays(&self) -> bool {
        self.strays > 0
    }

    /// Returns the strays that wait, with their indices.
    pub(crate) fn strays(&self) -> impl Iterator<Item = (usize, &Held, Stray)> {
        let count = if self.has_strays() { self.len() } else { 0 };
        let held = self.queue.iter().take(count).enumerate();
        let strays = held.filter(|(_, held)| held.is_stray);
        strays.map(|(index, held)| (index, held, self.limits[held.ticket.slot]))
    }

    /// Returns whether a unit waits, other than strays, that begins at or below `start` and ends at
    /// most `reach` below it.
    pub(crate) fn reaches(&self, start: u64, reach: u64) -> bool {
        let after = self.queue.partition_point(|held| held.start <= start);
        let mut below = self.queue.range(..after).rev();
        below.any(|held| !held.is_stray && held.end + reach >= start)
    }

    /// Makes a unit that [`insert`](Self::insert) has kept a stray.
    pub(crate) fn doubt(&mut self, ticket: Ticket, stray: Stray) {
        let mut held = self.queue.iter_mut();
        if let Some(held) = held.find(|held| held.ticket == ticket) {
            held.is_stray = true;
            self.limits[ticket.slot] = stray;
            self.strays += 1;
        }
    }

    /// Makes the unit at this index, which is a stray, wait as any other; returns it.
    pub(crate) fn trust(&mut self, index: usize) -> Option<Held> {
        let held = self.queue.get_mut(index)?;
        self.strays -= usize::from(std::mem::take(&mut held.is_stray));
        Some(*held)
    }

    /// Removes the unit at this index; returns its line.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Line> {
        let held = self.queue.remove(index)?;
        self.strays -= usize::from(held.is_stray);
        self.release(&held);
        Some(held.line)
    }

    /// Returns whether the waiting units have all of `start..end` already. The answer may be no if
    /// two units overlap in an unusual way; the unit then waits in vain and is dropped when it is
    /// in order.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let after = self.queue.partition_point(|held| held.start <= start);
        let mut at = start;
        let held = self.queue.range(after.saturating_sub(1)..);
        for held in held.filter(|held| !held.is_stray) {
            if held.start > at {
                return false;
            }
            at = at.max(held.end);
            if at >= end {
                return true;
            }
        }
        false
    }

    /// Keeps a copy of the unit; `None` if all slots are taken.
    #[inline(always)]
    pub(crate) fn insert(
        &mut self,
        (start, end): (u64, u64),
        (since, stamp): (u64, u64),
        line: Line,
        bytes: &[u8],
    ) -> Option<Ticket> {
        let slot = self.free.pop()?;
        self.tickets += 1;
        let ticket = Ticket {
            slot,
            number: self.tickets,
        };
        let buffer = &mut self.slots[slot];
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let at = self.queue.partition_point(|held| held.start <= start);
        let held = Held {
            start,
            end,
            since,
            stamp,
            line,
            ticket,
            is_stray: false,
            len: bytes.len(),
        };
        self.queue.insert(at, held);
        Some(ticket)
    }

    /// Takes out the lowest unit; its bytes stay until [`release`](Self::release).
    pub(crate) fn pop(&mut self) -> Option<Held> {
        let held = self.queue.pop_front()?;
        self.strays -= usize::from(held.is_stray);
        Some(held)
    }

    /// Returns the bytes of a unit that was popped and not released.
    pub(crate) fn bytes(&self, held: &Held) -> &[u8] {
        &self.slots[held.ticket.slot][..held.len]
    }

    /// Frees the slot of a popped unit.
    pub(crate) fn release(&mut self, held: &Held) {
        self.free.push(held.ticket.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(ranges: &[(u64, u64)]) -> HoldBack {
        let mut hold = HoldBack::new(8, 16);
        for (i, range) in ranges.iter().enumerate() {
            let kept = hold.insert(*range, (i as u64, 0), Line::A, &[i as u8]);
            assert!(kept.is_some());
        }
        hold
    }

    #[test]
    fn units_come_out_in_order_with_their_bytes() {
        let mut hold = with(&[(9, 10), (5, 6), (7, 8)]);
        let mut order = Vec::new();
        while let Some(held) = hold.pop() {
            order.push((held.start, hold.bytes(&held).to_vec()));
            hold.release(&held);
        }
        assert_eq!(order, [(5, vec![1]), (7, vec![2]), (9, vec![0])]);
    }

    #[test]
    fn a_unit_that_others_cover_is_known() {
        let hold = with(&[(5, 7), (7, 9), (12, 13)]);
        assert!(hold.covers(5, 9) && hold.covers(6, 8) && hold.covers(12, 13));
        assert!(!hold.covers(4, 6) && !hold.covers(8, 10) && !hold.covers(20, 21));
    }

    #[test]
    fn a_stray_waits_and_counts_for_nothing_until_it_is_trusted_or_removed() {
        let mut hold = HoldBack::new(8, 16);
        let limits = Stray {
            own: Some(4),
            refuted_at: 3,
            due: 9,
        };
        let mut insert = |start, since, is_stray| {
            let ticket = hold.insert((start, start + 2), (since, 0), Line::B, b"x");
            if is_stray {
                hold.doubt(ticket.unwrap(), limits);
            }
        };
        insert(900, 1, true);
        insert(5, 2, false);
        insert(500, 3, true);
        assert_eq!((hold.end(), hold.oldest()), (Some(7), Some(2)));
        assert!(hold.covers(5, 7) && !hold.covers(500, 502));
        assert!(hold.reaches(8, 1) && !hold.reaches(505, 3) && !hold.reaches(4, 100));
        let strays: Vec<_> = hold
            .strays()
            .map(|(at, held, _)| (at, held.start))
            .collect();
        assert_eq!(strays, [(1, 500), (2, 900)]);
        assert!(hold.strays().all(|(.., stray)| stray == limits));
        assert_eq!(hold.trust(1).unwrap().start, 500);
        assert!(hold.covers(500, 502) && hold.reaches(505, 3));
        assert_eq!(hold.remove(2), Some(Line::B));
        assert!(!hold.has_strays() && hold.strays().next().is_none());
        assert_eq!((hold.len(), hold.free.len()), (2, 6));
    }

    #[test]
    fn a_full_hold_back_refuses() {
        let mut hold = HoldBack::new(1, 4);
        assert!(hold.insert((1, 2), (0, 0), Line::A, b"x").is_some());
        assert!(hold.insert((2, 3), (0, 0), Line::A, b"y").is_none());
    }
}
