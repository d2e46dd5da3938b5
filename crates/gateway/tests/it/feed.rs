//! A FAST feed as the source, with DDS topics besides the consumers.

use crate::client::Client;
use crate::{eventually, start, stop};
use fanfare_dds::distribute::Distribution;
use fanfare_dds::fast::{Mapping, TypeOptions};
use fanfare_dds::{Domain, DomainConfig, Policy, Qos, Reader, Status};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::Program;
use fanfare_fast::generate::{ComplexOptions, Generator};
use fanfare_gateway::{Config, Notice, Outlet, Why};
use fanfare_peers::domain;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;

/// Returns a multicast group on an unused port.
pub(crate) fn group(last: u8) -> SocketAddrV4 {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = port.local_addr().unwrap().port();
    SocketAddrV4::new(Ipv4Addr::new(239, 255, 83, last), port)
}

/// Configures the built-in complex feed on these lines.
pub(crate) fn complex(config: &mut Config, lines: &[SocketAddrV4], rest: &str) {
    let lines: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
    let text = format!(
        "[feed]\ntemplates = \"builtin:complex\"\nlines = [{}]\n{rest}",
        lines.join(", ")
    );
    config.feeds = Config::from_toml(&text).unwrap().feeds;
}

/// Returns a reader of the feed's topic, or of one of those of its securities.
fn reader(id: u32, keyed: bool, qos: &Qos) -> Reader {
    let options = TypeOptions {
        keyed,
        ..TypeOptions::default()
    };
    let mapping = Mapping::new(Arc::new(Program::complex()), &options).unwrap();
    let distribution = Distribution {
        keyed,
        ..Distribution::default()
    };
    let data = mapping.types().find(|t| t.name == "MarketData").unwrap();
    let topics = distribution.topics(data);
    assert_eq!(topics.len(), if keyed { 1 } else { 100 });
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let topic = domain.topic(&topics[0], &data.sample, qos).unwrap();
    topic.reader(qos).open().unwrap()
}

/// Returns a reader of the feed's topic that takes nothing and holds four samples, so that reliable
/// writers wait for it while it exists.
fn stuck(id: u32) -> Reader {
    let qos = Qos::reliable().resource_limits(Some(4), None, None);
    reader(id, true, &qos)
}

#[test]
fn readers_of_a_feed_are_counted_and_those_whose_policies_do_not_fit_are_told() {
    for keyed in [true, false] {
        let id = domain();
        let gateway = start(|c| {
            let topics = format!("[feed.publish]\ndomain = {id}\nkeyed = {keyed}\n");
            complex(c, &[group(240)], &topics);
        });
        let fits = reader(id, keyed, &Qos::reliable());
        let _other = reader(id, keyed, &Qos::last_value());
        eventually("the match", || gateway.count("dds_readers") == 1);
        eventually("the notice", || {
            gateway.notices().any(|notice| {
                let Notice::Dds { topic, what } = &notice else {
                    return false;
                };
                let (total, policy) = (1, Policy::Durability);
                *what == Status::IncompatibleQos { total, policy }
                    && topic.starts_with("MarketData")
                    && notice.is_trouble()
            })
        });
        eventually("the count", || gateway.count("incompatible") == 1);
        drop(fits);
        eventually("the end", || gateway.count("dds_readers") == 0);
        stop(gateway);
    }
}

#[test]
fn samples_of_more_keys_than_a_topic_may_have_are_told() {
    let (id, line) = (domain(), group(241));
    let gateway = start(|c| {
        let topics = format!("[feed.publish]\ndomain = {id}\nkeyed = true\ninstances = 2\n");
        complex(c, &[line], &topics);
    });
    let sender = Sender::open(&SenderConfig::new(line)).unwrap();
    let mut feed = Generator::complex(Program::complex(), 200, None, ComplexOptions::default());
    let mut told = 0;
    eventually("the notice", || {
        if let Some(packet) = feed.next_packet().unwrap() {
            sender.send(packet).unwrap();
        }
        for notice in gateway.notices() {
            if let Notice::Unpublished {
                outlet: Outlet::Feed,
                why: Why::OverLimit,
                count,
            } = notice
            {
                told += count;
            }
        }
        told > 0
    });
    assert!(gateway.count("samples_of_more_keys") >= told);
    stop(gateway);
}

#[test]
fn a_subscriber_that_hangs_holds_up_neither_consumers_nor_the_stop() {
    const MESSAGES: usize = 15_000;
    let (id, line) = (domain(), group(1));
    let gateway = start(|c| {
        c.ring_bytes = 1 << 19;
        let topics = format!("[feed.publish]\ndomain = {id}\nkeyed = true\nwait_ms = 2000\n");
        complex(c, &[line], &topics);
    });
    let _stuck = stuck(id);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let consuming = std::thread::spawn(move || {
        let sender = Sender::open(&SenderConfig::new(line)).unwrap();
        let mut feed =
            Generator::complex(Program::complex(), 15_000, None, ComplexOptions::default());
        for number in 1..=MESSAGES {
            sender.send(feed.next_packet().unwrap().unwrap()).unwrap();
            // No faster than the consumer reads, so that the kernel drops nothing.
            if number % 100 == 0 {
                (0..100).for_each(|_| drop(consumer.receive().unwrap()));
            }
        }
        consumer
    });
    let mut wanted = vec![Why::Unacknowledged, Why::Overrun];
    eventually("the notices", || {
        for notice in gateway.notices() {
            if let Notice::Unpublished {
                outlet: Outlet::Feed,
                why,
                count: 1..,
            } = notice
            {
                wanted.retain(|other| *other != why);
            }
        }
        wanted.is_empty()
    });
    eventually("the last message", || consuming.is_finished());
    drop(consuming.join().unwrap());
    let counters = gateway.counters().clone();
    let stopping = std::thread::spawn(move || stop(gateway));
    eventually("the stop", || stopping.is_finished());
    stopping.join().unwrap();
    let count = |name| fanfare_gateway::total(&counters, name);
    assert_eq!(count("decoded"), MESSAGES as u64);
    assert_eq!((count("kernel_drops"), count("unread")), (0, 0));
    assert!(count("samples_overwritten") > 0 && count("samples_not_sent") > 0);
}
