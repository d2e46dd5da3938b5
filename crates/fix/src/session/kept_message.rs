//! A kept message, taken apart for a resend, and the application's decision about it.

use std::fmt;

use fanfare_wire::UtcTimestamp;
use fanfare_wire::fields::{SOH, parse_tag};

use super::config::ExtraField;
use super::identity::SessionId;
use super::now::Now;
use super::outgoing_header::OutField;
use crate::codec::{Announced, DecodeError, Decoder, Message};
use crate::tag;

/// The decision about a message that a counterparty has requested again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// Send the message again, with PossDupFlag(43)=Y.
    Send,
    /// Send a gap fill in its place: a SequenceReset(4) with GapFillFlag(123)=Y.
    Fill,
}

/// An application message that a resend has come to, as it was sent or kept for the first time. See
/// [`Session::resend_part`](super::Session::resend_part).
pub struct KeptMessage<'a> {
    pub(super) id: &'a SessionId,
    pub(super) seq: u64,
    pub(super) bytes: &'a [u8],
    pub(super) now: Now,
    pub(super) decoder: &'a mut Decoder,
}

impl<'a> KeptMessage<'a> {
    /// Returns the identity of the session.
    #[must_use]
    pub const fn id(&self) -> &'a SessionId {
        self.id
    }

    /// Returns MsgSeqNum(34), which the message keeps.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the time of the resend.
    #[must_use]
    pub const fn now(&self) -> Now {
        self.now
    }

    /// Returns the whole message, without the PossDupFlag(43) and OrigSendingTime(122) that it gets
    /// when it is sent again.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns MsgType(35). Takes time linear in the length of the fields in front of it.
    #[must_use]
    pub fn msg_type(&self) -> &'a [u8] {
        msg_type(self.bytes)
    }

    /// Returns the SendingTime(52) of the message, which becomes OrigSendingTime(122) when it is
    /// sent again; `None` if it is no time. The time of a message that waited for a connection is
    /// that at which it was accepted. Takes time linear in the length of the fields in front of it.
    #[must_use]
    pub fn orig_sending_time(&self) -> Option<UtcTimestamp> {
        UtcTimestamp::parse(find(self.bytes, tag::SENDING_TIME)?)
    }

    /// Returns the time since [`orig_sending_time`](Self::orig_sending_time) in nanoseconds, and 0
    /// for a time in the future; `None` if it is no time.
    #[must_use]
    pub fn age(&self) -> Option<u64> {
        let sent = self.orig_sending_time()?.nanos();
        let age = self.now.utc.nanos().saturating_sub(sent);
        Some(u64::try_from(age).unwrap_or(0))
    }

    /// Decodes the message. Takes time linear in its length, and allocates nothing after warm-up.
    ///
    /// # Errors
    /// Returns an error if a data field of the message is not among those of the standard and of
    /// [`Config::data_fields`](super::Config::data_fields).
    pub fn message(&mut self) -> Result<Message<'_>, DecodeError> {
        self.decoder.decode(self.bytes)
    }
}

impl fmt::Debug for KeptMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("KeptMessage");
        shown.field("id", self.id).field("seq", &self.seq);
        shown.finish_non_exhaustive()
    }
}

/// A message of the session, taken apart for a resend.
pub(super) struct Parts<'a> {
    pub(super) msg_type: &'a [u8],
    pub(super) sending_time: &'a [u8],
    /// The header fields that neither the session nor the resend writes itself.
    pub(super) others: Vec<OutField<'a>>,
    /// The fields after the header and before the trailer, and the offset at which they begin.
    pub(super) body: &'a [u8],
    pub(super) body_at: usize,
}

impl<'a> Parts<'a> {
    /// Takes a message apart. `own` are the header fields of the configuration, whose tags may be
    /// user-defined.
    pub(super) fn of(message: &'a [u8], own: &[ExtraField]) -> Self {
        let is_own = |tag: u32| own.iter().any(|field| field.0 == tag);
        // The trailer is `10=ddd|`.
        let end = message.len().saturating_sub(7);
        let mut rest = message.get(..end).unwrap_or_default();
        let mut parts = Self {
            msg_type: b"",
            sending_time: b"",
            others: Vec::new(),
            body: b"",
            body_at: 0,
        };
        let mut announced = Announced::default();
        while let Some((tag, value, behind)) = split_field(rest, announced) {
            match tag {
                tag::MSG_TYPE => parts.msg_type = value,
                tag::SENDING_TIME => parts.sending_time = value,
                tag::BEGIN_STRING
                | tag::BODY_LENGTH
                | tag::MSG_SEQ_NUM
                | tag::POSS_DUP_FLAG
                | tag::SENDER_COMP_ID
                | tag::TARGET_COMP_ID
                | tag::ORIG_SENDING_TIME
                | tag::LAST_MSG_SEQ_NUM_PROCESSED => {}
                _ if tag::is_header(tag) || is_own(tag) => parts.others.push((tag, value)),
                _ => break,
            }
            announced = Announced::by(tag, value);
            rest = behind;
        }
        parts.others.sort_by_key(|field| field.0);
        parts.body = rest;
        parts.body_at = end - rest.len();
        parts
    }
}

/// Returns the MsgType(35) of a message.
pub(super) fn msg_type(message: &[u8]) -> &[u8] {
    find(message, tag::MSG_TYPE).unwrap_or_default()
}

/// Returns the value of the first field with this tag of the header.
fn find(message: &[u8], wanted: u32) -> Option<&[u8]> {
    let (mut rest, mut announced) = (message, Announced::default());
    loop {
        let (tag, value, behind) = split_field(rest, announced)?;
        if tag == wanted {
            return Some(value);
        }
        announced = Announced::by(tag, value);
        rest = behind;
    }
}

/// Returns the tag and the value of the first field, and the bytes after it.
fn split_field(bytes: &[u8], announced: Announced) -> Option<(u32, &[u8], &[u8])> {
    let equals = bytes.iter().position(|&byte| byte == b'=')?;
    let tag = parse_tag(bytes.get(..equals)?);
    let rest = bytes.get(equals + 1..)?;
    let separator = || rest.iter().position(|&byte| byte == SOH);
    let len = announced.len_of(tag, rest).or_else(separator)?;
    Some((tag, rest.get(..len)?, rest.get(len + 1..)?))
}
