//! Encoding generated structs.

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
    /// Calls `visitor` for the message of this template with these values, but not of its end. The
    /// program must be that of the document the struct was generated from.
    fn write<V: Visitor>(&self, program: &Program, visitor: &mut V);

    /// [`Program::code`] of the templates, as [`Self::straight`] takes it for granted.
    const CODE: u64;

    /// Returns the index of the template.
    fn template(&self) -> u32;

    /// Writes the fields behind these presence bits, which stand below a one: straight-line code.
    /// All presence bits, or `None` with the error in the target.
    fn straight(
        &self,
        target: &mut Target<'_>,
        values: &mut [PreviousValue],
        map: u64,
    ) -> Option<u64>;

    /// [`Program::layout`] of the templates, as [`Self::fill`] takes it for granted; 0 if that
    /// fills nothing.
    const LAYOUT: u64 = 0;

    /// Fills the rows of a message with these values; false, with the rows undefined, for one of a
    /// template of which it does not know the rows.
    #[inline]
    fn fill(&self, rows: &mut RowsMut<'_>) -> bool {
        _ = rows;
        false
    }
}

/// Encodes generated structs: by straight-line code, or by way of the rows of a record where a
/// vector kernel encodes those. What neither does goes by way of a [`Message`].
#[derive(Debug, Clone)]
pub struct TypedEncoder {
    encoder: Encoder,
    record: Record,
    message: Message,
    /// That of the program, if it encodes rows; else 0.
    layout: u64,
    /// That of the program, if straight-line code may encode; else 0.
    code: u64,
}

impl TypedEncoder {
    /// Returns an encoder for the structs of `F` with these options.
    ///
    /// # Errors
    /// Those of [`Program::parse_lenient`], if the document is not valid for this version.
    pub fn new<F: Feed>(options: Options) -> Result<Self, TemplateError> {
        let (program, _) = Program::parse_lenient(F::TEMPLATES)?;
        let mut encoder = Self {
            layout: 0,
            code: 0,
            encoder: Encoder::with_options(program, options),
            record: Record::new(),
            message: Message::new(),
        };
        encoder.choose();
        Ok(encoder)
    }

    /// Takes the layout or the code for the way in which the encoder works.
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

    /// Like [`Self::encode`], but previous values are as before the call where it fails.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub fn encode_or_restore<M: Typed>(
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
    fn encode_fields<M: Typed>(
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
    use crate::builtin::simple::{Messages, Quote};
    use fanfare_wire::lanes::LaneKernel;

    /// An encoder leaves lanes at a reset, if values of more than four bytes keep it out of them.
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
            let mut encoder = TypedEncoder::new::<Messages>(options).unwrap();
            assert!(encoder.layout != 0 && encoder.code == 0);
            let (mut expected, mut out) = (Vec::new(), Vec::new());
            encoder.encode(&quote, &mut expected).unwrap();
            for _ in 0..5_000 {
                encoder.reset();
                out.clear();
                encoder.encode(&quote, &mut out).unwrap();
                assert_eq!(out, expected);
            }
            let code = encoder.program().code();
            assert_eq!((encoder.layout, encoder.code), (0, code));
        }
    }
}
