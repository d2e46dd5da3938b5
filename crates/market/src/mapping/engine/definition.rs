//! The definitions of instruments in messages.

use super::Engine;
use crate::event::{Action, Event, Kind};
use crate::instruments::{Change, Columns, Defined, Instruments, Refused};
use crate::mapping::cells::Ref;
use crate::mapping::define;
use crate::mapping::fault::{Flaw, Why};
use crate::mapping::plan::Plan;
use crate::mapping::time::{DAY, DateTime};

impl Engine {
    /// Takes the definition of an instrument, whole or a part, or its end.
    pub(super) fn define(
        &mut self,
        plan: &Plan,
        table: &mut Instruments,
        texts: &[u8],
    ) -> Result<(), Flaw> {
        // A fault concerns the instrument of this entry, not that of the previous one.
        self.message.instrument = None;
        let is_part = self.is_part(plan, texts);
        let before = self.known_maturity(plan, table, texts)?;
        let maturity = self.maturity(plan, before.filter(|_| is_part), texts);
        let sent = self.sent(plan, texts);
        let mut room = [0; 24];
        let mut rooms = [[0; 24]; define::ROOMS];
        let source = self.id_source(plan, texts)?;
        let name = define::name(&self.cells, plan, source, texts, &mut room)?;
        self.message.instrument = table.find(&name);
        if self.is_closing(plan, texts) {
            self.close(table, self.message.instrument, sent?);
            return Ok(());
        }
        let read = define::read(&self.cells, plan, texts, (name, &mut rooms))?;
        let (mut definition, mut has, status) = read;
        if let Some((maturity, own)) = maturity? {
            definition.maturity = maturity;
            has = has.with(own);
        }
        if !is_part {
            has = Columns::ALL;
        }
        // No fault may follow the change of the table: a repetition is not passed on.
        let ts_event = sent?.unwrap_or(Event::NO_TIME);
        let at = (self.place, self.message.ts_recv);
        if let Some(known) = self.message.instrument {
            has = table.due(known, has, at.0);
            let how = plan.maturity.as_ref().map(|time| time.how);
            definition.maturity = merged(how, has, (definition.maturity, before));
            if table.may_precede_end(known, (&definition, has, status), at) {
                has = Columns::NONE;
            }
        }
        if has == Columns::NONE {
            self.counts.same_definition += 1;
        } else {
            let defined = table.define_part(&definition, has);
            self.defined(table, (defined, has), ts_event)?;
        }
        if let (Some(instrument), Some(status)) = (self.message.instrument, status)
            && table.set_defined_status_at(instrument, status, self.place) == Some(true)
        {
            self.push_status(plan, texts, instrument, status.into())?;
        }
        Ok(())
    }

    /// Handles the result of a definition with these values in the table.
    fn defined(
        &mut self,
        table: &mut Instruments,
        (defined, has): (Result<Defined, Refused>, Columns),
        ts_event: u64,
    ) -> Result<(), Flaw> {
        let defined = match defined {
            Ok(defined) => defined,
            Err(refused) => {
                match refused {
                    Refused::Full => self.counts.table_full += 1,
                    Refused::NoName => self.counts.without_instrument += 1,
                    Refused::TooLong => return Err((Ref::END, Why::LongText)),
                }
                return Ok(());
            }
        };
        let instrument = defined.instrument;
        self.message.instrument = Some(instrument);
        if self.place.is_numbered || defined.change != Change::Same {
            table.set_defined_at(instrument, has, self.place);
        }
        match defined.change {
            Change::Same => {
                self.counts.same_definition += 1;
                self.unchanged.push(instrument);
            }
            change => self.push(Event {
                instrument,
                ts_event,
                id: defined.revision.into(),
                kind: Kind::Definition,
                action: match change {
                    Change::New => Action::New,
                    _ => Action::Change,
                },
                ..Event::EMPTY
            }),
        }
        Ok(())
    }

    /// Returns the maturity in a definition, and which of its date and its time of the day the
    /// definition has. A time without a date is of the day of the maturity `before`, if there is
    /// one, and is left out otherwise.
    fn maturity(
        &mut self,
        plan: &Plan,
        before: Option<u64>,
        texts: &[u8],
    ) -> Result<Option<(u64, Columns)>, Flaw> {
        let Some(time) = &plan.maturity else {
            return Ok(None);
        };
        let midnight = before.and_then(|before| time.how.midnight(before));
        // All times of that day are less than half a day from there.
        let near = midnight.map_or(0, |midnight| midnight + DAY / 2 - 1);
        let stamped = self.stamped(time, near, texts)?;
        let has = |field, what| match self.cells.has(field) {
            true => what,
            false => Columns::NONE,
        };
        let date = has(time.date, Columns::MATURITY_DATE);
        let has = date.with(has(time.field, Columns::MATURITY_TIME));
        Ok(stamped.map(|stamped| (stamped, has)))
    }

    /// Returns the maturity of the instrument that a definition names, if it is known.
    fn known_maturity(
        &self,
        plan: &Plan,
        table: &Instruments,
        texts: &[u8],
    ) -> Result<Option<u64>, Flaw> {
        let mut room = [0; 24];
        let source = self.id_source(plan, texts)?;
        let name = define::name(&self.cells, plan, source, texts, &mut room)?;
        let known = table.find(&name).and_then(|known| table.get(known));
        let maturity = known.map(|known| known.definition.maturity);
        Ok(maturity.filter(|maturity| *maturity != Event::NO_TIME))
    }
}

/// Returns a maturity with those of the date and the time of the day of the new one that are in
/// `has`. The others are those of the one before, if that is known.
fn merged(how: Option<DateTime>, has: Columns, (new, before): (u64, Option<u64>)) -> u64 {
    let midnight = |time| how.and_then(|how| how.midnight(time));
    let Some(before) = before else {
        return new;
    };
    let has_date = has.has(Columns::MATURITY_DATE);
    match (has_date, has.has(Columns::MATURITY_TIME)) {
        (true, false) => midnight(new).map_or(new, |day| with_time_of(before, day)),
        (false, true) if new == Event::NO_TIME => midnight(before).unwrap_or(before),
        (false, true) => midnight(before).map_or(before, |day| with_time_of(new, day)),
        (true, true) | (false, false) => new,
    }
}

/// Returns the time on the day that begins at `midnight` which is the time of the day of `time`.
const fn with_time_of(time: u64, midnight: u64) -> u64 {
    let between = time.cast_signed().wrapping_sub(midnight.cast_signed());
    let of_day = between.rem_euclid(DAY.cast_signed());
    midnight.saturating_add(of_day.cast_unsigned())
}
