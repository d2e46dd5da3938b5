//! Encoding of fields as a message in a caller's buffer.

use super::frame::TRAILER;
use super::shared::{SendingTime, SessionHeader};
use super::writer::{EncodeError, FieldWriter, LENGTH_PLACE, three_digits, trailer};
use core::ops::{Deref, DerefMut, Range};
use fanfare_wire::{byte_sum, int};

/// An encoder that writes one message into a caller's buffer.
///
/// The fields follow BeginString(8) and room for three digits of BodyLength(9). [`Encoder::finish`]
/// fills in BodyLength(9), moves the bytes beside it if it does not have three digits, and appends
/// CheckSum(10). The methods that add fields are those of [`FieldWriter`], to which an encoder
/// dereferences.
///
/// An encoder does not allocate. A message of n bytes needs a buffer of at most n + 2 bytes. The
/// message starts at the front of the buffer if the body has 100 bytes or more.
#[derive(Debug)]
pub struct Encoder<'b> {
    writer: FieldWriter<'b>,
    /// The length of `8=…|9=`.
    prefix: usize,
}

/// The front of a message, up to the start of its body. [`Encoder::front`] returns it, and
/// [`Encoder::with_front`] begins the next message with it.
#[derive(Clone, Debug)]
pub(crate) struct Front {
    text: [u8; FRONT_ROOM],
    len: usize,
    prefix: usize,
}

/// The longest front that is kept, in bytes. Longer fronts are written anew each time.
const FRONT_ROOM: usize = 128;

/// The longest BeginString(8), in bytes.
const MAX_BEGIN_STRING: usize = 15;

impl<'b> Encoder<'b> {
    /// Begins a message with its BeginString(8) and MsgType(35).
    #[inline]
    pub fn new(buf: &'b mut [u8], begin_string: &[u8], msg_type: &[u8]) -> Self {
        let mut writer = FieldWriter {
            buf,
            at: 0,
            fault: None,
        };
        writer.begin_string(begin_string).put_array(*b"9=");
        if begin_string.len() > MAX_BEGIN_STRING {
            writer.fail(EncodeError::BeginStringTooLong);
        }
        let prefix = writer.at;
        writer.put_array(LENGTH_PLACE).field(35, msg_type);
        Self { writer, prefix }
    }

    /// Begins a message with the whole standard header of a session. The constant part of the
    /// header is copied in one piece.
    #[inline]
    pub fn with_header(
        buf: &'b mut [u8],
        header: &SessionHeader,
        msg_type: &[u8],
        seq: u64,
        time: &SendingTime,
    ) -> Self {
        let mut writer = FieldWriter {
            buf,
            at: 0,
            fault: None,
        };
        writer
            .put(header.prefix())
            .put_array(LENGTH_PLACE)
            .field(35, msg_type);
        writer.put(header.middle());
        match int::short_text(seq) {
            Some((text, len)) => writer.put_short([text], len),
            None => writer.number(|out| int::write_u64(seq, out)),
        };
        let (text, len) = time.text();
        writer.put_padded(text, len);
        Self {
            writer,
            prefix: header.prefix().len(),
        }
    }

    /// Returns a copy of the bytes written so far, or `None` if they are too long for a [`Front`]
    /// or a field has a fault.
    pub(crate) fn front(&self) -> Option<Front> {
        let mut text = [0; FRONT_ROOM];
        let written = self.writer.written().ok()?;
        text.get_mut(..written.len())?.copy_from_slice(written);
        Some(Front {
            text,
            len: written.len(),
            prefix: self.prefix,
        })
    }

    /// Begins a message with a copy of the front of another one.
    #[inline]
    pub(crate) fn with_front(buf: &'b mut [u8], front: &Front) -> Self {
        let mut writer = FieldWriter::new(buf);
        match writer.buf.first_chunk_mut() {
            Some(room) => {
                *room = front.text;
                writer.at = front.len;
            }
            None => {
                writer.put(front.text.get(..front.len).unwrap_or_default());
            }
        }
        Self {
            writer,
            prefix: front.prefix,
        }
    }

    /// Finishes the message and returns its range in the buffer.
    ///
    /// # Errors
    /// Returns the first fault of any field, or an error if the buffer is too short. The content of
    /// the buffer is then unspecified.
    #[inline]
    pub fn finish(mut self) -> Result<Range<usize>, EncodeError> {
        let writer = &mut self.writer;
        if let Some(fault) = writer.fault {
            return Err(fault);
        }
        let place = self.prefix..self.prefix + LENGTH_PLACE.len() - 1;
        let body_length = writer.at - place.end - 1;
        let start = match (body_length, writer.buf.get_mut(place)) {
            (100..=999, Some(digits)) => {
                digits.copy_from_slice(&three_digits(body_length as u32));
                0
            }
            _ => writer.put_length(self.prefix, body_length)?,
        };
        let sum = writer.sum_from(start);
        writer.put_array(trailer(sum));
        match writer.fault {
            None => Ok(start..writer.at),
            Some(fault) => Err(fault),
        }
    }

    /// Finishes the message and returns its range in the buffer and its bytes.
    ///
    /// # Errors
    /// See [`finish`](Self::finish).
    pub(crate) fn finish_with_bytes(self) -> Result<(Range<usize>, &'b [u8]), EncodeError> {
        let Self { writer, prefix } = self;
        let FieldWriter { buf, at, fault } = writer;
        let writer = FieldWriter {
            buf: &mut *buf,
            at,
            fault,
        };
        let range = Encoder { writer, prefix }.finish()?;
        let bytes = buf.get(range.clone()).unwrap_or_default();
        Ok((range, bytes))
    }

    /// Finishes a message whose last fields before CheckSum(10), `rest`, are not in the buffer.
    /// Returns the range of the front part in the buffer, and the trailer that follows `rest`.
    ///
    /// # Errors
    /// See [`finish`](Self::finish).
    pub(crate) fn finish_around(
        mut self,
        rest: &[u8],
    ) -> Result<(Range<usize>, [u8; TRAILER]), EncodeError> {
        let writer = &mut self.writer;
        if let Some(fault) = writer.fault {
            return Err(fault);
        }
        let body_length = writer.at - self.prefix - LENGTH_PLACE.len() + rest.len();
        let start = writer.put_length(self.prefix, body_length)?;
        let sum = writer.sum_from(start).wrapping_add(byte_sum(rest));
        Ok((start..writer.at, trailer(sum)))
    }
}

impl Front {
    /// Returns the bytes of the front, to be changed in place. BodyLength(9) has no value yet.
    #[inline]
    pub(crate) fn text_mut(&mut self) -> &mut [u8] {
        self.text.get_mut(..self.len).unwrap_or_default()
    }
}

impl<'b> Deref for Encoder<'b> {
    type Target = FieldWriter<'b>;

    #[inline]
    fn deref(&self) -> &FieldWriter<'b> {
        &self.writer
    }
}

impl<'b> DerefMut for Encoder<'b> {
    #[inline]
    fn deref_mut(&mut self) -> &mut FieldWriter<'b> {
        &mut self.writer
    }
}
