//! The record of a marked message in the ring: the part that its recipients share, and its byte
//! sum.
//!
//! Layout: byte sum of the fields (1), length of MsgType (1), MsgType, fields.

use crate::FANOUT_ID;
use fanfare_fix::codec::{Message, SharedBody};
use fanfare_fix::tag;

/// The bytes before MsgType(35).
const PREFIX: usize = 2;

/// Returns the shared part of `message`, or `None` if its MsgType(35) is longer than any that
/// exists. A mark in the header is put in front of the body, in `room`.
pub(crate) fn shared<'a>(message: &Message<'a>, room: &'a mut Vec<u8>) -> Option<SharedBody<'a>> {
    let mut body = message.body();
    if let Some(mark) = mark_in_header(message) {
        room.clear();
        room.extend_from_slice(mark);
        room.extend_from_slice(body);
        body = room;
    }
    SharedBody::new(message.msg_type(), body).ok()
}

/// Returns the mark of a message if a field of the standard header follows it, so that it belongs
/// to the header.
fn mark_in_header<'a>(message: &Message<'a>) -> Option<&'a [u8]> {
    let is_lead = |&&tag: &&u32| tag::is_header(tag) || tag >= tag::USER_TAGS;
    let mut lead = message.tags().iter().take_while(is_lead);
    let place = lead.position(|&tag| tag == FANOUT_ID)?;
    let is_in_header = lead.any(|&tag| tag::is_header(tag));
    message.encoded(place).filter(|_| is_in_header)
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
    use fanfare_fix::codec::{Decoder, SendingTime, SessionHeader, SharedFrame};
    use fanfare_wire::{Precision, UtcTimestamp};

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
    fn a_mark_in_the_header_is_in_front_of_the_body() {
        let header = SessionHeader::new(b"FIX.4.4", b"P", b"F").unwrap();
        let time = SendingTime::new(UtcTimestamp::from_nanos(0), Precision::Millis);
        let mut frame = SharedFrame::new(4096);
        for (sent, expected) in [
            ("20001=1|49=X|55=A|", "20001=1|55=A|"),
            (
                "20002=7|20001=1|49=X|20003=2|55=A|",
                "20001=1|20003=2|55=A|",
            ),
            ("20001=1|49=X|", "20001=1|"),
            ("20001=1|55=A|", "20001=1|55=A|"),
            ("55=A|20001=1|49=X|", "55=A|20001=1|49=X|"),
            ("20002=7|49=X|55=A|", "55=A|"),
        ] {
            let sent = sent.replace('|', "\x01");
            let body = SharedBody::new(b"W", sent.as_bytes()).unwrap();
            frame.load(&body).unwrap();
            let mut decoder = Decoder::new();
            let message = decoder.decode(frame.patch(&header, 2, &time)).unwrap();
            let mut room = Vec::new();
            let shared = shared(&message, &mut room).unwrap();
            let fields = String::from_utf8_lossy(shared.fields()).replace('\x01', "|");
            assert_eq!(fields, expected);
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        assert!(read(b"").is_none());
        assert!(read(b"\x00").is_none());
        assert!(read(b"\x00\x05W").is_none());
        assert!(read(b"\x00\x00").is_none());
    }
}
