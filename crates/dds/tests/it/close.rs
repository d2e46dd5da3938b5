//! Entities may be dropped in any order, from any thread, and closures may panic.

use std::sync::{Arc, Mutex, mpsc};

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability};

use crate::support::{
    PATIENCE, domain_id, matched, pair, quote, take_quotes, topic_name, wait_until, write_quote,
};

#[test]
fn samples_and_children_keep_what_they_need() {
    let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
    let qos = Qos::last_value();
    let topic = domain.topic(&topic_name("close"), &quote(), &qos).unwrap();
    drop(domain);
    let reader = topic.reader(&qos).open().unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    drop(topic);
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 3, 4.0);
    let mut samples = reader.samples(4);
    assert_eq!(reader.take(&mut samples).unwrap(), 1);
    drop(writer);
    drop(reader);
    let sample = samples.iter().next().unwrap();
    assert_eq!(sample.cdr().unwrap().u32(), Ok(3));
}

#[test]
fn room_for_samples_may_change_readers() {
    let qos = Qos::last_value();
    let mut buffer = CdrBuffer::with_capacity(64);
    let mut room = None;
    for price in [1.0, 2.0] {
        let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
        let topic = domain.topic(&topic_name("room"), &quote(), &qos).unwrap();
        let reader = topic.reader(&qos).open().unwrap();
        let writer = topic.writer(&qos).open().unwrap();
        write_quote(&writer, &mut buffer, 1, price);
        let samples = room.get_or_insert_with(|| reader.samples(4));
        assert_eq!(reader.take(samples).unwrap(), 1);
        assert_eq!(crate::support::quotes(samples), [(1, price)]);
    }
}

#[test]
fn a_panic_in_a_listener_stays_there_and_is_reported() {
    let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
    let qos = Qos::last_value();
    let topic = domain.topic(&topic_name("panic"), &quote(), &qos).unwrap();
    let reader = topic
        .reader(&qos)
        .on_sample(|_| panic!("on purpose"))
        .open()
        .unwrap();
    let other = topic.reader(&qos).open().unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 1.0);
    assert_eq!(take_quotes(&other, 1), [(1, 1.0)]);
    let error = reader.take(&mut reader.samples(1)).unwrap_err();
    assert!(matches!(error, Error::ListenerPanicked(_)), "{error}");
}

/// More samples than the reader's history holds: the library would offer the next one in its
/// receive thread until the reader takes it, which it no longer does.
#[test]
fn after_a_panic_in_a_listener_the_other_topics_go_on() {
    let (here, there) = pair();
    let qos = Qos::reliable().reliability(Reliability::Reliable(PATIENCE));
    let topic = |domain: &Domain, name: &str| {
        let topic = domain.topic(&topic_name(name), &quote(), &qos);
        topic.unwrap()
    };
    let reader = topic(&here, "panic-full")
        .reader(&qos)
        .on_sample(|_| panic!("on purpose"));
    let reader = reader.open().unwrap();
    let other = topic(&here, "panic-other").reader(&qos).open().unwrap();
    let (full, _) = matched(&topic(&there, "panic-full"), &qos);
    let (good, _) = matched(&topic(&there, "panic-other"), &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    for n in 0..20_000 {
        write_quote(&full, &mut buffer, n % 100, 1.0);
    }
    assert!(full.wait_for_acks(PATIENCE).unwrap());
    write_quote(&good, &mut buffer, 7, 2.0);
    assert_eq!(take_quotes(&other, 1), [(7, 2.0)]);
    let error = reader.check().unwrap_err();
    assert!(matches!(error, Error::ListenerPanicked(_)), "{error}");
}

#[test]
fn a_reader_may_be_dropped_by_its_own_listener() {
    let domain = Domain::open(&DomainConfig::new(domain_id())).unwrap();
    let qos = Qos::last_value();
    let topic = domain.topic(&topic_name("self"), &quote(), &qos).unwrap();
    let slot = Arc::new(Mutex::new(None));
    let inner = Arc::clone(&slot);
    let (send, done) = mpsc::channel();
    let reader = topic
        .reader(&qos)
        .on_sample(move |_| {
            drop(inner.lock().unwrap().take());
            _ = send.send(());
        })
        .open()
        .unwrap();
    *slot.lock().unwrap() = Some(reader);
    let writer = topic.writer(&qos).open().unwrap();
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 1.0);
    done.recv_timeout(PATIENCE).unwrap();
    // The closure is dropped with the reader, and with it its end of the channel.
    wait_until("the end of the reader", || {
        done.try_recv() == Err(mpsc::TryRecvError::Disconnected)
    });
}
