//! Writers that write new keys without end, and readers that are not read.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::discovery::EndpointKind;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{
    Domain, DomainConfig, Error, History, LONGEST_KEY, Qos, Reader, Reliability, Writer,
};

use crate::support::{
    PATIENCE, matched, pair, quote, quote_reader, quote_writer, topic_name, wait_until,
};

const LIMIT: u32 = 1_000;

/// Returns policies of a reliable writer that never waits: samples that cannot be sent are dropped.
fn pushy() -> Qos {
    Qos::reliable().reliability(Reliability::Reliable(Duration::ZERO))
}

fn bytes(buffer: &mut CdrBuffer, security: u32) -> &[u8] {
    buffer.begin();
    buffer.u32(security);
    buffer.f64(1.0);
    buffer.string(b"XPAR");
    buffer.finish().unwrap()
}

/// Writes new keys until no reader is left; returns their number.
fn flood(writer: &Writer, readers: &AtomicU32) -> u32 {
    let mut buffer = CdrBuffer::with_capacity(64);
    let end = Instant::now() + PATIENCE;
    let mut security = 0;
    while readers.load(Ordering::Acquire) > 0 {
        assert!(Instant::now() < end, "still read after {security}");
        if writer.write(bytes(&mut buffer, security)).is_ok() {
            security += 1;
        }
    }
    security
}

fn closed(reader: &Reader) -> String {
    let mut told = None;
    wait_until("the end of the reader", || {
        told = reader.check().err();
        told.is_some()
    });
    let error = told.unwrap();
    assert!(matches!(error, Error::ReaderClosed { .. }), "{error}");
    error.to_string()
}

/// Floods one topic with keys and checks that all samples of another topic arrive, whether its
/// reader listens or not, with this reliability.
fn closes_one_reader_and_no_other(name: &str, qos: &Qos, listens: bool) {
    let (here, there) = pair();
    let name = topic_name(name);
    let took = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&took);
    let topic = here.topic(&name, &quote(), qos).unwrap();
    let mut reader = topic.reader(&qos.clone().instances(LIMIT));
    if listens {
        reader = reader.on_sample(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    }
    let reader = reader.open().unwrap();
    let other = topic_name("others");
    let kept = Qos::reliable();
    let all = here.topic(&other, &quote(), &kept).unwrap();
    let came = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&came);
    let all = all.reader(&kept);
    let all = all.on_sample(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    let all = all.open().unwrap();
    let (good, _) = matched(&there.topic(&other, &quote(), &kept).unwrap(), &kept);
    let topic = there.topic(&name, &quote(), qos).unwrap();
    let (bad, readers) = matched(&topic, qos);
    std::thread::scope(|scope| {
        scope.spawn(|| flood(&bad, &readers));
        let mut buffer = CdrBuffer::with_capacity(64);
        for security in 0..5_000 {
            good.write(bytes(&mut buffer, security % 100)).unwrap();
        }
    });
    let told = closed(&reader);
    let expected = format!("the reader of topic {name:?} is closed: more than 1000 keys, from");
    assert!(told.starts_with(&expected), "{told}");
    if listens {
        assert_eq!(took.load(Ordering::Relaxed), u64::from(LIMIT));
    }
    wait_until("all samples of the other topic", || {
        came.load(Ordering::Relaxed) == 5_000
    });
    all.check().unwrap();
    let mut samples = reader.samples(4);
    assert!(matches!(
        reader.take(&mut samples),
        Err(Error::ReaderClosed { .. })
    ));
}

#[test]
fn a_flood_of_keys_closes_a_reliable_reader_and_no_other() {
    closes_one_reader_and_no_other("flood", &pushy(), true);
}

/// Two limits can close the reader: that many samples wait, which comes first, or that many
/// instances exist.
#[test]
fn a_flood_of_keys_closes_a_reader_that_is_not_read() {
    let qos = pushy().history(History::KeepLast(1));
    closes_one_reader_and_no_other("unread", &qos.resource_limits(None, None, None), false);
}

#[test]
fn a_flood_of_keys_closes_a_best_effort_reader_and_no_other() {
    closes_one_reader_and_no_other("loose", &Qos::best_effort(), true);
}

/// The error has the GUID of the writer on the network.
#[test]
fn the_error_names_the_writer() {
    let (here, there) = pair();
    let name = topic_name("named");
    let reader = quote_reader(&here, &name, &pushy().instances(3));
    let mut discovery = here.discovery().unwrap();
    let topic = there.topic(&name, &quote(), &pushy()).unwrap();
    let (bad, readers) = matched(&topic, &pushy());
    let mut seen = None;
    wait_until("the writer", || {
        discovery.update().unwrap();
        let mut all = discovery.endpoints();
        let writer = all.find(|e| e.topic == name && e.kind == EndpointKind::Writer);
        seen = writer.map(|e| e.guid);
        seen.is_some()
    });
    flood(&bad, &readers);
    let told = closed(&reader);
    let expected = format!("from writer {}", seen.unwrap());
    assert!(told.ends_with(&expected), "{told}: {expected}");
}

/// The notice that an instance ended makes an instance, too.
#[test]
fn ends_of_unknown_keys_count() {
    let (here, there) = pair();
    let name = topic_name("ends");
    let reader = quote_reader(&here, &name, &pushy().instances(LIMIT));
    let topic = there.topic(&name, &quote(), &pushy()).unwrap();
    let (bad, readers) = matched(&topic, &pushy());
    let mut buffer = CdrBuffer::with_capacity(64);
    let end = Instant::now() + PATIENCE;
    for security in 0.. {
        if readers.load(Ordering::Acquire) == 0 {
            break;
        }
        assert!(Instant::now() < end, "still read after {security}");
        buffer.begin();
        buffer.u32(security);
        let _ = bad.dispose(buffer.finish().unwrap());
    }
    assert!(closed(&reader).contains("more than 1000 keys"));
}

/// An instance that its writer has unregistered and the reader has taken does not count.
#[test]
fn keys_that_come_and_go_are_no_flood() {
    let (here, there) = pair();
    let name = topic_name("gone");
    let qos = Qos::reliable();
    let took = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&took);
    let topic = here.topic(&name, &quote(), &qos).unwrap();
    let reader = topic.reader(&qos.clone().instances(10));
    let reader = reader.on_sample(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    let reader = reader.open().unwrap();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let (writer, _) = matched(&topic, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    for security in 0..2_000 {
        writer.write(bytes(&mut buffer, security)).unwrap();
        buffer.begin();
        buffer.u32(security);
        writer.unregister(buffer.finish().unwrap()).unwrap();
    }
    wait_until("all samples", || took.load(Ordering::Relaxed) == 2_000);
    reader.check().unwrap();
}

/// Every reader of it would close.
#[test]
fn a_writer_refuses_a_key_that_is_too_long() {
    let (here, there) = pair();
    let name = topic_name("long");
    let t = StructType::new("Test::Named").key("name", Kind::String(None));
    let qos = pushy();
    let reader = here.topic(&name, &t, &qos).unwrap().reader(&qos);
    let reader = reader.open().unwrap();
    let (writer, _) = matched(&there.topic(&name, &t, &qos).unwrap(), &qos);
    let key = |len: usize| {
        let mut buffer = CdrBuffer::with_capacity(4 << 10);
        buffer.string(&b"x".repeat(len));
        buffer.finish().unwrap().to_vec()
    };
    let longest = LONGEST_KEY as usize - 4 - 4 - 1;
    let long = key(longest + 1);
    for refused in [
        writer.write(&long),
        writer.dispose(&long),
        writer.unregister(&long),
    ] {
        let Err(Error::LongKey { length, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(length, LONGEST_KEY + 1);
    }
    writer.write(&key(longest)).unwrap();
    let mut samples = reader.samples(4);
    wait_until("the longest", || reader.take(&mut samples).unwrap() == 1);
    assert_eq!(samples.get(0).unwrap().bytes().len(), LONGEST_KEY as usize);
    reader.check().unwrap();
}

#[test]
fn a_key_whose_sample_is_not_written_does_not_count() {
    let domain = Domain::open(&DomainConfig::new(crate::support::domain_id())).unwrap();
    let writer = quote_writer(&domain, &topic_name("unwritten"), &pushy().instances(1));
    let mut buffer = CdrBuffer::with_capacity(64);
    buffer.begin();
    buffer.u32(1);
    let cut = writer.write(buffer.finish().unwrap());
    assert!(matches!(cut, Err(Error::SampleMismatch { .. })));
    writer.write(bytes(&mut buffer, 2)).unwrap();
    let beyond = writer.write(bytes(&mut buffer, 3));
    assert!(matches!(beyond, Err(Error::TooManyKeys { limit: 1, .. })));
}

/// The samples that a writer keeps come while the reader is opened.
#[test]
fn a_reader_that_is_closed_while_it_is_opened_wakes_its_taker() {
    let domain = Domain::open(&DomainConfig::new(crate::support::domain_id())).unwrap();
    let (name, qos) = (topic_name("at-once"), Qos::last_value());
    let writer = quote_writer(&domain, &name, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    for security in 0..=10 {
        writer.write(bytes(&mut buffer, security)).unwrap();
    }
    let topic = domain.topic(&name, &quote(), &qos).unwrap();
    let (send, woken) = mpsc::channel();
    let reader = topic.reader(&qos.instances(10)).on_data(move || {
        let thread = std::thread::current();
        _ = send.send(thread.name().map(str::to_owned));
    });
    let reader = reader.open().unwrap();
    // Samples wake it in a thread of the library.
    while woken.recv_timeout(PATIENCE).unwrap().as_deref() != Some("dds-close") {}
    assert!(closed(&reader).contains("more than 10 keys"));
}

/// The library offers a sample that does not fit repeatedly, in its receive thread; the deletion of
/// the reader used to wait for that thread without end.
#[test]
fn a_reader_that_is_full_can_be_closed() {
    for own_domain in [true, false] {
        let (here, there) = pair();
        let from: &Domain = if own_domain { &here } else { &there };
        let name = topic_name("full");
        let few = pushy().resource_limits(Some(4), None, None);
        let reader = here.topic(&name, &quote(), &pushy()).unwrap().reader(&few);
        let reader = reader.open().unwrap();
        let topic = from.topic(&name, &quote(), &pushy()).unwrap();
        let (writer, readers) = matched(&topic, &pushy());
        let mut buffer = CdrBuffer::with_capacity(64);
        for security in 0..100 {
            let _ = writer.write(bytes(&mut buffer, security));
        }
        std::thread::sleep(Duration::from_millis(50));
        drop(reader);
        wait_until("its end", || readers.load(Ordering::Acquire) == 0);
    }
}

/// The samples that wait for a reader that does not read are bounded without keys, too.
#[test]
fn a_best_effort_reader_that_is_not_read_keeps_a_bounded_number() {
    let domain = Domain::open(&DomainConfig::new(crate::support::domain_id())).unwrap();
    let name = topic_name("bounded");
    let qos = Qos::best_effort();
    let reader = quote_reader(&domain, &name, &qos);
    let writer = quote_writer(&domain, &name, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    for n in 0..20_000 {
        writer.write(bytes(&mut buffer, n % 100)).unwrap();
    }
    let mut samples = reader.samples(1 << 16);
    assert_eq!(reader.take(&mut samples).unwrap(), 8_192);
}
