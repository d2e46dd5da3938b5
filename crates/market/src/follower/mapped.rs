//! A message of a feed as its mapper returns it.

use crate::event::{Event, InstrumentId, Kind};
use crate::instruments::{Instruments, Place};
use crate::mapping::{Does, FastMapper, MapError, Outcome};
use crate::market::Market;
use fanfare_fast::Record;
use fanfare_feed::recovery::State;

/// A message with its mapped events.
pub(crate) struct Mapped<'a> {
    pub(crate) outcome: Result<Outcome, MapError>,
    pub(crate) events: &'a [Event],
    pub(crate) faults: &'a [MapError],
    /// The instruments whose definitions in the message change nothing.
    pub(crate) unchanged: &'a [InstrumentId],
    pub(crate) received: u64,
}

impl<'a> Mapped<'a> {
    #[inline]
    pub(super) fn fast(
        mapper: &'a mut FastMapper,
        table: &mut Instruments,
        (at, place): (u64, Place),
        record: &Record,
    ) -> Self {
        mapper.set_place(place);
        Self {
            outcome: mapper.record(table, at, record),
            events: mapper.events(),
            faults: mapper.faults(),
            unchanged: mapper.unchanged(),
            received: at,
        }
    }

    /// Sets in the table whether the instruments that the message defined or closed are closed in
    /// the market, which ignores a message that is repeated or precedes the last one to do so.
    #[inline]
    pub(super) fn settle(&self, table: &mut Instruments, market: &Market) {
        let is_other = |outcome: &Outcome| outcome.does != Some(Does::Definition);
        if self.outcome.as_ref().is_ok_and(is_other) {
            return;
        }
        let turns = |event: &&Event| matches!(event.kind, Kind::Definition | Kind::State);
        for event in self.events.iter().filter(turns) {
            let is_closed = market.state(event.instrument) == Some(State::Closed);
            table.set_closed(event.instrument, is_closed);
        }
    }
}
