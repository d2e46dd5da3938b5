//! Tests of two gateways that receive a feed, and one that takes it from them over DDS: one of the
//! two is killed, and no subscriber misses anything.

use crate::book::{self, changes, day, entry, packets};
use crate::common::gateway::Gateway;
use crate::common::{Folder, fanfare, groups};
use fanfare_peers::domain;
use fanfare_peers::fix::{framed, wire};
use fanfare_wire::{Precision, UtcTimestamp};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A FIX.4.4 client on a socket.
struct Client {
    stream: TcpStream,
    name: &'static str,
    number: u32,
}

impl Client {
    /// Logs on with new numbers, ResetSeqNumFlag(141), and subscribes to the book of RIU3.
    fn subscribe(gateway: &Gateway, name: &'static str) -> Self {
        let address = format!("127.0.0.1:{}", gateway.consumers);
        let stream = TcpStream::connect(address).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        let mut client = Self {
            stream,
            name,
            number: 0,
        };
        // Without heartbeats, which it would have to answer.
        client.send("A", "98=0|108=0|141=Y|");
        assert!(client.next().contains("|35=A|"));
        client.send(
            "V",
            "262=r|263=1|264=0|265=1|267=2|269=0|269=1|146=1|55=RIU3|",
        );
        client
    }

    fn send(&mut self, msg_type: &str, body: &str) {
        self.number += 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let now = UtcTimestamp::from_nanos(now.as_nanos() as i64);
        let time = now.text(Precision::Millis);
        let (name, number) = (self.name, self.number);
        let fields = format!("35={msg_type}|49={name}|56=FANFARE|34={number}|52={time}|{body}");
        let message = wire(&framed("FIX.4.4", &fields));
        self.stream.write_all(&message).unwrap();
    }

    /// Returns the next message; an empty text at the end.
    fn next(&mut self) -> String {
        let (mut text, mut byte) = (String::new(), [0]);
        while !(text.contains("|10=") && text.ends_with('|')) {
            match self.stream.read(&mut byte) {
                Ok(1) => text.push(if byte[0] == 1 { '|' } else { byte[0] as char }),
                _ => return String::new(),
            }
        }
        text
    }

    /// Returns the entries of the next message, which is of this type.
    fn entries(&mut self, msg_type: &str) -> String {
        let message = self.next();
        assert!(message.contains(&format!("|35={msg_type}|")), "{message}");
        let (_, entries) = message.split_once("|268=").unwrap();
        let (entries, _) = entries.split_once("|10=").unwrap();
        entries.to_owned()
    }
}

fn send(folder: &Folder, name: &str, lines: &[String], group: &str) {
    book::send(&packets(folder, name, lines), group);
}

/// Starts a gateway with this configuration after the common one.
fn gateway(folder: &Folder, name: &str, text: &str) -> Gateway {
    let all = "mode = \"subscriptions\"\n[producers]\nport = 0\n[consumers]\nport = 0\n";
    let file = folder.with(&format!("{name}.toml"), format!("{all}{text}"));
    Gateway::start(&mut fanfare(&["gateway", &file]))
}

#[test]
fn a_plant_is_killed_and_an_edge_and_its_clients_go_on() {
    let ([group, _], domain) = (groups(), domain());
    let folder = Folder::new("market-edges");
    let plant = |lease_ms: u32| {
        format!(
            "[[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"{group}\"]\n\
             mapping = \"builtin:spectra\"\nchannel = \"forts\"\n\
             [feed.edges]\ndomain = {domain}\nlease_ms = {lease_ms}\n"
        )
    };
    // On a busy machine, no process is silent for as long before it is killed.
    let [a, b] = [("a", 5_000), ("b", 15_000)]
        .map(|(name, lease_ms)| gateway(&folder, name, &plant(lease_ms)));
    let edge = format!("[[edge]]\nchannel = \"forts\"\ndomain = {domain}\nlease_ms = 60000\n");
    let mut edge = gateway(&folder, "edge", &edge);
    edge.tells("2 gateways publish it");
    send(&folder, "day", &day(), &group);
    edge.tells("of 1 instrument, 1 live");
    let (mut at_edge, mut at_a) = (Client::subscribe(&edge, "E"), Client::subscribe(&a, "C"));
    let snapshot = at_edge.entries("W");
    assert_eq!(at_a.entries("W"), snapshot);

    let killed = Instant::now();
    a.kill();
    while !at_a.next().is_empty() {}
    let mut at_b = Client::subscribe(&b, "C");
    assert_eq!(at_b.entries("W"), snapshot);
    println!("the client goes on after {:?}", killed.elapsed());
    edge.tells("1 gateway publishes it");
    println!("the edge knows after {:?}", killed.elapsed());

    let more = [entry(1, "0", 6, 1, 101, 8), entry(1, "1", 7, 1, 102, 4)];
    send(&folder, "more", &[changes(4, &more)], &group);
    // The very next message is the change: the state was always live.
    assert_eq!(at_edge.entries("X"), at_b.entries("X"));
    let late = Client::subscribe(&edge, "LATE").entries("W");
    assert_eq!(late, Client::subscribe(&b, "LATE").entries("W"));

    b.kill();
    edge.tells("no gateway publishes it");
    let told = at_edge.next();
    assert!(
        told.contains("|35=B|") && told.contains("state=stale"),
        "{told}"
    );
    let said = edge.stop();
    assert!(said.out.contains("edge forts"), "{}", said.out);
}
