//! End-to-end tests of `fanfare dds`: publisher and subscriber as two processes.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod backlog;
mod bad_input;
mod bridge;
#[path = "../common/mod.rs"]
mod common;
mod flood;
mod liveliness;
mod lost;
mod plant;
mod quotes;
mod shm;
mod tools;

use common::{Running, done, fanfare};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Returns a domain for each number, exclusive to its test.
fn domain(test: u32) -> String {
    static MINE: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());
    let mut mine = MINE.lock().unwrap_or_else(PoisonError::into_inner);
    let id = mine.entry(test).or_insert_with(fanfare_peers::domain);
    id.to_string()
}

/// A file of packets that a process reads from its stdin, piece by piece.
struct Piecemeal {
    bytes: Vec<u8>,
    at: usize,
    pipe: ChildStdin,
}

impl Piecemeal {
    /// Starts the command, whose file is `/dev/stdin`.
    fn start(command: &mut Command, file: &Path) -> (Running, Self) {
        let mut running = Running::start(command.stdin(Stdio::piped()));
        let pipe = running.stdin();
        let (bytes, at) = (fs::read(file).unwrap(), 0);
        (running, Self { bytes, at, pipe })
    }

    /// Writes `count` more bytes, which need not end with a packet. Bytes beyond the pipe's
    /// capacity are written as others are read.
    fn some(&mut self, count: usize) {
        let piece = self.bytes[self.at..].iter().take(count);
        let piece: Vec<u8> = piece.copied().collect();
        assert_eq!(piece.len(), count, "the file is too short");
        self.pipe.write_all(&piece).unwrap();
        self.at += count;
    }

    /// Writes the rest, as fast as it is read, and closes the pipe.
    fn rest(mut self) {
        // A process that has ended does not read.
        std::thread::spawn(move || drop(self.pipe.write_all(&self.bytes[self.at..])));
    }
}

/// Returns a file with this many messages of a built-in feed; the tests share it.
fn feed(kind: &str, messages: u32) -> PathBuf {
    static MADE: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("dds-{kind}-{messages}.dat"));
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if !made.insert(file.clone()) {
        return file;
    }
    let mut generate = fanfare(&["fast", "generate", kind, "-n", &messages.to_string(), "-o"]);
    done(generate.arg(&file));
    file
}

/// Starts a subscriber, publishes, and returns the output of both.
fn run(kind: &str, domain: u32, messages: u32, options: &[&str]) -> (String, String) {
    let file = feed(kind, messages);
    let domain = crate::domain(domain);
    let subscribe = ["dds", "subscribe", kind, "--domain", &domain];
    let mut subscribe = fanfare(&[&subscribe[..], &["--format", "json"], options].concat());
    let received = file.with_extension("jsonl");
    let out = File::create(&received).unwrap();
    let subscriber = Running::start(subscribe.stdout(out));
    let mut publish = fanfare(&["dds", "publish", kind, "--domain", &domain, "--json", "-f"]);
    let figures = done(publish.arg(&file).args(options)).out;
    subscriber.end().succeeded();
    (figures, fs::read_to_string(received).unwrap())
}

#[test]
fn simple_messages_reach_the_subscriber_field_by_field() {
    let (figures, samples) = run("simple", 10, 400, &[]);
    assert!(
        figures.contains("\"samples\":400,\"echoes\":400"),
        "{figures}"
    );
    // The subscriber left when it had everything.
    assert!(figures.contains("\"readers_left\":0"), "{figures}");
    assert_eq!(samples.lines().count(), 400);
    let decode = ["fast", "decode", "-t", "builtin:simple", "--format", "json"];
    let decoded = done(fanfare(&decode).arg("-f").arg(feed("simple", 400))).out;
    for name in ["Quote", "New", "Change", "Remove"] {
        let front = format!("{{\"topic\": \"{name}\", \"sample\": ");
        let got: Vec<_> = samples
            .lines()
            .filter_map(|l| l.strip_prefix(&front))
            .collect();
        let of = |l: &&str| l.contains(&format!("\"template\": \"{name}\""));
        let expected: Vec<_> = decoded.lines().filter(of).collect();
        assert_eq!((got.len(), expected.len()), (100, 100));
        for (got, expected) in got.iter().zip(expected) {
            let fields = got.trim_end_matches('}');
            assert!(expected.contains(fields), "{got} is not in {expected}");
        }
    }
}

#[test]
fn complex_messages_are_split_by_security() {
    let (figures, samples) = run("complex", 11, 300, &["--keyed"]);
    assert!(
        figures.contains("\"samples\":420,\"echoes\":420"),
        "{figures}"
    );
    let topic = |name: &str| {
        let front = format!("{{\"topic\": \"{name}\"");
        samples.lines().filter(|l| l.starts_with(&front)).count()
    };
    assert_eq!((topic("MarketData"), topic("QuoteRequest")), (417, 3));
}

#[test]
fn a_subscriber_compares_with_the_file() {
    let check = |messages: u32, domain: u32| {
        let published = feed("simple", 250);
        let other = published.with_file_name(format!("dds-check-{messages}.dat"));
        let count = messages.to_string();
        let mut generate = fanfare(&["fast", "generate", "simple", "-n", &count, "-o"]);
        done(generate.arg(&other));
        let on = ["--domain", &crate::domain(domain)];
        let mut subscribe = fanfare(&["dds", "subscribe", "simple", "--json"]);
        subscribe.args(on).arg("--check").arg(&other);
        let subscriber = Running::start(&mut subscribe);
        let mut publish = fanfare(&["dds", "publish", "simple"]);
        done(publish.args(on).arg("-f").arg(&published));
        let said = subscriber.end();
        (said.code, said.out)
    };
    // Additional messages of the file are missing; absent ones are wrong.
    let (code, figures) = check(300, 12);
    let expected = "\"equal\":250,\"wrong\":0,\"not_received\":50";
    assert!(code == 0 && figures.contains(expected), "{figures}");
    let (code, figures) = check(200, 13);
    let expected = "\"equal\":200,\"wrong\":50,\"not_received\":0";
    assert!(code == 1 && figures.contains(expected), "{figures}");
}
