//! Tests of packets whose numbers, or those of their messages, are unusual.

use super::*;

const ORDER: &str =
    "bad the number of a message does not follow those before it in the packet at 0";

#[test]
fn a_wild_number_inside_a_packet_silences_no_line() {
    for wild in [4, 60_000, 1_000_000_002, u32::MAX, 1] {
        let mut channel = channel(ChannelConfig::new(2));
        let whole = quotes(2, 51, 1);
        let broken = [quotes(2, 51, 0), quotes(wild, 51, 0)].concat();
        let packets = [
            (Line::A, &quotes(1, 50, 0)),
            (Line::A, &broken),
            (Line::B, &broken),
            (Line::B, &whole),
            (Line::A, &quotes(4, 52, 0)),
        ];
        let all = all_told(&mut channel, packets);
        let expected = [
            "Quote 1.0 50",
            "Quote 2.0 51",
            ORDER,
            "Quote 3.0 51",
            "Quote 4.0 52",
        ];
        assert_eq!(all, expected, "{wild}");
        assert_eq!((channel.stats().bad, channel.stats().delivered), (1, 4));
        assert_eq!(channel.arbiter().line(Line::B).duplicate, 1);
    }
}

#[test]
fn what_a_wild_number_ended_is_missing_if_no_other_line_brings_it() {
    let mut channel = channel(ChannelConfig::new(2));
    told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 0))));
    // It waits for 2.
    let broken = [quotes(3, 51, 0), quotes(9_000, 51, 0)].concat();
    assert!(told(channel.receive(datagram(Line::A, 1, &broken))).is_empty());
    told(channel.receive(datagram(Line::A, 2, &quotes(5, 52, 0))));
    let all = told(channel.finish());
    let expected = ["gap 2-2", "Quote 3.0 51", ORDER, "gap 4-4", "Quote 5.0 52"];
    assert_eq!(all, expected);
}

#[test]
fn one_line_that_passes_as_it_comes_has_all_messages_but_those_far_ahead() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    let mut channel = channel(config);
    let packets = [
        quotes(1, 50, 0),
        [quotes(2, 51, 0), quotes(4, 52, 1)].concat(),
        quotes(6, 53, 0),
        [quotes(7, 54, 0), quotes(1_000_000_000, 55, 0)].concat(),
        [quotes(8, 56, 0), quotes(3, 57, 0)].concat(),
        quotes(9, 58, 0),
    ];
    let all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    let expected = [
        "Quote 1.0 50",
        "Quote 2.0 51",
        "Quote 4.0 52",
        "Quote 5.0 52",
        "Quote 6.0 53",
        "Quote 7.0 54",
        ORDER,
        "Quote 8.0 56",
        "Quote 3.0 57",
        "Quote 9.0 58",
    ];
    assert_eq!(all, expected);
}

#[test]
fn behind_a_wild_number_previous_values_are_unknown_until_a_reset() {
    let mut channel = keeping(TEMPLATES, ChannelConfig::new(1));
    let packets = [
        [RESET, &quotes(1, 50, 0)].concat(),
        [quotes(2, 51, 0), quotes(9, 52, 0)].concat(),
        quotes(3, 53, 0),
        [RESET, &quotes(4, 54, 0)].concat(),
    ];
    let mut all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    all.extend(told(channel.finish()));
    let expected = [
        "MDReset",
        "Quote 1.0 50",
        "Quote 2.0 51",
        ORDER,
        "bad gap in the packets that this one builds on at 0",
        "gap 3-3",
        "MDReset",
        "Quote 4.0 54",
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_packet_may_have_more_numbers_than_a_unit() {
    let mut config = ChannelConfig::new(1);
    config.arbiter.max_unit_bytes = 1 << 20;
    let mut channel = channel(config);
    for (now, packet) in [(0, quotes(1, 50, 0)), (1, quotes(4, 50, 0))] {
        told(channel.receive(datagram(Line::A, now, &packet)));
    }
    let time = channel.poll_timeout().unwrap();
    assert_eq!(told(channel.handle_timeout(time)).len(), 2);
    let all = told(channel.receive(datagram(Line::A, time, &quotes(5, 50, 69_999))));
    assert_eq!(all.len(), 70_000);
    assert_eq!(all.last().unwrap(), "Quote 70004.0 50");
    assert_eq!(channel.arbiter().expected(), Some(70_005));
    assert_eq!(channel.arbiter().missing().count(), 2);
}

#[test]
fn a_packet_whose_events_end_with_an_error_is_passed_over_as_a_whole() {
    let mut channel = channel(ChannelConfig::new(2));
    told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 0))));
    let packet = quotes(2, 50, 2);
    let events = channel.receive(datagram(Line::A, 0, &packet));
    assert_eq!(events.try_for_each(|_| Err("full")), Err("full"));
    assert_eq!(channel.arbiter().expected(), Some(5));
    let rest = told(channel.receive(datagram(Line::A, 0, &quotes(5, 51, 0))));
    assert_eq!(rest, ["Quote 5.0 51"]);
}

#[test]
fn a_reset_to_a_number_that_was_announced_once_is_not_announced_for_ever() {
    let mut channel = channel(ChannelConfig::new(1));
    let packets = [
        quotes(9_999, 50, 0),
        sequence_reset(10_000, 1),
        quotes(1, 51, 4_999),
        // The run restarts without a word.
        quotes(1, 52, 0),
        quotes(2, 53, 0),
    ];
    let mut all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    all.retain(|text| text.starts_with("reset"));
    assert_eq!(all, ["reset 1 true", "reset 1 false"]);
}

#[test]
fn a_packet_without_a_number_that_waits_may_have_many_messages() {
    let mut config = ChannelConfig::new(2);
    config.unnumbered = Unnumbered::AtTheEnd;
    let mut channel = channel(config);
    told(channel.receive(datagram(Line::A, 0, &quotes(1, 50, 0))));
    for count in [1, 4, 5, 9] {
        told(channel.receive(datagram(Line::A, 0, &DONE.repeat(count))));
    }
    assert_eq!(told(channel.finish()), ["Done"].repeat(1 + 4 + 5 + 9));
}
