//! Tells a visitor of the fields of rows.

use fanfare_wire::lanes::{self, MAX_LANES, Row, Values};

use crate::program::lanes::Segment;
use crate::program::tell::{Chunk, Constants, EmitKind, Kinds, NO_LANE, Tell, letter, with_kinds};
use crate::program::{Field, Program};
use crate::value::Decimal;
use crate::visitor::Visitor;

/// Tells of the fields of a row.
#[inline(always)]
pub(crate) fn tell<V: Visitor>(program: &Program, segment: &Segment, row: &Row, visitor: &mut V) {
    let rows = std::slice::from_ref(row);
    tell_rows(program, &segment.tell, (None, 0), rows, visitor);
}

/// Tells of the fields of rows; with a sequence, as of its entries, which have the numbers from
/// this index on. It is not inlined, so that the compiler knows that rows and visitor have nothing
/// in common.
#[inline(never)]
pub(crate) fn tell_rows<V: Visitor>(
    program: &Program,
    tell: &Tell,
    (sequence, first): (Option<&Field>, u32),
    rows: &[Row],
    visitor: &mut V,
) {
    let [some_field, ..] = program.fields() else {
        return;
    };
    let teller = Teller {
        program,
        some_field,
        constants: &tell.constants,
    };
    for (row, index) in rows.iter().zip(first..) {
        if let Some(field) = sequence {
            visitor.begin_entry(field, index);
        }
        if tell.present & !row.present == 0 {
            for chunk in &tell.chunks {
                teller.chunk(chunk, &row.values, visitor);
            }
        } else {
            each(program, tell, row, visitor);
        }
        if let Some(field) = sequence {
            visitor.end_entry(field);
        }
    }
}

/// Fields of which some may be absent.
#[inline(never)]
fn each<V: Visitor>(program: &Program, tell: &Tell, row: &Row, visitor: &mut V) {
    let [some_field, ..] = program.fields() else {
        return;
    };
    let teller = Teller {
        program,
        some_field,
        constants: &tell.constants,
    };
    let present = row.present | 1 << NO_LANE;
    for emit in &tell.emits {
        let field = teller.field(emit.field as usize);
        if present >> (emit.lane % 64) & 1 == 0 {
            visitor.absent(field);
        } else {
            let lane = |lane: u8| i64::from(row.values[usize::from(lane) % MAX_LANES]);
            let Decimal { mantissa, exponent } = emit.constant;
            let [first, second] = match emit.kind {
                EmitKind::Decimal => [lane(emit.lane), lane(emit.lane.wrapping_add(1))],
                EmitKind::Mantissa => [exponent.into(), lane(emit.lane)],
                EmitKind::DecimalConstant => [exponent.into(), mantissa],
                EmitKind::Unsigned | EmitKind::Signed | EmitKind::Ascii => [lane(emit.lane), 0],
                _ => [mantissa, 0],
            };
            teller.known(emit.kind, field, [first, second], visitor);
        }
    }
}

/// What telling of rows takes besides them.
#[derive(Clone, Copy)]
struct Teller<'p> {
    program: &'p Program,
    /// Any one.
    some_field: &'p Field,
    constants: &'p Constants,
}

impl<'p> Teller<'p> {
    /// The field of a number that is one of a field. That is looked up only for visitors that make
    /// use of it.
    #[inline(always)]
    fn field(&self, number: usize) -> &'p Field {
        self.program.fields().get(number).unwrap_or(self.some_field)
    }

    /// Fields that are there.
    #[inline(always)]
    fn chunk<V: Visitor>(&self, chunk: &Chunk, row: &Values, visitor: &mut V) {
        macro_rules! known_kinds {
            ($($name:ident: $($kind:ident)*;)*) => {
                match chunk.kinds {
                    $(Kinds::$name => {
                        let mut next = Next {
                            field: chunk.field as usize,
                            lane: chunk.lane as usize,
                            constant: chunk.constant as usize,
                        };
                        $(self.next(letter::$kind, &mut next, row, visitor);)*
                    })*
                }
            };
        }
        with_kinds!(known_kinds);
    }

    /// The next field of a chunk, of a kind that is known when this is compiled.
    #[inline(always)]
    fn next<V: Visitor>(&self, kind: EmitKind, next: &mut Next, row: &Values, visitor: &mut V) {
        let field = self.field(next.field);
        next.field += 1;
        let values = match kind {
            EmitKind::Unsigned | EmitKind::Signed | EmitKind::Ascii => [next.lane(row), 0],
            EmitKind::Decimal => [next.lane(row), next.lane(row)],
            EmitKind::Mantissa => [next.constant(self.constants), next.lane(row)],
            EmitKind::DecimalConstant => {
                [next.constant(self.constants), next.constant(self.constants)]
            }
            _ => [next.constant(self.constants), 0],
        };
        self.known(kind, field, values, visitor);
    }

    /// A field that is there; of a decimal the values are exponent and mantissa.
    #[inline(always)]
    fn known<V: Visitor>(
        &self,
        kind: EmitKind,
        field: &Field,
        [value, mantissa]: [i64; 2],
        visitor: &mut V,
    ) {
        let text = || self.program.text_at(value as usize);
        match kind {
            EmitKind::Unsigned | EmitKind::UnsignedConstant => {
                visitor.unsigned(field, value as u64);
            }
            EmitKind::Signed | EmitKind::SignedConstant => visitor.signed(field, value),
            EmitKind::Ascii => match value {
                char @ 1..0x80 => visitor.ascii(field, &[char as u8]),
                packed => {
                    let (chars, len) = lanes::unpack(packed as u64);
                    visitor.ascii(field, chars.get(..len).unwrap_or_default());
                }
            },
            EmitKind::Decimal | EmitKind::Mantissa | EmitKind::DecimalConstant => {
                let exponent = value as i8;
                visitor.decimal(field, Decimal { mantissa, exponent });
            }
            EmitKind::AsciiConstant => visitor.ascii(field, text()),
            EmitKind::UnicodeConstant => visitor.unicode(field, text()),
            EmitKind::BytesConstant => visitor.bytes(field, text()),
        }
    }
}

/// The next field of a chunk, with its lane and constant.
struct Next {
    field: usize,
    lane: usize,
    constant: usize,
}

impl Next {
    #[inline(always)]
    const fn lane(&mut self, row: &Values) -> i64 {
        let value = row[self.lane];
        self.lane += 1;
        value as i64
    }

    #[inline(always)]
    const fn constant(&mut self, constants: &Constants) -> i64 {
        let value = constants[self.constant];
        self.constant += 1;
        value
    }
}
