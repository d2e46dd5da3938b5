//! Tests of the sink with an in-process topic that fails wherever it can.

use super::LogEnd;
use super::config::{Kafka, KafkaBegin, KafkaFormat};
use super::sink::{KafkaSink, Source};
use super::topic::{Held, Message, Topic, TopicError, What};
use crate::counts::KafkaCounts;
use crate::notice;
use fanfare_engine::agent::Agent;
use fanfare_engine::counters::Counters;
use fanfare_fix::session::Now;
use fanfare_history::{FeedInfo, Writer, WriterConfig};
use fanfare_market::book::BookConfig;
use fanfare_market::event::{Event, Flags, InstrumentId, Kind};
use fanfare_wire::UtcTimestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

/// The contents of a broker while producers start and end.
#[derive(Default)]
struct Broker {
    messages: Vec<(u64, What, Vec<u8>)>,
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
                Err(TopicError("away".to_owned()))
            }
            Some(calls) => {
                *calls -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Topic for Fake {
    fn open(&mut self) -> Result<Held, TopicError> {
        self.may_fail()?;
        let broker = self.broker.lock().unwrap();
        let last = broker.messages.iter().map(|message| message.0).max();
        let of_last = broker.messages.iter().filter(|own| Some(own.0) == last);
        Ok(Held {
            last,
            restarts: of_last.filter(|own| own.1 == What::Restart).count() as u64,
            is_emptied: false,
        })
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

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("fanfare-kafka-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn books() -> BookConfig {
    BookConfig::by_price(20).unwrap()
}

/// Writes a run of the plant with events of these numbers.
fn write(folder: &Folder, numbers: impl Iterator<Item = u64>, start: u64) {
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: books(),
    };
    let config = WriterConfig {
        segment_bytes: 1 << 20,
        first: 1,
    };
    let (mut writer, _) = Writer::open(&folder.0, config, vec![feed], start).unwrap();
    for number in numbers {
        let event = Event {
            number,
            kind: Kind::Status,
            instrument: InstrumentId::ALL,
            id: 2,
            source: 1,
            ts_recv: 1 + number,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
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

fn sink(folder: &Folder, topic: &Fake) -> (KafkaSink<Fake>, notice::NoticeReceiver, Counters) {
    let (notices, told) = notice::channel();
    let counters = Counters::new();
    let source = Source {
        log: LogEnd {
            folder: folder.0.clone(),
            written: Arc::new(AtomicU64::new(0)),
            writer: Weak::new(),
        },
        books: vec![books()],
        notices,
    };
    let counts = KafkaCounts::new(&counters, "events");
    (
        KafkaSink::new(config(), source, topic.clone(), counts),
        told,
        counters,
    )
}

/// Runs some turns of a sink, and either ends or kills it.
fn run(folder: &Folder, topic: &Fake, turns: u64, is_stopped: bool) -> Vec<String> {
    let (mut sink, told, _) = sink(folder, topic);
    let now = |turn: u64| Now {
        mono: turn * 600_000_000,
        utc: UtcTimestamp::from_nanos(turn as i64 * 600_000_000),
    };
    for turn in 1..=turns {
        sink.do_work(now(turn)).unwrap();
    }
    if is_stopped {
        sink.on_close(now(turns + 1));
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
        let folder = Folder::new("fails");
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
    let folder = Folder::new("lost");
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
fn what_retention_has_removed_is_said_in_the_topic() {
    let folder = Folder::new("gone");
    let topic = Fake::default();
    write(&folder, 1..10, 1);
    run(&folder, &topic, 3, true);
    drop(folder);
    // The log begins with a later number, as if its first segments were gone.
    let folder = Folder::new("gone");
    write(&folder, 20..30, 1);
    let first = fanfare_history::Log::open(&folder.0)
        .unwrap()
        .extent()
        .unwrap()
        .first;
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
fn a_topic_of_another_log_is_left_alone() {
    let folder = Folder::new("other");
    let topic = Fake::default();
    topic
        .broker
        .lock()
        .unwrap()
        .messages
        .push((500, What::Event, Vec::new()));
    write(&folder, 1..10, 1);
    let told = run(&folder, &topic, 3, true);
    assert!(
        told[0].contains("the topic has event 500, but the log ends with event 9"),
        "{told:?}"
    );
    assert_eq!(numbers(&topic, What::Event), [500]);
}
