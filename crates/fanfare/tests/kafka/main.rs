//! Tests of `[[kafka]]` with a broker of Apache Kafka and a client in Python: each event comes
//! once, despite kills of plant and broker.

#[path = "../common/mod.rs"]
mod common;

mod broker;

use broker::Broker;
use common::gateway::Gateway;
use common::{Folder, Running, done, eventually, fanfare, groups, run};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_peers::{or_skip, python};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// Messages of each part of the feed.
const PART: usize = 2_000;

/// A message of a topic, as the reader prints it.
struct Message {
    partition: u64,
    number: u64,
    header: String,
    key: Option<String>,
    value: Vec<u8>,
    log: String,
}

fn kafka_python() -> Option<std::path::PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-kafka");
    let found = python(&home, "kafka-python==3.0.12", "kafka");
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// Returns a script of these tests with its arguments.
fn script(python: &Path, name: &str, args: &[&str]) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka");
    let mut script = Command::new(python);
    script.arg("-B").arg(folder.join(name)).args(args);
    script
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    script
}

/// Returns the messages of a topic.
fn read(python: &Path, broker: &Broker, topic: &str) -> Vec<Message> {
    let mut reader = script(python, "reader.py", &[&broker.address, topic]);
    let message = |line: Value| {
        let hex = line[4].as_str().unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        Message {
            partition: line[0].as_u64().unwrap(),
            number: line[1].as_u64().unwrap(),
            header: line[2].as_str().unwrap().to_owned(),
            key: line[3].as_str().map(str::to_owned),
            value: hex.chunks(2).map(byte).collect(),
            log: line[5].as_str().unwrap().to_owned(),
        }
    };
    done(&mut reader)
        .json_lines()
        .into_iter()
        .map(message)
        .collect()
}

/// Opens a transaction in both topics, which stays open until the end of its stdin.
fn open_transaction(python: &Path, broker: &Broker) -> Running {
    let mut other = script(python, "other.py", &[&broker.address, "json", "dbn"]);
    let mut other = Running::start(other.stdin(Stdio::piped()));
    other.prints("open");
    other
}

fn config(folder: &Folder, group: &str, broker: &str) -> String {
    let (log, ring) = (folder.file("log"), folder.file("ring"));
    let text = format!(
        "[producers]\nport = 0\n[consumers]\nport = 0\n\
         [[feed]]\ntemplates = \"builtin:complex\"\nlines = [\"{group}\"]\n\
         mapping = \"builtin:complex\"\n\
         [history]\nfolder = \"{log}\"\nring = \"{ring}\"\ncheckpoint_events = 1000\n\
         [[kafka]]\nbrokers = [\"{broker}\"]\ntopic = \"json\"\n\
         [[kafka]]\nbrokers = [\"{broker}\"]\ntopic = \"dbn\"\nformat = \"dbn\"\n\
         schemas = [\"trades\", \"statistics\"]\n"
    );
    folder.with("gateway.toml", text)
}

fn send(sender: &Sender, feed: &mut Generator) {
    for at in 0..PART {
        let Some(packet) = feed.next_packet().unwrap() else {
            return;
        };
        sender.send(packet).unwrap();
        if at % 50 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// Waits until both topics are written.
fn is_written(gateway: &mut Gateway) {
    (0..2).for_each(|_| gateway.tells(": is written from event "));
}

#[test]
fn each_event_is_in_a_topic_once_over_kills_of_plant_and_broker() {
    let Some(python) = kafka_python() else {
        return;
    };
    let folder = Folder::new("kafka");
    let Some(mut broker) = or_skip(Broker::start(&folder)).unwrap_or_else(|e| panic!("{e}")) else {
        return;
    };
    let [group, _] = groups();
    let config = config(&folder, &group, &broker.address);
    let start = || Gateway::start(&mut fanfare(&["gateway", &config]));
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let options = ComplexOptions::default();
    let mut feed = Generator::complex(Program::complex(), 100_000, None, options);

    let mut gateway = start();
    is_written(&mut gateway);
    send(&sender, &mut feed);
    // What is committed from here on cannot be read before the end of this transaction.
    let mut other = open_transaction(&python, &broker);
    send(&sender, &mut feed);
    // The gateway is in the middle of a transaction.
    gateway.kill();
    let mut gateway = start();
    (0..2).for_each(|_| gateway.tells("an open transaction of another producer"));
    other.reads("");
    other.end().succeeded();
    is_written(&mut gateway);
    send(&sender, &mut feed);
    broker.kill();
    send(&sender, &mut feed);
    // The broker is down, so that the plant is killed with transactions that cannot end.
    gateway.kill();
    broker.start_again();
    let mut gateway = start();
    is_written(&mut gateway);
    send(&sender, &mut feed);
    gateway.stop();

    judge_json(&folder, &read(&python, &broker, "json"), 4, 2);
    judge_dbn(&folder, &read(&python, &broker, "dbn"));
}

#[test]
fn a_plant_with_another_log_is_refused_and_the_topics_own_plant_goes_on() {
    let Some(python) = kafka_python() else {
        return;
    };
    let (folder, other) = (Folder::new("kafka-own"), Folder::new("kafka-other"));
    let Some(broker) = or_skip(Broker::start(&folder)).unwrap_or_else(|e| panic!("{e}")) else {
        return;
    };
    let [group, foreign] = groups();
    let start = |folder: &Folder, group: &str| {
        let config = config(folder, group, &broker.address);
        Gateway::start(&mut fanfare(&["gateway", &config]))
    };
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let options = ComplexOptions::default();
    let mut feed = Generator::complex(Program::complex(), 100_000, None, options);

    let mut own = start(&folder, &group);
    is_written(&mut own);
    send(&sender, &mut feed);
    // Until then the topics are those of the first plant that writes them.
    let is_there = |topic: &&str| !read(&python, &broker, topic).is_empty();
    eventually("messages in both topics", || {
        ["json", "dbn"].iter().all(is_there)
    });
    // It has the same transactional IDs.
    let mut refused = start(&other, &foreign);
    (0..2).for_each(|_| refused.tells("the topic belongs to the log with the ID"));
    send(&sender, &mut feed);
    refused.stop();
    let said = own.stop();
    assert!(!said.err.contains("kafka json"), "{}", said.err);
    judge_json(&folder, &read(&python, &broker, "json"), 1, 0);
}

#[test]
fn a_topic_that_is_made_again_while_it_is_written_is_filled_again() {
    let Some(python) = kafka_python() else {
        return;
    };
    let folder = Folder::new("kafka-again");
    let Some(broker) = or_skip(Broker::start(&folder)).unwrap_or_else(|e| panic!("{e}")) else {
        return;
    };
    let [group, _] = groups();
    let config = config(&folder, &group, &broker.address);
    let sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    let options = ComplexOptions::default();
    let mut feed = Generator::complex(Program::complex(), 100_000, None, options);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    is_written(&mut gateway);
    send(&sender, &mut feed);
    let is_there = || !read(&python, &broker, "json").is_empty();
    eventually("messages in the topic", is_there);
    done(&mut script(&python, "again.py", &[&broker.address, "json"]));
    send(&sender, &mut feed);
    gateway.tells("kafka json: is written from event 1 on");
    gateway.stop();
    judge_json(&folder, &read(&python, &broker, "json"), 1, 0);
}

/// Checks that the numbers of each key, and of messages without one, increase in the order of
/// offsets.
fn are_in_order(messages: &[&Message]) {
    let mut last = BTreeMap::new();
    for message in messages {
        let before = last.insert((&message.key, message.partition), message.number);
        assert!(before < Some(message.number), "{:?}", message.key);
    }
    let mut places = BTreeMap::new();
    for message in messages {
        let before = places.insert(&message.key, message.partition);
        assert!(before.is_none_or(|before| before == message.partition));
    }
}

/// Compares the topic with the output of `history cat`, which has the events of more than this many
/// parts of the feed, and this many restarts.
fn judge_json(folder: &Folder, messages: &[Message], parts: usize, in_log: usize) {
    let said = run(&["history", "cat", &folder.file("log"), "--json"]).succeeded();
    let is_restart = |line: &&str| line.contains("\"restart\"");
    let restarts = said.out.lines().filter(is_restart).count();
    assert_eq!(restarts, in_log);
    let id = folder.read("log/id");
    let id = str::from_utf8(&id).unwrap().trim_end();
    assert!(messages.iter().all(|message| message.log == id), "{id}");
    let (notices, events): (Vec<_>, Vec<_>) = messages
        .iter()
        .partition(|message| !message.header.is_empty());
    // Each restart is in each of three partitions.
    assert_eq!(notices.len(), 3 * restarts);
    assert!(
        notices
            .iter()
            .all(|notice| notice.value == br#"{"restart":true}"#)
    );
    are_in_order(&events);
    let mut events: Vec<_> = events.iter().map(|event| (event.number, event)).collect();
    events.sort_by_key(|(number, _)| *number);
    let lines: Vec<&str> = said.out.lines().filter(|line| !is_restart(line)).collect();
    assert!(lines.len() > parts * PART, "{}", lines.len());
    assert_eq!(events.len(), lines.len());
    for (line, (number, event)) in lines.iter().zip(events) {
        assert_eq!(line.as_bytes(), event.value);
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["number"], number);
        let name = line.get("symbol").or(line.get("security_id"));
        assert_eq!(name.and_then(Value::as_str), event.key.as_deref());
    }
}

/// Returns the records of DBN in order, without symbols, notices and errors.
fn records(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some(&words) = bytes.first() {
        let (record, rest) = bytes.split_at(4 * usize::from(words));
        if !(0x15..=0x17).contains(&record[1]) {
            all.push(record.to_vec());
        }
        bytes = rest;
    }
    all
}

/// Compares the topic with an export of the log.
fn judge_dbn(folder: &Folder, messages: &[Message]) {
    let (log, to) = (folder.file("log"), folder.file("all.dbn"));
    let schemas = ["--format", "dbn", "--schema", "trades,statistics"];
    let args = [&["history", "export", &log, "-o", &to][..], &schemas].concat();
    run(&args).succeeded();
    let file = folder.read("all.dbn");
    let header = u32::from_le_bytes(file[4..8].try_into().unwrap());
    let expected = records(&file[8 + header as usize..]);
    let events: Vec<_> = messages.iter().filter(|m| m.header.is_empty()).collect();
    are_in_order(&events);
    let mut in_order: Vec<_> = events.iter().map(|event| (event.number, event)).collect();
    in_order.sort_by_key(|(number, _)| *number);
    let found: Vec<_> = in_order
        .iter()
        .flat_map(|(_, event)| records(&event.value))
        .collect();
    assert!(expected.len() > PART / 10, "{}", expected.len());
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
}
