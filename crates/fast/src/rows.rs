//! The rows of a record, for programs that read values without a call for each field.

use fanfare_wire::lanes::{self, MAX_LANES, Row};

use crate::cell::Cell;
use crate::decode::visit_row;
use crate::program::{FieldId, Place, Program, Reading};
use crate::text_ref::TextRef;
use crate::value::Decimal;
use crate::visitor::Visitor;

/// A record that is held in rows: one for the fields of the message, one for each entry of its
/// sequence. [`Program::place`] returns the place of a field in them.
///
/// ```
/// use fanfare_fast::{Cell, Decoder, Program, Record};
/// use fanfare_fast::program::Reading;
///
/// let program = Program::parse(
///     r#"<template name="Book" id="1"><uInt32 name="Seq"/><uInt32 name="Time"/>
///          <sequence name="Levels"><length name="NoLevels"/>
///            <uInt32 name="Size"><copy/></uInt32><uInt32 name="Orders"><copy/></uInt32>
///            <uInt32 name="Hidden" presence="optional"><default/></uInt32>
///          </sequence></template>"#,
/// )?;
/// let size = program.find("Book", "Levels.Size").unwrap();
/// let mut decoder = Decoder::new(program);
/// let mut record = Record::new();
/// decoder.decode_record(&[0xc0, 0x81, 0x85, 0x88, 0x82, 0xe0, 0xaa, 0x83, 0x80], &mut record)?;
/// if let Some(rows) = record.rows() {
///     let program = decoder.program();
///     let place = program.place(size).unwrap();
///     assert_eq!((place.in_entry, place.reading), (true, Reading::Unsigned));
///     let sizes: Vec<i32> = rows.entries().unwrap().map(|row| row.value(place.lane)).collect();
///     assert_eq!(sizes, [42, 42]);
///     let last = rows.row(&place, 1).unwrap();
///     assert_eq!(last.cell(program, &place), Cell::Unsigned(42));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Rows<'r> {
    pub(crate) template: u32,
    /// The row of the message, and one for each entry; never empty.
    pub(crate) rows: &'r [Row],
    /// The number of entries that the sequence has or is to have, if it is present.
    pub(crate) entries: Option<u32>,
    /// Whether nothing of the message is missing.
    pub(crate) is_whole: bool,
}

impl<'r> Rows<'r> {
    /// Returns the index of the template.
    #[must_use]
    pub const fn template_index(&self) -> u32 {
        self.template
    }

    /// Returns the row of the message's own fields.
    #[must_use]
    #[inline]
    pub fn head(&self) -> RowRef<'r> {
        RowRef(&self.rows[0])
    }

    /// Returns the rows of the entries in their order, or `None` if the sequence is absent or the
    /// template has none.
    #[inline]
    #[must_use]
    pub fn entries(&self) -> Option<impl ExactSizeIterator<Item = RowRef<'r>> + use<'r>> {
        let rows = self.rows.get(1..).unwrap_or_default();
        self.entries.map(|_| rows.iter().map(RowRef))
    }

    /// Returns the row that has a field, or `None` if the place is of another template or there are
    /// fewer entries.
    #[inline]
    #[must_use]
    pub fn row(&self, place: &Place, entry: usize) -> Option<RowRef<'r>> {
        let index = match place.in_entry {
            true => entry.checked_add(1)?,
            false => 0,
        };
        let row = self.rows.get(index)?;
        (place.template == self.template).then_some(RowRef(row))
    }

    /// Calls a visitor for the message. A message that is not complete is left open where the rows
    /// end.
    pub(crate) fn write<V: Visitor>(&self, program: &Program, message: &mut V) {
        let Some(flat) = program.flat_of(self.template) else {
            return;
        };
        let mut rows = self.rows.iter();
        message.begin_message(&program.templates()[self.template as usize]);
        if let Some(row) = rows.next() {
            visit_row(program, program.segment(flat.head), row, message);
        }
        let Some(entry) = &flat.entry else {
            return;
        };
        let field = program.field(entry.field);
        match self.entries {
            None if self.is_whole => return message.absent(field),
            None => return,
            Some(count) => message.begin_sequence(field, count),
        }
        for (index, row) in (0..).zip(rows) {
            message.begin_entry(field, index);
            visit_row(program, program.segment(entry.segment), row, message);
            message.end_entry(field);
        }
        if self.is_whole {
            message.end_sequence(field);
        }
    }
}

/// One row: the fields of a message, or of an entry of its sequence, as lanes of 32 bits.
#[derive(Debug, Clone, Copy)]
pub struct RowRef<'r>(pub(crate) &'r Row);

impl<'r> RowRef<'r> {
    /// Returns the presence bits: bit `n` is set if lane `n` has a value. For a decimal, the bit of
    /// its exponent's lane counts, or that of its only lane. Bit 63 is always set: [`Place::lane`]
    /// is 63 for fields without a lane.
    #[must_use]
    #[inline(always)]
    pub const fn present(&self) -> u64 {
        self.0.present | 1 << Place::NO_LANE
    }

    /// Returns whether a field has a value.
    #[must_use]
    #[inline(always)]
    pub const fn has(&self, place: &Place) -> bool {
        self.is_present(place.lane)
    }

    /// Returns whether a lane has a value.
    #[must_use]
    #[inline(always)]
    pub const fn is_present(&self, lane: u8) -> bool {
        self.present() >> (lane & 63) & 1 != 0
    }

    /// Returns the content of a lane, which is arbitrary if the lane has no value. Unsigned
    /// integers are below 2^31 and signed ones from -2^30 to 2^30 - 1: a record with others is not
    /// held in rows.
    #[must_use]
    #[inline(always)]
    pub fn value(&self, lane: u8) -> i32 {
        self.0.values[usize::from(lane) % MAX_LANES]
    }

    /// Returns the decimal with its exponent in this lane and its mantissa in the next one.
    #[must_use]
    #[inline(always)]
    pub fn decimal(&self, exponent: u8) -> Decimal {
        self.decimal_of(exponent.wrapping_add(1), self.value(exponent) as i8)
    }

    /// Returns the decimal with its mantissa in this lane and this exponent.
    #[must_use]
    #[inline(always)]
    pub fn decimal_of(&self, mantissa: u8, exponent: i8) -> Decimal {
        Decimal {
            mantissa: self.value(mantissa).into(),
            exponent,
        }
    }

    /// Returns the value of the field of this row that has this place.
    #[must_use]
    #[inline(always)]
    pub fn cell(&self, program: &'r Program, place: &Place) -> Cell<'r> {
        if !self.has(place) {
            return Cell::Absent;
        }
        let value = i64::from(self.value(place.lane));
        match place.reading {
            Reading::Unsigned => Cell::Unsigned(value as u64),
            Reading::Signed => Cell::Signed(value),
            Reading::Ascii => Cell::Text(TextRef::packed(value as u64)),
            Reading::Decimal => Cell::Decimal(self.decimal(place.lane)),
            Reading::Mantissa(exponent) => Cell::Decimal(self.decimal_of(place.lane, exponent)),
            Reading::ConstantUnsigned(value) => Cell::Unsigned(value),
            Reading::ConstantSigned(value) => Cell::Signed(value),
            Reading::ConstantDecimal(value) => Cell::Decimal(value),
            Reading::ConstantText(text) => Cell::Text(TextRef::long(program.text(text))),
            Reading::Length => Cell::Sequence(value as u32),
        }
    }

    /// Returns true if each of these lanes, which are of strings, has one character at most. The
    /// value of such a lane is that character, or 0. The result may be false if a string is absent.
    #[must_use]
    #[inline(always)]
    pub fn are_short<const N: usize>(&self, lanes: [u8; N]) -> bool {
        let all = lanes
            .into_iter()
            .fold(0, |all, lane| all | self.value(lane));
        (0..0x80).contains(&all)
    }

    /// Returns the characters of a string with this value of its lane, four at most and padded with
    /// zeros, and their number.
    #[must_use]
    #[inline(always)]
    pub fn chars(value: i32) -> ([u8; lanes::MAX_CHARS], usize) {
        lanes::unpack(u64::from(value as u32))
    }
}

impl Program {
    /// Returns whether a [`crate::Record`] holds messages of the template of this index in rows, as
    /// far as their values fit.
    #[must_use]
    pub fn has_rows(&self, template: u32) -> bool {
        self.flat_of(template).is_some()
    }

    /// Returns the sequence of a template whose messages are held in rows, if it has one. Its
    /// entries are rows too.
    #[must_use]
    pub fn rows_sequence(&self, template: u32) -> Option<FieldId> {
        Some(self.flat_of(template)?.entry.as_ref()?.field)
    }
}
