//! Calls of a visitor for the fields of rows.

use fanfare_wire::lanes::{self, MAX_LANES, Row, Values};

use crate::program::lanes::Segment;
use crate::program::visit::{
    Chunk, Constant, Constants, EmitKind, Kinds, MAX_FIELDS, NO_LANE, VisitPlan, letter, with_kinds,
};
use crate::program::{Field, Program};
use crate::value::Decimal;
use crate::visitor::Visitor;

/// Calls a visitor for the fields of a row.
#[inline(always)]
pub(crate) fn visit_row<V: Visitor>(
    program: &Program,
    segment: &Segment,
    row: &Row,
    visitor: &mut V,
) {
    visit_rows(
        program,
        &segment.visits,
        0,
        std::slice::from_ref(row),
        visitor,
    );
}

/// Calls a visitor for the fields of rows. If the rows are entries of a sequence, of which the
/// first has this index, it also calls the visitor for each entry. It is not inlined, so that the
/// compiler knows that the rows and the visitor have nothing in common. The arguments go in
/// registers, and another call would be in the way of what stays in them.
#[inline(never)]
pub(crate) fn visit_rows<V: Visitor>(
    program: &Program,
    plan: &VisitPlan,
    first: u32,
    rows: &[Row],
    visitor: &mut V,
) {
    let Some(spare) = program.spare_fields() else {
        return;
    };
    let teller = Teller {
        fields: program.fields(),
        spare,
        constants: &plan.constants,
    };
    let mut left = rows;
    while let [row, rest @ ..] = left {
        let index = first + (rows.len() - left.len()) as u32;
        if plan.present & !row.present != 0 {
            return not_whole(program, plan, index, left, visitor);
        }
        if let Some(sequence) = plan.sequence {
            visitor.begin_entry(teller.field(sequence.index()), index);
        }
        for chunk in &plan.chunks {
            teller.chunk(chunk, &row.values, visitor);
        }
        if let Some(sequence) = plan.sequence {
            visitor.end_entry(teller.field(sequence.index()));
        }
        left = rest;
    }
}

/// Calls a visitor for rows of which the first has absent fields, or for which there are no chunks.
#[inline(never)]
fn not_whole<V: Visitor>(
    program: &Program,
    plan: &VisitPlan,
    first: u32,
    rows: &[Row],
    visitor: &mut V,
) {
    for (row, index) in rows.iter().zip(first..) {
        if plan.present & !row.present == 0 {
            visit_rows(program, plan, index, std::slice::from_ref(row), visitor);
            continue;
        }
        let field = plan.sequence.map(|sequence| program.field(sequence));
        if let Some(field) = field {
            visitor.begin_entry(field, index);
        }
        each(program, plan, row, visitor);
        if let Some(field) = field {
            visitor.end_entry(field);
        }
    }
}

/// Calls a visitor for fields of which some may be absent.
fn each<V: Visitor>(program: &Program, plan: &VisitPlan, row: &Row, visitor: &mut V) {
    let present = row.present | 1 << NO_LANE;
    let lane = |lane: u8| i64::from(row.values[usize::from(lane) % MAX_LANES]);
    for emit in &plan.emits {
        let Some(field) = program.fields().get(emit.field as usize) else {
            continue;
        };
        if present >> (emit.lane % 64) & 1 == 0 {
            visitor.absent(field);
            continue;
        }
        let Decimal { mantissa, exponent } = emit.constant;
        let own = lane(emit.lane);
        let (number, exponent) = match emit.kind {
            EmitKind::Unsigned | EmitKind::Signed | EmitKind::Ascii => (own, 0),
            EmitKind::Mantissa => (own, exponent),
            EmitKind::Decimal => (lane(emit.lane.wrapping_add(1)), own as i8),
            _ => (mantissa, exponent),
        };
        let value = Value {
            number,
            exponent,
            text: program.text_at(mantissa as usize),
        };
        value.visit(emit.kind, field, visitor);
    }
}

/// The tables for calling a visitor for rows.
#[derive(Clone, Copy)]
struct Teller<'p> {
    fields: &'p [Field],
    /// Arbitrary fields, which stand in for ones that do not exist.
    spare: &'p [Field; MAX_FIELDS],
    constants: &'p Constants,
}

impl<'p> Teller<'p> {
    /// Returns the field of this number, which must be one of a field.
    #[inline(always)]
    fn field(&self, number: usize) -> &'p Field {
        self.fields.get(number).unwrap_or(&self.spare[0])
    }

    /// Returns the fields of a chunk. Nothing is looked up for visitors that make no use of them,
    /// which is why one function alone returns them.
    #[inline(always)]
    fn fields<const N: usize>(&self, chunk: &Chunk) -> Option<&'p [Field; N]> {
        let own = self.fields.get(chunk.field as usize..);
        let own = own.and_then(<[_]>::first_chunk);
        own.or(self.spare.first_chunk())
    }

    /// Calls a visitor for the fields of a chunk, none of which is absent.
    #[inline(always)]
    fn chunk<V: Visitor>(&self, chunk: &Chunk, row: &Values, visitor: &mut V) {
        macro_rules! known_kinds {
            ($($name:ident: $($kind:ident)*;)*) => {
                match chunk.kinds {
                    $(Kinds::$name => {
                        const KINDS: &[EmitKind] = &[$(letter::$kind,)*];
                        let Some(fields) = self.fields::<{ KINDS.len() }>(chunk) else {
                            return;
                        };
                        let mut next = Next {
                            row,
                            lane: usize::from(chunk.lane) % MAX_LANES,
                            constants: self.constants,
                            constant: usize::from(chunk.constant) % MAX_LANES,
                        };
                        let mut number = 0;
                        $(
                            let value = next.value(letter::$kind);
                            value.visit(letter::$kind, &fields[number], visitor);
                            number += 1;
                        )*
                        debug_assert_eq!(number, KINDS.len());
                    })*
                }
            };
        }
        with_kinds!(known_kinds);
    }
}

/// The position in a chunk.
struct Next<'r> {
    row: &'r Values,
    lane: usize,
    constants: &'r Constants,
    constant: usize,
}

impl<'r> Next<'r> {
    #[inline(always)]
    fn lane(&mut self) -> i64 {
        let value = self.row[self.lane];
        self.lane += 1;
        value.into()
    }

    #[inline(always)]
    fn constant(&mut self) -> &'r Constant {
        let constant = &self.constants[self.constant];
        self.constant += 1;
        constant
    }

    /// Returns the value of the next field, of a kind that is known when the code is compiled.
    #[inline(always)]
    fn value(&mut self, kind: EmitKind) -> Value<'r> {
        let mut value = Value::default();
        match kind {
            EmitKind::Unsigned | EmitKind::Signed | EmitKind::Ascii => value.number = self.lane(),
            EmitKind::Decimal => {
                value.exponent = self.lane() as i8;
                value.number = self.lane();
            }
            EmitKind::Mantissa => {
                value.exponent = self.constant().number as i8;
                value.number = self.lane();
            }
            EmitKind::UnsignedConstant | EmitKind::SignedConstant => {
                value.number = self.constant().number;
            }
            EmitKind::DecimalConstant => {
                value.exponent = self.constant().number as i8;
                value.number = self.constant().number;
            }
            EmitKind::AsciiConstant | EmitKind::UnicodeConstant | EmitKind::BytesConstant => {
                value.text = &self.constant().text;
            }
        }
        value
    }
}

/// A value of any kind.
#[derive(Default)]
struct Value<'r> {
    /// The mantissa of a decimal, a packed string, or an integer.
    number: i64,
    exponent: i8,
    /// The text of a constant.
    text: &'r [u8],
}

impl Value<'_> {
    #[inline(always)]
    fn visit<V: Visitor>(&self, kind: EmitKind, field: &Field, visitor: &mut V) {
        match kind {
            EmitKind::Unsigned | EmitKind::UnsignedConstant => {
                visitor.unsigned(field, self.number as u64);
            }
            EmitKind::Signed | EmitKind::SignedConstant => visitor.signed(field, self.number),
            EmitKind::Ascii => match self.number {
                char @ 1..0x80 => visitor.ascii(field, &[char as u8]),
                packed => {
                    let (chars, len) = lanes::unpack(packed as u64);
                    visitor.ascii(field, chars.get(..len).unwrap_or_default());
                }
            },
            EmitKind::Decimal | EmitKind::Mantissa | EmitKind::DecimalConstant => {
                let (mantissa, exponent) = (self.number, self.exponent);
                visitor.decimal(field, Decimal { mantissa, exponent });
            }
            EmitKind::AsciiConstant => visitor.ascii(field, self.text),
            EmitKind::UnicodeConstant => visitor.unicode(field, self.text),
            EmitKind::BytesConstant => visitor.bytes(field, self.text),
        }
    }
}
