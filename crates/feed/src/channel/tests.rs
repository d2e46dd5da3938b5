mod numbers;
mod parts;
mod runs;
mod slow;
mod starts;

use super::*;
use crate::arbiter::ArbiterConfig;
use crate::framing::Header;
use crate::numbers::SequenceField;
use crate::preamble::Preamble;
use fanfare_fast::Program;
use std::sync::Arc;

const TEMPLATES: &str = r#"<templates>
    <template name="MDReset" id="120"/>
    <template name="Quote" id="1">
        <uInt32 name="MsgSeqNum" id="34"><increment/></uInt32>
        <uInt32 name="Price" id="44"><copy/></uInt32>
    </template>
    <template name="News" id="2">
        <uInt32 name="MsgSeqNum" id="34"/><string name="Headline" id="148"/>
    </template>
    <template name="SequenceReset" id="4">
        <uInt32 name="MsgSeqNum" id="34"/><uInt32 name="NewSeqNo" id="36"/>
    </template>
    <template name="Done" id="99"><uInt32 name="Type" id="35"><constant value="99"/></uInt32>
    </template>
</templates>"#;

fn program() -> Arc<Program> {
    Arc::new(Program::parse(TEMPLATES).unwrap())
}

fn channel(config: ChannelConfig) -> Channel {
    Channel::new(Decoder::new(program()), config).unwrap()
}

/// Returns a channel whose lines keep their dictionaries.
fn keeping(templates: &str, mut config: ChannelConfig) -> Channel {
    config.keep_dictionary = true;
    let decoder = Decoder::new(Program::parse(templates).unwrap());
    Channel::new(decoder, config).unwrap()
}

/// Returns a stop-bit number.
fn number(n: u32) -> Vec<u8> {
    let groups = (32 - n.leading_zeros()).div_ceil(7).max(1);
    let group = |i| (n >> (7 * i)) as u8 & 0x7f | if i == 0 { 0x80 } else { 0 };
    (0..groups).rev().map(group).collect()
}

/// Returns a Quote with its number and price, and `more` that follow by increment and copy.
fn quotes(first: u32, price: u32, more: usize) -> Vec<u8> {
    let mut packet = [&[0xf0, 0x81][..], &number(first), &number(price)].concat();
    packet.extend([0x80].repeat(more));
    packet
}

fn news(n: u32, text: &str) -> Vec<u8> {
    let (last, front) = text.as_bytes().split_last().unwrap();
    [&[0xc0, 0x82][..], &number(n), front, &[last | 0x80]].concat()
}

fn sequence_reset(n: u32, next: u32) -> Vec<u8> {
    [&[0xc0, 0x84][..], &number(n), &number(next)].concat()
}

const DONE: &[u8] = &[0xc0, 0xe3];
const RESET: &[u8] = &[0xc0, 0xf8];

fn datagram(line: Line, now: u64, bytes: &[u8]) -> Datagram<'_> {
    Datagram {
        line,
        now,
        received: now,
        offset: 0,
        bytes,
    }
}

/// Returns the events as texts.
fn told(mut events: Events<'_, '_>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some(event) = events.next() {
        told.push(text(event));
    }
    told
}

fn text(event: Event<'_>) -> String {
    match event {
        Event::Message(m) => {
            let (number, index) = (m.number, m.index);
            let view = m.record.view(m.program).unwrap();
            let price = view.tag(44).and_then(|v| v.as_u64());
            let text = view.tag(148).and_then(|v| v.as_str()).unwrap_or_default();
            let name = view.template().name();
            match (number, price) {
                (Some(n), Some(price)) => format!("{name} {n}.{index} {price}"),
                (Some(n), None) => format!("{name} {n}.{index} {text}"),
                (None, _) => name.to_owned(),
            }
        }
        Event::Bad(bad) => format!("bad {} at {}", bad.fault, bad.offset),
        Event::Gap(gap) => format!("gap {}-{}", gap.first, gap.last()),
        Event::Recover(gap) => format!("recover {}-{}", gap.first, gap.last()),
        Event::Reset {
            next, announced, ..
        } => format!("reset {next} {announced}"),
    }
}

/// Receives the packets of these lines, and returns the events as texts.
fn all_told<P: AsRef<[u8]>>(
    channel: &mut Channel,
    packets: impl IntoIterator<Item = (Line, P)>,
) -> Vec<String> {
    let packets = packets.into_iter();
    let told = packets.map(|(line, packet)| {
        let packet = datagram(line, 0, packet.as_ref());
        told(channel.receive(packet))
    });
    told.flatten().collect()
}

#[test]
fn two_lines_are_one_stream_and_only_a_packet_that_waits_is_decoded_again() {
    let mut channel = channel(ChannelConfig::new(2));
    let [one, four, five] = &[quotes(1, 50, 2), quotes(4, 51, 0), quotes(5, 52, 1)];
    // A has lost the second one; B follows.
    let packets = [
        (Line::A, one),
        (Line::A, five),
        (Line::B, one),
        (Line::B, four),
        (Line::B, five),
    ];
    let all = all_told(&mut channel, packets);
    let expected = [
        "Quote 1.0 50",
        "Quote 2.0 50",
        "Quote 3.0 50",
        "Quote 4.0 51",
        "Quote 5.0 52",
        "Quote 6.0 52",
    ];
    assert_eq!(all, expected);
    let stats = channel.stats();
    assert_eq!((stats.packets, stats.decoded), ([2, 3, 0, 0], 4));
    assert_eq!((stats.delivered, stats.decoded_again), (3, 1));
    assert_eq!(channel.arbiter().line(Line::A).lost, 1);
}

#[test]
fn a_doubtful_packet_does_not_make_others_be_decoded_twice() {
    let mut channel = channel(ChannelConfig::new(2));
    let mut packets: Vec<_> = (0..20)
        .map(|i| (Line::A, quotes(1 + 6 * i, 50, 5)))
        .collect();
    packets.insert(1, (Line::B, quotes(90_000_000, 1, 0)));
    assert_eq!(all_told(&mut channel, packets).len(), 120);
    let stats = channel.stats();
    // The stray one is decoded too, and the first one again: it was in order only once it had begun
    // the run.
    assert_eq!((stats.delivered, stats.decoded), (20, 22));
}

#[test]
fn what_was_delivered_before_is_left_out_by_its_numbers() {
    let mut channel = channel(ChannelConfig::new(1));
    told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 1))));
    // The packet begins with a message without a number, and overlaps.
    let packet = [RESET, &quotes(2, 60, 1)].concat();
    let all = told(channel.receive(datagram(Line::A, 0, &packet)));
    assert_eq!(all, ["Quote 3.0 60"]);
}

#[test]
fn a_preamble_numbers_packets_which_are_decoded_when_their_turn_comes() {
    let mut config = ChannelConfig::new(2);
    config.preamble = Preamble::Cme;
    let xml = r#"<template name="Quote" id="1"><uInt32 name="Price" id="44"/></template>"#;
    let decoder = Decoder::new(Program::parse(xml).unwrap());
    let mut channel = Channel::new(decoder, config).unwrap();
    let packet = |sequence: u32| {
        let mut packet = Vec::new();
        Preamble::Cme.write(sequence, &mut packet);
        for price in [7, 8] {
            packet.extend([0xc0, 0x81, 0x80 | price]);
        }
        packet
    };
    let packets = [
        (Line::A, packet(1)),
        (Line::A, packet(3)),
        (Line::B, packet(1)),
        (Line::B, packet(2)),
        (Line::B, packet(3)),
    ];
    let all = all_told(&mut channel, packets);
    let expected = ["1.0 7", "1.1 8", "2.0 7", "2.1 8", "3.0 7", "3.1 8"];
    assert_eq!(all, expected.map(|text| format!("Quote {text}")));
    assert_eq!(
        (channel.stats().decoded, channel.stats().decoded_again),
        (3, 0)
    );
    let short = told(channel.receive(datagram(Line::A, 0, &[1, 2])));
    assert_eq!(short.len(), 1);
    assert!(short[0].starts_with("bad "), "{short:?}");
}

#[test]
fn the_last_message_of_a_packet_with_a_preamble_is_told_and_the_number_of_a_bad_one() {
    let mut config = ChannelConfig::new(2);
    config.preamble = Preamble::Cme;
    let mut channel = channel(config);
    let mut all = Vec::new();
    // The last message of the third packet, which waits, has an unknown template.
    let bodies = [
        (1, [DONE, DONE].concat()),
        (3, [DONE, &[0xc0, 0xff]].concat()),
        (2, DONE.to_vec()),
    ];
    for (sequence, body) in bodies {
        let mut bytes = Vec::new();
        Preamble::Cme.write(sequence, &mut bytes);
        bytes.extend(body);
        let mut events = channel.receive(datagram(Line::A, 0, &bytes));
        while let Some(event) = events.next() {
            all.push(match event {
                Event::Message(m) => (m.number, m.is_last),
                Event::Bad(bad) => (bad.number.map(u64::from), false),
                _ => continue,
            });
        }
    }
    let expected = [(1, false), (1, true), (2, true), (3, false), (3, false)];
    assert_eq!(
        all,
        expected.map(|(number, is_last)| (Some(number), is_last))
    );
}

#[test]
fn packets_with_length_headers_share_a_datagram() {
    let mut config = ChannelConfig::new(1);
    config.header = Header::U16Be;
    let mut channel = channel(config);
    let mut bytes = Vec::new();
    for packet in [quotes(1, 50, 0), quotes(2, 51, 0)] {
        Header::U16Be.write(packet.len(), &mut bytes).unwrap();
        bytes.extend(packet);
    }
    bytes.extend([0, 9, 1]);
    let all = told(channel.receive(datagram(Line::A, 0, &bytes)));
    assert_eq!(&all[..2], ["Quote 1.0 50", "Quote 2.0 51"]);
    assert!(
        all[2].starts_with("bad ") && all[2].ends_with(" at 12"),
        "{all:?}"
    );
    assert_eq!(all.len(), 3);
}

#[test]
fn a_gap_is_given_up_after_its_time() {
    let mut channel = channel(ChannelConfig::new(2));
    let mut all = told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 0))));
    all.extend(told(channel.receive(datagram(
        Line::A,
        5,
        &quotes(4, 51, 0),
    ))));
    let time = channel.poll_timeout().unwrap();
    assert_eq!(time, 5 + ArbiterConfig::default().gap_timeout);
    all.extend(told(channel.handle_timeout(time - 1)));
    assert_eq!(all, ["Quote 1.0 50"]);
    all.extend(told(channel.handle_timeout(time)));
    assert_eq!(&all[1..], ["gap 2-3", "Quote 4.0 51"]);
    assert_eq!(channel.poll_timeout(), None);
}

#[test]
fn a_sequence_reset_begins_a_run() {
    let mut channel = channel(ChannelConfig::new(1));
    let packets = [quotes(9, 50, 0), sequence_reset(10, 1), quotes(1, 51, 0)];
    assert_eq!(
        all_told(&mut channel, packets.map(|packet| (Line::A, packet))),
        [
            "Quote 9.0 50",
            "SequenceReset 10.0 ",
            "reset 1 true",
            "Quote 1.0 51"
        ]
    );
}

#[test]
fn packets_without_a_number_wait_for_the_end_where_that_is_wanted() {
    let mut config = ChannelConfig::new(2);
    config.unnumbered = Unnumbered::AtTheEnd;
    let mut channel = channel(config);
    let mut all = told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 0))));
    all.extend(told(channel.receive(datagram(Line::A, 10, DONE))));
    all.extend(told(channel.receive(datagram(Line::B, 20, DONE))));
    all.extend(told(channel.receive(datagram(
        Line::B,
        30,
        &quotes(2, 51, 0),
    ))));
    assert_eq!(all, ["Quote 1.0 50", "Quote 2.0 51"]);
    let time = channel.poll_timeout().unwrap();
    assert_eq!(told(channel.handle_timeout(time)), ["Done"]);
    assert_eq!(channel.poll_timeout(), None);
    // Otherwise they are delivered at once, from each line.
    let mut at_once = self::channel(ChannelConfig::new(2));
    for line in [Line::A, Line::B] {
        assert_eq!(told(at_once.receive(datagram(line, 0, DONE))), ["Done"]);
    }
}

#[test]
fn a_packet_that_is_bad_from_its_first_byte_is_told_once_and_at_once() {
    let mut config = ChannelConfig::new(2);
    config.unnumbered = Unnumbered::AtTheEnd;
    let mut channel = channel(config);
    let packets = [
        (Line::A, [0xc0, 0xff]),
        (Line::B, [0xc0, 0xff]),
        (Line::A, [0xc0, 0xfe]),
    ];
    let all = all_told(&mut channel, packets);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all.iter().all(|text| text.starts_with("bad ")));
}

#[test]
fn a_bad_packet_is_told_once_and_its_front_is_delivered() {
    let mut channel = channel(ChannelConfig::new(2));
    let mut cut = quotes(1, 50, 1);
    cut.extend([0xc0, 0xff]);
    let all = all_told(&mut channel, [(Line::A, &cut), (Line::B, &cut)]);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all[2].starts_with("bad "));
    assert_eq!(channel.stats().bad, 1);
}

#[test]
fn lines_that_build_on_each_message_are_arbitrated_too() {
    let mut channel = keeping(TEMPLATES, ChannelConfig::new(2));
    // Each message is a packet; only the first of a line has its values.
    let stream = quotes(1, 50, 5);
    let (first, second, third) = (&stream[..4], &stream[4..5], &stream[5..6]);
    // A runs ahead; nothing of B is new until it is further.
    let packets = [
        (Line::A, first),
        (Line::A, second),
        (Line::B, first),
        (Line::B, second),
        (Line::B, third),
    ];
    let all = all_told(&mut channel, packets);
    assert_eq!(all, ["Quote 1.0 50", "Quote 2.0 50", "Quote 3.0 50"]);
}

/// Returns a packet with its number in front.
fn behind_its_number(sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Preamble::Seq32Le.write(sequence, &mut bytes);
    bytes.extend(body);
    bytes
}

/// Receives packets with preambles on lines that keep their dictionaries. Returns the channel, and
/// the events up to its end.
fn kept(templates: &str, lines: usize, packets: &[(Line, u32, &[u8])]) -> (Channel, Vec<String>) {
    let mut config = ChannelConfig::new(lines);
    config.preamble = Preamble::Seq32Le;
    let mut channel = keeping(templates, config);
    let packets = packets.iter();
    let packets = packets.map(|(line, sequence, body)| (*line, behind_its_number(*sequence, body)));
    let mut all = all_told(&mut channel, packets);
    all.extend(told(channel.finish()));
    (channel, all)
}

#[test]
fn a_packet_with_a_preamble_that_waits_has_the_values_of_its_dictionary() {
    let xml = r#"<templates>
        <template name="Quote" id="1"><uInt32 name="Price" id="44"><copy/></uInt32></template>
        <template name="MDReset" id="120"/>
    </templates>"#;
    let begun = [RESET, &[0xe0, 0x81, 0xb3]].concat();
    // Behind a gap, packet 4 has the template and the price of the one before, 5 a new price.
    let packets = [
        (Line::A, 1, &[0xe0, 0x81, 0xb2][..]),
        (Line::A, 3, &begun[..]),
        (Line::A, 4, &[0x80][..]),
        (Line::A, 5, &[0xa0, 0xb4][..]),
    ];
    let (_, all) = kept(xml, 1, &packets);
    let expected = [
        "Quote 1.0 50",
        "gap 2-2",
        "MDReset 3.0 ",
        "Quote 3.1 51",
        "Quote 4.0 51",
        "Quote 5.0 52",
    ];
    assert_eq!(all, expected);
}

const DELTA: &str = r#"<templates>
    <template name="Quote" id="1"><uInt32 name="Price" id="44"><delta/></uInt32></template>
    <template name="MDReset" id="120"/>
</templates>"#;
/// The price 100, a difference of 1, and an unknown template.
const FIRST: &[u8] = &[0xc0, 0x81, 0x00, 0xe4];
const MORE: &[u8] = &[0xc0, 0x81, 0x81];
const UNKNOWN: &[u8] = &[0xc0, 0x85];

#[test]
fn packets_that_build_on_one_with_an_error_are_left_out_until_a_reset() {
    let mut channel = keeping(DELTA, ChannelConfig::new(1));
    let mut all = Vec::new();
    let begun = [RESET, &[0xc0, 0x81, 0x82]].concat();
    // They have a price, an unknown template, a difference, no template, and a Reset.
    let packets = [FIRST, UNKNOWN, MORE, &[0x80, 0x81], &begun[..], MORE];
    for bytes in packets {
        let mut events = channel.receive(datagram(Line::A, 0, bytes));
        while let Some(event) = events.next() {
            all.push(match event {
                Event::Message(m) => {
                    let view = m.record.view(m.program).unwrap();
                    let price = view.tag(44).and_then(|v| v.as_u64());
                    price.map_or_else(|| "reset".to_owned(), |price| price.to_string())
                }
                Event::Bad(bad) => bad.fault.to_string(),
                other => format!("{other:?}"),
            });
        }
    }
    let lost = "D9 in a packet that this one builds on";
    let unknown = "D9 at byte 1: unknown template identifier 5";
    assert_eq!(all, ["100", unknown, lost, lost, "reset", "2", "3"]);
    assert_eq!(channel.stats().bad, 3);
}

#[test]
fn packets_behind_a_gap_or_a_repeated_one_are_left_out_until_a_reset() {
    let begun = [RESET, &[0xc0, 0x81, 0x82]].concat();
    let packets = [
        (Line::A, 1, FIRST),
        (Line::A, 3, MORE),
        (Line::A, 4, &begun[..]),
        (Line::A, 5, MORE),
        (Line::A, 5, MORE),
        (Line::A, 6, MORE),
    ];
    let (channel, all) = kept(DELTA, 1, &packets);
    let lost = "bad gap in the packets that this one builds on at 0";
    let expected = [
        "Quote 1.0 100",
        "gap 2-2",
        lost,
        "MDReset 4.0 ",
        "Quote 4.1 2",
        "Quote 5.0 3",
        lost,
    ];
    assert_eq!(all, expected);
    assert_eq!(channel.stats().bad, 2);
}

#[test]
fn a_gap_in_the_numbers_of_messages_leaves_out_what_builds_on_it() {
    let xml = r#"<templates>
        <template name="Quote" id="1"><uInt32 name="MsgSeqNum" id="34"/>
            <uInt32 name="Price" id="44"><copy/></uInt32></template>
        <template name="MDReset" id="120"/>
    </templates>"#;
    let mut channel = keeping(xml, ChannelConfig::new(1));
    // Two messages follow a gap, the second with all its values; then come a Reset alone, a new
    // price and one more message.
    let packets = [
        &[0xe0, 0x81, 0x81, 0xb2][..],
        &[0x80, 0x83],
        &[0xe0, 0x81, 0x84, 0xb3],
        RESET,
        &[0xe0, 0x81, 0x88, 0xb4],
        &[0x80, 0x89],
    ];
    let mut all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    all.extend(told(channel.finish()));
    let lost = "bad gap in the packets that this one builds on at 0";
    let (first, last) = ("Quote 1.0 50", ["Quote 8.0 52", "Quote 9.0 52"]);
    assert_eq!(all[..5], [first, lost, lost, "MDReset", "gap 2-7"]);
    assert_eq!(all[5..], last);
}

#[test]
fn what_the_only_line_has_lost_is_no_gap() {
    let begun = [RESET, &[0xc0, 0x81, 0x82]].concat();
    let packets = [
        (Line::A, 1, FIRST),
        (Line::A, 2, UNKNOWN),
        (Line::A, 3, MORE),
        (Line::A, 4, &begun[..]),
    ];
    let (channel, all) = kept(DELTA, 1, &packets);
    let expected = [
        "Quote 1.0 100",
        "bad D9 at byte 1: unknown template identifier 5 at 4",
        "bad D9 in a packet that this one builds on at 4",
        "MDReset 4.0 ",
        "Quote 4.1 2",
    ];
    assert_eq!(all, expected);
    assert_eq!((channel.stats().packets[0], channel.stats().bad), (4, 2));
}

#[test]
fn another_line_brings_what_one_has_lost() {
    let packets = [
        (Line::A, 1, FIRST),
        (Line::B, 1, FIRST),
        (Line::A, 2, UNKNOWN),
        (Line::B, 2, MORE),
        (Line::A, 3, MORE),
        (Line::B, 3, MORE),
    ];
    let (_, all) = kept(DELTA, 2, &packets);
    let expected = [
        "Quote 1.0 100",
        "bad D9 at byte 1: unknown template identifier 5 at 4",
        "bad D9 in a packet that this one builds on at 4",
        "Quote 3.0 102",
    ];
    assert_eq!(all, expected);
}

#[test]
fn another_line_brings_what_is_missing_on_one() {
    let packets = [
        (Line::A, 1, FIRST),
        (Line::A, 3, MORE),
        (Line::B, 1, FIRST),
        (Line::B, 2, MORE),
        (Line::B, 3, MORE),
    ];
    let (_, all) = kept(DELTA, 2, &packets);
    let lost = "bad gap in the packets that this one builds on at 4";
    let expected = ["Quote 1.0 100", lost, "Quote 2.0 101", "Quote 3.0 102"];
    assert_eq!(all, expected);
}

#[test]
fn of_two_doubtful_messages_that_wait_each_is_delivered_in_its_turn() {
    let mut channel = keeping(TEMPLATES, ChannelConfig::new(1));
    // Each number that is far from all before is accepted when the next one follows it, and waits
    // behind the gap before 8. Each packet begins anew.
    let numbers = [1, 8, 100_011, 100_012, 200_030, 200_031];
    let packets = numbers.into_iter().zip(50..).map(|(number, price)| {
        let packet = [RESET, &quotes(number, price, 0)].concat();
        (Line::A, packet)
    });
    let all = all_told(&mut channel, packets);
    assert_eq!(all, ["MDReset", "Quote 1.0 50"]);
    let rest = told(channel.finish());
    let rest: Vec<_> = rest.iter().filter(|s| s.starts_with("Quote")).collect();
    let expected = [
        "Quote 8.0 51",
        "Quote 100011.0 52",
        "Quote 100012.0 53",
        "Quote 200030.0 54",
        "Quote 200031.0 55",
    ];
    assert_eq!(rest, expected);
}

#[test]
fn a_recording_is_cut_at_each_reset() {
    let mut channel = channel(ChannelConfig::new(1));
    let stream = [
        RESET,
        &quotes(1, 50, 2),
        RESET,
        RESET,
        &quotes(4, 51, 0),
        RESET,
    ]
    .concat();
    let (mut rest, mut cuts) = (&stream[..], Vec::new());
    let mut all = Vec::new();
    while !rest.is_empty() {
        let (len, numbers) = channel.cut(Line::A, rest);
        cuts.push((len, numbers.first, numbers.count));
        all.extend(told(channel.receive(datagram(Line::A, 0, &rest[..len]))));
        rest = &rest[len..];
    }
    assert_eq!(cuts, [(8, Some(1), 3), (8, Some(4), 1), (2, None, 0)]);
    assert_eq!(all.iter().filter(|text| *text == "MDReset").count(), 4);
    assert_eq!(
        all.iter().filter(|text| text.starts_with("Quote")).count(),
        4
    );
}

#[test]
fn a_cut_with_a_loss_is_left_out_whole() {
    let xml = r#"<templates>
        <template name="Quote" id="1"><uInt32 name="MsgSeqNum" id="34"/></template>
        <template name="Note" id="2"/>
    </templates>"#;
    let mut channel = keeping(xml, ChannelConfig::new(1));
    // The second packet has a Note in front of Quote 3.
    let (first, gap) = ([0xc0, 0x81, 0x81], [0xc0, 0x82, 0xc0, 0x81, 0x83]);
    assert_eq!(channel.cut(Line::A, &first).0, first.len());
    assert_eq!(channel.cut(Line::A, &gap).0, gap.len());
}

#[test]
fn one_line_may_pass_as_it_comes() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    config.arbiter.gap_timeout = 1_000_000;
    let mut channel = channel(config);
    let mut numbers: Vec<u32> = Vec::new();
    let mut told_gaps = Vec::new();
    // After two in order come a gap, an earlier one, a duplicate, one far ahead and one far back.
    for n in [5, 6, 9, 7, 7, 3_000_000, 10, 11, 12, 14] {
        for text in told(channel.receive(datagram(Line::A, 0, &quotes(n, 50, 0)))) {
            match text.strip_prefix("Quote ") {
                Some(rest) => numbers.push(rest.split('.').next().unwrap().parse().unwrap()),
                None => told_gaps.push(text),
            }
        }
    }
    assert_eq!(numbers, [5, 6, 9, 7, 7, 3_000_000, 10, 11, 12, 14]);
    let expected = [
        "gap 7-8",
        "reset 3000000 false",
        "reset 10 false",
        "gap 13-13",
    ];
    assert_eq!(told_gaps, expected);
}

#[test]
fn what_cannot_be_arbitrated_is_refused() {
    let new = |config| Channel::new(Decoder::new(program()), config).err();
    let mut config = ChannelConfig::new(2);
    config.sequence = None;
    assert_eq!(new(config.clone()), Some(ChannelError::NoNumbers));
    config.lines = 1;
    assert_eq!(new(config.clone()), None);
    let field = SequenceField::Name("Nonsense".to_owned());
    config.sequence = Some(field.clone());
    assert_eq!(new(config), Some(ChannelError::NoField(field)));
    for lines in [0, 5] {
        assert_eq!(
            new(ChannelConfig::new(lines)),
            Some(ChannelError::Lines(lines))
        );
    }
}
