//! The encoder, which is the inverse of the decoder. It makes the choices of the reference encoder:
//! a field whose operator lets it be left out is left out, and everything has its shortest form.

mod bits;
mod cursor;
mod flat;
mod fused;
mod gather;
mod numbers;
mod output;
mod run;
pub(crate) mod straight;
mod text;
pub(crate) mod writer;

use std::sync::Arc;

use crate::decode::Options;
use crate::error::{CodecError, ErrorCode, Failure};
use crate::message::Message;
use crate::previous::PreviousValues;
use crate::program::Program;
use crate::record::Record;
use crate::slots::Slots;
use crate::text_ref::SHORT;
use flat::{Done, Lanes};
use output::Output;
use run::Run;

/// Returns true if a presence map of this number of bits is gathered in a word.
pub(crate) const fn is_word(bits: u32) -> bool {
    output::PresenceWriter::is_word(bits)
}

/// An encoder of the messages of one stream, which keeps their previous values.
///
/// Threads and allocation are as for [`crate::Decoder`]. An encoder also allocates where a message
/// is longer than all messages before it.
#[derive(Debug, Clone)]
pub struct Encoder {
    program: Arc<Program>,
    previous: Previous,
    output: Output,
    /// The message of a record that is encoded field by field.
    message: Message,
    options: Options,
    /// The error of the last message that had one.
    failure: Failure,
}

/// The previous values, in the form that the way of encoding needs.
#[derive(Debug, Clone)]
enum Previous {
    /// Columns for the vector kernels, if at least half of the fields are in flat templates.
    Columns(Box<Lanes>),
    /// Slots for any program.
    Slots(Slots),
}

impl Previous {
    fn values(&mut self) -> &mut dyn PreviousValues {
        match self {
            Self::Columns(lanes) => &mut lanes.dictionaries,
            Self::Slots(slots) => slots,
        }
    }
}

impl Encoder {
    /// Returns a strict encoder with the default limits; all previous values are undefined.
    #[must_use]
    pub fn new(program: impl Into<Arc<Program>>) -> Self {
        Self::with_options(program, Options::default())
    }

    /// Returns an encoder with these options. A lenient encoder lets R1 and R2 pass.
    #[must_use]
    pub fn with_options(program: impl Into<Arc<Program>>, options: Options) -> Self {
        let program = program.into();
        let options = options.in_effect();
        let previous = match Lanes::new(&program, &options) {
            Some(lanes) => Previous::Columns(Box::new(lanes)),
            None => Previous::Slots(Slots::new(&program)),
        };
        Self {
            program,
            previous,
            output: Output::default(),
            message: Message::new(),
            options,
            failure: Failure::default(),
        }
    }

    /// Returns the program that is executed.
    #[must_use]
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Clears all dictionaries and the template identifier, as at the start of a packet.
    pub fn reset(&mut self) {
        if let Previous::Columns(lanes) = &mut self.previous
            && lanes.tally.is_in_vain()
        {
            return self.leave_lanes();
        }
        self.previous.values().reset();
        self.reset_template();
    }

    /// Stops using lanes for good: too many messages are irregular, and fused ops encode those
    /// faster.
    #[cold]
    fn leave_lanes(&mut self) {
        self.previous = Previous::Slots(Slots::new(&self.program));
    }

    /// Clears the template identifier alone, as at the start of a packet that keeps dictionaries.
    pub fn reset_template(&mut self) {
        self.previous.values().set_template(None);
    }

    /// Returns whether records are encoded in lanes.
    pub(crate) const fn has_lanes(&self) -> bool {
        matches!(self.previous, Previous::Columns(_))
    }

    /// Appends one message to `out`, and returns the number of bytes.
    ///
    /// # Errors
    /// [`ErrorCode::Foreign`], before anything is done, if the message is of a template of a
    /// program with other templates. Fields are taken to be of the same program as the template,
    /// without a check.
    ///
    /// D3 where an operator cannot express the value, D6 where a mandatory field is absent, D1
    /// where a value has another type than its field, D9 for a template without an identifier that
    /// is not the only one, an input error where the message has more fields or entries than its
    /// template or the length of the sequence says, LIMIT where it exceeds [`crate::Limits`], and
    /// the errors of the values. `out` is then as before the call, and previous values are in an
    /// unknown state until [`Self::reset`].
    pub fn encode(&mut self, message: &Message, out: &mut Vec<u8>) -> Result<usize, CodecError> {
        if !message.is_of(&self.program) {
            return Err(CodecError::new(ErrorCode::Foreign, 0));
        }
        let start = out.len();
        let done = match &mut self.previous {
            Previous::Columns(lanes) => lanes.encode(&self.program, message, out),
            Previous::Slots(_) => Done::Nothing,
        };
        if done != Done::All {
            self.rest(message, done, start, out)?;
        }
        self.within_limit(start, out)
    }

    /// Encodes the part of a message, which begins at `start`, that was not done in lanes.
    #[inline(always)]
    fn rest(
        &mut self,
        message: &Message,
        done: Done,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), CodecError> {
        let result = self.write(message, done, out.get(start..).unwrap_or_default());
        if result.is_none() {
            out.truncate(start);
            return Err(self.failure());
        }
        out.extend_from_slice(self.output.written());
        Ok(())
    }

    /// Writes that part to the output. Returns `None` with the error in [`Self::failure`].
    #[inline(never)]
    fn write(&mut self, message: &Message, done: Done, written: &[u8]) -> Option<()> {
        self.output.clear();
        let Options { oracle, limits, .. } = self.options;
        macro_rules! run {
            ($previous:expr) => {
                Run {
                    program: &self.program,
                    previous: $previous,
                    message,
                    out: &mut self.output,
                    options: &self.options,
                    left: limits,
                    failure: &mut self.failure,
                }
            };
        }
        if let Previous::Columns(lanes) = &mut self.previous {
            lanes.tally.irregular += 1;
        }
        match (&mut self.previous, done) {
            (Previous::Columns(lanes), Done::Entries(done)) => {
                run!(&mut lanes.dictionaries).further_entries(done, written)
            }
            (Previous::Columns(lanes), _) => run!(&mut lanes.dictionaries).by_ops(),
            (Previous::Slots(slots), _) if oracle || limits.text < SHORT => run!(slots).by_ops(),
            (Previous::Slots(slots), _) => run!(slots).fused(),
        }
    }

    /// Takes the error of the message.
    #[cold]
    pub(crate) fn failure(&mut self) -> CodecError {
        self.failure.take()
    }

    /// Encodes one message as [`Self::encode`] does. If that fails, previous values are as before
    /// the call.
    ///
    /// # Errors
    /// Those of [`Self::encode`].
    pub fn encode_or_restore(
        &mut self,
        message: &Message,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        self.begin();
        let result = self.encode(message, out);
        self.end(result.is_ok());
        result
    }

    /// Encodes one message as [`Self::encode_record`] does. If that fails, previous values are as
    /// before the call.
    ///
    /// # Errors
    /// Those of [`Self::encode_record`].
    pub fn encode_record_or_restore(
        &mut self,
        record: &Record,
        out: &mut Vec<u8>,
    ) -> Result<usize, CodecError> {
        self.begin();
        let result = self.encode_record(record, out);
        self.end(result.is_ok());
        result
    }

    /// Starts a transaction on the previous values, until [`Self::end`].
    pub(crate) fn begin(&mut self) {
        self.previous.values().begin();
    }

    /// Keeps the changes since [`Self::begin`] if `is_done`, and undoes them otherwise.
    pub(crate) fn end(&mut self, is_done: bool) {
        match is_done {
            true => self.previous.values().commit(),
            false => self.previous.values().roll_back(),
        }
    }
}
