//! The snapshots that plants send to an edge.

use super::Edge;
use crate::event::{Event, InstrumentId};
use crate::relay::ahead::Shown;
use crate::relay::types::Relayed;
use core::cmp::Ordering;
use fanfare_feed::Line;
use fanfare_feed::serial::is_before;

impl Edge {
    /// Processes a plant's snapshot of an instrument. A plant that is gone returns by its steps or
    /// instruments, not by a snapshot, as its last snapshots may arrive after its end.
    ///
    /// A snapshot of the numbers before a restart of the plant's channel only names the instrument,
    /// and one of the numbers behind a restart waits for the step of that, as each does for the
    /// first step of its plant. One that is known to be of the numbers since the last restart is
    /// taken at once, and others once it is as long ago as snapshots may take to arrive.
    pub fn snapshot(
        &mut self,
        now: u64,
        origin: u64,
        snapshot: &Relayed<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        if self.gone.iter().any(|(own, _)| *own == origin) {
            return;
        }
        self.settle(now);
        let times = (now, snapshot.received);
        let turn = self.turn_of(origin, snapshot);
        let last = snapshot.last.filter(|_| turn.is_none_or(Ordering::is_eq));
        let named = self.name(times, origin, snapshot.instrument, last, send);
        let Some((line, id)) = named else {
            return;
        };
        match turn {
            Some(Ordering::Less) => return,
            Some(Ordering::Greater) => return self.early.keep(origin, snapshot),
            Some(Ordering::Equal) | None => {}
        }
        if !self.is_of_this_time(line) {
            return;
        }
        if self.leads(line) {
            self.adopt(now, id, snapshot, send);
        }
        let Some(last) = last.filter(|_| !snapshot.events.is_empty()) else {
            return;
        };
        // Otherwise its later changes are left out.
        let leader = self.election.leader();
        let is_kept = leader.is_some_and(|leader| self.coverage.knows(leader, id));
        if !is_kept || !self.coverage.suffices(id, last) {
            return;
        }
        let is_since_reset = turn.is_some() && self.has_numbers_of(line);
        self.events.clear();
        self.events.extend(snapshot.events_of(id));
        let market = &mut self.course.market;
        market.take_snapshot(times, (Some(last), is_since_reset), &self.events, send);
    }

    /// Compares the numbers of a plant's snapshot with those of its last steps: before a restart of
    /// its channel, the same, or behind one. Returns `None` if the snapshot does not show it.
    fn turn_of(&self, origin: u64, snapshot: &Relayed<'_>) -> Option<Ordering> {
        let restarts = snapshot.restarts()?;
        let place = self.place_of(origin);
        let plant = place.and_then(|place| self.plants[place].as_ref());
        let turn = plant.and_then(|plant| plant.past.compare(restarts));
        // Without steps so far, it may be of the numbers before those that they begin with.
        Some(turn.unwrap_or(Ordering::Greater))
    }

    /// Returns whether the edge's numbers began anew with the last restart that the plant reported.
    fn has_numbers_of(&self, line: Line) -> bool {
        let plant = self.plants.get(line.index()).and_then(Option::as_ref);
        plant.is_some_and(|plant| self.restarts.are_those_of(&plant.past))
    }

    /// Processes the snapshots of a plant that came in front of a restart of its channel, or of its
    /// first step, and whose numbers its steps have come to by now.
    pub(super) fn show_early(&mut self, now: u64, origin: u64, send: &mut impl FnMut(&Event)) {
        if self.early.is_empty() {
            return;
        }
        let mut early = std::mem::take(&mut self.early);
        let is_due = |kept: &Relayed<'_>| self.turn_of(origin, kept) != Some(Ordering::Greater);
        let due = early.take(origin, is_due);
        self.early = early;
        for kept in due {
            self.snapshot(now, origin, &kept.relayed(), send);
        }
    }

    /// Adopts the status of an instrument at a plant, and whether it is closed there.
    fn adopt(
        &mut self,
        now: u64,
        id: InstrumentId,
        snapshot: &Relayed<'_>,
        send: &mut impl FnMut(&Event),
    ) {
        let shown = Shown::of(now, id, snapshot, &self.course);
        if let Some(shown) = self.ahead.take(shown) {
            self.adopt_status(&shown, send);
        }
        // An earlier snapshot may be of the time before the instrument was closed or opened.
        let is_as_of = |own: u32| snapshot.last.is_some_and(|last| !is_before(last, own));
        let own = self.last_number();
        if snapshot.is_closed && own.is_none_or(is_as_of) {
            self.course.market.close(id, send);
        }
        let has_book = !snapshot.is_closed && !snapshot.events.is_empty();
        if has_book && own.is_some_and(is_as_of) {
            self.course.market.open(id, send);
        }
    }

    /// Adopts the status of an instrument, unless that of a later message is known.
    fn adopt_status(&mut self, shown: &Shown, send: &mut impl FnMut(&Event)) {
        let (id, status) = (shown.instrument, shown.status);
        if self.table.set_status_at(id, status, shown.place) == Some(true) {
            let market = &mut self.course.market;
            market.pass_on(shown.received, &shown.event(), send);
        }
    }

    /// Adopts the statuses that waited for messages that have arrived by now, or are missing, and
    /// those that have waited for too long.
    pub(super) fn adopt_due(&mut self, now: u64, send: &mut impl FnMut(&Event)) {
        let next = self.course.place(None).sequence;
        while let Some(shown) = self.ahead.pop(now, next) {
            self.adopt_status(&shown, send);
        }
    }
}
