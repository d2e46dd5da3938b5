//! Tests of resent messages against messages that are encoded anew field by field.

use super::super::config::Config;
use super::super::identity::{SessionId, Version};
use super::super::inbound::Scratch;
use super::super::memory::{MemoryLimits, MemoryStore};
use super::super::outbound::ADMIN_ROOM;
use super::*;
use crate::codec::{Decoder, Message, Next};
use fanfare_wire::UtcTimestamp;
use fanfare_wire::fields::SOH;
use proptest::prelude::*;
use std::collections::BTreeSet;

mod decisions;

fn now(millis: u64) -> Now {
    let utc = 1_795_168_800_000 + millis as i64;
    Now {
        mono: millis * 1_000_000,
        utc: UtcTimestamp::from_nanos(utc * 1_000_000),
    }
}

/// Returns a message of the counterparty.
fn incoming(version: Version, now: Now, fields: &str) -> Vec<u8> {
    let mut time = [0; 32];
    let len = now.utc.write(version.precision(), &mut time);
    let time = String::from_utf8_lossy(&time[..len]).into_owned();
    let (msg_type, rest) = fields.split_once('|').unwrap();
    let fields = format!("{msg_type}|49=PEER|52={time}|56=US|{rest}|").replace('|', "\x01");
    framed(version.begin_string().as_bytes(), fields.as_bytes())
}

fn framed(begin_string: &[u8], fields: &[u8]) -> Vec<u8> {
    let length = fields.len().to_string();
    let front: [&[u8]; 5] = [b"8=", begin_string, b"\x019=", length.as_bytes(), b"\x01"];
    let mut message = [&front.concat(), fields].concat();
    let sum = message
        .iter()
        .fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    message.extend_from_slice(format!("10={sum:03}\x01").as_bytes());
    message
}

/// Returns a logged-on acceptor.
fn session(version: Version, change: impl Fn(&mut Config)) -> Session<MemoryStore> {
    session_of(MemoryStore::default(), version, change)
}

/// Returns a logged-on acceptor with this store.
fn session_of(
    store: MemoryStore,
    version: Version,
    change: impl Fn(&mut Config),
) -> Session<MemoryStore> {
    let mut config = Config::new(SessionId::new(version, "US", "PEER"));
    config.heart_bt_int_range = (0, 86_400);
    change(&mut config);
    let mut session = Session::acceptor(config, store);
    session.connected(now(0));
    let logon = "35=A|34=1|98=0|108=0|1137=9";
    hear(&mut session, now(0), &incoming(version, now(0), logon));
    assert!(session.is_logged_on());
    drain(&mut session, now(0));
    session
}

fn hear(session: &mut Session<MemoryStore>, now: Now, mut bytes: &[u8]) {
    let mut scratch = Scratch::default();
    loop {
        let step = session.handle_bytes(now, &mut scratch, bytes);
        if step.is_idle() {
            return;
        }
        bytes = &bytes[step.consumed..];
    }
}

/// Returns everything that is to be transmitted, and what follows it.
fn drain(session: &mut Session<MemoryStore>, now: Now) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        while !session.poll_transmit().is_empty() {
            let len = session.poll_transmit().len().min(1500);
            all.extend_from_slice(&session.poll_transmit()[..len]);
            session.transmitted(len);
        }
        if !session.is_due_at_once() {
            return all;
        }
        session.handle_timeout(now);
    }
}

fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new();
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let Next::Message { end, .. } = decoder.next(bytes) else {
            panic!("{}", String::from_utf8_lossy(bytes).replace('\x01', "|"));
        };
        all.push(bytes[..end].to_vec());
        bytes = &bytes[end..];
    }
    all
}

/// Returns the resent message in the slow and obvious way: takes the original apart, writes the
/// header in ascending order of tags, and frames it.
fn sent_again(original: &[u8], sending_time: &[u8], processed: Option<u64>) -> Vec<u8> {
    let mut decoder = Decoder::new();
    let original: Message<'_> = decoder.decode(original).unwrap();
    let (mut head, mut body) = (Vec::new(), Vec::new());
    let mut in_body = false;
    for (position, &tag) in original.tags().iter().enumerate().skip(3) {
        let value = original.value(position).unwrap().to_vec();
        in_body |= !tag::is_header(tag);
        match tag {
            tag::CHECK_SUM => {}
            _ if in_body => body.push((tag, value)),
            tag::SENDING_TIME => head.push((tag::ORIG_SENDING_TIME, value)),
            tag::LAST_MSG_SEQ_NUM_PROCESSED => {}
            _ => head.push((tag, value)),
        }
    }
    head.push((tag::POSS_DUP_FLAG, b"Y".to_vec()));
    head.push((tag::SENDING_TIME, sending_time.to_vec()));
    if let Some(processed) = processed {
        let text = processed.to_string().into_bytes();
        head.push((tag::LAST_MSG_SEQ_NUM_PROCESSED, text));
    }
    head.sort_by_key(|field| field.0);
    head.insert(0, (tag::MSG_TYPE, original.msg_type().to_vec()));
    let mut fields = Vec::new();
    for (tag, value) in head.into_iter().chain(body) {
        fields.extend_from_slice(format!("{tag}=").as_bytes());
        fields.extend_from_slice(&value);
        fields.push(SOH);
    }
    framed(original.begin_string(), &fields)
}

/// The header fields of single messages. Some have data with separators.
const HEADERS: [&[OutField<'_>]; 5] = [
    &[(97, b"Y"), (115, b"CLIENT")],
    &[],
    &[(90, b"6"), (91, b"a\x0149=x")],
    &[(212, b"3"), (213, b"<\x01>")],
    &[
        (90, b"3"),
        (91, b"a\x01b"),
        (115, b"CLIENT"),
        (212, b"5"),
        (213, b"\x0158=c"),
    ],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_sent_again_is_what_encoding_it_anew_gives(
        lens in prop::collection::vec(
            prop_oneof![9 => 0..300_usize, 1 => 3_900..12_000_usize],
            1..60,
        ),
        version in prop::sample::select(Version::ALL.to_vec()),
        flags in any::<u8>(),
        later in 0..100_000_u64,
        asked in (1..60_u64, 0..60_u64),
    ) {
        let last_processed = flags & 1 != 0;
        let mut session = session(version, |config| {
            config.last_processed = last_processed;
            if flags & 2 != 0 {
                config.header_fields = vec![(50, b"DESK"[..].into()), (129, b"T"[..].into())];
            }
        });
        let mut originals = std::collections::BTreeMap::new();
        for (at, len) in lens.into_iter().enumerate() {
            let text = "x".repeat(len);
            let at_time = now(at as u64 * 7);
            let extra = HEADERS[at % HEADERS.len()];
            let seq = session.send_with(at_time, b"D", extra, |body| {
                body.u64(11, at as u64);
                if len > 0 {
                    body.str(58, &text);
                }
            });
            let bytes = drain(&mut session, at_time);
            prop_assert_eq!(messages(&bytes).len(), 1);
            originals.insert(seq.unwrap(), bytes);
        }
        let last = session.store.next_sender() - 1;
        let (begin, end) = (asked.0.min(last), asked.1);
        let end = if end == 0 || end > last || end < begin { last } else { end };
        let at_time = now(later);
        let before = (session.store.len(), session.store.next_sender());
        let request = format!("35=2|34=2|7={begin}|16={end}");
        hear(&mut session, at_time, &incoming(version, at_time, &request));
        let again = messages(&drain(&mut session, at_time));
        prop_assert_eq!(before, (session.store.len(), session.store.next_sender()));
        let mut time = [0; 32];
        let len = at_time.utc.write(version.precision(), &mut time);
        // The first part goes before the request counts as processed, the others behind it.
        let processed = |message: &Vec<u8>| {
            let mut decoder = Decoder::new();
            let message = decoder.decode(message).unwrap();
            message.opt_u64(tag::LAST_MSG_SEQ_NUM_PROCESSED).unwrap()
        };
        // The Logon has number 1, and a gap fill in its place.
        let fills = usize::from(begin == 1);
        let expected: Vec<_> = originals
            .range(begin..=end)
            .zip(again.iter().skip(fills))
            .map(|((_, original), again)| sent_again(original, &time[..len], processed(again)))
            .collect();
        prop_assert_eq!(again.len() - fills, originals.range(begin..=end).count());
        prop_assert_eq!(&again[fills..], &expected[..]);
        for message in &again {
            let expected: &[_] = if last_processed { &[Some(1), Some(2)] } else { &[None] };
            prop_assert!(expected.contains(&processed(message)));
        }
        for fill in &again[..fills] {
            prop_assert!(fill.windows(6).any(|field| field == b"\x0136=2\x01"));
        }
    }
}

#[test]
fn a_user_defined_header_field_stands_once_in_what_is_sent_again() {
    let mut session = session(VERSION, |config| {
        config.header_fields = vec![(5001, b"own"[..].into()), (50, b"DESK"[..].into())];
    });
    let sent = session.send_with(now(1), b"D", &[(115, &b"C"[..])], |body| {
        body.str(11, "a");
    });
    assert_eq!(sent, Ok(2));
    let original = drain(&mut session, now(1));
    let original = String::from_utf8_lossy(&original).replace('\x01', "|");
    let end = "|56=PEER|115=C|5001=own|11=a|10=";
    assert!(original.contains(end), "{original}");
    let request = incoming(VERSION, now(2), "35=2|34=2|7=2|16=0");
    hear(&mut session, now(2), &request);
    let again = drain(&mut session, now(2));
    let again = String::from_utf8_lossy(&again).replace('\x01', "|");
    let (_, behind) = again.split_once("|56=PEER|115=C|122=").unwrap();
    let (_, behind) = behind.split_once('|').unwrap();
    assert!(behind.starts_with("5001=own|11=a|10="), "{again}");
}

/// Returns a session that has sent messages with the numbers from 2 to `last`.
fn sender(last: u64) -> Session<MemoryStore> {
    sender_of(MemoryStore::default(), last)
}

/// Returns a session with this store that has sent messages with the numbers from 2 to `last`.
fn sender_of(store: MemoryStore, last: u64) -> Session<MemoryStore> {
    let unlimited = |config: &mut Config| config.repeated_resend_limit = 0;
    let mut session = session_of(store, Version::Fix44, unlimited);
    for seq in 2..=last {
        let sent = session.send(now(seq), b"D", |body| {
            body.u64(11, seq);
        });
        assert_eq!(sent, Ok(seq));
        drain(&mut session, now(seq));
    }
    session
}

/// Returns the numbers of a message that is sent again, or of the messages that a gap fill stands
/// for.
fn numbers(message: &[u8]) -> Range<u64> {
    let mut decoder = Decoder::new();
    let message = decoder.decode(message).unwrap();
    let seq = message.u64(tag::MSG_SEQ_NUM).unwrap();
    seq..message.opt_u64(tag::NEW_SEQ_NO).unwrap().unwrap_or(seq + 1)
}

#[test]
fn what_an_earlier_request_waits_for_is_sent_with_a_later_one() {
    let pairs = [
        [(1, 100), (150, 200)],
        [(150, 200), (1, 100)],
        [(1, 100), (10, 20)],
        [(1, 1), (150, 200)],
    ];
    let limits = [(16, 1 << 20), (16, 1 << 20), (16, 1 << 20), (1, 1 << 20)];
    // With no room for bytes, nothing is sent between the two requests.
    let cases = pairs.into_iter().zip(limits);
    let cases = cases.chain(pairs.into_iter().zip([(16, 0); 4]));
    let of_all = cases.clone().map(|case| (case, MemoryLimits::default()));
    let messages_kept = Limits {
        messages: 60,
        bytes: 1 << 20,
    };
    let of_60 = cases.map(|case| (case, MemoryLimits::from(messages_kept)));
    for ((ranges, (messages_at_once, bytes)), kept) in of_all.chain(of_60) {
        let mut session = sender_of(MemoryStore::new(kept), 201);
        session.config.resend_chunk = Limits {
            messages: messages_at_once,
            bytes,
        };
        let requests = ranges.iter().zip(2..).flat_map(|(&(begin, end), seq)| {
            let text = format!("35=2|34={seq}|7={begin}|16={end}");
            incoming(Version::Fix44, now(1_000), &text)
        });
        let read: Vec<u8> = requests.collect();
        hear(&mut session, now(1_000), &read);
        let again = messages(&drain(&mut session, now(1_000)));
        let sent: BTreeSet<u64> = again.iter().flat_map(|message| numbers(message)).collect();
        // No gap fill covers what nobody requested: the counterparty may have that already.
        let requested = ranges.iter().flat_map(|&(begin, end)| begin..=end);
        let requested: BTreeSet<u64> = requested.collect();
        assert_eq!(sent, requested, "{ranges:?}, {kept:?}");
    }
}

#[test]
fn a_gap_of_a_counterparty_that_is_left_unread_is_not_requested_again() {
    let mut session = session(Version::Fix44, |_| {});
    let early = incoming(Version::Fix44, now(0), "35=0|34=5");
    hear(&mut session, now(0), &early);
    assert_eq!(messages(&drain(&mut session, now(0))).len(), 1);
    for seconds in (10..=200).step_by(10) {
        let at_time = now(seconds * 1_000);
        session.excuse(at_time);
        session.handle_timeout(at_time);
    }
    assert!(drain(&mut session, now(200_000)).is_empty());
    assert!(session.is_logged_on());
}

#[test]
fn requests_of_one_read_write_one_part_together() {
    let mut session = sender(501);
    let request = |number: u64| {
        let begin = 2 + number % 100;
        let text = format!("35=2|34={}|7={begin}|16=0", number + 2);
        incoming(Version::Fix44, now(1_000), &text)
    };
    hear(&mut session, now(1_000), &request(0));
    let part = session.store.unsent_len();
    assert!(part > 0 && part < session.config.resend_chunk.bytes / 2);
    let read: Vec<u8> = (1..1_000).flat_map(request).collect();
    hear(&mut session, now(1_000), &read);
    assert_eq!(session.store.unsent_len(), part);
    // The last request is answered whole.
    let again = messages(&drain(&mut session, now(1_000)));
    let mut decoder = Decoder::new();
    let last = decoder.decode(again.last().unwrap()).unwrap();
    assert_eq!(last.get(34), Some(&b"501"[..]));
    assert!(again.len() >= 500 - 99);
}

#[test]
fn ten_thousand_requests_leave_the_store_as_it_was() {
    let mut session = session(Version::Fix44, |config| config.repeated_resend_limit = 0);
    for at in 0..500_u64 {
        let sent = session.send(now(at), b"D", |body| {
            body.u64(11, at).str(58, "what was ordered");
        });
        sent.unwrap();
        drain(&mut session, now(at));
    }
    let before = (session.store.len(), session.store.capacity());
    let (mut first, mut bound) = (Vec::new(), 0);
    for request in 0..10_000_u64 {
        let at_time = now(1_000 + request);
        let text = format!("35=2|34={}|7=1|16=0", request + 2);
        hear(
            &mut session,
            at_time,
            &incoming(Version::Fix44, at_time, &text),
        );
        // The counterparty reads only now and then.
        if request % 100 != 0 {
            bound = bound.max(session.store.unsent_len());
            continue;
        }
        let bytes = drain(&mut session, at_time);
        let again = messages(&bytes);
        let whole = &again[again.len() - 501..];
        let bodies = |message: &Vec<u8>| {
            let mut decoder = Decoder::new();
            decoder.decode(message).unwrap().body().to_vec()
        };
        let last: Vec<_> = whole.iter().skip(1).map(bodies).collect();
        match first.is_empty() {
            true => first = last,
            false => assert_eq!(first, last),
        }
    }
    assert_eq!(first.len(), 500);
    let (len, capacity) = before;
    assert_eq!(session.store.len(), len);
    let side = super::super::store::SideBuffer::LIMIT;
    assert!(session.store.capacity() <= capacity + 2 * side);
    let chunk = session.config.resend_chunk.bytes;
    assert!(bound <= 2 * chunk + ADMIN_ROOM, "{bound}");
}

const VERSION: Version = Version::Fix44;

/// Returns a logged-on acceptor whose store keeps nothing.
fn forgetful() -> Session<MemoryStore> {
    let config = Config::new(SessionId::new(VERSION, "US", "PEER"));
    let mut session = Session::acceptor(config, MemoryStore::without_resends(256 << 10));
    session.connected(now(0));
    let logon = incoming(VERSION, now(0), "35=A|34=1|98=0|108=30");
    hear(&mut session, now(0), &logon);
    drain(&mut session, now(0));
    session
}

/// Sends a message of 1,000 bytes and more, and returns its number.
fn send_news(session: &mut Session<MemoryStore>) -> u64 {
    let sent = session.send(now(0), b"B", |body| {
        body.field(58, &[b'x'; 1000]);
    });
    sent.unwrap()
}

#[test]
fn nothing_disappears_behind_a_resend_from_a_store_that_keeps_nothing() {
    let mut session = forgetful();
    // More gap fills than fit beside the store, while the counterparty reads nothing.
    for turn in 0..1000_u64 {
        if turn % 100 == 0 {
            send_news(&mut session);
        }
        let asked = incoming(VERSION, now(0), &format!("35=2|34={}|7=1|16=0", turn + 2));
        hear(&mut session, now(0), &asked);
        assert!(session.is_connected(), "{turn}");
    }
    let last = send_news(&mut session);
    let out = drain(&mut session, now(0));
    let out = String::from_utf8_lossy(&out).replace('\x01', "|");
    let found: Vec<_> = out.matches("35=B|").collect();
    assert_eq!(found.len() as u64, last - 1, "{last}");
    assert!(out.contains(&format!("|36={}|123=Y|", last)), "{last}");
    for seq in 2..=last {
        assert!(out.contains(&format!("35=B|34={seq}|")), "{seq}");
    }
    // Each gap fill follows the messages sent before its request, and precedes later ones.
    let place = |text: &str| out.find(text).unwrap();
    assert!(place("35=B|34=2|") < place("|36=3|123=Y|"));
    assert!(place("|36=3|123=Y|") < place("35=B|34=3|"));
}

#[test]
fn a_gap_fill_of_a_store_that_keeps_nothing_does_not_wait() {
    let mut session = forgetful();
    for _ in 0..10 {
        send_news(&mut session);
    }
    let asked = incoming(VERSION, now(0), "35=2|34=2|7=1|16=0");
    hear(&mut session, now(0), &asked);
    send_news(&mut session);
    let out = String::from_utf8_lossy(&drain(&mut session, now(0))).replace('\x01', "|");
    let place = |text: &str| out.find(text).unwrap();
    assert!(place("35=B|34=11|") < place("|36=12|123=Y|"), "{out}");
}

/// Returns what the session tells of a ResendRequest(2) for these numbers.
fn no_longer_kept(session: &mut Session<MemoryStore>, seq: u64, asked: &str) -> Vec<(u64, u64)> {
    let version = session.config().id.version;
    let request = incoming(version, now(5), &format!("35=2|34={seq}|{asked}"));
    let (mut scratch, mut told) = (Scratch::default(), Vec::new());
    let step = session.handle_bytes(now(5), &mut scratch, &request);
    let events = std::iter::from_fn(|| session.poll_event());
    for event in step.event.into_iter().chain(events) {
        if let Event::NoLongerKept { begin, end } = event {
            told.push((begin, end));
        }
    }
    drain(session, now(5));
    told
}

#[test]
fn application_messages_that_made_room_for_others_are_told_once_a_resend() {
    let limits = MemoryLimits {
        messages: 3,
        bytes: 1 << 20,
        ready: 0,
    };
    let version = Version::Fix44;
    let mut session = session_of(MemoryStore::new(limits), version, |_| {});
    // Of 2 to 7 the last three are kept; 8 is a Heartbeat(0).
    for _ in 2..=7 {
        session
            .send(now(1), b"B", |body| {
                body.str(58, "x");
            })
            .unwrap();
    }
    hear(
        &mut session,
        now(1),
        &incoming(version, now(1), "35=1|34=2|112=x"),
    );
    drain(&mut session, now(1));
    assert_eq!(session.store().next_sender(), 9);
    assert_eq!(no_longer_kept(&mut session, 3, "7=1|16=0"), [(1, 4)]);
    assert_eq!(no_longer_kept(&mut session, 4, "7=3|16=3"), [(3, 3)]);
    assert_eq!(no_longer_kept(&mut session, 5, "7=5|16=0"), []);
    // Without a store it is what the configuration asks for.
    let mut session = session_of(MemoryStore::without_resends(1 << 18), version, |_| {});
    session
        .send(now(1), b"B", |body| {
            body.str(58, "x");
        })
        .unwrap();
    assert_eq!(no_longer_kept(&mut session, 2, "7=1|16=0"), []);
}

#[test]
fn messages_of_the_session_layer_that_are_no_longer_kept_are_not_told() {
    let limits = MemoryLimits {
        messages: 1,
        bytes: 1 << 20,
        ready: 0,
    };
    let version = Version::Fix44;
    let mut session = session_of(MemoryStore::new(limits), version, |_| {});
    for seq in 2..=4 {
        let test = format!("35=1|34={seq}|112=x");
        hear(&mut session, now(1), &incoming(version, now(1), &test));
    }
    session
        .send(now(1), b"B", |body| {
            body.str(58, "x");
        })
        .unwrap();
    drain(&mut session, now(1));
    assert_eq!(no_longer_kept(&mut session, 5, "7=1|16=0"), []);
}
