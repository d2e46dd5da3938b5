//! Logouts to counterparties that read slowly, resets while messages are missing, and the words for
//! a stranger and for a message that the application rejects.

use fanfare_fix::codec::Decoder;
use fanfare_fix::session::{
    BusinessReason, Config, Credentials, DisconnectReason, Event, MemoryStore, MessageStore, Now,
    RejectReason, SECOND, Scratch, SendError, Session, SessionId, State, Version,
};
use fanfare_wire::UtcTimestamp;

use crate::fields::{framed, shown};

/// A session whose counterparty is the test.
struct One {
    session: Session<MemoryStore>,
    scratch: Scratch,
    now: Now,
}

fn config() -> Config {
    Config::new(SessionId::new(Version::Fix44, "US", "PEER"))
}

impl One {
    fn connected(config: Config) -> Self {
        let utc = UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64);
        let mut one = Self {
            session: Session::acceptor(config, MemoryStore::default()),
            scratch: Scratch::default(),
            now: Now { mono: SECOND, utc },
        };
        one.session.connected(one.now);
        one
    }

    fn logged_on() -> Self {
        let mut one = Self::connected(config());
        one.receive("A", 1, "98=0|108=30|");
        assert!(one.session.is_logged_on());
        one.transmit(usize::MAX);
        one
    }

    /// Returns a session that has begun its logout behind messages that are not transmitted.
    fn logging_out() -> Self {
        let mut one = Self::logged_on();
        for _ in 0..100 {
            one.session
                .send(one.now, b"D", |order| {
                    order.str(11, "A");
                })
                .unwrap();
        }
        one.session.logout(one.now, "");
        one
    }

    /// Returns the events of a message of the counterparty, in words.
    fn receive(&mut self, msg_type: &str, seq: u64, fields: &str) -> Vec<String> {
        let time = "52=20261120-10:00:00";
        let text = format!("35={msg_type}|34={seq}|49=PEER|{time}|56=US|{fields}");
        let bytes = framed("FIX.4.4", &text);
        let (mut at, mut events) = (0, Vec::new());
        loop {
            let (now, scratch) = (self.now, &mut self.scratch);
            let step = self.session.handle_bytes(now, scratch, &bytes[at..]);
            at += step.consumed;
            match step.event {
                Some(Event::App(app)) => events.push(format!("app {}", app.seq)),
                Some(other) => events.push(format!("{other:?}")),
                None if step.consumed == 0 => break,
                None => {}
            }
        }
        while let Some(event) = self.session.poll_event() {
            events.push(format!("{event:?}"));
        }
        events
    }

    /// Transmits at most `most` bytes, and returns them.
    fn transmit(&mut self, most: usize) -> String {
        let mut taken = Vec::new();
        while taken.len() < most && !self.session.poll_transmit().is_empty() {
            let unsent = self.session.poll_transmit();
            let len = unsent.len().min(most - taken.len());
            taken.extend_from_slice(&unsent[..len]);
            self.session.transmitted(len);
        }
        shown(&taken)
    }

    fn wait(&mut self, nanos: u64) {
        self.now.mono += nanos;
        let due = self.session.poll_timeout();
        if due.is_some_and(|at| at <= self.now.mono) {
            self.session.handle_timeout(self.now);
        }
    }

    /// Returns the reason of the end, if the session has ended.
    fn end(&mut self) -> Option<DisconnectReason> {
        while let Some(event) = self.session.poll_event() {
            if let Event::Disconnect(reason) = event {
                return Some(reason);
            }
        }
        None
    }
}

#[test]
fn the_wait_for_the_answer_begins_when_the_logout_is_transmitted() {
    let mut one = One::logging_out();
    let timeout = one.session.config().logout_timeout;
    for _ in 0..3 {
        one.transmit(1_000);
        one.wait(timeout);
        assert_eq!(one.session.state(), State::LoggingOut);
    }
    one.wait(timeout / 2);
    let rest = one.transmit(usize::MAX);
    assert!(rest.contains("|35=5|"), "{rest}");
    one.wait(0);
    one.wait(timeout - 1);
    assert_eq!(one.end(), None);
    one.wait(1);
    assert_eq!(one.end(), Some(DisconnectReason::LogoutTimeout));
}

#[test]
fn a_logout_that_nobody_reads_has_an_end() {
    let mut one = One::logging_out();
    one.wait(one.session.config().logout_timeout);
    assert_eq!(one.end(), Some(DisconnectReason::LogoutTimeout));

    let mut one = One::logging_out();
    let mut periods = 0;
    let reason = loop {
        one.transmit(1);
        one.wait(one.session.config().logout_timeout);
        periods += 1;
        if let Some(reason) = one.end() {
            break reason;
        }
    };
    assert_eq!(reason, DisconnectReason::LogoutTimeout);
    assert_eq!(periods, Config::LOGOUT_PERIODS, "a byte at a time");
}

#[test]
fn a_logout_is_not_prolonged_by_what_the_session_writes() {
    let mut one = One::logging_out();
    one.receive("1", 2, "112=x|");
    one.wait(one.session.config().logout_timeout);
    assert_eq!(one.end(), Some(DisconnectReason::LogoutTimeout));
}

#[test]
fn a_logout_in_front_of_our_messages_cuts_them_off() {
    let mut one = One::logging_out();
    one.receive("5", 2, "");
    assert!(one.session.is_cut_short());

    let mut one = One::logging_out();
    one.transmit(usize::MAX);
    one.receive("5", 2, "");
    assert!(!one.session.is_cut_short());

    // An answer of the session is no message of the application.
    let mut one = One::logged_on();
    one.receive("1", 2, "112=x|");
    one.receive("5", 3, "");
    assert!(!one.session.is_cut_short());
}

#[test]
fn resets_with_minutes_in_between_have_no_limit() {
    let mut one = One::logged_on();
    for _ in 0..25 {
        one.now.mono += 61 * SECOND;
        one.receive("A", 1, "98=0|108=30|141=Y|");
        assert!(one.session.is_logged_on());
        one.transmit(usize::MAX);
    }
}

#[test]
fn a_reset_despite_missing_messages_reports_what_it_discards() {
    let mut one = One::logged_on();
    one.receive("D", 4, "11=C|");
    assert_eq!(one.session.reset_despite_gap(one.now), Ok(()));
    let event = one.session.poll_event().map(|event| format!("{event:?}"));
    let expected = "HeldDiscarded { messages: 1 }";
    assert_eq!(event.as_deref(), Some(expected));
    let said = one.transmit(usize::MAX);
    assert!(said.contains("|141=Y|"), "{said}");
}

#[test]
fn a_reset_is_refused_while_messages_are_missing() {
    let mut one = One::logged_on();
    one.receive("D", 4, "11=C|");
    let refused = Err(SendError::ResendInProgress);
    assert_eq!(one.session.reset_sequence(one.now), refused);
    assert_eq!(one.session.store().next_target(), 2);
    assert_eq!(
        one.receive("D", 2, "43=Y|122=20261120-10:00:00|11=A|"),
        ["app 2"]
    );
    let rest = one.receive("D", 3, "43=Y|122=20261120-10:00:00|11=B|");
    assert_eq!(rest[..2], ["app 3", "app 4"]);
    assert_eq!(one.session.reset_sequence(one.now), Ok(()));
}

#[test]
fn a_reset_of_the_counterparty_reports_what_waited_for_missing_messages() {
    let mut one = One::logged_on();
    one.receive("D", 4, "11=C|");
    one.receive("D", 5, "11=D|");
    let events = one.receive("A", 1, "98=0|108=30|141=Y|");
    let expected = "HeldDiscarded { messages: 2 }".to_owned();
    assert!(events.contains(&expected), "{events:?}");
}

#[test]
fn a_stranger_is_not_told_the_numbers() {
    let mut config = config();
    config.credentials = Some(Credentials {
        username: "me".into(),
        password: "secret".into(),
    });
    let mut one = One::connected(config);
    one.session.change_next_target(one.now, 5).unwrap();
    let events = one.receive("A", 1, "98=0|108=30|553=me|554=guess|");
    assert_eq!(events, ["Disconnect(WrongCredentials)"]);
    let said = one.transmit(usize::MAX);
    assert!(
        said.contains("|35=5|34=1|") && said.contains("|58=Username or Password is wrong|"),
        "{said}"
    );
    // The Logout counts, as it does for the counterparty. The Logon does not: anybody can send it.
    let store = one.session.store();
    assert_eq!((store.next_sender(), store.next_target()), (2, 5));
}

#[test]
fn a_counterparty_with_a_new_password_is_told_that_the_old_one_stays() {
    let logon = |new: &str| {
        let mut config = config();
        config.credentials = Some(Credentials {
            username: "me".into(),
            password: "secret".into(),
        });
        let mut one = One::connected(config);
        let credentials = format!("98=0|108=30|553=me|554=secret|{new}");
        let events = one.receive("A", 1, &credentials);
        (one, events)
    };
    for same in ["925=|", "925=secret|"] {
        assert!(logon(same).0.session.is_logged_on());
    }
    for new in ["925=new|", "1403=3|1404=new|"] {
        let (mut one, events) = logon(new);
        assert_eq!(events, ["Disconnect(NewPassword)"]);
        let said = one.transmit(usize::MAX);
        let expected = "|58=NewPassword(925) is not supported: the password is not changed|";
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_message_is_rejected_without_words_too() {
    let mut one = One::logged_on();
    let news = framed(
        "FIX.4.4",
        "35=B|34=2|49=PEER|52=20261120-10:00:00|56=US|148=x|",
    );
    let mut decoder = Decoder::new();
    let news = decoder.decode(&news).unwrap();
    for (text, field) in [("", ""), ("no", "|58=no")] {
        let reason = RejectReason::Other;
        let session = &mut one.session;
        session
            .reject(one.now, &news, reason, Some(148), text)
            .unwrap();
        let reason = BusinessReason::Other;
        session
            .reject_business(one.now, &news, reason, text)
            .unwrap();
        let said = one.transmit(usize::MAX);
        let session = format!("|45=2{field}|371=148|372=B|373=99|");
        let business = format!("|45=2{field}|372=B|380=0|");
        assert!(
            said.contains(&session) && said.contains(&business),
            "{said}"
        );
    }
}
