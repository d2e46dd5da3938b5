//! The values of a message by their positions, in rows or as a level of values. Unused values are
//! not read.

use super::cells::{LEVEL, Ref};
use super::plan::Plan;
use core::fmt::Debug;
use fanfare_fast::program::{FieldId, FieldKind, Op, Place, Reading};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::{Decimal, Level, Program, RowRef, Seat};
use fanfare_wire::int;

/// The values of a message's own fields, or of an entry's.
pub(super) trait Values: Copy {
    /// The position of a value.
    type At: Copy + Debug;

    /// Whether reading needs more registers than a loop has, so that each entry is better read by a
    /// call.
    const IS_CALLED: bool;

    /// Returns an integer. An unsigned one from 2^63 on is negative here.
    fn int(self, at: Self::At) -> Option<i64>;

    /// Returns a decimal.
    fn decimal(self, at: Self::At) -> Option<Decimal>;

    /// Returns the only character of a text, or [`NO_CHAR`] if it has another length or is absent.
    fn char(self, at: Self::At) -> u8;

    /// Calls `read` with a text, which is empty if absent.
    fn with_text<R>(self, at: Self::At, read: impl FnOnce(&[u8]) -> R) -> R;
}

/// The value for a text that is absent or not one ASCII character.
pub(super) const NO_CHAR: u8 = 128;

/// The position of a value in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    /// Its presence bit.
    bit: u64,
    /// The lane of the value, or of a decimal's mantissa.
    lane: u8,
    /// The lane of a decimal's exponent, unless it is fixed.
    exponent: u8,
    fixed: Option<i8>,
}

/// A row, with a copy of its presence bits.
#[derive(Clone, Copy)]
pub(super) struct InRow<'r> {
    row: RowRef<'r>,
    present: u64,
}

impl<'r> InRow<'r> {
    #[inline(always)]
    pub(super) const fn new(row: RowRef<'r>) -> Self {
        let present = row.present();
        Self { row, present }
    }

    #[inline(always)]
    const fn has(self, at: Lane) -> bool {
        self.present & at.bit != 0
    }
}

impl Values for InRow<'_> {
    type At = Lane;

    const IS_CALLED: bool = false;

    #[inline(always)]
    fn int(self, at: Lane) -> Option<i64> {
        let value = self.row.value(at.lane).into();
        self.has(at).then_some(value)
    }

    #[inline(always)]
    fn decimal(self, at: Lane) -> Option<Decimal> {
        self.has(at).then(|| {
            let exponent = match at.fixed {
                Some(exponent) => exponent,
                None => self.row.value(at.exponent) as i8,
            };
            self.row.decimal_of(at.lane, exponent)
        })
    }

    #[inline(always)]
    fn char(self, at: Lane) -> u8 {
        if !self.has(at) {
            return NO_CHAR;
        }
        match self.row.value(at.lane) {
            value @ 1..0x80 => value as u8,
            _ => NO_CHAR,
        }
    }

    fn with_text<R>(self, at: Lane, read: impl FnOnce(&[u8]) -> R) -> R {
        let value = self.has(at).then(|| self.row.value(at.lane));
        let (chars, len) = RowRef::chars(value.unwrap_or(0));
        read(chars.get(..len).unwrap_or_default())
    }
}

impl Values for Level<'_> {
    type At = Seat;

    const IS_CALLED: bool = true;

    #[inline(always)]
    fn int(self, at: Seat) -> Option<i64> {
        Self::int(&self, at).map(u64::cast_signed)
    }

    #[inline(always)]
    fn decimal(self, at: Seat) -> Option<Decimal> {
        Self::decimal(&self, at)
    }

    #[inline(always)]
    fn char(self, at: Seat) -> u8 {
        match self.text(at) {
            Some([byte @ 0..0x80]) => *byte,
            _ => NO_CHAR,
        }
    }

    fn with_text<R>(self, at: Seat, read: impl FnOnce(&[u8]) -> R) -> R {
        read(self.text(at).unwrap_or_default())
    }
}

/// The class of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Unsigned,
    Signed,
    Decimal,
    Text,
}

impl Class {
    pub(super) const fn is_int(self) -> bool {
        matches!(self, Self::Unsigned | Self::Signed)
    }
}

/// The positions of fields in one of the forms of a record.
pub(super) trait Layout {
    type At: Copy + Debug;

    /// The position without a value.
    const NOWHERE: Self::At;

    /// Returns the position of a field of the entries, or of the message itself, or `None` if it is
    /// in neither.
    fn stands(&self, field: FieldId, is_entry: bool) -> Option<(Class, Self::At)>;
}

/// Records in rows.
pub(super) struct InRows<'p>(pub(super) &'p Program);

impl Layout for InRows<'_> {
    type At = Lane;

    const NOWHERE: Lane = Lane {
        bit: 0,
        lane: 0,
        exponent: 0,
        fixed: None,
    };

    fn stands(&self, field: FieldId, is_entry: bool) -> Option<(Class, Lane)> {
        let place = self.0.place(field)?;
        let mut at = Lane {
            bit: 1 << (place.lane & 63),
            lane: place.lane,
            exponent: place.lane,
            fixed: None,
        };
        let class = match place.reading {
            Reading::Unsigned => Class::Unsigned,
            Reading::Signed => Class::Signed,
            Reading::Ascii => Class::Text,
            Reading::Decimal => {
                at.lane += 1;
                Class::Decimal
            }
            Reading::Mantissa(exponent) => {
                at.fixed = Some(exponent);
                Class::Decimal
            }
            _ => return None,
        };
        let is_there = place.in_entry == is_entry && place.lane != Place::NO_LANE;
        is_there.then_some((class, at))
    }
}

/// Records that are messages, with the sequence of the entries.
pub(super) struct InLevels<'p>(pub(super) &'p Program, pub(super) Option<FieldId>);

impl Layout for InLevels<'_> {
    type At = Seat;

    const NOWHERE: Seat = Seat::NOWHERE;

    fn stands(&self, field: FieldId, is_entry: bool) -> Option<(Class, Seat)> {
        let Self(program, entries) = self;
        let class = match program.field(field).kind() {
            FieldKind::Int(ty) if ty.is_signed() => Class::Signed,
            FieldKind::Int(_) => Class::Unsigned,
            FieldKind::Decimal => Class::Decimal,
            FieldKind::Text(_) => Class::Text,
            FieldKind::Group | FieldKind::Sequence | FieldKind::TemplateRef => return None,
        };
        let mut around = program.field(field).parent();
        while let Some(group) = around.filter(|around| !program.field(*around).is_sequence()) {
            around = program.field(group).parent();
        }
        let wanted = if is_entry { *entries } else { None };
        let seat = program.seat(field).filter(|_| around == wanted)?;
        Some((class, seat))
    }
}

/// A finder of the positions of a plan's values.
pub(super) struct Finder<'a, L> {
    pub(super) layout: L,
    pub(super) program: &'a Program,
    pub(super) plan: &'a Plan,
}

impl<L: Layout> Finder<'_, L> {
    fn field(&self, cell: u8) -> Option<FieldId> {
        let used = self.plan.uses.iter().find(|used| used.cell == cell)?;
        let field = self.program.fields().get(used.key as usize)?;
        Some(field.id())
    }

    fn stands(&self, cell: u8) -> Option<(Class, L::At)> {
        let is_entry = usize::from(cell) < LEVEL;
        self.layout.stands(self.field(cell)?, is_entry)
    }

    /// Returns the position of the value of one field, of the entries or of the message, or `None`
    /// if it is in neither, or if there are several such fields.
    pub(super) fn one(&self, cells: Ref, is_entry: bool) -> Option<(Class, L::At)> {
        match cells.0 {
            [Ref::END, ..] => Some((Class::Unsigned, L::NOWHERE)),
            [cell, Ref::END, ..] if (usize::from(cell) < LEVEL) == is_entry => self.stands(cell),
            _ => None,
        }
    }

    /// Returns the position of an integer, as [`Finder::one`] does.
    pub(super) fn int(&self, cells: Ref, is_entry: bool) -> Option<L::At> {
        let (class, at) = self.one(cells, is_entry)?;
        class.is_int().then_some(at)
    }

    /// Returns the position of a text, as [`Finder::one`] does.
    pub(super) fn text(&self, cells: Ref, is_entry: bool) -> Option<L::At> {
        let (class, at) = self.one(cells, is_entry)?;
        (class == Class::Text || cells.is_none()).then_some(at)
    }

    /// Returns the digits or the text that the only field of these cells always has.
    pub(super) fn constant(&self, cells: Ref) -> Option<Vec<u8>> {
        let [cell, Ref::END, ..] = cells.0 else {
            return None;
        };
        let mut room = [0; 24];
        match self.program.op(self.field(cell)?) {
            Op::Text(op) if op.operator == OperatorKind::Constant && !op.optional => {
                op.initial.map(|text| self.program.text(text).to_vec())
            }
            Op::Int(op) if op.operator == OperatorKind::Constant && !op.optional => {
                let len = match op.ty.is_signed() {
                    true => int::write_i64(op.initial?.cast_signed(), &mut room),
                    false => int::write_u64(op.initial?, &mut room),
                };
                room.get(..len).map(<[u8]>::to_vec)
            }
            _ => None,
        }
    }
}
