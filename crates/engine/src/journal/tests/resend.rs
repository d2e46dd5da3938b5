//! The cost of a resend for the journal: only time, and little of it at once.

use super::*;
use fanfare_fix::session::{Config, Now, Scratch, Search, Session, SessionId, Version};

const MESSAGES: u64 = 300;

fn now(seconds: u64) -> Now {
    let nanos = seconds * 1_000_000_000;
    Now {
        mono: nanos,
        utc: UtcTimestamp::from_nanos(NOW.nanos() + nanos as i64),
    }
}

fn incoming(now: Now, seq: u64, fields: &str) -> Vec<u8> {
    let time = now.utc.text(fanfare_wire::Precision::Millis);
    let (kind, rest) = fields.split_once('|').unwrap();
    framed(&format!("{kind}|34={seq}|49=B|52={time}|56=A|{rest}|")).into_bytes()
}

fn hear(session: &mut Session<Journal>, now: Now, scratch: &mut Scratch, mut bytes: &[u8]) {
    loop {
        let step = session.handle_bytes(now, scratch, bytes);
        if step.is_idle() {
            return;
        }
        bytes = &bytes[step.consumed..];
    }
}

/// Returns everything that is sent until nothing is due.
fn transmitted(session: &mut Session<Journal>, now: Now) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        session.sync(now);
        while !session.poll_transmit().is_empty() {
            let len = session.poll_transmit().len();
            all.extend_from_slice(session.poll_transmit());
            session.transmitted(len);
        }
        if !session.is_due_at_once() {
            return all;
        }
        session.handle_timeout(now);
    }
}

fn exercise(durability: Durability) {
    let folder = Folder::new();
    let options = Options {
        max_segments: 4,
        durability,
        ..small()
    };
    let mut config = Config::new(SessionId::new(Version::Fix44, "A", "B"));
    config.repeated_resend_limit = 0;
    let mut session = Session::acceptor(config, folder.open(options));
    session.connected(now(0));
    let mut scratch = Scratch::default();
    let logon = incoming(now(0), 1, "35=A|98=0|108=0");
    hear(&mut session, now(0), &mut scratch, &logon);
    for seq in 2..2 + MESSAGES {
        let text = "o".repeat(seq as usize % 200 + 1);
        let sent = session.send(now(0), b"D", |body| {
            body.u64(11, seq).str(58, &text);
        });
        assert_eq!(sent, Ok(seq));
    }
    transmitted(&mut session, now(0));
    let whole = kept(session.store());
    assert_eq!(whole.len() as u64, MESSAGES);
    let place = |journal: &Journal| (journal.current.header.number, journal.current.data_end);
    let (before, files) = (place(session.store()), folder.files());
    let mut usual = 0;
    for request in 0..2_000 {
        let at = now(1 + request);
        let text = incoming(at, 2 + request, "35=2|7=1|16=0");
        hear(&mut session, at, &mut scratch, &text);
        let answer = transmitted(&mut session, at);
        let again = answer.windows(6).filter(|field| field == b"\x0143=Y\x01");
        if request % 100 == 0 {
            // And the gap fill for the Logon.
            assert_eq!(again.count() as u64, MESSAGES + 1);
        }
        usual = usual.max(answer.len());
        assert_eq!(answer.len(), usual, "request {request}");
    }
    assert_eq!(kept(session.store()), whole);
    assert_eq!((place(session.store()), folder.files()), (before, files));
}

#[test]
fn however_often_it_is_asked_for_nothing_is_written_and_nothing_given_up() {
    exercise(Durability::None);
    exercise(Durability::EveryN(7));
}

#[test]
fn what_is_on_the_disk_before_it_is_transmitted_is_sent_again_alike() {
    exercise(Durability::Every);
}

/// Returns how many searches it takes to get from `from` to a message, and its number.
fn searches(journal: &Journal, from: u64) -> (usize, Option<u64>) {
    let (mut from, mut count) = (from, 1);
    loop {
        match journal.search_from(from) {
            Search::Kept(stored) => return (count, Some(stored.seq)),
            Search::Nothing => return (count, None),
            Search::NoneBelow(next) => {
                assert!(next > from);
                (from, count) = (next, count + 1);
            }
        }
    }
}

#[test]
fn one_search_does_not_walk_over_what_is_not_kept() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, b"one", APP).unwrap();
    // As in a journal of an older version, whose counterparty requested everything all day.
    for _ in 0..20_000 {
        old_copy(&mut journal, b"again");
    }
    journal.drop_unsent();
    put(&mut journal, b"two", ADMIN).unwrap();
    for _ in 0..20_000 {
        old_copy(&mut journal, b"again");
    }
    put(&mut journal, b"three", APP).unwrap();
    assert!(folder.files().len() > 50);
    assert_eq!(searches(&journal, 1), (1, Some(1)));
    let (count, found) = searches(&journal, 2);
    assert!(found == Some(3) && count <= 3, "{count}");
    // A year of Heartbeats.
    for _ in 0..10_000 {
        put(&mut journal, b"beat", ADMIN).unwrap();
        journal.drop_unsent();
    }
    put(&mut journal, b"last", APP).unwrap();
    let (count, found) = searches(&journal, 4);
    assert_eq!(found, Some(10_004));
    assert!((10_000 / 32..10_000 / 8).contains(&count), "{count}");
    journal.set_next_sender(1 << 40).unwrap();
    let (count, found) = searches(&journal, 10_005);
    assert!(found.is_none() && count < 4, "{count}");
}
