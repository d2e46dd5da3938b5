//! The hook for the session's own messages that are sent.

use std::fmt;
use std::sync::Arc;

use super::identity::SessionId;
use super::now::Now;
use crate::codec::FieldWriter;

/// A hook that adds fields to each message of the session layer that is sent, such as a new
/// signature in each Logon(A), or fields that a counterparty requires in TestRequest(1) or
/// Logout(5). It is called for the Logon(A) of each connection, on both sides, and for all other
/// messages except the gap fills of a resend. It gets the body written so far.
///
/// The fields of the hook follow those of the session, and have up to [`ROOM`](Self::ROOM) bytes. A
/// message with a field that cannot be encoded is not sent, and the session ends. A secret that the
/// hook adds to a Logon(A) is masked in the store, as Password(554) is.
///
/// ```
/// use fanfare_fix::session::{AdminHook, Config, SessionId, Version};
///
/// fn signature(text: &str) -> String {
///     // An HMAC with the client's key, in a real one.
///     text.len().to_string()
/// }
///
/// let mut config = Config::new(SessionId::new(Version::Fix44, "BUYSIDE", "SELLSIDE"));
/// config.admin_hook = Some(AdminHook::new(|message, out| {
///     if message.msg_type == b"A" {
///         let time = String::from_utf8_lossy(message.sending_time);
///         let signed = signature(&format!("{time}A{}{}", message.seq, message.id.sender));
///         out.data(95, 96, signed.as_bytes());
///     }
/// }));
/// ```
#[derive(Clone)]
pub struct AdminHook(Arc<Write>);

type Write = dyn Fn(&AdminMessage<'_>, &mut FieldWriter<'_>) + Send + Sync;

/// A message to which an [`AdminHook`] adds fields.
#[derive(Clone, Copy, Debug)]
pub struct AdminMessage<'a> {
    /// The identity of the session.
    pub id: &'a SessionId,
    /// MsgType(35).
    pub msg_type: &'a [u8],
    /// MsgSeqNum(34).
    pub seq: u64,
    /// The text of SendingTime(52).
    pub sending_time: &'a [u8],
    /// The time.
    pub now: Now,
}

impl AdminHook {
    /// The most bytes that a hook adds to a message.
    pub const ROOM: usize = 4 << 10;

    /// Returns a hook that calls `write` for each message. `write` must not block. In a host of
    /// `fanfare-engine` its panic ends the session, as a field that cannot be encoded does.
    pub fn new(
        write: impl Fn(&AdminMessage<'_>, &mut FieldWriter<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(write))
    }

    /// Adds the fields of one message.
    pub fn write(&self, message: &AdminMessage<'_>, out: &mut FieldWriter<'_>) {
        (self.0)(message, out);
    }
}

impl fmt::Debug for AdminHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminHook")
    }
}

/// A hook, and the identity of its session.
#[derive(Debug)]
pub(super) struct Hooked {
    pub(super) hook: AdminHook,
    pub(super) id: SessionId,
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use fanfare_wire::UtcTimestamp;

    fn at(seconds: u64) -> Now {
        Now {
            mono: seconds * SECOND,
            utc: UtcTimestamp::from_nanos(1_770_000_000_000_000_000 + (seconds * SECOND) as i64),
        }
    }

    fn config(us: &str, them: &str, hook: AdminHook) -> Config {
        let mut config = Config::new(SessionId::new(Version::Fix44, us, them));
        config.admin_hook = Some(hook);
        config
    }

    /// Returns a hook that adds the values of [`AdminMessage`]: to a Logon(A) as RawData(96), to
    /// other messages as a field of its own.
    fn signing() -> AdminHook {
        AdminHook::new(|message, out| {
            let AdminMessage {
                id,
                msg_type,
                seq,
                sending_time,
                ..
            } = message;
            let kind = String::from_utf8_lossy(msg_type);
            let time = String::from_utf8_lossy(sending_time);
            let text = format!("{kind} {seq} {time} {}", id.sender);
            match *msg_type {
                b"A" => out.data(95, 96, text.as_bytes()),
                _ => out.str(5001, &text),
            };
        })
    }

    /// Passes the bytes that wait for transmission to the other side, and returns them as text.
    fn carry<A: MessageStore, B: MessageStore>(
        from: &mut Session<A>,
        to: &mut Session<B>,
        now: Now,
    ) -> String {
        let mut all = Vec::new();
        while !from.poll_transmit().is_empty() {
            let len = from.poll_transmit().len();
            all.extend_from_slice(from.poll_transmit());
            from.transmitted(len);
        }
        let (mut scratch, mut at) = (Scratch::default(), 0);
        loop {
            let step = to.handle_bytes(now, &mut scratch, &all[at..]);
            at += step.consumed;
            if step.is_idle() {
                break;
            }
        }
        String::from_utf8(all).unwrap().replace('\x01', "|")
    }

    #[test]
    fn every_logon_is_signed_anew_and_others_have_the_field() {
        let mut buy = Session::initiator(config("BUY", "SELL", signing()), MemoryStore::default());
        let mut sell = Session::acceptor(config("SELL", "BUY", signing()), MemoryStore::default());
        for (round, second, time) in [(0, 0, "02:40:00.000"), (1, 7, "02:40:07.000")] {
            let now = at(second);
            sell.connected(now);
            buy.connected(now);
            let seq = 1 + 3 * round;
            let logon = carry(&mut buy, &mut sell, now);
            let signed = format!("|96=A {seq} 20260202-{time} BUY|10=");
            assert!(logon.contains(&signed), "{logon}");
            let answer = carry(&mut sell, &mut buy, now);
            let signed = format!("|96=A {seq} 20260202-{time} SELL|10=");
            assert!(answer.contains(&signed), "{answer}");
            assert!(buy.is_logged_on() && sell.is_logged_on());
            buy.test_request(now, b"ping").unwrap();
            let request = carry(&mut buy, &mut sell, now);
            assert!(request.contains("|112=ping|5001=1 "), "{request}");
            let answer = carry(&mut sell, &mut buy, now);
            assert!(answer.contains("|112=ping|5001=0 "), "{answer}");
            buy.logout(now, "bye");
            let logout = carry(&mut buy, &mut sell, now);
            assert!(logout.contains("|58=bye|5001=5 "), "{logout}");
            carry(&mut sell, &mut buy, now);
            buy.disconnected(now);
            sell.disconnected(now);
        }
        // The store has the message without the secret.
        let logon = buy.store().first_from(1);
        assert!(logon.is_none_or(|logon| !logon.bytes.windows(3).any(|w| w == b"BUY|")));
    }

    #[test]
    fn application_messages_and_rejects_of_a_session_keep_to_their_kind() {
        let mut buy = Session::initiator(config("BUY", "SELL", signing()), MemoryStore::default());
        let mut sell = Session::acceptor(config("SELL", "BUY", signing()), MemoryStore::default());
        let now = at(0);
        sell.connected(now);
        buy.connected(now);
        carry(&mut buy, &mut sell, now);
        carry(&mut sell, &mut buy, now);
        let send = |out: &mut FieldWriter<'_>| {
            out.str(11, "1");
        };
        buy.send(now, b"D", send).unwrap();
        // A ResendRequest without its fields is rejected.
        let order = carry(&mut buy, &mut sell, now);
        assert!(!order.contains("5001="), "{order}");
        let mut room = [0; 256];
        let mut encoder = crate::codec::Encoder::new(&mut room, b"FIX.4.4", b"2");
        encoder.raw(b"34=3\x0149=BUY\x0152=20260202-02:40:00\x0156=SELL\x01");
        let range = encoder.finish().unwrap();
        sell.handle_bytes(now, &mut Scratch::default(), &room[range]);
        let reject = carry(&mut sell, &mut buy, now);
        assert!(
            reject.contains("|35=3|") && reject.contains("|5001=3 "),
            "{reject}"
        );
    }

    #[test]
    fn a_reset_whose_logon_ends_the_session_is_an_error() {
        // The first Logon(A) is as it should be.
        let spoil = AdminHook::new(|message, out| {
            if message.msg_type == b"A" && message.now.mono > 0 {
                out.str(96, "");
            }
        });
        let mut buy = Session::initiator(config("BUY", "SELL", spoil), MemoryStore::default());
        let mut sell = Session::acceptor(config("SELL", "BUY", signing()), MemoryStore::default());
        sell.connected(at(0));
        buy.connected(at(0));
        carry(&mut buy, &mut sell, at(0));
        carry(&mut sell, &mut buy, at(0));
        assert!(buy.is_logged_on());
        let reset = buy.reset_sequence(at(1));
        assert!(matches!(reset, Err(SendError::Encode(_))), "{reset:?}");
        assert!(!buy.is_connected());
    }

    #[test]
    fn a_message_that_the_hook_spoils_ends_the_session() {
        let spoil = AdminHook::new(|_, out| {
            out.str(96, "");
        });
        let mut buy = Session::initiator(config("BUY", "SELL", spoil), MemoryStore::default());
        buy.connected(at(0));
        assert_eq!(buy.poll_transmit(), b"");
        let Some(Event::Disconnect(reason)) = buy.poll_event() else {
            panic!("it goes on");
        };
        let expected = "cannot encode a message of the session: tag 96 has no value";
        assert_eq!(reason.to_string(), expected);
    }
}
