//! Messages with one body for many recipients. The body is encoded once, and each session adds a
//! header and a trailer.
//!
//! The sums of the body, of the constant header fields and of the time are computed once. For each
//! session only the digits of BodyLength(9) and MsgSeqNum(34) are added up.

use super::frame::TRAILER;
use super::writer::{EncodeError, FieldWriter, trailer};
use crate::tag;
use core::ops::Range;
use fanfare_wire::{Precision, UtcTimestamp, byte_sum, int};

/// The fields after the standard header that many recipients get, with their sum.
///
/// ```
/// use fanfare_fix::codec::{Decoder, SendingTime, SessionHeader, SharedBody, SharedFrame};
/// use fanfare_wire::{Precision, UtcTimestamp};
///
/// let body = SharedBody::new(b"W", b"55=EURUSD\x01268=0\x01").unwrap();
/// let mut frame = SharedFrame::new(1024);
/// frame.load(&body).unwrap();
/// let time = SendingTime::new(UtcTimestamp::from_nanos(0), Precision::Millis);
/// let mut decoder = Decoder::new();
/// for (consumer, seq) in [(b"ANN", 7), (b"BOB", 1234)] {
///     let header = SessionHeader::new(b"FIX.4.4", b"PLANT", consumer).unwrap();
///     let message = decoder.decode(frame.patch(&header, seq, &time)).unwrap();
///     assert_eq!(message.get(56), Some(&consumer[..]));
///     assert_eq!(message.u64(34), Ok(seq));
///     assert_eq!(message.body(), body.fields());
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SharedBody<'a> {
    msg_type: &'a [u8],
    /// The fields of one recipient before the shared ones, and their sum.
    lead: (&'a [u8], u8),
    fields: &'a [u8],
    /// The sum of `fields` alone.
    sum: u8,
}

/// A SendingTime(52) as text with its sum, written once for all messages of one moment.
#[derive(Clone, Copy, Debug)]
pub struct SendingTime {
    /// The field `52=…|`.
    text: [u8; SENDING_TIME_ROOM],
    len: usize,
    sum: u8,
}

/// The constant part of the header of one session's messages, ready to be copied, with its sum.
#[derive(Clone, Debug)]
pub struct SessionHeader {
    /// The fields `8=…|9=`.
    prefix: Vec<u8>,
    /// The fields `49=…|56=…|…34=`.
    middle: Vec<u8>,
    /// The sum of both, and of the separators after BodyLength(9) and MsgSeqNum(34).
    sum: u8,
}

/// A shared body with room for a header before it and a trailer after it, so that each recipient's
/// message is one contiguous slice.
#[derive(Clone, Debug)]
pub struct SharedFrame {
    /// The room for the header, the body, and the room for the trailer.
    buf: Vec<u8>,
    body_len: usize,
    msg_type: MsgType,
    sum: u8,
}

/// The length of the longest header: prefix, constant fields, numbers and a lead.
const HEADER_ROOM: usize = 128 + CONSTANT_ROOM + LEAD_ROOM;

/// The longest [lead](SharedBody::led_by), in bytes.
const LEAD_ROOM: usize = 96;

/// The length of the longest constant part of a header: CompIDs, SubIDs and LocationIDs of 96 bytes
/// each.
const CONSTANT_ROOM: usize = 6 * (96 + "142=|".len()) + "34=".len();

/// The length of the longest `52=…|`.
const SENDING_TIME_ROOM: usize = 32;

/// The length of the longest MsgType(35) of a shared body.
const MSG_TYPE_ROOM: usize = 8;

impl<'a> SharedBody<'a> {
    /// The most bytes that a message has besides the fields of its body: header, lead and trailer.
    pub const ENVELOPE: usize = HEADER_ROOM + TRAILER;

    /// Returns a body of `fields`, which are whole fields (`tag=value` and a separator). None of
    /// them may belong to the standard header or trailer. [`Message::body`](super::Message::body)
    /// returns those of a received message, and [`FieldWriter`] writes new ones.
    ///
    /// # Errors
    /// Returns an error if `msg_type` is empty or longer than 8 bytes.
    pub fn new(msg_type: &'a [u8], fields: &'a [u8]) -> Result<Self, EncodeError> {
        Self::with_sum(msg_type, fields, byte_sum(fields))
    }

    /// Returns a body of `fields` whose byte sum is already known. `sum` covers `fields` alone.
    /// With a wrong sum, messages have a wrong CheckSum(10).
    ///
    /// # Errors
    /// See [`SharedBody::new`].
    pub fn with_sum(msg_type: &'a [u8], fields: &'a [u8], sum: u8) -> Result<Self, EncodeError> {
        if msg_type.is_empty() || msg_type.len() > MSG_TYPE_ROOM {
            return Err(EncodeError::Empty { tag: tag::MSG_TYPE });
        }
        Ok(Self {
            msg_type,
            lead: (b"", 0),
            fields,
            sum,
        })
    }

    /// Returns the same body with whole fields of one recipient before the shared ones, such as
    /// MDReqID(262).
    ///
    /// # Errors
    /// Returns [`EncodeError::BufferFull`] if `lead` is longer than 96 bytes.
    pub fn led_by(self, lead: &'a [u8]) -> Result<Self, EncodeError> {
        if lead.len() > LEAD_ROOM {
            return Err(EncodeError::BufferFull);
        }
        Ok(Self {
            lead: (lead, byte_sum(lead)),
            ..self
        })
    }

    /// Returns MsgType(35).
    pub fn msg_type(&self) -> &'a [u8] {
        self.msg_type
    }

    /// Returns the shared fields.
    pub fn fields(&self) -> &'a [u8] {
        self.fields
    }

    /// Returns the byte sum of the shared fields.
    pub fn sum(&self) -> u8 {
        self.sum
    }
}

impl SendingTime {
    /// Returns the field for `time` with the given precision.
    #[inline]
    pub fn new(time: UtcTimestamp, precision: Precision) -> Self {
        let mut text = [0; SENDING_TIME_ROOM];
        text[..3].copy_from_slice(b"52=");
        let len = 3 + time.write(precision, &mut text[3..]);
        text[len] = 1;
        // Zeros behind the text add nothing, and a fixed length is summed up faster.
        let sum = byte_sum(&text);
        Self {
            text,
            len: len + 1,
            sum,
        }
    }

    /// Returns the field in a room of fixed size, and its length.
    #[inline]
    pub(crate) fn text(&self) -> ([u8; SENDING_TIME_ROOM], usize) {
        (self.text, self.len)
    }

    /// Returns `52=…` with its separator.
    #[inline]
    pub fn field(&self) -> &[u8] {
        self.text.get(..self.len).unwrap_or_default()
    }
}

impl SessionHeader {
    /// Returns a header with both CompIDs.
    ///
    /// # Errors
    /// Returns an error if a value is empty, too long, or contains a separator.
    pub fn new(begin_string: &[u8], sender: &[u8], target: &[u8]) -> Result<Self, EncodeError> {
        let fields = [(tag::SENDER_COMP_ID, sender), (tag::TARGET_COMP_ID, target)];
        Self::with_fields(begin_string, &fields)
    }

    /// Returns a header with these constant fields, such as CompIDs, SubIDs and LocationIDs. They
    /// are written in their order between MsgType(35) and MsgSeqNum(34).
    ///
    /// # Errors
    /// Returns an error if a value is empty or contains a separator, or if BeginString(8) is longer
    /// than 15 bytes. Returns [`EncodeError::BufferFull`] if all fields together are longer than
    /// six of 96 bytes each.
    pub fn with_fields(begin_string: &[u8], fields: &[(u32, &[u8])]) -> Result<Self, EncodeError> {
        let mut room = [0; 24];
        let mut writer = FieldWriter::new(&mut room);
        writer.begin_string(begin_string).raw(b"9=");
        let prefix = writer.written().map_err(|fault| match fault {
            EncodeError::BufferFull => EncodeError::BeginStringTooLong,
            other => other,
        })?;
        let mut room = [0; CONSTANT_ROOM];
        let mut writer = FieldWriter::new(&mut room);
        for &(tag, value) in fields {
            writer.field(tag, value);
        }
        let middle = writer.raw(b"34=").written()?;
        let sum = byte_sum(prefix)
            .wrapping_add(byte_sum(middle))
            .wrapping_add(2);
        Ok(Self {
            prefix: prefix.to_vec(),
            middle: middle.to_vec(),
            sum,
        })
    }

    /// Writes the whole message with `body` at the front of `buf` and returns its length.
    ///
    /// # Errors
    /// Returns an error if the buffer is too short.
    #[inline]
    pub fn write(
        &self,
        buf: &mut [u8],
        seq: u64,
        time: &SendingTime,
        body: &SharedBody<'_>,
    ) -> Result<usize, EncodeError> {
        let plan = self.plan(body, seq, time);
        let end = plan.header + body.fields.len();
        let room = buf
            .get_mut(..end + TRAILER)
            .ok_or(EncodeError::BufferFull)?;
        let (header, rest) = room.split_at_mut(plan.header);
        let (fields, trailer) = rest.split_at_mut(body.fields.len());
        fields.copy_from_slice(body.fields);
        let sum = self.write_header(header, &plan, body, seq, time);
        trailer.copy_from_slice(&self::trailer(sum.wrapping_add(body.sum)));
        Ok(end + TRAILER)
    }

    /// Returns `8=…|9=`.
    #[inline]
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns the constant fields and `34=`.
    #[inline]
    pub(crate) fn middle(&self) -> &[u8] {
        &self.middle
    }

    #[inline]
    fn plan(&self, body: &SharedBody<'_>, seq: u64, time: &SendingTime) -> Plan {
        let seq_width = int::digits(seq);
        let constant = 4 + body.msg_type.len() + self.middle.len();
        let header = constant + seq_width + 1 + time.len + body.lead.0.len();
        let body_length = header + body.fields.len();
        let length_width = int::digits(body_length as u64);
        let header = self.prefix.len() + length_width + 1 + header;
        Plan {
            header,
            body_length,
            length_width,
            seq_width,
        }
    }

    /// Fills `out`, which has exactly the planned length, and returns the sum of its bytes.
    #[inline]
    fn write_header(
        &self,
        out: &mut [u8],
        plan: &Plan,
        body: &SharedBody<'_>,
        seq: u64,
        time: &SendingTime,
    ) -> u8 {
        let mut cursor = Cursor { out };
        cursor.put(&self.prefix);
        let length_sum = cursor.number(plan.body_length as u64, plan.length_width);
        cursor.put(b"35=");
        cursor.put(body.msg_type);
        cursor.put(&[1]);
        cursor.put(&self.middle);
        let seq_sum = cursor.number(seq, plan.seq_width);
        cursor.put(time.field());
        cursor.put(body.lead.0);
        let type_sum = byte_sum(b"35=\x01").wrapping_add(byte_sum(body.msg_type));
        [length_sum, type_sum, seq_sum, time.sum, body.lead.1]
            .iter()
            .fold(self.sum, |a, &b| a.wrapping_add(b))
    }
}

/// The lengths of a header and of its numbers.
struct Plan {
    header: usize,
    body_length: usize,
    length_width: usize,
    seq_width: usize,
}

/// A slice that is filled from its front.
struct Cursor<'a> {
    out: &'a mut [u8],
}

impl Cursor<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let out = core::mem::take(&mut self.out);
        if let Some((room, rest)) = out.split_at_mut_checked(bytes.len()) {
            room.copy_from_slice(bytes);
            self.out = rest;
        }
    }

    /// Writes `value` in `width` digits and a separator, and returns the sum of the digits.
    #[inline]
    fn number(&mut self, value: u64, width: usize) -> u8 {
        let mut text = [0; 20];
        int::write_padded(value, width, &mut text);
        let digits = text.get(..width).unwrap_or_default();
        self.put(digits);
        self.put(&[1]);
        byte_sum(digits)
    }
}

impl SharedFrame {
    /// Returns a frame for bodies of at most `max_body` bytes. Only this function allocates.
    pub fn new(max_body: usize) -> Self {
        Self {
            buf: vec![0; HEADER_ROOM + max_body + TRAILER],
            body_len: 0,
            msg_type: MsgType::default(),
            sum: 0,
        }
    }

    /// Copies `body` into the frame, in place of the previous one.
    ///
    /// # Errors
    /// Returns [`EncodeError::BufferFull`] if `body` is longer than the frame's maximum.
    #[inline]
    pub fn load(&mut self, body: &SharedBody<'_>) -> Result<(), EncodeError> {
        let (lead, lead_sum) = body.lead;
        let start = HEADER_ROOM + lead.len();
        let end = start + body.fields.len();
        if end + TRAILER > self.buf.len() {
            return Err(EncodeError::BufferFull);
        }
        self.buf[HEADER_ROOM..start].copy_from_slice(lead);
        self.buf[start..end].copy_from_slice(body.fields);
        self.body_len = end - HEADER_ROOM;
        self.msg_type = MsgType::new(body.msg_type);
        self.sum = body.sum.wrapping_add(lead_sum);
        Ok(())
    }

    /// Writes a session's header before the body and the trailer after it, and returns the whole
    /// message. The message is valid until the next call. The call does not allocate.
    #[inline]
    pub fn patch(&mut self, header: &SessionHeader, seq: u64, time: &SendingTime) -> &[u8] {
        let range = self.patch_range(header, seq, time);
        self.buf.get(range).unwrap_or_default()
    }

    #[inline]
    fn patch_range(
        &mut self,
        header: &SessionHeader,
        seq: u64,
        time: &SendingTime,
    ) -> Range<usize> {
        let end = HEADER_ROOM + self.body_len;
        let Some((room, rest)) = self.buf.split_at_mut_checked(HEADER_ROOM) else {
            return 0..0;
        };
        let body = SharedBody {
            msg_type: self.msg_type.bytes(),
            lead: (b"", 0),
            fields: rest.get(..self.body_len).unwrap_or_default(),
            sum: self.sum,
        };
        let plan = header.plan(&body, seq, time);
        let start = HEADER_ROOM - plan.header;
        let sum = header.write_header(&mut room[start..], &plan, &body, seq, time);
        self.buf[end..end + TRAILER].copy_from_slice(&trailer(sum.wrapping_add(self.sum)));
        start..end + TRAILER
    }
}

/// A MsgType(35) that is stored in place.
#[derive(Clone, Copy, Debug, Default)]
struct MsgType {
    text: [u8; MSG_TYPE_ROOM],
    len: u8,
}

impl MsgType {
    /// Returns a copy of `text`, which [`SharedBody::new`] limits to [`MSG_TYPE_ROOM`] bytes.
    fn new(text: &[u8]) -> Self {
        let mut msg_type = Self::default();
        for (to, &from) in msg_type.text.iter_mut().zip(text) {
            *to = from;
            msg_type.len += 1;
        }
        msg_type
    }

    fn bytes(&self) -> &[u8] {
        self.text.get(..self.len.into()).unwrap_or_default()
    }
}
