use super::source::TRIED;
use super::*;
use crate::dds::entry;
use crate::fanout::source_rings::{Put, SourceRings};
use crate::fanout::stamp::Stamp;
use crate::market::ring::{EventRing, Record, rescue};
use fanfare_engine::clock::Clock;
use fanfare_engine::poll::Waker;
use fanfare_engine::ring::{Broadcast, Policy, RingLock};
use fanfare_fix::codec::SharedBody;
use fanfare_fix::session::Now;
use fanfare_market::{Delivery, Event};
use fanfare_peers::Scratch;

const MS: u64 = 1_000_000;

/// Returns the number of values of a stage, and the longest of them.
fn stage(counters: &Counters, of: &str, name: &str) -> (u64, u64) {
    let all = counters.histograms();
    let found = all
        .iter()
        .find(|one| one.of == of && one.name == format!("{STAGE}{name}"));
    let found = &found.unwrap().distribution;
    (found.count(), found.max())
}

/// Returns a turn that began a moment ago.
fn now() -> Now {
    Clock::new().read()
}

fn utc(now: Now) -> u64 {
    now.utc.nanos().unsigned_abs()
}

#[test]
fn a_feed_is_measured_from_the_kernels_time_to_both_rings() {
    let counters = Counters::new();
    let plan = StagePlan::new(&counters, true);
    let mut stages = plan.feed("A", true).unwrap();
    let turn = now();
    stages.turn(turn);
    let arrived = stages.decoded(utc(turn) - 5 * MS).unwrap();
    assert_eq!(arrived, turn.mono - 5 * MS);
    assert_eq!(stage(&counters, "feed A", "arrival"), (1, 5 * MS));
    assert_eq!(stage(&counters, "feed A", "decode").0, 1);
    let end = fanfare_engine::clock::monotonic();
    stages.end_fix(Some(end + MS));
    stages.end_event(Some(end + 3 * MS));
    assert_eq!(stage(&counters, "feed A", "fix").0, 1);
    assert_eq!(stage(&counters, "feed A", "event"), (1, 2 * MS));
    // Only the first message of a turn is measured.
    assert_eq!(stages.decoded(utc(turn)), None);
    // If a message is written to no ring, the next one is measured instead, if it is among the
    // first.
    stages.turn(Now {
        mono: turn.mono + 1,
        ..turn
    });
    for _ in 0..TRIED {
        assert!(stages.decoded(utc(turn)).is_some());
        stages.end_fix(None);
        stages.end_event(None);
    }
    assert_eq!(stages.decoded(utc(turn)), None);
    assert_eq!(stage(&counters, "feed A", "event").0, 1);
    stages.turn(turn);
    stages.decoded(utc(turn));
    stages.end_event(None);
    assert!(stages.decoded(utc(turn)).is_some());
    stages.end_event(Some(end + MS));
    assert_eq!(stages.decoded(utc(turn)), None);
    assert_eq!(stage(&counters, "feed A", "event").0, 2);
    assert_eq!(stage(&counters, "feed A", "decode").0, 3);
}

#[test]
fn a_time_of_arrival_that_cannot_be_is_left_out() {
    let counters = Counters::new();
    let mut stages = StagePlan::new(&counters, true).feed("A", false).unwrap();
    let turn = now();
    // A time without a stamp is monotonic, and clocks may step.
    let wrong = [turn.mono, utc(turn) + 90_000 * MS, utc(turn) - 90_000 * MS];
    for (i, received) in wrong.into_iter().enumerate() {
        let turn = Now {
            mono: turn.mono + i as u64,
            ..turn
        };
        stages.turn(turn);
        assert_eq!(stages.decoded(received), Some(turn.mono));
    }
    assert_eq!(stage(&counters, "feed A", "arrival"), (0, 0));
    assert_eq!(stage(&counters, "feed A", "decode").0, 3);
}

#[test]
fn an_outlet_is_measured_from_the_ring_to_its_end() {
    let counters = Counters::new();
    let mut stages = StagePlan::new(&counters, true)
        .outlet("w", End::Socket)
        .unwrap();
    let at = fanfare_engine::clock::monotonic();
    let mark = Mark {
        arrived: at - 9 * MS,
        written: at - 4 * MS,
    };
    stages.take(mark, at);
    // On the writer's own thread, the turn began before.
    stages.take(mark, at - 5 * MS);
    assert_eq!(stage(&counters, "w", "ring"), (2, 4 * MS));
    stages.end(true);
    let ((socket, _), (total, longest)) = (
        stage(&counters, "w", "socket"),
        stage(&counters, "w", "total"),
    );
    assert_eq!((socket, total), (2, 2));
    assert!(longest >= 9 * MS);
    // A message that no outlet sent has no end, and the next turn begins anew.
    stages.take(mark, at);
    stages.end(false);
    stages.end(true);
    assert_eq!(stage(&counters, "w", "socket").0, 2);
    // The count is bounded.
    (0..10_000).for_each(|_| stages.take(mark, at));
    stages.end(true);
    assert_eq!(stage(&counters, "w", "ring").0, 10_003);
    assert!(stage(&counters, "w", "socket").0 < 1_000);
}

#[test]
fn nothing_is_measured_where_it_is_switched_off() {
    let counters = Counters::new();
    let plan = StagePlan::new(&counters, false);
    assert!(plan.feed("A", true).is_none() && plan.source("x").is_none());
    assert!(plan.outlet("w", End::Dds).is_none());
    assert!(counters.histograms().is_empty());
}

#[test]
fn the_ring_to_dds_has_the_same_messages_with_marks() {
    let ring = Broadcast::new(1 << 16, 1, Policy::Gate);
    let mut dds = Broadcast::new(1 << 16, 1, Policy::Lap);
    let mut reader = dds.subscribe().unwrap();
    let mut rings = SourceRings::new(ring, Some(dds), Vec::new());
    let body = SharedBody::new(b"W", b"55=A\x01").unwrap();
    let counters = Counters::new();
    for mut stages in [None, StagePlan::new(&counters, true).source("p")] {
        for _ in 0..2 {
            let put = rings.put_measured(&mut stages, now(), &body, Stamp::default());
            assert_eq!(put, Put::Done);
        }
    }
    let mut marks = 0;
    reader.read(9, |record| {
        let (mark, bytes) = Mark::split(record.kind, record.bytes);
        marks += usize::from(mark.is_some());
        assert_eq!(entry::read(bytes).unwrap().body.fields(), b"55=A\x01");
    });
    assert_eq!((marks, stage(&counters, "p", "decode").0), (2, 2));
}

/// Writes the events of two messages, the first with a mark.
fn put_events(ring: &mut EventRing) -> u64 {
    ring.mark(7);
    ring.put(&mut [Event::EMPTY; 3]);
    let written = ring.end_mark().unwrap();
    ring.mark(8);
    assert_eq!(ring.end_mark(), None);
    ring.put(&mut [Event::EMPTY; 2]);
    assert_eq!(ring.end_mark(), None);
    written
}

#[test]
fn readers_of_market_events_pass_over_marks() {
    let waker = || Waker::detached().unwrap();
    let mut ring = EventRing::new(1 << 16, 3, waker(), 1);
    let (mut plain, mut measuring) = (ring.reader(waker()).unwrap(), ring.reader(waker()).unwrap());
    let mut records = ring.record_reader(waker()).unwrap();
    let counters = Counters::new();
    measuring.measure(StagePlan::new(&counters, true).outlet("m", End::Socket));
    measuring.begin_turn(u64::MAX);
    let written = put_events(&mut ring);
    for reader in [&mut plain, &mut measuring] {
        let mut numbers = Vec::new();
        reader.read(9, |delivery| match delivery {
            Delivery::Event(event, _) => numbers.push(event.number),
            Delivery::End(_) => numbers.push(0),
            other => panic!("{other:?}"),
        });
        assert_eq!(numbers, [1, 2, 3, 0, 4, 5, 0]);
    }
    assert_eq!(stage(&counters, "m", "ring"), (1, u64::MAX - written));
    let mut seen = Vec::new();
    records.read(9, |record, _| match record {
        Record::Events(events, mark) => seen.push((events.len(), mark)),
        _ => panic!("only events"),
    });
    let mark = Mark {
        arrived: 7,
        written,
    };
    assert_eq!(seen, [(3, Some(mark)), (2, None)]);
}

#[test]
fn events_with_marks_are_rescued() {
    let path = Scratch::new("marks");
    let waker = || Waker::detached().unwrap();
    let mut lock = RingLock::take(&path).unwrap();
    let mut ring = EventRing::in_file(&mut lock, 1 << 16, 1, waker(), 1).unwrap();
    put_events(&mut ring);
    let mut numbers = Vec::new();
    rescue(&path, |record, _| {
        if let Record::Events(events, _) = record {
            let events = events.iter().filter_map(Event::from_bytes);
            numbers.extend(events.map(|event| event.number));
        }
    })
    .unwrap();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
}
