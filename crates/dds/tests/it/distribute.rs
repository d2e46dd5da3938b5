//! The set-ups of the article, with publisher and subscriber in one process but over the network.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use fanfare_dds::distribute::{Carrier, Distribution, Publisher, Subscriber};
use fanfare_dds::fast::{Converter, Mapping, TypeOptions};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability, shm};
use fanfare_fast::generate::{ComplexOptions, Generator, PACKET_SIZE};
use fanfare_fast::{Decoder, Program, Record};

use crate::support::{PATIENCE, domain_id, pair, wait_until};

/// The samples of each topic, in order.
type Samples = BTreeMap<String, Vec<Vec<u8>>>;

struct Run {
    echoed: u64,
    sent: Samples,
    got: Samples,
}

/// Returns two participants that discover each other over the network.
fn dds() -> [Carrier; 2] {
    let (here, there) = pair();
    [(&here).into(), (&there).into()]
}

/// Returns two ends in shared memory. The publisher's ring is lapped; the ring of the echoes is
/// not, as an overwritten echo is lost.
fn shared() -> [Carrier; 2] {
    let config = shm::Config::new(domain_id()).unwrap();
    [(&config.clone().ring(1 << 16)).into(), (&config).into()]
}

/// Returns three ends over DDS, and three in shared memory.
fn threes() -> [[Carrier; 3]; 2] {
    let domain = DomainConfig::new(domain_id());
    let memory = shm::Config::new(domain_id()).unwrap();
    [
        std::array::from_fn(|_| Carrier::from(&Domain::open(&domain).unwrap())),
        std::array::from_fn(|_| Carrier::from(&memory)),
    ]
}

/// Returns reliable policies for a machine that is busy with other work.
fn patient() -> Qos {
    Qos::reliable().reliability(Reliability::Reliable(PATIENCE))
}

fn run(
    [here, there]: [Carrier; 2],
    program: Program,
    feed: &mut Generator,
    distribution: &Distribution,
) -> Run {
    let program = Arc::new(program);
    let options = TypeOptions {
        keyed: distribution.keyed,
        ..TypeOptions::default()
    };
    let mapping = Arc::new(Mapping::new(Arc::clone(&program), &options).unwrap());
    let got = Arc::new(Mutex::new(Samples::new()));
    let into = Arc::clone(&got);
    let subscriber = Subscriber::open(&there, &mapping, distribution, move |r| {
        let mut got = into.lock().unwrap();
        let bytes = r.sample.bytes().to_vec();
        got.entry(r.topic.to_owned()).or_default().push(bytes);
    })
    .unwrap();
    let (publisher, sent) = publish(&here, &mapping, feed, distribution, &subscriber);
    wait_until("the token and all samples", || {
        subscriber.announced() == (1, publisher.written())
            && subscriber.received() == publisher.written()
    });
    if distribution.echo {
        wait_until("all echoes", || publisher.echoed() == publisher.written());
    }
    assert_eq!(
        (subscriber.echo_failed(), publisher.without_topic()),
        (0, 0)
    );
    subscriber.check().unwrap();
    let got = std::mem::take(&mut *got.lock().unwrap());
    Run {
        echoed: publisher.echoed(),
        sent,
        got,
    }
}

fn publish(
    carrier: &Carrier,
    mapping: &Arc<Mapping>,
    feed: &mut Generator,
    distribution: &Distribution,
    subscriber: &Subscriber,
) -> (Publisher, Samples) {
    let mut publisher = open(carrier, mapping, distribution);
    // Both sides: a writer of echoes that has not discovered their reader yet would lose the first
    // ones.
    wait_until("each other", || {
        publisher.is_matched() && subscriber.is_matched()
    });
    let sent = write(&mut publisher, mapping, feed, distribution);
    assert!(publisher.finish(PATIENCE).unwrap());
    (publisher, sent)
}

fn open(carrier: &Carrier, mapping: &Arc<Mapping>, distribution: &Distribution) -> Publisher {
    let ignore = |_: &_| -> fanfare_dds::distribute::RoundTrips { Box::new(|_| ()) };
    Publisher::open(carrier, mapping, distribution, ignore).unwrap()
}

/// Publishes a feed, and returns its samples.
fn write(
    publisher: &mut Publisher,
    mapping: &Arc<Mapping>,
    feed: &mut Generator,
    distribution: &Distribution,
) -> Samples {
    let mut decoder = Decoder::new(Arc::clone(mapping.program()));
    let mut record = Record::new();
    let mut converter = Converter::new(Arc::clone(mapping), 4096);
    let mut sent = Samples::new();
    while let Some(packet) = feed.next_packet().unwrap() {
        decoder.reset();
        let mut rest = packet;
        while !rest.is_empty() {
            let n = decoder.decode_record(rest, &mut record).unwrap();
            rest = &rest[n..];
            converter
                .samples(&record, |s| {
                    if !distribution.carries(s.template) {
                        return;
                    }
                    let has_topic = s.key.is_none_or(|key| {
                        distribution.keyed || key < distribution.securities.into()
                    });
                    assert_eq!(publisher.publish(&s).unwrap(), has_topic);
                    let name = match s.key {
                        Some(key) if !distribution.keyed => format!("{}_{key}", s.template.name),
                        _ => s.template.name.clone(),
                    };
                    sent.entry(name).or_default().push(s.cdr.to_vec());
                })
                .unwrap();
        }
    }
    sent
}

#[test]
fn simple_messages_arrive_and_come_back() {
    for carriers in [dds(), shared()] {
        let mut feed = Generator::simple(Program::simple(), 3_000, PACKET_SIZE);
        let distribution = Distribution {
            qos: patient(),
            ..Distribution::default()
        };
        let run = run(carriers, Program::simple(), &mut feed, &distribution);
        assert_eq!(run.sent["Quote"].len(), 750);
        assert_eq!(run.got, run.sent);
        assert_eq!(run.echoed, 3_000);
    }
}

#[test]
fn complex_messages_go_to_a_topic_for_each_security() {
    for carriers in [dds(), shared()] {
        let mut feed = Generator::complex(Program::complex(), 600, None, ComplexOptions::default());
        let distribution = Distribution {
            qos: patient(),
            ..Distribution::default()
        };
        let run = run(carriers, Program::complex(), &mut feed, &distribution);
        assert_eq!(run.got, run.sent);
        assert!(run.sent.len() > 90, "{} topics", run.sent.len());
    }
}

#[test]
fn keyed_topics_carry_all_securities() {
    for carriers in [dds(), shared()] {
        let mut feed = Generator::complex(Program::complex(), 600, None, ComplexOptions::default());
        let distribution = Distribution {
            keyed: true,
            echo: false,
            qos: patient(),
            ..Distribution::default()
        };
        let run = run(carriers, Program::complex(), &mut feed, &distribution);
        let names: Vec<_> = run.got.keys().map(String::as_str).collect();
        assert_eq!(names, ["MarketData", "QuoteRequest"]);
        assert_eq!(run.got, run.sent);
    }
}

#[test]
fn the_topic_of_the_only_security_has_no_samples_of_others() {
    for [here, there] in [dds(), shared()] {
        let mapping = Mapping::new(Arc::new(Program::complex()), &TypeOptions::default());
        let mapping = Arc::new(mapping.unwrap());
        let distribution = Distribution {
            securities: 1,
            qos: patient(),
            ..Distribution::default()
        };
        let got = Arc::new(Mutex::new(Samples::new()));
        let into = Arc::clone(&got);
        let subscriber = Subscriber::open(&there, &mapping, &distribution, move |r| {
            let mut got = into.lock().unwrap();
            let bytes = r.sample.bytes().to_vec();
            got.entry(r.topic.to_owned()).or_default().push(bytes);
        });
        let subscriber = subscriber.unwrap();
        let mut feed = Generator::complex(Program::complex(), 600, None, ComplexOptions::default());
        let (publisher, sent) = publish(&here, &mapping, &mut feed, &distribution, &subscriber);
        wait_until("the token and all samples", || {
            subscriber.announced() == (1, publisher.written())
                && subscriber.received() == publisher.written()
        });
        let all: usize = sent.values().map(Vec::len).sum();
        assert_eq!(publisher.written() + publisher.without_topic(), all as u64);
        let names: Vec<_> = got.lock().unwrap().keys().cloned().collect();
        assert_eq!(names, ["MarketData_0", "QuoteRequest_0"]);
        for (name, samples) in &*got.lock().unwrap() {
            assert_eq!(samples, &sent[name], "{name}");
        }
    }
}

#[test]
fn the_samples_of_one_publisher_do_not_hide_the_losses_of_another() {
    for [early, late, there] in threes() {
        let mapping = Mapping::new(Arc::new(Program::simple()), &TypeOptions::default());
        let mapping = Arc::new(mapping.unwrap());
        let distribution = Distribution {
            echo: false,
            qos: patient(),
            ..Distribution::default()
        };
        let feed = || Generator::simple(Program::simple(), 300, PACKET_SIZE);
        let mut early = open(&early, &mapping, &distribution);
        // Nobody receives these.
        write(&mut early, &mapping, &mut feed(), &distribution);
        let subscriber = Subscriber::open(&there, &mapping, &distribution, |_| ()).unwrap();
        let mut late = open(&late, &mapping, &distribution);
        wait_until("the subscriber", || early.is_matched() && late.is_matched());
        write(&mut early, &mapping, &mut feed(), &distribution);
        write(&mut late, &mapping, &mut feed(), &distribution);
        assert!(early.finish(PATIENCE).unwrap());
        wait_until("the first token and all samples", || {
            subscriber.announced() == (1, 600) && subscriber.received() == 600
        });
        assert_eq!(subscriber.lost(), 300);
        assert!(late.finish(PATIENCE).unwrap());
        wait_until("the second token", || subscriber.announced() == (2, 900));
        assert_eq!(subscriber.lost(), 300);
    }
}

#[test]
fn a_subscriber_that_panics_in_shared_memory_says_so_and_frees_the_publisher() {
    let [here, there] = shared();
    let mapping = Mapping::new(Arc::new(Program::simple()), &TypeOptions::default()).unwrap();
    let mapping = Arc::new(mapping);
    let distribution = Distribution {
        echo: false,
        qos: patient(),
        ..Distribution::default()
    };
    let subscriber = Subscriber::open(there, &mapping, &distribution, |_| panic!("on purpose"));
    let mut feed = Generator::simple(Program::simple(), 3_000, PACKET_SIZE);
    let subscriber = subscriber.unwrap();
    let (publisher, _) = publish(&here, &mapping, &mut feed, &distribution, &subscriber);
    assert_eq!(publisher.written(), 3_000);
    wait_until("the word of the panic", || subscriber.check().is_err());
}

/// The subscriber took each token for a sample, and never ended.
#[test]
fn a_feed_with_two_topics_of_one_name_is_not_opened() {
    let xml = "<templates><template name=\"Quote\" id=\"1\"><uInt32 name=\"X\"/></template>\
               <template name=\"DoneToken\" id=\"2\"><uInt64 name=\"samples\"/></template>\
               </templates>";
    let program = Arc::new(Program::parse(xml).unwrap());
    let mapping = Mapping::new(program, &TypeOptions::default()).unwrap();
    let distribution = Distribution::default();
    let [here, there] = shared();
    let ignore = |_: &_| -> fanfare_dds::distribute::RoundTrips { Box::new(|_| ()) };
    let publisher = Publisher::open(&here, &mapping, &distribution, ignore);
    let subscriber = Subscriber::open(&there, &mapping, &distribution, |_| ());
    for error in [publisher.err(), subscriber.err()] {
        let is_refused =
            matches!(&error, Some(Error::SameTopic { topic, .. }) if topic == "DoneToken");
        assert!(is_refused, "{error:?}");
    }
}
