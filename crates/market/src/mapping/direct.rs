//! Entries of rows straight to events, for mappings that are as most are: a rule for each
//! MDEntryType, instruments by number, integers and decimals. Whatever else an entry holds, it is
//! left to the engine.

use super::cells::{LEVEL, Ref};
use super::document::Does;
use super::plan::{Plan, Rule, TimePlan};
use crate::event::{Action, Event, Kind};
use crate::instruments::IdSource;
use crate::price::Price;
use fanfare_fast::program::{Place, Reading};
use fanfare_fast::{Program, RowRef};

/// A lane that no field has.
const NONE: u8 = u8::MAX;

/// How the entries of a template are read.
#[derive(Debug)]
pub(super) struct Direct {
    kind_of: u8,
    id: u8,
    pub(super) source: Option<IdSource>,
    /// By MDEntryType: the rule plus one.
    rule_of: [u8; 128],
    rules: Vec<DirectRule>,
}

#[derive(Debug)]
struct DirectRule {
    kind: Kind,
    action: u8,
    price: Number,
    size: u8,
    level: u8,
    id: u8,
    rpt_seq: u8,
    time: u8,
    how: TimePlan,
}

/// Where a price is.
#[derive(Debug, Clone, Copy)]
enum Number {
    None,
    Decimal(u8),
    Mantissa(u8, i8),
}

/// The event of an entry without its instrument, and the instrument's number.
pub(super) struct Read<'d> {
    pub(super) event: Event,
    pub(super) id: u64,
    /// The time, which is not converted yet.
    pub(super) time: u64,
    pub(super) how: &'d TimePlan,
}

/// Finds the places of cells.
struct Places<'p> {
    program: &'p Program,
    entry: &'p [(u8, Place)],
}

impl Places<'_> {
    /// The place of the only cell of a field, which is in the entry.
    fn one(&self, field: Ref) -> Option<&Place> {
        let [cell, Ref::END, ..] = field.0 else {
            return None;
        };
        let is_entry = usize::from(cell) < LEVEL;
        let found = self.entry.iter().find(|(other, _)| *other == cell);
        found.filter(|_| is_entry).map(|(_, place)| place)
    }

    /// The lane of an integer; [`NONE`] if there is no such field.
    fn int(&self, field: Ref) -> Option<u8> {
        if field.is_none() {
            return Some(NONE);
        }
        let place = self.one(field)?;
        matches!(place.reading, Reading::Unsigned | Reading::Signed).then_some(place.lane)
    }

    fn number(&self, field: Ref) -> Option<Number> {
        if field.is_none() {
            return Some(Number::None);
        }
        let place = self.one(field)?;
        match place.reading {
            Reading::Decimal => Some(Number::Decimal(place.lane)),
            Reading::Mantissa(exponent) => Some(Number::Mantissa(place.lane, exponent)),
            Reading::Unsigned | Reading::Signed => Some(Number::Mantissa(place.lane, 0)),
            _ => None,
        }
    }

    /// The source that all entries have; `None` inside if it is that of the mapping.
    fn source(&self, field: Ref) -> Option<Option<IdSource>> {
        if field.is_none() {
            return Some(None);
        }
        let mut digits = [0; 20];
        let source = match self.one(field)?.reading {
            Reading::ConstantUnsigned(value) => {
                let len = fanfare_wire::int::write_u64(value, &mut digits);
                IdSource::parse(digits.get(..len)?)
            }
            Reading::ConstantText(text) => IdSource::parse(self.program.text(text)),
            _ => None,
        };
        source.map(Some)
    }

    fn rule(&self, rule: &Rule, kind: Kind) -> Option<DirectRule> {
        let is_plain = rule.conditions.is_empty()
            && rule.with.is_empty()
            && rule.without.is_empty()
            && rule.entry_type.is_none();
        let how = rule.time.filter(|_| is_plain)?;
        // A date is the message's, or there is none.
        let of_message = |cell: &u8| usize::from(*cell) >= LEVEL;
        let has_date_of_message = how.date.is_none() || how.date.0.iter().all(of_message);
        let time = self.int(how.field)?;
        let is_timed = has_date_of_message && time != NONE;
        is_timed.then_some(DirectRule {
            kind,
            action: self.int(rule.action)?,
            price: self.number(rule.price)?,
            size: self.int(rule.size)?,
            level: self.int(rule.level)?,
            id: self.int(rule.id)?,
            rpt_seq: self.int(rule.rpt_seq)?,
            time,
            how,
        })
    }
}

impl Direct {
    /// How a plan's entries are read so, if they can be.
    pub(super) fn new(program: &Program, plan: &Plan, entry: &[(u8, Place)]) -> Option<Self> {
        let places = Places { program, entry };
        if plan.does != Does::Changes || !plan.symbol.is_none() {
            return None;
        }
        let kind_of = plan.rules.first()?.kind_of;
        let kind_place = places.one(kind_of)?;
        let id_place = places.one(plan.id)?;
        let fits = kind_place.reading == Reading::Ascii && id_place.reading == Reading::Unsigned;
        let mut direct = Self {
            kind_of: kind_place.lane,
            id: id_place.lane,
            source: places.source(plan.source)?,
            rule_of: [0; 128],
            rules: Vec::new(),
        };
        for rule in plan.rules.iter().filter(|_| fits) {
            let compiled = rule.kind.and_then(|kind| places.rule(rule, kind));
            let number = direct.rules.len() as u8 + 1;
            for (kind, place) in (0_u32..).zip(&mut direct.rule_of) {
                let is_of = rule.kind_of == kind_of && rule.types >> kind & 1 != 0;
                match &compiled {
                    _ if !is_of || *place != 0 => {}
                    Some(_) => *place = number,
                    // Those behind it must not take what is not theirs.
                    None => *place = NONE,
                }
            }
            direct.rules.extend(compiled);
        }
        (!direct.rules.is_empty()).then_some(direct)
    }

    /// What an entry says; `None` if the engine has to look at it.
    #[inline(always)]
    pub(super) fn read(&self, row: RowRef<'_>) -> Option<Read<'_>> {
        let kind_of = row.value(self.kind_of);
        let rule = *self.rule_of.get(usize::try_from(kind_of).ok()?)?;
        let rule = self.rules.get(usize::from(rule).wrapping_sub(1))?;
        let present = row.present();
        let has = |lane: u8| lane != NONE && present >> (lane & 63) & 1 != 0;
        if kind_of == 0 || !has(self.kind_of) || !has(self.id) || !has(rule.time) {
            return None;
        }
        let mut event = Event {
            kind: rule.kind,
            entry: kind_of as u8,
            ..Event::EMPTY
        };
        if has(rule.action) {
            event.action = action(row.value(rule.action))?;
        }
        match rule.price {
            Number::Decimal(lane) if has(lane) => {
                let exponent = row.value(lane);
                event.price = price(row.value(lane.wrapping_add(1)), exponent)?;
            }
            Number::Mantissa(lane, exponent) if has(lane) => {
                event.price = price(row.value(lane), exponent.into())?;
            }
            _ => {}
        }
        if has(rule.size) {
            event.size = row.value(rule.size).into();
        }
        if has(rule.level) {
            let level = u16::try_from(row.value(rule.level)).ok()?;
            event.level = if level == 0 { return None } else { level };
        }
        if has(rule.id) {
            event.id = i64::from(row.value(rule.id)) as u64;
        }
        if has(rule.rpt_seq) {
            event.rpt_seq = u32::try_from(row.value(rule.rpt_seq)).ok()?;
        }
        Some(Read {
            event,
            id: u64::try_from(row.value(self.id)).ok()?,
            time: u64::try_from(row.value(rule.time)).ok()?,
            how: &rule.how,
        })
    }
}

#[inline(always)]
const fn action(code: i32) -> Option<Action> {
    Some(match code {
        0 => Action::New,
        1 => Action::Change,
        2 => Action::Delete,
        3 => Action::DeleteThru,
        4 => Action::DeleteFrom,
        5 => Action::Overlay,
        _ => return None,
    })
}

/// A mantissa of 31 bits is in range with any of these exponents.
#[inline(always)]
fn price(mantissa: i32, exponent: i32) -> Option<Price> {
    const SCALES: [i64; 10] = [
        1,
        10,
        100,
        1_000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
        1_000_000_000,
    ];
    let scale = SCALES.get(usize::try_from(exponent + 9).ok()?)?;
    Some(Price::from_units(i64::from(mantissa) * scale))
}
