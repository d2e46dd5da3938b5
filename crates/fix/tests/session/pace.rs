//! Limits on the rate of messages, sent and received, under virtual time.

use fanfare_fix::codec::{SendingTime, SharedBody};
use fanfare_fix::session::{
    AnswerLimit, Config, DisconnectReason, Event, MemoryStore, MessageStore, Now, OverRate, Rate,
    ReceiveLimit, RejectReason, SECOND, Scratch, SendError, SendLimit, Session, SessionId, Version,
};
use fanfare_fix::tag;
use fanfare_wire::{Precision, UtcTimestamp};
use proptest::prelude::*;

use crate::fields::{first_message, framed, shown};

const MILLIS: u64 = SECOND / 1_000;

/// A session whose counterparty is the test.
struct One<S> {
    session: Session<S>,
    scratch: Scratch,
    now: Now,
    /// Number of the counterparty's next message.
    next: u64,
    version: Version,
}

fn config(version: Version) -> Config {
    let mut config = Config::new(SessionId::new(version, "US", "PEER"));
    config.heart_bt_int_range = (0, 1_000);
    config
}

/// Returns a session that sends 3 messages in 100 ms and queues at most `queue`.
fn sending(queue: usize) -> Config {
    let mut config = config(Version::Fix44);
    let rate = Rate {
        messages: 3,
        interval: 100 * MILLIS,
    };
    config.send_limit = Some(SendLimit { rate, queue });
    config
}

fn receiving(version: Version, action: OverRate) -> Config {
    let mut config = config(version);
    let rate = Rate {
        messages: 3,
        interval: SECOND,
    };
    config.receive_limit = Some(ReceiveLimit { rate, action });
    config
}

impl One<MemoryStore> {
    /// Returns a session that has transmitted three of five messages. The other two wait for their
    /// rate.
    fn with_two_waiting() -> Self {
        let mut one = Self::new(sending(10), MemoryStore::default());
        for _ in 0..5 {
            one.send().unwrap();
        }
        assert_eq!(one.sent(), ["D2", "D3", "D4"]);
        one
    }
}

impl<S: MessageStore> One<S> {
    /// Logged on; the Logon of the counterparty counts as received.
    fn new(config: Config, store: S) -> Self {
        let mut one = Self::connected(config, store);
        one.check_logon();
        one
    }

    fn connected(config: Config, store: S) -> Self {
        let version = config.id.version;
        let utc = UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64);
        let now = Now { mono: SECOND, utc };
        let mut one = Self {
            session: Session::acceptor(config, store),
            scratch: Scratch::default(),
            now,
            next: 1,
            version,
        };
        one.session.connected(now);
        one
    }

    fn log_on(&mut self) {
        self.session.connected(self.now);
        self.check_logon();
    }

    fn check_logon(&mut self) {
        self.receive("A", "98=0|108=600|");
        assert!(self.session.is_logged_on());
        let written = self.written();
        assert!(written[0].contains("|35=A|"), "{written:?}");
    }

    fn wait(&mut self, nanos: u64) {
        self.now.mono += nanos;
        let utc = self.now.utc.nanos() + nanos as i64;
        self.now.utc = UtcTimestamp::from_nanos(utc);
        if self
            .session
            .poll_timeout()
            .is_some_and(|at| at <= self.now.mono)
        {
            self.session.handle_timeout(self.now);
        }
    }

    /// A message of the counterparty; gives the events.
    fn receive(&mut self, msg_type: &str, fields: &str) -> Vec<String> {
        let seq = self.next;
        self.next += 1;
        self.receive_as(msg_type, seq, fields)
    }

    fn receive_as(&mut self, msg_type: &str, seq: u64, fields: &str) -> Vec<String> {
        let time = self.now.utc.text(Precision::Seconds);
        let text = format!("35={msg_type}|34={seq}|49=PEER|52={time}|56=US|{fields}");
        let bytes = framed(self.version.begin_string(), &text);
        let (mut at, mut events) = (0, Vec::new());
        loop {
            let step = self
                .session
                .handle_bytes(self.now, &mut self.scratch, &bytes[at..]);
            at += step.consumed;
            match step.event {
                Some(Event::App(app)) => events.push(format!("app {}", app.seq)),
                Some(Event::Disconnect(reason)) => events.push(reason.to_string()),
                Some(Event::RejectSent {
                    ref_seq, reason, ..
                }) => {
                    let expected = [
                        RejectReason::Other,
                        RejectReason::RequiredTagMissing,
                        RejectReason::DataFormat,
                    ];
                    assert!(expected.contains(&reason));
                    events.push(format!("rejected {ref_seq}"));
                }
                Some(Event::WaitingDiscarded { messages }) => {
                    events.push(format!("{messages} discarded"));
                }
                Some(_) => {}
                None if step.consumed == 0 => return events,
                None => {}
            }
        }
    }

    /// Returns the counts of discarded messages that events without bytes report.
    fn discarded(&mut self) -> Vec<u64> {
        let mut counts = Vec::new();
        while let Some(event) = self.session.poll_event() {
            if let Event::WaitingDiscarded { messages } = event {
                counts.push(messages);
            }
        }
        counts
    }

    fn send(&mut self) -> Result<u64, SendError> {
        let id = self.session.store().next_sender();
        self.session.send(self.now, b"D", |order| {
            order.u64(tag::CL_ORD_ID, id);
        })
    }

    /// All messages that may be written now, calling the session as often as it wants.
    fn written(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        loop {
            let mut bytes = Vec::new();
            while !self.session.poll_transmit().is_empty() {
                bytes.extend_from_slice(self.session.poll_transmit());
                self.session.transmitted(self.session.poll_transmit().len());
            }
            let mut rest = bytes.as_slice();
            while let Some((message, behind)) = first_message(rest) {
                messages.push(shown(message));
                rest = behind;
            }
            if self
                .session
                .poll_timeout()
                .is_none_or(|at| at > self.now.mono)
            {
                return messages;
            }
            self.session.handle_timeout(self.now);
        }
    }

    /// The types and numbers of those.
    fn sent(&mut self) -> Vec<String> {
        let written = self.written();
        let value = |message: &str, tag: &str| {
            let at = message.find(tag).unwrap() + tag.len();
            message[at..].split('|').next().unwrap().to_owned()
        };
        let short = |m: &String| format!("{}{}", value(m, "|35="), value(m, "|34="));
        written.iter().map(short).collect()
    }
}

#[test]
fn what_is_too_fast_waits_in_order_and_the_queue_has_an_end() {
    let mut one = One::new(sending(4), MemoryStore::default());
    for _ in 0..7 {
        one.send().unwrap();
    }
    let until = one.now.mono + 100 * MILLIS;
    assert_eq!(one.send(), Err(SendError::Throttled { until }));
    assert_eq!(one.sent(), ["D2", "D3", "D4"]);
    assert_eq!(one.session.poll_timeout(), Some(until));
    one.wait(99 * MILLIS);
    assert_eq!(one.sent(), [""; 0]);
    assert!(one.send().is_err(), "still four");
    one.wait(MILLIS);
    assert_eq!(one.sent(), ["D5", "D6", "D7"]);
    assert_eq!(one.send(), Ok(9));
    one.wait(100 * MILLIS);
    assert_eq!(one.sent(), ["D8", "D9"]);
    assert_eq!(one.send(), Ok(10));
    assert_eq!(one.sent(), ["D10"], "nothing waits any more");
    while one.session.poll_event().is_some_and(|event| {
        assert!(
            !matches!(event, Event::ResendDone { .. }),
            "nobody asked for one"
        );
        true
    }) {}
}

#[test]
fn the_sessions_own_messages_keep_their_place_and_do_not_count() {
    let mut one = One::new(sending(10), MemoryStore::default());
    for _ in 0..4 {
        one.send().unwrap();
    }
    one.receive("1", "112=hello|");
    one.send().unwrap();
    assert_eq!(one.sent(), ["D2", "D3", "D4"]);
    one.wait(100 * MILLIS);
    assert_eq!(one.sent(), ["D5", "06", "D7"]);
    one.receive("1", "112=again|");
    assert_eq!(one.sent(), ["08"], "nothing waits: at once");
}

#[test]
fn a_resend_goes_in_front_of_what_waits_and_is_not_limited() {
    let mut one = One::with_two_waiting();
    // It asks for one more than it can have seen: that one comes, once.
    one.receive("2", "7=2|16=5|");
    let resent = one.written();
    assert_eq!(resent.len(), 3, "{resent:?}");
    assert!(resent.iter().all(|message| message.contains("|43=Y|")));
    one.receive("2", "7=6|16=0|");
    assert_eq!(one.sent(), [""; 0]);
    one.wait(100 * MILLIS);
    let new = one.written();
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(
        new.iter().all(|message| !message.contains("|43=Y|")),
        "{new:?}"
    );
}

#[test]
fn a_logout_comes_behind_what_waits() {
    let mut one = One::new(sending(30), MemoryStore::default());
    for _ in 0..30 {
        one.send().unwrap();
    }
    one.session.logout(one.now, "");
    let mut all = one.sent();
    for _ in 0..20 {
        one.wait(80 * MILLIS);
        all.extend(one.sent());
    }
    let expected: Vec<_> = (2..=31).map(|seq| format!("D{seq}")).collect();
    assert_eq!(all[..30], expected);
    assert_eq!(all[30..], ["532"]);
    let events = one.receive("5", "");
    assert!(
        events.contains(&DisconnectReason::LogoutComplete.to_string()),
        "{events:?}"
    );
}

#[test]
fn what_waits_when_the_connection_is_lost_is_there_for_the_next() {
    let mut one = One::with_two_waiting();
    one.session.disconnected(one.now);
    one.wait(SECOND);
    one.log_on();
    one.receive("2", "7=5|16=0|");
    let resent = one.written();
    assert!(resent[0].contains("|35=D|34=5|43=Y|"), "{resent:?}");
    assert!(resent[1].contains("|35=D|34=6|43=Y|"), "{resent:?}");
}

#[test]
fn a_reset_of_the_next_logon_reports_what_waited_before() {
    let mut one = One::with_two_waiting();
    one.session.disconnected(one.now);
    assert_eq!(one.discarded(), [0; 0]);
    one.wait(SECOND);
    one.session.connected(one.now);
    let events = one.receive_as("A", 1, "98=0|108=600|141=Y|");
    assert_eq!(events, ["2 discarded"]);
    assert_eq!(one.discarded(), [0; 0]);
}

#[test]
fn what_was_sent_after_the_next_logon_is_not_reported_as_discarded() {
    let mut one = One::with_two_waiting();
    one.session.disconnected(one.now);
    one.log_on();
    one.receive("2", "7=5|16=5|");
    assert_eq!(one.written().len(), 1);
    one.session.disconnected(one.now);
    one.session.reset_idle(one.now).unwrap();
    assert_eq!(one.discarded(), [1]);
    one.session.reset_idle(one.now).unwrap();
    assert_eq!(one.discarded(), [0; 0]);
}

#[test]
fn a_reset_at_the_end_of_the_connection_reports_what_waited() {
    let mut config = sending(10);
    config.reset_on_disconnect = true;
    let mut one = One::new(config, MemoryStore::default());
    for _ in 0..5 {
        one.send().unwrap();
    }
    one.sent();
    one.session.disconnected(one.now);
    assert_eq!(one.discarded(), [2]);
}

#[test]
fn messages_for_the_next_logon_are_reported_when_a_number_or_a_reset_discards_them() {
    let mut config = config(Version::Fix44);
    config.queue_offline = true;
    let mut one = One::new(config, MemoryStore::default());
    one.session.disconnected(one.now);
    for seq in 2..=5 {
        assert_eq!(one.send(), Ok(seq));
    }
    one.session.change_next_sender(one.now, 5).unwrap();
    assert_eq!(one.discarded(), [1]);
    one.session.reset_idle(one.now).unwrap();
    assert_eq!(one.discarded(), [3]);
}

#[test]
fn a_store_that_keeps_nothing_refuses_at_once() {
    let mut one = One::new(sending(10), MemoryStore::without_resends(256 << 10));
    for _ in 0..3 {
        one.send().unwrap();
    }
    assert!(matches!(one.send(), Err(SendError::Throttled { .. })));
    assert_eq!(one.sent(), ["D2", "D3", "D4"]);
    one.wait(100 * MILLIS);
    assert_eq!(one.send(), Ok(5));
}

#[test]
fn a_message_that_cannot_be_encoded_leaves_no_queue_behind() {
    let mut one = One::new(sending(10), MemoryStore::default());
    for _ in 0..3 {
        one.send().unwrap();
    }
    let wrong = one.session.send(one.now, b"D", |order| {
        order.str(tag::CL_ORD_ID, "");
    });
    assert!(matches!(wrong, Err(SendError::Encode(_))), "{wrong:?}");
    one.sent();
    one.receive("1", "112=x|");
    assert_eq!(one.sent(), ["05"], "nothing waits");
}

#[test]
fn a_message_that_is_not_written_takes_no_place_of_the_rate() {
    let mut one = One::new(sending(0), MemoryStore::default());
    let wrong = one.session.send(one.now, b"D", |order| {
        order.str(tag::CL_ORD_ID, "");
    });
    assert!(matches!(wrong, Err(SendError::Encode(_))), "{wrong:?}");
    let body = SharedBody::new(b"W", b"55=A\x01").unwrap();
    let time = SendingTime::new(one.now.utc, Precision::Millis);
    let mut short = [0; 8];
    let wrong = one
        .session
        .send_shared_into(one.now, &body, &time, &mut short);
    assert!(matches!(wrong, Err(SendError::Encode(_))), "{wrong:?}");
    for seq in 2..5 {
        assert_eq!(one.send(), Ok(seq));
    }
    assert!(matches!(one.send(), Err(SendError::Throttled { .. })));
}

#[test]
fn a_message_that_is_not_written_leaves_what_waits() {
    let mut config = config(Version::Fix44);
    let rate = Rate {
        messages: 256,
        interval: 100 * MILLIS,
    };
    config.send_limit = Some(SendLimit { rate, queue: 300 });
    let mut one = One::new(config, MemoryStore::default());
    for _ in 0..512 {
        one.send().unwrap();
    }
    one.receive("1", "112=x|");
    assert_eq!(one.sent().len(), 256);
    // One part has all the orders, and the Heartbeat is due with the next one.
    one.wait(100 * MILLIS);
    let wrong = one.session.send(one.now, b"D", |order| {
        order.str(tag::CL_ORD_ID, "");
    });
    assert!(matches!(wrong, Err(SendError::Encode(_))), "{wrong:?}");
    let sent = one.sent();
    assert_eq!((sent.len(), sent[256].as_str()), (257, "0514"));
}

#[test]
fn a_reset_is_refused_while_messages_wait() {
    let mut one = One::with_two_waiting();
    let refused = Err(SendError::ResendInProgress);
    assert_eq!(one.session.reset_sequence(one.now), refused);
    one.wait(100 * MILLIS);
    assert_eq!(one.sent(), ["D5", "D6"]);
    assert_eq!(one.session.reset_sequence(one.now), Ok(()));
    assert_eq!(one.sent(), ["A1"]);
}

#[test]
fn what_a_reset_of_the_counterparty_discards_is_counted() {
    let mut one = One::with_two_waiting();
    let logon = "98=0|108=600|141=Y|";
    assert_eq!(one.receive_as("A", 1, logon), ["2 discarded"]);
    assert_eq!(one.sent(), ["A1"]);
    assert_eq!(one.receive_as("A", 1, logon), [""; 0]);
}

#[test]
fn shared_bodies_do_not_wait() {
    let mut one = One::new(sending(10), MemoryStore::default());
    let body = SharedBody::new(b"W", b"55=A\x01").unwrap();
    let mut out = [0; 512];
    let mut send = |one: &mut One<MemoryStore>| {
        let time = SendingTime::new(one.now.utc, Precision::Millis);
        let now = one.now;
        one.session.send_shared_into(now, &body, &time, &mut out)
    };
    for _ in 0..3 {
        send(&mut one).unwrap();
    }
    let refused = send(&mut one);
    assert!(
        matches!(refused, Err(SendError::Throttled { .. })),
        "{refused:?}"
    );
    one.wait(100 * MILLIS);
    assert!(send(&mut one).is_ok());
    assert_eq!(one.session.store().next_sender(), 6);
}

#[test]
fn who_sends_too_fast_is_logged_out_with_the_reason() {
    let mut one = One::new(
        receiving(Version::Fix44, OverRate::Disconnect),
        MemoryStore::default(),
    );
    // The Logon does not count.
    assert_eq!(one.receive("D", "11=a|"), ["app 2"]);
    one.wait(SECOND / 2);
    assert_eq!(one.receive("0", ""), [""; 0]);
    let text = "more than 3 messages in 1000 ms";
    assert_eq!(one.receive("D", "11=b|"), ["app 4"]);
    assert_eq!(one.receive("D", "11=c|"), [text]);
    let written = one.written();
    assert!(written[0].contains("|35=5|34=2|"), "{written:?}");
    assert!(written[0].contains(&format!("|58={text}|")), "{written:?}");
    assert_eq!(
        one.session.store().next_target(),
        5,
        "it comes again after the next logon"
    );
}

#[test]
fn or_what_is_too_much_is_rejected_and_counts_as_received() {
    for (version, answer) in [(Version::Fix44, "|35=j|"), (Version::Fix40, "|35=3|")] {
        let config = receiving(version, OverRate::Reject);
        let mut one = One::new(config, MemoryStore::default());
        assert_eq!(one.receive("D", "11=a|"), ["app 2"]);
        assert_eq!(one.receive("D", "11=b|"), ["app 3"]);
        one.receive("0", "");
        assert_eq!(one.receive("D", "11=c|"), ["rejected 5"]);
        let written = one.written();
        let text = "|58=more than 3 messages in 1000 ms|";
        assert!(
            written[0].contains(answer) && written[0].contains(text),
            "{written:?}"
        );
        assert!(written[0].contains("|45=5|"), "{written:?}");
        // The session itself goes on.
        one.receive("1", "112=alive|");
        assert!(one.written()[0].contains("|112=alive|"));
        assert_eq!(one.receive("D", "11=d|"), ["rejected 7"]);
        one.wait(SECOND);
        assert_eq!(one.receive("D", "11=e|"), ["app 8"]);
    }
}

#[test]
fn what_was_asked_for_again_does_not_count() {
    let config = receiving(Version::Fix44, OverRate::Disconnect);
    let mut one = One::new(config, MemoryStore::default());
    one.next = 12;
    one.receive("D", "11=late|");
    let again = |seq: u64| format!("43=Y|122=20261120-10:00:00|11={seq}|");
    let mut had = Vec::new();
    for seq in 2..12 {
        had.extend(one.receive_as("D", seq, &again(seq)));
    }
    let expected: Vec<_> = (2..=12).map(|seq| format!("app {seq}")).collect();
    assert_eq!(had, expected);
    // Without a gap the flag is no way around the limit.
    for _ in 0..2 {
        one.receive("D", "43=Y|122=20261120-10:00:00|11=a|");
    }
    assert_eq!(
        one.receive("D", "43=Y|122=20261120-10:00:00|11=b|").len(),
        1
    );
    assert!(!one.session.is_connected());
}

#[test]
fn messages_with_a_broken_field_count_unless_they_were_asked_for_again() {
    let config = receiving(Version::Fix44, OverRate::Disconnect);
    let mut one = One::new(config.clone(), MemoryStore::default());
    let broken = "354=3|355=abcdef|";
    for seq in 2..5 {
        assert_eq!(one.receive("D", broken), [format!("rejected {seq}")]);
    }
    let text = "more than 3 messages in 1000 ms";
    assert_eq!(one.receive("D", broken), [text]);

    let mut one = One::new(config, MemoryStore::default());
    one.next = 12;
    one.receive("D", "11=late|");
    let again = format!("43=Y|122=20261120-10:00:00|{broken}");
    let mut had = Vec::new();
    for seq in 2..12 {
        had.extend(one.receive_as("D", seq, &again));
    }
    let mut expected: Vec<_> = (2..12).map(|seq| format!("rejected {seq}")).collect();
    expected.push("app 12".to_owned());
    assert_eq!(had, expected);
}

/// Sends `each` messages a millisecond until the session ends, for at most `seconds`. Returns the
/// bytes that the session wrote, and when and why it ended.
fn flood(msg_type: &str, fields: &str, each: u64, seconds: u64) -> (usize, Option<(u64, String)>) {
    let mut one = One::new(config(Version::Fix44), MemoryStore::default());
    let mut written = 0;
    for count in 1..=each * seconds * 1_000 {
        let events = one.receive(msg_type, fields);
        written += one.session.poll_transmit().len();
        one.session.transmitted(one.session.poll_transmit().len());
        if count % each == 0 {
            one.wait(MILLIS);
        }
        if let Some(end) = events.into_iter().find(|event| event.contains("a second")) {
            let millis = (one.now.mono - SECOND) / MILLIS;
            return (written, Some((millis, end)));
        }
    }
    (written, None)
}

#[test]
fn who_makes_the_session_say_too_much_is_logged_out() {
    let limit = AnswerLimit::DEFAULT;
    let most = AnswerLimit::BURST as usize * limit.bytes as usize;
    let id = format!("112={}|", "x".repeat(256));
    for (msg_type, fields) in [("1", id.as_str()), ("1", "58=no id|"), ("3", "43=X|45=1|")] {
        // 40,000 a second.
        let (written, end) = flood(msg_type, fields, 40, 10);
        let Some((millis, end)) = end.filter(|_| msg_type == "1") else {
            assert!(
                msg_type == "3" && written < 1000,
                "a Reject is not answered"
            );
            continue;
        };
        assert_eq!(end, limit.to_string());
        let allowed = most + limit.bytes as usize * (millis as usize + 1) / 1000;
        assert!(written > most / 4 && written < allowed + 1000, "{written}");
    }
    // As fast as a program measures round trips.
    assert_eq!(flood("1", "112=TEST|", 8, 15).1, None);
}

#[test]
fn a_logon_with_secrets_counts_with_its_length() {
    for (secret, is_too_much) in [(100, false), (3_000, true)] {
        let mut config = config(Version::Fix44);
        let secret = "s".repeat(secret);
        config.logon_fields = vec![(tag::PASSWORD, secret.as_bytes().into())];
        config.answer_limit = Some(AnswerLimit {
            messages: 100,
            bytes: 100,
        });
        let mut one = One::connected(config, MemoryStore::default());
        one.receive("A", "98=0|108=600|");
        assert_eq!(one.session.is_logged_on(), !is_too_much);
    }
}

#[test]
fn strangers_get_few_logouts() {
    let mut asking = config(Version::Fix44);
    asking.ask_logon = true;
    let mut one = One::connected(asking, MemoryStore::default());
    let mut turn_away = |wait: u64| {
        one.wait(wait);
        one.next = 1;
        one.session.connected(one.now);
        one.receive("A", "98=0|108=600|554=guess|");
        one.session.refuse_logon(one.now, "no");
        assert!(!one.session.is_connected());
        let said = one.written();
        one.session.disconnected(one.now);
        assert!(
            said.iter().all(|message| message.contains("|58=no|")),
            "{said:?}"
        );
        (said.len(), one.session.store().next_sender())
    };
    let said: usize = (0..1_000).map(|_| turn_away(0).0).sum();
    assert_eq!(said, 10);
    assert_eq!(turn_away(0), (0, 11), "no number is used");
    assert_eq!(turn_away(3 * SECOND), (1, 12));
}

#[test]
fn what_was_said_is_forgotten_in_time_and_not_by_a_new_connection() {
    let mut limited = config(Version::Fix44);
    limited.answer_limit = Some(AnswerLimit {
        messages: 1,
        bytes: 1 << 20,
    });
    let mut one = One::new(limited, MemoryStore::default());
    // The Logon is the first.
    for _ in 0..9 {
        one.receive("1", "112=T|");
        assert!(one.session.is_connected());
    }
    one.wait(5 * SECOND);
    for _ in 0..5 {
        one.receive("1", "112=T|");
        assert!(one.session.is_connected());
    }
    let events = one.receive("1", "112=T|");
    assert_eq!(
        events,
        ["more than 1 answers or 1048576 bytes of them a second"]
    );
    let last = one.written().pop().unwrap();
    assert!(
        last.contains("|35=5|") && last.contains("|58=more than 1 answers"),
        "{last}"
    );
    one.session.disconnected(one.now);
    one.wait(4 * SECOND);
    one.log_on();
    one.receive("1", "112=T|");
    assert!(one.session.is_connected());
    one.receive("1", "112=T|");
    assert!(!one.session.is_connected());
}

proptest! {
    #[test]
    fn never_more_than_the_rate_in_any_stretch(
        steps in prop::collection::vec((0_u64..60, 0_usize..6), 1..80),
        messages in 1_u32..6,
        queue in 0_usize..8,
    ) {
        let mut config = config(Version::Fix44);
        let rate = Rate { messages, interval: 50 * MILLIS };
        config.send_limit = Some(SendLimit { rate, queue });
        let mut one = One::new(config, MemoryStore::default());
        let (mut times, mut taken, mut refused) = (Vec::new(), 0, 0);
        for (wait, count) in steps {
            one.wait(wait * MILLIS);
            for _ in 0..count {
                match one.send() {
                    Ok(_) => taken += 1,
                    Err(SendError::Throttled { until }) => {
                        prop_assert!(until > one.now.mono || queue > 0);
                        refused += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            let fresh = one.sent();
            times.extend(fresh.into_iter().map(|sent| (sent, one.now.mono)));
        }
        while times.len() < taken {
            one.wait(50 * MILLIS);
            let fresh = one.sent();
            prop_assert!(!fresh.is_empty(), "it goes on");
            times.extend(fresh.into_iter().map(|sent| (sent, one.now.mono)));
        }
        for (at, (sent, _)) in times.iter().enumerate() {
            prop_assert_eq!(sent, &format!("D{}", at + 2));
        }
        for window in times.windows(messages as usize + 1) {
            prop_assert!(window[messages as usize].1 - window[0].1 >= 50 * MILLIS);
        }
        prop_assert!(refused == 0 || taken > 0);
    }
}
