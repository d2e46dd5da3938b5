//! What the session reads from a message before it acts on it.

use fanfare_wire::{UtcTimestamp, int};

use super::validate::{BusinessReason, Fault, RejectReason};
use crate::codec::{FieldErrorKind, Message, msg_types, tags};

/// The fields of the standard header that the session works with, present and well-formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub(super) seq: u64,
    pub(super) sender: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) sending_time: UtcTimestamp,
    pub(super) poss_dup: bool,
    pub(super) poss_resend: bool,
    /// OrigSendingTime(122) as it stands.
    pub(super) orig_sending_time: Option<&'a [u8]>,
}

/// The header fields as they were found, if at all.
#[derive(Default)]
struct Found<'a> {
    seq: Option<&'a [u8]>,
    sender: Option<&'a [u8]>,
    sending_time: Option<&'a [u8]>,
    target: Option<&'a [u8]>,
    poss_dup: Option<&'a [u8]>,
    poss_resend: Option<&'a [u8]>,
    orig_sending_time: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// MsgType(35) is empty; MsgSeqNum(34), SenderCompID(49), SendingTime(52) or
    /// TargetCompID(56) is missing, empty or malformed.
    #[inline]
    pub(super) fn read(message: &Message<'a>) -> Result<Self, Fault> {
        if message.msg_type().is_empty() {
            return Err(Fault::new(
                RejectReason::TagWithoutValue,
                Some(tags::MSG_TYPE),
            ));
        }
        let found = Found::scan(message);
        let seq = present(found.seq, tags::MSG_SEQ_NUM, message)?;
        let sender = present(found.sender, tags::SENDER_COMP_ID, message)?;
        let sending_time = present(found.sending_time, tags::SENDING_TIME, message)?;
        let target = present(found.target, tags::TARGET_COMP_ID, message)?;
        let malformed = |tag| Fault::new(RejectReason::DataFormat, Some(tag));
        Ok(Self {
            seq: int::parse_u64(seq).ok_or(malformed(tags::MSG_SEQ_NUM))?,
            sender,
            target,
            sending_time: UtcTimestamp::parse(sending_time).ok_or(malformed(tags::SENDING_TIME))?,
            poss_dup: found.poss_dup == Some(b"Y"),
            poss_resend: found.poss_resend == Some(b"Y"),
            orig_sending_time: found.orig_sending_time,
        })
    }
}

impl<'a> Found<'a> {
    /// One pass over the fields in front of the body.
    #[inline]
    fn scan(message: &Message<'a>) -> Self {
        let mut found = Self::default();
        for (position, &tag) in message.tags().iter().enumerate().skip(3) {
            let place = match tag {
                tags::MSG_SEQ_NUM => &mut found.seq,
                tags::SENDER_COMP_ID => &mut found.sender,
                tags::SENDING_TIME => &mut found.sending_time,
                tags::TARGET_COMP_ID => &mut found.target,
                tags::POSS_DUP_FLAG => &mut found.poss_dup,
                tags::POSS_RESEND => &mut found.poss_resend,
                tags::ORIG_SENDING_TIME => &mut found.orig_sending_time,
                _ if tags::is_header(tag) => continue,
                _ => break,
            };
            *place = message.field(position).map(|field| field.value);
        }
        found
    }
}

/// A required field: from the scan, or, for the lenient, from anywhere in the message.
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

/// SenderCompID(49) or TargetCompID(56), where the message has no such field.
pub(super) fn missing_comp_id(message: &Message<'_>) -> Option<u32> {
    [tags::SENDER_COMP_ID, tags::TARGET_COMP_ID]
        .into_iter()
        .find(|tag| message.get(*tag).is_none())
}

/// A missing CompID comes before every other fault; in an application message it is one of the
/// application's level.
pub(super) fn comp_id_fault(message: &Message<'_>, tag: u32) -> Fault {
    let fault = Fault::new(RejectReason::RequiredTagMissing, Some(tag));
    let is_session = msg_types::is_session(message.msg_type());
    Fault {
        business: (!is_session).then_some(BusinessReason::ConditionallyRequiredFieldMissing),
        ..fault
    }
}

/// The fields that the session needs of its own messages, checked here so that a session without
/// a dictionary is safe too.
///
/// # Errors
/// One of them is missing, empty or malformed.
#[inline]
pub(super) fn check_session_fields(message: &Message<'_>) -> Result<(), Fault> {
    match message.msg_type() {
        msg_types::TEST_REQUEST => present(None, tags::TEST_REQ_ID, message).map(|_| ()),
        msg_types::RESEND_REQUEST => {
            seq_num(message, tags::BEGIN_SEQ_NO)?;
            seq_num(message, tags::END_SEQ_NO).map(|_| ())
        }
        msg_types::SEQUENCE_RESET => {
            seq_num(message, tags::NEW_SEQ_NO)?;
            flag(message, tags::GAP_FILL_FLAG).map(|_| ())
        }
        msg_types::LOGON => flag(message, tags::RESET_SEQ_NUM_FLAG).map(|_| ()),
        _ => Ok(()),
    }
}

/// A required number.
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

/// An optional flag: `Y` or `N`, absent is `N`.
pub(super) fn flag(message: &Message<'_>, tag: u32) -> Result<bool, Fault> {
    match message.opt_bool(tag) {
        Ok(value) => Ok(value.unwrap_or(false)),
        Err(_) => Err(Fault::new(RejectReason::DataFormat, Some(tag))),
    }
}
