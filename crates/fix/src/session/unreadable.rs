//! Messages in a right frame of which a field is broken: a tag that is no number, a field without
//! `=`, a data field that does not have the length in front of it.
//!
//! Such a message comes again unchanged when it is requested again. So it is rejected and uses up
//! its number, if its header has one. The header is read up to the first field that may hold or
//! announce data: what a wrong length leaves of a value is never read as a field of the session.

use super::Session;
use super::event::{DisconnectReason, Event};
use super::incoming_header::same;
use super::now::Now;
use super::store::MessageStore;
use super::validate::{Fault, RejectReason};
use crate::codec::{DecodeError, Message};
use crate::tag;
use fanfare_wire::fields::{FaultKind, SOH, parse_tag};
use fanfare_wire::{DataFields, FieldIndex, Kernel, int};

/// The header fields that hold data or announce it: SecureDataLen(90), SecureData(91),
/// XmlDataLen(212) and XmlData(213).
const OF_DATA: [u32; 4] = [90, 91, 212, 213];

impl<S: MessageStore> Session<S> {
    /// Handles a message with the right BodyLength(9), MsgType(35) and CheckSum(10) that has a
    /// broken field. It is rejected for `fault`, and uses up its number if that is the expected
    /// one. It does not if there is no `fault` for which it can be rejected, or if it is a Logon(A)
    /// or SequenceReset(4), which is rejected and does not count: then the second such message of
    /// the expected number ends the session. A Logout(5) is rejected and not obeyed.
    #[cold]
    pub(super) fn unreadable(
        &mut self,
        now: Now,
        frame: &[u8],
        why: DecodeError,
        fault: Option<Fault>,
    ) -> Event<'static> {
        let Some((seq, header)) = numbered(frame) else {
            return Event::Garbled(why);
        };
        let mut index = FieldIndex::with(DataFields::none(), Kernel::best());
        index.index(header);
        let header = Message::new(header, &index);
        let begin_string = self.config.id.version.begin_string();
        if !same(header.begin_string(), begin_string.as_bytes()) {
            return Event::Garbled(why);
        }
        self.timers.last_received = now.mono;
        self.timers.hear(now.mono);
        let expected = self.store.next_target();
        if let Some(fault) = fault {
            self.answer_fault(now, &header, fault);
        }
        let is_missing = seq == expected && self.store.next_target() == expected;
        if is_missing && self.is_connected() {
            self.miss(now, seq);
        }
        Event::Unreadable { seq, why }
    }

    /// Notes that the message with the expected number has not used it up. It is requested again;
    /// if it was before, requesting it does not help.
    fn miss(&mut self, now: Now, seq: u64) {
        if std::mem::replace(&mut self.unreadable, seq) == seq {
            let reason = DisconnectReason::Unreadable { seq };
            self.final_logout(now, reason.to_string().as_bytes(), reason);
        }
    }
}

/// Returns MsgSeqNum(34) of a message and its header, up to the first field that is no header field
/// or one of data. Returns `None` if MsgSeqNum(34) is not there once, or is no number.
fn numbered(frame: &[u8]) -> Option<(u64, &[u8])> {
    let (mut seq, mut end) = (None, 0);
    for field in frame.split_inclusive(|&byte| byte == SOH) {
        let field = field.strip_suffix(&[SOH]).unwrap_or(field);
        let mut parts = field.splitn(2, |&byte| byte == b'=');
        let tag = parts.next().map_or(0, parse_tag);
        let Some(value) = parts.next() else {
            break;
        };
        if !tag::is_header(tag) || OF_DATA.contains(&tag) {
            break;
        }
        if tag == tag::MSG_SEQ_NUM {
            let number = int::parse_u64(value)?;
            if seq.replace(number).is_some() {
                return None;
            }
        }
        end += field.len() + 1;
    }
    Some((seq?, frame.get(..end)?))
}

/// Returns whether the header of a message with a broken field has PossDupFlag(43) Y.
pub(super) fn is_marked_again(frame: &[u8]) -> bool {
    let header = numbered(frame).map_or(&[][..], |(_, header)| header);
    let mut fields = header.split(|&byte| byte == SOH);
    fields.any(|field| field == b"43=Y")
}

/// Returns the fault for which a message is rejected whose fields cannot be separated.
pub(super) fn fault_of(frame: &[u8], error: DecodeError) -> Option<Fault> {
    let DecodeError::Field(broken) = error else {
        return None;
    };
    let (reason, tag) = match broken.kind {
        FaultKind::NoEquals => (RejectReason::InvalidTagNumber, None),
        FaultKind::DataLength | FaultKind::Unterminated => {
            let field = frame.get(broken.offset as usize..).unwrap_or_default();
            let tag = field.split(|&byte| byte == b'=').next();
            (RejectReason::DataFormat, tag.map(parse_tag))
        }
        FaultKind::TooManyFields | FaultKind::TooLong => (RejectReason::Other, None),
    };
    Some(Fault::new(reason, tag.filter(|&tag| tag != 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_from_the_header_in_front_of_any_data() {
        let of = |text: &str| {
            let frame = text.replace('|', "\x01");
            let found = numbered(frame.as_bytes());
            found.map(|(seq, header)| {
                let header = String::from_utf8_lossy(header).replace('\x01', "|");
                (seq, header)
            })
        };
        let found = |seq, header: &str| Some((seq, header.to_owned()));
        let plain = "8=FIX.4.4|9=5|35=D|34=7|49=A|";
        assert_eq!(of(&format!("{plain}11=x|34=9|10=000|")), found(7, plain));
        assert_eq!(of(&format!("{plain}abc=x|34=9|")), found(7, plain));
        assert_eq!(of(&format!("{plain}abc|34=9|")), found(7, plain));
        assert_eq!(of(&format!("{plain}90=3|91=abcd|34=9|")), found(7, plain));
        for text in [
            "8=FIX.4.4|9=5|35=D|49=A|11=x|34=7|",
            "8=FIX.4.4|9=5|35=D|49=A|90=3|91=abcd|34=7|",
            "8=FIX.4.4|9=5|35=D|49=A|212=3|213=abcd|34=7|",
            "8=FIX.4.4|9=5|35=D|49=A|5000=3|5001=abcd|34=7|",
            "8=FIX.4.4|9=5|35=D|34=x|49=A|",
            "8=FIX.4.4|9=5|35=D|34=|49=A|",
            "8=FIX.4.4|9=5|35=D|34=7|34=7|",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
