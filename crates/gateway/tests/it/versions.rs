//! A FAST feed and consumers of several versions.

use crate::client::{Client, value};
use crate::{eventually, start, stop};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_gateway::{Config, Gateway};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;

const TEMPLATES: &str = r#"<templates>
    <template name="Snapshot" id="1">
        <string name="MessageType" id="35"><constant value="W"/></string>
        <uInt32 name="MsgSeqNum" id="34"/>
        <uInt32 name="SecurityID" id="48"/>
        <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
            <uInt32 name="MDEntryTime" id="273"/>
            <string name="MDEntryType" id="269"/>
            <uInt32 name="MDEntryPx" id="270"/>
        </sequence>
    </template>
    <template name="SequenceReset" id="2">
        <string name="MessageType" id="35"><constant value="4"/></string>
        <uInt32 name="MsgSeqNum" id="34"/>
        <uInt32 name="NewSeqNo" id="36"/>
    </template>
    <template name="Logout" id="3">
        <string name="MessageType" id="35"><constant value="5"/></string>
        <uInt32 name="MsgSeqNum" id="34"/>
        <string name="Text" id="58"/>
    </template>
    <template name="Logon" id="4">
        <string name="MessageType" id="35"><constant value="A"/></string>
        <uInt32 name="MsgSeqNum" id="34"/>
    </template>
    <template name="Heartbeat" id="5">
        <string name="MessageType" id="35"><constant value="0"/></string>
        <uInt32 name="MsgSeqNum" id="34"/>
    </template>
    <template name="Done" id="6">
        <string name="MessageType" id="35"><constant value="99"/></string>
    </template>
    <template name="Own" id="7"><string name="Text" id="58"/></template>
    <template name="Reset" id="120" reset="Y"/>
</templates>"#;

/// A snapshot of 48=3 with one entry: 142412406, bid, 7.
const SNAPSHOT: [u8; 13] = [
    0xc0, 0x81, 0x81, 0x83, 0x81, 0x43, 0x74, 0x14, 0xf6, 0xb0, 0x87, 0xc0, 0xf8,
];

/// Returns a gateway with these templates, and the sender of their line.
fn with_feed(test: &str, more: &str) -> (Gateway, Sender) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("feed-{test}.xml"));
    std::fs::write(&file, TEMPLATES).unwrap();
    let port = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let last = test.bytes().fold(0u8, u8::wrapping_add);
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 255, 83, last), port);
    let text = format!(
        "[feed]\ntemplates = \"{}\"\nlines = [\"{group}\"]\n{more}",
        file.display()
    );
    let feeds = Config::from_toml(&text).unwrap().feeds;
    let gateway = start(|config| config.feeds = feeds);
    (gateway, Sender::open(&SenderConfig::new(group)).unwrap())
}

/// Returns type and body of the next message.
fn content(client: &mut Client) -> String {
    let message = client.receive().unwrap();
    let (_, body) = message.split_once("|52=").unwrap();
    let (_, body) = body.split_once('|').unwrap();
    let (body, _) = body.split_once("10=").unwrap();
    format!("{} {body}", value(&message, 35).unwrap())
}

fn told(gateway: &Gateway, wanted: &str) {
    eventually(wanted, || {
        gateway
            .notices()
            .any(|notice| notice.to_string().contains(wanted))
    });
}

#[test]
fn each_consumer_gets_messages_of_its_version() {
    let (gateway, sender) = with_feed("versions", "");
    let to = gateway.consumers();
    let mut old = Client::log_on_in(to, "OLD", "FIX.4.1", "");
    let mut two = Client::log_on_in(to, "TWO", "FIX.4.2", "");
    let mut four = Client::log_on(to, "FOUR");
    let mut first = Client::log_on_in(to, "FIRST", "FIXT.1.1", "1137=8|");
    let mut second = Client::log_on_in(to, "SECOND", "FIXT.1.1", "1137=9|");
    let mut producer = Client::log_on(gateway.producers(), "P");
    for _ in 0..20 {
        sender.send(&SNAPSHOT).unwrap();
        let entry = "268=1|269=0|270=7|273=14:24:12.406|";
        for four in [&mut two, &mut four] {
            assert_eq!(content(four), format!("W 48=3|{entry}55=[N/A]|"));
        }
        for five in [&mut first, &mut second] {
            assert_eq!(content(five), format!("W 1181=1|48=3|{entry}"));
        }
    }
    told(
        &gateway,
        "FIX.4.1 sessions do not get messages of template Snapshot",
    );
    for name in ["unfit", "fast_resets"] {
        eventually(name, || gateway.count(name) == 20);
    }
    // A producer's message is for all, unchanged.
    producer.send("W", "20001=P-1|1023=1|273=142412406|");
    for client in [&mut old, &mut two, &mut four, &mut first, &mut second] {
        assert_eq!(content(client), "W 20001=P-1|1023=1|273=142412406|");
    }
    eventually("the count", || gateway.count("deliveries") == 4 * 20 + 5);
    stop(gateway);
}

#[test]
fn messages_of_the_exchanges_session_stay_with_the_channel() {
    let (gateway, sender) = with_feed("session", "");
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    sender.send(&[0xc0, 0x84, 0x81]).unwrap();
    told(&gateway, "the exchange has logged on");
    // 36=5000, and a Text with an escape sequence.
    sender.send(&[0xc0, 0x82, 0x82, 0x27, 0x88]).unwrap();
    sender.send(&[0xc0, 0x85, 0x83]).unwrap();
    sender
        .send(&[0xc0, 0x83, 0x84, 0x1b, 0x5b, b'2', b'J' | 0x80])
        .unwrap();
    told(&gateway, "the exchange has logged out: \\u{1b}[2J");
    sender.send(&[0xc0, 0x86]).unwrap();
    told(&gateway, "the exchange has ended the feed");
    sender.send(&[0xc0, 0x87, 0xc1]).unwrap();
    told(&gateway, "do not get messages of template Own");
    sender.send(&SNAPSHOT).unwrap();
    let first = consumer.receive().unwrap();
    assert_eq!(
        (value(&first, 35), value(&first, 34)),
        (Some("W"), Some("2"))
    );
    for (name, count) in [
        ("exchange_logon", 1),
        ("exchange_reset", 1),
        ("exchange_heartbeat", 1),
        ("exchange_logout", 1),
        ("feed_done", 1),
        ("fast_resets", 1),
        ("unfit", 1),
        ("deliveries", 1),
    ] {
        eventually(name, || gateway.count(name) == count);
    }
    stop(gateway);
}

#[test]
fn fields_of_ones_own_go_to_those_who_agreed() {
    let (gateway, sender) = with_feed("own", "user_tags = 30000\n");
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    sender.send(&[0xc0, 0x87, 0xc1]).unwrap();
    assert_eq!(content(&mut consumer), "U 30058=A|");
    sender.send(&SNAPSHOT).unwrap();
    let entry = "268=1|269=0|270=7|273=14:24:12.406|";
    assert_eq!(
        content(&mut consumer),
        format!("W 30034=1|48=3|{entry}55=[N/A]|")
    );
    stop(gateway);
}

#[test]
fn rejects_are_told_and_counted() {
    let gateway = start(|_| {});
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    consumer.send("3", "45=1|372=A|371=273|373=6|58=Incorrect\x1b[2J|");
    told(
        &gateway,
        "rejected message 1 of MsgType(35) A, field 273, reason 6: Incorrect\\u{1b}[2J",
    );
    for _ in 0..30 {
        consumer.send("j", "45=1|372=W|380=3|");
    }
    eventually("the count", || gateway.count("rejects") == 31);
    let notices = gateway
        .notices()
        .filter(|n| n.to_string().contains("rejected"))
        .count();
    assert!((1..30).contains(&notices), "{notices}");
    stop(gateway);
}
