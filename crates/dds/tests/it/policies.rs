//! Late joiners, slow readers, mismatches, separate domains.

use std::sync::mpsc;
use std::time::Duration;

use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::discovery::Endpoint;
use fanfare_dds::{Domain, DomainConfig, Durability, History, Liveliness, Ownership, Policy, Qos};
use fanfare_dds::{Reliability, Status};

use crate::support::{
    PATIENCE, domain_id, pair, quote, quote_reader, quote_writer, quotes, take_quotes, topic_name,
    wait_until, write_quote,
};

#[test]
fn who_comes_late_gets_the_last_value_of_each_key() {
    let (here, there) = pair();
    let name = topic_name("late");
    let qos = Qos::last_value();
    let writer = quote_writer(&here, &name, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    for round in 0..10 {
        for security in 1..4 {
            write_quote(&writer, &mut buffer, security, f64::from(round));
        }
    }
    let reader = quote_reader(&there, &name, &qos);
    let mut got = take_quotes(&reader, 3);
    got.sort_by_key(|q| q.0);
    assert_eq!(got, [(1, 9.0), (2, 9.0), (3, 9.0)]);
}

#[test]
fn a_reader_that_stops_does_not_stop_the_writer_nor_the_other_reader() {
    let (here, there) = pair();
    let name = topic_name("slow");
    let qos = Qos::default()
        .reliability(Reliability::Reliable(Duration::from_millis(10)))
        .history(History::KeepLast(8));
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let stopped = topic.reader(&qos).open().unwrap();
    let (send, got) = mpsc::channel();
    let _reading = topic
        .reader(&qos)
        .on_sample(move |s| _ = send.send(s.cdr().unwrap().u32().unwrap()))
        .open()
        .unwrap();
    let (matched, wait) = mpsc::channel();
    let writer = here.topic(&name, &quote(), &qos).unwrap().writer(&qos);
    let writer = writer
        .on_status(move |s| _ = matched.send(s))
        .open()
        .unwrap();
    for _ in 0..2 {
        wait.recv_timeout(PATIENCE).unwrap();
    }
    let mut buffer = CdrBuffer::with_capacity(64);
    for i in 0..1_000 {
        write_quote(&writer, &mut buffer, 5, f64::from(i));
    }
    writer.wait_for_acks(PATIENCE).unwrap();
    let last = take_quotes(&stopped, 8);
    assert_eq!(last.last(), Some(&(5, 999.0)));
    assert!(
        last.len() <= 9,
        "{} samples were kept for eight",
        last.len()
    );
    drop(writer);
    let heard = got.iter().take(1).count() + got.try_iter().count();
    assert!(
        heard >= 8,
        "the reader beside the stopped one heard {heard}"
    );
}

#[test]
fn a_mismatch_of_each_policy_is_told_to_both_sides() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(9));
    let qos = Qos::reliable;
    for (policy, offered, asked) in [
        (Policy::Reliability, Qos::best_effort(), qos()),
        (
            Policy::Durability,
            qos().durability(Durability::Volatile),
            qos().durability(Durability::TransientLocal),
        ),
        (
            Policy::Deadline,
            qos().deadline(long),
            qos().deadline(short),
        ),
        (
            Policy::LatencyBudget,
            qos().latency_budget(long),
            qos().latency_budget(short),
        ),
        (
            Policy::Ownership,
            qos().ownership(Ownership::Shared),
            qos().ownership(Ownership::Exclusive(0)),
        ),
        (
            Policy::Liveliness,
            qos().liveliness(Liveliness::Automatic(short)),
            qos().liveliness(Liveliness::ManualByTopic(short)),
        ),
    ] {
        mismatch(policy, &offered, &asked);
    }
}

fn mismatch(policy: Policy, offered: &Qos, asked: &Qos) {
    let (here, there) = pair();
    let name = topic_name("mismatch");
    let topic = there.topic(&name, &quote(), &Qos::default()).unwrap();
    let (send, at_reader) = mpsc::channel();
    let reader = topic.reader(asked).on_status(move |s| _ = send.send(s));
    let _reader = reader.open().unwrap();
    let (send, at_writer) = mpsc::channel();
    let topic = here.topic(&name, &quote(), &Qos::default()).unwrap();
    let writer = topic.writer(offered).on_status(move |s| _ = send.send(s));
    let _writer = writer.open().unwrap();
    for side in [at_reader, at_writer] {
        let status = side.recv_timeout(PATIENCE).unwrap();
        let expected = Status::IncompatibleQos { total: 1, policy };
        assert_eq!(status, expected);
        assert_eq!(
            status.to_string(),
            format!("no match: the other side's {policy} does not fit")
        );
    }
}

/// The default partition has no name, or an empty one. Two patterns never match.
#[test]
fn a_reader_joins_the_partitions_of_all_writers() {
    let (here, there) = pair();
    let name = topic_name("partitions");
    let qos = Qos::last_value();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let mut buffer = CdrBuffer::with_capacity(64);
    let all = [None, Some(""), Some("x"), Some("a?c*")];
    let writers = all.map(|partition| {
        let qos = partition.map_or(qos.clone(), |name| qos.clone().partition(name));
        topic.writer(&qos).open().unwrap()
    });
    for (security, writer) in (1..).zip(&writers) {
        write_quote(writer, &mut buffer, security, 1.0);
    }
    let mut discovery = here.discovery().unwrap();
    let mut found: Vec<Endpoint> = Vec::new();
    wait_until("the writers", || {
        discovery.update().unwrap();
        let all = discovery.endpoints().filter(|e| e.topic == name);
        found = all.cloned().collect();
        found.len() == writers.len()
    });
    // Those without a name come first.
    found.sort_by_key(|e| e.partitions.clone());
    let first = found[0].reader_qos(1);
    let joined = found[1..].iter().fold(first, |qos, e| e.join(qos));
    let reader = here.topic(&name, &quote(), &qos).unwrap().reader(&joined);
    let mut got = take_quotes(&reader.open().unwrap(), 4);
    got.sort_by_key(|q| q.0);
    assert_eq!(got, [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0)]);
}

#[test]
fn two_domains_do_not_hear_each_other() {
    let id = domain_id();
    let name = topic_name("apart");
    let qos = Qos::last_value();
    let open = |id| Domain::open(&DomainConfig::new(id)).unwrap();
    let (here, there, elsewhere) = (open(id), open(id), open(domain_id()));
    let reader_in = |d: &Domain| quote_reader(d, &name, &qos);
    let (hears, deaf) = (reader_in(&there), reader_in(&elsewhere));
    let writer = quote_writer(&here, &name, &qos);
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 1.0);
    assert_eq!(take_quotes(&hears, 1), [(1, 1.0)]);
    let mut samples = deaf.samples(4);
    deaf.take(&mut samples).unwrap();
    assert_eq!(quotes(&samples), []);
}

#[test]
fn deadline_and_liveliness_events_come() {
    // Two writers: one that is gone owes no samples, and on a busy machine it may be gone first.
    let deadline = Qos::last_value().deadline(Duration::from_millis(50));
    comes(&deadline, |s| {
        matches!(s, Status::DeadlineMissed { total: 1.. })
    });
    let lease = Liveliness::ManualByTopic(Duration::from_millis(100));
    comes(&Qos::last_value().liveliness(lease), |s| {
        matches!(s, Status::LivelinessChanged { not_alive: 1, .. })
    });
}

/// Checks that the reader of a writer that writes once receives such an event.
fn comes(qos: &Qos, wanted: impl Fn(&Status) -> bool) {
    let (here, there) = pair();
    let name = topic_name("silent");
    let (send, events) = mpsc::channel();
    let topic = there.topic(&name, &quote(), qos).unwrap();
    let reader = topic.reader(qos).on_status(move |s| _ = send.send(s));
    let _reader = reader.open().unwrap();
    let writer = quote_writer(&here, &name, qos);
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 1.0);
    while !wanted(&events.recv_timeout(PATIENCE).unwrap()) {}
}

#[test]
fn either_side_may_be_restarted() {
    let config = DomainConfig::new(domain_id());
    let name = topic_name("restart");
    let qos = Qos::last_value();
    let open = || Domain::open(&config).unwrap();
    let reading = |d: &Domain| quote_reader(d, &name, &qos);
    let writing = |d: &Domain| quote_writer(d, &name, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    let (here, there) = (open(), open());
    let (reader, writer) = (reading(&there), writing(&here));
    write_quote(&writer, &mut buffer, 1, 1.0);
    assert_eq!(take_quotes(&reader, 1), [(1, 1.0)]);
    // The subscriber leaves and returns.
    drop((reader, there));
    let there = open();
    let reader = reading(&there);
    assert_eq!(take_quotes(&reader, 1), [(1, 1.0)]);
    // The publisher leaves and returns.
    drop((writer, here));
    let here = open();
    let writer = writing(&here);
    write_quote(&writer, &mut buffer, 2, 2.0);
    assert_eq!(take_quotes(&reader, 1), [(2, 2.0)]);
}
