//! Tests of feeds from packet captures.

use crate::common::{Folder, Said};
use crate::run::run;
use fanfare_instruments::pcap::{LinkType, Writer};

pub(crate) const A: [u8; 4] = [224, 1, 2, 133];
pub(crate) const B: [u8; 4] = [224, 1, 2, 134];
const PORT: u16 = 13_014;

/// Returns an IPv4 packet with a datagram to `group`.
pub(crate) fn datagram(group: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() + 8) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend((len + 20).to_be_bytes());
    ip.extend([0, 1, 0x40, 0, 1, 17, 0, 0, 10, 0, 0, 1]);
    ip.extend(group);
    ip.extend([0x9c, 0x40]);
    ip.extend(PORT.to_be_bytes());
    ip.extend(len.to_be_bytes());
    ip.extend([0, 0]);
    ip.extend(payload);
    ip
}

/// Returns the packets of a generated feed.
pub(crate) fn packets(folder: &Folder, count: &str) -> Vec<Vec<u8>> {
    let file = folder.file("feed.dat");
    run(&["generate", "complex", "-n", count, "-o", &file]).succeeded();
    let bytes = std::fs::read(&file).unwrap();
    let mut rest = &bytes[..];
    let mut packets = Vec::new();
    while let Some((header, body)) = rest.split_first_chunk::<4>() {
        let (packet, after) = body.split_at(u32::from_le_bytes(*header) as usize);
        packets.push(packet.to_vec());
        rest = after;
    }
    packets
}

/// Writes a capture; a packet of which `cut` bytes were not captured is truncated.
pub(crate) fn write(file: &str, packets: impl IntoIterator<Item = (u64, Vec<u8>)>, cut: usize) {
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    for (micros, ip) in packets {
        let captured = &ip[..ip.len() - cut];
        let time = 1_700_000_000_000_000_000 + micros * 1_000;
        writer.packet(time, captured, ip.len() as u32).unwrap();
    }
    std::fs::write(file, writer.into_inner()).unwrap();
}

fn decode<'a>(file: &'a str, more: &[&'a str]) -> Said {
    let front = ["decode", "-t", "builtin:complex", "--json", "--pcap", file];
    run(&[&front[..], more].concat())
}

#[test]
fn two_lossy_lines_of_a_capture_are_arbitrated() {
    let folder = Folder::new("capture-lines");
    let file = folder.file("lines.pcap");
    let mut all = Vec::new();
    for (i, packet) in packets(&folder, "500").iter().enumerate() {
        let time = i as u64 * 10;
        if i % 7 != 3 {
            all.push((time, datagram(A, packet)));
        }
        if i % 11 != 4 {
            all.push((time + 25, datagram(B, packet)));
        }
        // Other traffic on the same network.
        all.push((time, datagram([224, 1, 2, 200], b"nothing of ours")));
    }
    all.sort_by_key(|(time, _)| *time);
    write(&file, all, 0);
    let lines = [
        "--multicast",
        "224.1.2.133:13014",
        "--multicast",
        "224.1.2.134:13014",
    ];
    let f = decode(&file, &lines).succeeded().figures();
    let lost = (0..500).filter(|i| i % 7 == 3 && i % 11 == 4).count();
    assert_eq!(f["messages"], 501 - lost);
    assert_eq!((&f["missing"], &f["errors"]), (&lost.into(), &0.into()));
    assert_eq!(f["line_b_late_max_us"], 25.0);
}

#[test]
fn a_feed_that_begins_again_after_a_silence_is_delivered_again() {
    let folder = Folder::new("capture-again");
    let file = folder.file("again.pcap");
    let packets = packets(&folder, "500");
    let play = |start: u64| {
        let at = (start..).step_by(10);
        at.zip(&packets).map(|(time, p)| (time, datagram(A, p)))
    };
    write(&file, play(0).chain(play(2_000_000)), 0);
    for (more, messages, resets) in [
        (&[][..], 1001, 1),
        (&["--restart-after", "3000"], 501, 0),
        (&["--restart-after", "0"], 501, 0),
    ] {
        let f = decode(&file, more).succeeded().figures();
        let expected = (&messages.into(), &resets.into());
        assert_eq!((&f["messages"], &f["resets"]), expected, "{more:?}");
        assert_eq!((&f["gaps"], &f["refused"]), (&0.into(), &0.into()));
    }
}

#[test]
fn the_only_group_of_a_capture_needs_no_name() {
    let folder = Folder::new("capture-one");
    let file = folder.file("one.pcap");
    let packets = packets(&folder, "50");
    let only = packets.iter().map(|p| (0, datagram(A, p)));
    write(&file, only, 0);
    assert_eq!(decode(&file, &[]).succeeded().figures()["messages"], 51);
    let two = packets
        .iter()
        .zip([A, B])
        .map(|(p, to)| (0, datagram(to, p)));
    write(&file, two, 0);
    let said = decode(&file, &[]);
    let both = "datagrams to 224.1.2.133:13014 and to 224.1.2.134:13014";
    assert!(said.code == 1 && said.err.contains(both), "{}", said.err);
}

#[test]
fn captures_that_are_cut_or_none_are_told_apart() {
    let folder = Folder::new("capture-bad");
    let file = folder.file("bad.pcap");
    let packets = packets(&folder, "20");
    write(&file, packets.iter().map(|p| (0, datagram(A, p))), 5);
    let said = decode(&file, &["--keep-going"]);
    // Not even the UDP header of Done is left.
    assert_eq!((said.code, &said.figures()["errors"]), (1, &21.into()));
    write(&file, packets.iter().map(|p| (0, datagram(A, p))), 0);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let said = decode(&file, &[]).succeeded();
    assert!(said.err.contains("cut off in the middle"), "{}", said.err);
    assert_eq!(said.figures()["messages"], 20);
    let said = decode(&folder.file("feed.dat"), &[]);
    assert!(
        said.code == 1 && said.err.contains("not a pcap"),
        "{}",
        said.err
    );
    let said = decode(&file, &["--multicast", "224.9.9.9:1"]).succeeded();
    assert!(said.err.contains("no datagram of the feed"), "{}", said.err);
}

/// Returns a fragment of an IPv4 packet to `group`.
fn fragment(group: [u8; 4], protocol: u8) -> Vec<u8> {
    let mut ip = datagram(group, b"a part of a long datagram");
    (ip[6], ip[9]) = (0x20, protocol);
    ip
}

#[test]
fn only_what_may_be_of_the_groups_is_an_error() {
    let folder = Folder::new("capture-foreign");
    let file = folder.file("foreign.pcap");
    let packets = packets(&folder, "2");
    let mut wrong = datagram([10, 0, 0, 2], b"shorter than its UDP header tells");
    wrong[24] = 0x7f;
    let foreign = [
        fragment([10, 0, 0, 2], 6),
        fragment([10, 0, 0, 2], 17),
        fragment(A, 6),
        wrong.clone(),
    ];
    let ours = packets.iter().map(|packet| datagram(A, packet));
    let all: Vec<_> = foreign.into_iter().chain(ours).map(|ip| (0, ip)).collect();
    write(&file, all.clone(), 0);
    let group = ["--multicast", "224.1.2.133:13014"];
    let f = decode(&file, &group).succeeded().figures();
    assert_eq!((&f["messages"], &f["errors"]), (&3.into(), &0.into()));
    wrong[16..20].copy_from_slice(&A);
    for (packet, why) in [
        (
            fragment(A, 17),
            "IP: a fragment of a packet to 224.1.2.133:",
        ),
        (wrong, "to 224.1.2.133:13014 are incomplete or contradict"),
    ] {
        write(&file, [(0, packet)].into_iter().chain(all.clone()), 0);
        let said = decode(&file, &group);
        assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
        let f = decode(&file, &[&group[..], &["--keep-going"]].concat()).figures();
        assert_eq!((&f["messages"], &f["errors"]), (&3.into(), &1.into()));
    }
}

#[test]
fn in_front_of_the_only_group_of_a_capture_other_traffic_is_no_error() {
    let folder = Folder::new("capture-front");
    let file = folder.file("front.pcap");
    let packets = packets(&folder, "2");
    let mut wrong = datagram([10, 0, 0, 2], b"shorter than its UDP header tells");
    wrong[24] = 0x7f;
    // A report of IPv6, whose hop-by-hop header is cut.
    let mut report = vec![0x60, 0, 0, 0, 0, 36, 0, 1];
    report.extend([0xfe; 32]);
    report.extend([58, 0, 5, 2]);
    let foreign = [wrong, fragment([10, 0, 0, 2], 17), report];
    let ours = packets.iter().map(|packet| datagram(A, packet));
    let all = foreign.clone().into_iter().chain(ours).map(|ip| (0, ip));
    write(&file, all, 0);
    let f = decode(&file, &[]).succeeded().figures();
    assert_eq!((&f["messages"], &f["errors"]), (&3.into(), &0.into()));
    // Without a datagram, each may be of the feed, except the report.
    write(&file, foreign.into_iter().map(|ip| (0, ip)), 0);
    let said = decode(&file, &["--keep-going"]);
    assert_eq!((said.code, &said.figures()["errors"]), (1, &2.into()));
    let ours = packets.iter().map(|packet| (0, datagram(A, packet)));
    let spoilt = [(0, fragment(A, 17))].into_iter().chain(ours);
    write(&file, spoilt, 0);
    let said = decode(&file, &["--keep-going"]);
    assert_eq!((said.code, &said.figures()["errors"]), (1, &1.into()));
    assert_eq!(said.figures()["messages"], 3);
    // Of these, 4,096 wait for the first datagram.
    let other = std::iter::repeat_n((0, fragment([10, 0, 0, 2], 17)), 4_098);
    let ours = packets.iter().map(|packet| (0, datagram(A, packet)));
    write(&file, other.chain(ours), 0);
    let said = decode(&file, &[]).succeeded();
    let note = "2 further packets without a datagram";
    assert!(said.err.contains(note), "{}", said.err);
    assert_eq!(said.figures()["messages"], 3);
}

#[test]
fn a_capture_that_is_cut_within_the_headers_is_not_taken_for_other_traffic() {
    let folder = Folder::new("capture-headers");
    let file = folder.file("headers.pcap");
    let payload = b"a payload";
    for (kept, to) in [
        (16, "an unknown address"),
        (22, "224.1.2.133"),
        (26, "224.1.2.133:13014"),
    ] {
        let cut = payload.len() + 28 - kept;
        write(&file, [(0, datagram(A, payload))], cut);
        let why = format!("a part of the headers of a packet to {to}\n");
        for more in [&[][..], &["--multicast", "224.1.2.133:13014"]] {
            let said = decode(&file, more);
            assert!(said.code == 1 && said.err.contains(&why), "{}", said.err);
            // Without a group, it may be of other traffic.
            let is_none = said.err.contains("no datagram of the feed");
            assert_eq!(is_none, more.is_empty(), "{}", said.err);
        }
        let line = [
            "replay",
            "--json",
            &file,
            "--line",
            "224.1.2.133:13014=127.0.0.1:9",
        ];
        let f = crate::common::run(&line).succeeded().figures();
        let counts = (&f["cut"], &f["other_packets"]);
        assert_eq!(counts, (&1.into(), &0.into()), "{kept}");
    }
    let mut wrong = datagram(A, payload);
    wrong[24] = 0x7f;
    write(&file, [(0, wrong)], 0);
    let f = crate::common::run(&["replay", "--json", &file])
        .succeeded()
        .figures();
    assert_eq!((&f["malformed"], &f["cut"]), (&1.into(), &0.into()));
}

#[test]
fn messages_without_a_number_are_delivered_from_each_line_and_none_is_lost() {
    let folder = Folder::new("capture-unnumbered");
    let file = folder.file("lines.pcap");
    let templates = folder.with(
        "t.xml",
        "<templates><template name='T' id='1'><uInt32 name='MsgSeqNum' id='34'/></template>\
         <template name='H' id='2'><uInt32 name='Time' id='52'/></template></templates>",
    );
    // More than a channel keeps until the end, and some alike.
    let packets = (1..=40).flat_map(|n: u8| [[0xc0, 0x81, 0x80 | n], [0xc0, 0x82, 0x80 | (n / 2)]]);
    let both = packets.flat_map(|packet| [datagram(A, &packet), datagram(B, &packet)]);
    write(&file, both.map(|ip| (0, ip)), 0);
    let lines = [
        "--multicast",
        "224.1.2.133:13014",
        "--multicast",
        "224.1.2.134:13014",
    ];
    let source = [
        "decode", "-t", &templates, "--pcap", &file, "--format", "text",
    ];
    let said = run(&[&source[..], &lines].concat()).succeeded();
    let count = |name: &str| {
        said.out
            .lines()
            .filter(|line| line.starts_with(name))
            .count()
    };
    assert_eq!((count("T "), count("H ")), (40, 80));
}
