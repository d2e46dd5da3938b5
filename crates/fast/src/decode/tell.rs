//! Tells a visitor of the fields of a row.

use fanfare_wire::lanes::{self, MAX_LANES, Row};

use crate::program::lanes::{Call, EmitKind, NO_LANE, Pair, Segment, Tell, with_pairs};
use crate::program::{Field, Program};
use crate::value::Decimal;
use crate::visitor::Visitor;

/// Tells of the fields of a row. It is not inlined, so that the compiler knows that row and
/// visitor have nothing in common: what the visitor keeps can stay in registers.
#[inline(never)]
pub(crate) fn tell<V: Visitor>(program: &Program, segment: &Segment, row: &Row, visitor: &mut V) {
    match Pairs::of_segment(program, segment) {
        Some(pairs) if pairs.are_in(row) => pairs.tell(program, row, visitor),
        _ => parts(program, segment, row, visitor),
    }
}

/// Tells of the fields of a row that are not all in pairs, or not all there.
#[inline(never)]
fn parts<V: Visitor>(program: &Program, segment: &Segment, row: &Row, visitor: &mut V) {
    for tell in &segment.tells {
        each(program, tell, row, visitor);
    }
}

/// Tells of the rows of entries, which have the numbers from `index` on.
#[inline(never)]
pub(super) fn tell_entries<V: Visitor>(
    program: &Program,
    (field, segment): (&Field, &Segment),
    index: u32,
    rows: &[Row],
    visitor: &mut V,
) {
    let pairs = Pairs::of_segment(program, segment);
    for (index, row) in (index..).zip(rows) {
        visitor.begin_entry(field, index);
        match pairs {
            Some(pairs) if pairs.are_in(row) => pairs.tell(program, row, visitor),
            _ => parts(program, segment, row, visitor),
        }
        visitor.end_entry(field);
    }
}

/// Consecutive fields, two at a time: so it is only half as often found out what they are.
#[derive(Clone, Copy)]
struct Pairs<'p> {
    calls: &'p [[Call; 2]],
    fields: &'p [[Field; 2]],
    present: u64,
}

impl<'p> Pairs<'p> {
    /// Those of a segment, if they are all of it.
    #[inline(always)]
    fn of_segment(program: &'p Program, segment: &'p Segment) -> Option<Self> {
        let [tell] = &*segment.tells else {
            return None;
        };
        let first = tell.first_field as usize;
        // If nothing is behind the last one, its fellow is a field that is not told of.
        let fields = program.fields().get(first..first + 2 * tell.pairs.len())?;
        (!fields.is_empty()).then_some(Self {
            calls: &tell.pairs,
            fields: fields.as_chunks().0,
            present: tell.present & !(1 << NO_LANE),
        })
    }

    /// Whether none of them is absent.
    #[inline(always)]
    const fn are_in(&self, row: &Row) -> bool {
        self.present & !row.present == 0
    }

    /// Tells of them, who are all there. There is no call in this loop but of the visitor.
    #[inline(always)]
    fn tell<V: Visitor>(&self, program: &Program, row: &Row, visitor: &mut V) {
        for (calls, fields) in self.calls.iter().zip(self.fields) {
            pair(program, calls, fields, &row.values, visitor);
        }
    }
}

/// Two fields that are there: each pair of kinds has code of its own.
#[inline(always)]
fn pair<V: Visitor>(
    program: &Program,
    calls: &[Call; 2],
    fields: &[Field; 2],
    row: &[i32; MAX_LANES],
    visitor: &mut V,
) {
    macro_rules! known_pairs {
        ($($pair:ident: $first:ident, $second:ident;)*) => {
            match calls[0].pair {
                $(Pair::$pair => {
                    let (first, second) = (EmitKind::$first, EmitKind::$second);
                    known(program, (&calls[0], first), &fields[0], row, visitor);
                    known(program, (&calls[1], second), &fields[1], row, visitor);
                })*
            }
        };
    }
    with_pairs!(known_pairs);
}

/// Fields of which some may be absent, or of rare kinds.
#[inline]
fn each<V: Visitor>(program: &Program, tell: &Tell, row: &Row, visitor: &mut V) {
    let first = tell.first_field as usize;
    let fields = program.fields().get(first..).unwrap_or_default();
    let present = row.present | 1 << NO_LANE;
    for (emit, field) in tell.emits.iter().zip(fields) {
        if present >> (emit.lane % 64) & 1 == 0 {
            visitor.absent(field);
        } else {
            known(
                program,
                (&emit.call, emit.call.kind),
                field,
                &row.values,
                visitor,
            );
        }
    }
}

/// A field that is there, of a kind that may be known when this is compiled.
#[inline(always)]
fn known<V: Visitor>(
    program: &Program,
    (call, kind): (&Call, EmitKind),
    field: &Field,
    row: &[i32; MAX_LANES],
    visitor: &mut V,
) {
    let value = || i64::from(row[call.at as usize]);
    let text = |number: i64| program.text_at(number as usize);
    let (mantissa, exponent) = (call.constant, call.exponent);
    match kind {
        EmitKind::Unsigned => visitor.unsigned(field, value() as u64),
        EmitKind::Signed => visitor.signed(field, value()),
        EmitKind::Ascii => match value() {
            char @ 1..0x80 => visitor.ascii(field, &[char as u8]),
            packed => {
                let (chars, len) = lanes::unpack(packed as u64);
                visitor.ascii(field, chars.get(..len).unwrap_or_default());
            }
        },
        EmitKind::Decimal => {
            let (exponent, mantissa) = (value() as i8, row[call.next as usize].into());
            visitor.decimal(field, Decimal { mantissa, exponent });
        }
        EmitKind::Mantissa => {
            let mantissa = value();
            visitor.decimal(field, Decimal { mantissa, exponent });
        }
        EmitKind::UnsignedConstant => visitor.unsigned(field, mantissa as u64),
        EmitKind::SignedConstant => visitor.signed(field, mantissa),
        EmitKind::DecimalConstant => visitor.decimal(field, Decimal { mantissa, exponent }),
        EmitKind::AsciiConstant => visitor.ascii(field, text(mantissa)),
        EmitKind::UnicodeConstant => visitor.unicode(field, text(mantissa)),
        EmitKind::BytesConstant => visitor.bytes(field, text(mantissa)),
        EmitKind::Nothing => {}
    }
}
