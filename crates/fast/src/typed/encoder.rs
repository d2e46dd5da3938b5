//! The encoder of generated structs.

use std::marker::PhantomData;
use std::sync::Arc;

use super::feed::Feed;
use super::rows::RowsMut;
use super::{PreviousValue, Target};
use crate::decode::Options;
use crate::encode::Encoder;
use crate::error::{CodecError, TemplateError};
use crate::message::Message;
use crate::program::Program;
use crate::record::Record;
use crate::visitor::Visitor;

/// A generated struct that can be encoded.
pub trait Typed {
    /// The structs of the same document.
    type Feed: Feed;

    /// Calls `visitor` for the message of this template with these values, but not for its end. The
    /// program must be that of the document from which the struct was generated.
    fn write<V: Visitor>(&self, program: &Program, visitor: &mut V);

    /// The [`Program::code`] of the templates, on which [`Self::straight`] relies.
    const CODE: u64;

    /// Returns the index of the template.
    fn template(&self) -> u32;

    /// Writes the fields by straight-line code, after these presence bits, which are below a marker
    /// bit. Returns all presence bits, or `None` with the error in the target.
    fn straight(
        &self,
        target: &mut Target<'_>,
        values: &mut [PreviousValue],
        map: u64,
    ) -> Option<u64>;

    /// The [`Program::layout`] of the templates, on which [`Self::fill`] relies; 0 if that fills
    /// nothing.
    const LAYOUT: u64 = 0;

    /// Fills the rows of a message with these values. Returns false, with the rows undefined, for a
    /// message of a template whose rows it does not know.
    #[inline]
    fn fill(&self, rows: &mut RowsMut<'_>) -> bool {
        _ = rows;
        false
    }
}

/// An encoder of the generated structs of one document. It encodes by straight-line code, or by way
/// of the rows of a record if a vector kernel encodes those, and by way of a [`Message`] otherwise.
///
/// The compiler refuses the structs of another document:
///
/// ```compile_fail,E0271
/// use fanfare_fast::builtin::{complex, simple};
/// use fanfare_fast::{Options, typed::TypedEncoder};
///
/// let mut encoder = TypedEncoder::<simple::Messages>::new(Options::default()).unwrap();
/// _ = encoder.encode(&complex::Done::default(), &mut Vec::new());
/// ```
#[derive(Debug, Clone)]
pub struct TypedEncoder<F> {
    encoder: Encoder,
    record: Record,
    message: Message,
    /// The layout of the program, if the encoder encodes rows; otherwise 0.
    layout: u64,
    /// The code of the program, if straight-line code may encode; otherwise 0.
    code: u64,
    feed: PhantomData<F>,
}

impl<F: Feed> TypedEncoder<F> {
    /// Returns an encoder with these options; all previous values are undefined.
    ///
    /// # Errors
    /// Those of [`Program::parse_lenient`], if the document is not valid for this version.
    pub fn new(options: Options) -> Result<Self, TemplateError> {
        let (program, _) = Program::parse_lenient(F::TEMPLATES)?;
        let mut encoder = Self {
            layout: 0,
            code: 0,
            encoder: Encoder::with_options(program, options),
            record: Record::new(),
            message: Message::new(),
            feed: PhantomData,
        };
        encoder.choose();
        Ok(encoder)
    }

    /// Sets the layout or the code for the way in which the encoder works.
    fn choose(&mut self) {
        let program = self.encoder.program();
        self.layout = match self.encoder.has_lanes() {
            true => program.layout(),
            false => 0,
        };
        self.code = match self.encoder.is_for_straight() {
            true => program.code(),
            false => 0,
        };
    }

    /// Returns the program of the templates.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        self.encoder.program()
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        let had_lanes = self.encoder.has_lanes();
        self.encoder.reset();
        if self.encoder.has_lanes() != had_lanes {
            self.choose();
        }
    }

    /// Clears the template identifier alone, as at the start of a packet that keeps dictionaries.
    pub fn reset_template(&mut self) {
        self.encoder.reset_template();
    }

    /// Appends one message to `out`, and returns the number of bytes.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`].
    #[inline]
    pub fn encode<M: Typed<Feed = F>>(
        &mut self,
        message: &M,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        if M::CODE == self.code {
            let done =
                self.encoder
                    .encode_straight(message.template(), out, |target, values, map| {
                        message.straight(target, values, map)
                    });
            match done {
                Some(Some(len)) => return Ok(len),
                Some(None) => return Err(self.encoder.failure()),
                None => {}
            }
        } else if M::LAYOUT != 0 && M::LAYOUT == self.layout {
            let mut rows = RowsMut::new(&mut self.record);
            if message.fill(&mut rows) && rows.finish() {
                return self.encoder.encode_record(&self.record, out);
            }
        }
        self.encode_fields(message, out)
    }

    /// Encodes one message as [`Self::encode`] does. If that fails, previous values are as before
    /// the call.
    ///
    /// # Errors
    /// Those of [`Encoder::encode`].
    pub fn encode_or_restore<M: Typed<Feed = F>>(
        &mut self,
        message: &M,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        self.encoder.begin();
        let result = self.encode(message, out);
        self.encoder.end(result.is_ok());
        result
    }

    /// Encodes a message that has neither rows nor straight-line code.
    #[inline(never)]
    fn encode_fields<M: Typed<Feed = F>>(
        &mut self,
        message: &M,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        message.write(self.encoder.program(), &mut self.message);
        self.encoder.encode(&self.message, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::simple::{Decoded, Messages, Quote};
    use crate::typed::{TypedDecoder, Way};
    use fanfare_wire::lanes::LaneKernel;

    /// Checks that encoder and decoder leave lanes at a reset, if values of more than four bytes
    /// keep them out of them.
    #[test]
    fn straight_line_code_takes_over_where_lanes_are_left() {
        let quote = Quote {
            timestamp: 1 << 28,
            ..Quote::default()
        };
        for kernel in LaneKernel::all() {
            let options = Options {
                kernel: Some(kernel),
                ..Options::default()
            };
            let mut encoder = TypedEncoder::<Messages>::new(options).unwrap();
            let mut decoder = TypedDecoder::<Messages>::new(options).unwrap();
            assert!(encoder.layout != 0 && encoder.code == 0);
            assert!(matches!(decoder.way, Way::Rows));
            let (mut first, mut out) = (Vec::new(), Vec::new());
            encoder.encode(&quote, &mut first).unwrap();
            let expected = (first.len(), Some(Decoded::Quote(&quote)));
            assert_eq!(decoder.decode(&first).unwrap(), expected);
            for _ in 0..5_000 {
                encoder.reset();
                decoder.reset();
                out.clear();
                encoder.encode(&quote, &mut out).unwrap();
                assert_eq!(out, first);
                assert_eq!(decoder.decode(&out).unwrap(), expected);
            }
            let code = encoder.program().code();
            assert_eq!((encoder.layout, encoder.code), (0, code));
            assert!(matches!(decoder.way, Way::Straight));
        }
    }
}
