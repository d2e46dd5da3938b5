//! The standard header of received messages.

use fanfare_wire::{UtcTimestamp, int};

use super::identity::SessionId;
use super::ids::is_id;
use super::validate::{BusinessReason, Fault, RejectReason};
use crate::codec::{FieldErrorKind, Message};
use crate::{msg_type, tag};

/// The fields of the standard header that the session uses, present and well-formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The MsgType(35), not empty.
    pub(super) msg_type: &'a [u8],
    pub(super) seq: u64,
    /// Whether SenderCompID(49) and TargetCompID(56) are those of the session, seen from the other
    /// side.
    pub(super) is_ours: bool,
    pub(super) sending_time: UtcTimestamp,
    pub(super) poss_dup: bool,
    pub(super) poss_resend: bool,
    /// The OrigSendingTime(122), unparsed.
    pub(super) orig_sending_time: Option<&'a [u8]>,
}

/// The header fields that were found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found<'a> {
    seq: Option<&'a [u8]>,
    sender: Option<&'a [u8]>,
    sending_time: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    poss_dup: Option<&'a [u8]>,
    poss_resend: Option<&'a [u8]>,
    orig_sending_time: Option<&'a [u8]>,
    /// The first SubID, LocationID or third party's CompID that is too long.
    too_long: Option<u32>,
}

impl<'a> Header<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns a fault if MsgType(35) is empty, if MsgSeqNum(34), SenderCompID(49), SendingTime(52)
    /// or TargetCompID(56) is missing, empty or malformed, or if a SubID, a LocationID or a CompID
    /// that is not compared is longer than `limit`.
    #[inline]
    pub(super) fn read(
        message: &Message<'a>,
        id: &SessionId,
        limit: usize,
        last: &mut LastHeader,
    ) -> Result<Self, Fault> {
        if let Some(header) = Self::read_again(message, last) {
            return Ok(header);
        }
        Self::read_anew(message, id, limit, last)
    }

    /// Reads a header that differs from the last one only in MsgType(35), MsgSeqNum(34) and the
    /// milliseconds of SendingTime(52). [`Header::read_anew`] is its oracle.
    #[inline]
    fn read_again(message: &Message<'a>, last: &LastHeader) -> Option<Self> {
        let [tags, begins, ends] = message.front::<8>()?;
        let [_, _, _, 34, 49, 52, 56, next] = *tags else {
            return None;
        };
        let [seq_end, end] = [ends[3], ends[6]].map(|end| end as usize);
        let bytes = message.bytes();
        let sending_time = last.time_of(bytes.get(seq_end + 1..end)?)?;
        let digits = seq_end.checked_sub(begins[3] as usize)?;
        let eight = bytes.get(..seq_end)?.last_chunk()?;
        let seq = int::parse_last_of_eight(u64::from_le_bytes(*eight), digits)?;
        let msg_type = bytes.get(begins[2] as usize..ends[2] as usize)?;
        (!msg_type.is_empty() && !tag::is_header(next)).then_some(Self {
            msg_type,
            seq: seq.into(),
            is_ours: last.is_ours,
            sending_time,
            poss_dup: false,
            poss_resend: false,
            orig_sending_time: None,
        })
    }

    #[inline(never)]
    fn read_anew(
        message: &Message<'a>,
        id: &SessionId,
        limit: usize,
        last: &mut LastHeader,
    ) -> Result<Self, Fault> {
        let msg_type = message.msg_type();
        if msg_type.is_empty() {
            return Err(Fault::new(
                RejectReason::TagWithoutValue,
                Some(tag::MSG_TYPE),
            ));
        }
        let found = Found::read(message, limit);
        let seq = present(found.seq, tag::MSG_SEQ_NUM, message)?;
        let sender = present(found.sender, tag::SENDER_COMP_ID, message)?;
        let sending_time = present(found.sending_time, tag::SENDING_TIME, message)?;
        let target = present(found.target, tag::TARGET_COMP_ID, message)?;
        let malformed = |tag| Fault::new(RejectReason::DataFormat, Some(tag));
        let header = Self {
            msg_type,
            seq: int::parse_u64(seq).ok_or(malformed(tag::MSG_SEQ_NUM))?,
            is_ours: same(sender, id.target.as_bytes()) && same(target, id.sender.as_bytes()),
            sending_time: last
                .second
                .parse(sending_time)
                .ok_or(malformed(tag::SENDING_TIME))?,
            poss_dup: found.poss_dup == Some(b"Y"),
            poss_resend: found.poss_resend == Some(b"Y"),
            orig_sending_time: found.orig_sending_time,
        };
        if let Some(tag) = found.too_long {
            return Err(Fault::new(RejectReason::ValueIncorrect, Some(tag)));
        }
        last.remember(message, sending_time, header.is_ours);
        Ok(header)
    }
}

impl<'a> Found<'a> {
    /// Reads the fields before the body.
    #[inline]
    fn read(message: &Message<'a>, limit: usize) -> Self {
        let (seq, sender, sending_time, target) = match *message.tags() {
            // The two orders in use, with nothing behind.
            [_, _, _, 34, 49, 52, 56, next, ..] if !tag::is_header(next) => (3, 4, 5, 6),
            [_, _, _, 49, 56, 34, 52, next, ..] if !tag::is_header(next) => (5, 3, 6, 4),
            _ => return Self::scan(message, limit),
        };
        Self {
            seq: message.value(seq),
            sender: message.value(sender),
            sending_time: message.value(sending_time),
            target: message.value(target),
            ..Self::default()
        }
    }

    /// Reads the fields in any order.
    fn scan(message: &Message<'a>, limit: usize) -> Self {
        let mut found = Self::default();
        for (position, &tag) in message.tags().iter().enumerate().skip(3) {
            let place = match tag {
                tag::MSG_SEQ_NUM => &mut found.seq,
                tag::SENDER_COMP_ID => &mut found.sender,
                tag::SENDING_TIME => &mut found.sending_time,
                tag::TARGET_COMP_ID => &mut found.target,
                tag::POSS_DUP_FLAG => &mut found.poss_dup,
                tag::POSS_RESEND => &mut found.poss_resend,
                tag::ORIG_SENDING_TIME => &mut found.orig_sending_time,
                _ if tag::is_header(tag) => {
                    let len = message.value(position).map_or(0, <[u8]>::len);
                    if len > limit && is_id(tag) {
                        found.too_long.get_or_insert(tag);
                    }
                    continue;
                }
                _ => break,
            };
            // Of a repeated field the first counts, as everywhere.
            *place = place.or(message.value(position));
        }
        found
    }
}

/// The last header that was read. Of the next one, within the same second, MsgSeqNum(34) and the
/// milliseconds are new, and the rest only has to be compared.
#[derive(Clone, Debug)]
pub(super) struct LastHeader {
    second: LastTime,
    /// The text from SenderCompID(49) to the end of TargetCompID(56).
    text: [u8; LAST_ROOM],
    /// The length of the text, or 0 if no header is remembered.
    len: usize,
    /// The index of the milliseconds in `text`.
    millis: usize,
    /// The time without the milliseconds.
    time: UtcTimestamp,
    is_ours: bool,
}

/// The longest text that is remembered, in bytes. Longer headers are read anew each time.
const LAST_ROOM: usize = 96;

/// The length of `YYYYMMDD-HH:MM:SS.mmm`.
const WITH_MILLIS: usize = WHOLE + 4;

impl LastHeader {
    pub(super) const NONE: Self = Self {
        second: LastTime::NONE,
        text: [0; LAST_ROOM],
        len: 0,
        millis: 0,
        time: UtcTimestamp::from_nanos(0),
        is_ours: false,
    };

    /// Reads a SendingTime(52) if the text differs from the remembered one only in the
    /// milliseconds.
    #[inline(always)]
    fn time_of(&self, text: &[u8]) -> Option<UtcTimestamp> {
        let known = self.text.get(..self.len)?;
        if text.len() != known.len() {
            return None;
        }
        let (front, rest) = text.split_at_checked(self.millis)?;
        let (millis, back) = rest.split_first_chunk()?;
        let (known_front, rest) = known.split_at_checked(self.millis)?;
        let (_, known_back) = rest.split_first_chunk::<3>()?;
        if !same(front, known_front) || !same(back, known_back) {
            return None;
        }
        with_millis(self.time, *millis)
    }

    /// Remembers the header of `message`, which was read without a fault. `sending_time` is its
    /// SendingTime(52).
    #[inline]
    fn remember(&mut self, message: &Message<'_>, sending_time: &[u8], is_ours: bool) {
        self.len = 0;
        let (_, ends) = message.spans();
        let (Some([34, 49, 52, 56]), Some(&[from, _, millis_end, to])) =
            (message.tags().get(3..7), ends.get(3..7))
        else {
            return;
        };
        let text = message.bytes().get(from as usize + 1..to as usize);
        let place = text.and_then(|text| self.text.get_mut(..text.len()));
        if let Some((text, place)) = text.zip(place)
            && sending_time.len() == WITH_MILLIS
        {
            place.copy_from_slice(text);
            self.len = text.len();
            self.millis = (millis_end - from) as usize - 4;
            self.time = self.second.time;
            self.is_ours = is_ours;
        }
    }
}

/// The second of the SendingTime(52) that was read last. Most messages come within the same second,
/// and then only the fraction is new.
#[derive(Clone, Debug)]
struct LastTime {
    text: [u8; WHOLE],
    time: UtcTimestamp,
}

/// The length of `YYYYMMDD-HH:MM:SS`.
const WHOLE: usize = 17;

impl LastTime {
    /// The start of 1970. Text and time agree, as for a time that was read.
    const NONE: Self = Self {
        text: *b"19700101-00:00:00",
        time: UtcTimestamp::from_nanos(0),
    };

    /// Parses a time as [`UtcTimestamp::parse`] does.
    #[inline]
    fn parse(&mut self, text: &[u8]) -> Option<UtcTimestamp> {
        let (whole, fraction) = text.split_first_chunk::<WHOLE>()?;
        if *whole != self.text {
            return self.parse_anew(text);
        }
        match *fraction {
            [] => Some(self.time),
            [b'.', a, b, c] => with_millis(self.time, [a, b, c]),
            _ => UtcTimestamp::parse(text),
        }
    }

    #[cold]
    fn parse_anew(&mut self, text: &[u8]) -> Option<UtcTimestamp> {
        let whole = text.first_chunk::<WHOLE>()?;
        let time = UtcTimestamp::parse(text)?;
        self.time = UtcTimestamp::parse(whole)?;
        self.text = *whole;
        Some(time)
    }
}

/// Returns a time of whole seconds with the milliseconds in three digits, or `None` if one is no
/// digit.
#[inline(always)]
fn with_millis(second: UtcTimestamp, digits: [u8; 3]) -> Option<UtcTimestamp> {
    let [a, b, c] = digits.map(|digit| digit.wrapping_sub(b'0'));
    if a > 9 || b > 9 || c > 9 {
        return None;
    }
    let millis = i64::from(a) * 100 + i64::from(b) * 10 + i64::from(c);
    let nanos = second.nanos().checked_add(millis * 1_000_000)?;
    Some(UtcTimestamp::from_nanos(nanos))
}

/// Returns whether two texts are the same. Short texts are mostly compared without a call.
#[inline]
pub(super) fn same(a: &[u8], b: &[u8]) -> bool {
    // Two overlapping halves cover everything from the width to twice that.
    match a.len() {
        _ if a.len() != b.len() => false,
        4..=8 => halves::<4>(a) == halves::<4>(b),
        9..=16 => halves::<8>(a) == halves::<8>(b),
        17..=32 => halves::<16>(a) == halves::<16>(b),
        _ => a == b,
    }
}

/// Returns the first and the last `N` bytes, or `None` if there are fewer.
#[inline]
fn halves<const N: usize>(text: &[u8]) -> Option<([u8; N], [u8; N])> {
    Some((*text.first_chunk()?, *text.last_chunk()?))
}

/// Returns a required field from the scan, or, leniently, from anywhere in the message.
#[inline]
fn present<'a>(
    found: Option<&'a [u8]>,
    tag: u32,
    message: &Message<'a>,
) -> Result<&'a [u8], Fault> {
    match found.or_else(|| message.get(tag)) {
        Some([]) => Err(Fault::new(RejectReason::TagWithoutValue, Some(tag))),
        Some(value) => Ok(value),
        None => Err(Fault::new(RejectReason::RequiredTagMissing, Some(tag))),
    }
}

/// Returns the tag of SenderCompID(49) or TargetCompID(56) if the message has no such field.
pub(super) fn missing_comp_id(message: &Message<'_>) -> Option<u32> {
    [tag::SENDER_COMP_ID, tag::TARGET_COMP_ID]
        .into_iter()
        .find(|tag| message.get(*tag).is_none())
}

/// Returns the fault of a missing CompID. It comes before every other fault, and in an application
/// message it is a fault of the application level.
pub(super) fn comp_id_fault(message: &Message<'_>, tag: u32) -> Fault {
    let fault = Fault::new(RejectReason::RequiredTagMissing, Some(tag));
    let is_session = msg_type::is_session(message.msg_type());
    Fault {
        business: (!is_session).then_some(BusinessReason::ConditionallyRequiredFieldMissing),
        ..fault
    }
}

/// Checks the fields that the session needs of its own messages, so that a session without a
/// dictionary is safe too.
///
/// # Errors
/// Returns a fault if one of them is missing or malformed.
#[inline]
pub(super) fn check_session_fields(message: &Message<'_>, msg_type: &[u8]) -> Result<(), Fault> {
    if !msg_type::is_session(msg_type) {
        return Ok(());
    }
    check_fields_of(message, msg_type)
}

#[inline(never)]
fn check_fields_of(message: &Message<'_>, msg_type: &[u8]) -> Result<(), Fault> {
    match msg_type {
        // An empty TestReqID(112) is refused by the dictionary; without one it is returned
        // unchanged.
        msg_type::TEST_REQUEST if message.get(tag::TEST_REQ_ID).is_none() => {
            let tag = Some(tag::TEST_REQ_ID);
            Err(Fault::new(RejectReason::RequiredTagMissing, tag))
        }
        msg_type::RESEND_REQUEST => {
            seq_num(message, tag::BEGIN_SEQ_NO)?;
            seq_num(message, tag::END_SEQ_NO).map(|_| ())
        }
        msg_type::SEQUENCE_RESET => {
            seq_num(message, tag::NEW_SEQ_NO)?;
            flag(message, tag::GAP_FILL_FLAG).map(|_| ())
        }
        msg_type::LOGON => flag(message, tag::RESET_SEQ_NUM_FLAG).map(|_| ()),
        _ => Ok(()),
    }
}

/// Returns the value of a required number.
pub(super) fn seq_num(message: &Message<'_>, tag: u32) -> Result<u64, Fault> {
    message.u64(tag).map_err(|error| {
        let reason = match error.kind {
            FieldErrorKind::Missing => RejectReason::RequiredTagMissing,
            FieldErrorKind::Empty => RejectReason::TagWithoutValue,
            _ => RejectReason::DataFormat,
        };
        Fault::new(reason, Some(tag))
    })
}

/// Returns an optional flag, `Y` or `N`. An absent flag is `N`.
pub(super) fn flag(message: &Message<'_>, tag: u32) -> Result<bool, Fault> {
    match message.opt_bool(tag) {
        Ok(value) => Ok(value.unwrap_or(false)),
        Err(_) => Err(Fault::new(RejectReason::DataFormat, Some(tag))),
    }
}

#[cfg(test)]
mod tests;
