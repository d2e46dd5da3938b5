//! Tests of the commands against writers without limits: resident memory stays bounded, and
//! unrelated topics continue.

use crate::common::{Running, eventually, fanfare, said};
use crate::{domain, feed};
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::fast::{Mapping, TypeOptions};
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Qos, Reliability, Status, Writer};
use fanfare_fast::Program;
use std::fs;
use std::io::BufRead;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The keys of the flood.
const KEYS: u32 = 1_200_000;
/// The keys that the subscriber accepts.
const LIMIT: u32 = 50_000;

/// A reliable writer that has found its reader and does not wait for it.
struct Pushy {
    writer: Writer,
    readers: Arc<AtomicU32>,
    t: StructType,
    buffer: CdrBuffer,
}

impl Pushy {
    fn new(domain: &Domain, topic: &str, t: &StructType) -> Self {
        let qos = Qos::reliable().instances(u32::MAX);
        let qos = qos.reliability(Reliability::Reliable(Duration::from_millis(20)));
        let readers = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&readers);
        let writer = domain.topic(topic, t, &qos).unwrap().writer(&qos);
        let writer = writer.on_status(move |status| {
            if let Status::Matched { current, .. } = status {
                count.store(current, Ordering::Release);
            }
        });
        Self {
            writer: writer.open().unwrap(),
            readers,
            t: t.clone(),
            buffer: CdrBuffer::with_capacity(1 << 16),
        }
    }

    fn is_read(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    /// Writes a sample of zeros with this key, and `load` bytes if the type has a member for them.
    /// Returns whether it succeeded.
    fn write(&mut self, key: u64, load: usize) -> bool {
        self.buffer.begin();
        fill(&mut self.buffer, &self.t, key, load);
        self.writer.write(self.buffer.finish().unwrap()).is_ok()
    }
}

fn fill(buffer: &mut CdrBuffer, t: &StructType, key: u64, load: usize) {
    for member in &t.members {
        let value = if member.key { key } else { 0 };
        match &member.kind {
            Kind::UInt64 => buffer.u64(value),
            Kind::UInt32 => buffer.u32(value as u32),
            Kind::Int32 => buffer.i32(value as i32),
            Kind::Float64 => buffer.f64(0.0),
            Kind::String(_) => buffer.string(b""),
            Kind::Sequence(of, _) if **of == Kind::Byte => buffer.octets(&vec![0; load]),
            Kind::Sequence(..) => buffer.u32(0),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns a type with a key and a load.
fn blob() -> StructType {
    StructType::new("Test::Blob")
        .key("id", Kind::UInt64)
        .member("load", Kind::Sequence(Box::new(Kind::Byte), None))
}

/// Returns the peak resident memory of a process, MiB.
fn peak(process: &Running) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM")).unwrap();
    let kib = line.split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() / 1024
}

fn on(domain: &str, args: &[&str]) -> Command {
    let mut command = fanfare(&["dds"]);
    command.args(args).args(["--domain", domain]);
    command
}

fn joined(id: &str) -> DomainConfig {
    DomainConfig::new(id.parse().unwrap())
}

#[test]
fn a_flood_of_keys_ends_one_topic_of_a_subscriber() {
    let id = domain(41);
    let options = ["--no-echo", "--json", "--instances", &LIMIT.to_string()];
    let mut subscribe = on(&id, &["subscribe", "complex", "--keyed"]);
    let mut subscriber = Running::start(subscribe.args(options));
    subscriber.tells("Finished subscribing");
    let keyed = TypeOptions {
        keyed: true,
        split: Some("SecurityID".to_owned()),
        ..TypeOptions::default()
    };
    let mapping = Mapping::new(Arc::new(Program::complex()), &keyed).unwrap();
    let domain = Domain::open(&joined(&id)).unwrap();
    let pushy = |name: &str| {
        let t = &mapping.by_name(name).unwrap().sample;
        Pushy::new(&domain, name, t)
    };
    let (mut bad, mut good) = (pushy("MarketData"), pushy("QuoteRequest"));
    eventually("two matches", || bad.is_read() && good.is_read());
    let mut wrote = 0;
    for key in 0..u64::from(KEYS) {
        // A sample that cannot be sent is skipped: the subscriber never sees its key.
        bad.write(key, 0);
        if key.is_multiple_of(1_000) {
            wrote += u64::from(good.write(key % 7, 0));
        }
    }
    subscriber.tells("the reader of topic \"MarketData\" is closed: more than 50000 keys");
    eventually("the end of the reader", || !bad.is_read());
    assert!(good.is_read() && wrote > 1_000, "{wrote}");
    assert!(good.writer.wait_for_acks(Duration::from_secs(60)).unwrap());
    let resident = peak(&subscriber);
    assert!(resident < 150, "{resident} MiB");
    subscriber.interrupt();
    let said = subscriber.end();
    let figures = said.out;
    assert_eq!(said.code, 1, "{figures}");
    let expected = format!("\"samples\":{}", u64::from(LIMIT) + wrote);
    assert!(figures.contains(&expected), "{expected} in {figures}");
    assert!(figures.contains("\"topics_closed\":1"), "{figures}");
}

/// A publisher whose feed has more keys than it may write omits the others, and reports it.
#[test]
fn a_publisher_leaves_out_samples_of_keys_beyond_the_limit() {
    let (file, id) = (feed("complex", 300), domain(45));
    let both = ["complex", "--keyed", "--no-echo", "--json", "--domain", &id];
    let mut subscribe = fanfare(&["dds", "subscribe"]);
    let mut subscriber = Running::start(subscribe.args(both).arg("--check").arg(&file));
    subscriber.tells("Finished subscribing");
    let mut publish = fanfare(&["dds", "publish", "--instances", "40"]);
    let published = said(publish.args(both).arg("-f").arg(&file));
    let figures = published.figures();
    let ok = published.json()["ok"].as_bool();
    assert_eq!((published.code, ok), (1, Some(false)), "{figures}");
    let refused = figures["refused"].as_u64().unwrap();
    assert!(refused > 0, "{figures}");
    assert_eq!(
        figures["samples"].as_u64(),
        Some(420 - refused),
        "{figures}"
    );
    let told = format!("{refused} samples of more or longer keys than a topic may have were not");
    assert!(published.err.contains(&told), "{}", published.err);
    let received = subscriber.end().succeeded().figures();
    assert_eq!(received["equal"], figures["samples"], "{received}");
    assert_eq!(
        received["not_received"].as_u64(),
        Some(refused),
        "{received}"
    );
    assert_eq!(received["topics_closed"], 0, "{received}");
}

/// The reader of the output has stopped, as a pager does.
#[test]
fn echo_keeps_a_bounded_part_of_what_is_not_read() {
    const SAMPLES: u64 = 60_000;
    const LAST: u64 = 5_000;
    let id = domain(42);
    // Less in flight than a socket holds: no retransmission is needed.
    let mut config = joined(&id);
    config.unacknowledged = 100_000;
    let domain = Domain::open(&config).unwrap();
    let mut writer = Pushy::new(&domain, "Blobs", &blob());
    let (mut echo, lines) = Running::start_unread(&mut on(&id, &["echo", "Blobs"]));
    echo.tells("topic Blobs");
    eventually("a match", || writer.is_read());
    for n in 1..SAMPLES {
        // With many keys, the depth of one has no effect.
        eventually("room", || writer.write(n % 5_000, 2_000));
    }
    // The queue drops its oldest lines, so the last sample is always printed.
    eventually("room", || writer.write(LAST, 2_000));
    let waiting = Duration::from_secs(60);
    assert!(
        writer.writer.wait_for_acks(waiting).unwrap(),
        "does not wait for it"
    );
    let resident = peak(&echo);
    assert!(resident < 110, "{resident} MiB");
    let last = format!("{{\"id\": {LAST}, ");
    let mut printed = 0_u64;
    for line in lines.lines() {
        printed += 1;
        if line.unwrap().contains(&last) {
            break;
        }
    }
    echo.interrupt();
    let told = echo.end().succeeded().err;
    let dropped = SAMPLES - printed;
    let expected = format!("{printed} samples printed, 0 lost, {dropped} left out because");
    assert!(told.contains(&expected), "{expected}: {told}");
}

#[test]
fn ctrl_c_ends_an_echo_that_nobody_reads() {
    let id = domain(43);
    let domain = Domain::open(&joined(&id)).unwrap();
    let mut writer = Pushy::new(&domain, "Unread", &blob());
    let (mut echo, lines) = Running::start_unread(&mut on(&id, &["echo", "Unread"]));
    echo.tells("topic Unread");
    eventually("a match", || writer.is_read());
    for n in 0..200 {
        eventually("room", || writer.write(n, 2_000));
    }
    let waiting = Duration::from_secs(60);
    assert!(writer.writer.wait_for_acks(waiting).unwrap());
    echo.interrupt();
    echo.end().succeeded();
    drop(lines);
}

#[test]
fn echo_ends_when_nobody_reads_its_output_any_more() {
    let id = domain(46);
    let domain = Domain::open(&joined(&id)).unwrap();
    let mut writer = Pushy::new(&domain, "Closed", &blob());
    let (mut echo, lines) = Running::start_unread(&mut on(&id, &["echo", "Closed"]));
    echo.tells("topic Closed");
    eventually("a match", || writer.is_read());
    drop(lines);
    eventually("room", || writer.write(1, 2_000));
    echo.end().succeeded();
}
