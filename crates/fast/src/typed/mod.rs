//! What generated code links ([`crate::codegen`]): decoders into typed structs, encoders from
//! them, and the few types of which those structs consist.
//!
//! Structs are filled in place, message after message: strings, entries and optional groups keep
//! their memory, so that decoding allocates only where a message outgrows all before it. Strings of
//! up to 15 bytes are in the struct ([`Text`]), as most of a feed are.

mod feed;
mod members;
mod rows;
mod values;
mod visit;

use std::sync::Arc;

use crate::decode::{Decoder, Options};
use crate::encode::Encoder;
use crate::error::{CodecError, TemplateError};
use crate::message::Message;
use crate::program::Program;
use crate::record::Record;

pub use crate::decode::reader::{Operator, Reader, Segment};
pub use crate::decode::straight::Stream;
pub use crate::slots::Value as PreviousValue;
pub use feed::{Feed, Typed};
pub(crate) use members::Filling;
pub use members::{DecimalMember, Integer, Members, TextMember};
pub use rows::{RowMut, RowsMut};
pub use values::{Entries, Optional, OptionalText, Text};
pub use visit::{Dynamic, decimal, group, sequence, signed, text, unsigned};

/// Decodes into generated structs.
#[derive(Debug, Clone)]
pub struct TypedDecoder<F> {
    decoder: Decoder,
    feed: F,
    way: Way,
}

/// How structs are filled.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By the straight-line code that was generated for this program.
    Straight,
    /// From rows, which were generated for as this program lays them out.
    Rows,
    /// Op by op.
    Ops,
}

impl Way {
    fn of<F: Feed>(decoder: &Decoder) -> Self {
        let program = decoder.program();
        if decoder.is_for_straight() && F::CODE != 0 && F::CODE == program.code() {
            Self::Straight
        } else if F::LAYOUT != 0 && F::LAYOUT == program.layout() {
            Self::Rows
        } else {
            Self::Ops
        }
    }
}

impl<F: Feed> TypedDecoder<F> {
    /// A decoder that behaves as told; all previous values are undefined.
    ///
    /// # Errors
    /// Those of [`Program::parse_lenient`], if the document is not valid for this version.
    pub fn new(options: Options) -> Result<Self, TemplateError> {
        let (program, _) = Program::parse_lenient(F::TEMPLATES)?;
        let decoder = Decoder::with_options(program, options);
        Ok(Self {
            way: Way::of::<F>(&decoder),
            decoder,
            feed: F::default(),
        })
    }

    /// The program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.decoder.program()
    }

    /// The structs, of which one holds the message that was decoded last.
    #[must_use]
    pub const fn messages(&self) -> &F {
        &self.feed
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        self.decoder.reset();
    }

    /// Decodes one message at the front of `bytes`; its length, and the struct that holds it
    /// until the next call (`None` for a Reset that the document does not declare).
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    #[inline(always)]
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(usize, Option<F::Decoded<'_>>), CodecError> {
        match self.fill(bytes) {
            Some(len) => Ok((len, self.feed.decoded())),
            None => Err(self.decoder.failure()),
        }
    }

    /// The length of a message; a result that goes by way of memory would hold up the next one.
    #[inline]
    fn fill(&mut self, bytes: &[u8]) -> Option<usize> {
        match self.way {
            Way::Straight => self.straight(bytes),
            Way::Rows => self.decoder.decode_into(bytes, &mut self.feed),
            Way::Ops => self.by_ops(bytes),
        }
    }

    #[inline(always)]
    fn straight(&mut self, bytes: &[u8]) -> Option<usize> {
        let feed = &mut self.feed;
        let decoder = &mut self.decoder;
        let len = decoder.decode_straight(bytes, |stream, template, values, place| {
            feed.begin_message(template);
            feed.straight(template, stream, values, place.0, place.1)
        });
        len.unwrap_or_else(|| self.by_ops(bytes))
    }

    fn by_ops(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut filling = Filling::<dyn Members>::new(&mut self.feed);
        self.decoder.decode_visited(bytes, &mut filling)
    }
}

/// Encodes generated structs: by way of the rows of a record, where a message fits into them, and
/// else of a [`Message`].
#[derive(Debug, Clone)]
pub struct TypedEncoder {
    encoder: Encoder,
    record: Record,
    message: Message,
    /// That of the program, if it encodes rows; else 0.
    layout: u64,
}

impl TypedEncoder {
    /// An encoder for the structs of `F` that behaves as told.
    ///
    /// # Errors
    /// Those of [`Program::parse_lenient`], if the document is not valid for this version.
    pub fn new<F: Feed>(options: Options) -> Result<Self, TemplateError> {
        let (program, _) = Program::parse_lenient(F::TEMPLATES)?;
        let layout = program.layout();
        let encoder = Encoder::with_options(program, options);
        Ok(Self {
            layout: if encoder.has_lanes() { layout } else { 0 },
            encoder,
            record: Record::new(),
            message: Message::new(),
        })
    }

    /// The program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.encoder.program()
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        self.encoder.reset();
    }

    /// Clears the template identifier alone: at the start of a packet that keeps dictionaries.
    pub fn reset_template(&mut self) {
        self.encoder.reset_template();
    }

    /// Appends one message to `out`; the number of bytes.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    #[inline]
    pub fn encode<M: Typed>(
        &mut self,
        message: &M,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        if M::LAYOUT != 0 && M::LAYOUT == self.layout {
            let mut rows = RowsMut::new(&mut self.record);
            if message.fill(&mut rows) && rows.finish() {
                return self.encoder.encode_record(&self.record, out);
            }
        }
        self.encode_fields(message, out)
    }

    /// Encodes a message whose rows are not known, or do not hold it.
    #[inline(never)]
    fn encode_fields<M: Typed>(
        &mut self,
        message: &M,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        message.write(self.encoder.program(), &mut self.message);
        self.encoder.encode(&self.message, out)
    }
}
