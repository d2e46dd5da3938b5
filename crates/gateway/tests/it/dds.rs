//! Two gateways with DDS between them.

use crate::client::{Client, value};
use crate::{eventually, start, stop};
use fanfare_dds::cdr::CdrBuffer;
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Policy, Qos, Status, Writer};
use fanfare_gateway::{Config, DdsEnd, DdsQos, Gateway, Notice, Outlet, Why};
use fanfare_peers::domain;
use std::sync::mpsc;
use std::time::Duration;

/// Returns an end for snapshots only, in this domain. A write waits for a subscriber as long as
/// allowed, because on a busy machine the default expires soon, and a dropped message would be
/// missing here.
fn end(domain: u32) -> DdsEnd {
    DdsEnd {
        domain,
        wait_ms: 10_000,
        msg_types: vec!["W".to_owned()],
        ..DdsEnd::default()
    }
}

fn subscribing(domain: u32) -> Gateway {
    start(|c| c.dds.subscribe = Some(end(domain)))
}

fn connected(publisher: &Gateway, subscriber: &Gateway) {
    eventually("the match", || {
        publisher.count("dds_readers") > 0 && subscriber.count("dds_writers") > 0
    });
}

fn snapshot(i: u64) -> String {
    format!("55=SYM{}|20001=P-{i}|268=1|269=0|270=1.{i}|", i % 7)
}

/// Checks that the next messages are those from `from` up to `to`, whole and in order.
fn expect(consumer: &mut Client, from: u64, to: u64) {
    for i in from..to {
        let message = consumer.receive().unwrap();
        assert!(
            message.contains(&format!("|{}10=", snapshot(i))),
            "{message}"
        );
        assert_eq!(value(&message, 35), Some("W"), "{message}");
        assert_eq!(value(&message, 34), Some((i + 2).to_string().as_str()));
    }
}

fn bridges(change: impl Fn(&mut Config)) {
    let id = domain();
    let first = start(|c| {
        change(c);
        c.dds.publish = Some(end(id));
    });
    let second = start(|c| {
        change(c);
        c.dds.subscribe = Some(end(id));
    });
    connected(&first, &second);
    let mut near = Client::log_on(first.consumers(), "NEAR");
    let mut far: Vec<Client> = (0..4)
        .map(|i| Client::log_on(second.consumers(), &format!("FAR{i}")))
        .collect();
    let mut producer = Client::log_on(first.producers(), "P");
    for i in 0..500 {
        producer.send("W", &snapshot(i));
        producer.send("W", "55=UNMARKED|268=0|");
        producer.send("j", &format!("20001=J-{i}|45=1|372=W|380=0|"));
    }
    for consumer in &mut far {
        expect(consumer, 0, 500);
    }
    assert_eq!(near.receive().map(|m| m.contains("SYM0")), Some(true));
    for (gateway, name, wanted) in [
        (&first, "published", 500),
        (&first, "other_types", 500),
        (&first, "unsent", 0),
        (&first, "overrun", 0),
        (&second, "taken", 500),
        (&second, "missing", 0),
        (&second, "seen_before", 0),
        (&second, "malformed", 0),
    ] {
        eventually(name, || gateway.count(name) == wanted);
    }
    stop(first);
    stop(second);
}

#[test]
fn what_comes_in_at_the_first_goes_out_at_the_second_once_and_in_order() {
    bridges(|_| {});
}

/// Sends snapshots and changes of one symbol in bursts, which two topics carry.
#[test]
fn messages_of_several_types_come_out_in_the_order_in_which_they_came_in() {
    let id = domain();
    let both = || DdsEnd {
        msg_types: ["X", "W"].map(str::to_owned).to_vec(),
        ..end(id)
    };
    let first = start(|c| c.dds.publish = Some(both()));
    let second = start(|c| c.dds.subscribe = Some(both()));
    eventually("both matches", || {
        first.count("dds_readers") == 2 && second.count("dds_writers") == 2
    });
    let mut consumer = Client::log_on(second.consumers(), "C");
    let mut producer = Client::log_on(first.producers(), "P");
    let mut next = 0;
    for burst in 0..200 {
        let sent = next + 1 + burst % 20;
        for i in next..sent {
            let msg_type = if i % 3 == 0 { "W" } else { "X" };
            producer.send(msg_type, &format!("55=ABC|20001=P-{i}|"));
        }
        for i in next..sent {
            let message = consumer.receive().unwrap();
            let id = format!("P-{i}");
            assert_eq!(value(&message, 20001), Some(id.as_str()), "{message}");
        }
        next = sent;
    }
    eventually("all", || second.count("taken") == next);
    assert_eq!((second.count("missing"), second.count("overtaken")), (0, 0));
    stop(first);
    stop(second);
}

/// Delivers a message between two others once nobody waits for it any more.
#[test]
fn a_message_that_comes_after_later_ones_is_announced() {
    let id = domain();
    let gateway = start(|c| {
        c.dds.subscribe = Some(DdsEnd {
            msg_types: ["W", "X"].map(str::to_owned).to_vec(),
            ..end(id)
        });
    });
    let (snapshots, changes) = (stranger(id, "Fix_W"), stranger(id, "Fix_X"));
    eventually("the match", || gateway.count("dds_writers") == 2);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let message = |msg_type, text| ("A", msg_type, text);
    write_ordered(&changes, ("", 0), (77, 1, 1), message("X", "262=FIRST|"));
    write_ordered(&changes, ("", 0), (77, 2, 4), message("X", "262=FOURTH|"));
    eventually("the fourth", || gateway.count("taken") == 2);
    write_ordered(&snapshots, ("", 0), (77, 1, 2), message("W", "262=SECOND|"));
    write_ordered(&snapshots, ("", 0), (77, 2, 3), message("W", "262=THIRD|"));
    write_ordered(&snapshots, ("", 0), (77, 3, 5), message("W", "262=FIFTH|"));
    let mut next = || {
        let message = consumer.receive().unwrap();
        let text = value(&message, 262).or_else(|| value(&message, 58));
        text.unwrap().split(" from=").next().unwrap().to_owned()
    };
    let late = "missing=dds-late count=unknown";
    for wanted in ["FIRST", "FOURTH", late, "SECOND", "THIRD", "FIFTH"] {
        assert_eq!(next(), wanted);
    }
    for (name, wanted) in [("taken", 5), ("overtaken", 2), ("missing", 0)] {
        eventually(name, || gateway.count(name) == wanted);
    }
    stop(gateway);
}

#[test]
fn with_a_thread_for_each_agent() {
    bridges(|c| {
        c.threads = fanfare_gateway::Threads::Dedicated;
        c.workers = 2;
    });
}

/// Checks that two gateways that relay each other's messages cause no loop.
#[test]
fn a_ring_of_two_relays_does_not_echo() {
    let (there, back) = (domain(), domain());
    let relay = |publish, subscribe| {
        start(|c| {
            c.dds.publish = Some(end(publish));
            c.dds.subscribe = Some(end(subscribe));
            c.dds.relay = true;
        })
    };
    let (first, second) = (relay(there, back), relay(back, there));
    connected(&first, &second);
    connected(&second, &first);
    let mut at_first = Client::log_on(first.consumers(), "C");
    let mut at_second = Client::log_on(second.consumers(), "C");
    let mut producer = Client::log_on(first.producers(), "P");
    for i in 0..100 {
        producer.send("W", &snapshot(i));
    }
    expect(&mut at_first, 0, 100);
    expect(&mut at_second, 0, 100);
    eventually("the way back", || first.count("own") == 100);
    // The count follows the write, when the other gateway already has the message.
    eventually("the count", || second.count("relayed") == 100);
    assert_eq!((first.count("taken"), first.count("relayed")), (0, 0));
    // No message is delivered twice: the next message is the next one sent.
    producer.send("W", &snapshot(100));
    expect(&mut at_first, 100, 101);
    expect(&mut at_second, 100, 101);
    stop(first);
    stop(second);
}

#[test]
fn two_in_one_domain_that_publish_and_subscribe_hear_each_other_once() {
    let id = domain();
    let both = || {
        start(|c| {
            c.dds.publish = Some(end(id));
            c.dds.subscribe = Some(end(id));
        })
    };
    let (first, second) = (both(), both());
    connected(&first, &second);
    connected(&second, &first);
    let mut clients = [&first, &second].map(|g| {
        (
            Client::log_on(g.consumers(), "C"),
            Client::log_on(g.producers(), "P"),
        )
    });
    for (turn, i) in (0..20).enumerate() {
        clients[turn % 2].1.send("W", &snapshot(i));
        for (consumer, _) in &mut clients {
            expect(consumer, i, i + 1);
        }
    }
    assert_eq!((first.count("own"), second.count("own")), (0, 0));
    assert_eq!((first.count("taken"), second.count("taken")), (10, 10));
    stop(first);
    stop(second);
}

#[test]
fn both_directions_in_one_domain_have_policies_of_their_own() {
    let id = domain();
    let last_values = || DdsEnd {
        qos: DdsQos::LastValue,
        ..end(id)
    };
    let both = start(|c| {
        c.dds.publish = Some(last_values());
        c.dds.subscribe = Some(DdsEnd {
            wait_ms: 20,
            ..end(id)
        });
    });
    let subscriber = start(|c| c.dds.subscribe = Some(last_values()));
    connected(&both, &subscriber);
    stop(subscriber);
    stop(both);
}

/// Returns the type of the samples, written independently.
fn sample_type() -> StructType {
    StructType::new("Fanfare::FixMessage")
        .key("Symbol", Kind::String(None))
        .member("MsgType", Kind::String(None))
        .member("Origin", Kind::UInt64)
        .member("Number", Kind::UInt64)
        .member("IngressTime", Kind::Int64)
        .member("Body", Kind::Sequence(Box::new(Kind::Byte), None))
        .member("Channel", Kind::String(None))
        .member("Epoch", Kind::UInt64)
        .member("FeedNumber", Kind::UInt64)
        .member("FeedIndex", Kind::UInt32)
        .member("Order", Kind::UInt64)
        .member("Types", Kind::String(None))
        .member("Missing", Kind::String(None))
        .member("MissingCount", Kind::UInt64)
        .member("MissingFirst", Kind::UInt64)
        .member("MissingLast", Kind::UInt64)
}

/// Returns a writer of a participant that is not a gateway. It has discovered the gateway, because
/// earlier samples would be lost.
pub(crate) fn stranger(id: u32, topic: &str) -> Writer {
    let t = sample_type();
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let topic = domain.topic(topic, &t, &Qos::reliable()).unwrap();
    let (found, wait) = mpsc::channel();
    let writer = topic
        .writer(&Qos::reliable())
        .on_status(move |status| _ = found.send(status))
        .open()
        .unwrap();
    let status = wait.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(
        matches!(status, Status::Matched { current: 1, .. }),
        "{status:?}"
    );
    writer
}

fn write(writer: &Writer, number: u64, msg_type: &str, body: &str) {
    write_of(writer, "EURUSD", number, msg_type, body);
}

fn write_of(writer: &Writer, symbol: &str, number: u64, msg_type: &str, body: &str) {
    write_in(writer, ("", 0), (77, number), (symbol, msg_type, body));
}

/// Writes a message of a feed, with its number in the feed, as the gateway of this origin does that
/// has no order of its topics.
pub(crate) fn write_in(
    writer: &Writer,
    feed: (&str, u64),
    (origin, number): (u64, u64),
    message: (&str, &str, &str),
) {
    write_ordered(writer, feed, (origin, number, 0), message);
}

/// Writes a message with its place among all of its gateway, which publishes the types W and X.
fn write_ordered(
    writer: &Writer,
    (channel, in_feed): (&str, u64),
    (origin, number, order): (u64, u64, u64),
    (symbol, msg_type, body): (&str, &str, &str),
) {
    let mut buffer = CdrBuffer::with_capacity(1 << 18);
    buffer.begin();
    buffer.string(symbol.as_bytes());
    buffer.string(msg_type.as_bytes());
    buffer.u64(origin);
    buffer.u64(number);
    buffer.i64(0);
    buffer.octets(body.replace('|', "\x01").as_bytes());
    buffer.string(channel.as_bytes());
    buffer.u64(in_feed);
    buffer.u64(in_feed);
    buffer.u32(0);
    buffer.u64(order);
    buffer.string(b"W X");
    buffer.string(b"");
    (0..3).for_each(|_| buffer.u64(0));
    writer.write(buffer.finish().unwrap()).unwrap();
}

#[test]
fn what_is_no_message_is_dropped_and_counted() {
    let id = domain();
    let gateway = subscribing(id);
    let writer = stranger(id, "Fix_W");
    eventually("the match", || gateway.count("dds_writers") == 1);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let long = format!("58={}|", "x".repeat(100_000));
    let bodies = [
        "",
        "no field",
        "55=A|10=000|8=FIX.4.4|9=5|35=5|10=000|",
        "34=9|55=A|",
        long.as_str(),
    ];
    for (i, body) in (1..).zip(bodies) {
        write(&writer, i, "W", body);
    }
    write(&writer, 8, "X", "55=ANOTHER TYPE|");
    write(&writer, 10, "W", "55=GOOD|");
    eventually("the good one", || gateway.count("taken") == 1);
    write(&writer, 10, "W", "55=AGAIN|");
    write(&writer, 9, "W", "55=BEFORE|");
    write(&writer, 13, "W", "55=LATER|");
    let mut next = |number: u64| {
        let message = consumer.receive().unwrap();
        assert_eq!(value(&message, 34), Some(number.to_string().as_str()));
        message
    };
    assert_eq!(value(&next(2), 55), Some("GOOD"));
    let told = next(3);
    let text = value(&told, 58).unwrap();
    assert!(text.starts_with("missing=dds-gap count=2 from="), "{told}");
    assert_eq!(value(&next(4), 55), Some("LATER"));
    for (name, wanted) in [
        ("malformed", 6),
        ("seen_before", 2),
        ("missing", 2),
        ("taken", 2),
    ] {
        eventually(name, || gateway.count(name) == wanted);
    }
    stop(gateway);
}

#[test]
fn policies_that_do_not_fit_are_told_on_both_sides() {
    let id = domain();
    let first = start(|c| {
        c.dds.publish = Some(DdsEnd {
            qos: DdsQos::BestEffort,
            ..end(id)
        });
    });
    let second = subscribing(id);
    for gateway in [&first, &second] {
        let expected = Notice::Dds {
            topic: "Fix_W".to_owned(),
            what: Status::IncompatibleQos {
                total: 1,
                policy: Policy::Reliability,
            },
        };
        eventually("the notice", || gateway.notices().any(|n| n == expected));
        assert!(expected.is_trouble());
        eventually("the count", || gateway.count("incompatible") == 1);
    }
    stop(first);
    stop(second);
}

#[test]
fn who_comes_late_gets_the_last_message_of_each_symbol() {
    let id = domain();
    let last = |c: &mut Config| {
        let end = DdsEnd {
            qos: DdsQos::LastValue,
            ..end(id)
        };
        c.dds.publish = Some(end.clone());
        c.dds.subscribe = Some(end);
    };
    let first = start(last);
    let mut producer = Client::log_on(first.producers(), "P");
    for i in 0..70 {
        producer.send("W", &snapshot(i));
    }
    // The numbers of messages that later ones of their Symbol replaced are left out.
    for i in 10..30 {
        producer.send("W", &snapshot(7 * i));
    }
    eventually("the last", || first.count("published") == 90);
    let second = start(last);
    eventually("the last values", || second.count("taken") == 7);
    assert_eq!(second.count("missing"), 0);
    stop(first);
    stop(second);
}

/// Overwrites the ring to DDS while a write waits for another subscriber.
#[test]
fn a_subscriber_counts_what_was_overwritten_before_it_was_published() {
    let id = domain();
    let publisher = start(|c| {
        c.ring_bytes = 1 << 16;
        c.limits.message_bytes = 1 << 13;
        c.dds.publish = Some(end(id));
    });
    let subscriber = subscribing(id);
    let qos = Qos::reliable().resource_limits(Some(4), None, None);
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let topic = domain.topic("Fix_W", &sample_type(), &qos).unwrap();
    let stuck = topic.reader(&qos).open().unwrap();
    eventually("the match", || {
        publisher.count("dds_readers") == 2 && subscriber.count("dds_writers") == 1
    });
    let mut producer = Client::log_on(publisher.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    eventually("the first one", || subscriber.count("taken") == 1);
    let text = "x".repeat(7_000);
    let mut number = 1;
    // Many times what the ring holds.
    eventually("a backlog", || {
        number += 1;
        producer.send("W", &format!("20001=P-{number}|55=A|58={text}|"));
        publisher.count("marked") > publisher.count("published") + 100
    });
    drop(stuck);
    eventually("the loss", || publisher.count("overrun") > 0);
    eventually("the count", || {
        let all = ["published", "unsent", "overrun"].map(|name| publisher.count(name));
        let [taken, missing] = ["taken", "missing"].map(|name| subscriber.count(name));
        all.iter().sum::<u64>() == number && [taken, missing] == [all[0], all[1] + all[2]]
    });
    stop(publisher);
    stop(subscriber);
}

/// Checks that the publisher waits a little for each message to a hanging process and counts it,
/// and that its own consumers receive everything.
#[test]
fn a_subscriber_that_stops_reading_does_not_hold_the_consumers_up() {
    let id = domain();
    let impatient = DdsEnd {
        wait_ms: 100,
        ..end(id)
    };
    let gateway = start(|c| c.dds.publish = Some(impatient));
    let t = sample_type();
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let qos = Qos::reliable().resource_limits(Some(4), None, None);
    let _stuck = domain
        .topic("Fix_W", &t, &qos)
        .unwrap()
        .reader(&qos)
        .open()
        .unwrap();
    eventually("the match", || gateway.count("dds_readers") == 1);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    let text = "x".repeat(20_000);
    let mut number = 0;
    // The number varies, because a publisher that reads a full ring late skips overwritten
    // messages.
    eventually("what could not be sent", || {
        number += 1;
        producer.send("W", &format!("20001=P-{number}|55=A|58={text}|"));
        let message = consumer.receive().unwrap();
        let id = format!("P-{number}");
        assert_eq!(value(&message, 20001), Some(id.as_str()));
        number >= 600 && gateway.count("unsent") > 0
    });
    stop(gateway);
}

/// Checks that a process that is there and takes nothing stops its topic alone, and that the topic
/// goes on once the process is gone.
#[test]
fn a_subscriber_that_takes_nothing_does_not_stop_the_other_topics() {
    let id = domain();
    let both = || DdsEnd {
        msg_types: ["W", "X"].map(str::to_owned).to_vec(),
        wait_ms: 100,
        ..end(id)
    };
    let publisher = start(|c| c.dds.publish = Some(both()));
    let subscriber = start(|c| c.dds.subscribe = Some(both()));
    let qos = Qos::reliable().resource_limits(Some(4), None, None);
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let topic = domain.topic("Fix_W", &sample_type(), &qos).unwrap();
    let stuck = topic.reader(&qos).open().unwrap();
    eventually("the match", || {
        publisher.count("dds_readers") == 3 && subscriber.count("dds_writers") == 2
    });
    let mut producer = Client::log_on(publisher.producers(), "P");
    // Bursts of short ones are no more than a topic sends ahead.
    let (long, short) = ("x".repeat(20_000), "x");
    let mut number = 0;
    let counts = || ["published", "unsent"].map(|name| publisher.count(name));
    let mut send = |msg_type, text: &str| {
        number += 1;
        producer.send(msg_type, &format!("20001=P-{number}|55=A|58={text}|"));
        eventually("the turn", || counts().iter().sum::<u64>() == number);
    };
    let is_told = |begins: bool| {
        publisher.notices().any(|notice| match notice {
            Notice::DdsStalled { topic, .. } => {
                assert_eq!(topic, "Fix_W");
                begins
            }
            Notice::DdsResumed { topic } => !begins && topic == "Fix_W",
            _ => false,
        })
    };
    eventually("the notice", || {
        send("W", &long);
        is_told(true)
    });
    let [published, unsent] = counts();
    for _ in 0..300 {
        send("W", short);
        send("X", short);
    }
    assert_eq!(counts(), [published + 300, unsent + 300]);
    drop(stuck);
    eventually("the end", || {
        send("W", short);
        is_told(false)
    });
    let [published, unsent] = counts();
    (0..300).for_each(|_| send("W", short));
    assert_eq!(counts(), [published + 300, unsent]);
    eventually("the rest", || {
        let [taken, missing] = ["taken", "missing"].map(|name| subscriber.count(name));
        [taken, missing] == counts()
    });
    assert_eq!(subscriber.count("seen_before"), 0);
    stop(publisher);
    stop(subscriber);
}

/// Each message could wait ten seconds for it, and hundreds are queued.
#[test]
fn a_subscriber_that_stops_reading_does_not_hold_the_stop_up() {
    let id = domain();
    let gateway = start(|c| {
        // For more messages than a writer sends ahead of a subscriber.
        c.ring_bytes = 1 << 24;
        c.dds.publish = Some(end(id));
    });
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let qos = Qos::reliable().resource_limits(Some(4), None, None);
    let topic = domain.topic("Fix_W", &sample_type(), &qos).unwrap();
    let _stuck = topic.reader(&qos).open().unwrap();
    eventually("the match", || gateway.count("dds_readers") == 1);
    let mut producer = Client::log_on(gateway.producers(), "P");
    let text = "x".repeat(20_000);
    let mut number = 0;
    eventually("a backlog", || {
        number += 1;
        producer.send("W", &format!("20001=P-{number}|55=A|58={text}|"));
        number >= 600 && gateway.count("marked") > gateway.count("published") + 100
    });
    // Messages after the stop are not checked.
    eventually("all messages", || gateway.count("marked") == number);
    let counters = gateway.counters().clone();
    let stopping = std::thread::spawn(move || stop(gateway));
    eventually("the stop", || stopping.is_finished());
    stopping.join().unwrap();
    let count = |name| fanfare_gateway::total(&counters, name);
    assert!(count("left_at_stop") > 0);
    let all = ["published", "unsent", "overrun", "left_at_stop"].map(count);
    assert_eq!(all.iter().sum::<u64>(), count("marked"), "{all:?}");
}

#[test]
fn producers_with_symbols_without_end_do_not_fill_the_publisher() {
    let id = domain();
    let few = DdsEnd {
        instances: 3,
        ..end(id)
    };
    let first = start(|c| c.dds.publish = Some(few));
    let second = subscribing(id);
    connected(&first, &second);
    let mut producer = Client::log_on(first.producers(), "P");
    for symbol in ["A", "B", "C", "D", "B", "E", "A"] {
        producer.send("W", &format!("20001=P-1|55={symbol}|"));
    }
    eventually("what is left out", || first.count("symbols_refused") == 2);
    eventually("the notice", || {
        first.notices().any(|notice| {
            let Notice::Unpublished { outlet, why, .. } = notice else {
                return false;
            };
            (outlet, why) == (Outlet::Dds, Why::OverLimit)
        })
    });
    eventually("the rest", || second.count("taken") == 5);
    // The count follows the write, when the other gateway already has the message.
    eventually("the count", || first.count("published") == 5);
    stop(first);
    stop(second);
}

#[test]
fn long_symbols_are_told_apart_and_those_too_long_for_a_key_are_left_out() {
    let id = domain();
    let few = DdsEnd {
        instances: 2,
        ..end(id)
    };
    let first = start(|c| c.dds.publish = Some(few));
    let second = subscribing(id);
    connected(&first, &second);
    let mut producer = Client::log_on(first.producers(), "P");
    let long = |len| "X".repeat(len);
    // A third Symbol of 300 bytes is beyond `instances`: the first two are two instances.
    let (one, other) = (long(1_014) + "A", long(1_014) + "B");
    for symbol in [one.clone(), long(1_016), long(1_100), other, long(300), one] {
        producer.send("W", &format!("20001=P-1|55={symbol}|"));
    }
    eventually("what is left out", || first.count("symbols_refused") == 3);
    eventually("the rest", || second.count("taken") == 3);
    stop(first);
    stop(second);
}

/// Symbols that differ after a NUL would be one instance.
#[test]
fn symbols_with_a_nul_are_left_out() {
    let id = domain();
    let first = start(|c| c.dds.publish = Some(end(id)));
    let second = subscribing(id);
    connected(&first, &second);
    let mut producer = Client::log_on(first.producers(), "P");
    for symbol in ["A\0B", "A\0C", "A"] {
        producer.send("W", &format!("20001=P-1|55={symbol}|"));
    }
    eventually("what is left out", || first.count("symbols_refused") == 2);
    eventually("the rest", || second.count("taken") == 1);
    stop(first);
    stop(second);
}

/// Floods one topic with symbols. The other topic is unaffected.
#[test]
fn a_topic_with_symbols_without_end_is_left_and_no_other() {
    let id = domain();
    let gateway = start(|c| {
        c.dds.subscribe = Some(DdsEnd {
            msg_types: vec!["W".to_owned(), "X".to_owned()],
            instances: 100,
            ..end(id)
        });
    });
    let (good, bad) = (stranger(id, "Fix_W"), stranger(id, "Fix_X"));
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    write(&good, 1, "W", "55=BEFORE|");
    for n in 1..=101 {
        write_of(&bad, &format!("S{n}"), n, "X", "55=ANY|");
    }
    let closed = |n: &Notice| matches!(n, Notice::DdsClosed { .. });
    let mut told = None;
    eventually("the notice", || {
        told = gateway.notices().find(closed);
        told.is_some()
    });
    let told = told.unwrap();
    let line = told.to_string();
    assert!(told.is_trouble());
    assert!(line.contains("topic \"Fix_X\" is closed: more than 100 keys"));
    assert!(line.ends_with("; the other topics go on"), "{line}");
    assert_eq!(gateway.count("topics_closed"), 1);
    write(&good, 2, "W", "55=AFTER|");
    let mut came = Vec::new();
    while came.last().map(String::as_str) != Some("AFTER") {
        let message = consumer.receive().unwrap();
        came.push(value(&message, 55).unwrap().to_owned());
    }
    // These samples have no Order, so that the topics have none in common.
    came.retain(|symbol| symbol != "ANY");
    assert_eq!(came, ["BEFORE", "AFTER"]);
    stop(gateway);
}
