//! The items that generated code uses ([`crate::codegen`]): decoders into typed structs, encoders
//! from them, and the few types of which those structs consist.
//!
//! Structs are filled in place, message after message. Strings, entries, optional groups and
//! dynamic references keep their memory, so that decoding allocates only where a message outgrows
//! all before it, or follows an error inside a dynamic reference. Structs that have taken more than
//! 64 MiB are replaced by new ones before the next message. Strings of up to 15 bytes, as most of a
//! feed are, are in the struct ([`Text`]).

mod encoder;
mod feed;
mod growth;
mod members;
mod rows;
mod values;
mod visit;

use std::sync::Arc;

use crate::decode::{Decoder, Options};
use crate::error::{CodecError, TemplateError};
use crate::program::Program;

pub use crate::decode::reader::{Operator, Reader, Segment};
pub use crate::decode::straight::Stream;
pub use crate::encode::straight::{Encoded, Target};
pub use crate::encode::writer::Writer;
pub use crate::slots::Value as PreviousValue;
pub use encoder::{Typed, TypedEncoder};
pub use feed::Feed;
pub(crate) use members::Filling;
pub use members::{DecimalMember, Integer, Member, Members, TextMember};
pub use rows::{RowMut, RowsMut};
pub use values::{Entries, Optional, OptionalText, Text};
pub use visit::{Dynamic, decimal, group, sequence, signed, text, unsigned};

/// A decoder into generated structs.
#[derive(Debug, Clone)]
pub struct TypedDecoder<F> {
    decoder: Decoder,
    feed: F,
    way: Way,
    /// The number of bytes by which the structs have grown.
    grown: usize,
}

/// The number of bytes by which structs may grow. A hostile feed can give each entry strings and
/// entries of its own in turn, none of them beyond the limits of a message.
const MOST_GROWN: usize = 64 << 20;

/// The way in which structs are filled.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Straight-line code that was generated for this program.
    Straight,
    /// Rows, which this program lays out as the structs were generated for.
    Rows,
    /// Ops, one by one.
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
    /// Returns a decoder with these options; all previous values are undefined.
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
            grown: 0,
        })
    }

    /// Returns the program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.decoder.program()
    }

    /// Returns the structs, of which one holds the message that was decoded last.
    #[must_use]
    pub const fn messages(&self) -> &F {
        &self.feed
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        let was_for_straight = self.decoder.is_for_straight();
        self.decoder.reset();
        // To choose a way hashes the whole program.
        if self.decoder.is_for_straight() != was_for_straight {
            self.way = Way::of::<F>(&self.decoder);
        }
    }

    /// Decodes one message at the front of `bytes`. Returns its length, and the struct that holds
    /// it until the next call. The struct is `None` if the feed has none for the template of the
    /// message; generated feeds have one for each.
    ///
    /// # Errors
    /// Those of [`Decoder::decode`].
    #[inline(always)]
    pub fn decode(&mut self, bytes: &[u8]) -> Result<(usize, Option<F::Decoded<'_>>), CodecError> {
        match self.fill(bytes) {
            Some(len) => Ok((len, self.feed.decoded())),
            None => Err(self.decoder.failure()),
        }
    }

    /// Decodes one message, and returns its length. A result in memory would hold up the next
    /// message.
    #[inline]
    fn fill(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.grown > MOST_GROWN {
            self.begin_anew();
        }
        // What other structs of this thread have taken does not count.
        growth::take();
        let len = match self.way {
            Way::Straight => self.straight(bytes),
            Way::Rows => self.decoder.decode_into(bytes, &mut self.feed),
            Way::Ops => self.by_ops(bytes),
        };
        self.grown += growth::take();
        len
    }

    #[cold]
    #[inline(never)]
    fn begin_anew(&mut self) {
        self.feed = F::default();
        self.grown = 0;
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
