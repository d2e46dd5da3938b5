//! The notices of what has no record, because DBN cannot represent a value.

use super::batch::Batch;
use super::control::no_record;
use super::schema::LiveSchemas;
use crate::dbn::wire::known_time;
use crate::dbn::{Lost, Schema, Why};
use crate::event::{Event, InstrumentId, Kind};
use crate::instruments::Lookup;
use std::collections::HashMap;

/// The time between two notices of a book, in nanoseconds.
const PAUSE: u64 = 1_000_000_000;

/// The books with changes that have no record, each with the time of its last notice.
#[derive(Debug, Default)]
pub(super) struct Withheld(HashMap<(Schema, InstrumentId), u64>);

impl Withheld {
    /// Returns whether no book is among them.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the book of an event if the records of the schema show it whole again: levels with
    /// the next record, orders once the book is cleared.
    pub(super) fn forget(&mut self, schema: Schema, event: &Event, is_written: bool) {
        let is_whole = match schema {
            Schema::Mbo => event.kind == Kind::Clear,
            _ => is_written,
        };
        if is_whole {
            self.0.remove(&(schema, event.instrument));
        }
    }

    /// Appends a notice of each value for which an event has no record of the schema, to the
    /// clients of `schemas`. A book has at most one a second until [`Self::forget`], as none of its
    /// changes has a record while the book contains a level of that size.
    #[cold]
    pub(super) fn tell(
        &mut self,
        (schema, schemas): (Schema, LiveSchemas),
        (event, lost): (&Event, &[Lost]),
        table: &dyn Lookup,
        batch: &mut Batch,
    ) {
        let time = known_time(event.ts_event, event.ts_recv);
        // A text that is too long leaves its field empty.
        for lost in lost.iter().filter(|lost| lost.why != Why::Text) {
            let is_of_book = lost.kind.is_of_book() || lost.kind == Kind::State;
            if schemas.is_empty() || is_of_book && !self.is_due((schema, lost.instrument), time) {
                continue;
            }
            let of = (event.source, event.instrument);
            no_record(of, &lost.describe(table), time, &mut batch.bytes);
            batch.tag(event.instrument, schemas, 0);
        }
    }

    /// Returns whether a notice of a book is due, and notes its time.
    fn is_due(&mut self, book: (Schema, InstrumentId), time: u64) -> bool {
        let told = self.0.get(&book);
        let is_due = told.is_none_or(|told| time.abs_diff(*told) >= PAUSE);
        if is_due {
            self.0.insert(book, time);
        }
        is_due
    }
}
