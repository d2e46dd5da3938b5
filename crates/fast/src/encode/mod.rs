//! The encoder: the inverse of the decoder, with the choices of the reference encoder: a field
//! whose operator lets it be left out is left out, everything has its shortest form.

mod bits;
mod flat;
mod output;
mod run;
mod text;

use std::sync::Arc;

use crate::decode::Options;
use crate::dictionary::Dictionaries;
use crate::error::{CodecError, ErrorCode};
use crate::message::Message;
use crate::program::Program;
use output::Writer;
use run::Run;

/// Encodes the messages of one stream, keeping their previous values.
///
/// Threads and allocation are as for [`crate::Decoder`].
#[derive(Debug, Clone)]
pub struct Encoder {
    program: Arc<Program>,
    dictionaries: Dictionaries,
    writer: Writer,
    /// A record's message, where it must be one.
    message: Message,
    options: Options,
}

impl Encoder {
    /// A strict encoder with the default limits; all previous values are undefined.
    #[must_use]
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        Self::with_options(program, Options::default())
    }

    /// An encoder that behaves as told. A lenient one lets pass R1 and R2.
    #[must_use]
    pub fn with_options(program: impl Into<Arc<Program>>, options: Options) -> Self {
        let program = program.into();
        let dictionaries = Dictionaries::new(&program);
        Self {
            program,
            dictionaries,
            writer: Writer::default(),
            message: Message::new(),
            options,
        }
    }

    /// The program that it executes.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        self.dictionaries.reset();
        self.dictionaries.template = None;
    }

    /// Clears the template identifier alone: at the start of a packet that keeps dictionaries.
    pub const fn reset_template(&mut self) {
        self.dictionaries.template = None;
    }

    /// Whether records are encoded in lanes.
    pub(crate) const fn has_lanes(&self) -> bool {
        self.options.lane_kernel().is_some()
    }

    /// Appends one message to `out`; returns the number of bytes.
    ///
    /// # Errors
    /// D3 where an operator cannot express the value, D6 where a mandatory field is absent, D1
    /// where a value has another type than its field, D9 for a template without an identifier
    /// that is not the only one,
    /// and the errors of the values. `out` is then as before; previous values are in an unknown
    /// state until [`Self::reset`].
    pub fn encode(&mut self, message: &Message, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        self.writer.clear();
        self.run(message)?;
        self.hand_over(out)
    }

    /// Encodes the message of `rows`, which is in `self.message`, field by field.
    fn run_own(&mut self) -> Result<(), CodecError> {
        let message = std::mem::take(&mut self.message);
        let result = self.run(&message);
        self.message = message;
        result
    }

    fn run(&mut self, message: &Message) -> Result<(), CodecError> {
        Run {
            program: &self.program,
            dictionaries: &mut self.dictionaries,
            message,
            out: &mut self.writer,
            options: &self.options,
        }
        .message()
    }

    #[inline]
    fn hand_over(&self, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        let bytes = self.writer.written();
        if bytes.len() > self.options.limits.message {
            return Err(CodecError::new(ErrorCode::Limit, bytes.len()));
        }
        out.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    /// Like [`Self::encode`], but previous values are as before the call where it fails.
    ///
    /// # Errors
    /// As [`Self::encode`].
    pub fn encode_or_restore(
        &mut self,
        message: &Message,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        self.dictionaries.begin();
        let result = self.encode(message, out);
        match result {
            Ok(_) => self.dictionaries.commit(),
            Err(_) => self.dictionaries.roll_back(),
        }
        result
    }
}
