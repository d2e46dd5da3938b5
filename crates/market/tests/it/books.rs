//! The example, on a few packets.

#[path = "../../examples/books.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod example;

use example::{open, take};
use fanfare_feed::Line;
use fanfare_feed::arbiter::ArbiterConfig;
use fanfare_feed::channel::Datagram;

const TEMPLATES: &str = r#"<templates><template name="Changes" id="1">
  <uInt32 name="MsgSeqNum" id="34"/>
  <sequence name="Entries"><length name="NoMDEntries" id="268"/>
    <uInt32 name="Action" id="279"/><string name="EntryType" id="269"/>
    <string name="Symbol" id="55"/><uInt32 name="RptSeq" id="83"/>
    <decimal name="Price" id="270"/><uInt32 name="Size" id="271"/><uInt32 name="Level" id="1023"/>
  </sequence></template></templates>"#;

const MAPPING: &str = r#"
[[message]]
template = "Changes"
does = "changes"
number = 34
entries = 268
instrument = { symbol = 55 }
entry = { type = 269, action = 279, price = 270, size = 271, rpt-seq = 83 }
event = [{ kind = "level", level = 1023 }]
"#;

/// Returns a packet of one message: each entry is a new first level of a side of OWN, with its
/// RptSeq(83) and its price.
fn packet(number: u8, entries: &[(u8, u8, u8)]) -> Vec<u8> {
    let mut bytes = vec![0xc0, 0x81, 0x80 | number, 0x80 | entries.len() as u8];
    for (side, rpt_seq, price) in entries {
        bytes.extend([0x80, 0x80 | side, b'O', b'W', 0x80 | b'N', 0x80 | rpt_seq]);
        bytes.extend([0x80, 0x80 | price, 0x85, 0x81]);
    }
    bytes
}

#[test]
fn books_are_printed_as_they_change() {
    let (mut channel, mut follower) = open(TEMPLATES, MAPPING).unwrap();
    let mut receive = |now, bytes: Option<&[u8]>| {
        let events = match bytes {
            Some(bytes) => channel.receive(Datagram {
                line: Line::A,
                now,
                received: now,
                offset: 0,
                bytes,
            }),
            None => channel.handle_timeout(now),
        };
        take(now, events, &mut follower)
    };
    let first = packet(1, &[(b'0', 1, 40), (b'1', 2, 42)]);
    assert_eq!(receive(0, Some(&first)), ["OWN 40 | 42 live"]);
    let second = packet(2, &[(b'0', 3, 41)]);
    assert_eq!(receive(1, Some(&second)), ["OWN 41 | 42 live"]);
    // The third message does not come.
    assert!(receive(2, Some(&packet(4, &[(b'1', 5, 44)]))).is_empty());
    let late = receive(2 + ArbiterConfig::default().gap_timeout, None);
    assert_eq!(late, ["OWN 41 | 42 recovering: RptSeq 4 is missing"]);
    let error = open(TEMPLATES, "").err().unwrap();
    assert!(error.to_string().contains("[[message]]"), "{error}");
}
