//! The places of fields in the rows of their templates.

use std::fmt::{self, Write as _};

use fanfare_wire::lanes::Plan;

use super::lanes::Flat;
use super::visit::{Emit, EmitKind, NO_LANE};
use super::{Program, TemplateProgram, TextId};
use crate::value::Decimal;

/// The place of a field in the rows of a [`crate::Record`], with the way to read it. A place is
/// computed once, when the templates are loaded, and does not change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// The index of the template.
    pub template: u32,
    /// Whether the field is in the rows of the entries of the message's sequence, not in the
    /// message's own.
    pub in_entry: bool,
    /// The lane, which is also the number of its bit in [`crate::RowRef::present`]. A constant that
    /// is always present has [`Self::NO_LANE`].
    pub lane: u8,
    /// The way to read the value.
    pub reading: Reading,
}

impl Place {
    /// The lane of a field without one. The presence bit of this number is always set.
    pub const NO_LANE: u8 = NO_LANE;
}

/// The way to read the value of a field from its lane ([`crate::RowRef::value`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// An unsigned integer.
    Unsigned,
    /// A signed integer.
    Signed,
    /// An ASCII string ([`crate::RowRef::chars`]).
    Ascii,
    /// The exponent of a decimal, whose mantissa is in the next lane.
    Decimal,
    /// The mantissa of a decimal with this exponent.
    Mantissa(i8),
    /// A constant unsigned integer.
    ConstantUnsigned(u64),
    /// A constant signed integer.
    ConstantSigned(i64),
    /// A constant decimal.
    ConstantDecimal(Decimal),
    /// A constant string or byte vector ([`Program::text`]).
    ConstantText(TextId),
    /// The number of entries of the sequence.
    Length,
}

impl Reading {
    fn of(emit: &Emit) -> Self {
        let Decimal { mantissa, exponent } = emit.constant;
        match emit.kind {
            EmitKind::Unsigned => Self::Unsigned,
            EmitKind::Signed => Self::Signed,
            EmitKind::Ascii => Self::Ascii,
            EmitKind::Decimal => Self::Decimal,
            EmitKind::Mantissa => Self::Mantissa(exponent),
            EmitKind::UnsignedConstant => Self::ConstantUnsigned(mantissa as u64),
            EmitKind::SignedConstant => Self::ConstantSigned(mantissa),
            EmitKind::DecimalConstant => Self::ConstantDecimal(Decimal { mantissa, exponent }),
            EmitKind::AsciiConstant | EmitKind::UnicodeConstant | EmitKind::BytesConstant => {
                Self::ConstantText(TextId(mantissa as u32))
            }
        }
    }
}

impl Program {
    /// Returns a hash of the places of all fields and of the limits of their values. Programs whose
    /// hashes are the same have the same layout, except by a rare accident. The hash does not
    /// depend on the build. Each call computes it again.
    #[must_use]
    pub fn layout(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        for place in &self.places {
            let lane = |place: &Place| usize::from(place.lane);
            let limits = place.as_ref().map(|place| {
                let plan = self.plan(place)?;
                Some([plan.limits(lane(place)), plan.limits(lane(place) + 1)])
            });
            // Writing to it does not fail.
            _ = write!(hash, "{place:?}{limits:?}");
        }
        hash.0
    }

    /// Returns a hash of all ops and of the number of columns of previous values. Programs whose
    /// hashes are the same have the same ops, except by a rare accident. The hash does not depend
    /// on the build. Each call computes it again.
    #[must_use]
    pub fn code(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        // Writing to it does not fail.
        _ = write!(hash, "{:?}{}", self.ops, self.columns());
        for template in &self.templates {
            let TemplateProgram {
                id, reset, body, ..
            } = template;
            _ = write!(hash, "{id:?}{reset:?}{body:?}");
        }
        for text in &self.texts {
            _ = write!(hash, "{text:?}");
        }
        hash.0
    }

    /// Returns the plan of the row in which a field is.
    pub(crate) fn plan(&self, place: &Place) -> Option<&Plan> {
        let flat = self.flat_of(place.template)?;
        let segment = match place.in_entry {
            true => flat.entry.as_ref()?.segment,
            false => flat.head,
        };
        Some(&self.segment(segment).plan)
    }
}

/// The hash of Fowler, Noll and Vo (1a).
struct Fnv(u64);

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Ok(())
    }
}

/// Returns the places of the fields of flat templates, by field.
pub(super) fn places(program: &Program, flats: &[Flat]) -> Vec<Option<Place>> {
    let mut places = vec![None; program.fields.len()];
    for flat in flats {
        let template = flat.template;
        let mut add = |segment: u32, in_entry| {
            for emit in &program.segment(segment).visits.emits {
                places[emit.field as usize] = Some(Place {
                    template,
                    in_entry,
                    lane: emit.lane,
                    reading: Reading::of(emit),
                });
            }
        };
        add(flat.head, false);
        let Some(entry) = &flat.entry else {
            continue;
        };
        add(entry.segment, true);
        places[entry.field.index()] = program.segment(flat.head).length.map(|lane| Place {
            template,
            in_entry: false,
            lane,
            reading: Reading::Length,
        });
    }
    places
}
