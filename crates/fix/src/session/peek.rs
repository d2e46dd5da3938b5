//! A look at the first message of a connection, before there is a session for it.

use super::config::{SessionId, SubIds, Version};
use crate::codec::{DecodeError, Decoder, Message, Next, msg_types, tags};

/// What stands at the front of a new connection.
#[derive(Clone, Copy, Debug)]
pub enum Peek<'a> {
    /// A Logon. Give the same bytes to the session that is found for it.
    Logon(LogonPeek<'a>),
    /// Not a whole message yet.
    Partial,
    /// Something else, or a Logon without what it takes to find a session: close.
    NotLogon,
    /// No message: close.
    Garbled(DecodeError),
}

/// A Logon of somebody we do not know yet.
#[derive(Clone, Copy, Debug)]
pub struct LogonPeek<'a> {
    /// From BeginString(8).
    pub version: Version,
    /// Their CompID: SenderCompID(49).
    pub sender: &'a str,
    /// Our CompID: TargetCompID(56).
    pub target: &'a str,
    /// The whole message, for Username(553), SubIDs and the like.
    pub message: Message<'a>,
}

impl LogonPeek<'_> {
    /// The identity of the session seen from our side, by its CompIDs alone.
    pub fn session_id(&self) -> SessionId {
        SessionId::new(self.version, self.target, self.sender)
    }

    /// The SubIDs and LocationIDs that it names, seen from our side.
    pub fn sub_ids(&self) -> SubIds {
        let id = |tag| self.message.str(tag).unwrap_or_default().into();
        SubIds {
            sender: id(tags::TARGET_SUB_ID),
            sender_location: id(tags::TARGET_LOCATION_ID),
            target: id(tags::SENDER_SUB_ID),
            target_location: id(tags::SENDER_LOCATION_ID),
            qualifier: "".into(),
        }
    }
}

/// Looks at the first message of a connection; consumes nothing.
pub fn peek_logon<'a>(decoder: &'a mut Decoder, bytes: &'a [u8]) -> Peek<'a> {
    match decoder.next(bytes) {
        Next::Message { message, .. } => logon(message).map_or(Peek::NotLogon, Peek::Logon),
        Next::Partial { .. } => Peek::Partial,
        Next::Garbled { why, .. } => Peek::Garbled(DecodeError::Garbled(why)),
        Next::Malformed { error, .. } => Peek::Garbled(error),
    }
}

fn logon(message: Message<'_>) -> Option<LogonPeek<'_>> {
    if message.msg_type() != msg_types::LOGON {
        return None;
    }
    Some(LogonPeek {
        version: Version::parse(message.begin_string())?,
        sender: message.str(tags::SENDER_COMP_ID).ok()?,
        target: message.str(tags::TARGET_COMP_ID).ok()?,
        message,
    })
}
