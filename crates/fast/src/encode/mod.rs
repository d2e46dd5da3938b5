//! The encoder: the inverse of the decoder, with the choices of the reference encoder: a field
//! whose operator lets it be left out is left out, everything has its shortest form.

mod bits;
mod flat;
mod gather;
mod numbers;
mod output;
mod run;
mod text;

use std::sync::Arc;

use crate::decode::Options;
use crate::dictionary::Dictionaries;
use crate::error::CodecError;
use crate::message::Message;
use crate::previous::PreviousValues;
use crate::program::Program;
use fanfare_wire::lanes::Row;
use flat::{BATCH, Done};
use output::Writer;

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
    /// Where messages become rows; none without a kernel.
    rows: Box<[Row]>,
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
        let rows = match options.lane_kernel() {
            Some(_) if !program.flats().is_empty() => BATCH,
            _ => 0,
        };
        Self {
            rows: vec![Row::default(); rows].into(),
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
        let start = out.len();
        match self.in_lanes(message, out) {
            Done::All => {}
            done => self.rest(message, done, start, out)?,
        }
        self.within_limit(start, out)
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
