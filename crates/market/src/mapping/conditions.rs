//! The conditions on the values of a message or an entry, and the closing of instruments by them.

use super::cells::Raw;
use super::engine::Engine;
use super::plan::{Condition, Expected, Plan};
use crate::event::{Event, InstrumentId};
use crate::instruments::Instruments;
use crate::state;
use core::cmp::Ordering;
use fanfare_feed::recovery::State;
use fanfare_wire::Decimal;

impl Engine {
    /// Returns whether the field of a condition has one of its values.
    pub(super) fn is_so(&self, condition: &Condition, texts: &[u8]) -> bool {
        let Some((_, raw)) = self.cells.find(condition.field) else {
            return false;
        };
        let number = match raw {
            Raw::Unsigned(value) => i64::try_from(*value).ok().map(|v| Decimal::new(v, 0)),
            Raw::Signed(value) => Some(Decimal::new(*value, 0)),
            Raw::Decimal(value) => Some(*value),
            _ => None,
        };
        let mut room = [0; 24];
        is_one_of(&condition.values, number, raw.text(texts, &mut room))
    }

    /// Returns whether there are conditions, and all of them hold.
    fn are_so(&self, conditions: &[Condition], texts: &[u8]) -> bool {
        !conditions.is_empty() && conditions.iter().all(|is| self.is_so(is, texts))
    }

    /// Returns whether a definition closes its instrument.
    pub(super) fn is_closing(&self, plan: &Plan, texts: &[u8]) -> bool {
        self.are_so(&plan.closed, texts)
    }

    /// Returns whether a definition is a part: what it does not have stays as it was.
    pub(super) fn is_part(&self, plan: &Plan, texts: &[u8]) -> bool {
        self.are_so(&plan.partial, texts)
    }

    /// Closes an instrument, which keeps its definition. One that is unknown is counted.
    pub(super) fn close(
        &mut self,
        table: &mut Instruments,
        known: Option<InstrumentId>,
        ts_event: Option<u64>,
    ) {
        let Some(instrument) = known else {
            self.counts.unknown_instrument += 1;
            return;
        };
        table.close_at(instrument, self.place, self.ts_recv());
        self.push(Event {
            instrument,
            ts_event: ts_event.unwrap_or(Event::NO_TIME),
            ..state::to_event(State::Closed)
        });
    }
}

/// Returns whether a number, or a text that is not a number, equals one of some values.
fn is_one_of(values: &[Expected], number: Option<Decimal>, text: &[u8]) -> bool {
    values.iter().any(|expected| match number {
        None => *expected.text == *text,
        Some(number) => {
            let same = |other: Decimal| other.value_cmp(number) == Ordering::Equal;
            expected.number.is_some_and(same)
        }
    })
}
