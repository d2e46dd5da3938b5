//! A writer of fields into a caller's buffer.

use super::frame::TRAILER;
use crate::tag;
use fanfare_wire::fields::{SOH, separators_in};
use fanfare_wire::{Decimal, Precision, UtcTimestamp, byte_sum, int};

/// The reason why a message cannot be encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EncodeError {
    /// The buffer is too short.
    #[error("the message does not fit into the buffer")]
    BufferFull,
    /// A value contains a separator (0x01).
    #[error("the value of tag {tag} contains a separator (SOH, 0x01)")]
    Separator {
        /// The tag of the field.
        tag: u32,
    },
    /// A field has no value.
    #[error("tag {tag} has no value")]
    Empty {
        /// The tag of the field.
        tag: u32,
    },
    /// A tag is 0, which is none, or has more than 9 digits.
    #[error("{tag} is not a valid tag number")]
    BadTag {
        /// The tag.
        tag: u32,
    },
    /// BeginString(8), BodyLength(9) or CheckSum(10) is written as a field. The encoder writes them
    /// itself: a message with a second one cannot be read.
    #[error("tag {tag} is written by the encoder itself")]
    Frame {
        /// The tag of the field.
        tag: u32,
    },
    /// BeginString(8) has more than 15 bytes.
    #[error("BeginString(8) is longer than 15 bytes")]
    BeginStringTooLong,
    /// The body has 10 million bytes or more.
    #[error("the body has 10 million bytes or more")]
    BodyTooLong,
    /// A builder of typed messages writes a field twice.
    #[error("tag {tag} is written twice")]
    Twice {
        /// The tag of the field.
        tag: u32,
    },
    /// A builder of typed messages writes a field of a group's entry twice, or after one that
    /// follows it in the definition.
    #[error("tag {tag} is written after a field that follows it in the definition of the group")]
    Order {
        /// The tag of the field.
        tag: u32,
    },
    /// A builder of typed messages ends without a required group.
    #[error("the required group {tag} is not written")]
    GroupMissing {
        /// The tag of the count field.
        tag: u32,
    },
    /// A builder of typed messages writes a field after a group whose entries may have it.
    #[error("tag {tag} after a group would be read as a field of the last entry of the group")]
    InGroup {
        /// The tag of the field.
        tag: u32,
    },
    /// The iterator over the items of a group ends too early or too late.
    #[error("the number of entries of group {tag} differs from its count")]
    Count {
        /// The tag of the count field.
        tag: u32,
    },
}

/// The most digits of BodyLength(9).
const MAX_LENGTH_DIGITS: usize = 7;

/// Room for a BodyLength(9) of three digits, as most messages have, and its separator. It is moved
/// for other lengths.
pub(super) const LENGTH_PLACE: [u8; 4] = *b"000\x01";

/// A writer of one field after the other. It remembers the first fault, and reports it at the end.
///
/// BeginString(8), BodyLength(9) and CheckSum(10) are a fault ([`EncodeError::Frame`]), as the
/// encoder of the message writes them. Other fields are not compared with those written before: a
/// program that passes a message on copies its body ([`Message::body`](super::Message::body) and
/// [`FieldWriter::raw`]), or leaves out the fields of its header.
#[derive(Debug)]
pub struct FieldWriter<'b> {
    pub(super) buf: &'b mut [u8],
    pub(super) at: usize,
    pub(super) fault: Option<EncodeError>,
}

impl<'b> FieldWriter<'b> {
    /// Returns a writer of bare fields at the front of `buf`, such as a body for
    /// [`SharedBody`](super::SharedBody).
    #[inline]
    pub fn new(buf: &'b mut [u8]) -> Self {
        Self {
            buf,
            at: 0,
            fault: None,
        }
    }

    /// Returns the bytes written so far.
    ///
    /// # Errors
    /// Returns the first fault of any field, or an error if the buffer was too short.
    #[inline]
    pub fn written(&self) -> Result<&[u8], EncodeError> {
        match self.fault {
            None => Ok(self.buf.get(..self.at).unwrap_or_default()),
            Some(fault) => Err(fault),
        }
    }

    /// Appends a field with a value of bytes. The value must not be empty or contain a separator
    /// (0x01).
    #[inline(always)]
    pub fn field(&mut self, tag: u32, value: &[u8]) -> &mut Self {
        if value.is_empty() {
            return self.fail(EncodeError::Empty { tag });
        }
        self.tag(tag).value(tag, value)
    }

    /// Appends BeginString(8), which the front of a message alone has.
    #[inline]
    pub(super) fn begin_string(&mut self, value: &[u8]) -> &mut Self {
        if value.is_empty() {
            let tag = tag::BEGIN_STRING;
            return self.fail(EncodeError::Empty { tag });
        }
        self.put_array(*b"8=").value(tag::BEGIN_STRING, value)
    }

    /// Appends the value of a field, and the separator.
    #[inline(always)]
    fn value(&mut self, tag: u32, value: &[u8]) -> &mut Self {
        match self.put_value(value) {
            true => self.fail(EncodeError::Separator { tag }),
            false => self,
        }
    }

    /// Appends a field with a text value.
    #[inline(always)]
    pub fn str(&mut self, tag: u32, value: &str) -> &mut Self {
        self.field(tag, value.as_bytes())
    }

    /// Appends a field with an unsigned integer.
    #[inline(always)]
    pub fn u64(&mut self, tag: u32, value: u64) -> &mut Self {
        self.tag(tag).put_u64(value)
    }

    #[inline]
    fn put_u64(&mut self, value: u64) -> &mut Self {
        match int::short_text(value) {
            Some((text, len)) => self.put_short([text], len),
            None => self.number(|out| int::write_u64(value, out)),
        }
    }

    /// Appends a field with a signed integer.
    #[inline]
    pub fn i64(&mut self, tag: u32, value: i64) -> &mut Self {
        self.tag(tag).number(|out| int::write_i64(value, out))
    }

    /// Appends a field with a decimal number.
    #[inline]
    pub fn decimal(&mut self, tag: u32, value: Decimal) -> &mut Self {
        self.tag(tag);
        match value.short_text() {
            Some((text, len)) => self.put_short(text, len),
            None => self.number(|out| value.write(out)),
        }
    }

    /// Appends a field with a UTCTimestamp.
    #[inline]
    pub fn timestamp(&mut self, tag: u32, time: UtcTimestamp, precision: Precision) -> &mut Self {
        self.tag(tag).number(|out| time.write(precision, out))
    }

    /// Appends a field with a single character, which must not be the separator.
    #[inline(always)]
    pub fn char(&mut self, tag: u32, value: u8) -> &mut Self {
        let Some((text, len)) = short_tag(tag).filter(|_| value != SOH) else {
            return self.field(tag, &[value]);
        };
        let behind = u64::from(u16::from_le_bytes([value, SOH]));
        self.put_padded((text | behind << (8 * len)).to_le_bytes(), len + 2)
    }

    /// Appends a field with `Y` or `N`.
    #[inline]
    pub fn bool(&mut self, tag: u32, value: bool) -> &mut Self {
        self.char(tag, if value { b'Y' } else { b'N' })
    }

    /// Appends a length field and its data field, whose value may contain any bytes.
    #[inline]
    pub fn data(&mut self, length_tag: u32, data_tag: u32, value: &[u8]) -> &mut Self {
        self.u64(length_tag, value.len() as u64)
            .tag(data_tag)
            .put(value)
            .put(&[SOH])
    }

    /// Appends fields that are encoded already, each as `tag=value` and a separator. They are not
    /// checked.
    #[inline]
    pub fn raw(&mut self, fields: &[u8]) -> &mut Self {
        self.put(fields)
    }

    /// Appends a field with several words, separated by spaces. A word must not be empty or contain
    /// a space or a separator.
    pub(crate) fn words<'v>(
        &mut self,
        tag: u32,
        words: impl Iterator<Item = &'v [u8]>,
    ) -> &mut Self {
        let begin = self.at;
        for word in words {
            if word.is_empty() || word.contains(&SOH) || word.contains(&b' ') {
                return self.fail(EncodeError::Separator { tag });
            }
            match self.at == begin {
                true => self.tag(tag),
                false => self.put_array([b' ']),
            };
            self.put(word);
        }
        match self.at == begin {
            true => self.fail(EncodeError::Empty { tag }),
            false => self.put_array([SOH]),
        }
    }

    /// Fills in a BodyLength(9) that does not have three digits, and returns where the message
    /// begins.
    #[cold]
    pub(super) fn put_length(
        &mut self,
        prefix: usize,
        body_length: usize,
    ) -> Result<usize, EncodeError> {
        let width = int::digits(body_length as u64);
        if width > MAX_LENGTH_DIGITS {
            return Err(EncodeError::BodyTooLong);
        }
        let body = prefix + LENGTH_PLACE.len();
        let (start, more) = (3_usize.saturating_sub(width), width.saturating_sub(3));
        if self.at + more > self.buf.len() {
            return Err(EncodeError::BufferFull);
        }
        self.buf.copy_within(body..self.at, body + more);
        self.buf.copy_within(..prefix, start);
        self.at += more;
        let place = self.buf.get_mut(start + prefix..body + more);
        if let Some([length @ .., end]) = place {
            int::write_padded(body_length as u64, width, length);
            *end = SOH;
        }
        Ok(start)
    }

    /// Appends the tag and `=`. A constant tag becomes one store.
    #[inline(always)]
    fn tag(&mut self, tag: u32) -> &mut Self {
        match short_tag(tag) {
            Some((text, len)) => self.put_padded(text.to_le_bytes(), len),
            None => self.long_tag(tag),
        }
    }

    fn long_tag(&mut self, tag: u32) -> &mut Self {
        match tag {
            0 | 1_000_000_000.. => return self.fail(EncodeError::BadTag { tag }),
            8..=10 => return self.fail(EncodeError::Frame { tag }),
            _ => {}
        }
        let mut text = [0; 10];
        let digits = int::write_u64(tag.into(), &mut text);
        text[digits] = b'=';
        self.put(&text[..=digits])
    }

    /// Appends what `write` writes, and a separator. `write` returns the number of bytes, or 0 if
    /// there is no room.
    #[inline]
    pub(super) fn number(&mut self, write: impl FnOnce(&mut [u8]) -> usize) -> &mut Self {
        match write(self.buf.get_mut(self.at..).unwrap_or_default()) {
            0 => self.fail(EncodeError::BufferFull),
            written => {
                self.at += written;
                self.put_array([SOH])
            }
        }
    }

    #[inline]
    pub(super) fn put(&mut self, bytes: &[u8]) -> &mut Self {
        let end = self.at + bytes.len();
        let Some(room) = self.buf.get_mut(self.at..end) else {
            return self.fail(EncodeError::BufferFull);
        };
        self.at = end;
        if let Some((first, last)) = ends::<16>(bytes).filter(|_| bytes.len() <= 32) {
            copy_ends(room, first, last);
        } else if let Some((first, last)) = ends::<8>(bytes).filter(|_| bytes.len() <= 16) {
            copy_ends(room, first, last);
        } else if let Some((first, last)) = ends::<4>(bytes).filter(|_| bytes.len() <= 8) {
            copy_ends(room, first, last);
        } else {
            room.copy_from_slice(bytes);
        }
        self
    }

    #[inline]
    pub(super) fn put_array<const N: usize>(&mut self, bytes: [u8; N]) -> &mut Self {
        match self
            .buf
            .get_mut(self.at..)
            .and_then(|room| room.first_chunk_mut::<N>())
        {
            Some(room) => {
                *room = bytes;
                self.at += N;
                self
            }
            None => self.fail(EncodeError::BufferFull),
        }
    }

    /// Appends the first `len` bytes of `text` and a separator. The lowest byte of each word is its
    /// first.
    #[inline]
    pub(super) fn put_short<const N: usize>(&mut self, text: [u64; N], len: usize) -> &mut Self {
        let room = self.buf.get_mut(self.at..).unwrap_or_default();
        let is_roomy = room.len() > 8 * N;
        match room.as_chunks_mut().0.first_chunk_mut::<N>() {
            Some(place) if is_roomy => {
                // A word at a time: as bytes they would go by way of the stack.
                for (place, word) in place.iter_mut().zip(text) {
                    *place = word.to_le_bytes();
                }
                if let Some(separator) = room.get_mut(len) {
                    *separator = SOH;
                }
                self.at += len + 1;
                self
            }
            _ => {
                let text = text.map(u64::to_le_bytes);
                self.put_exactly(text.as_flattened(), len).put_array([SOH])
            }
        }
    }

    /// Appends the first `len` bytes of `text`. All of `text` is written where there is room.
    #[inline]
    pub(super) fn put_padded<const N: usize>(&mut self, text: [u8; N], len: usize) -> &mut Self {
        match self
            .buf
            .get_mut(self.at..)
            .and_then(|room| room.first_chunk_mut::<N>())
        {
            Some(room) => {
                *room = text;
                self.at += len;
                self
            }
            None => self.put_exactly(&text, len),
        }
    }

    /// Appends the first `len` bytes of `text`, where the buffer has no room for all of `text`.
    #[cold]
    fn put_exactly(&mut self, text: &[u8], len: usize) -> &mut Self {
        self.put(text.get(..len).unwrap_or_default())
    }

    /// Appends the bytes and a separator, and returns whether there is a separator among the bytes.
    ///
    /// Short values, of which most messages consist, are copied as two words that may overlap.
    #[inline(always)]
    fn put_value(&mut self, value: &[u8]) -> bool {
        let end = self.at + value.len();
        let room = self.buf.get_mut(self.at..end + 1);
        let Some((separator, room)) = room.and_then(|room| room.split_last_mut()) else {
            self.fail(EncodeError::BufferFull);
            return false;
        };
        *separator = SOH;
        self.at = end + 1;
        if let ([byte], [to]) = (value, &mut *room) {
            *to = *byte;
            return *byte == SOH;
        }
        if let Some((first, last)) = ends::<8>(value).filter(|_| value.len() <= 16) {
            copy_ends(room, first, last);
            let [a, b] = [first, last].map(u64::from_le_bytes);
            return separators_in(a) | separators_in(b) != 0;
        }
        if let Some((first, last)) = ends::<4>(value).filter(|_| value.len() <= 8) {
            copy_ends(room, first, last);
            let [a, b] = [first, last].map(|bytes| u64::from(u32::from_le_bytes(bytes)));
            return separators_in(a | b << 32) != 0;
        }
        room.copy_from_slice(value);
        value.contains(&SOH)
    }

    /// Returns the sum of all bytes written from `start` on. Bytes after them may be overwritten.
    #[inline]
    pub(super) fn sum_from(&mut self, start: usize) -> u8 {
        const STEP: usize = 32;
        let room = self.buf.get_mut(self.at..).unwrap_or_default();
        let Some(behind) = room.first_chunk_mut::<STEP>() else {
            return byte_sum(self.buf.get(start..self.at).unwrap_or_default());
        };
        // Zeros behind the end add nothing, and there is no rest of a step.
        *behind = [0; STEP];
        let end = start + (self.at - start).next_multiple_of(STEP);
        let (steps, _) = self
            .buf
            .get(start..end)
            .unwrap_or_default()
            .as_chunks::<STEP>();
        let sums = steps.iter().fold([0; STEP], |mut sums: [u8; STEP], step| {
            for (sum, byte) in sums.iter_mut().zip(step) {
                *sum = sum.wrapping_add(*byte);
            }
            sums
        });
        byte_sum(&sums)
    }

    /// Remembers `fault` if it is the first one. The function is inlined, so that the writer can
    /// live in registers.
    #[inline(always)]
    pub(crate) fn fail(&mut self, fault: EncodeError) -> &mut Self {
        self.fault.get_or_insert(fault);
        self
    }

    /// Forgets the fault if it is `mended`.
    #[inline]
    pub(crate) fn forgive(&mut self, mended: EncodeError) {
        self.fault = self.fault.filter(|fault| *fault != mended);
    }
}

/// Returns the first and the last `N` bytes, which may overlap, or `None` if there are fewer.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> Option<([u8; N], [u8; N])> {
    Some((*bytes.first_chunk()?, *bytes.last_chunk()?))
}

#[inline]
fn copy_ends<const N: usize>(room: &mut [u8], first: [u8; N], last: [u8; N]) {
    if let Some(to) = room.first_chunk_mut() {
        *to = first;
    }
    if let Some(to) = room.last_chunk_mut() {
        *to = last;
    }
}

/// Returns a tag of at most four digits and `=`, the first byte lowest, and the number of bytes.
/// Returns `None` for longer ones, and for those of the frame, which no caller may write.
#[inline]
fn short_tag(tag: u32) -> Option<(u64, usize)> {
    let text = |digits: &[u32]| {
        let text = digits.iter().rev().fold(u64::from(b'='), |text, power| {
            (text << 8) | u64::from(b'0' + (tag / power % 10) as u8)
        });
        (text, digits.len() + 1)
    };
    match tag {
        1..=7 => Some(text(&[1])),
        11..=99 => Some(text(&[10, 1])),
        100..=999 => Some(text(&[100, 10, 1])),
        1000..=9999 => Some(text(&[1000, 100, 10, 1])),
        _ => None,
    }
}

/// Returns the three digits of a number below 1000.
#[inline]
pub(super) fn three_digits(value: u32) -> [u8; 3] {
    let (hundreds, rest) = (value / 100, value % 100);
    [hundreds, rest / 10, rest % 10].map(|digit| b'0' + digit as u8)
}

/// Returns the trailer `10=ddd|`.
#[inline]
pub(super) fn trailer(sum: u8) -> [u8; TRAILER] {
    let [hundreds, tens, ones] = three_digits(sum.into());
    [b'1', b'0', b'=', hundreds, tens, ones, SOH]
}
