//! Tests of resends whose messages the application decides on, against a list made number by
//! number.

use super::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns everything that is to be transmitted, with the decisions of `decide`.
fn drain_deciding(
    session: &mut Session<MemoryStore>,
    now: Now,
    decide: &mut impl FnMut(&mut KeptMessage<'_>) -> Resend,
) -> Vec<u8> {
    let (mut all, mut scratch) = (Vec::new(), Scratch::default());
    loop {
        session.resend_part(now, &mut scratch, &mut *decide);
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

fn request(session: &mut Session<MemoryStore>, at: Now, seq: u64, begin: u64, end: u64) {
    let text = format!("35=2|34={seq}|7={begin}|16={end}");
    hear(session, at, &incoming(VERSION, at, &text));
}

/// Returns the numbers of each message, and whether it is a gap fill.
fn outline(bytes: &[u8]) -> Vec<(bool, Range<u64>)> {
    let all = messages(bytes);
    let outlined = all.iter().map(|message| {
        let mut decoder = Decoder::new();
        let decoded = decoder.decode(message).unwrap();
        assert_eq!(decoded.get(43), Some(&b"Y"[..]));
        let is_fill = decoded.msg_type() == b"4";
        assert_eq!(decoded.get(123), is_fill.then_some(&b"Y"[..]));
        (is_fill, numbers(message))
    });
    outlined.collect()
}

/// Returns what a resend of `asked` has to be: one message for each number of `sent`, and one gap
/// fill for each run of other numbers.
fn expected(asked: Range<u64>, sent: &BTreeSet<u64>) -> Vec<(bool, Range<u64>)> {
    let mut all: Vec<(bool, Range<u64>)> = Vec::new();
    for seq in asked {
        match all.last_mut() {
            _ if sent.contains(&seq) => all.push((false, seq..seq + 1)),
            Some((true, run)) => run.end = seq + 1,
            _ => all.push((true, seq..seq + 1)),
        }
    }
    all
}

/// What a session has written before a resend.
#[derive(Clone, Copy, Debug)]
enum Wrote {
    Order,
    Report,
    Heartbeat,
}

/// Writes the messages of a journal, and returns the number of the counterparty's next message.
fn write_all(session: &mut Session<MemoryStore>, journal: &[Wrote]) -> u64 {
    let mut theirs = 2;
    for (at, wrote) in journal.iter().enumerate() {
        let msg_type: &[u8] = match wrote {
            Wrote::Order => b"D",
            Wrote::Report => b"8",
            Wrote::Heartbeat => {
                let test = format!("35=1|34={theirs}|112=x");
                hear(session, now(1), &incoming(VERSION, now(1), &test));
                theirs += 1;
                continue;
            }
        };
        let text = "x".repeat(at * 37 % 400 + 1);
        let sent = session.send(now(1), msg_type, |body| {
            body.u64(11, at as u64).str(58, &text);
        });
        sent.unwrap();
    }
    drain(session, now(1));
    theirs
}

/// Returns the kept application messages with their types.
fn kept(session: &Session<MemoryStore>) -> BTreeMap<u64, Vec<u8>> {
    let (mut all, mut from) = (BTreeMap::new(), 1);
    while let Some(stored) = session.store.first_from(from) {
        if stored.kind == Kind::App {
            let mut decoder = Decoder::new();
            let msg_type = decoder.decode(stored.bytes).unwrap().msg_type().to_vec();
            all.insert(stored.seq, msg_type);
        }
        from = stored.seq + 1;
    }
    all
}

fn journals() -> impl Strategy<Value = Vec<Wrote>> {
    let wrote = prop_oneof![
        3 => Just(Wrote::Order),
        2 => Just(Wrote::Report),
        2 => Just(Wrote::Heartbeat),
    ];
    prop::collection::vec(wrote, 1..120)
}

fn deciding(
    kept: usize,
    part: (usize, usize),
    types: &[&[u8]],
    asks: bool,
) -> Session<MemoryStore> {
    let limits = MemoryLimits::from(Limits {
        messages: kept,
        bytes: 1 << 20,
    });
    session_of(MemoryStore::new(limits), VERSION, |config| {
        config.ask_resend = asks;
        config.gap_filled_types = types.iter().map(|own| Box::from(*own)).collect();
        config.resend_chunk = Limits {
            messages: part.0,
            bytes: part.1,
        };
        config.repeated_resend_limit = 0;
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn each_number_is_covered_once_and_no_refused_message_is_sent(
        journal in journals(),
        most in prop_oneof![Just(1000_usize), 1..60_usize],
        part in (1..20_usize, 0..9_000_usize),
        refused in prop::collection::vec(any::<bool>(), 130),
        flags in 0..4_u8,
        asked in (1..130_u64, 0..130_u64),
    ) {
        let (asks, has_types) = (flags & 1 != 0, flags & 2 != 0);
        let types: &[&[u8]] = if has_types { &[&b"8"[..], &b"AE"[..]] } else { &[] };
        let mut session = deciding(most, part, types, asks);
        let theirs = write_all(&mut session, &journal);
        let last = session.store.next_sender() - 1;
        let begin = asked.0.min(last);
        let end = if asked.1 < begin { 0 } else { asked.1 };
        let kept = kept(&session);
        request(&mut session, now(9), theirs, begin, end);
        let mut questions = Vec::new();
        let bytes = drain_deciding(&mut session, now(9), &mut |message| {
            questions.push(message.seq());
            let seq = message.message().unwrap().u64(34).unwrap();
            assert_eq!(seq, message.seq());
            assert_eq!(message.msg_type(), kept[&message.seq()]);
            assert_eq!(message.age(), Some(8_000_000));
            match refused[message.seq() as usize] {
                true => Resend::Fill,
                false => Resend::Send,
            }
        });
        let end = if end == 0 || end > last { last } else { end };
        let (mut expected_questions, mut sent) = (Vec::new(), BTreeSet::new());
        for (&seq, msg_type) in kept.range(begin..=end) {
            if types.contains(&msg_type.as_slice()) {
                continue;
            }
            if asks {
                expected_questions.push(seq);
            }
            if !asks || !refused[seq as usize] {
                sent.insert(seq);
            }
        }
        prop_assert_eq!(questions, expected_questions);
        prop_assert_eq!(outline(&bytes), expected(begin..end + 1, &sent));
        prop_assert!(!session.is_resending());
    }

    #[test]
    fn requests_in_between_ask_again_only_for_what_they_request(
        journal in journals(),
        part in (1..20_usize, 0..3_000_usize),
        refused in prop::collection::vec(any::<bool>(), 130),
        asked in prop::collection::vec((1..130_u64, 0..130_u64), 1..3),
    ) {
        let mut session = deciding(1000, part, &[], true);
        let theirs = write_all(&mut session, &journal);
        let last = session.store.next_sender() - 1;
        let (mut questions, mut bytes) = (BTreeMap::<u64, u32>::new(), Vec::new());
        let mut decide = |message: &mut KeptMessage<'_>| {
            *questions.entry(message.seq()).or_default() += 1;
            match refused[message.seq() as usize] {
                true => Resend::Fill,
                false => Resend::Send,
            }
        };
        let mut requested = BTreeMap::<u64, u32>::new();
        let mut scratch = Scratch::default();
        for (&(begin, end), seq) in asked.iter().zip(theirs..) {
            let begin = begin.min(last);
            let end = if end < begin { last } else { end.min(last) };
            request(&mut session, now(9), seq, begin, end);
            (begin..=end).for_each(|seq| *requested.entry(seq).or_default() += 1);
            // One part, as a host writes it in its turn.
            session.resend_part(now(9), &mut scratch, &mut decide);
            while !session.poll_transmit().is_empty() {
                let len = session.poll_transmit().len();
                bytes.extend_from_slice(session.poll_transmit());
                session.transmitted(len);
            }
        }
        bytes.extend(drain_deciding(&mut session, now(9), &mut decide));
        let outline = outline(&bytes);
        let covered: BTreeSet<u64> = outline.iter().flat_map(|(_, own)| own.clone()).collect();
        prop_assert!(covered.iter().eq(requested.keys()), "{:?}", outline);
        for (is_fill, own) in &outline {
            prop_assert!(*is_fill || !refused[own.start as usize], "{:?}", own);
        }
        for (seq, times) in questions {
            prop_assert!(times <= requested[&seq], "{}: {} times", seq, times);
        }
    }
}

#[test]
fn what_waits_behind_a_resend_is_new_and_not_asked_about() {
    let mut session = deciding(1000, (16, 8 << 10), &[], true);
    let theirs = write_all(&mut session, &[Wrote::Order; 3]);
    request(&mut session, now(2), theirs, 2, 0);
    let sent = session.send(now(2), b"D", |body| {
        body.str(11, "new");
    });
    assert_eq!(sent, Ok(5));
    let mut questions = Vec::new();
    let bytes = drain_deciding(&mut session, now(2), &mut |message| {
        questions.push(message.seq());
        Resend::Fill
    });
    assert_eq!(questions, [2, 3, 4]);
    let all = messages(&bytes);
    assert_eq!(all.len(), 2);
    assert_eq!(outline(&all[0]), [(true, 2..5)]);
    let new = String::from_utf8_lossy(&all[1]).replace('\x01', "|");
    assert!(new.contains("|34=5|") && !new.contains("|43="), "{new}");
}

#[test]
fn a_panic_leaves_the_resend_as_it_was() {
    let mut session = deciding(1000, (16, 8 << 10), &[], true);
    let theirs = write_all(&mut session, &[Wrote::Order; 4]);
    request(&mut session, now(2), theirs, 2, 0);
    let (mut scratch, mut questions) = (Scratch::default(), Vec::new());
    let part = catch_unwind(AssertUnwindSafe(|| {
        session.resend_part(now(2), &mut scratch, |message| {
            questions.push(message.seq());
            assert_ne!(message.seq(), 4);
            Resend::Send
        });
    }));
    assert!(part.is_err());
    assert!(session.is_resending() && session.is_logged_on());
    let bytes = drain_deciding(&mut session, now(2), &mut |message| {
        questions.push(message.seq());
        Resend::Fill
    });
    assert_eq!(questions, [2, 3, 4, 4, 5]);
    let sent = BTreeSet::from([2, 3]);
    assert_eq!(outline(&bytes), expected(2..6, &sent));
}

#[test]
fn a_refused_message_that_was_never_transmitted_waits_no_longer() {
    for refused in [false, true] {
        let mut session = session(VERSION, |config| {
            config.ask_resend = true;
            config.queue_offline = true;
        });
        session.disconnected(now(1));
        for _ in 0..2 {
            let sent = session.send(now(1), b"D", |body| {
                body.str(11, "a");
            });
            sent.unwrap();
        }
        session.connected(now(2));
        let logon = incoming(VERSION, now(2), "35=A|34=2|98=0|108=0");
        hear(&mut session, now(2), &logon);
        if refused {
            request(&mut session, now(2), 3, 2, 0);
        }
        drain_deciding(&mut session, now(2), &mut |message| {
            assert_eq!(message.orig_sending_time(), Some(now(1).utc));
            Resend::Fill
        });
        session.reset_sequence(now(3)).unwrap();
        let told = std::iter::from_fn(|| session.poll_event());
        let discarded = told.filter_map(|event| match event {
            Event::WaitingDiscarded { messages } => Some(messages),
            _ => None,
        });
        let expected: &[u64] = if refused { &[] } else { &[2] };
        assert_eq!(discarded.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn the_first_part_is_due_before_further_bytes() {
    let mut session = deciding(1000, (16, 8 << 10), &[], true);
    let theirs = write_all(&mut session, &[Wrote::Order; 2]);
    let text = [
        incoming(VERSION, now(2), &format!("35=2|34={theirs}|7=2|16=0")),
        incoming(VERSION, now(2), &format!("35=5|34={}|58=bye", theirs + 1)),
    ];
    let (bytes, mut scratch, mut at) = (text.concat(), Scratch::default(), 0);
    loop {
        let step = session.handle_bytes(now(2), &mut scratch, &bytes[at..]);
        at += step.consumed;
        let is_idle = step.is_idle();
        if session.begins_resend() {
            session.resend_part(now(2), &mut scratch, |_| Resend::Send);
        }
        if is_idle {
            break;
        }
    }
    let sent = drain(&mut session, now(2));
    let sent = String::from_utf8_lossy(&sent).replace('\x01', "|");
    let place = |text: &str| sent.find(text).unwrap();
    assert!(
        place("35=D|34=2|43=Y|") < place("35=D|34=3|43=Y|"),
        "{sent}"
    );
    assert!(place("35=D|34=3|43=Y|") < place("35=5|"), "{sent}");
}

#[test]
fn a_request_while_the_store_is_full_asks_nobody_twice() {
    let limits = Limits {
        messages: 1000,
        bytes: 8 << 10,
    };
    let store = MemoryStore::new(MemoryLimits::from(limits));
    let mut session = session_of(store, VERSION, |config| {
        config.ask_resend = true;
        config.max_send = 256;
        config.resend_chunk = Limits {
            messages: 1000,
            bytes: 1 << 20,
        };
    });
    // The counterparty reads nothing.
    while session.store.unsent_len() < limits.bytes / 2 {
        let sent = session.send(now(1), b"D", |body| {
            body.str(11, "a");
        });
        sent.unwrap();
    }
    let last = session.store.next_sender() - 1;
    request(&mut session, now(2), 2, 2, 0);
    let (mut scratch, mut questions) = (Scratch::default(), Vec::new());
    session.resend_part(now(2), &mut scratch, |message| {
        questions.push(message.seq());
        Resend::Send
    });
    let decided = *questions.last().unwrap();
    assert!(decided < last - 1, "{decided} of {last}");
    // The message that is decided and not written is not among the requested ones.
    request(&mut session, now(2), 3, last, 0);
    request(&mut session, now(2), 4, last - 1, 0);
    let bytes = drain_deciding(&mut session, now(2), &mut |message| {
        questions.push(message.seq());
        Resend::Send
    });
    assert_eq!(questions, (2..=last).collect::<Vec<_>>());
    let all = messages(&bytes);
    let is_resent = |message: &&Vec<u8>| message.windows(6).any(|part| part == b"\x0143=Y\x01");
    let resent = all.iter().filter(is_resent).map(|own| numbers(own));
    let once = (2..=last).map(|seq| seq..seq + 1);
    assert_eq!(resent.collect::<Vec<_>>(), once.collect::<Vec<_>>());
    assert!(!session.is_resending() && session.is_logged_on());
}
