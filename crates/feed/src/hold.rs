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

/// A unit that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The time at which it was read.
    since: u64,
    /// The time at which it was received, by its line's stamp.
    pub(crate) stamp: u64,
    pub(crate) line: Line,
    pub(crate) ticket: Ticket,
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
}

impl HoldBack {
    pub(crate) fn new(units: usize, unit_bytes: usize) -> Self {
        Self {
            queue: VecDeque::with_capacity(units),
            slots: (0..units).map(|_| Vec::with_capacity(unit_bytes)).collect(),
            free: (0..units).rev().collect(),
            tickets: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the unit with the lowest sequence number.
    pub(crate) fn front(&self) -> Option<&Held> {
        self.queue.front()
    }

    /// Returns the end of the unit with the highest sequence number.
    pub(crate) fn end(&self) -> Option<u64> {
        self.queue.back().map(|held| held.end)
    }

    /// Returns when the unit that has waited longest was read.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.queue.iter().map(|held| held.since).min()
    }

    /// Returns whether the waiting units have all of `start..end` already. The answer may be no if
    /// two units overlap in an unusual way; the unit then waits in vain and is dropped when it is
    /// in order.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let after = self.queue.partition_point(|held| held.start <= start);
        let mut at = start;
        for held in self.queue.range(after.saturating_sub(1)..) {
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
            len: bytes.len(),
        };
        self.queue.insert(at, held);
        Some(ticket)
    }

    /// Takes out the lowest unit; its bytes stay until [`release`](Self::release).
    pub(crate) fn pop(&mut self) -> Option<Held> {
        self.queue.pop_front()
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
    fn a_full_hold_back_refuses() {
        let mut hold = HoldBack::new(1, 4);
        assert!(hold.insert((1, 2), (0, 0), Line::A, b"x").is_some());
        assert!(hold.insert((2, 3), (0, 0), Line::A, b"y").is_none());
    }
}
