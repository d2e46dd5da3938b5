//! Tests of writer and readers of the ring.

use super::*;
use crate::test_log::{instrument, known, named};
use fanfare_engine::poll::{Interest, Poller, Token, Waker};
use fanfare_engine::stop::Stop;
use fanfare_market::{Delivery, Flags, InstrumentId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// More than two records hold.
const LONG: usize = 2 * MOST + 7;

fn ring() -> (EventRing, EventReader) {
    let waker = || Waker::detached().unwrap();
    let mut ring = EventRing::new(1, 1, waker(), 1);
    let reader = ring.reader(waker()).unwrap();
    (ring, reader)
}

fn message(len: usize) -> Vec<Event> {
    std::iter::repeat_n(Event::EMPTY, len).collect()
}

/// Reads at most `limit` records and the rest of a message. Returns the number of records, and
/// the numbers of the events, with 0 at the end of a message and those of lost ones negative.
fn read(reader: &mut EventReader, limit: usize) -> (usize, Vec<i64>) {
    let mut seen = Vec::new();
    let count = reader.read(limit, |delivery| match delivery {
        Delivery::Event(event, _) => seen.push(event.number.cast_signed()),
        Delivery::End(_) => seen.push(0),
        Delivery::Lost { first, last } => {
            seen.extend([first, last].map(|number| -number.cast_signed()));
        }
        Delivery::Watermark(_) => {}
        Delivery::Restart => panic!("a restart"),
    });
    (count, seen)
}

#[test]
fn a_message_of_several_records_is_read_to_its_end_and_has_one_end() {
    let (mut ring, mut reader) = ring();
    ring.put(&mut message(LONG));
    ring.put(&mut message(MOST));
    let (first, last) = (LONG as i64, (LONG + MOST) as i64);
    let expected: Vec<_> = (1..=first).chain([0]).collect();
    assert_eq!(read(&mut reader, 1), (3, expected));
    assert!(!reader.is_within_message());
    let expected: Vec<_> = (first + 1..=last).chain([0]).collect();
    assert_eq!(read(&mut reader, 9), (1, expected));
    let mut numbered = message(MOST + 1);
    for (event, number) in numbered.iter_mut().zip(1_000..) {
        event.number = number;
    }
    ring.put_numbered(&numbered, false);
    let lost = [-(last + 1), -999];
    let expected: Vec<_> = lost.into_iter().chain(1_000..=1_256).chain([0]).collect();
    assert_eq!(read(&mut reader, 1), (2, expected));
    assert!(!reader.take_overtaken(), "they were never written");
}

#[test]
fn numbered_events_end_a_message_if_no_others_follow() {
    let (mut ring, mut reader) = ring();
    let mut all = message(2 * MOST + 1);
    for (event, number) in all.iter_mut().zip(1..) {
        event.number = number;
    }
    let (first, rest) = all.split_at(MOST);
    let (second, last) = rest.split_at(MOST);
    ring.put_numbered(first, true);
    ring.put_numbered(second, false);
    let expected: Vec<_> = (1..=2 * MOST as i64).chain([0]).collect();
    assert_eq!(read(&mut reader, 1), (2, expected));
    ring.put_numbered(last, true);
    assert_eq!(read(&mut reader, 9), (1, vec![2 * MOST as i64 + 1]));
    assert!(reader.is_within_message());
    ring.end_message();
    assert_eq!(read(&mut reader, 9), (1, vec![0]));
    assert!(!reader.is_within_message());
}

/// Writes the first record of a message, which the reader reads.
fn begin(ring: &mut EventRing, reader: &mut EventReader) {
    let event = Event {
        number: 1,
        ..Event::EMPTY
    };
    ring.write_part(&[event], true);
    ring.next = 3;
    assert_eq!(read(reader, 9), (1, vec![1]));
    assert!(reader.is_within_message());
}

#[test]
fn a_reader_waits_for_the_rest_of_a_message() {
    let (mut ring, mut reader) = ring();
    begin(&mut ring, &mut reader);
    assert_eq!(read(&mut reader, 9), (0, vec![]));
    assert!(reader.is_within_message());
    let event = Event {
        number: 2,
        ..Event::EMPTY
    };
    ring.write_part(&[event], false);
    assert_eq!(read(&mut reader, 9), (1, vec![2, 0]));
    assert!(!reader.is_within_message());
}

#[test]
fn a_reader_that_is_overtaken_within_a_message_goes_on_with_the_next() {
    let (mut ring, mut reader) = ring();
    begin(&mut ring, &mut reader);
    (0..LEAST / 16).for_each(|time| ring.put_watermark(time as u64));
    let (count, seen) = read(&mut reader, 9);
    assert!(count > 0 && seen.is_empty(), "{seen:?}");
    assert!(reader.is_within_message(), "no event says yet what is lost");
    assert!(reader.records.is_waiting() && ring.is_asked());
    ring.put(&mut message(1));
    let (_, seen) = read(&mut reader, usize::MAX);
    assert_eq!(seen, [-2, -2, 3, 0]);
    assert!(reader.take_overtaken() && !reader.take_overtaken());
    assert!(!reader.is_within_message());
}

#[test]
fn a_reader_learns_at_the_end_what_no_later_event_shows_as_lost() {
    let (mut ring, mut reader) = ring();
    ring.put(&mut message(1));
    assert_eq!(read(&mut reader, 9).1, [1, 0]);
    ring.wake();
    assert_eq!(reader.take_lost_at_end(), None);
    (0..LEAST / 16).for_each(|_| ring.put(&mut message(1)));
    ring.put_shown();
    ring.wake();
    assert_eq!(reader.take_lost_at_end(), None, "it has not read the rest");
    assert_eq!(read(&mut reader, 9).1, [0; 0]);
    let lost = (2, LEAST as u64 / 16 + 1);
    assert_eq!(reader.take_lost_at_end(), Some(lost));
    assert_eq!(reader.take_lost_at_end(), None, "it is told once");
    // The end of the writer is one of a turn, too.
    ring.put(&mut message(3));
    drop(ring);
    let first = lost.1.cast_signed() + 1;
    assert_eq!(read(&mut reader, 9).1, [first, first + 1, first + 2, 0]);
    assert_eq!(reader.take_lost_at_end(), None);
}

#[test]
fn the_answer_to_one_reader_does_not_end_the_wait_of_another() {
    let waker = || Waker::detached().unwrap();
    let mut ring = EventRing::new(1, 2, waker(), 1);
    let mut readers = [(); 2].map(|()| ring.reader(waker()).unwrap());
    let waiting = |readers: &mut [EventReader; 2]| {
        readers.each_mut().map(|reader| {
            read(reader, 9);
            reader.records.is_waiting()
        })
    };
    readers[0].ask();
    assert!(ring.is_asked() && !ring.is_asked());
    ring.put(&mut message(1));
    ring.put_shown();
    readers[1].ask();
    assert_eq!(waiting(&mut readers), [false, true]);
    assert!(ring.wants_more() && ring.is_asked());
    ring.put_shown();
    assert_eq!(waiting(&mut readers), [false, false]);
}

#[test]
fn a_message_without_events_does_not_wait_for_the_log() {
    let (mut ring, _reader) = ring();
    ring.wait_for(Arc::new(AtomicU64::new(1)), Stop::new());
    ring.put(&mut message(2_000));
    ring.put(&mut []);
    ring.put_numbered(&[], false);
    assert!(!ring.log.as_ref().unwrap().has_given_up());
}

/// Writes an instrument with this symbol, and an event.
fn name(ring: &mut EventRing, number: u32, symbol: &str) {
    ring.put_bytes(&instrument(number, named(symbol)));
    ring.put(&mut message(1));
}

#[test]
fn the_owner_of_a_reader_reviews_each_name_before_the_next_one() {
    let (mut ring, mut reader) = ring();
    reader.keep_added();
    for symbol in ["P", "P", "S", "P"] {
        name(&mut ring, 0, symbol);
    }
    name(&mut ring, 1, "A");
    for (records, events, named) in [
        (4, vec![1, 0, 2, 0], vec![0]),
        (2, vec![3, 0], vec![0]),
        (4, vec![4, 0, 5, 0], vec![0, 1]),
    ] {
        assert!(reader.backlog() > 0);
        assert_eq!(read(&mut reader, 99), (records, events));
        let added = reader.take_added().into_iter();
        assert_eq!(added.map(|added| added.0).collect::<Vec<_>>(), named);
    }
    assert_eq!(reader.backlog(), 0);
}

#[test]
fn a_name_in_front_of_which_a_turn_ended_is_not_lost_at_the_end() {
    let (mut ring, mut reader) = ring();
    reader.keep_added();
    name(&mut ring, 0, "P");
    ring.put_bytes(&instrument(0, named("S")));
    drop(ring);
    assert_eq!(read(&mut reader, 99), (2, vec![1, 0]));
    assert!(!reader.is_finished() && reader.backlog() > 0);
    reader.take_added();
    assert_eq!(read(&mut reader, 99), (1, vec![]));
    assert_eq!(reader.take_added().len(), 1);
    assert!(reader.is_finished());
}

/// Writes an instrument with this symbol, and an event of it.
fn name_and_trade(ring: &mut EventRing, number: u32, symbol: &str) {
    ring.put_bytes(&instrument(number, named(symbol)));
    ring.put(&mut [Event {
        instrument: InstrumentId(number),
        ..Event::EMPTY
    }]);
}

#[test]
fn a_burst_of_renames_takes_no_more_turns_than_events() {
    const MANY: u32 = 200;
    let (mut ring, mut reader) = ring();
    reader.keep_added();
    (0..MANY).for_each(|number| name_and_trade(&mut ring, number, "A"));
    assert_eq!(read(&mut reader, 999).0, 2 * MANY as usize, "they are new");
    reader.take_added();
    (0..MANY).for_each(|number| name_and_trade(&mut ring, number, "B"));
    assert_eq!(read(&mut reader, 999).0, 2 * MANY as usize);
    assert_eq!(reader.take_added().len(), MANY as usize);
    // Two renames with an event between them take two.
    for symbol in ["C", "B"] {
        name_and_trade(&mut ring, 7, symbol);
    }
    for _ in 0..2 {
        assert_eq!(read(&mut reader, 999).0, 2);
        assert_eq!(reader.take_added(), [InstrumentId(7)]);
    }
    // Without events between them they take one.
    for number in 0..MANY {
        ring.put_bytes(&instrument(number, named("C")));
    }
    assert_eq!(read(&mut reader, 999).0, MANY as usize);
    assert_eq!(reader.take_added().len(), MANY as usize);
    assert_eq!(read(&mut reader, 999).0, 0);
}

#[test]
fn a_call_with_events_of_very_many_instruments_ends_in_front_of_any_rename() {
    let (mut ring, mut reader) = ring();
    reader.keep_added();
    let many = 2_000;
    name(&mut ring, many, "A");
    let all = (0..many).map(|number| Event {
        instrument: InstrumentId(number),
        ..Event::EMPTY
    });
    ring.put(&mut all.collect::<Vec<_>>());
    name(&mut ring, many, "B");
    read(&mut reader, 999);
    assert_eq!(reader.directory().of_symbol(b"A").count(), 1);
    read(&mut reader, 999);
    assert_eq!(reader.directory().of_symbol(b"B").count(), 1);
}

#[test]
fn instruments_that_are_introduced_precede_all_records_and_take_no_room_in_the_ring() {
    let waker = || Waker::detached().unwrap();
    let mut ring = EventRing::new(1, 3, waker(), 1);
    let mut readers = [(); 2].map(|()| ring.reader(waker()).unwrap());
    let mut records = ring.record_reader(waker()).unwrap();
    // Each takes more than 16 bytes.
    let count = LEAST / 16;
    for number in 0..count as u32 {
        ring.introduce(&known(number, named(&format!("S{number}"))));
    }
    let mut poller = Poller::new(1).unwrap();
    poller
        .add(records.waker(), Token(0), Interest::Read)
        .unwrap();
    records.waker().prepare_sleep();
    ring.share_introduced();
    ring.wake();
    assert_eq!(poller.poll(Some(Duration::ZERO)).unwrap(), 1);
    ring.put(&mut message(1));
    readers.iter_mut().for_each(EventReader::keep_added);
    // Before its first read, and by it.
    readers[0].take_introduced();
    assert_eq!(readers[0].directory().len(), count);
    assert_eq!(read(&mut readers[0], 1), (1, vec![1, 0]));
    assert_eq!(read(&mut readers[1], 1), (count + 1, vec![1, 0]));
    for reader in &mut readers {
        assert_eq!(reader.take_added().len(), count);
        assert!(!reader.take_overtaken());
        assert_eq!(read(reader, 1), (0, vec![]));
    }
    let mut seen = 0;
    let mut each = |record: Record<'_>, _: bool| {
        seen += usize::from(matches!(record, Record::Instrument(_)));
    };
    assert_eq!(records.read(1, &mut each), count + 1);
    assert_eq!(records.read(1, &mut each), 0);
    assert_eq!(seen, count);
}

#[test]
fn the_last_events_wait_for_the_log_although_the_plant_stops() {
    check_last(Flags::LAST, 1);
    // Their messages have no end.
    check_last(Flags::NONE, MOST);
}

/// Checks that the log has all of the last events, which have these flags and are written in
/// messages of `len` events.
fn check_last(flags: Flags, len: usize) {
    const TOTAL: usize = 20_000;
    let (mut ring, mut reader) = ring();
    let (committed, stop) = (Arc::new(AtomicU64::new(1)), Stop::new());
    stop.raise();
    ring.wait_at_end_for(Arc::clone(&committed), stop);
    let over = Arc::new(AtomicBool::new(false));
    let is_over = Arc::clone(&over);
    let log = std::thread::spawn(move || {
        let mut seen = Vec::new();
        loop {
            let is_over = is_over.load(Ordering::Acquire);
            let (count, more) = read(&mut reader, 64);
            seen.extend(more);
            if let Some(last) = seen.iter().rev().find(|number| **number != 0) {
                committed.store(last.unsigned_abs() + 1, Ordering::Release);
            }
            if count > 0 {
                continue;
            }
            if is_over {
                return seen;
            }
            std::thread::yield_now();
        }
    });
    let mut all = message(TOTAL);
    for event in &mut all {
        event.flags = flags;
    }
    ring.put_last(&mut all);
    over.store(true, Ordering::Release);
    let mut expected: Vec<i64> = Vec::new();
    let numbers: Vec<_> = (1..=TOTAL as i64).collect();
    for message in numbers.chunks(len) {
        expected.extend(message);
        expected.push(0);
    }
    assert!(log.join().unwrap() == expected, "a message is lost");
}
