//! Helpers of the tests.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Qos, Reader, Samples, Status, Topic, Writer};

pub(crate) use fanfare_peers::domain as domain_id;

/// A time longer than any step of the tests takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Returns two participants that can only discover each other over the network stack.
pub(crate) fn pair() -> (Domain, Domain) {
    let config = DomainConfig::new(domain_id());
    (
        Domain::open(&config).unwrap(),
        Domain::open(&config).unwrap(),
    )
}

/// Returns a participant that listens over TCP, if that is its transport, and the port: one that
/// was free a moment ago, or another if it was taken meanwhile.
pub(crate) fn listening(config: &DomainConfig) -> (Domain, u16) {
    loop {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = DomainConfig {
            tcp_port: port,
            ..config.clone()
        };
        match Domain::open(&config) {
            Ok(domain) => return (domain, port),
            Err(taken) => assert!(taken.to_string().contains("cannot listen"), "{taken}"),
        }
    }
}

pub(crate) fn topic_name(name: &str) -> String {
    format!("{name}-{}", std::process::id())
}

pub(crate) fn quote() -> StructType {
    StructType::new("Test::Quote")
        .key("security", Kind::UInt32)
        .member("price", Kind::Float64)
        .member("venue", Kind::String(None))
}

pub(crate) fn quote_reader(domain: &Domain, name: &str, qos: &Qos) -> Reader {
    let topic = domain.topic(name, &quote(), qos).unwrap();
    topic.reader(qos).open().unwrap()
}

pub(crate) fn quote_writer(domain: &Domain, name: &str, qos: &Qos) -> Writer {
    let topic = domain.topic(name, &quote(), qos).unwrap();
    topic.writer(qos).open().unwrap()
}

/// Returns a writer that has a reader, and the number of its readers.
pub(crate) fn matched(topic: &Topic, qos: &Qos) -> (Writer, Arc<AtomicU32>) {
    let readers = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&readers);
    let writer = topic.writer(qos).on_status(move |status| {
        if let Status::Matched { current, .. } = status {
            count.store(current, Ordering::Release);
        }
    });
    let writer = writer.open().unwrap();
    wait_until("a match", || readers.load(Ordering::Acquire) > 0);
    (writer, readers)
}

pub(crate) fn write_quote(writer: &Writer, buffer: &mut CdrBuffer, security: u32, price: f64) {
    buffer.begin();
    buffer.u32(security);
    buffer.f64(price);
    buffer.string(b"XPAR");
    writer.write(buffer.finish().unwrap()).unwrap();
}

pub(crate) fn quotes(samples: &Samples) -> Vec<(u32, f64)> {
    let mut out = Vec::new();
    for sample in samples.iter().filter(|s| s.info.has_data) {
        let mut cdr = sample.cdr().unwrap();
        out.push((cdr.u32().unwrap(), cdr.f64().unwrap()));
        assert_eq!(cdr.string(), Ok(&b"XPAR"[..]));
    }
    out
}

/// Takes samples until `n` quotes have arrived.
pub(crate) fn take_quotes(reader: &Reader, n: usize) -> Vec<(u32, f64)> {
    let mut samples = reader.samples(64);
    let mut all = Vec::new();
    wait_until("quotes", || {
        reader.take(&mut samples).unwrap();
        all.extend(quotes(&samples));
        all.len() >= n
    });
    all
}

/// Waits for a condition that another thread or process brings about; fails after a minute.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
