//! A client and its queue.

use super::super::beginning::{Join, Targets};
use super::super::end;
use super::super::replay::tests::{replay, replay_of};
use super::*;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{LiveSchema, SymbolType, no_record};
use fanfare_market::instruments::{Definition, Name};
use fanfare_wire::UtcTimestamp;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

const LIMIT: usize = 1 << 16;

/// Returns a streaming client, and the remote end of its connection.
pub(in crate::dbn) fn pair(warns: bool) -> (Client, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let stream = Stream::new(stream).unwrap();
    let mut client = Client::new(1, stream, LIMIT, Phase::Streaming);
    client.grant = Arc::new(Grant::everything());
    (client.warns, client.heartbeat) = (warns, u64::MAX);
    (client, other)
}

/// Returns orders of an instrument, each with its number.
fn orders(instrument: u32, numbers: std::ops::Range<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    for number in numbers {
        let mut record = [0; 56];
        (record[0], record[1]) = (14, MBO);
        record[4..8].copy_from_slice(&instrument.to_le_bytes());
        record[16..24].copy_from_slice(&number.to_le_bytes());
        out.extend(record);
    }
    out
}

/// Appends each record, as one of orders of an instrument.
fn push_all(client: &mut Client, records: &[u8], now: Times) {
    let tag = Tag {
        end: 0,
        instrument: InstrumentId(7),
        schemas: LiveSchema::Mbo.alone(),
        entry: 0,
    };
    each(records).for_each(|record| client.push(&tag, record, now));
}

/// Reads the available bytes, and checks that all records are whole.
fn read(client: &mut Client, other: &mut TcpStream, all: &mut Vec<u8>) {
    other.set_nonblocking(true).unwrap();
    let mut room = vec![0; 1 << 16];
    loop {
        let left = client.wire.flush(1);
        match other.read(&mut room) {
            Ok(count) => all.extend_from_slice(&room[..count]),
            Err(_) if !left => return,
            Err(_) => std::thread::yield_now(),
        }
    }
}

#[test]
fn requests_wait_while_their_answers_are_not_read() {
    let (mut client, mut other) = pair(false);
    let now = Times::default();
    let mut answers = 0;
    while client.takes_requests() {
        client.fail(ErrorCode::Unset, "why", now);
        answers += 1;
    }
    assert!(client.queued() <= LIMIT + 320);
    client.is_paused = true;
    assert_eq!(client.polls(true), Some(Readiness::Write));
    assert_eq!(client.polls(false), None);
    let mut received = Vec::new();
    read(&mut client, &mut other, &mut received);
    assert!(client.takes_requests());
    assert_eq!(received.len(), answers * 320);
    // Records that wait for the past count too.
    client.hold();
    while client.takes_requests() {
        client.fail(ErrorCode::Unset, "why", now);
    }
    assert!(client.queued() <= LIMIT + 320);
    client.unhold(now);
    client.phase = Phase::Ending { until: 0 };
    assert!(client.takes_requests() && client.polls(true) == Some(Readiness::ReadWrite));
}

#[test]
fn utc_goes_back_only_with_the_systems_clock() {
    let mut times = Times::default();
    let reading = |utc| Now {
        mono: 7,
        utc: UtcTimestamp::from_nanos(utc),
    };
    let set = 5_000_000_000;
    for (read, utc) in [(set, set), (set - 900, set), (set + 1, set + 1), (9, 9)] {
        times.advance(reading(read));
        assert_eq!((times.mono, times.utc), (7, utc as u64));
    }
}

#[test]
fn a_record_that_was_held_back_has_the_time_at_which_it_is_sent() {
    let (mut client, mut other) = pair(false);
    client.ts_out = true;
    let at = |utc| Times { mono: 1, utc };
    client.put(&orders(1, 0..1), at(10));
    client.hold();
    client.put_all(&orders(1, 3..5), at(20));
    client.put_past(&orders(1, 1..3), at(30));
    client.release(SystemCode::ReplayCompleted, "done", at(40));
    let mut received = Vec::new();
    read(&mut client, &mut other, &mut received);
    let sent = each(&received).map(|record| {
        let (_, time) = record.split_last_chunk().unwrap();
        u64::from_le_bytes(*time)
    });
    assert_eq!(sent.collect::<Vec<_>>(), [10, 30, 30, 40, 40, 40]);
}

#[test]
fn a_defined_instrument_is_not_taken_before_its_start_nor_if_it_is_left_out() {
    let (mut client, _) = pair(false);
    let (orders, trades) = (LiveSchema::Mbo.alone(), LiveSchema::Trades.alone());
    client.interest.permitted = orders.with(trades);
    for (schema, snapshot) in [(LiveSchema::Mbo, true), (LiveSchema::Trades, false)] {
        client.tasks.push_back(Task::Join(Join {
            schema,
            by: SymbolType::RawSymbol,
            targets: Targets::All(Some((b"M"[..].into(), InstrumentId(1)))),
            snapshot,
            is_full: false,
        }));
    }
    let grows_by = |client: &Client, symbol: &str, number: u32| {
        let name = Name::of_symbol(symbol.as_bytes());
        let known = Instrument {
            instrument: InstrumentId(number),
            definition: Definition::named(name),
            revision: 1,
            status: 0,
        };
        client.grows_by(InstrumentId(number), Some(known))
    };
    assert_eq!(grows_by(&client, "M", 1), orders.with(trades));
    assert_eq!(grows_by(&client, "M", 2), trades);
    assert_eq!(grows_by(&client, "N", 1), trades);
    client.interest.leave_out(1, trades);
    assert_eq!(grows_by(&client, "M", 1), orders);
    client.tasks.clear();
    assert_eq!(grows_by(&client, "N", 1), orders);
}

#[test]
fn a_new_instrument_awaits_the_past_of_all_instruments_but_not_that_of_others() {
    let orders = LiveSchema::Mbo.alone();
    let other = Targets::Some(vec![InstrumentId(2)].into_iter());
    for (targets, grows) in [(Targets::All(None), LiveSchemas::NONE), (other, orders)] {
        let (mut client, _) = pair(false);
        client.interest.permitted = orders;
        let replay = Box::new(replay_of(targets, false));
        client.tasks.push_back(Task::Replay(replay));
        assert_eq!(client.grows_by(InstrumentId(1), None), grows);
    }
}

/// Reads the available records, and returns their texts.
pub(in crate::dbn) fn texts(client: &mut Client, other: &mut TcpStream) -> Vec<String> {
    let mut received = Vec::new();
    read(client, other, &mut received);
    each(&received).map(text).collect()
}

fn text(record: &[u8]) -> String {
    let text = record[16..].split(|byte| *byte == 0).next().unwrap();
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn what_is_left_out_is_told_and_adds_up() {
    for by_record in [false, true] {
        let (mut client, mut other) = pair(false);
        let (mut received, mut sent, now) = (Vec::new(), 0, Times::default());
        for _ in 0..3 {
            let mut uncounted = 0;
            while uncounted < 2_000 {
                let records = orders(7, sent..sent + 1_000);
                sent += 1_000;
                match by_record {
                    false => client.send(&records, now),
                    true => push_all(&mut client, &records, now),
                }
                client.wire.flush(0);
                assert!(client.wire.len() <= LIMIT + 320);
                uncounted += std::mem::take(&mut client.uncounted);
            }
            assert!(client.missed.contains(&7));
            read(&mut client, &mut other, &mut received);
            assert!(client.look(now));
            assert!(matches!(client.tasks.pop_front(), Some(Task::Again)));
            client.missed.clear();
        }
        read(&mut client, &mut other, &mut received);
        let (mut count, mut told, mut last) = (0, 0, None);
        for record in each(&received) {
            if record[1] == 0x15 {
                let text = text(record);
                told += text.split(' ').next().unwrap().parse::<u64>().unwrap();
                continue;
            }
            let number = u64::from_le_bytes(record[16..24].try_into().unwrap());
            assert!(last < Some(number), "in order, and none twice");
            last = Some(number);
            count += 1;
        }
        assert_eq!(count + told, sent);
        assert_eq!(received.len() as u64, count * 56 + 3 * 320);
    }
}

#[test]
fn records_that_are_held_back_stay_within_the_limit() {
    let (mut client, mut other) = pair(false);
    let (mut received, now) = (Vec::new(), Times::default());
    client.hold();
    for turn in 0..100 {
        push_all(&mut client, &orders(7, turn * 100..(turn + 1) * 100), now);
        read(&mut client, &mut other, &mut received);
        assert!(!client.look(now) && client.queued() <= LIMIT + 320);
    }
    assert!(client.left_out > 0 && received.is_empty());
    client.unhold(now);
    read(&mut client, &mut other, &mut received);
    assert!(client.look(now) && client.tasks.len() == 1, "once");
    read(&mut client, &mut other, &mut received);
    let told = text(each(&received).last().unwrap());
    let expected = format!("{} records were skipped", client.left_out);
    assert!(told.starts_with(&expected), "{told}");
}

#[test]
fn records_are_held_back_as_long_as_a_replay_that_is_live_has_others() {
    let (mut client, mut other) = pair(false);
    let (mut received, now) = (Vec::new(), Times::default());
    for has_joined in [true, false] {
        let replay = Box::new(replay(has_joined));
        client.tasks.push_back(Task::Replay(replay));
    }
    client.hold();
    client.put_all(&orders(1, 0..1), now);
    client.unhold_if_over(now);
    read(&mut client, &mut other, &mut received);
    assert!(received.is_empty());
    client.tasks.pop_front();
    client.unhold_if_over(now);
    read(&mut client, &mut other, &mut received);
    assert_eq!(received.len(), 56);
    for number in 1..3 {
        client.hold();
        client.put_all(&orders(1, number..number + 1), now);
    }
    client.unhold(now);
    read(&mut client, &mut other, &mut received);
    assert!(received == orders(1, 0..3));
}

#[test]
fn a_client_that_is_ended_while_records_are_held_back_is_told_why() {
    let (mut client, mut other) = pair(true);
    let (mut received, now) = (Vec::new(), Times::default());
    client.hold();
    while client.ends.is_none() {
        push_all(&mut client, &orders(7, 0..100), now);
    }
    let (code, why) = client.ends.take().unwrap();
    end(&mut client, code, &why, now);
    read(&mut client, &mut other, &mut received);
    let last = each(&received).last().unwrap();
    assert_eq!((last[1], text(last)), (ERROR, why));
}

#[test]
fn a_client_that_leaves_too_many_records_that_are_never_dropped_is_ended() {
    let (mut client, mut other) = pair(false);
    let (mut notice, now) = (Vec::new(), Times::default());
    system(SystemCode::EndOfInterval, "text", 0, &mut notice);
    for _ in 0..2 {
        while client.queued() <= LIMIT * 3 / 2 {
            push_all(&mut client, &notice, now);
        }
        assert!(client.ends.is_none());
        read(&mut client, &mut other, &mut Vec::new());
    }
    // Those in the place of records are left out as records are.
    let mut of_record = Vec::new();
    no_record((1, InstrumentId(7)), "instrument A", 0, &mut of_record);
    for _ in 0..2 * LIMIT / 320 {
        push_all(&mut client, &of_record, now);
        assert!(client.queued() <= LIMIT);
    }
    assert!(client.skipped > 0 && client.ends.is_none());
    while client.ends.is_none() {
        push_all(&mut client, &notice, now);
        assert!(client.queued() <= 2 * LIMIT + 640);
    }
    assert!(client.is_cut);
}

#[test]
fn a_client_with_queued_bytes_has_no_heartbeat() {
    let (mut client, mut other) = pair(false);
    let at = |mono| Times { mono, utc: 1 };
    client.heartbeat = 5;
    client.put(&orders(1, 0..1), at(1));
    assert!(!client.look(at(9)));
    assert_eq!(client.next_timer(0), u64::MAX);
    let mut received = Vec::new();
    read(&mut client, &mut other, &mut received);
    assert_eq!(client.next_timer(0), 6);
    assert!(client.look(at(9)));
    read(&mut client, &mut other, &mut received);
    assert_eq!(received.len(), 56 + 320);
}

#[test]
fn a_heartbeat_does_not_wait_with_the_records_that_are_held_back() {
    let (mut client, mut other) = pair(false);
    let at = |mono| Times { mono, utc: 1 };
    client.heartbeat = 5;
    client.hold();
    client.put(&orders(1, 0..1), at(4));
    assert_eq!(client.next_timer(0), 5, "nothing was sent");
    assert!(client.look(at(5)));
    let mut received = Vec::new();
    read(&mut client, &mut other, &mut received);
    assert_eq!(received.len(), 320);
    assert_eq!(client.next_timer(0), 10);
}

#[test]
fn a_client_that_wants_every_record_is_warned_and_cut() {
    let (mut client, _other) = pair(true);
    let now = Times::default();
    while client.wire.len() <= LIMIT / 2 {
        client.send(&orders(7, 0..200), now);
    }
    assert!(client.look(now) && !client.look(now), "once");
    while client.ends.is_none() {
        client.send(&orders(7, 0..200), now);
    }
    assert!(client.ends.unwrap().1.contains("bytes are queued"));
}

#[test]
fn what_a_user_may_not_see_of_statistics_is_not_sent() {
    let (mut client, _other) = pair(false);
    client.grant = Arc::new(Grant {
        entries: crate::service::EntryTypes::NONE.with(b'4'),
        ..Grant::everything()
    });
    let before = client.wire.len();
    for (entry, len) in [(b'7', before), (b'4', before + 56)] {
        let tag = Tag {
            end: 0,
            instrument: InstrumentId(7),
            schemas: LiveSchemas::ALL,
            entry,
        };
        client.push(&tag, &orders(7, 0..1), Times::default());
        assert_eq!((client.wire.len(), client.uncounted), (len, 0));
    }
}
