//! Rows made from the nodes of a message: the inverse of `decode::visit`, by the same chunks. The
//! nodes that a chunk must have are known when the templates are loaded. They are compared without
//! a branch for each, and a message with other nodes is left to the scalar encoder.

use fanfare_wire::lanes::{self, MAX_LANES, Row, Values};

use crate::message::Message;
use crate::node::{Content, Node};
use crate::program::lanes::{Entry, Flat, Segment};
use crate::program::visit::{
    Chunk, Constant, Constants, Emit, EmitKind, Kinds, NO_LANE, VisitPlan, letter, with_kinds,
};
use crate::program::{FieldId, Program};
use crate::value::{Decimal, EXPONENTS};

/// The lowest bit of the values that are beyond a lane.
const BEYOND: u64 = 1 << 31;

/// The distance from the smallest signed integer of a lane to 0.
const BELOW: u64 = 1 << 30;

/// The nodes of a message of a flat template, by the rows to which they belong.
pub(super) struct Nodes<'m> {
    message: &'m Message,
    own: &'m [Node],
    /// The number of entries of the sequence, if it is present.
    length: Option<u32>,
    /// The entries that are left, with their contents.
    entries: &'m [Node],
}

impl<'m> Nodes<'m> {
    /// Returns the nodes of a message, or `None` if it has not the expected number of nodes, or
    /// more than `most_entries` entries.
    #[inline(always)]
    pub(super) fn of(flat: &Flat, message: &'m Message, most_entries: u32) -> Option<Self> {
        let nodes = message.nodes();
        let fields = flat.segment.visits.emits.len();
        let (own, behind) = nodes.split_at_checked(fields)?;
        let (length, entries) = match (&flat.entry, behind) {
            (None, []) => (None, behind),
            (Some(entry), [sequence, entries @ ..]) if sequence.field() == entry.field => {
                let size = 1 + entry.at_hand.visits.emits.len() as u64;
                let is_last = sequence.end(fields as u32) as usize == nodes.len();
                match message.content(sequence) {
                    Content::Absent if is_last => (None, entries),
                    Content::Sequence(count)
                        if is_last
                            && count <= most_entries
                            && u64::from(count) * size == entries.len() as u64 =>
                    {
                        (Some(count), entries)
                    }
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self {
            message,
            own,
            length,
            entries,
        })
    }

    /// Fills the row of the message's own fields. Returns false, with the row undefined, if a
    /// decoder could not have left such a row.
    #[inline(always)]
    pub(super) fn head(&self, program: &Program, flat: &Flat, row: &mut Row) -> bool {
        let (segment, nodes) = (&flat.segment, (self.message, self.own));
        fill(program, segment, nodes, self.length, row)
    }

    /// Returns whether there are entries left.
    #[inline(always)]
    pub(super) const fn has_entries(&self) -> bool {
        !self.entries.is_empty()
    }

    /// Fills the rows of the next entries, and returns their number. The first entry that does not
    /// fit is left.
    #[inline(always)]
    pub(super) fn take_entries(
        &mut self,
        program: &Program,
        entry: &Entry,
        rows: &mut [Row],
    ) -> usize {
        let all = self.message.nodes().len();
        let size = 1 + entry.at_hand.visits.emits.len();
        for (row, filled) in rows.iter_mut().zip(0..) {
            let index = all - self.entries.len();
            let next = self.entries.split_at_checked(size);
            let Some(([node, fields @ ..], left)) = next else {
                return filled;
            };
            let expected = Node::entry(entry.field, (index + size) as u32);
            let nodes = (self.message, fields);
            if *node != expected || !fill(program, &entry.at_hand, nodes, None, row) {
                return filled;
            }
            self.entries = left;
        }
        rows.len()
    }
}

/// Fills a row with the fields of a level, and with the `length` of the sequence after them, if it
/// is present. Returns false, with the row undefined, if a decoder could not have left such a row.
#[inline(never)]
fn fill(
    program: &Program,
    segment: &Segment,
    (message, nodes): (&Message, &[Node]),
    length: Option<u32>,
    row: &mut Row,
) -> bool {
    let plan = &segment.visits;
    row.present = plan.lanes;
    if !chunks(plan, (message, nodes), &mut row.values)
        && !each(program, plan, (message, nodes), row)
    {
        return false;
    }
    if let (Some(lane), Some(length)) = (segment.length, length) {
        if length >= 1 << 31 {
            return false;
        }
        let lane = usize::from(lane) % MAX_LANES;
        row.values[lane] = length as i32;
        row.present |= 1 << lane;
    }
    segment.plan.may_hold(row.present) && (segment.narrow.is_empty() || segment.is_within(row))
}

/// Fills a row, chunk by chunk, from fields of which none may be absent.
#[inline(always)]
fn chunks(plan: &VisitPlan, (message, nodes): (&Message, &[Node]), row: &mut Values) -> bool {
    let mut gathered = Gathered {
        message,
        left: nodes,
        differ: 0,
        beyond: 0,
    };
    for chunk in &plan.chunks {
        if gathered.chunk(chunk, &plan.constants, row).is_none() {
            return false;
        }
    }
    gathered.left.is_empty() && gathered.differ == 0 && gathered.beyond < BEYOND
}

/// The state of gathering nodes.
struct Gathered<'m> {
    message: &'m Message,
    left: &'m [Node],
    /// A number that is not 0 if a node differs from the expected one.
    differ: u64,
    /// A number with bits from 31 on if a value does not fit into its lane.
    beyond: u64,
}

impl Gathered<'_> {
    /// Gathers the nodes of the next chunk. Returns `None` if there are fewer nodes.
    #[inline(always)]
    fn chunk(&mut self, chunk: &Chunk, constants: &Constants, row: &mut Values) -> Option<()> {
        macro_rules! known_kinds {
            ($($name:ident: $($kind:ident)*;)*) => {
                match chunk.kinds {
                    $(Kinds::$name => {
                        const KINDS: &[EmitKind] = &[$(letter::$kind,)*];
                        let (nodes, left) = self.left.split_first_chunk::<{ KINDS.len() }>()?;
                        self.left = left;
                        let mut next = Next {
                            message: self.message,
                            row,
                            lane: usize::from(chunk.lane) % MAX_LANES,
                            constants,
                            constant: usize::from(chunk.constant) % MAX_LANES,
                        };
                        let mut number = 0;
                        $(
                            let (kind, field) = (letter::$kind, FieldId(chunk.field));
                            let (differ, beyond) = next.node(kind, (field, number), &nodes[number]);
                            self.differ |= differ;
                            self.beyond |= beyond;
                            number += 1;
                        )*
                        debug_assert_eq!(number, KINDS.len());
                    })*
                }
            };
        }
        with_kinds!(known_kinds);
        Some(())
    }
}

/// The position in a chunk.
struct Next<'r> {
    message: &'r Message,
    row: &'r mut Values,
    lane: usize,
    constants: &'r Constants,
    constant: usize,
}

impl<'r> Next<'r> {
    #[inline(always)]
    fn put(&mut self, value: u64) {
        self.row[self.lane] = value as i32;
        self.lane += 1;
    }

    #[inline(always)]
    fn put_signed(&mut self, value: u64) -> u64 {
        self.put(value);
        value.wrapping_add(BELOW)
    }

    #[inline(always)]
    fn constant(&mut self) -> &'r Constant {
        let constant = &self.constants[self.constant];
        self.constant += 1;
        constant
    }

    /// Puts the value of the next node into the row, for a kind that is known when the code is
    /// compiled. Returns a number that is not 0 if the node differs from one of this kind and of
    /// the field `number` after `first`, and a number with bits from 31 on if the value does not
    /// fit.
    #[inline(always)]
    fn node(
        &mut self,
        kind: EmitKind,
        (first, number): (FieldId, usize),
        node: &Node,
    ) -> (u64, u64) {
        let differ = |of_first: Node| {
            let expected = of_first.head() + Node::further(number as u64);
            node.head() ^ expected
        };
        let word = node.word();
        match kind {
            EmitKind::Unsigned => {
                self.put(word);
                (differ(Node::int(first, 0)), word)
            }
            EmitKind::Signed => (differ(Node::int(first, 0)), self.put_signed(word)),
            EmitKind::Ascii => {
                let packed = packed(differ(Node::empty(first)), word);
                self.put(packed);
                (0, packed)
            }
            EmitKind::Decimal => {
                let exponent = node.extra() as i8;
                let is_beyond = !EXPONENTS.contains(&exponent.into());
                self.put(exponent as u64);
                let beyond = self.put_signed(word) | (u64::from(is_beyond) << 31);
                let mantissa = 0;
                (
                    differ(Node::decimal(first, Decimal { mantissa, exponent })),
                    beyond,
                )
            }
            EmitKind::Mantissa => {
                let beyond = self.put_signed(word);
                (node.head() ^ self.constant().node.head(), beyond)
            }
            EmitKind::DecimalConstant => {
                let constant = self.constant();
                // Its mantissa.
                self.constant();
                (node.difference(&constant.node), 0)
            }
            EmitKind::UnsignedConstant | EmitKind::SignedConstant => {
                (node.difference(&self.constant().node), 0)
            }
            EmitKind::AsciiConstant | EmitKind::UnicodeConstant | EmitKind::BytesConstant => {
                let constant = self.constant();
                match node.difference(&constant.node) {
                    0 => (0, 0),
                    _ => (long(self.message, node, constant), 0),
                }
            }
        }
    }
}

/// Returns 0 if a node has this constant, which is too long to be in the node.
#[inline(never)]
fn long(message: &Message, node: &Node, constant: &Constant) -> u64 {
    let is_same = node.field() == constant.node.field()
        && message.content(node) == Content::Text(&constant.text);
    u64::from(!is_same)
}

/// Returns a short text as its lane stores it, from its characters in `word` and the difference
/// between its node's head and the head of an empty text. Sets bits above 30 if the node is not a
/// short text or the text does not fit into a lane.
#[inline(always)]
fn packed(differ: u64, word: u64) -> u64 {
    match (Node::short_len(differ), word) {
        (1, 1..0x80) => word,
        (len, _) => many(len, word),
    }
}

/// Packs several characters, or none.
#[inline(never)]
fn many(len: u64, word: u64) -> u64 {
    let begins_with_nul = len > 0 && word & 0xff == 0;
    if len > lanes::MAX_CHARS as u64 || word & !0x7f7f_7f7f != 0 || begins_with_nul {
        return BEYOND;
    }
    pack_word(word, len)
}

/// Packs `len` characters, at most [`lanes::MAX_CHARS`], the first one lowest, as [`lanes::pack`]
/// does.
#[inline(always)]
const fn pack_word(word: u64, len: u64) -> u64 {
    // The last one lowest; then the eighth bit of each is left out.
    let x = word.swap_bytes() >> (64_u64.wrapping_sub(8 * len) & 63);
    let x = x & 0x007f_007f | x >> 1 & 0x3f80_3f80;
    x & 0x3fff | x >> 2 & 0x0fff_c000
}

/// Fills a row, one by one, from fields of which some may be absent.
#[inline(never)]
fn each(
    program: &Program,
    plan: &VisitPlan,
    (message, nodes): (&Message, &[Node]),
    row: &mut Row,
) -> bool {
    row.present = 0;
    if nodes.len() != plan.emits.len() {
        return false;
    }
    let mut all = plan.emits.iter().zip(nodes);
    all.all(|(emit, node)| one(program, emit, (message, node), row).is_some())
}

/// Puts the value of a node into its lane. Returns `None` if it does not fit.
fn one(
    program: &Program,
    emit: &Emit,
    (message, node): (&Message, &Node),
    row: &mut Row,
) -> Option<()> {
    if node.field() != FieldId(emit.field) {
        return None;
    }
    let content = message.content(node);
    let constant = emit.constant;
    let mut put = |lane: u8, value: u64| {
        let lane = usize::from(lane) % MAX_LANES;
        row.values[lane] = value as i32;
        row.present |= 1 << lane;
    };
    let within = |beyond: u64| (beyond < BEYOND).then_some(());
    match (content, emit.kind) {
        (Content::Absent, _) => return (emit.lane != NO_LANE).then_some(()),
        (Content::Int(bits), EmitKind::Unsigned) => {
            put(emit.lane, bits);
            return within(bits);
        }
        (Content::Int(bits), EmitKind::Signed) => {
            put(emit.lane, bits);
            return within(bits.wrapping_add(BELOW));
        }
        (Content::Text(text), EmitKind::Ascii) => put(emit.lane, lanes::pack(text)?),
        (Content::Decimal(value), EmitKind::Decimal | EmitKind::Mantissa) => {
            let lane = match emit.kind {
                EmitKind::Decimal if EXPONENTS.contains(&value.exponent.into()) => {
                    put(emit.lane, value.exponent as u64);
                    emit.lane + 1
                }
                EmitKind::Mantissa if value.exponent == constant.exponent => emit.lane,
                _ => return None,
            };
            put(lane, value.mantissa as u64);
            return within((value.mantissa as u64).wrapping_add(BELOW));
        }
        (Content::Int(bits), EmitKind::UnsignedConstant | EmitKind::SignedConstant)
            if bits == constant.mantissa as u64 => {}
        (Content::Decimal(value), EmitKind::DecimalConstant) if value == constant => {}
        (
            Content::Text(text),
            EmitKind::AsciiConstant | EmitKind::UnicodeConstant | EmitKind::BytesConstant,
        ) if text == program.text_at(constant.mantissa as usize) => {}
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_packed_as_a_kernel_packs_them() {
        let field = FieldId(7);
        let texts: [&[u8]; 14] = [
            b"",
            b"A",
            b"\x7f",
            b"AB",
            b"A\0",
            b"ABC",
            b"ABCD",
            b"\x7f\x7f\x7f\x7f",
            b"A\0\0B",
            b"\0",
            b"\0A",
            b"\x80",
            b"AB\xff",
            b"ABCDE",
        ];
        for text in texts {
            let node = Node::short(field, text).unwrap();
            let differ = node.head() ^ Node::empty(field).head();
            let expected = lanes::pack(text).unwrap_or(BEYOND);
            assert_eq!(packed(differ, node.word()), expected, "{text:?}");
        }
        for node in [
            Node::int(field, 0x41),
            Node::absent(field),
            Node::short(FieldId(8), b"A").unwrap(),
            Node::long(field, 0x41, 1),
        ] {
            let differ = node.head() ^ Node::empty(field).head();
            assert_eq!(packed(differ, node.word()), BEYOND);
        }
    }
}
