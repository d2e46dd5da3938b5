//! Tests of `fanfare market events` with a packet capture.

use crate::book::{changes, datagram, entry, packets};
use crate::common::{Folder, run};
use fanfare_instruments::pcap::{LinkType, Writer};

/// Writes a capture of datagrams: the stamp, the group, the packet.
fn capture(folder: &Folder, datagrams: &[(u64, u8, &[u8])]) -> String {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    for (time, group, packet) in datagrams {
        let ip = datagram(*group, packet);
        writer.packet(*time, &ip, ip.len() as u32).unwrap();
    }
    folder.with("lines.pcap", writer.into_inner())
}

/// Returns the times of arrival of the events, and stderr.
fn arrivals(file: &str) -> (Vec<u64>, String) {
    let feed = ["market", "events", "-t", "builtin:spectra", "--pcap", file];
    let lines = [
        "--multicast",
        "224.1.2.133:13014",
        "--multicast",
        "224.1.2.134:13014",
    ];
    let said = run(&[&feed[..], &lines].concat()).succeeded();
    let events = said.json_lines();
    let times = events
        .iter()
        .map(|event| event["ts_recv"].as_u64().unwrap());
    (times.collect(), said.err)
}

#[test]
fn each_event_has_the_stamp_of_its_packet_also_where_stamps_go_back() {
    let folder = Folder::new("capture-stamps");
    let change = |number: u64| changes(number, &[entry(0, "0", number, 1, 100 + number, 5)]);
    let lines: Vec<_> = (1..=4).map(change).collect();
    let bytes = std::fs::read(packets(&folder, "feed", &lines)).unwrap();
    let mut rest = &bytes[..];
    let mut four = Vec::new();
    while let Some((header, body)) = rest.split_first_chunk::<4>() {
        let (packet, after) = body.split_at(u32::from_le_bytes(*header) as usize);
        four.push(packet);
        rest = after;
    }
    let at = |ms: u64| 1_700_000_000_000_000_000 + ms * 1_000_000;
    // Line B's host stamps by a clock that is half a second behind.
    let whole = [
        (at(1_000), 133, four[0]),
        (at(510), 134, four[1]),
        (at(1_020), 133, four[2]),
        (at(530), 134, four[3]),
    ];
    let (times, _) = arrivals(&capture(&folder, &whole));
    assert_eq!(times, [at(1_000), at(510), at(1_020), at(530)]);
    // The clock of the time-outs does not go back: the gap is declared after 100 ms by line A, and
    // the packet that fills it later by a stamp that is earlier comes too late.
    let holed = [
        (at(1_000), 133, four[0]),
        (at(1_200), 133, four[2]),
        (at(1_400), 133, four[3]),
        (at(600), 134, four[1]),
    ];
    let (times, told) = arrivals(&capture(&folder, &holed));
    assert_eq!(times, [at(1_000), at(1_200), at(1_400)]);
    assert!(told.contains("gap: 2 to 2 missing (1)"), "{told}");
}

#[test]
fn only_a_fragment_to_a_group_of_the_feed_spoils_a_book() {
    let folder = Folder::new("capture-fragments");
    let change = changes(1, &[entry(0, "0", 1, 1, 100, 5)]);
    let bytes = std::fs::read(packets(&folder, "feed", &[change])).unwrap();
    let (header, body) = bytes.split_first_chunk::<4>().unwrap();
    let packet = &body[..u32::from_le_bytes(*header) as usize];
    for (group, code) in [(200, 0), (133, 1)] {
        let mut fragment = datagram(group, b"a part of a long datagram");
        fragment[6] = 0x20;
        let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
        for ip in [fragment, datagram(133, packet)] {
            let time = 1_700_000_000_000_000_000;
            writer.packet(time, &ip, ip.len() as u32).unwrap();
        }
        let file = folder.with("fragments.pcap", writer.into_inner());
        let feed = ["-t", "builtin:spectra", "--pcap", &file];
        let group = ["--multicast", "224.1.2.133:13014"];
        let book = ["market", "book", "--symbol", "RIU3", "--once", "--json"];
        let said = run(&[&book[..], &feed, &group].concat());
        assert_eq!(said.code, code, "{}", said.err);
        let why = "a fragment of a packet to 224.1.2.133:";
        assert_eq!(said.err.contains(why), code == 1, "{}", said.err);
    }
}
