//! Tests of the agent that writes the log.

mod intervals;

use super::*;
use crate::history::rolling::Rolling;
use crate::market::ring::EventRing;
use crate::notice::{NoticeReceiver, channel};
use fanfare_engine::counters::Counters;
use fanfare_engine::poll::Waker;
use fanfare_history::{Log, WriterConfig};
use fanfare_market::Event;
use fanfare_peers::Scratch;
use fanfare_wire::UtcTimestamp;
use std::path::Path;

/// More events than the smallest ring holds.
const MANY: u64 = 10_000;

struct Plant {
    folder: Scratch,
    ring: EventRing,
    agent: LogAgent,
    counters: Counters,
    notices: NoticeReceiver,
}

impl Plant {
    fn new(name: &str) -> Self {
        Self::with(name, WriterConfig::default())
    }

    fn with(name: &str, config: WriterConfig) -> Self {
        let folder = Scratch::new(name);
        let opened = Writer::open(&folder, config, Vec::new(), 1);
        let (writer, opened) = opened.unwrap();
        let (counters, (sender, notices)) = (Counters::new(), channel());
        let (ring, agent) = agent(&folder, (writer, opened.next), &counters, sender);
        Self {
            folder,
            ring,
            agent,
            counters,
            notices,
        }
    }

    fn put(&mut self, events: u64) {
        (0..events).for_each(|_| self.ring.put(&mut [Event::EMPTY]));
        self.ring.wake();
    }

    fn work(&mut self) {
        while self.agent.do_work(now()).unwrap() > 0 {}
    }

    fn count(&self, name: &str) -> u64 {
        crate::total(&self.counters, name)
    }

    fn told(&self) -> Vec<String> {
        self.notices.iter().map(|one| one.to_string()).collect()
    }

    /// Ends the gateway, and returns the events that the log lacks, and the number of the next one.
    fn end(mut self) -> (Vec<(u64, u64)>, u64) {
        drop(self.ring);
        self.agent.on_close(now());
        let log = Log::open(&self.folder).unwrap();
        assert!(!self.folder.join("ring").exists());
        let missing = log.verify(|_, _| true).unwrap().missing;
        (missing, log.extent().unwrap().next)
    }
}

/// Returns the agent of a log whose next event has this number, and its ring, in a file, which has
/// room for another reader.
fn agent(
    folder: &Path,
    (writer, next): (Writer, u64),
    counters: &Counters,
    notices: Notices,
) -> (EventRing, LogAgent) {
    let mut ring_file = RingLock::take(&folder.join("ring")).unwrap();
    let waker = || Waker::detached().unwrap();
    let mut ring = EventRing::in_file(&mut ring_file, 1, 2, waker(), next).unwrap();
    let text = format!("folder = \"{}\"", folder.display());
    let history: History = toml::from_str(&text).unwrap();
    let parts = LogParts {
        claim: Claim::make(folder, next).unwrap(),
        writer,
        ring_file,
        ring: ring.record_reader(waker()).unwrap(),
        number: ring.number(),
        order: Rolling::default().order(),
        notices,
        counts: HistoryCounts::new(counters, ""),
        stages: None,
        open: Arc::new(()),
    };
    (ring, LogAgent::new(&history, parts))
}

fn now() -> Now {
    Now {
        mono: 1,
        utc: UtcTimestamp::from_nanos(1),
    }
}

#[test]
fn events_that_were_overwritten_in_front_of_others_are_named_in_a_notice() {
    let mut plant = Plant::new("behind-events");
    plant.put(10);
    plant.work();
    assert!(plant.told().is_empty());
    plant.put(MANY);
    plant.work();
    let told = plant.told();
    let [notice] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        notice.contains("lacks events 11 to 10009 (9999): "),
        "{notice}"
    );
    assert_eq!(plant.count("log_missed"), MANY - 1);
    assert_eq!(plant.count("log_written"), 11);
    assert_eq!(plant.end(), (vec![(11, MANY + 9)], MANY + 11));
}

#[test]
fn no_number_is_used_twice_where_no_event_follows_those_that_were_overwritten() {
    let mut plant = Plant::new("behind-end");
    plant.put(10);
    plant.work();
    plant.put(MANY);
    // A request of all instruments was answered: the last record of the ring has no number.
    plant.ring.put_shown();
    plant.work();
    let told = plant.told();
    assert!(
        told[0].contains("lacks events 11 to 10010 (10000): "),
        "{told:?}"
    );
    assert_eq!(plant.count("log_missed"), MANY);
    assert_eq!(plant.end(), (vec![(11, MANY + 10)], MANY + 11));
}

#[test]
fn a_log_that_cannot_be_closed_names_what_no_notice_has_named_yet() {
    let config = WriterConfig {
        segment_bytes: 1 << 16,
        ..WriterConfig::default()
    };
    let mut plant = Plant::with("behind-close", config);
    plant.put(10);
    plant.work();
    // There were as many notices of late as there may be.
    while plant.agent.limit.lets(now().utc.nanos()) {}
    plant.put(MANY);
    plant.work();
    assert!(plant.told().is_empty());
    // The next segment cannot be made.
    std::fs::remove_dir_all(&plant.folder).unwrap();
    plant.put(2_000);
    plant.agent.on_close(now());
    let told = plant.told();
    let [lacks, end] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(
        lacks.contains("lacks events 11 to 10009 (9999): "),
        "{lacks}"
    );
    assert!(end.contains("could not be ended"), "{end}");
}

#[test]
fn what_was_overwritten_is_counted_while_the_log_cannot_be_written() {
    let mut plant = Plant::new("behind-count");
    plant.put(10);
    plant.work();
    plant.put(MANY);
    // The log is not read meanwhile.
    plant.agent.count();
    let missed = plant.count("log_missed");
    assert!((MANY - MOST..MANY).contains(&missed), "{missed}");
    plant.work();
    assert_eq!(plant.count("log_missed"), MANY - 1);
}

#[test]
fn watermarks_at_the_ends_of_turns_keep_nothing_of_the_ring_that_the_log_has() {
    let mut plant = Plant::new("behind-marks");
    // More than the smallest ring holds.
    for time in 1..=4_000 {
        plant.put(1);
        plant.ring.put_watermark(time);
        plant.ring.wake();
        plant.agent.do_work(now()).unwrap();
    }
    plant.put(7);
    assert_eq!(plant.agent.count_left(), 7);
}

#[test]
fn a_log_that_cannot_be_closed_counts_what_the_next_start_takes_from_the_ring() {
    let mut plant = Plant::new("behind-left");
    plant.put(10);
    plant.work();
    plant.put(7);
    assert_eq!(plant.agent.count_left(), 7);
    let counts = |plant: &Plant| ["log_written", "log_missed"].map(|name| plant.count(name));
    assert_eq!(counts(&plant), [10, 0]);

    let mut plant = Plant::new("behind-left-last");
    plant.put(10);
    plant.work();
    plant.put(MANY);
    assert_eq!(plant.agent.count_left(), 1);
    assert_eq!(counts(&plant), [10, MANY - 1]);

    let mut plant = Plant::new("behind-left-none");
    plant.put(MANY);
    plant.ring.put_shown();
    assert_eq!(plant.agent.count_left(), 0);
    assert_eq!(counts(&plant), [0, MANY]);
}
