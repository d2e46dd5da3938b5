//! Tests of packets with messages of a new run, behind a SequenceReset.

use super::*;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Returns a SequenceReset to 1 with this number, and quotes from 1 on behind it.
fn restart(number: u32, price: u32, more: usize) -> Vec<u8> {
    [sequence_reset(number, 1), quotes(1, price, more)].concat()
}

/// Returns the texts of quotes with these numbers.
fn quoted(numbers: std::ops::RangeInclusive<u32>, price: u32) -> Vec<String> {
    numbers.map(|n| format!("Quote {n}.0 {price}")).collect()
}

/// Returns the texts of a SequenceReset to 1 with this number, and of the quotes behind it.
fn restarted(number: u32, price: u32, more: u32) -> Vec<String> {
    let mut all = vec![
        format!("SequenceReset {number}.0 "),
        "reset 1 true".to_owned(),
    ];
    all.extend(quoted(1..=1 + more, price));
    all
}

#[test]
fn messages_may_follow_a_sequence_reset_in_its_packet() {
    let mut channel = channel(ChannelConfig::new(2));
    let packets = [quotes(9, 50, 0), restart(10, 51, 1), quotes(3, 52, 0)];
    let packets = packets.iter();
    let packets = packets.flat_map(|packet| [(Line::A, packet), (Line::B, packet)]);
    let mut all = all_told(&mut channel, packets);
    all.extend(told(channel.finish()));
    let expected = [
        "Quote 9.0 50",
        "SequenceReset 10.0 ",
        "reset 1 true",
        "Quote 1.0 51",
        "Quote 2.0 51",
        "Quote 3.0 52",
    ];
    assert_eq!(all, expected);
    // The messages behind the reset are a unit of their own.
    let line = channel.arbiter().line(Line::B);
    assert_eq!((line.received, line.duplicate), (4, 4));
    let stats = channel.stats();
    assert_eq!((stats.delivered, stats.decoded), (3, 3));
}

#[test]
fn many_messages_may_follow_the_first_reset_of_a_feed_and_later_ones() {
    for lines in [1, 2] {
        for keeps in [false, true] {
            let config = ChannelConfig::new(lines);
            let mut channel = match keeps {
                true => keeping(TEMPLATES, config),
                false => channel(config),
            };
            // The packet of the first reset is decoded as it is delivered, that of the second one
            // is decoded when it arrives.
            let packets = [
                [quotes(101, 50, 2), restart(104, 51, 8)].concat(),
                restart(10, 52, 0),
                [quotes(2, 53, 4), restart(7, 54, 19)].concat(),
                quotes(21, 55, 0),
            ];
            let packets = packets.iter();
            let lines = (0..lines).filter_map(Line::new);
            let packets = packets.flat_map(|p| lines.clone().map(move |line| (line, p)));
            let mut all = all_told(&mut channel, packets);
            all.extend(told(channel.finish()));
            let expected = [
                quoted(101..=103, 50),
                restarted(104, 51, 8),
                restarted(10, 52, 0),
                quoted(2..=6, 53),
                restarted(7, 54, 19),
                quoted(21..=21, 55),
            ];
            assert_eq!(all, expected.concat(), "{keeps}");
            assert_eq!(channel.stats().delivered, 4);
        }
    }
}

#[test]
fn another_line_brings_the_packet_that_one_has_lost() {
    for more in [1, 6] {
        let mut channel = channel(ChannelConfig::new(2));
        let (first, second) = (quotes(9, 50, 0), restart(10, 51, more as usize));
        let packets = [
            (Line::A, &first),
            (Line::B, &first),
            (Line::B, &second),
            (Line::A, &quotes(2 + more, 52, 0)),
        ];
        let mut all = all_told(&mut channel, packets);
        all.extend(told(channel.finish()));
        let expected = [
            quoted(9..=9, 50),
            restarted(10, 51, more),
            quoted(2 + more..=2 + more, 52),
        ];
        assert_eq!(all, expected.concat());
    }
}

#[test]
fn a_packet_with_a_reset_waits_for_what_is_missing_in_front_of_it() {
    for keeps in [false, true] {
        for more in [1, 6] {
            for comes in [false, true] {
                let mut channel = match keeps {
                    true => keeping(TEMPLATES, ChannelConfig::new(2)),
                    false => channel(ChannelConfig::new(2)),
                };
                let held = [RESET, &restart(10, 51, more as usize)].concat();
                let eight = quotes(8, 50, 0);
                let packets = [(Line::A, &eight), (Line::B, &eight), (Line::A, &held)];
                let mut all = all_told(&mut channel, packets);
                assert_eq!(all, quoted(8..=8, 50));
                let nine = match comes {
                    true => {
                        let nine = quotes(9, 52, 0);
                        all.extend(told(channel.receive(datagram(Line::B, 0, &nine))));
                        quoted(9..=9, 52)
                    }
                    false => vec!["gap 9-9".to_owned()],
                };
                all.extend(told(channel.finish()));
                let reset = vec!["MDReset".to_owned()];
                let expected = [quoted(8..=8, 50), nine, reset, restarted(10, 51, more)];
                assert_eq!(all, expected.concat(), "{keeps} {more}");
            }
        }
    }
}

#[test]
fn what_follows_the_reset_is_new_where_what_precedes_it_is_late_or_repeated() {
    for precedes in [quotes(9, 50, 0), Vec::new()] {
        let mut channel = channel(ChannelConfig::new(2));
        let eight = quotes(8, 50, 0);
        for line in [Line::A, Line::B] {
            told(channel.receive(datagram(line, 0, &eight)));
        }
        // A brings the SequenceReset alone, and has lost the quotes around it.
        let reset = sequence_reset(10, 1);
        let mut all = told(channel.receive(datagram(Line::A, 1, &reset)));
        let time = channel.poll_timeout().unwrap();
        all.extend(told(channel.handle_timeout(time)));
        assert_eq!(all, ["gap 9-9", "SequenceReset 10.0 ", "reset 1 true"]);
        let three = quotes(3, 52, 0);
        assert!(told(channel.receive(datagram(Line::A, time, &three))).is_empty());
        let whole = [precedes.clone(), restart(10, 51, 1)].concat();
        let all = told(channel.receive(datagram(Line::B, time, &whole)));
        assert_eq!(all, ["Quote 1.0 51", "Quote 2.0 51", "Quote 3.0 52"]);
        let late = u64::from(!precedes.is_empty());
        assert_eq!(channel.arbiter().line(Line::B).late, late);
        assert_eq!(channel.arbiter().missing().count(), 1 - late);
    }
}

#[test]
fn what_was_delivered_before_is_left_out_in_both_runs() {
    let mut channel = channel(ChannelConfig::new(2));
    let packets = [
        (Line::A, quotes(8, 50, 1)),
        (Line::B, quotes(8, 50, 0)),
        (Line::B, [quotes(9, 50, 0), restart(10, 51, 1)].concat()),
        (Line::A, [sequence_reset(10, 1), quotes(1, 51, 2)].concat()),
    ];
    let all = all_told(&mut channel, packets);
    let expected = [quoted(8..=9, 50), restarted(10, 51, 1), quoted(3..=3, 51)];
    assert_eq!(all, expected.concat());
}

#[test]
fn an_error_behind_a_reset_is_told_behind_the_messages_in_front_of_it() {
    let errors = [quotes(9_000, 51, 0), vec![0xc0, 0xff], quotes(10, 51, 0)];
    for (error, more) in errors.iter().flat_map(|error| [(error, 0), (error, 6)]) {
        for keeps in [false, true] {
            let mut channel = match keeps {
                true => keeping(TEMPLATES, ChannelConfig::new(2)),
                false => channel(ChannelConfig::new(2)),
            };
            let bad = [restart(10, 51, more as usize), error.clone()].concat();
            let packets = [(Line::A, &quotes(9, 50, 0)), (Line::A, &bad)];
            let all = all_told(&mut channel, packets);
            let (last, front) = all.split_last().unwrap();
            let expected = [quoted(9..=9, 50), restarted(10, 51, more)];
            assert_eq!(front, expected.concat());
            assert!(last.starts_with("bad "), "{last}");
            assert_eq!(channel.stats().bad, 1);
        }
    }
}

#[test]
fn a_packet_may_have_the_same_numbers_before_and_behind_the_reset() {
    let mut channel = channel(ChannelConfig::new(2));
    for line in [Line::A, Line::B] {
        told(channel.receive(datagram(line, 0, &sequence_reset(100, 1))));
    }
    // Soon the arbiter distinguishes runs by the bytes of units.
    for price in (0..600).step_by(3) {
        let packets = [
            [quotes(1, price, 1), restart(3, price + 1, 1)].concat(),
            [quotes(3, price + 2, 0), sequence_reset(4, 1)].concat(),
        ];
        let packets = packets.iter();
        let packets = packets.flat_map(|packet| [(Line::A, packet), (Line::B, packet)]);
        let all = all_told(&mut channel, packets);
        let expected = [
            quoted(1..=2, price),
            restarted(3, price + 1, 1),
            quoted(3..=3, price + 2),
            vec!["SequenceReset 4.0 ".to_owned(), "reset 1 true".to_owned()],
        ];
        assert_eq!(all, expected.concat());
    }
}

#[test]
fn one_line_that_passes_as_it_comes_has_the_messages_behind_the_reset() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    let mut channel = channel(config);
    let packets = [
        quotes(9, 50, 0),
        restart(10, 51, 1),
        quotes(3, 52, 0),
        [sequence_reset(4, 1), quotes(2, 53, 0)].concat(),
        quotes(3, 54, 0),
        [sequence_reset(4, 1), quotes(1, 55, 0)].concat(),
        // The line brings it again.
        [sequence_reset(4, 1), quotes(1, 55, 0)].concat(),
    ];
    let all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    let expected = [
        "Quote 9.0 50",
        "SequenceReset 10.0 ",
        "reset 1 true",
        "Quote 1.0 51",
        "Quote 2.0 51",
        "Quote 3.0 52",
        "SequenceReset 4.0 ",
        "reset 1 true",
        "gap 1-1",
        "Quote 2.0 53",
        "Quote 3.0 54",
        "SequenceReset 4.0 ",
        "reset 1 true",
        "Quote 1.0 55",
        "SequenceReset 4.0 ",
        "Quote 1.0 55",
    ];
    assert_eq!(all, expected);
}

#[test]
fn where_the_numbers_go_on_nothing_is_split() {
    let mut channel = channel(ChannelConfig::new(1));
    let packets = [
        quotes(9, 50, 0),
        // The reset has the number of the quote before it.
        [quotes(10, 51, 1), sequence_reset(10, 12), quotes(12, 52, 1)].concat(),
        quotes(14, 53, 0),
    ];
    let all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    let expected = [
        "Quote 9.0 50",
        "Quote 10.0 51",
        "Quote 11.0 51",
        "SequenceReset 10.0 ",
        "Quote 12.0 52",
        "Quote 13.0 52",
        "Quote 14.0 53",
    ];
    assert_eq!(all, expected);
}

#[test]
fn a_packet_that_is_given_up_in_front_of_the_reset_is_passed_over_up_to_it() {
    let mut channel = channel(ChannelConfig::new(2));
    told(channel.receive(datagram(Line::A, 0, &quotes(8, 50, 0))));
    let packet = [quotes(9, 50, 0), restart(10, 51, 1)].concat();
    let events = channel.receive(datagram(Line::A, 0, &packet));
    let flow = events.try_for_each(|_| Ok::<_, ()>(ControlFlow::Break(())));
    assert_eq!(flow, Ok(ControlFlow::Break(())));
    let all = told(channel.receive(datagram(Line::A, 0, &quotes(3, 52, 0))));
    let expected = [
        "reset 1 true",
        "Quote 1.0 51",
        "Quote 2.0 51",
        "Quote 3.0 52",
    ];
    assert_eq!(all, expected);
}

/// The events of packets that each may have a SequenceReset inside; if it `splits`, of their parts
/// up to it and behind it.
fn deliver(
    packets: &[(Vec<u8>, Vec<u8>)],
    (lost, delay): (&[usize], usize),
    (keeps, splits): (bool, bool),
) -> Vec<String> {
    let mut config = ChannelConfig::new(2);
    config.arbiter.gap_timeout = 20;
    let mut channel = match keeps {
        true => keeping(TEMPLATES, config),
        false => channel(config),
    };
    let mut all = Vec::new();
    for step in 0..packets.len() + delay {
        let now = step as u64;
        for (line, at) in [(Line::A, Some(step)), (Line::B, step.checked_sub(delay))] {
            let Some((at, (front, back))) = at.and_then(|at| Some((at, packets.get(at)?))) else {
                continue;
            };
            if !keeps && lost[at % lost.len()] == line.index() {
                continue;
            }
            let parts = match splits {
                true => vec![front.clone(), back.clone()],
                false => vec![[&front[..], back].concat()],
            };
            for part in parts.iter().filter(|part| !part.is_empty()) {
                all.extend(told(channel.receive(datagram(line, now, part))));
            }
        }
        all.extend(told(channel.handle_timeout(now)));
    }
    all.extend(told(channel.finish()));
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Packets on two lines, of which one may lose each, with a delay; some have a SequenceReset
    /// inside.
    #[test]
    fn messages_behind_a_reset_are_as_a_packet_of_their_own(
        sizes in prop::collection::vec(
            (1_usize..9, prop::option::weighted(0.2, 1_usize..9)),
            1..80,
        ),
        lost in prop::collection::vec(0_usize..8, 80),
        delay in 0_usize..6,
        keeps in any::<bool>(),
    ) {
        let (mut packets, mut next, mut price) = (Vec::new(), 100, 1);
        for (size, new) in sizes {
            let front = quotes(next, price, size - 1);
            next += size as u32;
            price += 2;
            // Losses make shorter runs too much alike.
            packets.push(match new.filter(|_| next > 40) {
                None => (front, Vec::new()),
                Some(new) => {
                    let front = [front, sequence_reset(next, 1)].concat();
                    next = 1 + new as u32;
                    (front, quotes(1, price - 1, new - 1))
                }
            });
        }
        let way = (&lost[..], delay);
        let whole = deliver(&packets, way, (keeps, false));
        let split = deliver(&packets, way, (keeps, true));
        // What is behind a refused packet is refused with it.
        prop_assume!(!split.iter().any(|text| text.starts_with("bad")));
        prop_assert_eq!(whole, split);
    }
}
