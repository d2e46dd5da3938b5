//! The members of a row as CDR. The conversion of each lane is computed once for each template, so
//! that a member takes a few instructions and no call.

mod fixed;

use fanfare_fast::program::{FieldId, Reading};
use fanfare_fast::{Decimal, RowRef};

use super::fields::to_double;
use super::types::{Mapping, Put};
use crate::cdr::Pen;
use fixed::Fixed;

/// The members of the structure of a row.
#[derive(Debug)]
pub(super) struct Members {
    steps: Box<[Step]>,
    /// The faster way, if there is one.
    fixed: Option<Fixed>,
}

/// The start of a structure's members, without its mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    /// At a place with this remainder modulo eight.
    At(usize),
    Anywhere,
}

/// The way in which one member is written.
#[derive(Debug)]
struct Step {
    write: Write,
    lane: u8,
    /// Its bit in the mask of its structure.
    bit: u64,
}

#[derive(Debug)]
enum Write {
    /// An integer of this many bytes, and the bits of the lane that they hold.
    Int(u8, u64),
    Text,
    /// A decimal as the nearest double. If the exponent is not constant, exponent and mantissa are
    /// in two lanes.
    Double(Option<i8>),
    /// A decimal, unchanged.
    Exact(Option<i8>),
    /// Constants; the first one has this many bytes.
    Always(u8, u64),
    AlwaysExact(Decimal),
    AlwaysText(Box<[u8]>),
    AlwaysOctets(Box<[u8]>),
}

impl Members {
    pub(super) fn new<'f>(
        mapping: &Mapping,
        fields: impl Iterator<Item = &'f FieldId>,
        start: Start,
    ) -> Self {
        let steps: Box<[_]> = fields.filter_map(|f| Step::new(mapping, *f)).collect();
        let fixed = Fixed::new(&steps, start);
        Self { steps, fixed }
    }

    /// Writes the members, preceded by their mask, if there is one, with these bits already set.
    #[inline(always)]
    pub(super) fn write(&self, row: RowRef<'_>, mask: Option<u64>, pen: &mut Pen<'_>) {
        if mask.is_some() {
            pen.word(0, 8);
        }
        let mask_at = pen.at().wrapping_sub(8);
        let fixed = self.fixed.as_ref().and_then(|fixed| fixed.write(row, pen));
        let bits = match fixed {
            Some(bits) => bits,
            None => write_each(&self.steps, row, pen),
        };
        if let Some(more) = mask {
            pen.patch(mask_at, bits | more, 8);
        }
    }
}

impl Step {
    /// Makes the step of a field; `None` for a sequence. Every other field of a template of rows
    /// has a place in them.
    fn new(mapping: &Mapping, field: FieldId) -> Option<Self> {
        let plan = &mapping.plans[field.index()];
        let place = mapping.program().place(field)?;
        let is_exact = plan.put == Put::Exact;
        let write = match place.reading {
            Reading::Unsigned | Reading::Signed => Write::Int(plan.size, plan.fit),
            Reading::Ascii => Write::Text,
            Reading::Decimal if is_exact => Write::Exact(None),
            Reading::Decimal => Write::Double(None),
            Reading::Mantissa(exponent) if is_exact => Write::Exact(Some(exponent)),
            Reading::Mantissa(exponent) => Write::Double(Some(exponent)),
            Reading::ConstantUnsigned(value) => Write::Always(plan.size, value & plan.fit),
            Reading::ConstantSigned(value) => Write::Always(plan.size, value as u64 & plan.fit),
            Reading::ConstantDecimal(value) if is_exact => Write::AlwaysExact(value),
            Reading::ConstantDecimal(value) => Write::Always(8, to_double(value).to_bits()),
            Reading::ConstantText(text) => {
                let text = mapping.program().text(text).into();
                match plan.put {
                    Put::Octets => Write::AlwaysOctets(text),
                    _ => Write::AlwaysText(text),
                }
            }
            Reading::Length => return None,
        };
        Some(Self {
            write,
            lane: place.lane,
            bit: plan.bit,
        })
    }
}

impl Write {
    /// Returns the alignment of the member's first byte.
    fn alignment(&self) -> usize {
        match self {
            Self::Int(size, _) | Self::Always(size, _) => (*size).into(),
            Self::Double(_) | Self::Exact(_) | Self::AlwaysExact(_) => 8,
            Self::Text | Self::AlwaysText(_) | Self::AlwaysOctets(_) => 4,
        }
    }

    /// Writes the constants.
    fn constant(&self, pen: &mut Pen<'_>) {
        match self {
            Self::Always(size, value) => pen.word(*value, (*size).into()),
            Self::AlwaysExact(value) => exact(*value, pen),
            Self::AlwaysText(text) => pen.string(text),
            Self::AlwaysOctets(bytes) => pen.octets(bytes),
            _ => {}
        }
    }
}

/// Writes one member after the other; returns the bits of the optional ones that are present.
#[inline(never)]
fn write_each(steps: &[Step], row: RowRef<'_>, pen: &mut Pen<'_>) -> u64 {
    let mut mask = 0;
    for step in steps {
        let there = there(row, step.lane);
        mask |= step.bit & there;
        let value = lane(row, step.lane, there);
        match &step.write {
            Write::Int(size, fit) => pen.word(value & fit, (*size).into()),
            Write::Text => text(value, pen),
            Write::Double(exponent) => {
                let value = decimal(row, step.lane, *exponent, there);
                pen.word(to_double(value).to_bits(), 8);
            }
            Write::Exact(exponent) => exact(decimal(row, step.lane, *exponent, there), pen),
            constant => constant.constant(pen),
        }
    }
    mask
}

/// Returns all ones for a field that is present, so that an absent one is zero without a branch.
#[inline(always)]
fn there(row: RowRef<'_>, lane: u8) -> u64 {
    (row.present() >> (lane & 63) & 1).wrapping_neg()
}

/// Returns the value of a lane, sign-extended.
#[inline(always)]
fn lane(row: RowRef<'_>, lane: u8, there: u64) -> u64 {
    i64::from(row.value(lane)) as u64 & there
}

/// Returns the decimal in a lane and, if its exponent is not constant, the next one.
#[inline(always)]
fn decimal(row: RowRef<'_>, at: u8, exponent: Option<i8>, there: u64) -> Decimal {
    let (mantissa, exponent) = match exponent {
        Some(exponent) => (lane(row, at, there), exponent & there as i8),
        None => {
            let mantissa = lane(row, at.wrapping_add(1), there);
            (mantissa, lane(row, at, there) as i8)
        }
    };
    let mantissa = mantissa as i64;
    Decimal { mantissa, exponent }
}

/// Writes a string from its lane.
#[inline(always)]
fn text(packed: u64, pen: &mut Pen<'_>) {
    let (chars, len) = RowRef::chars(packed as i32);
    pen.short_string(u32::from_le_bytes(chars).into(), len);
}

fn exact(value: Decimal, pen: &mut Pen<'_>) {
    pen.word(value.mantissa as u64, 8);
    pen.word(i64::from(value.exponent) as u64 & 0xffff_ffff, 4);
}
