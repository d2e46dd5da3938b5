use proptest::prelude::*;

use super::*;
use crate::pcap::{LinkType, Writer};
use crate::testing::{Tcp, capture, fix, v4};

const START: u64 = 1_795_230_732_000_000_000;
const US: u64 = 1_000;

/// Returns a run of `marks` messages from one producer, 10 ms apart; every message is delivered to
/// `consumers`, the n-th delivery of all `latency(n)` nanoseconds after it came in.
fn run(marks: u32, consumers: u16, latency: impl Fn(u64) -> u64) -> Vec<(u64, Vec<u8>)> {
    run_from(0, marks, consumers, latency)
}

/// Returns a run that begins `minute` minutes after the first, on connections of its own.
fn run_from(
    minute: u16,
    marks: u32,
    consumers: u16,
    latency: impl Fn(u64) -> u64,
) -> Vec<(u64, Vec<u8>)> {
    let start = START + u64::from(minute) * 60_000_000 * US;
    let (producer, gateway) = (v4(9, 50_000 + minute), v4(1, 3_000));
    let mut packets = vec![(start, Tcp::new(producer, gateway).syn().sequence(99).ip())];
    let (mut sequence, mut deliveries) = (100, 0);
    let mut sent = vec![7_000_u32; consumers.into()];
    for mark in 0..marks {
        let time = start + u64::from(mark) * 10_000 * US;
        let message = fix("W", &format!("55=EUR/USD|20001=1-{mark}|"));
        let segment = Tcp::new(producer, gateway)
            .sequence(sequence)
            .payload(&message);
        packets.push((time, segment.ip()));
        sequence += message.len() as u32;
        for (consumer, sent) in sent.iter_mut().enumerate() {
            let to = v4(9, 60_000 + 100 * minute + consumer as u16);
            let segment = Tcp::new(v4(1, 3_001), to).sequence(*sent).payload(&message);
            packets.push((time + latency(deliveries), segment.ip()));
            deliveries += 1;
            *sent += message.len() as u32;
        }
    }
    packets
}

fn report(packets: &[(u64, Vec<u8>)], skip: u64) -> Report {
    analyse(
        &capture(packets)[..],
        Options {
            skip,
            ..Options::default()
        },
    )
    .unwrap()
}

fn error(packets: &[(u64, Vec<u8>)]) -> String {
    analyse(&capture(packets)[..], Options::default())
        .unwrap_err()
        .to_string()
}

#[test]
fn the_text_report_line_by_line() {
    // 101 messages in a second to 10 consumers; latencies 1, 2, 3 ... 1010 µs.
    let report = report(&run(101, 10, |n| (n + 1) * US), 10);
    let expected = "\
IN rate: 100 (msg/sec), OUT rate: 1008 (msg/sec)
MIN: 11 (us), MAX: 1010 (us), MEAN: 510.50 (us)
25.00 percentile: 260 (us)
50.00 percentile: 510 (us)
75.00 percentile: 760 (us)
90.00 percentile: 910 (us)
99.00 percentile: 1000 (us)
99.90 percentile: 1009 (us)
99.99 percentile: 1010 (us)
";
    assert_eq!(report.to_string(), expected);
    assert!(report.warnings.is_empty(), "{:?}", report.warnings);
}

#[test]
fn figures_have_the_agreed_names_in_the_agreed_order() {
    let json = report(&run(101, 10, |n| (n + 1) * US), 10)
        .figures()
        .to_json();
    let names: Vec<_> = json["figures"]
        .as_object()
        .unwrap()
        .keys()
        .take(14)
        .cloned()
        .collect();
    let expected = [
        "in_rate_per_s",
        "out_rate_per_s",
        "deliveries",
        "unmatched",
        "min_us",
        "max_us",
        "mean_us",
        "p25_us",
        "p50_us",
        "p75_us",
        "p90_us",
        "p99_us",
        "p99_9_us",
        "p99_99_us",
    ];
    assert_eq!(names, expected);
    assert_eq!(json["figures"]["deliveries"], 1_010);
    assert_eq!(json["figures"]["min_us"], 11.0);
    assert_eq!(json["figures"]["unmatched"], 0);
}

#[test]
fn only_marked_messages_are_paired_and_session_messages_count_nowhere() {
    let (producer, consumer) = (v4(9, 50_000), v4(9, 60_000));
    let incoming = [
        fix("A", "98=0|108=30|"),
        fix("W", "55=X|"),
        fix("W", "55=X|20001=1-1|"),
        fix("0", ""),
    ]
    .concat();
    let outgoing = [fix("A", ""), fix("W", "20001=1-1|"), fix("W", "20001=1-7|")].concat();
    let packets = [
        (
            START,
            Tcp::new(producer, v4(1, 3_000)).payload(&incoming).ip(),
        ),
        (
            START + 5 * US,
            Tcp::new(v4(1, 3_001), consumer).payload(&outgoing).ip(),
        ),
    ];
    let report = report(&packets, 0);
    assert_eq!((report.incoming.messages, report.outgoing.messages), (2, 2));
    assert_eq!(
        (report.latency.len(), report.latency.min()),
        (1, Some(5 * US))
    );
    assert_eq!((report.unmatched, report.undelivered), (1, 0));
    assert_eq!(
        report.warnings,
        ["1 deliveries have no incoming message in the capture"]
    );
}

#[test]
fn a_capture_that_shows_each_packet_twice_counts_it_once() {
    let once = run(20, 3, |n| 50 * US + n);
    let twice: Vec<_> = once
        .iter()
        .flat_map(|(t, ip)| [(*t, ip.clone()), (*t + 900, ip.clone())])
        .collect();
    let (once, twice) = (report(&once, 5), report(&twice, 5));
    assert_eq!(once.to_string(), twice.to_string());
    assert_eq!(once.latency, twice.latency);
    assert!(twice.warnings.is_empty());
}

#[test]
fn a_second_run_with_the_same_marks_has_its_own_latencies() {
    let mut packets = run(20, 3, |n| 50 * US + n);
    let once = report(&packets, 0);
    packets.extend(run_from(1, 20, 3, |n| 50 * US + n));
    let twice = report(&packets, 0);
    assert_eq!(twice.latency.max(), once.latency.max());
    assert_eq!(twice.latency.len(), 2 * once.latency.len());
    assert!(twice.warnings.is_empty(), "{:?}", twice.warnings);
}

#[test]
fn a_resent_message_begins_no_new_one() {
    let mut packets = run(1, 1, |_| 50 * US);
    let (producer, gateway) = (v4(9, 50_001), v4(1, 3_000));
    let resent = fix("W", "43=Y|20001=1-0|");
    let segment = Tcp::new(producer, gateway).payload(&resent);
    packets.push((START + 100 * US, segment.ip()));
    let report = report(&packets, 0);
    assert_eq!((report.incoming.messages, report.undelivered), (2, 0));
    let [warning] = &report.warnings[..] else {
        panic!("{:?}", report.warnings)
    };
    assert!(warning.contains("or are resent"), "{warning}");
}

/// Returns a pcapng of raw IP packets; those without a time in blocks that have none.
fn pcapng(packets: &[(Option<u64>, Vec<u8>)]) -> Vec<u8> {
    let words = |words: &[u32]| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.collect::<Vec<u8>>()
    };
    let block = |kind: u32, mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(4), 0);
        let len = body.len() as u32 + 12;
        [words(&[kind, len]), body, words(&[len])].concat()
    };
    let mut file = block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    // Raw IP (101), of any length, stamps in nanoseconds (option 9).
    file.extend(block(1, words(&[101, 0, (1 << 16) | 9, 9, 0])));
    for (time, ip) in packets {
        let len = ip.len() as u32;
        let (kind, front) = match time {
            Some(time) => (6, words(&[0, (time >> 32) as u32, *time as u32, len, len])),
            None => (3, words(&[len])),
        };
        file.extend(block(kind, [front, ip.clone()].concat()));
    }
    file
}

#[test]
fn packets_without_a_stamp_are_counted_and_not_timed() {
    let stamped = |from: usize| {
        let packets = run(3, 2, |_| 50 * US).into_iter().enumerate();
        let packets = packets.map(|(at, (time, ip))| ((at >= from).then_some(time), ip));
        analyse(
            &pcapng(&packets.collect::<Vec<_>>())[..],
            Options {
                skip: 0,
                ..Options::default()
            },
        )
    };
    let whole = stamped(0).unwrap();
    assert!(whole.warnings.is_empty(), "{:?}", whole.warnings);
    // The opening of the producer's connection, and its first message.
    let report = stamped(2).unwrap();
    assert_eq!((report.incoming.messages, report.outgoing.messages), (3, 6));
    assert_eq!((report.latency.len(), report.unmatched), (4, 2));
    assert_eq!(report.latency.max(), whole.latency.max());
    assert!(report.warnings[0].contains("2 packets have no time stamp"));
    let error = stamped(usize::MAX).unwrap_err().to_string();
    assert_eq!(error, "no packet in the capture has a time stamp");
}

#[test]
fn a_capture_cut_off_within_a_packet_reports_up_to_there_and_warns() {
    let whole = capture(&run(20, 3, |_| 50 * US));
    let cut = &whole[..whole.len() - 20];
    let report = analyse(
        cut,
        Options {
            skip: 0,
            ..Options::default()
        },
    )
    .unwrap();
    assert_eq!((report.latency.len(), report.incoming.messages), (59, 20));
    let [warning] = &report.warnings[..] else {
        panic!("{:?}", report.warnings)
    };
    assert!(
        warning.contains("cut off in the middle of the packet at byte"),
        "{warning}"
    );
}

#[test]
fn what_the_capture_lost_is_missing_and_said() {
    let mut packets = run(20, 3, |_| 50 * US);
    // The second producer packet and one delivery of the fourth message.
    packets.remove(14);
    packets.remove(5);
    let report = report(&packets, 0);
    assert_eq!(
        (report.incoming.messages, report.outgoing.messages),
        (19, 59)
    );
    assert_eq!((report.latency.len(), report.unmatched), (56, 3));
    assert!(
        report.warnings[0].contains("2 holes (lost packets)"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn packets_that_cannot_be_read_are_counted_by_their_kind() {
    let mut packets = run(2, 1, |_| 50 * US);
    let whole = packets[1].1.clone();
    let mut fragment = whole.clone();
    fragment[6] = 0x20;
    let mut foreign = fragment.clone();
    foreign[9] = 17;
    let cut = whole[..22].to_vec();
    packets.extend([fragment, foreign, cut].map(|ip| (START, ip)));
    let stamped = packets.into_iter().map(|(time, ip)| (Some(time), ip));
    let mut file = pcapng(&stamped.collect::<Vec<_>>());
    // An interface of link type 105, and an empty packet of it.
    let words = [1_u32, 20, 105, 0, 20, 6, 32, 1, 0, 0, 0, 0, 32];
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    let options = Options {
        skip: 0,
        ..Options::default()
    };
    let report = analyse(&file[..], options).unwrap();
    assert_eq!(
        report.warnings,
        [
            "1 IP fragments were left out",
            "1 packets were left out, as their headers were captured in part",
            "1 packets were left out, as their link type is not supported",
        ]
    );
}

#[test]
fn other_traffic_is_an_error_that_says_what_it_is() {
    assert!(error(&[]).contains("it has no packets"));
    let web = Tcp::new(v4(9, 55_555), v4(1, 443)).payload(b"GET /").ip();
    let text = error(&[(START, web)]);
    assert!(
        text.contains("none of its 1 TCP segments") && text.contains("443"),
        "{text}"
    );
    let silent = Tcp::new(v4(9, 55_555), v4(1, 3_000))
        .payload(b"GET / HTTP/1.1")
        .ip();
    assert!(error(&[(START, silent.clone())]).contains("no FIX message"));
    let mut udp = silent;
    udp[9] = 17;
    let cut = udp[..8].to_vec();
    assert!(error(&[(START, udp)]).contains("none of its 1 packets is TCP"));
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 8).unwrap();
    writer.packet(START, &cut, 60).unwrap();
    let error = analyse(&writer.into_inner()[..], Options::default()).unwrap_err();
    let told = "1 of its 1 packets were captured with a part of their headers";
    assert!(error.to_string().contains(told), "{error}");
    let not_pcap = analyse(&b"8=FIX.4.4|9=5|"[..], Options::default()).unwrap_err();
    assert!(not_pcap.to_string().contains("not a pcap"), "{not_pcap}");
}

#[test]
fn ports_are_options() {
    let packets = run(3, 2, |_| 50 * US);
    let options = Options {
        in_port: 3_000,
        out_port: 4_001,
        skip: 0,
    };
    let report = analyse(&capture(&packets)[..], options).unwrap();
    assert_eq!((report.incoming.messages, report.outgoing.messages), (3, 0));
    assert_eq!(report.undelivered, 3);
    assert_eq!(report.to_string().lines().count(), 1);
    assert!(report.figures().value("p50_us").is_none());
}

#[test]
fn the_page_needs_nothing_from_elsewhere_and_survives_no_data() {
    let page = report(&run(101, 10, |n| (n + 1) * US), 10).to_html("<run>.pcap");
    assert!(page.contains("&lt;run&gt;.pcap") && !page.contains("<run>"));
    assert_eq!(page.matches("<svg").count(), 3);
    for outside in ["http://", "https://", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let empty = report(&run(2, 1, |_| US), 1_000);
    assert!(empty.warnings[0].contains("all 2 deliveries are within the first 1000"));
    assert_eq!(empty.all_skipped(), Some(2));
    assert!(empty.to_html("x").matches("no data").count() >= 2);
}

proptest! {
    /// Any flipped or truncated bytes lead to a report or an error.
    #[test]
    fn no_damage_makes_it_panic(
        flips in prop::collection::vec((any::<u16>(), any::<u8>()), 0..40),
        len in any::<u16>(),
    ) {
        let mut bytes = capture(&run(3, 2, |n| n * US));
        for (at, value) in flips {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        bytes.truncate(usize::from(len) % (bytes.len() + 400));
        if let Ok(report) = analyse(&bytes[..], Options { skip: 0, ..Options::default() }) {
            prop_assert!(report.to_html("x").ends_with("</html>\n"));
            prop_assert!(report.latency.len() <= report.outgoing.messages);
        }
    }
}
