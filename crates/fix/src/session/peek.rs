//! The first message of a connection, before its session is known.

use super::identity::{SessionId, SubIds, Version};
use super::ids::{self, FieldTooLong};
use crate::codec::{DecodeError, Decoder, Message};
use crate::{msg_type, tag};

/// The item at the front of a new connection.
#[derive(Clone, Copy, Debug)]
pub enum Peek<'a> {
    /// A Logon(A). The session that is found for it receives the same bytes.
    Logon(LogonPeek<'a>),
    /// The beginning of a message.
    Partial,
    /// Another message, or a Logon(A) without the fields that find a session. The connection is to
    /// be closed.
    NotLogon,
    /// A Logon(A) with a CompID, SubID or LocationID that is too long. The connection is to be
    /// closed.
    TooLong(FieldTooLong),
    /// No message. The connection is to be closed.
    Garbled(DecodeError),
}

/// A Logon(A) whose session is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct LogonPeek<'a> {
    /// The version, from BeginString(8).
    pub version: Version,
    /// The counterparty's CompID, from SenderCompID(49).
    pub sender: &'a str,
    /// The CompID of this side, from TargetCompID(56).
    pub target: &'a str,
    /// The message, for Username(553), SubIDs and the like. It ends before a field that is broken
    /// by the decoder's data fields, as those of the session are not known yet.
    pub message: Message<'a>,
}

impl LogonPeek<'_> {
    /// Returns the identity of the session, seen from this side, by its CompIDs alone.
    pub fn session_id(&self) -> SessionId {
        SessionId::new(self.version, self.target, self.sender)
    }

    /// Returns the SubIDs and LocationIDs that the Logon(A) names, seen from this side.
    pub fn sub_ids(&self) -> SubIds {
        let message = &self.message;
        let header = message.lead_len();
        let id = |tag| {
            let place = message.position(tag).filter(|place| *place < header);
            let value = place.and_then(|_| message.str(tag).ok());
            value.unwrap_or_default().into()
        };
        SubIds {
            sender: id(tag::TARGET_SUB_ID),
            sender_location: id(tag::TARGET_LOCATION_ID),
            target: id(tag::SENDER_SUB_ID),
            target_location: id(tag::SENDER_LOCATION_ID),
            qualifier: "".into(),
        }
    }
}

/// Decodes the first message of a connection, and consumes nothing. A Logon(A) is recognised by its
/// header: the session decodes the rest with its own data fields. IDs in the header may have up to
/// `limit` bytes: see [`Config::header_field_limit`](super::Config::header_field_limit).
pub fn peek_logon<'a>(decoder: &'a mut Decoder, bytes: &'a [u8], limit: usize) -> Peek<'a> {
    match decoder.front(bytes) {
        Ok(Some(message)) => logon(message, limit),
        Ok(None) => Peek::Partial,
        Err(why) => Peek::Garbled(DecodeError::Garbled(why)),
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

    #[test]
    fn a_logon_is_told_by_its_header_whatever_data_its_body_has() {
        let mut room = [0; 256];
        let mut encoder = Encoder::new(&mut room, b"FIX.4.4", msg_type::LOGON);
        encoder.str(tag::SENDER_COMP_ID, "BUY");
        encoder.str(tag::TARGET_COMP_ID, "SELL");
        encoder.str(tag::SENDER_SUB_ID, "DESK");
        encoder.data(5010, 5011, b"a\x01b\x0157=forged");
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::new();
        let Peek::Logon(logon) = peek_logon(&mut decoder, &room[range], 64) else {
            panic!("no Logon");
        };
        let id = SessionId::new(Version::Fix44, "SELL", "BUY");
        assert_eq!(logon.session_id(), id);
        let sub = logon.sub_ids();
        assert_eq!([&*sub.target, &*sub.sender], ["DESK", ""]);
    }

    #[test]
    fn ids_are_those_of_the_header_and_none_that_data_in_the_body_seems_to_have() {
        let mut data = b"a\x0150=DESK\x0149=".to_vec();
        data.resize(100, b'x');
        let mut room = [0; 512];
        let mut encoder = Encoder::new(&mut room, b"FIX.4.4", msg_type::LOGON);
        encoder.str(tag::SENDER_COMP_ID, "BUY");
        encoder.str(tag::TARGET_COMP_ID, "SELL");
        encoder.str(5009, "of the header");
        encoder.str(tag::TARGET_SUB_ID, "HOUSE");
        encoder.u64(tag::ENCRYPT_METHOD, 0);
        encoder.data(5010, 5011, &data);
        let range = encoder.finish().unwrap();
        let mut decoder = Decoder::new();
        let Peek::Logon(logon) = peek_logon(&mut decoder, &room[range], 64) else {
            panic!("no Logon");
        };
        let sub = logon.sub_ids();
        assert_eq!([&*sub.target, &*sub.sender], ["", "HOUSE"]);
    }
}
