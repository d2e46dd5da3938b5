//! Exchange of samples.

use std::sync::mpsc;

use fanfare_dds::cdr::{CdrBuffer, CdrReader, CdrType, to_json};
use fanfare_dds::types::{EnumType, Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reader, SampleInfo};
use fanfare_dds::{Samples, Topic, Transport, Writer, cdr_struct};

use crate::support::{
    PATIENCE, domain_id, listening, matched, pair, quote, quote_reader, quote_writer, take_quotes,
    topic_name, wait_until, write_quote,
};

#[test]
fn samples_cross_the_network_in_order() {
    let (here, there) = pair();
    let name = topic_name("order");
    let qos = Qos::reliable();
    let reader = quote_reader(&there, &name, &qos);
    let (matched, wait) = mpsc::channel();
    let writer = here.topic(&name, &quote(), &qos).unwrap().writer(&qos);
    let writer = writer
        .on_status(move |s| _ = matched.send(s))
        .open()
        .unwrap();
    wait.recv_timeout(PATIENCE).unwrap();

    let mut buffer = CdrBuffer::with_capacity(64);
    for i in 0..500 {
        write_quote(&writer, &mut buffer, i, f64::from(i) / 4.0);
    }
    let got = take_quotes(&reader, 500);
    let expected: Vec<_> = (0..500).map(|i| (i, f64::from(i) / 4.0)).collect();
    assert_eq!(got, expected);
    assert!(writer.wait_for_acks(PATIENCE).unwrap());
}

#[test]
fn multicast_and_tcp_carry_samples_too() {
    for transport in [Transport::Multicast, Transport::Tcp] {
        let mut config = DomainConfig::new(domain_id());
        config.transport = transport;
        let (here, port) = listening(&config);
        config.peers.push(format!("127.0.0.1:{port}"));
        let there = Domain::open(&config).unwrap();
        let name = topic_name("transport");
        let qos = Qos::last_value();
        let reader = quote_reader(&there, &name, &qos);
        let writer = quote_writer(&here, &name, &qos);
        write_quote(&writer, &mut CdrBuffer::with_capacity(64), 1, 2.0);
        assert_eq!(take_quotes(&reader, 1), [(1, 2.0)], "{transport:?}");
    }
}

#[test]
fn a_listener_gets_each_sample_and_a_waitset_wakes() {
    let (here, there) = pair();
    let name = topic_name("listener");
    let qos = Qos::last_value();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let (send, got) = mpsc::channel();
    let _listening = topic
        .reader(&qos)
        .on_sample(move |s| _ = send.send(s.cdr().unwrap().u32().unwrap()))
        .open()
        .unwrap();
    let waiting = topic.reader(&qos).open().unwrap();
    let mut waitset = there.waitset().unwrap();
    assert_eq!(waitset.attach(&waiting).unwrap(), 0);

    let writer = quote_writer(&here, &name, &qos);
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 7, 0.0);
    assert_eq!(got.recv_timeout(PATIENCE).unwrap(), 7);
    let mut woken = Vec::new();
    waitset.wait(PATIENCE, |i| woken.push(i)).unwrap();
    assert_eq!(woken, [0]);
    assert_eq!(take_quotes(&waiting, 1), [(7, 0.0)]);
}

/// The samples stay in the reader, for the thread that the closure wakes.
#[test]
fn the_last_closure_for_samples_replaces_the_other() {
    let (here, there) = pair();
    let name = topic_name("replaced");
    let qos = Qos::last_value();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let (send, rung) = mpsc::channel();
    let reader = topic
        .reader(&qos)
        .on_sample(|_| panic!("it is replaced"))
        .on_data(move || _ = send.send(()))
        .open()
        .unwrap();
    let (send, got) = mpsc::channel();
    let _listening = topic
        .reader(&qos)
        .on_data(|| panic!("it is replaced"))
        .on_sample(move |s| _ = send.send(s.cdr().unwrap().u32().unwrap()))
        .open()
        .unwrap();
    let writer = quote_writer(&here, &name, &qos);
    write_quote(&writer, &mut CdrBuffer::with_capacity(64), 7, 0.5);
    rung.recv_timeout(PATIENCE).unwrap();
    assert_eq!(take_quotes(&reader, 1), [(7, 0.5)]);
    assert_eq!(got.recv_timeout(PATIENCE).unwrap(), 7);
    reader.check().unwrap();
}

cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    struct Entry: "Test::Entry" {
        price: f64,
        size: i32,
        flags: Vec<u8>,
    }
}

cdr_struct! {
    #[derive(Debug, Clone, PartialEq)]
    struct Book: "Test::Book" {
        #[key] symbol: String,
        depth: u8,
        entries: Vec<Entry>,
        number: u64,
    }
}

#[test]
fn typed_values_arrive_as_they_were() {
    let (here, there) = pair();
    let name = topic_name("typed");
    let qos = Qos::last_value();
    let reader = there
        .topic_of::<Book>(&name, &qos)
        .unwrap()
        .reader(&qos)
        .open()
        .unwrap();
    let writer = here
        .topic_of::<Book>(&name, &qos)
        .unwrap()
        .writer(&qos)
        .open()
        .unwrap();
    let book = Book {
        symbol: "MSFT".to_owned(),
        depth: 3,
        entries: vec![
            Entry {
                price: 1.25,
                size: -4,
                flags: vec![1, 2, 3],
            },
            Entry {
                price: -0.5,
                size: 9,
                flags: Vec::new(),
            },
        ],
        number: u64::MAX,
    };
    writer
        .write_value(&book, &mut CdrBuffer::with_capacity(256))
        .unwrap();
    let mut samples = reader.samples(4);
    wait_until("the book", || reader.take(&mut samples).unwrap() == 1);
    assert_eq!(
        samples.iter().next().unwrap().value::<Book>().unwrap(),
        book
    );
    assert!(here.topic_of::<Vec<u8>>("x", &qos).is_err());
}

fn write_all_kinds(b: &mut CdrBuffer) {
    b.bool(true);
    b.i16(-3);
    b.i32(2);
    b.u64(1 << 40);
    b.u8(b'x');
    b.f32(0.5);
    b.string(b"abcdefgh");
    for n in [1, 2, 3] {
        b.u16(n);
    }
    b.u8(5);
    b.u64(6);
    let count = b.count();
    b.u8(7);
    b.u64(8);
    b.set_count(count, 1);
    let count = b.count();
    b.string(b"p");
    b.string(b"qq");
    b.set_count(count, 2);
    b.i8(-1);
    b.u8(255);
}

/// The type has every kind of member, so that the library's own check of the bytes confirms our
/// layout.
#[test]
fn every_kind_of_member_is_laid_out_as_cyclone_lays_it_out() {
    let side = Kind::Enum(std::sync::Arc::new(EnumType {
        name: "Test::Side".to_owned(),
        bit_bound: 32,
        literals: vec![("BUY".to_owned(), 1), ("SELL".to_owned(), 2)],
    }));
    let inner = StructType::new("Test::Inner")
        .member("a", Kind::Byte)
        .member("b", Kind::UInt64);
    let t = StructType::new("Test::All")
        .member("boolean_", Kind::Bool)
        .member("i16", Kind::Int16)
        .member("side", side)
        .member("u64_", Kind::UInt64)
        .member("char_", Kind::Char)
        .member("f32_", Kind::Float32)
        .member("text", Kind::String(Some(8)))
        .member("triple", Kind::Array(Box::new(Kind::UInt16), 3))
        .member("inner", Kind::Struct(inner.clone().into()))
        .member("list", Kind::sequence_of(inner))
        .member(
            "names",
            Kind::Sequence(Box::new(Kind::String(None)), Some(2)),
        )
        .member("i8_", Kind::Int8)
        .member("u8_", Kind::UInt8);
    let (here, there) = pair();
    let name = topic_name("all");
    let qos = Qos::last_value();
    let reader = there
        .topic(&name, &t, &qos)
        .unwrap()
        .reader(&qos)
        .open()
        .unwrap();
    let writer = here
        .topic(&name, &t, &qos)
        .unwrap()
        .writer(&qos)
        .open()
        .unwrap();
    let mut b = CdrBuffer::with_capacity(256);
    write_all_kinds(&mut b);
    writer.write(b.finish().unwrap()).unwrap();
    let mut samples = reader.samples(4);
    wait_until("the sample", || reader.take(&mut samples).unwrap() == 1);
    let json = to_json(&t, samples.iter().next().unwrap().bytes()).unwrap();
    assert_eq!(
        json,
        "{\"boolean_\": true, \"i16\": -3, \"side\": \"SELL\", \"u64_\": 1099511627776, \
         \"char_\": \"x\", \"f32_\": 0.5, \"text\": \"abcdefgh\", \"triple\": [1, 2, 3], \
         \"inner\": {\"a\": 5, \"b\": 6}, \"list\": [{\"a\": 7, \"b\": 8}], \
         \"names\": [\"p\", \"qq\"], \"i8_\": -1, \"u8_\": 255}"
    );
    assert!(Book::structure().is_some());
}

#[test]
fn samples_that_are_kept_stay_as_they_are_while_more_are_taken() {
    let (here, there) = pair();
    let name = topic_name("kept");
    let qos = Qos::reliable();
    let reader = quote_reader(&there, &name, &qos);
    let topic = here.topic(&name, &quote(), &qos).unwrap();
    let (writer, _readers) = matched(&topic, &qos);
    let mut buffer = CdrBuffer::with_capacity(64);
    let mut samples = reader.samples(6);
    let prices = |samples: &Samples| -> Vec<f64> {
        let price = |bytes| {
            let mut cdr = CdrReader::new(bytes).unwrap();
            (cdr.u32().unwrap(), cdr.f64().unwrap()).1
        };
        samples.iter().map(|s| price(s.bytes())).collect()
    };
    let mut more = |samples: &mut Samples, values: &[f64], wanted: usize| {
        for price in values {
            write_quote(&writer, &mut buffer, 1, *price);
        }
        wait_until("the samples", || {
            reader.take_more(samples).unwrap();
            samples.len() == wanted
        });
    };
    more(&mut samples, &[0.0, 1.0, 2.0, 3.0], 4);
    samples.keep(|i| i % 2 == 1);
    assert_eq!(prices(&samples), [1.0, 3.0]);
    more(&mut samples, &[4.0, 5.0, 6.0, 7.0, 8.0], 6);
    assert_eq!(prices(&samples), [1.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(reader.take_more(&mut samples).unwrap(), 0, "no room");
    samples.keep(|i| i == 5);
    more(&mut samples, &[], 2);
    assert_eq!(prices(&samples), [7.0, 8.0]);
    samples.keep(|_| false);
    assert!(samples.is_empty());
    more(&mut samples, &[9.0], 1);
    assert_eq!(prices(&samples), [9.0]);
}

#[test]
fn an_instance_that_is_disposed_or_unregistered_ends_at_the_reader() {
    let (here, there) = pair();
    let name = topic_name("ends");
    let qos = Qos::reliable();
    let topic = there.topic(&name, &quote(), &qos).unwrap();
    let reader = topic.reader(&qos).open().unwrap();
    let topic = here.topic(&name, &quote(), &qos).unwrap();
    let writer = topic.writer(&qos).open().unwrap();
    let mut buffer = CdrBuffer::with_capacity(64);
    let mut first = 0;
    wait_until("the match", || {
        write_quote(&writer, &mut buffer, 1, 1.0);
        first = take_some(&reader).first().map_or(0, |info| info.instance);
        first != 0
    });
    write_quote(&writer, &mut buffer, 2, 2.0);
    // An instance that ends while a sample of it waits shows in that sample's state.
    wait_until("the second", || {
        let infos = take_some(&reader);
        infos.iter().any(|info| info.instance != first)
    });
    for (security, disposed) in [(1, true), (2, false)] {
        buffer.begin();
        buffer.u32(security);
        let key = buffer.finish().unwrap();
        if disposed {
            writer.dispose(key).unwrap();
        } else {
            writer.unregister(key).unwrap();
        }
    }
    assert!(matches!(
        writer.dispose(b"\0\x01\0\0"),
        Err(Error::SampleMismatch { .. })
    ));
    let mut ended = Vec::new();
    wait_until("both ends", || {
        let ends = take_some(&reader).into_iter().filter(|info| !info.has_data);
        ended.extend(ends.map(|info| (info.alive, info.disposed)));
        ended.len() == 2
    });
    ended.sort();
    // Writers dispose of the instances that they unregister, by the default of the specification.
    assert_eq!(ended, [(false, true), (false, true)]);
}

/// So that a reader can tell an instrument that has ended from a plant that has died.
#[test]
fn without_autodispose_the_end_of_a_writer_is_not_that_of_its_instances() {
    for autodispose in [true, false] {
        let (here, there) = pair();
        let name = topic_name("autodispose");
        let qos = Qos::reliable().autodispose(autodispose);
        let reader = quote_reader(&there, &name, &qos);
        let topic = here.topic(&name, &quote(), &qos).unwrap();
        let (writer, _) = matched(&topic, &qos);
        let mut buffer = CdrBuffer::with_capacity(64);
        wait_until("a sample", || {
            write_quote(&writer, &mut buffer, 1, 1.0);
            !take_some(&reader).is_empty()
        });
        drop(writer);
        let mut end = None;
        wait_until("the end", || {
            let ends = take_some(&reader);
            let mut ends = ends.into_iter().filter(|info| !info.alive);
            end = ends.next();
            end.is_some()
        });
        assert_eq!(end.unwrap().disposed, autodispose);
    }
}

/// Takes the events and samples of the reader.
fn take_some(reader: &Reader) -> Vec<SampleInfo> {
    let mut samples = reader.samples(16);
    reader.take(&mut samples).unwrap();
    samples.iter().map(|s| s.info).collect()
}

/// The test compiles only if they may.
#[test]
fn entities_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Domain>();
    shared::<Topic>();
    shared::<Writer>();
    shared::<Reader>();
}
