//! The calls of a visitor for the fields of a segment.

use fanfare_wire::lanes::MAX_LANES;

use super::{FieldId, Program};
use crate::node::Node;
use crate::value::Decimal;

/// The lane of a field that has a value but no lane: its presence bit is always set.
pub(crate) const NO_LANE: u8 = 63;

/// The calls for the fields of a segment, in their order.
#[derive(Debug, Clone)]
pub(crate) struct VisitPlan {
    /// The sequence of the entries, if the visitor receives it too.
    pub(crate) sequence: Option<FieldId>,
    /// The fields, one by one.
    pub(crate) emits: Box<[Emit]>,
    /// The fields, a few at a time; empty if there are too many constants.
    pub(crate) chunks: Box<[Chunk]>,
    /// The bits in [`fanfare_wire::lanes::Row::present`] without which the fields cannot be visited
    /// in chunks: those of their lanes.
    pub(crate) present: u64,
    /// The bits of all lanes, mantissas included.
    pub(crate) lanes: u64,
    pub(crate) constants: Box<Constants>,
}

/// Constants, with space after them, so that a few can be read from any index on.
pub(crate) type Constants = [Constant; MAX_LANES + 8];

/// An integer, the exponent or mantissa of a decimal, or a byte string.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constant {
    pub(crate) number: i64,
    pub(crate) text: Box<[u8]>,
    /// The node of a message with this constant. The first constant of a decimal has its mantissa
    /// too.
    pub(crate) node: Node,
}

/// One field as the visitor receives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Emit {
    pub(crate) field: u32,
    /// The field's lane. A decimal has its exponent there and its mantissa in the next lane.
    pub(crate) lane: u8,
    pub(crate) kind: EmitKind,
    /// The value of a constant, which is a number, or the exponent and mantissa of a decimal, or
    /// the number of a byte string. A decimal that always has the same exponent has only that.
    pub(crate) constant: Decimal,
}

/// The source of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmitKind {
    Unsigned,
    Ascii,
    Signed,
    /// The exponent and the mantissa, in two lanes.
    Decimal,
    UnsignedConstant,
    AsciiConstant,
    /// A constant exponent, and the mantissa in a lane.
    Mantissa,
    SignedConstant,
    DecimalConstant,
    UnicodeConstant,
    BytesConstant,
}

/// The most fields of a chunk.
pub(crate) const MAX_FIELDS: usize = 7;

/// A few consecutive fields as the visitor receives them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chunk {
    /// The number of the first field.
    pub(crate) field: u32,
    /// The kinds of the fields, and so their number.
    pub(crate) kinds: Kinds,
    /// The first of the lanes of the fields, which follow each other, and of their constants.
    pub(crate) lane: u8,
    pub(crate) constant: u8,
}

/// Passes to a macro all chunks that there are: a name, and the kinds of the fields by their
/// letters. Each chunk has code of its own for each visitor, so there are more of what is frequent.
macro_rules! with_kinds {
    ($then:ident) => {
        $then! {
            U: U; A: A; S: S; D: D; N: N; T: T; M: M; I: I; E: E; C: C; B: B;
            UU: U U; UA: U A; US: U S; UD: U D; AU: A U; AA: A A; AS: A S; AD: A D; SU: S U;
            SA: S A; SS: S S; SD: S D; DU: D U; DA: D A; DS: D S; DD: D D; NU: N U; UN: U N;
            TU: T U; TT: T T;
            NUU: N U U;
            NUUU: N U U U;
            UUU: U U U; UUA: U U A; UAU: U A U; UAA: U A A; AUU: A U U; AUA: A U A; AAU: A A U;
            AAA: A A A; DUU: D U U; DUA: D U A; DAU: D A U; DAA: D A A; UDU: U D U; UDA: U D A;
            ADU: A D U; ADA: A D A; UUD: U U D; UAD: U A D; AUD: A U D; AAD: A A D; SUU: S U U;
            SUA: S U A; SAU: S A U; SAA: S A A; USU: U S U; USA: U S A; ASU: A S U; ASA: A S A;
            UUS: U U S; UAS: U A S; AUS: A U S; AAS: A A S; TTT: T T T;
            UUUU: U U U U; UUUA: U U U A; UUAU: U U A U; UUAA: U U A A; UAUU: U A U U;
            UAUA: U A U A; UAAU: U A A U; UAAA: U A A A; AUUU: A U U U; AUUA: A U U A;
            AUAU: A U A U; AUAA: A U A A; AAUU: A A U U; AAUA: A A U A; AAAU: A A A U;
            AAAA: A A A A;
            UUUUU: U U U U U;
            UUUUUU: U U U U U U;
            UUUUUUU: U U U U U U U;
        }
    };
}
pub(crate) use with_kinds;

macro_rules! define_kinds {
    ($($name:ident: $($kind:ident)*;)*) => {
        /// The kinds of the fields of a chunk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(clippy::upper_case_acronyms, reason = "a letter for each field")]
        #[repr(u8)]
        pub(crate) enum Kinds {
            $($name,)*
        }

        impl Kinds {
            /// All kinds of chunks.
            const ALL: &[(Self, &[EmitKind])] = &[$((Self::$name, &[$(letter::$kind,)*]),)*];
        }
    };
}
with_kinds!(define_kinds);

/// The kinds of fields by their letters.
pub(crate) mod letter {
    use super::EmitKind;

    pub(crate) const U: EmitKind = EmitKind::Unsigned;
    pub(crate) const A: EmitKind = EmitKind::Ascii;
    pub(crate) const S: EmitKind = EmitKind::Signed;
    pub(crate) const D: EmitKind = EmitKind::Decimal;
    pub(crate) const N: EmitKind = EmitKind::UnsignedConstant;
    pub(crate) const T: EmitKind = EmitKind::AsciiConstant;
    pub(crate) const M: EmitKind = EmitKind::Mantissa;
    pub(crate) const I: EmitKind = EmitKind::SignedConstant;
    pub(crate) const E: EmitKind = EmitKind::DecimalConstant;
    pub(crate) const C: EmitKind = EmitKind::UnicodeConstant;
    pub(crate) const B: EmitKind = EmitKind::BytesConstant;
}

impl VisitPlan {
    /// Returns the plan for these fields.
    pub(super) fn new(program: &Program, emits: Vec<Emit>) -> Self {
        let mut constants = Vec::new();
        let mut chunks = Vec::new();
        for (kinds, emits) in cut(&emits).unwrap_or_default() {
            chunks.push(Chunk {
                field: emits[0].field,
                kinds,
                lane: first_lane(emits).unwrap_or_default(),
                constant: constants.len() as u8,
            });
            constants.extend(emits.iter().flat_map(|emit| emit.constants(program)));
        }
        if constants.len() > MAX_LANES {
            chunks.clear();
        }
        let mut constants = constants.into_iter();
        let lanes = emits.iter().fold(0, |lanes, emit| lanes | 1 << emit.lane);
        Self {
            sequence: None,
            present: match chunks.is_empty() {
                true => u64::MAX,
                false => lanes & !(1 << NO_LANE),
            },
            lanes: emits.iter().fold(0, |lanes, emit| lanes | emit.bits()),
            emits: emits.into(),
            chunks: chunks.into(),
            constants: Box::new(std::array::from_fn(|_| {
                constants.next().unwrap_or_default()
            })),
        }
    }
}

impl Emit {
    /// Returns the number of lanes.
    const fn lanes(&self) -> u8 {
        match self.kind {
            EmitKind::Unsigned | EmitKind::Ascii | EmitKind::Signed | EmitKind::Mantissa => 1,
            EmitKind::Decimal => 2,
            _ => 0,
        }
    }

    /// Returns the bits of the lanes.
    fn bits(&self) -> u64 {
        ((1 << self.lanes()) - 1) << self.lane
    }

    /// Returns the constants.
    fn constants(&self, program: &Program) -> Vec<Constant> {
        let Decimal { mantissa, exponent } = self.constant;
        let field = FieldId(self.field);
        let decimal = Node::decimal(field, self.constant);
        let number = |number, node| Constant {
            number,
            text: Box::default(),
            node,
        };
        match self.kind {
            EmitKind::Unsigned | EmitKind::Ascii | EmitKind::Signed | EmitKind::Decimal => vec![],
            EmitKind::UnsignedConstant | EmitKind::SignedConstant => {
                vec![number(mantissa, Node::int(field, mantissa as u64))]
            }
            EmitKind::Mantissa => vec![number(exponent.into(), decimal)],
            EmitKind::DecimalConstant => {
                vec![
                    number(exponent.into(), decimal),
                    number(mantissa, Node::none(field)),
                ]
            }
            EmitKind::AsciiConstant | EmitKind::UnicodeConstant | EmitKind::BytesConstant => {
                let text = program.text_at(mantissa as usize);
                vec![Constant {
                    number: 0,
                    text: text.into(),
                    // Of a long text only a message knows the place.
                    node: Node::short(field, text).unwrap_or(Node::none(field)),
                }]
            }
        }
    }
}

/// Returns the first lane of fields, if they have any.
fn first_lane(emits: &[Emit]) -> Option<u8> {
    emits
        .iter()
        .find(|emit| emit.lanes() > 0)
        .map(|emit| emit.lane)
}

/// Returns the number of fields that follow each other, in lanes that follow each other, at most
/// those of a chunk.
fn run(emits: &[Emit]) -> usize {
    let emits = emits.get(..MAX_FIELDS).unwrap_or(emits);
    let mut next = first_lane(emits).unwrap_or_default();
    let mut follows = |(number, emit): &(usize, &Emit)| {
        let has_gap = emit.lanes() > 0 && emit.lane != next;
        next += emit.lanes();
        emit.field == emits[0].field + *number as u32 && !has_gap
    };
    emits
        .iter()
        .enumerate()
        .take_while(|pair| follows(pair))
        .count()
}

/// Cuts fields into as few chunks as possible. Each kind of field is also a chunk by itself.
fn cut(emits: &[Emit]) -> Option<Vec<(Kinds, &[Emit])>> {
    // For the fields from each one on: into how many, and the first of them.
    let mut best: Vec<Option<(u32, Kinds, usize)>> = vec![None; emits.len()];
    for start in (0..emits.len()).rev() {
        let rest = &emits[start..][..run(&emits[start..])];
        let chunk = |&(kinds, all): &(Kinds, &[EmitKind])| {
            let are_of = rest
                .iter()
                .map(|emit| emit.kind)
                .take(all.len())
                .eq(all.iter().copied());
            let behind = start + all.len();
            let more = match are_of {
                true if behind == emits.len() => 0,
                true => best[behind]?.0,
                false => return None,
            };
            Some((more + 1, kinds, all.len()))
        };
        let chunks = Kinds::ALL.iter().filter_map(chunk);
        best[start] = chunks.min_by_key(|(count, ..)| *count);
    }
    let (mut chunks, mut start) = (Vec::new(), 0);
    while start < emits.len() {
        let (_, kinds, len) = best[start]?;
        chunks.push((kinds, &emits[start..start + len]));
        start += len;
    }
    Some(chunks)
}

#[cfg(test)]
mod tests {
    use crate::program::Program;
    use crate::program::lanes::Segment;

    fn chunks(segment: &Segment) -> Vec<String> {
        let chunks = segment.visits.chunks.iter();
        chunks.map(|chunk| format!("{:?}", chunk.kinds)).collect()
    }

    #[test]
    fn fields_are_cut_into_few_chunks() {
        let program = Program::complex();
        let flat = program.flat_of(0).unwrap();
        assert_eq!(chunks(program.segment(flat.head)), ["TTT", "UUU"]);
        let entry = program.segment(flat.entry.as_ref().unwrap().segment);
        assert_eq!(chunks(entry), ["UUAU", "NU", "UDU", "SUA", "DUA", "AAUA"]);
    }

    #[test]
    fn a_chunk_ends_where_lanes_have_a_gap() {
        let program = Program::simple();
        let lens = |name: &str| {
            let template = program
                .templates()
                .iter()
                .find(|template| template.name() == name);
            let flat = program.flat_of(template.unwrap().index()).unwrap();
            chunks(program.segment(flat.head))
                .iter()
                .map(String::len)
                .collect::<Vec<_>>()
        };
        assert_eq!(lens("Quote").iter().sum::<usize>(), 10);
        assert_eq!(lens("Quote").len(), 2);
        // Its dictionary has Volume and Price between OrderId and ExchangeId.
        assert_eq!(lens("Remove"), [4, 5]);
    }
}
