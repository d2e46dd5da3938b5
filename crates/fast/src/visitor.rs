//! How a decoder hands over what it decodes.

use crate::program::{Field, TemplateProgram};
use crate::trace::Step;
use crate::value::Decimal;

/// Receives the fields of messages in their order, each as soon as it is decoded: long before
/// the message is complete, and so before an error further on is known. Every method does
/// nothing unless implemented; an empty visitor costs nothing.
///
/// Between [`Self::begin_message`] and [`Self::end_message`] each field of the template is one
/// call: its value, or [`Self::absent`]; groups, sequences and dynamic references are a `begin` and
/// an `end` around those of their contents.
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Visitor {
    /// Whether the visitor takes calls of [`Self::step`].
    const TRACE: bool = false;

    /// A message begins.
    #[inline(always)]
    fn begin_message(&mut self, template: &TemplateProgram) {}

    /// The message is complete and without error.
    #[inline(always)]
    fn end_message(&mut self, template: &TemplateProgram) {}

    /// An unsigned integer.
    #[inline(always)]
    fn unsigned(&mut self, field: &Field, value: u64) {}

    /// A signed integer.
    #[inline(always)]
    fn signed(&mut self, field: &Field, value: i64) {}

    /// A decimal, with exponent and mantissa as they stand in the stream.
    #[inline(always)]
    fn decimal(&mut self, field: &Field, value: Decimal) {}

    /// An ASCII string: bytes below 128.
    #[inline(always)]
    fn ascii(&mut self, field: &Field, value: &[u8]) {}

    /// A Unicode string. Valid UTF-8 from a strict decoder; whatever was sent from a lenient one.
    #[inline(always)]
    fn unicode(&mut self, field: &Field, value: &[u8]) {}

    /// A byte vector.
    #[inline(always)]
    fn bytes(&mut self, field: &Field, value: &[u8]) {}

    /// An optional field, of any type, is absent.
    #[inline(always)]
    fn absent(&mut self, field: &Field) {}

    /// A group begins.
    #[inline(always)]
    fn begin_group(&mut self, field: &Field) {}

    /// The group ends.
    #[inline(always)]
    fn end_group(&mut self, field: &Field) {}

    /// A sequence begins.
    #[inline(always)]
    fn begin_sequence(&mut self, field: &Field, length: u32) {}

    /// An entry of a sequence begins; the first has the index 0.
    #[inline(always)]
    fn begin_entry(&mut self, field: &Field, index: u32) {}

    /// The entry ends.
    #[inline(always)]
    fn end_entry(&mut self, field: &Field) {}

    /// The sequence ends.
    #[inline(always)]
    fn end_sequence(&mut self, field: &Field) {}

    /// A dynamic template reference begins; the fields of `template` follow.
    #[inline(always)]
    fn begin_template(&mut self, field: &Field, template: &TemplateProgram) {}

    /// The reference ends.
    #[inline(always)]
    fn end_template(&mut self, field: &Field) {}

    /// What the decoder did, byte by byte; only called where [`Self::TRACE`] is true.
    #[inline(always)]
    fn step(&mut self, step: Step<'_>) {}
}

/// The empty visitor: decodes, checks, and keeps nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignore;

impl Visitor for Ignore {}
