//! The rings compared with a queue as oracle, step by step, and with two threads.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

const CAPACITY: usize = 256;

#[derive(Debug, Clone)]
enum Op {
    Write { kind: u32, len: usize },
    Read { reader: usize, limit: usize },
    Subscribe,
    Drop { reader: usize },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..9u32, 0..=130usize).prop_map(|(kind, len)| Op::Write { kind, len }),
        4 => (0..4usize, 0..5usize).prop_map(|(reader, limit)| Op::Read { reader, limit }),
        1 => Just(Op::Subscribe),
        1 => (0..4usize).prop_map(|reader| Op::Drop { reader }),
    ]
}

type Message = (u64, u32, Vec<u8>);

/// Returns the bytes of a message, which are determined by its sequence number so that mixed-up
/// ones show.
fn body(sequence: u64, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (sequence as usize * 31 + i) as u8)
        .collect()
}

/// A reader with everything that it has not read yet.
struct Checked {
    reader: BroadcastReader,
    unseen: VecDeque<Message>,
}

impl Checked {
    fn read(&mut self, limit: usize, policy: Policy) {
        let mut got: Vec<Message> = Vec::new();
        let batch = self.reader.read(limit, |record| {
            got.push((record.sequence, record.kind, record.bytes.to_vec()));
        });
        assert_eq!(batch.read, got.len());
        let mut lost = 0;
        for message in got {
            while self
                .unseen
                .front()
                .is_some_and(|unseen| unseen.0 < message.0)
            {
                self.unseen.pop_front();
                lost += 1;
            }
            assert_eq!(self.unseen.pop_front(), Some(message));
        }
        assert_eq!(batch.lost, lost);
        assert!(policy == Policy::Lap || lost == 0);
        assert!(batch.read == limit || self.unseen.is_empty());
        assert_eq!(self.reader.backlog() == 0, self.unseen.is_empty());
    }
}

fn check(policy: Policy, ops: Vec<Op>) {
    let mut writer = Broadcast::new(CAPACITY, 3, policy);
    let mut readers: Vec<Checked> = Vec::new();
    let mut sequence = 0;
    for op in ops {
        match op {
            Op::Write { kind, len } => {
                let outcome = writer.push(kind, &body(sequence, len));
                match outcome {
                    Ok(given) => {
                        assert_eq!(given, sequence);
                        let message = (sequence, kind, body(sequence, len));
                        readers
                            .iter_mut()
                            .for_each(|r| r.unseen.push_back(message.clone()));
                        sequence += 1;
                    }
                    Err(WriteError::Full) => {
                        assert_eq!(policy, Policy::Gate);
                        let size = record_size(len);
                        let slowest = readers.iter().map(|r| r.reader.backlog()).max();
                        // At most one stretch of padding, shorter than the message, precedes it.
                        assert!(slowest.unwrap() + 2 * size > CAPACITY as u64);
                    }
                    Err(WriteError::TooLong { max, .. }) => assert!(len > max && max == 112),
                    Err(error) => panic!("{error}"),
                }
            }
            Op::Read { reader, limit } => {
                if let Some(reader) = readers.get_mut(reader) {
                    reader.read(limit, policy);
                }
            }
            Op::Subscribe => match writer.subscribe() {
                Some(reader) => readers.push(Checked {
                    reader,
                    unseen: VecDeque::new(),
                }),
                None => assert_eq!(readers.len(), 3),
            },
            Op::Drop { reader } => {
                if reader < readers.len() {
                    readers.remove(reader);
                }
            }
        }
        assert_eq!(writer.readers(), readers.len());
    }
}

proptest! {
    #[test]
    fn gated_ring_equals_a_queue(ops in prop::collection::vec(op(), 0..200)) {
        check(Policy::Gate, ops);
    }

    #[test]
    fn lapped_ring_equals_a_queue_with_losses(ops in prop::collection::vec(op(), 0..200)) {
        check(Policy::Lap, ops);
    }
}

#[test]
fn a_full_ring_takes_again_what_was_read() {
    let (mut producer, mut consumer) = spsc(64);
    assert_eq!(producer.push(1, &[1; 16]), Ok(0));
    assert_eq!(producer.push(1, &[2; 16]), Ok(1));
    assert_eq!(producer.push(1, &[3; 1]), Err(WriteError::Full));
    assert_eq!(
        consumer.read(1, |record| assert_eq!(record.bytes, [1; 16])),
        1
    );
    assert_eq!(producer.push(1, &[3; 1]), Ok(2));
    assert_eq!(producer.push(u32::MAX, b"x"), Err(WriteError::ReservedKind));
    assert_eq!(
        producer.push(1, &[3; 17]),
        Err(WriteError::TooLong { len: 17, max: 16 })
    );
    drop(producer);
    assert!(!consumer.is_finished());
    assert_eq!(consumer.read(9, |_| {}), 2);
    assert!(consumer.is_finished());
}

#[test]
fn a_producer_sees_that_its_consumer_is_gone() {
    let (mut producer, consumer) = spsc(64);
    assert!(!producer.is_abandoned());
    drop(consumer);
    assert!(producer.is_abandoned());
    for _ in 0..100 {
        producer.push(0, &[0; 16]).expect("nobody holds it back");
    }
}

#[test]
fn a_lapped_reader_goes_on_with_the_newest_and_knows_its_loss() {
    let mut writer = Broadcast::new(128, 1, Policy::Lap);
    let mut reader = writer.subscribe().unwrap();
    for i in 0..100u8 {
        writer.push(0, &[i; 8]).unwrap();
    }
    let mut seen = Vec::new();
    let batch = reader.read(10, |record| {
        seen.push((record.sequence, record.bytes.to_vec()));
    });
    assert_eq!(batch, Batch { read: 1, lost: 99 });
    assert_eq!(seen, [(99, vec![99; 8])]);
}

const STRESS: u64 = 50_000;

/// Reads until the writer is gone, checking order and content; returns the numbers read and lost.
fn drain(mut reader: BroadcastReader) -> (u64, u64) {
    let (mut seen, mut lost, mut next) = (0, 0, 0);
    while !reader.is_finished() {
        let batch = reader.read(16, |record| {
            assert!(record.sequence >= next);
            next = record.sequence + 1;
            let length = (record.sequence % 90) as usize;
            assert_eq!(record.bytes, body(record.sequence, length));
            seen += 1;
        });
        lost += batch.lost;
        if batch.read == 0 {
            std::thread::yield_now();
        }
    }
    (seen, lost)
}

fn stress(policy: Policy) -> Vec<(u64, u64)> {
    let mut writer = Broadcast::new(2048, 2, policy);
    let readers = [writer.subscribe().unwrap(), writer.subscribe().unwrap()];
    let threads = readers.map(|reader| std::thread::spawn(move || drain(reader)));
    for sequence in 0..STRESS {
        let bytes = body(sequence, (sequence % 90) as usize);
        while let Err(error) = writer.push(0, &bytes) {
            assert_eq!(error, WriteError::Full);
            std::thread::yield_now();
        }
        if sequence % 64 == 0 {
            std::thread::yield_now();
        }
    }
    drop(writer);
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .collect()
}

#[test]
fn two_threads_read_every_message_of_a_gated_ring() {
    assert_eq!(stress(Policy::Gate), [(STRESS, 0), (STRESS, 0)]);
}

#[test]
fn two_threads_read_or_count_every_message_of_a_lapped_ring() {
    for (seen, lost) in stress(Policy::Lap) {
        assert_eq!(seen + lost, STRESS);
        assert!(seen > 0);
    }
}

#[test]
fn room_that_is_promised_is_there_wherever_the_buffer_ends() {
    let mut writer = Broadcast::new(CAPACITY, 1, Policy::Gate);
    let mut reader = writer.subscribe().unwrap();
    for round in 0..200usize {
        let len = round * 7 % 100;
        let size = (len + 16).next_multiple_of(16);
        let promised = writer.has_room(size);
        let written = writer.push(1, &body(0, len)).is_ok();
        assert!(written || !promised, "round {round}: {len} bytes");
        if round % 3 == 0 {
            reader.read(2, |_| {});
        }
    }
    reader.read(usize::MAX, |_| {});
    assert!(writer.has_room(CAPACITY / 2) && !writer.has_room(CAPACITY));
}

#[test]
fn a_consumer_takes_what_is_published_and_nothing_behind_its_end() {
    let (mut producer, mut consumer) = spsc(256);
    assert!(matches!(
        producer.publish(1, 0),
        Err(WriteError::TooLong { .. })
    ));
    // Claims that are not published leave nothing; a message may be shorter than its claim.
    for round in 0..100_u64 {
        producer.claim(40).unwrap().fill(9);
        let len = 1 + (round as usize * 7) % 40;
        producer.claim(40).unwrap()[..len].copy_from_slice(&body(round, len));
        assert!(matches!(
            producer.publish(1, 41),
            Err(WriteError::TooLong { .. })
        ));
        producer.claim(40).unwrap()[..len].copy_from_slice(&body(round, len));
        assert_eq!(producer.publish(3, len), Ok(round));
        let mut read = Vec::new();
        consumer.read(9, |record| {
            read.push((record.sequence, record.bytes.to_vec()));
        });
        assert_eq!(read, [(round, body(round, len))]);
    }
    let mut accepted = 0;
    while producer.claim(16).is_ok() {
        producer.publish(1, 16).unwrap();
        accepted += 1;
    }
    assert_eq!(producer.claim(16).unwrap_err(), WriteError::Full);
    assert_eq!(consumer.read(1, |_| {}), 1);
    producer.claim(16).unwrap();
    consumer.close();
    assert_eq!(producer.publish(1, 16), Err(WriteError::Closed));
    assert_eq!(consumer.read(99, |_| {}), accepted - 1);
    assert!(consumer.backlog() == 0 && !consumer.is_finished());
    drop(producer);
    assert!(consumer.is_finished());
}

#[test]
fn a_ring_that_is_closed_amid_messages_has_all_that_were_accepted() {
    for round in 0..50_u32 {
        let (mut producer, mut consumer) = spsc(512);
        let writer = std::thread::spawn(move || {
            let mut accepted = 0_u64;
            loop {
                match producer.claim(24) {
                    Ok(room) => room.copy_from_slice(&body(accepted, 24)),
                    Err(WriteError::Full) => {
                        std::thread::yield_now();
                        continue;
                    }
                    Err(error) => panic!("{error}"),
                }
                match producer.publish(1, 24) {
                    Ok(sequence) => assert_eq!(sequence, accepted),
                    Err(error) => {
                        assert_eq!(error, WriteError::Closed);
                        return accepted;
                    }
                }
                accepted += 1;
            }
        });
        let mut read = 0;
        let mut take = |consumer: &mut Consumer| {
            consumer.read(64, |record| {
                assert_eq!(record.bytes, body(read, 24));
                read += 1;
            })
        };
        for _ in 0..round * 20 {
            take(&mut consumer);
        }
        consumer.close();
        while take(&mut consumer) > 0 {}
        // A full ring is read further, so that the writer finds it closed.
        let accepted = writer.join().unwrap();
        assert_eq!(read, accepted);
    }
}
