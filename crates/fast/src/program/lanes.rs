//! Bodies that are segments, which a vector kernel does in lanes.

use fanfare_wire::lanes::{self, LaneKind, LaneOperator, MAX_LANES, Plan, Row};

use super::visit::{Emit, EmitKind, NO_LANE, VisitPlan};
use super::{Body, DecimalOp, FieldId, IntOp, Op, Program, Reset, TemplateProgram, TextOp};
use crate::state::State;
use crate::template::OperatorKind;
use crate::value::{Decimal, EXPONENTS, TextType};

/// The least number of lanes that is worth a kernel.
const WORTH: usize = 3;

/// A body that is done in lanes.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) plan: Plan,
    pub(crate) visits: VisitPlan,
    /// The lane of the sequence's length, if the last op is a sequence.
    pub(crate) length: Option<u8>,
    /// The lanes that hold fewer values than others of their kind.
    pub(crate) narrow: Box<[Narrow]>,
    /// The bytes that the strings count for against [`crate::Limits::texts`]: those of the constant
    /// ones, and the most of all.
    pub(crate) constant_texts: usize,
    pub(crate) most_texts: usize,
}

/// The least and the greatest value of a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Narrow {
    lane: u8,
    low: i64,
    high: i64,
}

impl Segment {
    /// Returns whether the narrow lanes hold the values of a row.
    #[inline(never)]
    pub(crate) fn is_within(&self, row: &Row) -> bool {
        self.narrow.iter().all(|narrow| {
            let lane = usize::from(narrow.lane) % MAX_LANES;
            let value = i64::from(row.values[lane]);
            row.present >> lane & 1 == 0 || (narrow.low..=narrow.high).contains(&value)
        })
    }

    /// Returns what the strings of a row count for.
    #[inline(always)]
    pub(crate) fn texts(&self, row: &Row) -> usize {
        let texts = match self.plan.text() {
            0 => 0,
            text => (row.present & text).count_ones(),
        };
        self.constant_texts + texts as usize * lanes::MAX_CHARS
    }
}

/// Returns the lanes that hold fewer values than others of their kind (see `encode::gather`).
fn narrow(plan: &Plan, visits: &VisitPlan) -> Box<[Narrow]> {
    let mut narrow = Vec::new();
    for emit in &visits.emits {
        let signed = (-(1 << 30), (1 << 30) - 1);
        let exponent = ((*EXPONENTS.start()).into(), (*EXPONENTS.end()).into());
        let all: &[(i64, i64)] = match emit.kind {
            EmitKind::Unsigned => &[(0, (1 << 31) - 1)],
            EmitKind::Ascii => &[(0, (1 << 28) - 1)],
            EmitKind::Signed | EmitKind::Mantissa => &[signed],
            EmitKind::Decimal => &[exponent, signed],
            _ => &[],
        };
        for (lane, (least, most)) in (emit.lane..).zip(all) {
            let Some((low, high)) = plan.limits(lane.into()) else {
                continue;
            };
            if low > *least || high < *most {
                narrow.push(Narrow { lane, low, high });
            }
        }
    }
    narrow.into()
}

/// A template that is one segment, perhaps followed by a sequence.
#[derive(Debug, Clone)]
pub(crate) struct Flat {
    /// A copy of the segment, for quick access.
    pub(crate) segment: Segment,
    pub(crate) template: u32,
    /// The number of the segment.
    pub(crate) head: u32,
    /// The number of fields that the segment counts for against [`crate::Limits::fields`].
    pub(crate) fields: u32,
    /// Whether dictionaries are reset first.
    pub(crate) resets: bool,
    /// The bytes before the segment's values that name the template, for
    /// [`lanes::LaneKernel::encode`]; 0 if they are more than three, or the template has no
    /// identifier.
    pub(crate) front: u32,
    pub(crate) entry: Option<Entry>,
}

/// An entry that is one segment.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// A copy of the segment, for quick access.
    pub(crate) at_hand: Segment,
    pub(crate) field: FieldId,
    pub(crate) body: Body,
    /// The number of the segment.
    pub(crate) segment: u32,
    /// The lane of the sequence's length.
    pub(crate) length: u8,
    /// The number of fields that an entry counts for, as in [`Flat`].
    pub(crate) fields: u32,
}

/// Returns the flat form of a template, if it has one.
pub(super) fn flat(program: &Program, template: &TemplateProgram) -> Option<Flat> {
    let body = template.body;
    let head = program.segment_of(body)?;
    let segment = program.segment(head);
    let entry = match (segment.length, program.op_at(body.end.checked_sub(1)?)) {
        (None, _) => None,
        (Some(length), Op::Sequence { field, body, .. }) => {
            let segment = program.segment_of(*body)?;
            if program.segment(segment).length.is_some() || body.bits == 0 {
                return None;
            }
            let mut at_hand = program.segment(segment).clone();
            at_hand.visits.sequence = Some(*field);
            Some(Entry {
                at_hand,
                length,
                field: *field,
                body: *body,
                segment,
                fields: body.counted(),
            })
        }
        _ => return None,
    };
    (template.reset != Reset::All).then_some(Flat {
        segment: segment.clone(),
        template: template.index,
        head,
        fields: body.counted(),
        resets: template.reset == Reset::Dictionaries,
        front: template.id.map_or(0, front),
        entry,
    })
}

/// Returns a template identifier as a kernel writes it, or 0 if it takes more than three bytes.
const fn front(id: u32) -> u32 {
    match id {
        0..0x80 => 1 << 24 | 0x80 | id,
        0x80..0x4000 => 2 << 24 | (0x80 | id & 0x7f) << 8 | id >> 7,
        0x4000..0x20_0000 => 3 << 24 | (0x80 | id & 0x7f) << 16 | (id >> 7 & 0x7f) << 8 | id >> 14,
        _ => 0,
    }
}

/// Adds the segment of a body to the program, and returns its number, or `None` if the body is no
/// segment. `of_template` tells whether it is the body of a template.
pub(super) fn segment(program: &mut Program, body: Body, of_template: bool) -> Option<u32> {
    let segment = gathered(program, body)?.close(program, of_template)?;
    program.segments.push(segment);
    Some(program.segments.len() as u32 - 1)
}

/// Returns the lanes of the ops of a body, or `None` if an op cannot be in a lane, or the lanes are
/// too many or too few.
fn gathered(program: &Program, body: Body) -> Option<Open> {
    let finder = Finder { program };
    let mut open = Open::default();
    for op in program.ops(body) {
        // An op after a sequence has no place in the segment.
        if open.length.is_some() {
            return None;
        }
        let found = finder.in_lanes(op)?;
        if !open.fits(&found.lanes) {
            return None;
        }
        open.constant_texts += found.constant_texts;
        open.emits.extend(found.emit);
        if matches!(op, Op::Sequence { .. }) {
            open.length = found.lanes.first().map(|lane| lane.column);
        }
        open.lanes.extend(found.lanes);
    }
    (open.lanes.len() >= WORTH).then_some(open)
}

/// A segment that is being gathered.
#[derive(Default)]
struct Open {
    lanes: Vec<lanes::Lane>,
    /// The fields for visitors, with columns instead of lanes.
    emits: Vec<(Emit, u32)>,
    length: Option<u32>,
    constant_texts: usize,
}

struct Finder<'p> {
    program: &'p Program,
}

/// An op in lanes.
#[derive(Default)]
struct InLanes {
    lanes: Vec<lanes::Lane>,
    emit: Option<(Emit, u32)>,
    constant_texts: usize,
}

impl Open {
    /// Returns whether these lanes can follow the gathered ones.
    fn fits(&self, more: &[lanes::Lane]) -> bool {
        let (Some(first), Some(last)) = (self.lanes.first(), self.lanes.last()) else {
            return true;
        };
        let base = first.column & !15;
        more.iter().all(|lane| {
            let span = (lane.column + 1).saturating_sub(base);
            lane.column > last.column && span as usize <= MAX_LANES && base % 64 + span <= 64
        })
    }

    fn close(self, program: &Program, of_template: bool) -> Option<Segment> {
        // The first bit of a template's presence map is the identifier's.
        let plan = Plan::new(&self.lanes, u32::from(of_template))?;
        let texts = plan.text().count_ones() as usize;
        let emits = self.emits.into_iter().map(|(mut emit, column)| {
            if emit.lane != NO_LANE {
                emit.lane = plan.lane_of(column);
            }
            emit
        });
        let visits = VisitPlan::new(program, emits.collect());
        Some(Segment {
            narrow: narrow(&plan, &visits),
            visits,
            length: self.length.map(|column| plan.lane_of(column)),
            constant_texts: self.constant_texts,
            most_texts: self.constant_texts + texts * lanes::MAX_CHARS,
            plan,
        })
    }
}

impl Finder<'_> {
    /// Returns the op in lanes, if it can be.
    fn in_lanes(&self, op: &Op) -> Option<InLanes> {
        match op {
            Op::Int(op) => self.int(op),
            Op::Text(op) => self.text(op),
            Op::Decimal(op) => self.decimal(op),
            Op::SplitDecimal {
                field,
                exponent,
                mantissa,
            } => self.split(*field, exponent, mantissa),
            Op::Sequence { length, .. } if length.operator != OperatorKind::Constant => {
                let lanes = vec![self.int_lane(length)?];
                Some(InLanes {
                    lanes,
                    ..InLanes::default()
                })
            }
            _ => None,
        }
    }

    fn int(&self, op: &IntOp) -> Option<InLanes> {
        let signed = op.ty.is_signed();
        if op.operator == OperatorKind::Constant && !op.optional {
            let kind = match signed {
                true => EmitKind::SignedConstant,
                false => EmitKind::UnsignedConstant,
            };
            let mantissa = op.initial? as i64;
            return Some(InLanes::constant(
                op.field,
                kind,
                Decimal {
                    mantissa,
                    exponent: 0,
                },
            ));
        }
        let kind = match signed {
            true => EmitKind::Signed,
            false => EmitKind::Unsigned,
        };
        // Without a difference, a 64-bit number is one that does not fit into a lane, mostly.
        let differs = matches!(op.operator, OperatorKind::Delta | OperatorKind::Increment);
        if op.ty.bits() == 64 && !differs {
            return None;
        }
        let lane = self.int_lane(op)?;
        Some(InLanes::new(op.field, kind, vec![lane]))
    }

    fn int_lane(&self, op: &IntOp) -> Option<lanes::Lane> {
        let kind = match op.ty.is_signed() {
            true => LaneKind::Signed(op.ty.min() as i64, op.ty.max() as i64),
            false => LaneKind::Unsigned(op.ty.max() as u64),
        };
        Some(lanes::Lane {
            column: self.column(op.operator, op.slot.0, State::int(op.ty))?,
            kind,
            operator: operator(op.operator)?,
            optional: op.optional,
            initial: op.initial,
            leads: false,
        })
    }

    fn text(&self, op: &TextOp) -> Option<InLanes> {
        let initial = op.initial.map(|text| self.program.text(text));
        if op.operator == OperatorKind::Constant && !op.optional {
            let constant = Decimal {
                mantissa: i64::from(op.initial?.0),
                exponent: 0,
            };
            let kind = match op.ty {
                TextType::Ascii => EmitKind::AsciiConstant,
                TextType::Unicode => EmitKind::UnicodeConstant,
                TextType::Bytes => EmitKind::BytesConstant,
            };
            let mut found = InLanes::constant(op.field, kind, constant);
            found.constant_texts = initial?.len().max(lanes::MAX_CHARS);
            return Some(found);
        }
        if op.ty != TextType::Ascii || op.operator == OperatorKind::Delta {
            return None;
        }
        let initial = match initial {
            Some(text) => Some(lanes::pack(text)?),
            None => None,
        };
        let lane = lanes::Lane {
            column: self.column(op.operator, op.slot.0, State::text(op.ty))?,
            kind: LaneKind::Text,
            operator: operator(op.operator)?,
            optional: op.optional,
            initial,
            leads: false,
        };
        Some(InLanes::new(op.field, EmitKind::Ascii, vec![lane]))
    }

    /// Returns a decimal without an operator, or a constant one.
    fn decimal(&self, op: &DecimalOp) -> Option<InLanes> {
        if op.operator == OperatorKind::Constant && !op.optional {
            let kind = EmitKind::DecimalConstant;
            return Some(InLanes::constant(op.field, kind, op.initial?));
        }
        if op.operator != OperatorKind::None {
            return None;
        }
        let lane = |column, kind| lanes::Lane {
            column,
            kind,
            operator: LaneOperator::None,
            optional: false,
            initial: None,
            leads: false,
        };
        let mut exponent = lane(op.slot.0, exponents());
        (exponent.optional, exponent.leads) = (op.optional, op.optional);
        let mantissa = lane(op.slot.0 + 1, LaneKind::Signed(i64::MIN, i64::MAX));
        let lanes = vec![exponent, mantissa];
        Some(InLanes::new(op.field, EmitKind::Decimal, lanes))
    }

    fn split(&self, field: FieldId, exponent: &IntOp, mantissa: &IntOp) -> Option<InLanes> {
        if mantissa.operator == OperatorKind::Constant {
            return None;
        }
        let second = self.int_lane(mantissa)?;
        if exponent.operator == OperatorKind::Constant && !exponent.optional {
            let mut found = InLanes::new(field, EmitKind::Mantissa, vec![second]);
            let exponent = exponent.initial? as i64;
            if !EXPONENTS.contains(&i32::try_from(exponent).ok()?) {
                return None;
            }
            found.emit.as_mut()?.0.constant.exponent = exponent as i8;
            return Some(found);
        }
        let mut first = self.int_lane(exponent)?;
        // Whether there is a bit for the mantissa must not depend on the exponent; and whether
        // there is a mantissa not on previous values.
        let known = matches!(
            exponent.operator,
            OperatorKind::None | OperatorKind::Default
        );
        if exponent.optional && (!known || mantissa.operator.takes_bit(false)) {
            return None;
        }
        let in_range = |initial: u64| EXPONENTS.contains(&(initial as i64 as i32));
        if !exponent.initial.is_none_or(in_range) || second.column != first.column + 1 {
            return None;
        }
        first.kind = exponents();
        first.leads = exponent.optional;
        Some(InLanes::new(field, EmitKind::Decimal, vec![first, second]))
    }

    /// Returns the column of an op, if all ops that use the column have the same type.
    fn column(&self, operator: OperatorKind, slot: u32, state: State) -> Option<u32> {
        let same = self.program.column_states.get(slot as usize) == Some(&state);
        (!operator.uses_dictionary() || same).then_some(slot)
    }
}

impl InLanes {
    fn new(field: FieldId, kind: EmitKind, lanes: Vec<lanes::Lane>) -> Self {
        let column = lanes.first().map_or(0, |lane| lane.column);
        let emit = Emit {
            field: field.0,
            lane: 0,
            kind,
            constant: Decimal::default(),
        };
        Self {
            lanes,
            emit: Some((emit, column)),
            constant_texts: 0,
        }
    }

    fn constant(field: FieldId, kind: EmitKind, constant: Decimal) -> Self {
        let emit = Emit {
            field: field.0,
            lane: NO_LANE,
            kind,
            constant,
        };
        Self {
            lanes: Vec::new(),
            emit: Some((emit, 0)),
            constant_texts: 0,
        }
    }
}

/// Returns the exponents that every decoder takes. A lenient decoder takes more, but not in lanes.
fn exponents() -> LaneKind {
    LaneKind::Signed((*EXPONENTS.start()).into(), (*EXPONENTS.end()).into())
}

fn operator(operator: OperatorKind) -> Option<LaneOperator> {
    Some(match operator {
        OperatorKind::None => LaneOperator::None,
        OperatorKind::Constant => LaneOperator::Constant,
        OperatorKind::Default => LaneOperator::Default,
        OperatorKind::Copy => LaneOperator::Copy,
        OperatorKind::Increment => LaneOperator::Increment,
        OperatorKind::Delta => LaneOperator::Delta,
        OperatorKind::Tail => return None,
    })
}
