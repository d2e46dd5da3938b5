//! Statuses of instruments in snapshots that are ahead of the messages.

use super::types::Relayed;
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::follower::Course;
use crate::instruments::{Instrument, Place};

/// The most statuses that wait. Further ones are adopted at once.
const MOST: usize = 1_024;

/// The longest wait for messages, in nanoseconds. They may never arrive: those of a plant that is
/// gone, or those of the run before, whose numbers are far ahead.
const PATIENCE: u64 = 1_000_000_000;

/// The status of an instrument in a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) instrument: InstrumentId,
    /// The status, or 0 if it is not known.
    pub(super) status: u16,
    /// The place of the last message that the snapshot contains.
    pub(super) place: Place,
    /// The number of the next message when the edge received the snapshot.
    next: u64,
    /// The time at which the snapshot arrived.
    pub(super) received: u64,
    /// The edge's own time of its arrival.
    arrived: u64,
}

impl Shown {
    /// Returns the status in a snapshot that arrives now.
    pub(super) fn of(
        now: u64,
        instrument: InstrumentId,
        snapshot: &Relayed<'_>,
        course: &Course,
    ) -> Self {
        Self {
            instrument,
            status: Instrument::read(snapshot.instrument).map_or(0, |new| new.status),
            place: course.place(snapshot.last),
            next: course.place(None).sequence,
            received: snapshot.received,
            arrived: now,
        }
    }

    /// Returns whether the snapshot contains messages that are yet to arrive.
    const fn is_ahead(&self) -> bool {
        self.place.is_numbered && self.place.sequence >= self.next
    }

    /// Returns the status with the place of what had arrived before it, so that any later message
    /// replaces it.
    fn at_once(mut self) -> Self {
        self.place.sequence = self.place.sequence.min(self.next);
        self
    }

    /// Returns the status as an event.
    pub(super) fn event(&self) -> Event {
        Event {
            instrument: self.instrument,
            kind: Kind::Status,
            id: self.status.into(),
            flags: Flags::LAST,
            ts_recv: self.received,
            ..Event::EMPTY
        }
    }
}

/// The statuses of snapshots whose last messages are yet to arrive, at most one per instrument.
/// Adopted at once, they would precede the older statuses of the messages in between.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<Shown>);

impl Ahead {
    /// Takes the status of an instrument. Returns it if it is to be adopted at once: it is not
    /// ahead of the messages, or there is no room for it.
    pub(super) fn take(&mut self, shown: Shown) -> Option<Shown> {
        let is_ahead = shown.is_ahead();
        if !is_ahead {
            self.0.retain(|own| own.instrument != shown.instrument);
        }
        let is_due = shown.status != 0 && !(is_ahead && self.push(shown));
        is_due.then(|| shown.at_once())
    }

    /// Adds the status of an instrument, in place of another one. The earlier of two that are equal
    /// stays, as snapshots may come faster than the messages. Returns false if there is no room.
    fn push(&mut self, shown: Shown) -> bool {
        let mut all = self.0.iter_mut();
        if let Some(own) = all.find(|own| own.instrument == shown.instrument) {
            let is_later = shown.place.sequence >= own.place.sequence;
            if own.status != shown.status || !is_later {
                *own = shown;
            }
            return true;
        }
        let has_room = self.0.len() < MOST;
        if has_room {
            self.0.push(shown);
        }
        has_room
    }

    /// Removes and returns a status whose place is before that of the next message, or one that has
    /// waited for too long, as it is adopted at once; `None` if there is none.
    pub(super) fn pop(&mut self, now: u64, next: u64) -> Option<Shown> {
        let has_arrived = |own: &Shown| own.place.sequence < next;
        let is_overdue = |own: &Shown| now.saturating_sub(own.arrived) >= PATIENCE;
        let mut all = self.0.iter();
        let due = all.position(|own| has_arrived(own) || is_overdue(own))?;
        let shown = self.0.swap_remove(due);
        Some(match has_arrived(&shown) {
            true => shown,
            false => shown.at_once(),
        })
    }

    /// Drops all statuses, whose places are those of a run that has ended.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns when a status will have waited for too long, or `None` if none waits.
    pub(super) fn poll_timeout(&self) -> Option<u64> {
        let first = self.0.iter().map(|own| own.arrived).min()?;
        Some(first.saturating_add(PATIENCE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(instrument: u32, status: u16, sequence: u64) -> Shown {
        Shown {
            instrument: InstrumentId(instrument),
            status,
            place: Place {
                sequence,
                is_numbered: true,
            },
            next: 5,
            received: 0,
            arrived: 0,
        }
    }

    #[test]
    fn a_status_waits_for_the_next_message_behind_its_place() {
        let mut ahead = Ahead::default();
        for number in 0..MOST as u32 {
            assert_eq!(ahead.take(shown(number, 17, 9)), None);
        }
        let without_room = ahead.take(shown(5_000, 17, 9));
        assert_eq!(without_room, Some(shown(5_000, 17, 5)));
        let not_ahead = ahead.take(shown(7, 18, 4));
        assert_eq!(not_ahead, Some(shown(7, 18, 4)));
        assert_eq!(ahead.take(shown(7, 17, 8)), None);
        assert_eq!(ahead.pop(0, 8), None);
        assert_eq!(ahead.pop(0, 9), Some(shown(7, 17, 8)));
        assert_eq!(ahead.pop(0, 9), None);
        assert!(ahead.pop(0, 10).is_some());
    }

    #[test]
    fn a_status_that_waits_for_too_long_is_of_its_arrival() {
        let mut ahead = Ahead::default();
        assert_eq!(ahead.poll_timeout(), None);
        assert_eq!(ahead.take(shown(1, 17, 1_000_000)), None);
        assert_eq!(ahead.poll_timeout(), Some(PATIENCE));
        assert_eq!(ahead.pop(PATIENCE - 1, 9), None);
        assert_eq!(ahead.pop(PATIENCE, 9), Some(shown(1, 17, 5)));
        assert_eq!(ahead.poll_timeout(), None);
    }

    #[test]
    fn a_status_that_is_shown_again_does_not_wait_longer() {
        let mut ahead = Ahead::default();
        for (status, sequence, kept) in [(17, 9, 9), (17, 12, 9), (17, 8, 8), (18, 12, 12)] {
            assert_eq!(ahead.take(shown(1, status, sequence)), None);
            assert_eq!(ahead.0, [shown(1, status, kept)]);
        }
    }
}
