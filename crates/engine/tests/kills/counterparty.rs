//! The counterparty: the least that a session needs, so that it keeps nothing that the test itself
//! does not know.

use fanfare_fix::codec::{Decoder, Encoder, FieldWriter, Message, Next};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::{Precision, UtcTimestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Default)]
pub(crate) struct Counterparty {
    /// The number of our next message.
    next: u64,
    /// Our application messages.
    pub(crate) sent: BTreeSet<u64>,
    /// Each message of the child, as it was first seen on the wire or in its journal.
    pub(crate) known: BTreeMap<u64, Vec<u8>>,
    /// The numbers of those seen on the wire since the child was started, without resends.
    pub(crate) seen: BTreeSet<u64>,
    pub(crate) is_logged_on: bool,
    /// The number of resends seen on this connection.
    pub(crate) resent: u64,
    /// Whether a requested resend is complete.
    pub(crate) resend_done: bool,
    received: Vec<u8>,
    out: Vec<u8>,
}

impl Counterparty {
    pub(crate) fn new() -> Self {
        Self {
            next: 1,
            ..Self::default()
        }
    }

    /// Begins with a new process and a new connection.
    pub(crate) fn start(&mut self) {
        self.seen.clear();
        self.is_logged_on = false;
        (self.resent, self.resend_done) = (0, false);
        self.received.clear();
        self.out.clear();
    }

    /// Takes the bytes to be written.
    pub(crate) fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    pub(crate) fn received(&mut self) -> &mut Vec<u8> {
        &mut self.received
    }

    /// Sends an application message to the child.
    pub(crate) fn say(&mut self) {
        let seq = self.next;
        self.sent.insert(seq);
        self.write(seq, b"B", None, |news| {
            news.u64(tag::TEXT, seq);
        });
        self.next += 1;
    }

    pub(crate) fn ask_for_resend(&mut self, begin: u64) {
        let seq = self.next;
        self.write(seq, msg_type::RESEND_REQUEST, None, |ask| {
            ask.u64(tag::BEGIN_SEQ_NO, begin).u64(tag::END_SEQ_NO, 0);
        });
        self.next += 1;
    }

    /// Handles all whole messages received. `next_sender` is the number that the child's journal
    /// had for its first message.
    pub(crate) fn hear(&mut self, next_sender: u64) {
        let received = std::mem::take(&mut self.received);
        let mut decoder = Decoder::new();
        let mut at = 0;
        loop {
            match decoder.next(&received[at..]) {
                Next::Message {
                    skipped: 0,
                    message,
                    end,
                } => {
                    self.message(&message, next_sender);
                    at += end;
                }
                Next::Partial { .. } => break,
                other => panic!("the child sent rubbish: {other:?}"),
            }
        }
        self.received = received[at..].to_vec();
    }

    fn message(&mut self, message: &Message<'_>, next_sender: u64) {
        let seq = message.u64(tag::MSG_SEQ_NUM).unwrap();
        if message.get(tag::POSS_DUP_FLAG) == Some(b"Y") {
            return self.again(message, seq);
        }
        if !self.is_logged_on {
            assert_eq!(message.msg_type(), msg_type::LOGON);
            assert_eq!(seq, next_sender, "the numbers go on");
            self.is_logged_on = true;
            let logon = self.next;
            self.write(logon, msg_type::LOGON, None, |logon| {
                logon.u64(98, 0).u64(108, 30);
            });
            self.next += 1;
        }
        assert!(self.seen.insert(seq), "{seq} came twice");
        if message.msg_type() == msg_type::RESEND_REQUEST {
            let begin = message.u64(tag::BEGIN_SEQ_NO).unwrap();
            self.resend(begin);
        }
        if message.msg_type() == b"D" {
            assert_eq!(
                message.get(tag::TEXT),
                Some(super::child::text(seq).as_bytes())
            );
            self.know(seq, message.bytes());
        }
    }

    /// Checks that the child's message with this number is always the same.
    pub(crate) fn know(&mut self, seq: u64, bytes: &[u8]) {
        let before = self.known.entry(seq).or_insert_with(|| bytes.to_vec());
        assert_eq!(
            before.escape_ascii().to_string(),
            bytes.escape_ascii().to_string(),
            "{seq} has changed"
        );
    }

    /// Checks a message sent again, or a gap fill: the original except for its header.
    fn again(&mut self, message: &Message<'_>, seq: u64) {
        if message.msg_type() == msg_type::SEQUENCE_RESET {
            let next = message.u64(tag::NEW_SEQ_NO).unwrap();
            let lost = self.known.range(seq..next).next();
            assert!(
                lost.is_none(),
                "{seq}..{next} was filled, but had been sent: {lost:?}"
            );
            self.resend_done |= next > self.last_known();
            return;
        }
        let original = self.known.get(&seq).expect("it is the journal's");
        let mut decoder = Decoder::new();
        let original = decoder.decode(original).unwrap();
        assert_eq!(message.body(), original.body(), "{seq} has changed");
        assert_eq!(message.msg_type(), original.msg_type());
        assert_eq!(
            message.get(tag::ORIG_SENDING_TIME),
            original.get(tag::SENDING_TIME)
        );
        self.resent += 1;
        self.resend_done |= seq >= self.last_known();
    }

    fn last_known(&self) -> u64 {
        self.known.keys().next_back().copied().unwrap_or(0)
    }

    /// Resends all of our messages from `begin` on.
    fn resend(&mut self, begin: u64) {
        for seq in begin..self.next {
            if self.sent.contains(&seq) {
                self.write(seq, b"B", Some(true), |news| {
                    news.u64(tag::TEXT, seq);
                });
            } else {
                self.write(seq, msg_type::SEQUENCE_RESET, Some(false), |fill| {
                    fill.u64(tag::NEW_SEQ_NO, seq + 1);
                    fill.char(tag::GAP_FILL_FLAG, b'Y');
                });
            }
        }
    }

    /// Writes a message; `again` with PossDupFlag(43) and OrigSendingTime(122).
    fn write(
        &mut self,
        seq: u64,
        msg_type: &[u8],
        again: Option<bool>,
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) {
        let mut room = [0; 1024];
        let mut encoder = Encoder::new(&mut room, b"FIX.4.4", msg_type);
        encoder.u64(tag::MSG_SEQ_NUM, seq);
        if again.is_some() {
            encoder.char(tag::POSS_DUP_FLAG, b'Y');
        }
        encoder.str(tag::SENDER_COMP_ID, "PARENT");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = UtcTimestamp::from_nanos(now.as_nanos() as i64);
        encoder.timestamp(tag::SENDING_TIME, now, Precision::Millis);
        encoder.str(tag::TARGET_COMP_ID, "CHILD");
        if again.is_some() {
            encoder.timestamp(tag::ORIG_SENDING_TIME, now, Precision::Millis);
        }
        body(&mut encoder);
        let range = encoder.finish().unwrap();
        self.out.extend_from_slice(&room[range]);
    }
}
