//! The reports of missing messages of a feed to consumers.

use crate::client::{Client, value};
use crate::{eventually, start, stop};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_gateway::{Config, Gateway};
use fanfare_peers::Scratch;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

const TEMPLATE: &str = "<template name=\"T\" id=\"1\"><uInt32 name=\"MsgSeqNum\" id=\"34\"/>\
                        <uInt32 name=\"RptSeq\" id=\"83\"/></template>";

/// Returns a message: template 1, the number, and a value equal to the number.
fn message(number: u8) -> [u8; 4] {
    [0xc0, 0x81, 0x80 | number, 0x80 | number]
}

/// Returns a gateway with a feed of this many lines, and the sender of each.
fn feed(last: u8, lines: usize) -> (Gateway, Vec<Sender>) {
    feed_with(last, lines, "")
}

/// Returns a gateway as [`feed`] does, with further keys of the feed.
fn feed_with(last: u8, lines: usize, more: &str) -> (Gateway, Vec<Sender>) {
    let groups: Vec<SocketAddrV4> = (0..lines)
        .map(|line| {
            let port = UdpSocket::bind("127.0.0.1:0").unwrap();
            let port = port.local_addr().unwrap().port();
            SocketAddrV4::new(Ipv4Addr::new(239, 255, 82, last + line as u8), port)
        })
        .collect();
    let templates = Scratch::new("holes.xml");
    templates.write(TEMPLATE);
    let gateway = start(|config: &mut Config| {
        let lines: Vec<String> = groups.iter().map(|group| format!("\"{group}\"")).collect();
        let text = format!(
            "[feed]\ntemplates = \"{}\"\nlines = [{}]\nuser_tags = 30000\n{more}",
            templates.display(),
            lines.join(", ")
        );
        config.feeds = Config::from_toml(&text).unwrap().feeds;
    });
    let senders = groups
        .iter()
        .map(|group| Sender::open(&SenderConfig::new(*group)).unwrap());
    (gateway, senders.collect())
}

fn receive(consumer: &mut Client, number: u64) -> String {
    let message = consumer.receive().unwrap();
    let wanted = number.to_string();
    assert_eq!(value(&message, 34), Some(wanted.as_str()), "{message}");
    message
}

#[test]
fn a_gap_on_all_lines_is_told_to_all_consumers_in_its_place() {
    let (gateway, mut lines) = feed(1, 2);
    let mut consumers: Vec<Client> = (0..3)
        .map(|i| Client::log_on(gateway.consumers(), &format!("C{i}")))
        .collect();
    for line in &mut lines {
        for number in [1, 2, 5, 6] {
            line.send_batch(&[&message(number)]).unwrap();
        }
    }
    for consumer in &mut consumers {
        for number in [1, 2] {
            let got = receive(consumer, number + 1);
            assert_eq!(
                value(&got, 30083),
                Some(number.to_string().as_str()),
                "{got}"
            );
        }
        let told = receive(consumer, 4);
        assert_eq!((value(&told, 35), value(&told, 33)), (Some("B"), Some("1")));
        let text = value(&told, 58).unwrap();
        let wanted = "missing=feed-gap count=2 first=3 last=4 from=";
        assert!(text.starts_with(wanted), "{told}");
        for number in [5, 6] {
            let got = receive(consumer, number);
            assert_eq!(
                value(&got, 30083),
                Some(number.to_string().as_str()),
                "{got}"
            );
        }
    }
    assert_eq!(gateway.count("gaps"), 2);
    stop(gateway);
}

#[test]
fn the_rest_of_a_packet_that_cannot_be_decoded_is_told() {
    let (gateway, mut lines) = feed(11, 1);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut bad = message(2).to_vec();
    // An unknown template.
    bad.extend([0xc0, 0x85, 0x80]);
    for packet in [&message(1)[..], &bad, &message(4)] {
        lines[0].send_batch(&[packet]).unwrap();
    }
    assert_eq!(value(&receive(&mut consumer, 2), 30083), Some("1"));
    assert_eq!(value(&receive(&mut consumer, 3), 30083), Some("2"));
    let mut told = [4, 5].map(|number| {
        let news = receive(&mut consumer, number);
        value(&news, 58).unwrap().to_owned()
    });
    told.sort();
    let [gap, undecodable] = told;
    assert!(gap.starts_with("missing=feed-gap count=1 first=3 last=3 from="));
    assert!(undecodable.starts_with("missing=undecodable count=unknown from="));
    assert_eq!(value(&receive(&mut consumer, 6), 30083), Some("4"));
    eventually("the count", || gateway.count("undecodable") == 1);
    eventually("the notice", || {
        gateway.notices().any(|notice| {
            let text = notice.to_string();
            text.contains("packet of line A: ") && text.contains("template") && notice.is_trouble()
        })
    });
    stop(gateway);
}

#[test]
fn what_waits_for_a_missing_packet_at_the_stop_is_passed_on() {
    let (gateway, mut lines) = feed_with(21, 2, "gap_timeout_ms = 60000\n");
    for line in &mut lines {
        for number in [1, 2, 4, 5] {
            line.send_batch(&[&message(number)]).unwrap();
        }
    }
    eventually("the datagrams", || gateway.count("datagrams") == 8);
    let counters = gateway.counters().clone();
    stop(gateway);
    let count = |name| fanfare_gateway::total(&counters, name);
    assert_eq!((count("decoded"), count("gaps")), (4, 1));
}
