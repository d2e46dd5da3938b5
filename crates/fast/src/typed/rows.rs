//! Code that puts generated structs into the rows of a record. Each member goes to its lane, which
//! is known when the code is generated.

use fanfare_wire::lanes::{MAX_LANES, Row};

use super::values::{Entries, OptionalText, Text};
use crate::record::Record;
use crate::value::{Decimal, EXPONENTS};

/// The mark of a value that a row does not hold: an integer beyond its lane, or a string that is
/// not packed.
const BEYOND: u64 = 1 << 31;

/// The distance from the smallest signed integer of a lane to 0.
const BELOW: i64 = 1 << 30;

/// The rows of a message that [`super::Typed::fill`] fills: first the head, then the entries.
#[derive(Debug)]
pub struct RowsMut<'r> {
    record: &'r mut Record,
    /// A number with bits from 31 on if a value does not fit.
    beyond: u64,
}

impl<'r> RowsMut<'r> {
    #[inline(always)]
    pub(super) const fn new(record: &'r mut Record) -> Self {
        Self { record, beyond: 0 }
    }

    /// Fills the row of the message's own fields, for the template of this index.
    #[inline(always)]
    pub fn head(&mut self, template: u32, fill: impl FnOnce(&mut RowMut<'_>)) {
        self.record.fill_rows(template);
        if let Some(row) = self.record.row_mut(0) {
            self.beyond |= RowMut::filled(row, fill);
        }
    }

    /// Fills the rows of the entries of the message's sequence, if it is present. The number of
    /// entries goes to this lane of the head.
    #[inline(always)]
    pub fn entries<T>(
        &mut self,
        lane: u8,
        entries: Option<&Entries<T>>,
        fill: impl Fn(&T, &mut RowMut<'_>),
    ) {
        let Some(entries) = entries else { return };
        let count = entries.len();
        self.beyond |= count as u64;
        self.record.set_sequence(count as u32);
        let Some((head, rows)) = self.record.rows_mut(count) else {
            return;
        };
        head.present |= 1 << (lane & 31);
        head.values[usize::from(lane) % MAX_LANES] = count as i32;
        let mut beyond = 0;
        for (entry, row) in entries.iter().zip(rows) {
            beyond |= RowMut::filled(row, |row| fill(entry, row));
        }
        self.beyond |= beyond;
    }

    /// Returns whether the record now holds the whole message.
    #[inline(always)]
    pub(super) const fn finish(self) -> bool {
        let fits = self.beyond < BEYOND;
        self.record.set_complete(fits);
        fits
    }
}

/// A row that is being filled. Values are set by lane, and values that a lane does not hold are
/// noticed.
#[derive(Debug)]
pub struct RowMut<'r> {
    row: &'r mut Row,
    present: u64,
    beyond: u64,
}

impl RowMut<'_> {
    /// Fills a row. Returns a number with bits from 31 on if a value does not fit.
    #[inline(always)]
    fn filled(row: &mut Row, fill: impl FnOnce(&mut RowMut<'_>)) -> u64 {
        let mut filling = RowMut {
            row,
            present: 0,
            beyond: 0,
        };
        fill(&mut filling);
        filling.row.present = filling.present;
        filling.beyond
    }

    #[inline(always)]
    fn put(&mut self, lane: u8, is_present: bool, value: u64) {
        self.row.values[usize::from(lane) % MAX_LANES] = value as i32;
        self.present |= u64::from(is_present) << (lane & 31);
    }

    #[inline(always)]
    fn put_signed(&mut self, lane: u8, is_present: bool, value: i64) {
        self.beyond |= value.wrapping_add(BELOW) as u64;
        self.put(lane, is_present, value as u64);
    }

    /// Sets an unsigned integer.
    #[inline(always)]
    pub fn unsigned(&mut self, lane: u8, value: impl Into<u64>) {
        let value = value.into();
        self.beyond |= value;
        self.put(lane, true, value);
    }

    /// Sets an optional unsigned integer.
    #[inline(always)]
    pub fn maybe_unsigned(&mut self, lane: u8, value: Option<impl Into<u64>>) {
        let is_present = value.is_some();
        let value = value.map_or(0, Into::into);
        self.beyond |= value;
        self.put(lane, is_present, value);
    }

    /// Sets a signed integer.
    #[inline(always)]
    pub fn signed(&mut self, lane: u8, value: impl Into<i64>) {
        self.put_signed(lane, true, value.into());
    }

    /// Sets an optional signed integer.
    #[inline(always)]
    pub fn maybe_signed(&mut self, lane: u8, value: Option<impl Into<i64>>) {
        self.put_signed(lane, value.is_some(), value.map_or(0, Into::into));
    }

    /// Sets a decimal: its exponent in this lane, its mantissa in the next one.
    #[inline(always)]
    pub fn decimal(&mut self, exponent: u8, value: Decimal) {
        self.maybe_decimal(exponent, Some(value));
    }

    /// Sets an optional decimal.
    #[inline(always)]
    pub fn maybe_decimal(&mut self, exponent: u8, value: Option<Decimal>) {
        let is_present = value.is_some();
        let value = value.unwrap_or_default();
        let fits = EXPONENTS.contains(&value.exponent.into());
        self.beyond |= u64::from(!fits) * BEYOND;
        self.put(exponent, is_present, i64::from(value.exponent) as u64);
        self.put_signed(exponent + 1, is_present, value.mantissa);
    }

    /// Sets the mantissa of a decimal whose exponent must be this one.
    #[inline(always)]
    pub fn decimal_of(&mut self, mantissa: u8, exponent: i8, value: Decimal) {
        self.beyond |= u64::from(value.exponent != exponent) * BEYOND;
        self.put_signed(mantissa, true, value.mantissa);
    }

    /// Sets a string.
    #[inline(always)]
    pub fn text(&mut self, lane: u8, value: &Text) {
        self.put_text(lane, true, value.packed());
    }

    /// Sets an optional string.
    #[inline(always)]
    pub fn maybe_text(&mut self, lane: u8, value: &OptionalText) {
        let (is_present, value) = value.packed();
        self.put_text(lane, is_present, value);
    }

    #[inline(always)]
    fn put_text(&mut self, lane: u8, is_present: bool, value: Option<u64>) {
        let value = value.unwrap_or(BEYOND);
        self.beyond |= value;
        self.put(lane, is_present, value);
    }
}
