//! Tests of writer and readers of the ring.

use super::*;
use fanfare_engine::poll::Waker;
use fanfare_engine::stop::Stop;
use fanfare_market::Delivery;
use std::sync::Arc;

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
