//! Interoperation with programs on other implementations: PyPI's `cyclonedds`, which builds Python
//! classes from the types that our topics announce; C on Debian's Cyclone DDS, with the code that
//! idlc generates from our IDL; and C++ on Debian's Fast DDS, with the code of fastddsgen.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod c;
mod fast_dds;
mod foreign;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::to_json;
use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_dds::{Domain, DomainConfig, Qos, Reader, Status, Writer};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program, Record};

/// The version of PyPI's `cyclonedds` that is installed beside the build.
const PACKAGE: &str = "cyclonedds==11.0.1";

const SIMPLE: [&str; 4] = ["Quote", "New", "Change", "Remove"];
const COMPLEX: [&str; 2] = ["MarketData", "QuoteRequest"];

#[test]
fn a_python_program_gets_and_returns_every_field_of_simple_messages() {
    simple(&python_peer(&SIMPLE, 200));
}

#[test]
fn a_python_program_gets_and_returns_every_field_of_complex_messages() {
    complex(&python_peer(&COMPLEX, 280));
}

fn simple(peer: &PeerCommand) -> Vec<String> {
    let program = Arc::new(Program::simple());
    let feed = Generator::simple(Program::simple(), 200, PACKET_SIZE);
    exchange(peer, &mapping(program), feed, &SIMPLE, 200)
}

fn complex(peer: &PeerCommand) -> Vec<String> {
    let program = Arc::new(Program::complex());
    let feed = Generator::complex(Program::complex(), 200, None, ComplexOptions::default());
    exchange(peer, &mapping(program), feed, &COMPLEX, 280)
}

fn mapping(program: Arc<Program>) -> Arc<Mapping> {
    let options = TypeOptions {
        keyed: true,
        ..TypeOptions::default()
    };
    Arc::new(Mapping::new(program, &options).unwrap())
}

/// Returns a domain that no other test uses.
fn config() -> DomainConfig {
    DomainConfig::new(fanfare_peers::domain())
}

/// Publishes the feed, keyed, and receives each sample back as the peer decoded it. Returns what
/// the peer printed of the samples: their topic and JSON.
fn exchange(
    peer: &PeerCommand,
    mapping: &Arc<Mapping>,
    feed: Generator,
    topics: &[&str],
    samples: usize,
) -> Vec<String> {
    let config = config();
    let domain = Domain::open(&config).unwrap();
    let matched = Arc::new(AtomicU32::new(0));
    let mut ends: BTreeMap<&str, (Writer, Reader)> = BTreeMap::new();
    for topic in topics {
        ends.insert(topic, open(&domain, mapping, topic, &matched));
    }
    let mut peer = Peer::start(peer, &config);
    assert_eq!(peer.line(), "ready");
    wait_until("the peer", || {
        matched.load(Ordering::Acquire) >= 2 * topics.len() as u32
    });
    let sent = publish(mapping, feed, &ends);
    assert_eq!(sent.values().map(Vec::len).sum::<usize>(), samples);
    let printed = peer.until(&samples.to_string());
    for (topic, (_, reader)) in &ends {
        let t = &mapping.by_name(topic).unwrap().sample;
        let mut room = reader.samples(512);
        let mut got = Vec::new();
        wait_until("what the peer writes", || {
            reader.take(&mut room).unwrap();
            got.extend(room.iter().map(|s| to_json(t, s.bytes()).unwrap()));
            got.len() >= sent[*topic].len()
        });
        // Instances may arrive in another order; within one the order is kept.
        got.sort();
        let mut expected = sent[*topic].clone();
        expected.sort();
        assert_eq!(got, expected, "{topic}");
    }
    check_printed(&printed, &sent);
    printed
}

/// Checks that the samples that a peer printed, if it prints any, are those sent: each member by
/// its name and value.
fn check_printed(printed: &[String], sent: &BTreeMap<String, Vec<String>>) {
    if printed.is_empty() {
        return;
    }
    for (topic, sent) in sent {
        let of_topic = printed
            .iter()
            .filter_map(|l| l.strip_prefix(topic.as_str()));
        let mut got: Vec<String> = of_topic.map(canonical).collect();
        let mut expected: Vec<String> = sent.iter().map(|l| canonical(l)).collect();
        got.sort();
        expected.sort();
        assert_eq!(got, expected, "{topic}");
    }
}

/// Returns JSON with numbers in one form, however they were written.
fn canonical(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).unwrap();
    value.to_string()
}

fn open(
    domain: &Domain,
    mapping: &Mapping,
    name: &str,
    matched: &Arc<AtomicU32>,
) -> (Writer, Reader) {
    let t = &mapping.by_name(name).unwrap().sample;
    let qos = Qos::reliable();
    let count = || {
        let matched = Arc::clone(matched);
        move |status| {
            if let Status::Matched { change: 1, .. } = status {
                matched.fetch_add(1, Ordering::Release);
            }
        }
    };
    let topic = domain.topic(name, t, &qos).unwrap();
    let writer = topic.writer(&qos).on_status(count()).open().unwrap();
    let back = domain.topic(&format!("{name}_back"), t, &qos).unwrap();
    let reader = back.reader(&qos).on_status(count()).open().unwrap();
    (writer, reader)
}

/// Publishes the samples of each topic. Returns them as JSON.
fn publish(
    mapping: &Arc<Mapping>,
    mut feed: Generator,
    ends: &BTreeMap<&str, (Writer, Reader)>,
) -> BTreeMap<String, Vec<String>> {
    let mut decoder = Decoder::new(Arc::clone(mapping.program()));
    let mut record = Record::new();
    let mut converter = Converter::new(Arc::clone(mapping), 1 << 14);
    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        decoder.reset();
        let mut rest = packet;
        while !rest.is_empty() {
            rest = &rest[decoder.decode_record(rest, &mut record).unwrap()..];
            let write = |s: fanfare_dds::fast::Converted<'_>| {
                let Some((writer, _)) = ends.get(s.template.name.as_str()) else {
                    return;
                };
                writer.write(s.cdr).unwrap();
                let json = to_json(&s.template.sample, s.cdr).unwrap();
                sent.entry(s.template.name.clone()).or_default().push(json);
            };
            converter.samples(&record, write).unwrap();
        }
    }
    sent
}

/// The command of a peer.
struct PeerCommand {
    program: PathBuf,
    args: Vec<String>,
    /// The configuration of its Cyclone DDS for one of our domains.
    config: fn(&DomainConfig) -> String,
}

/// Returns the configuration for our own version.
fn same_config(config: &DomainConfig) -> String {
    config.to_xml().unwrap()
}

fn python_peer(topics: &[&str], samples: usize) -> PeerCommand {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/peer.py");
    let script = script.to_str().unwrap().to_owned();
    PeerCommand {
        program: python(),
        args: vec![script, topics.join(","), samples.to_string()],
        config: same_config,
    }
}

/// A running peer; it ends when its stdin closes.
struct Peer(fanfare_peers::Program);

impl Peer {
    fn start(command: &PeerCommand, config: &DomainConfig) -> Self {
        let mut process = Command::new(&command.program);
        process
            .args(&command.args)
            .env("CYCLONEDDS_URI", (command.config)(config))
            .env("PEER_DOMAIN", config.id.to_string());
        Self(fanfare_peers::Program::start(&mut process).unwrap())
    }

    fn line(&mut self) -> String {
        self.0.line().unwrap()
    }

    /// Returns the lines before the one that is `last`.
    fn until(&mut self, last: &str) -> Vec<String> {
        let lines = std::iter::repeat_with(|| self.line());
        lines.take_while(|line| line != last).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Returns an interpreter with the package, made beside the build once.
fn python() -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let found = fanfare_peers::python(&home, PACKAGE, "cyclonedds");
    found.unwrap_or_else(|absent| panic!("{absent}"))
}

fn run(command: &mut Command) -> String {
    let out = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {text}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
