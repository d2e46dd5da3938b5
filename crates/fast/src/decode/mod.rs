//! The decoder: executes programs on bytes.

mod bits;
mod cursor;
mod flat;
mod fused;
mod input;
mod lanes;
mod presence;
pub(crate) mod reader;
mod run;
pub(crate) mod straight;
mod structs;
mod text;
mod visit;

use std::sync::Arc;

use fanfare_wire::lanes::LaneKernel;
use fanfare_wire::stopbit::Squeeze;

use crate::dictionary::Dictionaries;
use crate::error::{CodecError, ErrorCode};
use crate::previous::PreviousValues;
use crate::program::Program;
use crate::record::Record;
use crate::slots::Slots;
use crate::text_ref::SHORT;
use crate::typed::{Feed, Filling};
use crate::visitor::Visitor;
use flat::{Outcome, Parts, Visiting};
pub(crate) use flat::{RowBatch, Scratch, Sink};
use input::Input;
use lanes::LaneState;
pub(crate) use lanes::{Tally, lane_kernel, most_entries};
use run::Run;
pub(crate) use run::incremented;
use structs::StructSink;
pub(crate) use visit::visit_row;

/// The limits of the messages of a decoder or an encoder. A message beyond one of them is an error
/// ([`ErrorCode::Limit`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a message in bytes. The default is 1 MiB.
    pub message: usize,
    /// The maximum length of a string or byte vector in bytes. An initial value that is not in the
    /// stream may be longer. The default is 64 KiB.
    pub text: usize,
    /// The maximum number of entries of a sequence. The default is 65,536.
    pub entries: u32,
    /// The maximum number of fields of a message, with those of all entries. The message itself,
    /// each group, each entry and each message in a reference count as one field more. The default
    /// is 1,048,576.
    pub fields: u32,
    /// The maximum length in bytes of all strings and byte vectors of a message together, with
    /// those that operators copy. Each counts for at least four bytes. Encoders do not have this
    /// limit. The default is 16 MiB.
    pub texts: usize,
    /// The maximum nesting of dynamic template references. A number above
    /// [`MAX_REFERENCES`](Self::MAX_REFERENCES) has the effect of that one. The default is 16.
    pub references: u32,
}

impl Limits {
    /// The largest effective [`references`](Self::references). Each nested message takes stack, so
    /// that a larger limit would let a feed exhaust it.
    pub const MAX_REFERENCES: u32 = 64;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message: 1 << 20,
            text: 1 << 16,
            entries: 1 << 16,
            fields: 1 << 20,
            texts: 1 << 24,
            references: 16,
        }
    }
}

/// The options of a decoder or an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Whether R1, R2, R6, R7, R8 and R9 are errors. The default is true. A lenient decoder lets
    /// pass what exchanges are known to send:
    /// - R6: integers with redundant leading groups;
    /// - R7: presence maps with trailing groups of zeros;
    /// - R8: presence bits that no field uses, and bits behind the fields of a bit group;
    /// - R9: strings with a zero preamble before other characters than NUL;
    /// - R2: Unicode strings that are not valid UTF-8;
    /// - R1: exponents outside -63 to 63, but within -128 to 127.
    ///
    /// A lenient encoder lets pass the same strings (R2) and exponents (R1).
    pub strict: bool,
    /// The limits.
    pub limits: Limits,
    /// The vector kernel for flat templates, if at least half of the fields of the program are in
    /// such templates. `None` decodes and encodes field by field. The default is the fastest kernel
    /// of this processor. Results do not depend on it.
    pub kernel: Option<LaneKernel>,
    /// Whether messages are decoded or encoded op by op, in the words of the specification. This is
    /// slow, and the other ways are compared with it. The default is false.
    pub oracle: bool,
}

impl Options {
    /// Returns the default options, strict or lenient: see [`strict`](Self::strict).
    #[must_use]
    pub fn with_strict(strict: bool) -> Self {
        Self {
            strict,
            ..Self::default()
        }
    }

    /// Returns the kernel, unless the limit is below the strings that lanes hold, or the oracle is
    /// asked for.
    #[inline(always)]
    pub(crate) const fn lane_kernel(&self) -> Option<LaneKernel> {
        if self.oracle || self.limits.text < fanfare_wire::lanes::MAX_CHARS {
            return None;
        }
        self.kernel
    }

    /// Returns the options with the limits that are in effect.
    pub(crate) fn in_effect(mut self) -> Self {
        let references = &mut self.limits.references;
        *references = (*references).min(Limits::MAX_REFERENCES);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strict: true,
            limits: Limits::default(),
            kernel: LaneKernel::best(),
            oracle: false,
        }
    }
}

/// A decoder of the messages of one stream, which keeps their previous values.
///
/// A decoder is used by one thread at a time, and can be sent to another. It allocates when it is
/// made. Afterwards it allocates only where the strings of a message outgrow those of all messages
/// before it, at the first [`decode_partial`](Self::decode_partial), and once, at a reset, if
/// vector kernels could not decode most of some thousand messages.
///
/// ```
/// use fanfare_fast::{Decoder, Message, Program};
///
/// let program = Program::parse(
///     r#"<template name="Tick" id="7"><uInt32 name="Price" id="44"><copy/></uInt32></template>"#,
/// )?;
/// let mut decoder = Decoder::new(program);
/// let mut message = Message::new();
/// let bytes = [0xe0, 0x87, 0xaa, 0x80];
/// assert_eq!(decoder.decode(&bytes, &mut message)?, 3);
/// assert_eq!(decoder.decode(&bytes[3..], &mut message)?, 1);
/// let tick = message.view(decoder.program()).unwrap();
/// assert_eq!(tick.get("Price").unwrap().as_u64(), Some(42));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Decoder {
    program: Arc<Program>,
    previous: Previous,
    scratch: Vec<u8>,
    lanes: LaneState,
    squeeze: Squeeze,
    options: Options,
}

/// The previous values, in the form that the way of decoding needs.
#[derive(Debug, Clone)]
enum Previous {
    /// Columns for the vector kernels, if at least half of the fields are in flat templates.
    Columns(Dictionaries),
    /// Slots for any program.
    Slots(Slots),
}

impl Previous {
    fn values(&mut self) -> &mut dyn PreviousValues {
        match self {
            Self::Columns(columns) => columns,
            Self::Slots(slots) => slots,
        }
    }
}

impl Decoder {
    /// Returns a strict decoder with the default limits; all previous values are undefined.
    #[must_use]
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        Self::with_options(program, Options::default())
    }

    /// Returns a decoder with these options.
    #[must_use]
    pub fn with_options(program: impl Into<Arc<Program>>, options: Options) -> Self {
        let program = program.into();
        let options = options.in_effect();
        let lanes = LaneState::new(&program, &options);
        let previous = match lanes.kernel {
            Some(_) => Previous::Columns(Dictionaries::new(&program)),
            None => Previous::Slots(Slots::new(&program)),
        };
        Self {
            program,
            previous,
            scratch: Vec::new(),
            lanes,
            squeeze: Squeeze::best(),
            options,
        }
    }

    /// Returns the program that is executed.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        if self.lanes.tally.is_in_vain() {
            return self.leave_lanes();
        }
        match &mut self.previous {
            Previous::Columns(columns) => clear(columns),
            Previous::Slots(slots) => clear(slots),
        }
    }

    /// Stops using lanes for good: too many messages are irregular, and fused ops decode those
    /// faster.
    #[cold]
    fn leave_lanes(&mut self) {
        self.previous = Previous::Slots(Slots::new(&self.program));
        self.lanes.kernel = None;
    }

    /// Decodes one message at the front of `bytes`, field by field into `visitor`, and returns the
    /// number of bytes that it takes.
    ///
    /// # Errors
    /// A [`CodecError`] with the offset in `bytes`. The visitor has then received the fields before
    /// the error, and previous values are in an unknown state until [`Self::reset`].
    #[inline]
    pub fn decode<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Result<usize, CodecError> {
        let len = self.decode_visited(bytes, visitor);
        len.ok_or_else(|| self.failure())
    }

    /// Decodes one message as [`Self::decode`] does. Returns its length, or `None` with the error
    /// in [`Self::failure`].
    #[inline(always)]
    pub(crate) fn decode_visited<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Option<usize> {
        let outcome = match V::TRACE {
            true => Outcome::Refused,
            false => self.flat(bytes, &mut Visiting(&mut *visitor)),
        };
        match outcome {
            Outcome::Done(len) => Some(len),
            Outcome::Refused => self.decode_any(bytes, visitor),
            Outcome::Failed => None,
        }
    }

    /// Decodes one message at the front of `bytes` into a record, and returns the number of bytes
    /// that it takes. This is the cheapest way to all values of a message.
    ///
    /// # Errors
    /// Those of [`Self::decode`]. The record then has the fields before the error, or some of them,
    /// and cannot be encoded.
    #[inline(always)]
    pub fn decode_record(
        &mut self,
        bytes: &[u8],
        record: &mut Record,
    ) -> Result<usize, CodecError> {
        let len = match self.flat(bytes, record) {
            Outcome::Done(len) => Some(len),
            Outcome::Refused => {
                let message = record.as_message(&self.program);
                // Where not even its header is right, nothing else clears the last one.
                message.clear();
                let len = self.decode_any(bytes, message);
                record.set_complete(len.is_some());
                len
            }
            Outcome::Failed => None,
        };
        len.ok_or_else(|| self.failure())
    }

    /// Decodes one message as [`Self::decode_visited`] does, into generated structs, by way of rows
    /// if the structs have them.
    #[inline(always)]
    pub(crate) fn decode_into<F: Feed>(&mut self, bytes: &[u8], feed: &mut F) -> Option<usize> {
        match self.flat(bytes, &mut StructSink::new(feed)) {
            Outcome::Done(len) => Some(len),
            Outcome::Refused => self.decode_any(bytes, &mut Filling::new(feed)),
            Outcome::Failed => None,
        }
    }

    /// Returns true if straight-line code can decode: vector kernels do not, and no option asks for
    /// what it does not do.
    pub(crate) const fn is_for_straight(&self) -> bool {
        let Options { limits, oracle, .. } = self.options;
        matches!(self.previous, Previous::Slots(_)) && !oracle && limits.text >= SHORT
    }

    /// Decodes a message of a flat template.
    #[inline(always)]
    fn flat<S: Sink>(&mut self, bytes: &[u8], sink: &mut S) -> Outcome {
        let Previous::Columns(dictionaries) = &mut self.previous else {
            return Outcome::Refused;
        };
        self.lanes.tally.tried += 1;
        let cut = bytes.len().min(self.options.limits.message);
        let parts = Parts {
            program: &self.program,
            dictionaries,
            scratch: &mut self.scratch,
            lanes: &mut self.lanes,
            options: &self.options,
        };
        let outcome = parts.message(&bytes[..cut], sink);
        if matches!(outcome, Outcome::Failed) && cut < bytes.len() {
            self.reached_limit();
        }
        outcome
    }

    /// Takes the error of the message.
    #[cold]
    #[inline(never)]
    pub(crate) fn failure(&mut self) -> CodecError {
        self.lanes.failure.take()
    }

    /// Decodes a message of any template. Returns its length, or `None` with the error in the lane
    /// state: a result in memory would hold up the next message.
    #[inline(never)]
    fn decode_any<V: Visitor>(&mut self, bytes: &[u8], visitor: &mut V) -> Option<usize> {
        let Options {
            strict,
            limits,
            oracle,
            ..
        } = self.options;
        let cut = bytes.len().min(limits.message);
        macro_rules! run {
            ($previous:expr) => {
                Run {
                    program: &self.program,
                    previous: $previous,
                    scratch: &mut self.scratch,
                    input: Input::new(&bytes[..cut], 0, strict, limits.text),
                    left: limits,
                    template: None,
                    squeeze: self.squeeze,
                    failure: &mut self.lanes.failure,
                }
            };
        }
        let len = match &mut self.previous {
            Previous::Columns(columns) => {
                if !V::TRACE {
                    self.lanes.tally.irregular += 1;
                }
                run!(columns).by_ops(visitor)
            }
            Previous::Slots(slots) if V::TRACE || oracle || limits.text < SHORT => {
                run!(slots).by_ops(visitor)
            }
            Previous::Slots(slots) => run!(slots).fused(visitor),
        };
        if len.is_none() && cut < bytes.len() {
            self.reached_limit();
        }
        len
    }

    /// Changes the error from Truncated to Limit if the limit cut the message.
    #[cold]
    fn reached_limit(&mut self) {
        self.lanes.failure.add(CodecError::cut_by_limit);
    }

    /// Decodes one message of a stream that arrives in pieces, as [`Self::decode`] does. Returns
    /// `None` if `bytes` end inside a message, with the previous values as before the call. The
    /// next call must have the same bytes and more after them. The visitor then receives the
    /// message again from its start.
    ///
    /// # Errors
    /// Those of [`Self::decode`], but previous values are as before the call.
    pub fn decode_partial<V: Visitor>(
        &mut self,
        bytes: &[u8],
        visitor: &mut V,
    ) -> Result<Option<usize>, CodecError> {
        self.previous.values().begin();
        let result = self.decode(bytes, visitor);
        match result {
            Ok(_) => self.previous.values().commit(),
            Err(_) => self.previous.values().roll_back(),
        }
        match result {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.code == ErrorCode::Truncated => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Makes all previous values undefined, and the template unknown.
fn clear(previous: &mut impl PreviousValues) {
    previous.reset();
    previous.set_template(None);
}
