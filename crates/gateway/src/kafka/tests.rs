//! Tests of the sink with an in-process topic that fails wherever it can.

mod other_logs;

use super::LogEnd;
use super::config::{Kafka, KafkaBegin, KafkaFormat};
use super::sink::{KafkaSink, Source};
use super::topic::{Held, Message, OpenTransaction, Topic, TopicError, What};
use crate::counts::KafkaCounts;
use crate::notice;
use crate::test_log::{feed, instrument, named};
use fanfare_engine::agent::Agent;
use fanfare_engine::counters::Counters;
use fanfare_feed::recovery::State;
use fanfare_fix::session::Now;
use fanfare_history::{Log, Writer, WriterConfig};
use fanfare_market::book::BookConfig;
use fanfare_market::event::{Event, Flags, InstrumentId, Kind, entry};
use fanfare_market::{Action, Price, state};
use fanfare_peers::Scratch;
use fanfare_wire::UtcTimestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

/// The ID of the log.
const LOG: u64 = 0xa7;

/// The contents of a broker while producers start and end.
#[derive(Default)]
struct Broker {
    messages: Vec<(u64, What, Vec<u8>)>,
    /// The time of the last event, in milliseconds.
    time: Option<u64>,
    /// The ID of the log in the last message.
    log: Option<u64>,
    /// Whether retention has removed messages.
    is_emptied: bool,
    /// How often a producer has ended the others of its name.
    opened: u64,
    /// What another producer of the name commits before it is ended, with the ID of its log.
    between: Option<(u64, u64)>,
    /// The transaction that holds up the topic.
    blocked: Option<OpenTransaction>,
    /// The calls until the next one that fails.
    fails: Vec<u8>,
}

/// A producer of the broker.
#[derive(Clone, Default)]
struct Fake {
    broker: Arc<Mutex<Broker>>,
    open: Option<Vec<(u64, What, Vec<u8>)>>,
}

impl Fake {
    /// Fails when it is due.
    fn may_fail(&self) -> Result<(), TopicError> {
        let mut broker = self.broker.lock().unwrap();
        match broker.fails.last_mut() {
            Some(0) => {
                broker.fails.pop();
                Err(TopicError::Failed("away".to_owned()))
            }
            Some(calls) => {
                *calls -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Broker {
    /// Returns its contents.
    fn held(&self) -> Held {
        let last = self.messages.iter().map(|message| message.0).max();
        let of_last = self.messages.iter().filter(|own| Some(own.0) == last);
        Held {
            last,
            time: self.time,
            log: self.log,
            restarts: of_last.filter(|own| own.1 == What::Restart).count() as u64,
            is_emptied: self.is_emptied && last.is_none(),
        }
    }
}

impl Topic for Fake {
    fn look(&mut self) -> Result<Held, TopicError> {
        self.may_fail()?;
        Ok(self.broker.lock().unwrap().held())
    }

    fn open(&mut self) -> Result<Held, TopicError> {
        self.may_fail()?;
        let mut broker = self.broker.lock().unwrap();
        if let Some(open) = broker.blocked.clone() {
            return Err(open.into());
        }
        broker.opened += 1;
        if let Some((number, log)) = broker.between.take() {
            broker.messages.push((number, What::Event, Vec::new()));
            broker.log = Some(log);
        }
        Ok(broker.held())
    }

    fn begin(&mut self) -> Result<(), TopicError> {
        assert!(self.open.is_none());
        self.may_fail()?;
        self.open = Some(Vec::new());
        Ok(())
    }

    fn put(&mut self, message: &Message<'_>) -> Result<(), TopicError> {
        self.may_fail()?;
        let open = self.open.as_mut().unwrap();
        open.push((message.number, message.what, message.value.to_vec()));
        Ok(())
    }

    fn commit(&mut self) -> Result<(), TopicError> {
        self.may_fail()?;
        let open = self.open.take().unwrap();
        self.broker.lock().unwrap().messages.extend(open);
        // The response may be lost.
        self.may_fail()
    }

    fn close(&mut self) {
        self.open = None;
    }
}

fn books() -> BookConfig {
    BookConfig::by_price(20).unwrap()
}

/// Begins a run of the plant.
fn open(folder: &Scratch, start: u64) -> Writer {
    open_with(folder, start, books())
}

/// Begins a run of the plant whose feed has these books.
fn open_with(folder: &Scratch, start: u64, book: BookConfig) -> Writer {
    let config = WriterConfig {
        segment_bytes: 1 << 20,
        first: 1,
    };
    let (writer, _) = Writer::open(folder, config, vec![feed(book)], start).unwrap();
    writer
}

fn event(number: u64, instrument: InstrumentId) -> [u8; Event::SIZE] {
    let event = Event {
        number,
        kind: Kind::Status,
        instrument,
        id: 2,
        source: 1,
        ts_recv: 1 + number,
        flags: Flags::LAST,
        ..Event::EMPTY
    };
    event.to_bytes()
}

/// Writes a run whose feed has this number of levels: as many, then one above them. Their events
/// begin with `first`.
fn write_levels(folder: &Scratch, levels: u32, first: u64, start: u64) {
    let mut writer = open_with(folder, start, BookConfig::by_level(levels).unwrap());
    writer.instrument(&instrument(7, named("RIU3"))).unwrap();
    let live = Event {
        number: first,
        instrument: InstrumentId(7),
        source: 1,
        ts_recv: first,
        flags: Flags::LAST,
        ..state::to_event(State::Live)
    };
    writer.events(&[live.to_bytes()]).unwrap();
    for at in 0..=levels {
        let event = Event {
            number: first + 1 + u64::from(at),
            kind: Kind::Level,
            instrument: InstrumentId(7),
            source: 1,
            entry: entry::BID,
            action: Action::New,
            level: 1,
            price: Price::from_units(100 + i64::from(at)),
            size: 1,
            rpt_seq: at + 1,
            ts_recv: first + 1 + u64::from(at),
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
    }
    writer.close().unwrap();
}

/// Returns the number of bids in each record of mbp-10 of a topic.
fn bids(topic: &Fake) -> Vec<usize> {
    let broker = topic.broker.lock().unwrap();
    let mut counts = Vec::new();
    for (_, _, value) in &broker.messages {
        let mut rest = &value[..];
        while let [length, kind, ..] = rest {
            let (record, behind) = rest.split_at(usize::from(*length) * 4);
            if *kind == 10 {
                let levels = record[48..].chunks(32);
                let is_there = |level: &&[u8]| level[..8] != i64::MAX.to_le_bytes();
                counts.push(levels.filter(is_there).count());
            }
            rest = behind;
        }
    }
    counts
}

/// Writes a run of the plant with events of these numbers.
fn write(folder: &Scratch, numbers: impl Iterator<Item = u64>, start: u64) {
    let mut writer = open(folder, start);
    for number in numbers {
        writer.events(&[event(number, InstrumentId::ALL)]).unwrap();
    }
    writer.close().unwrap();
}

fn config() -> Kafka {
    Kafka {
        brokers: Vec::new(),
        topic: "events".to_owned(),
        format: KafkaFormat::Json,
        schemas: Vec::new(),
        kinds: Vec::new(),
        instruments: Vec::new(),
        begin: KafkaBegin::First,
        transactional_id: None,
        commit_ms: 1,
        options: BTreeMap::new(),
    }
}

/// Returns a sink of a log that has events up to the one before `written`.
fn sink(
    config: Kafka,
    folder: &Scratch,
    topic: &Fake,
    written: &Arc<AtomicU64>,
) -> (KafkaSink<Fake>, notice::NoticeReceiver, Counters) {
    let (notices, told) = notice::channel();
    let counters = Counters::new();
    let source = Source {
        log: LogEnd {
            folder: folder.to_path_buf(),
            id: LOG,
            written: Arc::clone(written),
            writer: Weak::new(),
        },
        books: vec![books()],
        notices,
    };
    let counts = KafkaCounts::new(&counters, "events");
    (
        KafkaSink::new(config, source, topic.clone(), counts),
        told,
        counters,
    )
}

/// Returns the value of a counter.
fn value(counters: &Counters, label: &str) -> u64 {
    let all = counters.snapshot();
    all.iter().find(|own| own.label() == label).unwrap().value
}

/// Returns the time of a turn. A failed one is tried again two turns later.
fn at(turn: u64) -> Now {
    Now {
        mono: turn * 600_000_000,
        utc: UtcTimestamp::from_nanos(turn as i64 * 600_000_000),
    }
}

/// Runs some turns of a sink, and either ends or kills it.
fn run(folder: &Scratch, topic: &Fake, turns: u64, is_stopped: bool) -> Vec<String> {
    run_as(config(), folder, topic, turns, is_stopped)
}

fn run_as(
    config: Kafka,
    folder: &Scratch,
    topic: &Fake,
    turns: u64,
    is_stopped: bool,
) -> Vec<String> {
    let (mut sink, told, _) = sink(config, folder, topic, &Arc::default());
    for turn in 1..=turns {
        sink.do_work(at(turn)).unwrap();
    }
    if is_stopped {
        sink.on_close(at(turns + 1));
    }
    told.iter().map(|notice| notice.to_string()).collect()
}

/// Returns the numbers of events, or of notices of one kind.
fn numbers(topic: &Fake, what: What) -> Vec<u64> {
    let broker = topic.broker.lock().unwrap();
    let of = broker.messages.iter().filter(|message| message.1 == what);
    of.map(|message| message.0).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn each_number_is_there_once_wherever_it_fails(
        runs in proptest::collection::vec((1..1500u64, 0..6u64, any::<bool>()), 1..5),
        fails in proptest::collection::vec(0..200u8, 0..12),
    ) {
        let folder = Scratch::new("fails");
        let topic = Fake::default();
        topic.broker.lock().unwrap().fails = fails;
        let mut next = 1;
        for (at, (events, turns, is_stopped)) in runs.iter().enumerate() {
            write(&folder, next..next + events, at as u64 + 1);
            next += events;
            run(&folder, &topic, *turns, *is_stopped);
        }
        topic.broker.lock().unwrap().fails.clear();
        run(&folder, &topic, 20, true);
        prop_assert!(numbers(&topic, What::Event).into_iter().eq(1..next));
        prop_assert_eq!(numbers(&topic, What::Restart).len(), runs.len() - 1);
        prop_assert!(numbers(&topic, What::Lost).is_empty());
    }
}

#[test]
fn what_the_log_lacks_is_said_in_the_topic() {
    let folder = Scratch::new("lost");
    let topic = Fake::default();
    write(&folder, (1..10).chain(20..30), 1);
    run(&folder, &topic, 3, true);
    assert!(
        numbers(&topic, What::Event)
            .into_iter()
            .eq((1..10).chain(20..30))
    );
    assert_eq!(numbers(&topic, What::Lost), [19]);
    let broker = topic.broker.lock().unwrap();
    let lost = &broker.messages[9];
    assert_eq!(lost.2, br#"{"lost":{"first":10,"last":19}}"#);
}

#[test]
fn missing_events_are_counted_once_however_often_they_are_sent() {
    let folder = Scratch::new("counted");
    let topic = Fake::default();
    write(&folder, (1..10).chain(20..30), 1);
    let (mut sink, _told, counters) = sink(config(), &folder, &topic, &Arc::default());
    // Three transactions cannot be committed, after 23 calls: those that begin, and 20 messages.
    topic.broker.lock().unwrap().fails = vec![23; 3];
    for turn in 1..20 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(numbers(&topic, What::Lost), [19]);
    assert_eq!(value(&counters, "events_kafka_gone"), 10);
    assert_eq!(value(&counters, "events_kafka_sent"), 20);
    assert!(value(&counters, "events_kafka_errors") > 0);
}

#[test]
fn messages_are_counted_if_the_answer_to_their_commit_is_lost() {
    let folder = Scratch::new("unanswered");
    let topic = Fake::default();
    write(&folder, (1..10).chain(20..30), 1);
    let (mut sink, _told, counters) = sink(config(), &folder, &topic, &Arc::default());
    // The call after these commits the transaction of 20 messages, and fails nevertheless.
    topic.broker.lock().unwrap().fails = vec![24];
    for turn in 1..9 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(numbers(&topic, What::Lost), [19]);
    assert_eq!(value(&counters, "events_kafka_errors"), 1);
    assert_eq!(value(&counters, "events_kafka_gone"), 10);
    assert_eq!(value(&counters, "events_kafka_sent"), 20);
}

#[test]
fn a_restart_is_counted_once_whether_its_commit_or_the_answer_is_lost() {
    // The begin of the transaction and its message are the first two calls.
    for calls in [2, 3] {
        let folder = Scratch::new("restart");
        let topic = Fake::default();
        write(&folder, 1..10, 1);
        let (mut sink, _told, counters) = sink(config(), &folder, &topic, &Arc::default());
        for turn in 1..4 {
            sink.do_work(at(turn)).unwrap();
        }
        assert_eq!(value(&counters, "events_kafka_sent"), 9);
        // The transaction of the restart fails. A restart has the number of the event before it.
        write(&folder, std::iter::empty(), 2);
        topic.broker.lock().unwrap().fails = vec![calls];
        for turn in 4..12 {
            sink.do_work(at(turn)).unwrap();
        }
        assert_eq!(numbers(&topic, What::Restart), [9]);
        assert_eq!(value(&counters, "events_kafka_errors"), 1);
        assert_eq!(value(&counters, "events_kafka_sent"), 10);
    }
}

#[test]
fn what_retention_has_removed_is_said_in_the_topic() {
    let folder = Scratch::new("gone");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    run(&folder, &topic, 3, true);
    drop(folder);
    // The log begins with a later number, as if its first segments were gone.
    let folder = Scratch::new("gone");
    write(&folder, 20..30, 1);
    let first = Log::open(&folder).unwrap().extent().unwrap().first;
    let told = run(&folder, &topic, 3, true);
    assert!(
        numbers(&topic, What::Event)
            .into_iter()
            .eq((1..10).chain(20..30)),
        "{first}"
    );
    assert_eq!(numbers(&topic, What::Lost), [19], "{told:?}");
}

#[test]
fn a_restart_at_the_edge_of_retention_is_said_in_the_topic() {
    let folder = Scratch::new("edge");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    run(&folder, &topic, 3, true);
    write(&folder, 10..20, 2);
    let segments = Log::open(&folder).unwrap().segments().unwrap();
    assert_eq!((segments.len(), segments[1].first), (2, 10));
    std::fs::remove_file(&segments[0].path).unwrap();
    // A topic that has the notice already.
    let other = Fake::default();
    other.broker.lock().unwrap().messages =
        vec![(9, What::Event, Vec::new()), (9, What::Restart, Vec::new())];
    for (topic, first) in [(&topic, 1_u64), (&other, 9)] {
        let told = run(&folder, topic, 3, true);
        assert!(
            numbers(topic, What::Event).into_iter().eq(first..20),
            "{told:?}"
        );
        assert_eq!(numbers(topic, What::Restart), [9]);
        assert!(numbers(topic, What::Lost).is_empty());
    }
}

#[test]
fn a_restart_behind_missing_events_is_said_once() {
    let folder = Scratch::new("behind");
    let topic = Fake::default();
    let mut writer = open(&folder, 1);
    writer.events(&[event(1, InstrumentId::ALL)]).unwrap();
    writer.lost(2, 9).unwrap();
    writer.close().unwrap();
    write(&folder, std::iter::empty(), 2);
    for _ in 0..3 {
        run(&folder, &topic, 4, true);
        assert_eq!(numbers(&topic, What::Lost), [9]);
        assert_eq!(numbers(&topic, What::Restart), [9]);
    }
}

#[test]
fn what_retention_removes_before_the_first_commit_is_said_in_the_topic() {
    let folder = Scratch::new("begun");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    write(&folder, 10..20, 2);
    let (mut sink, _told, counters) = sink(config(), &folder, &topic, &Arc::default());
    // The topic is opened, and its first transaction cannot begin.
    topic.broker.lock().unwrap().fails = vec![2];
    sink.do_work(at(1)).unwrap();
    let segments = Log::open(&folder).unwrap().segments().unwrap();
    std::fs::remove_file(&segments[0].path).unwrap();
    // The notice fails as well.
    topic.broker.lock().unwrap().fails = vec![2];
    for turn in 3..9 {
        sink.do_work(at(turn)).unwrap();
    }
    assert!(numbers(&topic, What::Event).into_iter().eq(10..20));
    assert_eq!(numbers(&topic, What::Lost), [9]);
    assert_eq!(value(&counters, "events_kafka_gone"), 9);
}

#[test]
fn an_instrument_that_is_shown_late_is_in_the_topic_from_then_on() {
    let folder = Scratch::new("late");
    let topic = Fake::default();
    let mut writer = open(&folder, 1);
    writer.events(&[event(1, InstrumentId(7))]).unwrap();
    writer.instrument(&instrument(7, named("RIU3"))).unwrap();
    writer.events(&[event(2, InstrumentId(7))]).unwrap();
    writer.close().unwrap();
    run(&folder, &topic, 3, true);
    assert_eq!(numbers(&topic, What::Event), [2]);
}

#[test]
fn an_instrument_whose_definition_was_lost_is_chosen_by_its_new_symbol() {
    let folder = Scratch::new("renamed");
    let topic = Fake::default();
    let config = Kafka {
        instruments: vec!["RI*".to_owned()],
        ..config()
    };
    let mut writer = open(&folder, 1);
    writer.instrument(&instrument(7, named("SIU3"))).unwrap();
    writer.events(&[event(1, InstrumentId(7))]).unwrap();
    writer.lost(2, 3).unwrap();
    writer.instrument(&instrument(7, named("RIU3"))).unwrap();
    writer.events(&[event(4, InstrumentId(7))]).unwrap();
    writer.close().unwrap();
    run_as(config, &folder, &topic, 3, true);
    assert_eq!(numbers(&topic, What::Lost), [3]);
    assert_eq!(numbers(&topic, What::Event), [4]);
}

#[test]
fn a_topic_that_begins_now_has_all_events_since_the_start_wherever_it_fails() {
    let folder = Scratch::new("now");
    let topic = Fake::default();
    let fail = || topic.broker.lock().unwrap().fails = vec![0];
    let config = Kafka {
        begin: KafkaBegin::Now,
        ..config()
    };
    write(&folder, 1..10, 1);
    let written = Arc::new(AtomicU64::new(10));
    let (mut sink, _told, _) = sink(config, &folder, &topic, &written);
    // The broker is away at first.
    fail();
    sink.do_work(at(1)).unwrap();
    write(&folder, 10..20, 2);
    sink.do_work(at(3)).unwrap();
    // The first commit fails.
    fail();
    sink.do_work(at(4)).unwrap();
    assert!(numbers(&topic, What::Event).is_empty());
    write(&folder, 20..30, 3);
    for turn in 6..9 {
        sink.do_work(at(turn)).unwrap();
    }
    // Retention empties the topic.
    let mut sent = numbers(&topic, What::Event);
    topic.broker.lock().unwrap().messages.clear();
    write(&folder, 30..40, 4);
    fail();
    sink.do_work(at(9)).unwrap();
    for turn in 11..14 {
        sink.do_work(at(turn)).unwrap();
    }
    sink.on_close(at(14));
    sent.extend(numbers(&topic, What::Event));
    assert!(sent.iter().copied().eq(10..40), "{sent:?}");
}

#[test]
fn levels_are_those_of_the_books_of_each_run_wherever_the_topic_ends() {
    let folder = Scratch::new("levels");
    let topic = Fake::default();
    let config = || Kafka {
        format: KafkaFormat::Dbn,
        schemas: vec!["mbp-10".to_owned()],
        ..config()
    };
    write_levels(&folder, 4, 1, 1);
    write_levels(&folder, 2, 7, 2);
    run_as(config(), &folder, &topic, 20, true);
    let whole = topic.broker.lock().unwrap().messages.len();
    for kept in 0..=whole {
        topic.broker.lock().unwrap().messages.truncate(kept);
        let told = run_as(config(), &folder, &topic, 20, true);
        let counts = bids(&topic);
        assert_eq!(counts, [0, 1, 2, 3, 4, 4, 0, 1, 2, 2], "{kept}: {told:?}");
    }
}

#[test]
fn the_lag_grows_while_the_broker_is_away() {
    let folder = Scratch::new("lag");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    let written = Arc::new(AtomicU64::new(10));
    let (mut sink, _told, counters) = sink(config(), &folder, &topic, &written);
    let lag = || value(&counters, "events_kafka_lag");
    for turn in 1..4 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(lag(), 0);
    topic.broker.lock().unwrap().fails = vec![0; 9];
    write(&folder, 10..15, 2);
    // The transaction cannot begin; then it waits; then it fails again.
    for (turn, next) in [(4, 15), (5, 100), (6, 200)] {
        written.store(next, Ordering::Release);
        sink.do_work(at(turn)).unwrap();
        assert_eq!(lag(), next - 10);
    }
    topic.broker.lock().unwrap().fails.clear();
    written.store(15, Ordering::Release);
    for turn in 8..11 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(lag(), 0);
}

#[test]
fn a_transaction_that_holds_up_the_topic_is_counted_until_it_ends() {
    let folder = Scratch::new("blocked");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    let (mut sink, told, counters) = sink(config(), &folder, &topic, &Arc::default());
    let open = OpenTransaction {
        broker: "kafka:9092".to_owned(),
        topic: "events".to_owned(),
        partition: 2,
        offset: 501,
        age: Duration::from_secs(40),
    };
    topic.broker.lock().unwrap().blocked = Some(open.clone());
    let age = || value(&counters, "events_kafka_blocked_s");
    sink.do_work(at(1)).unwrap();
    assert_eq!(age(), 40);
    let line = told.iter().next().unwrap().to_string();
    assert!(line.contains(&open.to_string()), "{line}");
    topic.broker.lock().unwrap().blocked = None;
    for turn in 3..6 {
        sink.do_work(at(turn)).unwrap();
    }
    assert_eq!(age(), 0);
    assert!(numbers(&topic, What::Event).into_iter().eq(1..10));
}

#[test]
fn a_topic_that_retention_empties_goes_on_in_a_run_and_begins_again_in_the_next() {
    let folder = Scratch::new("emptied");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    let empty = || {
        let mut broker = topic.broker.lock().unwrap();
        broker.messages.clear();
        broker.is_emptied = true;
    };
    let (mut own, told, _) = sink(config(), &folder, &topic, &Arc::default());
    for turn in 1..4 {
        own.do_work(at(turn)).unwrap();
    }
    assert!(numbers(&topic, What::Event).into_iter().eq(1..10));
    empty();
    write(&folder, 10..20, 2);
    topic.broker.lock().unwrap().fails = vec![0];
    for turn in 4..12 {
        own.do_work(at(turn)).unwrap();
    }
    let told: Vec<String> = told.iter().map(|notice| notice.to_string()).collect();
    assert!(numbers(&topic, What::Event).into_iter().eq(10..20));
    assert_eq!(numbers(&topic, What::Restart), [9], "{told:?}");
    let says = |line: &String| line.contains("from the first event that it has not had");
    assert!(told.iter().any(says), "{told:?}");
    drop(own);
    empty();
    let told = run(&folder, &topic, 5, true);
    assert!(told[0].contains("again from the start"), "{told:?}");
    assert!(numbers(&topic, What::Event).into_iter().eq(1..20));
}

#[test]
fn a_stop_at_the_end_of_the_log_leaves_nothing_to_tell() {
    let folder = Scratch::new("stop-at-end");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    let written = Arc::new(AtomicU64::new(10));
    let (mut sink, told, _) = sink(config(), &folder, &topic, &written);
    sink.drain = Duration::ZERO;
    sink.do_work(at(1)).unwrap();
    sink.on_close(at(1));
    assert!(numbers(&topic, What::Event).into_iter().eq(1..10));
    let told: Vec<String> = told.iter().map(|notice| notice.to_string()).collect();
    let is_told = told.iter().any(|line| line.contains("stopped"));
    assert!(!is_told, "{told:?}");
}

#[test]
fn a_stop_far_before_the_end_of_the_log_leaves_the_rest_to_the_next_start() {
    let folder = Scratch::new("late-stop");
    let topic = Fake::default();
    write(&folder, 1..3_000, 1);
    let written = Arc::new(AtomicU64::new(3_000));
    let (mut sink, told, _) = sink(config(), &folder, &topic, &written);
    sink.drain = Duration::ZERO;
    sink.do_work(at(1)).unwrap();
    sink.on_close(at(1));
    let sent = numbers(&topic, What::Event);
    assert!(sent.len() < 2_999 && !sent.is_empty(), "{}", sent.len());
    assert!(sent.iter().copied().eq(1..=sent.len() as u64));
    let left = format!("stopped {} events before the end", 2_999 - sent.len());
    let told: Vec<String> = told.iter().map(|notice| notice.to_string()).collect();
    assert!(told.iter().any(|line| line.contains(&left)), "{told:?}");
    run(&folder, &topic, 20, true);
    assert!(numbers(&topic, What::Event).into_iter().eq(1..3_000));
}
