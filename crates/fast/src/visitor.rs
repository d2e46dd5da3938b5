//! The interface by which a decoder passes on what it decodes.

use crate::program::{Field, TemplateProgram};
use crate::trace::Step;
use crate::value::Decimal;

/// A receiver of the fields of messages. Each field is received as soon as it is decoded: long
/// before the message is complete, and so before an error further on is known. Fields are received
/// in their order. Every method does nothing unless implemented; an empty visitor costs nothing.
///
/// Between [`Self::begin_message`] and [`Self::end_message`] each field of the template is one
/// call: that for its value, or [`Self::absent`]. A group, a sequence or a dynamic reference is a
/// `begin` and an `end` around the calls for its contents.
#[expect(unused_variables, reason = "the defaults do nothing")]
pub trait Visitor {
    /// Whether the visitor takes calls of [`Self::step`].
    const TRACE: bool = false;

    /// Called at the start of a message.
    #[inline(always)]
    fn begin_message(&mut self, template: &TemplateProgram) {}

    /// Called at the end of a message that is complete and without error.
    #[inline(always)]
    fn end_message(&mut self, template: &TemplateProgram) {}

    /// Receives an unsigned integer.
    #[inline(always)]
    fn unsigned(&mut self, field: &Field, value: u64) {}

    /// Receives a signed integer.
    #[inline(always)]
    fn signed(&mut self, field: &Field, value: i64) {}

    /// Receives a decimal, with the exponent and the mantissa as they are in the stream.
    #[inline(always)]
    fn decimal(&mut self, field: &Field, value: Decimal) {}

    /// Receives an ASCII string: bytes below 128.
    #[inline(always)]
    fn ascii(&mut self, field: &Field, value: &[u8]) {}

    /// Receives a Unicode string: valid UTF-8 from a strict decoder, any bytes from a lenient one.
    #[inline(always)]
    fn unicode(&mut self, field: &Field, value: &[u8]) {}

    /// Receives a byte vector.
    #[inline(always)]
    fn bytes(&mut self, field: &Field, value: &[u8]) {}

    /// Called for an optional field, of any type, that is absent.
    #[inline(always)]
    fn absent(&mut self, field: &Field) {}

    /// Called at the start of a group.
    #[inline(always)]
    fn begin_group(&mut self, field: &Field) {}

    /// Called at the end of a group.
    #[inline(always)]
    fn end_group(&mut self, field: &Field) {}

    /// Called at the start of a sequence of `length` entries.
    #[inline(always)]
    fn begin_sequence(&mut self, field: &Field, length: u32) {}

    /// Called at the start of an entry of a sequence. The first entry has the index 0.
    #[inline(always)]
    fn begin_entry(&mut self, field: &Field, index: u32) {}

    /// Called at the end of an entry of a sequence.
    #[inline(always)]
    fn end_entry(&mut self, field: &Field) {}

    /// Called at the end of a sequence.
    #[inline(always)]
    fn end_sequence(&mut self, field: &Field) {}

    /// Called at the start of a dynamic template reference. The fields of `template` follow.
    #[inline(always)]
    fn begin_template(&mut self, field: &Field, template: &TemplateProgram) {}

    /// Called at the end of a dynamic template reference.
    #[inline(always)]
    fn end_template(&mut self, field: &Field) {}

    /// Receives a step of the decoder. Called only if [`Self::TRACE`] is true.
    #[inline(always)]
    fn step(&mut self, step: Step<'_>) {}
}

/// The empty visitor. Messages are decoded and checked for it, but it keeps nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignore;

impl Visitor for Ignore {}
