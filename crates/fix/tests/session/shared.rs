//! The fan-out path: a shared body, the session's own header and number.

use fanfare_fix::codec::{EncodeError, SendingTime, SharedBody, SharedFrame};
use fanfare_fix::session::{
    Config, MemoryStore, MessageStore, Now, SECOND, Scratch, SendError, Session, SessionId, Version,
};
use fanfare_wire::{Precision, UtcTimestamp};

use crate::fields::{framed, shown};

const FIELDS: &[u8] = b"55=EURUSD\x01268=0\x01";

fn now() -> Now {
    Now {
        mono: SECOND,
        utc: UtcTimestamp::from_nanos(1_795_168_800 * SECOND as i64),
    }
}

/// A session that a counterparty has logged on to.
fn logged_on(store: MemoryStore) -> Session<MemoryStore> {
    let mut config = Config::new(SessionId::new(Version::Fix44, "PLANT", "EDGE"));
    config.header_fields = vec![(57, b"DESK"[..].into())];
    let mut session: Session<MemoryStore> = Session::acceptor(config, store);
    session.connected(now());
    receive(
        &mut session,
        "35=A|34=1|49=EDGE|56=PLANT|52=20261120-10:00:00|98=0|108=30",
    );
    assert!(session.is_logged_on());
    take(&mut session);
    session
}

fn receive(session: &mut Session<MemoryStore>, fields: &str) {
    let bytes = framed("FIX.4.4", fields);
    let mut scratch = Scratch::default();
    let step = session.handle_bytes(now(), &mut scratch, &bytes);
    assert_eq!(step.consumed, bytes.len());
}

fn take(session: &mut Session<MemoryStore>) -> String {
    let mut text = String::new();
    while !session.poll_transmit().is_empty() {
        text.push_str(&shown(session.poll_transmit()));
        session.transmitted(session.poll_transmit().len());
    }
    text
}

#[test]
fn each_way_gives_the_same_message_with_the_next_number() {
    let mut session = logged_on(MemoryStore::default());
    let body = SharedBody::new(b"W", FIELDS).unwrap();
    let time = SendingTime::new(now().utc, Precision::Millis);
    let mut frame = SharedFrame::new(100);
    frame.load(&body).unwrap();
    let expected = |seq: u64| {
        let head = "35=W|49=PLANT|56=EDGE|57=DESK";
        framed(
            "FIX.4.4",
            &format!("{head}|34={seq}|52=20261120-10:00:00.000|55=EURUSD|268=0"),
        )
    };
    assert_eq!(
        session.send_shared(now(), &mut frame, &time).unwrap(),
        expected(2)
    );

    let mut out = [0; 512];
    let full = session.send_shared_into(now(), &body, &time, &mut out[..60]);
    assert_eq!(full, Err(SendError::Encode(EncodeError::BufferFull)));
    let len = session
        .send_shared_into(now(), &body, &time, &mut out)
        .unwrap();
    assert_eq!(shown(&out[..len]), shown(&expected(3)));
    assert_eq!(session.store().next_sender(), 4);
    // The session itself has nothing to write: these are the caller's.
    assert_eq!(take(&mut session), "");
}

#[test]
fn they_count_as_sent() {
    let mut session = logged_on(MemoryStore::without_resends(256 << 10));
    let body = SharedBody::new(b"W", FIELDS).unwrap();
    let time = SendingTime::new(now().utc, Precision::Millis);
    let later = |seconds| Now {
        mono: now().mono + seconds * SECOND,
        ..now()
    };
    let mut out = [0; 512];
    session
        .send_shared_into(later(29), &body, &time, &mut out)
        .unwrap();
    session.handle_timeout(later(31));
    assert_eq!(take(&mut session), "", "a Heartbeat is not due");
    session.handle_timeout(later(60));
    let sent = take(&mut session);
    assert!(
        sent.contains("35=1|34=3|") || sent.contains("35=0|34=3|"),
        "{sent}"
    );
}

#[test]
fn a_resend_gives_what_was_kept_or_a_gap_fill() {
    let request = "35=2|34=2|49=EDGE|56=PLANT|52=20261120-10:00:00|7=2|16=0";
    let body = SharedBody::new(b"W", FIELDS).unwrap();
    let time = SendingTime::new(now().utc, Precision::Millis);
    let mut out = [0; 512];

    let mut keeps = logged_on(MemoryStore::default());
    keeps
        .send_shared_into(now(), &body, &time, &mut out)
        .unwrap();
    receive(&mut keeps, request);
    let sent = take(&mut keeps);
    assert!(sent.contains("35=W|34=2|43=Y|49=PLANT|"), "{sent}");
    assert!(
        sent.contains("|56=EDGE|57=DESK|122=20261120-10:00:00.000|55=EURUSD|268=0|"),
        "{sent}"
    );

    let mut forgets = logged_on(MemoryStore::without_resends(256 << 10));
    forgets
        .send_shared_into(now(), &body, &time, &mut out)
        .unwrap();
    receive(&mut forgets, request);
    let sent = take(&mut forgets);
    assert!(
        sent.contains("35=4|34=2|43=Y|") && sent.contains("|36=3|123=Y|"),
        "{sent}"
    );
}

#[test]
fn nothing_overtakes_a_resend() {
    let mut session = logged_on(MemoryStore::default());
    let body = SharedBody::new(b"W", FIELDS).unwrap();
    let time = SendingTime::new(now().utc, Precision::Millis);
    let mut out = [0; 512];
    for _ in 0..1_000 {
        session
            .send_shared_into(now(), &body, &time, &mut out)
            .unwrap();
    }
    receive(
        &mut session,
        "35=2|34=2|49=EDGE|56=PLANT|52=20261120-10:00:00|7=2|16=0",
    );
    let overtaking = session.send_shared_into(now(), &body, &time, &mut out);
    assert_eq!(overtaking, Err(SendError::ResendInProgress));
    let behind = session.send(now(), b"B", |news| {
        news.str(58, "wait");
    });
    assert_eq!(behind, Ok(1_002));
    let mut sent = String::new();
    while session.poll_timeout() == Some(0) || !session.poll_transmit().is_empty() {
        sent.push_str(&take(&mut session));
        session.handle_timeout(now());
    }
    let numbers: Vec<u64> = sent
        .split("|34=")
        .skip(1)
        .map(|rest| rest.split('|').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers, (2..=1_002).collect::<Vec<_>>());
    assert!(
        sent.contains("35=B|34=1002|49="),
        "the new message is no PossDup"
    );
    assert!(
        session
            .send_shared_into(now(), &body, &time, &mut out)
            .is_ok()
    );
}

#[test]
fn an_idle_session_is_small() {
    let session = logged_on(MemoryStore::without_resends(256 << 10));
    let held = size_of_val(&session);
    assert!(held < 2_048, "{held}");
}
