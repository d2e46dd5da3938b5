//! The flat program that templates become at load time, and that every back end executes.
//!
//! # Shape
//! A [`Program`] is a handful of flat tables:
//! - [`Op`]s: the instructions, one for each field. The ops of a template, of a group and of a
//!   sequence entry are each one contiguous range ([`Body`]). Static template references are
//!   replaced by the ops of their templates.
//! - [`Field`]s: the descriptions that visitors receive: name, tag, type. An op names its field by
//!   [`FieldId`].
//! - Slots: the previous values. The dictionary, key and namespace of an operator are resolved to a
//!   [`Slot`] number; ops with the same entry have the same number. It is the number of a column
//!   (`fanfare_wire::lanes`); ops without a previous value that can be lanes have columns too, so
//!   that consecutive fields have consecutive columns.
//! - Presence bits are taken in the order of the ops; [`Body::bits`] is the most that a body can
//!   take.
//!
//! # Back ends
//! There are four ways to decode and to encode, and tests compare the others with the first:
//! - op by op, in the words of the specification: the oracle, which also takes what the others
//!   leave to it;
//! - fused ops (`fused`), which any template has, in scalar code;
//! - lanes (`lanes`), by vector kernels: templates that are one segment of small values, perhaps
//!   with a sequence of such entries, if at least half of the fields of the program are in such
//!   templates;
//! - straight-line code that [`crate::codegen`] generates, for structs alone.

mod compile;
mod describe;
pub(crate) mod fused;
pub(crate) mod lanes;
mod place;
pub(crate) mod visit;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use lanes::{Flat, Segment};
pub use place::{Place, Reading};

use crate::error::TemplateError;
pub use crate::ids::{FieldId, Slot, TextId};
use crate::state::State;
use crate::template::{Deviations, Name, OperatorKind, TemplateSet};
use crate::value::{Decimal, IntType, TextType};

/// The identifier of the Reset message of the session control protocol.
pub const RESET_ID: u32 = 120;

/// A set of templates, ready to execute.
#[derive(Debug, Clone, Default)]
pub struct Program {
    templates: Vec<TemplateProgram>,
    by_id: HashMap<u32, u32>,
    /// The index of the template plus one, by small identifiers; 0 is none.
    direct: Vec<u32>,
    fields: Vec<Field>,
    /// Arbitrary fields, as many as a chunk has at most; none if the program has none.
    spare_fields: Vec<Field>,
    children: Vec<FieldId>,
    ops: Vec<Op>,
    /// The fused ops, one for each op.
    fused: Vec<fused::Fused>,
    /// The exponents and mantissas of decimals in two parts, one after the other.
    parts: Vec<fused::Int>,
    texts: Vec<Box<[u8]>>,
    /// The previous values, by column; `None` for columns that no dictionary has.
    slots: Vec<Option<SlotInfo>>,
    /// The type that all ops with this column have, by column; empty if they differ.
    column_states: Vec<State>,
    text_slots: u32,
    /// The segment of each body, by its number.
    body_segments: Vec<Option<u32>>,
    segments: Vec<Segment>,
    flats: Vec<Flat>,
    /// The places of fields, by field.
    places: Vec<Option<Place>>,
    /// The index in `flats` plus one, by template, and by identifiers of one byte; 0 is none.
    flat_templates: Vec<u32>,
    flat_ids: FlatIds,
    /// The template of a document that has no other, if that template has no identifier.
    only: Option<u32>,
    /// A number that is the same for programs of the same templates, and hardly for others; never
    /// 0.
    fingerprint: u64,
}

/// A number for each identifier of one byte.
#[derive(Debug, Clone)]
struct FlatIds([u32; 128]);

impl Default for FlatIds {
    fn default() -> Self {
        Self([0; _])
    }
}

impl Program {
    /// Parses and compiles a template document.
    ///
    /// # Errors
    /// S1 to S5, with line and column.
    pub fn parse(xml: &str) -> Result<Self, TemplateError> {
        Self::compile(&TemplateSet::parse(xml)?)
    }

    /// Parses and compiles a template document as [`Self::parse`], but leaves out what the schema
    /// does not have, and returns a list of it: see [`TemplateSet::parse_lenient`].
    ///
    /// # Errors
    /// S1 to S5, with line and column.
    pub fn parse_lenient(xml: &str) -> Result<(Self, Deviations), TemplateError> {
        let (set, deviations) = TemplateSet::parse_lenient(xml)?;
        Ok((Self::compile(&set)?, deviations))
    }

    /// Compiles templates.
    ///
    /// # Errors
    /// S1 where static references recur, or where, expanded, there are more than 262,144 fields or
    /// references, or more than 64 MiB of initial values; and for a bit group whose members no
    /// document can have. S2 to S5 for an operator that no document can have.
    pub fn compile(set: &TemplateSet) -> Result<Self, TemplateError> {
        compile::compile(set)
    }

    /// Returns all templates in the order of the document; then Reset, unless it was declared.
    #[must_use]
    pub fn templates(&self) -> &[TemplateProgram] {
        &self.templates
    }

    /// Returns the template with this identifier in the stream.
    #[must_use]
    pub fn by_id(&self, id: u32) -> Option<&TemplateProgram> {
        self.templates.get(self.index_of(id)? as usize)
    }

    /// Returns the index of the template of messages that name none: the only one of its document,
    /// if it has no identifier.
    #[must_use]
    pub const fn only(&self) -> Option<u32> {
        self.only
    }

    /// Returns the first template of this local name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&TemplateProgram> {
        self.templates
            .iter()
            .find(|template| template.name() == name)
    }

    /// Returns the field at a path in the first template of this name: the names of the groups and
    /// sequences around it and its own, with points between them, like `MDEntries.MDEntryPx`.
    #[must_use]
    pub fn find(&self, template: &str, path: &str) -> Option<FieldId> {
        let mut inside = self.template_fields(self.by_name(template)?);
        let mut found = None;
        for name in path.split('.') {
            let id = *inside.iter().find(|id| self.field(**id).name() == name)?;
            inside = self.children(id);
            found = Some(id);
        }
        found
    }

    /// Returns the field of this number. The number must be of this program.
    #[must_use]
    #[inline]
    pub fn field(&self, id: FieldId) -> &Field {
        &self.fields[id.index()]
    }

    /// Returns all fields.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns fields that a chunk can have in place of its own, if these do not exist.
    #[inline(always)]
    pub(crate) fn spare_fields(&self) -> Option<&[Field; visit::MAX_FIELDS]> {
        self.spare_fields.first_chunk()
    }

    /// Returns the fields directly inside a template, in its order.
    #[must_use]
    pub fn template_fields(&self, template: &TemplateProgram) -> &[FieldId] {
        &self.children[template.children.start as usize..template.children.end as usize]
    }

    /// Returns the fields directly inside a group or a sequence's entry. There are none for other
    /// fields.
    #[must_use]
    pub fn children(&self, field: FieldId) -> &[FieldId] {
        let range = &self.field(field).children;
        &self.children[range.start as usize..range.end as usize]
    }

    /// Returns the op of a field.
    #[must_use]
    pub fn op(&self, field: FieldId) -> &Op {
        &self.ops[self.field(field).op as usize]
    }

    /// Returns the number of a field's op among all ops.
    pub(crate) fn op_number(&self, field: FieldId) -> u32 {
        self.field(field).op
    }

    /// Returns the ops of a body.
    #[must_use]
    #[inline]
    pub fn ops(&self, body: Body) -> &[Op] {
        &self.ops[body.start as usize..body.end as usize]
    }

    /// Returns a constant or initial byte string.
    #[must_use]
    #[inline]
    pub fn text(&self, text: TextId) -> &[u8] {
        &self.texts[text.0 as usize]
    }

    /// Returns a constant byte string by its number, if there is one.
    #[inline(always)]
    pub(crate) fn text_at(&self, number: usize) -> &[u8] {
        self.texts
            .get(number)
            .map(|text| &**text)
            .unwrap_or_default()
    }

    /// Returns the previous value of a slot: its dictionary and key.
    #[must_use]
    pub fn slot(&self, slot: Slot) -> Option<&SlotInfo> {
        self.slots.get(slot.index())?.as_ref()
    }

    /// Returns the number of previous values.
    #[must_use]
    pub fn previous_values(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    /// Returns the number of columns that the previous values, and the lanes of segments, take.
    pub(crate) fn columns(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn column_states(&self) -> &[State] {
        &self.column_states
    }

    /// Returns the number of the segment of a body, if it is one.
    fn segment_of(&self, body: Body) -> Option<u32> {
        *self.body_segments.get(body.number as usize)?
    }

    /// Returns the place of a field in the rows of a [`crate::Record`], or `None` if messages of
    /// its template are not held in rows.
    #[inline]
    #[must_use]
    pub fn place(&self, field: FieldId) -> Option<Place> {
        *self.places.get(field.index())?
    }

    #[inline(always)]
    pub(crate) const fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    pub(crate) fn flats(&self) -> &[Flat] {
        &self.flats
    }

    /// Returns the flat form of the template of this index.
    #[inline]
    pub(crate) fn flat_of(&self, template: u32) -> Option<&Flat> {
        let number = *self.flat_templates.get(template as usize)?;
        self.flats.get((number as usize).wrapping_sub(1))
    }

    /// Returns the flat form of the template of this identifier, below 128.
    #[inline(always)]
    pub(crate) fn flat_by_id(&self, id: u8) -> Option<&Flat> {
        let number = self.flat_ids.0[usize::from(id % 128)];
        self.flats.get((number as usize).wrapping_sub(1))
    }

    /// Returns the fused ops of a body, in the order of its ops.
    #[inline(always)]
    pub(crate) fn fused(&self, body: Body) -> &[fused::Fused] {
        let range = body.start as usize..body.end as usize;
        self.fused.get(range).unwrap_or_default()
    }

    /// Returns the parts of a decimal.
    #[inline(always)]
    pub(crate) fn parts(&self, fused: &fused::Fused) -> Option<&[fused::Int; 2]> {
        self.parts.get(fused.aux as usize..)?.first_chunk()
    }

    #[inline]
    pub(crate) fn segment(&self, index: u32) -> &Segment {
        &self.segments[index as usize]
    }

    #[inline]
    pub(crate) fn op_at(&self, index: u32) -> &Op {
        &self.ops[index as usize]
    }

    /// Returns the number of previous values that are byte strings.
    pub(crate) const fn text_slots(&self) -> usize {
        self.text_slots as usize
    }

    #[inline]
    pub(crate) fn index_of(&self, id: u32) -> Option<u32> {
        match self.direct.get(id as usize) {
            Some(&index) => index.checked_sub(1),
            None => self.by_id.get(&id).copied(),
        }
    }
}

/// One template.
#[derive(Debug, Clone)]
pub struct TemplateProgram {
    index: u32,
    /// The fingerprint of the program.
    program: u64,
    name: Name,
    id: Option<u32>,
    reset: Reset,
    body: Body,
    children: Range<u32>,
    type_ref: Option<Name>,
}

impl TemplateProgram {
    /// Returns the index in [`Program::templates`].
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// Returns the fingerprint of the program.
    pub(crate) const fn program(&self) -> u64 {
        self.program
    }

    /// Returns the local name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name.local
    }

    /// Returns the namespace of the name.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.name.ns
    }

    /// Returns the identifier in the stream.
    #[must_use]
    pub const fn id(&self) -> Option<u32> {
        self.id
    }

    /// Returns what a message of the template clears.
    #[must_use]
    pub const fn reset(&self) -> Reset {
        self.reset
    }

    /// Returns the ops.
    #[must_use]
    pub const fn body(&self) -> Body {
        self.body
    }

    /// Returns the application type.
    #[must_use]
    pub const fn type_ref(&self) -> Option<&Name> {
        self.type_ref.as_ref()
    }
}

/// What a message clears before its fields are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// Nothing.
    None,
    /// All dictionaries, but not the template identifier: the `reset` attribute.
    Dictionaries,
    /// All dictionaries and the template identifier: the Reset message.
    All,
}

/// A contiguous range of ops that share a presence map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The most presence bits that the ops take. Those of a template include the identifier's.
    pub bits: u32,
    /// The number of the body in its program.
    pub(crate) number: u32,
}

impl Body {
    /// Returns the number of fields that the body counts for against [`crate::Limits::fields`].
    #[inline(always)]
    pub(crate) const fn counted(&self) -> u32 {
        self.end - self.start + 1
    }
}

/// The description of a field that a visitor receives.
#[derive(Debug, Clone)]
pub struct Field {
    id: FieldId,
    name: Name,
    id_text: Option<Box<str>>,
    tag: Option<u32>,
    kind: FieldKind,
    optional: bool,
    parent: Option<FieldId>,
    template: u32,
    children: Range<u32>,
    op: u32,
    bits: u32,
    /// The number behind the name in [`member`](Field::member), or 0.
    repeat: u32,
}

impl Field {
    /// Returns the number.
    #[must_use]
    pub const fn id(&self) -> FieldId {
        self.id
    }

    /// Returns the local name; of a dynamic reference, `templateRef`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name.local
    }

    /// Returns the name of the field in JSON, which no other field of its level has: the local
    /// name, with `#2`, `#3` and so on behind it from the second field of that name on. A number
    /// that makes the name of a field of the level is left out. Allocates for such a name alone.
    #[must_use]
    pub fn member(&self) -> Cow<'_, str> {
        match self.repeat {
            0 => Cow::Borrowed(self.name()),
            number => Cow::Owned(format!("{}#{number}", self.name())),
        }
    }

    /// Returns the namespace of the name.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.name.ns
    }

    /// Returns the `id` attribute as a number, which is the FIX tag. That of a sequence is its
    /// length's, if the length has one.
    #[must_use]
    pub const fn tag(&self) -> Option<u32> {
        self.tag
    }

    /// Returns the `id` attribute.
    #[must_use]
    pub fn id_text(&self) -> Option<&str> {
        self.id_text.as_deref()
    }

    /// Returns the type.
    #[must_use]
    pub const fn kind(&self) -> FieldKind {
        self.kind
    }

    /// Returns true if the field may be absent.
    #[must_use]
    pub const fn optional(&self) -> bool {
        self.optional
    }

    /// Returns the number of bits that the field has in its bit group, or `None` if it is in none.
    #[must_use]
    pub const fn bits(&self) -> Option<u32> {
        match self.bits {
            0 => None,
            bits => Some(bits),
        }
    }

    /// Returns the group or sequence that the field is in.
    #[must_use]
    pub const fn parent(&self) -> Option<FieldId> {
        self.parent
    }

    /// Returns the index of the template that the field is in.
    #[must_use]
    pub const fn template(&self) -> u32 {
        self.template
    }

    /// Returns true for a sequence.
    #[must_use]
    pub const fn is_sequence(&self) -> bool {
        matches!(self.kind, FieldKind::Sequence)
    }
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FieldKind {
    /// An integer.
    Int(IntType),
    /// A decimal.
    Decimal,
    /// A string or byte vector.
    Text(TextType),
    /// A group, or a bit group.
    Group,
    /// A sequence.
    Sequence,
    /// A dynamic template reference.
    TemplateRef,
}

/// One instruction of the program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    /// An integer field.
    Int(IntOp),
    /// A decimal field with one operator, or none.
    Decimal(DecimalOp),
    /// A decimal field with operators for its parts.
    SplitDecimal {
        /// The decimal field.
        field: FieldId,
        /// The exponent, an int32, which is optional if the field is.
        exponent: IntOp,
        /// The mantissa, a mandatory int64, which is present if the exponent is.
        mantissa: IntOp,
    },
    /// A string or byte vector field.
    Text(TextOp),
    /// A group. It has one presence bit if it is optional, and a presence map of its own if
    /// `body.bits` is not 0.
    Group {
        /// The group field.
        field: FieldId,
        /// Whether the group has a presence bit.
        optional: bool,
        /// The contents of the group.
        body: Body,
    },
    /// A sequence: its length, then as many entries. Each has a presence map of its own if
    /// `body.bits` is not 0.
    Sequence {
        /// The sequence field.
        field: FieldId,
        /// The length, a uInt32, which is optional if the sequence is.
        length: IntOp,
        /// The contents of an entry.
        body: Body,
    },
    /// A bit group of FAST 1.2.
    Bits(BitsOp),
    /// A dynamic template reference: a segment with a presence map and a template identifier.
    TemplateRef {
        /// The field of the reference.
        field: FieldId,
    },
    /// A static reference to a template that does not exist. It is D8 when it is reached.
    Unresolved {
        /// The field of the reference.
        field: FieldId,
    },
}

impl Op {
    /// Returns the field that the op is for.
    #[must_use]
    pub const fn field(&self) -> FieldId {
        match self {
            Self::Int(op) => op.field,
            Self::Decimal(op) => op.field,
            Self::Text(op) => op.field,
            Self::Bits(op) => op.whole.field,
            Self::SplitDecimal { field, .. }
            | Self::Group { field, .. }
            | Self::Sequence { field, .. }
            | Self::TemplateRef { field }
            | Self::Unresolved { field } => *field,
        }
    }

    /// Returns the most presence bits that the op takes in the map of its body.
    pub(crate) fn bits(&self) -> u32 {
        let int = |op: &IntOp| u32::from(op.operator.takes_bit(op.optional));
        match self {
            Self::Int(op) => int(op),
            Self::Decimal(op) => u32::from(op.operator.takes_bit(op.optional)),
            Self::SplitDecimal {
                exponent, mantissa, ..
            } => int(exponent) + int(mantissa),
            Self::Text(op) => u32::from(op.operator.takes_bit(op.optional)),
            Self::Group { optional, .. } => u32::from(*optional),
            Self::Sequence { length, .. } => int(length),
            Self::Bits(op) => int(&op.whole),
            Self::TemplateRef { .. } | Self::Unresolved { .. } => 0,
        }
    }
}

/// An integer with its operator. Values are 64-bit patterns, sign-extended where the type is
/// signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntOp {
    /// The field. For a part of a decimal or a length, it is the decimal or the sequence.
    pub field: FieldId,
    /// The type.
    pub ty: IntType,
    /// The operator.
    pub operator: OperatorKind,
    /// Whether the integer can be absent.
    pub optional: bool,
    /// The slot of the previous value; 0 if the operator has none.
    pub slot: Slot,
    /// The initial value.
    pub initial: Option<u64>,
}

/// Several integers of a few bits each in one entity, which an operator treats as one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitsOp {
    /// All bits together as a number, a uInt64, for the group's field.
    pub whole: IntOp,
    /// The number of bits, at most 64.
    pub width: u32,
    /// The members, which are integers without operators. [`Field::bits`] is the number of bits of
    /// each.
    pub members: Body,
}

/// A decimal with one operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecimalOp {
    /// The field.
    pub field: FieldId,
    /// The operator.
    pub operator: OperatorKind,
    /// Whether the decimal can be absent.
    pub optional: bool,
    /// The slot of the previous value; 0 if the operator has none.
    pub slot: Slot,
    /// The initial value, normalised.
    pub initial: Option<Decimal>,
}

/// A string or byte vector with its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOp {
    /// The field.
    pub field: FieldId,
    /// The type.
    pub ty: TextType,
    /// The operator.
    pub operator: OperatorKind,
    /// Whether the string or byte vector can be absent.
    pub optional: bool,
    /// The slot of the state of the previous value; 0 if the operator has none.
    pub slot: Slot,
    /// The index of the bytes of the previous value. Such indices are dense.
    pub text_slot: u32,
    /// The initial value.
    pub initial: Option<TextId>,
}

/// The description of a slot, for listings and traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotInfo {
    /// The dictionary: `global`, `template NAME`, `type NAME` or the user's name in quotes.
    pub dictionary: String,
    /// The key, with `.exponent`, `.mantissa` or `.length` where it is a generated name.
    pub key: String,
}
