//! The record of a marked message in the ring: the part that its recipients share, and its byte
//! sum.
//!
//! Layout: byte sum of the fields (1), length of MsgType (1), MsgType, fields.

use fanfare_fix::codec::{Message, SharedBody};

/// The bytes before MsgType(35).
const PREFIX: usize = 2;

/// Returns the shared part of `message`, or `None` if its MsgType(35) is longer than any that
/// exists.
pub(crate) fn shared<'a>(message: &Message<'a>) -> Option<SharedBody<'a>> {
    SharedBody::new(message.msg_type(), message.body()).ok()
}

/// Returns the length of the record of `body`.
pub(crate) fn len(body: &SharedBody<'_>) -> usize {
    PREFIX + body.msg_type().len() + body.fields().len()
}

/// Writes the record into `room`, which has exactly `len(body)` bytes.
pub(crate) fn write(body: &SharedBody<'_>, room: &mut [u8]) {
    let Some((prefix, rest)) = room.split_at_mut_checked(PREFIX) else {
        return;
    };
    prefix.copy_from_slice(&[body.sum(), body.msg_type().len() as u8]);
    let Some((msg_type, fields)) = rest.split_at_mut_checked(body.msg_type().len()) else {
        return;
    };
    msg_type.copy_from_slice(body.msg_type());
    fields.copy_from_slice(body.fields());
}

/// Returns the shared part in a record, or `None` if the bytes are not a record.
pub(crate) fn read(record: &[u8]) -> Option<SharedBody<'_>> {
    let (&[sum, type_len], rest) = record.split_first_chunk()?;
    let (msg_type, fields) = rest.split_at_checked(type_len.into())?;
    SharedBody::with_sum(msg_type, fields, sum).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let body = SharedBody::new(b"W", b"55=EURUSD\x01268=0\x01").unwrap();
        let mut room = vec![0; len(&body)];
        write(&body, &mut room);
        let back = read(&room).unwrap();
        assert_eq!(
            (back.msg_type(), back.fields()),
            (body.msg_type(), body.fields())
        );
        assert_eq!(back.sum(), body.sum());
    }

    #[test]
    fn anything_else_is_no_record() {
        assert!(read(b"").is_none());
        assert!(read(b"\x00").is_none());
        assert!(read(b"\x00\x05W").is_none());
        assert!(read(b"\x00\x00").is_none());
    }
}
