//! Several gateways with the same feed, and one that subscribes to them.

use crate::client::{Client, value};
use crate::dds::{stranger, write_in};
use crate::feed::group;
use crate::{eventually, start, stop};
use fanfare_dds::Writer;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_gateway::{Config, DdsEnd, Gateway};
use fanfare_peers::domain;
use std::net::SocketAddrV4;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns templates of messages with a number and a name, in a file among cargo's. It is written
/// once, because other tests read it meanwhile.
fn templates() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(write_templates)
}

fn write_templates() -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("redundant.xml");
    let text = "<templates><template name=\"T\" id=\"1\">\
                <string name=\"MsgType\" id=\"35\"><constant value=\"Y\"/></string>\
                <uInt32 name=\"MsgSeqNum\" id=\"34\"/><string name=\"MDReqID\" id=\"262\"/>\
                </template><template name=\"Timed\" id=\"2\">\
                <string name=\"MsgType\" id=\"35\"><constant value=\"Y\"/></string>\
                <uInt32 name=\"MsgSeqNum\" id=\"34\"/><uInt64 name=\"SendingTime\" id=\"52\"/>\
                <string name=\"MDReqID\" id=\"262\"/></template></templates>";
    std::fs::write(&file, text).unwrap();
    file
}

/// Returns a message of the template, with a number below 128.
fn message(number: u8, name: &str) -> Vec<u8> {
    named(&[0xc0, 0x81, 0x80 | number], name)
}

/// Returns a message of the template with a time. Number and time are below 128.
fn timed(number: u8, time: u8, name: &str) -> Vec<u8> {
    named(&[0xc0, 0x82, 0x80 | number, 0x80 | time], name)
}

fn named(front: &[u8], name: &str) -> Vec<u8> {
    let mut bytes = [front, name.as_bytes()].concat();
    *bytes.last_mut().unwrap() |= 0x80;
    bytes
}

fn end(id: u32) -> DdsEnd {
    DdsEnd {
        domain: id,
        wait_ms: 10_000,
        msg_types: vec!["Y".to_owned()],
        ..DdsEnd::default()
    }
}

/// Configures the feed of this name on these lines. A `+` behind the name says that the times of
/// messages agree.
fn receiving(config: &mut Config, lines: &[SocketAddrV4], channel: &str) {
    let (channel, same_times) = match channel.strip_suffix('+') {
        Some(channel) => (channel, "same_times = true\n"),
        None => (channel, ""),
    };
    let lines: Vec<String> = lines.iter().map(|line| format!("\"{line}\"")).collect();
    let text = format!(
        "[feed]\ntemplates = \"{}\"\nlines = [{}]\nchannel = \"{channel}\"\n{same_times}",
        templates().display(),
        lines.join(", ")
    );
    config.feeds = Config::from_toml(&text).unwrap().feeds;
}

/// Waits until both gateways and the subscriber have found each other: what a gateway writes before
/// it has found the reader is not sent to it.
fn matched(gateways: &[Gateway; 2], subscriber: &Gateway) {
    eventually("the match", || {
        let readers = |g: &Gateway| g.count("dds_readers") == 1;
        gateways.iter().all(readers) && subscriber.count("dds_writers") == 2
    });
}

/// Two gateways that publish what they receive, and the senders of their lines.
struct Pair {
    gateways: [Gateway; 2],
    senders: [Sender; 2],
    subscriber: Gateway,
    consumer: Client,
}

impl Pair {
    fn start(last: u8, channels: [&str; 2]) -> Self {
        let id = domain();
        let lines = [group(last), group(last + 1)];
        let gateways = [0, 1].map(|i| {
            start(|c| {
                receiving(c, &[lines[i]], channels[i]);
                c.dds.publish = Some(end(id));
            })
        });
        let subscriber = start(|c| c.dds.subscribe = Some(end(id)));
        matched(&gateways, &subscriber);
        let consumer = Client::log_on(subscriber.consumers(), "C");
        let senders = lines.map(|line| Sender::open(&SenderConfig::new(line)).unwrap());
        Self {
            gateways,
            senders,
            subscriber,
            consumer,
        }
    }

    /// Returns the next messages, sorted. What one lacks is reported if the other brings it later.
    fn receive(&mut self, count: usize) -> Vec<String> {
        let next = |_| loop {
            let message = self.consumer.receive().unwrap();
            match value(&message, 262) {
                Some(name) => return name.to_owned(),
                None => assert!(message.contains("58=missing=feed-gap"), "{message}"),
            }
        };
        let mut all: Vec<String> = (0..count).map(next).collect();
        all.sort();
        all
    }

    /// Stops the gateways, and checks that every message sent was published and processed, with
    /// `taken` messages, and `doubled` that another gateway had delivered.
    fn stop(mut self, taken: u64, doubled: u64) {
        for (name, wanted) in [("taken", taken), ("from_another", doubled)] {
            eventually(name, || self.subscriber.count(name) == wanted);
        }
        for name in ["missing", "seen_before", "behind", "own", "malformed"] {
            assert_eq!(self.subscriber.count(name), 0, "{name}");
        }
        // No message is left before this one.
        let name = "ZZZZ";
        self.senders[1].send(&message(127, name)).unwrap();
        assert_eq!(self.receive(1), [name]);
        self.gateways.into_iter().for_each(stop);
        stop(self.subscriber);
    }
}

fn name(number: u8) -> String {
    format!("M{number:03}")
}

#[test]
fn fifty_messages_of_two_gateways_are_fifty() {
    let mut pair = Pair::start(11, ["one", "one"]);
    for number in 1..=50 {
        for sender in &pair.senders {
            sender.send(&message(number, &name(number))).unwrap();
        }
    }
    let wanted: Vec<String> = (1..=50).map(name).collect();
    assert_eq!(pair.receive(50), wanted);
    pair.stop(50, 50);
}

/// Loses one in twenty on each line, never the same.
#[test]
fn what_one_loses_the_other_brings() {
    let mut pair = Pair::start(21, ["one", "one"]);
    let lost = |line: u32, number: u8| (u32::from(number) * 37 + line * 11).is_multiple_of(20);
    let (mut wanted, mut sent) = (Vec::new(), 0);
    for number in 1..=120 {
        for (line, sender) in (0..).zip(&pair.senders) {
            if !lost(line, number) {
                sender.send(&message(number, &name(number))).unwrap();
                sent += 1;
            }
        }
        if !(lost(0, number) && lost(1, number)) {
            wanted.push(name(number));
        }
    }
    assert_eq!((wanted.len(), sent), (120, 228));
    assert_eq!(pair.receive(120), wanted);
    pair.stop(120, 108);
}

#[test]
fn numbers_that_begin_again_are_new_messages() {
    let mut pair = Pair::start(31, ["one", "one"]);
    let mut wanted = Vec::new();
    for cycle in 0..4 {
        for number in 1..=13 {
            let name = format!("C{cycle}M{number:02}");
            for (line, sender) in (0..).zip(&pair.senders) {
                // Each line loses the beginning of a cycle.
                if (cycle, number) != (line + 1, 1) {
                    sender.send(&message(number, &name)).unwrap();
                }
            }
            wanted.push(name);
        }
    }
    assert_eq!(pair.receive(52), wanted);
    pair.stop(52, 50);
}

/// Each line has times of its own, which is what a feed may do unless it says otherwise.
#[test]
fn messages_whose_times_differ_come_once() {
    let mut pair = Pair::start(248, ["one", "one"]);
    for number in 1..=20 {
        for (line, sender) in (1..).zip(&pair.senders) {
            sender.send(&timed(number, line, &name(number))).unwrap();
        }
    }
    let wanted: Vec<_> = (1..=20).map(name).collect();
    assert_eq!(pair.receive(20), wanted);
    pair.stop(20, 20);
}

/// Repeats equal messages in each cycle. One line lacks a message of the first cycle, the other one
/// lacks it in the next.
#[test]
fn equal_messages_of_two_cycles_are_distinguished_by_their_times() {
    let mut pair = Pair::start(61, ["one+", "one+"]);
    let mut wanted = Vec::new();
    for cycle in 0..4 {
        for number in 1..=13 {
            for (line, sender) in (0..).zip(&pair.senders) {
                if (cycle, number) != (line, 5) {
                    sender.send(&timed(number, cycle, &name(number))).unwrap();
                }
            }
            wanted.push(name(number));
        }
    }
    wanted.sort();
    assert_eq!(pair.receive(52), wanted);
    pair.stop(52, 50);
}

#[test]
fn two_feeds_are_two() {
    let mut pair = Pair::start(41, ["one", "two"]);
    for sender in &pair.senders {
        sender.send(&message(1, "SAME")).unwrap();
    }
    assert_eq!(pair.receive(2), ["SAME", "SAME"]);
    pair.stop(2, 0);
}

/// Both gateways have a second, silent line, for which they wait: a message that only one of them
/// receives is published before the other gives it up.
#[test]
fn what_no_gateway_brings_is_told_once() {
    let (id, spare) = (domain(), group(200));
    let lines = [group(201), group(202)];
    let gateways = lines.map(|line| {
        start(|c| {
            receiving(c, &[line, spare], "one");
            // On a machine with too much to do, too.
            c.feeds[0].gap_timeout_ms = 1000;
            c.dds.publish = Some(end(id));
        })
    });
    let subscriber = start(|c| c.dds.subscribe = Some(end(id)));
    matched(&gateways, &subscriber);
    let mut consumer = Client::log_on(subscriber.consumers(), "C");
    let senders = lines.map(|line| Sender::open(&SenderConfig::new(line)).unwrap());
    let both = [true; 2];
    let send = |number, of: [bool; 2]| {
        for (sender, _) in senders.iter().zip(of).filter(|(_, is_sent)| *is_sent) {
            sender.send(&message(number, &name(number))).unwrap();
        }
    };
    let mut takes = |number| {
        let got = consumer.receive().unwrap();
        assert_eq!(value(&got, 262), Some(name(number).as_str()), "{got}");
    };
    // The first messages wait at both gateways for the silent line.
    send(1, both);
    takes(1);
    for (number, of) in [(2, both), (3, [true, false]), (4, both), (7, both)] {
        send(number, of);
    }
    (2..=4).for_each(&mut takes);
    let news = consumer.receive().unwrap();
    let wanted = "missing=feed-gap count=2 first=5 last=6 from=";
    assert!(
        value(&news, 58).unwrap_or_default().starts_with(wanted),
        "{news}"
    );
    let got = consumer.receive().unwrap();
    assert_eq!(value(&got, 262), Some("M007"), "{got}");
    eventually("the other one", || subscriber.count("from_another") == 4);
    assert_eq!(subscriber.count("feed_gaps"), 1);
    assert_eq!(subscriber.count("missing"), 0);
    gateways.into_iter().for_each(stop);
    stop(subscriber);
}

#[test]
fn what_no_gateway_can_decode_is_told_once() {
    let mut pair = Pair::start(203, ["one"; 2]);
    let mut bad = message(2, &name(2));
    // An unknown template.
    bad.extend([0xc0, 0x85, 0x80]);
    for packet in [message(1, &name(1)), bad, message(4, &name(4))] {
        for sender in &pair.senders {
            sender.send(&packet).unwrap();
        }
    }
    assert_eq!(pair.receive(2), [name(1), name(2)]);
    let news = pair.consumer.receive().unwrap();
    // The rest of the packet, and the number that it took, are one hole.
    assert!(news.contains(" count=unknown from="), "{news}");
    assert_eq!(pair.receive(1), [name(4)]);
    eventually("the other one", || {
        pair.subscriber.count("from_another") == 3
    });
    assert_eq!(pair.subscriber.count("feed_gaps"), 1);
    pair.stop(3, 3);
}

/// Returns the next message, with the cause and the number of those that are missing before it.
fn after_hole(consumer: &mut Client) -> (String, String) {
    let told = consumer.receive().unwrap();
    let text = value(&told, 58).unwrap_or_default();
    let cause: Vec<_> = text.split(' ').take(2).collect();
    let next = consumer.receive().unwrap();
    (cause.join(" "), value(&next, 262).unwrap().to_owned())
}

/// Two publish a feed, of which one is stopped: then nobody brings what the other lacks.
#[test]
fn what_the_last_gateway_of_a_feed_lacks_is_told() {
    let id = domain();
    let subscriber = start(|c| c.dds.subscribe = Some(end(id)));
    let [first, second] = [7, 8].map(|origin| (origin, stranger(id, "Fix_Y")));
    eventually("the match", || subscriber.count("dds_writers") == 2);
    let send = |(origin, writer): &(u64, Writer), number: u64| {
        let text = format!("262=M{number}|");
        let message = ("A", "Y", text.as_str());
        write_in(writer, ("one", number), (*origin, number), message);
    };
    let mut consumer = Client::log_on(subscriber.consumers(), "C");
    let mut receive = |numbers: RangeInclusive<u64>| {
        numbers.for_each(|_| drop(consumer.receive().unwrap()));
    };
    for number in 1..=10 {
        send(&first, number);
        send(&second, number);
    }
    receive(1..=10);
    eventually("the others", || subscriber.count("from_another") == 10);
    // The second did not send the 12th, which the first brings.
    send(&first, 11);
    send(&first, 12);
    send(&second, 11);
    send(&second, 13);
    receive(11..=13);
    eventually("the other one", || subscriber.count("from_another") == 11);
    drop(first);
    let last = 13 + 8_192;
    for chunk in 0..128 {
        let numbers = 14 + 64 * chunk..=77 + 64 * chunk;
        let of_second = numbers.clone();
        of_second.for_each(|number| send(&second, number));
        receive(numbers);
    }
    assert_eq!(subscriber.count("missing"), 0);
    send(&second, last + 3);
    let (cause, next) = after_hole(&mut consumer);
    assert_eq!(cause, "missing=dds-gap count=2");
    assert_eq!(next, format!("M{}", last + 3));
    eventually("the count", || subscriber.count("missing") == 2);
    stop(subscriber);
}

/// A message of a producer has one publisher, whatever feed the next message belongs to.
#[test]
fn what_is_missing_beside_a_shared_feed_is_told() {
    let id = domain();
    let subscriber = start(|c| c.dds.subscribe = Some(end(id)));
    let [first, second] = [0, 1].map(|_| stranger(id, "Fix_Y"));
    eventually("the match", || subscriber.count("dds_writers") == 2);
    let mut consumer = Client::log_on(subscriber.consumers(), "C");
    let mut next = |name: &str| {
        let message = consumer.receive().unwrap();
        assert_eq!(value(&message, 262), Some(name), "{message}");
    };
    write_in(&first, ("one", 1), (7, 1), ("A", "Y", "262=SHARED|"));
    next("SHARED");
    write_in(&second, ("one", 1), (8, 1), ("A", "Y", "262=SHARED|"));
    write_in(&first, ("", 0), (7, 2), ("A", "Y", "262=OWN|"));
    next("OWN");
    eventually("the second", || subscriber.count("from_another") == 1);
    write_in(&first, ("one", 2), (7, 4), ("A", "Y", "262=LAST|"));
    let (cause, next) = after_hole(&mut consumer);
    assert_eq!((&*cause, &*next), ("missing=dds-gap count=1", "LAST"));
    eventually("the count", || subscriber.count("missing") == 1);
    stop(subscriber);
}

/// Checks that a gateway does not take messages of its own feed from another, so that its consumers
/// receive them once.
#[test]
fn a_gateway_with_lines_of_its_own_takes_none_of_them_from_the_bus() {
    let (id, line) = (domain(), group(51));
    let both = [0, 1].map(|_| {
        start(|c| {
            receiving(c, &[line], "one");
            c.dds.publish = Some(end(id));
            c.dds.subscribe = Some(end(id));
        })
    });
    eventually("the match", || {
        let met = |g: &Gateway| g.count("dds_readers") == 1 && g.count("dds_writers") == 1;
        both.iter().all(met)
    });
    let mut consumers = both.each_ref().map(|g| Client::log_on(g.consumers(), "C"));
    let sender = Sender::open(&SenderConfig::new(line)).unwrap();
    for number in 1..=20 {
        sender.send(&message(number, &name(number))).unwrap();
    }
    for gateway in &both {
        eventually("the other's", || gateway.count("own") == 20);
        assert_eq!(gateway.count("taken"), 0);
    }
    sender.send(&message(21, &name(21))).unwrap();
    for consumer in &mut consumers {
        for number in 1..=21 {
            let message = consumer.receive().unwrap();
            assert_eq!(value(&message, 262), Some(name(number).as_str()));
        }
    }
    both.into_iter().for_each(stop);
}
