//! A look at the first message of a connection, before there is a session for it.

use super::identity::{SessionId, SubIds, Version};
use super::ids::{self, FieldTooLong};
use crate::codec::{DecodeError, Decoder, Message, Next};
use crate::{msg_type, tag};

/// What stands at the front of a new connection.
#[derive(Clone, Copy, Debug)]
pub enum Peek<'a> {
    /// A Logon. The session that is found for it takes the same bytes.
    Logon(LogonPeek<'a>),
    /// Not a whole message yet.
    Partial,
    /// Something else, or a Logon without what it takes to find a session: close.
    NotLogon,
    /// A Logon with a CompID, SubID or LocationID that is too long: close.
    TooLong(FieldTooLong),
    /// No message: close.
    Garbled(DecodeError),
}

/// A Logon whose session is not known yet.
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
    /// Returns the identity of the session seen from our side, by its CompIDs alone.
    pub fn session_id(&self) -> SessionId {
        SessionId::new(self.version, self.target, self.sender)
    }

    /// Returns the SubIDs and LocationIDs that it names, seen from our side.
    pub fn sub_ids(&self) -> SubIds {
        let id = |tag| self.message.str(tag).unwrap_or_default().into();
        SubIds {
            sender: id(tag::TARGET_SUB_ID),
            sender_location: id(tag::TARGET_LOCATION_ID),
            target: id(tag::SENDER_SUB_ID),
            target_location: id(tag::SENDER_LOCATION_ID),
            qualifier: "".into(),
        }
    }
}

/// Looks at the first message of a connection; consumes nothing. IDs in its header may have up to
/// `limit` bytes, see [`Config::header_field_limit`](super::Config::header_field_limit).
pub fn peek_logon<'a>(decoder: &'a mut Decoder, bytes: &'a [u8], limit: usize) -> Peek<'a> {
    match decoder.next(bytes) {
        Next::Message { message, .. } => logon(message, limit),
        Next::Partial { .. } => Peek::Partial,
        Next::Garbled { why, .. } => Peek::Garbled(DecodeError::Garbled(why)),
        Next::Malformed { error, .. } => Peek::Garbled(error),
    }
}

fn logon(message: Message<'_>, limit: usize) -> Peek<'_> {
    if message.msg_type() != msg_type::LOGON {
        return Peek::NotLogon;
    }
    if let Err(field) = ids::check(&message, limit) {
        return Peek::TooLong(field);
    }
    let peek = || {
        Some(LogonPeek {
            version: Version::parse(message.begin_string())?,
            sender: message.str(tag::SENDER_COMP_ID).ok()?,
            target: message.str(tag::TARGET_COMP_ID).ok()?,
            message,
        })
    };
    peek().map_or(Peek::NotLogon, Peek::Logon)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Encoder;

    #[test]
    fn a_logon_with_a_long_name_is_told_from_others() {
        let long = "x".repeat(60_000);
        for (tag, len, is_long) in [
            (tag::SENDER_COMP_ID, 64, false),
            (tag::SENDER_COMP_ID, 65, true),
            (tag::TARGET_COMP_ID, 60_000, true),
            (tag::SENDER_SUB_ID, 65, true),
            (tag::TARGET_LOCATION_ID, 60_000, true),
            // Not a name: the session's own checks are for it.
            (tag::TEXT, 60_000, false),
        ] {
            let mut room = vec![0; 64 << 10];
            let mut encoder = Encoder::new(&mut room, b"FIX.4.4", msg_type::LOGON);
            for other in [tag::SENDER_COMP_ID, tag::TARGET_COMP_ID] {
                if other != tag {
                    encoder.str(other, "ME");
                }
            }
            encoder.str(tag, &long[..len]);
            let range = encoder.finish().unwrap();
            let mut decoder = Decoder::new();
            match peek_logon(&mut decoder, &room[range], 64) {
                Peek::TooLong(field) => {
                    let limit = 64;
                    assert_eq!(field, FieldTooLong { tag, len, limit });
                    assert!(is_long);
                }
                Peek::Logon(_) => assert!(!is_long, "{tag} {len}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
