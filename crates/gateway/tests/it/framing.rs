//! Feeds as exchanges send them: preambles, length headers, several feeds, one sender.

use crate::client::{Client, value};
use crate::feed::group;
use crate::{eventually, start, stop};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_feed::{Header, Preamble};
use fanfare_gateway::{Config, Gateway};
use fanfare_peers::Scratch;
use std::net::SocketAddrV4;

/// Returns templates without a number of their own, which the preamble has.
fn templates() -> Scratch {
    let file = Scratch::new("framing.xml");
    let text = "<template name=\"T\" id=\"1\">\
                <string name=\"MsgType\" id=\"35\"><constant value=\"Y\"/></string>\
                <string name=\"MDReqID\" id=\"262\"/></template>";
    file.write(text);
    file
}

/// Returns a message of the template.
fn message(name: &str) -> Vec<u8> {
    let mut bytes = [&[0xc0, 0x81], name.as_bytes()].concat();
    *bytes.last_mut().unwrap() |= 0x80;
    bytes
}

/// Returns a gateway with feeds, each with its keys after those of the templates.
fn receiving(feeds: &[String]) -> Gateway {
    let file = templates();
    let head = format!("[[feed]]\ntemplates = \"{}\"\n", file.display());
    let text: String = feeds.iter().map(|rest| format!("{head}{rest}\n")).collect();
    start(|config| config.feeds = Config::from_toml(&text).unwrap().feeds)
}

fn sender(group: SocketAddrV4) -> Sender {
    Sender::open(&SenderConfig::new(group)).unwrap()
}

fn names(consumer: &mut Client, count: usize) -> Vec<String> {
    let next = || {
        let message = consumer.receive().unwrap();
        let name = value(&message, 262).or(value(&message, 58)).unwrap();
        name.split(" from=").next().unwrap().to_owned()
    };
    std::iter::repeat_with(next).take(count).collect()
}

#[test]
fn packets_with_a_cme_preamble_are_arbitrated_over_two_lines() {
    let groups = [group(101), group(102)];
    let gateway = receiving(&[format!(
        "preamble = \"cme\"\nlines = [\"{}\", \"{}\"]",
        groups[0], groups[1]
    )]);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let lines = groups.map(sender);
    let packet = |number: u32| {
        let mut packet = Vec::new();
        Preamble::Cme.write(number, &mut packet);
        for part in ["A", "B"] {
            packet.extend(message(&format!("P{number}{part}")));
        }
        packet
    };
    // Each line loses packets of its own, and both lose 7.
    for number in 1..=10 {
        for (line, lost) in lines.iter().zip([[3, 4, 7], [1, 6, 7]]) {
            if !lost.contains(&number) {
                line.send(&packet(number)).unwrap();
            }
        }
    }
    let mut expected: Vec<String> = (1..=10)
        .filter(|number| *number != 7)
        .flat_map(|number| ["A", "B"].map(|part| format!("P{number}{part}")))
        .collect();
    expected.insert(12, "missing=feed-gap count=1 first=7 last=7".to_owned());
    assert_eq!(names(&mut consumer, 19), expected);
    assert_eq!(gateway.count("decoded"), 18);
    eventually("both lines", || gateway.count("datagrams") == 14);
    stop(gateway);
}

#[test]
fn two_feeds_have_framings_of_their_own_and_one_hears_one_sender() {
    let [first, second, other] = [111, 112, 113].map(group);
    let gateway = receiving(&[
        format!("header = \"u16be\"\nlines = [\"{first}\"]"),
        format!("lines = [{{ group = \"{second}\", source = \"127.0.0.1\" }}]"),
        format!("lines = [{{ group = \"{other}\", source = \"127.0.0.9\" }}]"),
    ]);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut datagram = Vec::new();
    for packet in [message("ONE"), message("TWO")] {
        Header::U16Be.write(packet.len(), &mut datagram).unwrap();
        datagram.extend(packet);
    }
    sender(other).send(&message("FOREIGN")).unwrap();
    sender(first).send(&datagram).unwrap();
    assert_eq!(names(&mut consumer, 2), ["ONE", "TWO"]);
    sender(second).send(&message("THREE")).unwrap();
    assert_eq!(names(&mut consumer, 1), ["THREE"]);
    // Half a header after a packet is a bad packet, and the packet before it is valid.
    datagram.push(0);
    sender(first).send(&datagram).unwrap();
    assert_eq!(
        names(&mut consumer, 3),
        ["ONE", "TWO", "missing=undecodable count=unknown"]
    );
    assert_eq!(gateway.count("undecodable"), 1);
    stop(gateway);
}
