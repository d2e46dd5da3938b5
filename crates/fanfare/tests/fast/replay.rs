//! Tests of `fanfare replay`: captures and files of packets into multicast lines.

use crate::capture::{A, B, datagram, packets, write};
use crate::common::{Folder, Running, Said, fails, groups, told};
use crate::run::{receiving, run};
use serde_json::Value;
use std::net::UdpSocket;

/// The time in a capture's second 0.
const BEGIN: &str = "2023-11-14T22:13:20Z";

fn replay(args: &[&str]) -> Said {
    crate::common::run(&[&["replay", "--json"], args].concat())
}

/// Starts a receiver of two lines of a generated feed, with a long gap time-out.
fn receiver([a, b]: &[String; 2]) -> Running {
    let decode = ["decode", "-t", "builtin:complex", "--json"];
    let lines = ["--multicast", a, "--multicast", b];
    let patient = ["--idle", "60", "--gap-timeout", "2000"];
    receiving(&[&decode[..], &lines, &patient].concat(), 2)
}

fn counts(figures: &Value, names: &[&str]) -> Vec<u64> {
    let count = |name: &&str| figures[*name].as_u64().unwrap_or(u64::MAX);
    names.iter().map(count).collect()
}

#[test]
fn two_files_are_two_lines_with_their_skew() {
    let folder = Folder::new("replay-lines");
    let packets = packets(&folder, "500");
    let [a, b] = ["a.pcap", "b.pcap"].map(|name| folder.file(name));
    let line = |to, skew: u64, without: usize| {
        let kept = packets
            .iter()
            .enumerate()
            .filter(move |(i, _)| i % 7 != without);
        kept.map(move |(i, packet)| (i as u64 * 100 + skew, datagram(to, packet)))
    };
    write(&a, line(A, 0, 3), 0);
    // A capture with the second host's clock, with other traffic, and later by 250 us.
    write(
        &b,
        line(B, 250, 4).chain([(60_000, datagram([224, 0, 0, 251], b"other"))]),
        0,
    );
    let groups = groups();
    let receiver = receiver(&groups);
    let [first, second] = [(A, &groups[0]), (B, &groups[1])].map(|(from, to)| {
        let [w, x, y, z] = from;
        format!("{w}.{x}.{y}.{z}:13014={to}")
    });
    let said = replay(&[&a, &b, "--speed", "2", "--line", &first, "--line", &second]);
    let f = said.succeeded().figures();
    let names = [
        "datagrams",
        "line_1_datagrams",
        "line_2_datagrams",
        "other_packets",
    ];
    // 501 packets, of which each line lacks every seventh.
    assert_eq!(counts(&f, &names), [859, 429, 430, 1]);
    assert_eq!(f["captured_us"], 50_250.0);
    // A replay never takes less time than the capture did.
    assert!(f["elapsed_us"].as_f64().unwrap() >= 25_125.0);
    let r = receiver.end().succeeded().figures();
    assert_eq!(counts(&r, &["messages", "missing", "errors"]), [501, 0, 0]);
    let lines = counts(&r, &["line_a_packets", "line_b_packets"]);
    assert_eq!(lines, [429, 430]);
}

#[test]
fn a_file_of_packets_needs_a_line_and_a_pace() {
    let folder = Folder::new("replay-packets");
    packets(&folder, "200");
    let file = folder.file("feed.dat");
    let groups = groups();
    let lines = ["1", "2"].map(|n| format!("{n}={}", groups[usize::from(n == "2")]));
    let receiver = receiver(&groups);
    let both = ["--line", &lines[0], "--line", &lines[1]];
    let args = [&[file.as_str(), &file, "--every", "10"], &both[..]].concat();
    let f = replay(&args).succeeded().figures();
    assert_eq!(
        counts(&f, &["line_1_datagrams", "line_2_datagrams"]),
        [201, 201]
    );
    let r = receiver.end().succeeded().figures();
    assert_eq!(counts(&r, &["messages", "missing"]), [201, 0]);
    for (args, status, why) in [
        (&["--every", "1"][..], 1, "--line 1=ADDRESS:PORT"),
        (&["--line", &lines[0]], 1, "--every MICROSECONDS"),
        (
            &["--every", "1", "--line", &lines[1]],
            2,
            "no file 2 is given",
        ),
        (
            &["--every", "1", "--line", "1=8.8.8.8:53"],
            2,
            "neither a multicast group",
        ),
        (
            &["--every", "1", "--line", &lines[0], "--from", "10:00"],
            1,
            "+SECONDS",
        ),
        (
            &["--every", "1", "--line", &lines[0], "--header", "u8"],
            1,
            "block size is zero",
        ),
    ] {
        let said = told(&[&["replay", &file], args].concat(), status);
        assert!(said.contains(why), "{why}: {said}");
    }
}

#[test]
fn a_file_of_packets_is_replayed_until_where_it_is_cut() {
    let folder = Folder::new("replay-cut");
    let count = packets(&folder, "9").len();
    let bytes = folder.read("feed.dat");
    let cut = folder.with("cut.dat", &bytes[..bytes.len() - 1]);
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    let line = format!("1={}", receiver.local_addr().unwrap());
    let said = told(&["replay", &cut, "--every", "1", "--line", &line], 1);
    assert!(said.contains("truncated"), "{said}");
    receiver.set_nonblocking(true).unwrap();
    let received = std::iter::from_fn(|| receiver.recv(&mut [0; 65_536]).ok());
    assert_eq!(received.count(), count - 1);
}

#[test]
fn a_part_of_a_capture_again_and_again() {
    let folder = Folder::new("replay-part");
    let file = folder.file("feed.pcap");
    let packets = packets(&folder, "100");
    let second = |i: usize| i as u64 * 1_000_000;
    write(
        &file,
        packets
            .iter()
            .enumerate()
            .map(|(i, p)| (second(i), datagram(A, p))),
        0,
    );
    let line = format!("224.1.2.133:13014={}", groups()[0]);
    let part = |from: &str, to: &str| {
        let args = [
            "--speed", "max", "--loop=3", "--line", &line, "--from", from, "--to", to,
        ];
        let f = replay(&[&[file.as_str()], &args[..]].concat())
            .succeeded()
            .figures();
        counts(&f, &["datagrams"])[0]
    };
    assert_eq!(part(BEGIN, "+1"), 3);
    assert_eq!(part("+10", "+20"), 30);
    assert_eq!(part("22:13:30", "2023-11-14T22:13:31.000000001Z"), 6);
}

/// Returns a block of pcapng.
fn block(kind: u32, body: &[u8], order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = order(body.len() as u32 + 12);
    [&order(kind)[..], &len, &body, &len].concat()
}

/// Returns a capture of datagrams, at intervals of a millisecond, without the stamp of the last
/// one.
fn ng(datagrams: &[Vec<u8>], order: fn(u32) -> [u8; 4]) -> Vec<u8> {
    let short = |word: u32| order(word)[..].to_vec();
    let half = |n: u16| {
        if order(1)[0] == 1 {
            n.to_le_bytes()
        } else {
            n.to_be_bytes()
        }
    };
    let version = [&order(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    // Raw IP, stamps in 10^-9 s.
    let interface = [
        &half(101)[..],
        &[0; 6],
        &half(9),
        &half(1),
        &[9, 0, 0, 0],
        &[0; 4],
    ]
    .concat();
    let mut file = [
        block(0x0a0d_0d0a, &version, order),
        block(1, &interface, order),
    ]
    .concat();
    for (i, data) in datagrams.iter().enumerate() {
        let len = short(data.len() as u32);
        if i + 1 == datagrams.len() {
            file.extend(block(3, &[&len[..], data].concat(), order));
            continue;
        }
        let time = 1_700_000_000_000_000_000 + i as u64 * 1_000_000;
        let [high, low] = [(time >> 32) as u32, time as u32].map(order);
        let head = [&[0; 4], &high, &low, &len[..], &len].concat();
        file.extend(block(6, &[&head[..], data].concat(), order));
    }
    file
}

#[test]
fn pcapng_of_both_byte_orders_is_replayed_until_where_it_is_cut() {
    let folder = Folder::new("replay-ng");
    let some: Vec<_> = packets(&folder, "9")
        .iter()
        .map(|p| datagram(A, p))
        .collect();
    let line = format!("224.1.2.133:13014={}", groups()[0]);
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        let whole = ng(&some, order);
        let file = folder.with("feed.pcapng", &whole);
        let f = replay(&[&file, "--line", &line]).succeeded().figures();
        assert_eq!(
            (&f["datagrams"], &f["captured_us"]),
            (&10.into(), &8_000.0.into())
        );
        folder.with("feed.pcapng", &whole[..whole.len() - 5]);
        let said = replay(&[&file, "--line", &line]).succeeded();
        assert!(said.err.contains("cut off in the middle"), "{}", said.err);
        assert_eq!(said.figures()["datagrams"], 9);
    }
}

#[test]
fn packets_of_a_link_type_that_is_not_supported_are_counted_and_told() {
    let folder = Folder::new("replay-link");
    let some: Vec<_> = packets(&folder, "9")
        .iter()
        .map(|p| datagram(A, p))
        .collect();
    let order = u32::to_le_bytes;
    let wireless = [&105_u16.to_le_bytes()[..], &[0; 6]].concat();
    let (one, four) = (order(1), order(4));
    let packet = [&one[..], &[0; 8], &four, &four, &[1, 2, 3, 4]].concat();
    let whole = [
        ng(&some, order),
        block(1, &wireless, order),
        block(6, &packet, order),
        block(6, &packet, order),
    ];
    let file = folder.with("feed.pcapng", whole.concat());
    let note = "link type is not supported: 2 (link type 105)";
    let line = format!("224.1.2.133:13014={}", groups()[0]);
    let said = replay(&[&file, "--line", &line]).succeeded();
    assert!(said.err.contains(note), "{}", said.err);
    let f = said.figures();
    let names = ["datagrams", "unsupported_link", "other_packets"];
    assert_eq!(counts(&f, &names), [10, 2, 0]);
    let decode = ["decode", "-t", "builtin:complex", "--json", "--pcap", &file];
    let said = run(&decode).succeeded();
    assert!(said.err.contains(note), "{}", said.err);
    assert_eq!(said.figures()["messages"], 10);
    let said = crate::common::run(&["fix", "cat", &file]);
    assert!(said.err.contains(note), "{}", said.err);
}

#[test]
fn ctrl_c_ends_a_replay_without_end() {
    let folder = Folder::new("replay-stop");
    let file = folder.file("feed.pcap");
    let packets = packets(&folder, "10");
    write(&file, packets.iter().map(|p| (0, datagram(A, p))), 0);
    let line = format!("224.1.2.133:13014={}", groups()[0]);
    let args = ["replay", &file, "--loop", "--line", &line];
    let running = Running::start(&mut crate::common::fanfare(&args));
    running.interrupt();
    let said = running.end().succeeded();
    assert!(said.err.contains(" s in "), "{}", said.err);
}

#[test]
fn what_cannot_be_replayed_is_told() {
    let folder = Folder::new("replay-bad");
    let capture = folder.file("feed.pcap");
    let packets = packets(&folder, "3");
    let to_a_host = packets.iter().map(|p| (0, datagram([10, 0, 0, 2], p)));
    write(&capture, to_a_host, 0);
    let said = replay(&[&capture]).succeeded();
    assert!(said.err.contains("nothing was sent"), "{}", said.err);
    assert_eq!(said.figures()["other_packets"], 4);
    let said = fails(&["replay", &capture, "--line", "10.0.0.2:13014"]);
    assert!(
        said.contains("10.0.0.2 is neither a multicast group"),
        "{said}"
    );
    write(&capture, packets.iter().map(|p| (0, datagram(A, p))), 5);
    let said = replay(&[&capture, "--line", "239.1.1.1:7"]).succeeded();
    assert!(
        said.err.contains("4 datagrams captured in part"),
        "{}",
        said.err
    );
    assert!(said.err.contains("239.1.1.1:7"), "{}", said.err);
    write(&capture, packets.iter().map(|p| (0, datagram(A, p))), 0);
    let empty = folder.with("empty", "");
    let packed = folder.with("packed", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    let folder_itself = folder.path().to_str().unwrap();
    let (feed, line) = (folder.file("feed.dat"), "1=224.1.1.1:7");
    for (args, why) in [
        (&[empty.as_str()][..], "empty"),
        (&[&packed], "compressed with gzip"),
        (&[folder_itself], "is not a log"),
        (&["nowhere.pcap"], "cannot open `nowhere.pcap`"),
        (&["no-log", "--from", "-60"], "cannot open `no-log`"),
        (
            &[&capture, &feed, "--every", "1", "--line", "2=224.1.1.1:7"],
            "together",
        ),
        (
            &[&capture, "--loop", "--line", "239.1.1.1:7"],
            "nothing is left to send",
        ),
        (&[&capture, "--interface", "192.0.2.1"], "192.0.2.1"),
    ] {
        let said = fails(&[&["replay"], args].concat());
        assert!(said.contains(why), "{why}: {said}");
    }
    for (args, why) in [
        (&["-", "--loop"][..], "stdin can be read only once"),
        (&[&capture, "--line", line, "--line", line], "twice"),
        (&[&capture, "--to", "-5"], "the end of a capture is not"),
        (&[&capture, "--port", "0"], "needs a log or DBN"),
        (&["day.dbn", "--ttl", "1"], "--ttl and --json are of"),
        (&["day.dbn", "--from", "+1"], "is always read whole"),
        (&["day.dbn", &capture], "must be the only file"),
    ] {
        let said = told(&[&["replay"], args].concat(), 2);
        assert!(said.contains(why), "{why}: {said}");
    }
    for wrong in [
        ["--speed", "0"],
        ["--from", "7"],
        ["--line", "x"],
        ["--to", "noon"],
    ] {
        told(&[&["replay", &capture], &wrong[..]].concat(), 2);
    }
    run(&["decode", "-t", "builtin:complex", "-f", &feed]).succeeded();
}
