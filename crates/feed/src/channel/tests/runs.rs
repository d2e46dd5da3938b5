//! Tests of packets with messages of a new run, behind a SequenceReset.

use super::*;
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
    // The messages behind the reset are a packet of their own.
    let line = channel.arbiter().line(Line::B);
    assert_eq!((line.received, line.duplicate), (4, 4));
    let stats = channel.stats();
    assert_eq!((stats.packets, stats.delivered), ([4, 4, 0, 0], 4));
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
            // The packet with the first reset is decoded during delivery, the packet with the
            // second reset at its arrival.
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
            assert_eq!(channel.stats().delivered, 7);
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
        // The jumps ahead and back are restarts.
        [quotes(90_000_000, 54, 0), restart(90_000_001, 55, 0)].concat(),
        [quotes(50_000_000, 56, 0), restart(50_000_001, 57, 0)].concat(),
        // The line brings it again.
        [quotes(50_000_000, 56, 0), restart(50_000_001, 57, 0)].concat(),
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
        "reset 90000000 false",
        "Quote 90000000.0 54",
        "SequenceReset 90000001.0 ",
        "reset 1 true",
        "Quote 1.0 55",
        "reset 50000000 false",
        "Quote 50000000.0 56",
        "SequenceReset 50000001.0 ",
        "reset 1 true",
        "Quote 1.0 57",
        // Its first messages are of the run before.
        "Quote 1.0 57",
    ];
    assert_eq!(all, expected);
}

#[test]
fn one_line_that_passes_as_it_comes_leaves_out_late_packets_of_the_run_before() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    let mut channel = channel(config);
    let mut packets: Vec<_> = (101..=119).map(|n| quotes(n, 50, 0)).collect();
    packets.retain(|packet| *packet != quotes(110, 50, 0));
    packets.push(sequence_reset(120, 1));
    packets.extend([quotes(1, 51, 0), quotes(2, 51, 0)]);
    let first = packets.into_iter().map(|packet| (Line::A, packet));
    assert_eq!(all_told(&mut channel, first).len(), 18 + 3 + 2);
    let line = *channel.arbiter().line(Line::A);
    // One that was missing, one that comes again, and the end of the run.
    let late = [
        quotes(110, 50, 0),
        quotes(112, 50, 0),
        sequence_reset(120, 1),
    ];
    let late = late.map(|packet| (Line::A, packet));
    assert_eq!(all_told(&mut channel, late), [] as [&str; 0]);
    let after = channel.arbiter().line(Line::A);
    assert_eq!(
        (after.late, after.duplicate),
        (line.late + 1, line.duplicate + 2)
    );
    let next = [quotes(3, 52, 0), quotes(2, 51, 0), quotes(4, 53, 0)];
    let all = all_told(&mut channel, next.map(|packet| (Line::A, packet)));
    // One of the new run that comes again is delivered.
    assert_eq!(all, ["Quote 3.0 52", "Quote 2.0 51", "Quote 4.0 53"]);
}

#[test]
fn one_line_that_passes_as_it_comes_has_the_second_half_of_a_cycle() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    let mut channel = channel(config);
    let mut packets: Vec<_> = (1..=60).map(|n| quotes(n, 50, 0)).collect();
    packets.push(sequence_reset(61, 1));
    // The numbers from 3 to 40 of the second cycle are lost.
    packets.extend((1..=2).chain(41..=60).map(|n| quotes(n, 51, 0)));
    // One of the first cycle comes again.
    packets.push(quotes(45, 50, 0));
    let mut all = all_told(&mut channel, packets.iter().map(|packet| (Line::A, packet)));
    all.retain(|text| text.starts_with("Quote"));
    let second = [quoted(1..=2, 51), quoted(41..=60, 51)].concat();
    assert_eq!(all, [quoted(1..=60, 50), second].concat());
}

#[test]
fn where_the_numbers_go_on_nothing_restarts() {
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

/// Returns channels with two lines that differ in whether the lines keep their dictionaries.
fn both() -> [Channel; 2] {
    let config = ChannelConfig::new(2);
    [channel(config.clone()), keeping(TEMPLATES, config)]
}

#[test]
fn messages_behind_the_reset_build_on_those_in_front_of_it() {
    // The first quote of the new run copies the price, and all others copy and increment.
    for more in [1, 6] {
        let quote = [&[0xe0, 0x81, 0x81][..], &[0x80].repeat(more)].concat();
        let (front, count) = (quotes(9, 50, more), more as u32);
        let packet = [RESET, &front, &sequence_reset(10 + count, 1), &quote].concat();
        let behind = [
            vec!["MDReset".to_owned()],
            quoted(9..=9 + count, 50),
            restarted(10 + count, 50, count),
        ];
        for [first, second] in [[Line::A, Line::B], [Line::B, Line::A]] {
            for mut channel in both() {
                // The packet waits for 8.
                let seven = quotes(7, 40, 0);
                let front = [(Line::A, &seven), (Line::B, &seven), (first, &packet)];
                assert_eq!(all_told(&mut channel, front), quoted(7..=7, 40));
                let eight = [RESET, &quotes(8, 41, 0)].concat();
                let all = all_told(&mut channel, [(second, &eight), (second, &packet)]);
                let expected = [
                    vec!["MDReset".to_owned()],
                    quoted(8..=8, 41),
                    behind.concat(),
                ];
                assert_eq!(all, expected.concat());
            }
        }
    }
}

#[test]
fn two_resets_in_a_packet_are_two_runs() {
    for lines in [1, 2] {
        for more in [1, 6] {
            for (as_it_comes, keeps) in [(false, false), (false, true), (true, false)] {
                let mut config = ChannelConfig::new(lines);
                config.as_it_comes = as_it_comes;
                let mut channel = match keeps {
                    true => keeping(TEMPLATES, config),
                    false => channel(config),
                };
                let count = more as u32;
                // The second run has two messages more, and the third one begins with a reset.
                let packet = [
                    quotes(9, 50, more),
                    sequence_reset(10 + count, 1),
                    quotes(1, 51, more),
                    sequence_reset(2 + count, 500),
                    sequence_reset(500, 1),
                    quotes(1, 52, more),
                ];
                let packets = [quotes(8, 49, 0), packet.concat(), quotes(2 + count, 53, 0)];
                let packets = packets.iter();
                let all_lines = (0..lines).filter_map(Line::new);
                let packets = packets.flat_map(|p| all_lines.clone().map(move |line| (line, p)));
                let mut all = all_told(&mut channel, packets);
                all.extend(told(channel.finish()));
                let expected = [
                    quoted(8..=9, 50),
                    quoted(10..=9 + count, 50),
                    restarted(10 + count, 51, count),
                    vec![
                        format!("SequenceReset {}.0 ", 2 + count),
                        "reset 500 true".to_owned(),
                    ],
                    restarted(500, 52, count),
                    quoted(2 + count..=2 + count, 53),
                ];
                let mut expected = expected.concat();
                expected[0] = "Quote 8.0 49".to_owned();
                assert_eq!(all, expected, "{lines} {more} {as_it_comes} {keeps}");
            }
        }
    }
}

#[test]
fn a_packet_with_too_many_resets_ends_in_front_of_one() {
    let one = |number| [sequence_reset(number, 1), quotes(1, 50, 0)].concat();
    for mut channel in both() {
        let packet = [RESET, &quotes(9, 50, 0), &one(10), &one(2).repeat(99)].concat();
        let all = told(channel.receive(datagram(Line::A, 0, &packet)));
        let resets = all.iter().filter(|text| *text == "reset 1 true").count();
        let bad = all.iter().filter(|text| text.starts_with("bad the number"));
        // Lines that keep their dictionaries decode each run once.
        let expected = match channel.config.keep_dictionary {
            true => (100, 0),
            false => (16, 1),
        };
        assert_eq!((resets, bad.count()), expected);
    }
}

#[test]
fn a_packet_that_is_doubted_comes_once_when_another_line_confirms_it() {
    for mut channel in both() {
        let front = [RESET, &quotes(9, 50, 0)].concat();
        told(channel.receive(datagram(Line::A, 0, &front)));
        told(channel.receive(datagram(Line::B, 0, &front)));
        let far = [
            RESET,
            &quotes(90_000_000, 51, 1),
            &restart(90_000_002, 52, 1),
        ]
        .concat();
        assert!(told(channel.receive(datagram(Line::A, 1, &far))).is_empty());
        let all = all_told(
            &mut channel,
            [(Line::B, &far), (Line::A, &quotes(3, 53, 0))],
        );
        let expected = [
            vec!["reset 90000000 false".to_owned(), "MDReset".to_owned()],
            quoted(90_000_000..=90_000_001, 51),
            restarted(90_000_002, 52, 1),
            quoted(3..=3, 53),
        ];
        assert_eq!(all, expected.concat());
    }
}

#[test]
fn a_stray_packet_does_not_confirm_itself() {
    for mut channel in both() {
        for n in 1..3_000 {
            let quote = quotes(n, n, 0);
            told(channel.receive(datagram(Line::A, n.into(), &quote)));
        }
        // It is of an earlier run, and its parts are near to each other. It comes twice.
        let stray = [RESET, &quotes(100, 50, 0), &restart(101, 51, 6)].concat();
        for packet in [&stray, &stray, &[RESET, &quotes(3_000, 52, 0)].concat()] {
            let all = told(channel.receive(datagram(Line::A, 3_000, packet)));
            let is_stray = packet == &stray;
            assert_eq!(all.len(), if is_stray { 0 } else { 2 }, "{all:?}");
        }
        let line = channel.arbiter().line(Line::A);
        assert_eq!((line.received, line.refused, line.duplicate), (3_004, 3, 1));
    }
}

#[test]
fn a_line_that_is_heard_for_the_first_time_far_behind_makes_no_second_reset() {
    let mut channel = channel(ChannelConfig::new(2));
    for (n, now) in (1..3_000).zip(1..) {
        told(channel.receive(datagram(Line::A, now, &quotes(n, n, 0))));
    }
    let mut all = Vec::new();
    let behind = [quotes(100, 50, 0), restart(101, 51, 1)].concat();
    all.extend(told(channel.receive(datagram(Line::B, 3_000, &behind))));
    for (a, b) in (3_000..3_004).zip(3..) {
        all.extend(told(channel.receive(datagram(
            Line::B,
            a.into(),
            &quotes(b, 52, 0),
        ))));
        all.extend(told(channel.receive(datagram(
            Line::A,
            a.into(),
            &quotes(a, a, 0),
        ))));
    }
    all.extend(told(channel.finish()));
    // The SequenceReset makes no second reset, as its number may be of the new run. The gap is that
    // of the numbers that A has left out.
    let expected = [
        vec!["reset 1 true".to_owned()],
        quoted(1..=2, 51),
        quoted(3..=6, 52),
        vec!["gap 7-2999".to_owned()],
    ];
    let expected = expected.concat();
    assert_eq!(all[..expected.len()], expected);
    assert_eq!(all.len(), expected.len() + 4);
}

#[test]
fn many_messages_behind_a_reset_that_wait_are_not_kept_decoded() {
    let mut channel = channel(ChannelConfig::new(2));
    all_told(
        &mut channel,
        [Line::A, Line::B].map(|line| (line, quotes(101, 50, 0))),
    );
    told(channel.receive(datagram(Line::A, 1, &restart(103, 51, 60_000))));
    let before = channel.stats();
    assert_eq!((before.decoded, before.decoded_again), (3, 0));
    let all = told(channel.receive(datagram(Line::B, 2, &quotes(102, 52, 0))));
    assert_eq!(all.len(), 3 + 60_001);
    assert_eq!(all.last().unwrap(), "Quote 60001.0 51");
    assert_eq!(channel.stats().decoded_again, 2);
}

#[test]
fn a_full_hold_back_has_place_for_the_messages_behind_a_reset() {
    for mut channel in [1, 2].map(|hold_back| {
        let mut config = ChannelConfig::new(2);
        config.arbiter.hold_back = hold_back;
        channel(config)
    }) {
        let packets = [
            quotes(8, 50, 0),
            quotes(10, 51, 0),
            [quotes(12, 52, 0), restart(13, 53, 1)].concat(),
        ];
        let mut all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
        all.extend(told(channel.finish()));
        let expected = [
            quoted(8..=8, 50),
            vec!["gap 9-9".to_owned()],
            quoted(10..=10, 51),
            vec!["gap 11-11".to_owned()],
            quoted(12..=12, 52),
            restarted(13, 53, 1),
        ];
        assert_eq!(all, expected.concat());
        assert_eq!(channel.arbiter().line(Line::A).refused, 0);
    }
}

#[test]
fn parts_of_a_packet_are_counted_each_as_it_is_delivered() {
    let mut channel = channel(ChannelConfig::new(2));
    let [eight, front] = [
        quotes(8, 50, 0),
        [quotes(9, 51, 0), sequence_reset(10, 1)].concat(),
    ];
    // B repeats the front, and what is behind it waits for what A brings.
    let (rest, new) = (quotes(3, 52, 0), quotes(1, 53, 1));
    let whole = [&front[..], &rest].concat();
    let packets = [
        (Line::A, &eight),
        (Line::A, &front),
        (Line::B, &whole),
        (Line::A, &new),
    ];
    let all = all_told(&mut channel, packets);
    assert_eq!(all.last().unwrap(), "Quote 3.0 52");
    let stats = channel.stats();
    let bytes = [&eight, &front, &rest, &new]
        .map(Vec::len)
        .iter()
        .sum::<usize>();
    assert_eq!((stats.delivered, stats.delivered_bytes), (4, bytes as u64));
    assert_eq!(stats.packets, [3, 2, 0, 0]);
    // So are those of a packet that is delivered as it is decoded.
    let mut channel = self::channel(ChannelConfig::new(1));
    let whole = [quotes(9, 54, 0), restart(10, 55, 1)].concat();
    all_told(&mut channel, [(Line::A, &eight), (Line::A, &whole)]);
    let stats = channel.stats();
    let bytes = eight.len() + whole.len();
    assert_eq!((stats.delivered, stats.delivered_bytes), (3, bytes as u64));
}

#[test]
fn messages_that_are_not_of_the_new_run_stay_in_front_of_the_reset() {
    let mut channel = channel(ChannelConfig::new(2));
    // All messages of this packet have its number, or none.
    let packet = [
        quotes(9, 50, 0),
        sequence_reset(9, 1),
        quotes(9, 51, 0),
        DONE.to_vec(),
    ];
    let packets = [packet.concat(), quotes(1, 52, 0)];
    let packets = packets.iter().flat_map(|p| [(Line::A, p), (Line::B, p)]);
    let all = all_told(&mut channel, packets);
    let expected = [
        "Quote 9.0 50",
        "SequenceReset 9.1 ",
        "Quote 9.2 51",
        "Done",
        "reset 1 true",
        "Quote 1.0 52",
    ];
    assert_eq!(all, expected);
}

#[test]
fn the_rest_of_a_packet_precedes_the_next_one_of_its_datagram() {
    let mut config = ChannelConfig::new(1);
    config.header = Header::U16Be;
    let mut channel = channel(config);
    let mut bytes = Vec::new();
    for packet in [
        [quotes(9, 50, 0), restart(10, 51, 1)].concat(),
        quotes(3, 52, 0),
    ] {
        Header::U16Be.write(packet.len(), &mut bytes).unwrap();
        bytes.extend(packet);
    }
    let all = told(channel.receive(datagram(Line::A, 0, &bytes)));
    let expected = [quoted(9..=9, 50), restarted(10, 51, 1), quoted(3..=3, 52)];
    assert_eq!(all, expected.concat());
}

#[test]
fn a_packet_that_is_cut_off_a_stream_goes_on_behind_its_reset() {
    let first = [RESET, &quotes(9, 50, 5), &restart(15, 51, 5)].concat();
    let stream = [&first[..], RESET, &quotes(7, 52, 0)].concat();
    for lines in [1, 2] {
        let mut channel = channel(ChannelConfig::new(lines));
        let (len, numbers) = channel.cut(Line::A, &stream);
        assert_eq!(len, first.len());
        assert_eq!(
            (numbers.first, numbers.count, numbers.next),
            (Some(9), 7, Some(1))
        );
        let numbers = channel.numbers(datagram(Line::A, 0, &first));
        assert_eq!((numbers.first, numbers.count), (Some(9), 7));
        let all = told(channel.receive(datagram(Line::A, 0, &first)));
        let reset = vec!["MDReset".to_owned()];
        let expected = [reset, quoted(9..=14, 50), restarted(15, 51, 5)];
        assert_eq!(all, expected.concat());
    }
}

#[test]
fn a_line_that_lost_the_beginning_of_its_new_run_is_in_it_after_a_second() {
    let mut config = ChannelConfig::new(1);
    config.as_it_comes = true;
    let mut channel = channel(config);
    // All other numbers of the first run are lost, so that 200 may be one of them that is late.
    let packets = [quotes(1, 50, 0), sequence_reset(300, 1), quotes(200, 51, 0)];
    let all = all_told(&mut channel, packets.map(|packet| (Line::A, packet)));
    let expected = [
        "Quote 1.0 50",
        "gap 2-299",
        "SequenceReset 300.0 ",
        "reset 1 true",
    ];
    assert_eq!(all, expected);
    let later = ArbiterConfig::default().stale_timeout;
    let all = told(channel.receive(datagram(Line::A, later, &quotes(201, 52, 0))));
    assert_eq!(all, ["gap 1-200", "Quote 201.0 52"]);
}

#[test]
fn the_rest_of_a_run_on_a_line_that_stalled_over_its_end_is_not_of_the_new_one() {
    let mut channel = channel(ChannelConfig::new(2));
    for number in (1..300).filter(|number| *number != 250) {
        told(channel.receive(datagram(Line::A, 0, &quotes(number, number, 0))));
        if number < 240 {
            told(channel.receive(datagram(Line::B, 0, &quotes(number, number, 0))));
        }
    }
    let gap = ArbiterConfig::default().gap_timeout;
    let all = told(channel.handle_timeout(gap));
    assert!(all.contains(&"gap 250-250".to_owned()), "{all:?}");
    told(channel.receive(datagram(Line::A, gap, &sequence_reset(300, 1))));
    told(channel.receive(datagram(Line::A, gap, &quotes(1, 901, 0))));
    // B brings the one that A lost, and then what A has brought.
    let later = gap + 2 * ArbiterConfig::default().stale_timeout;
    told(channel.receive(datagram(Line::A, later, &quotes(2, 902, 0))));
    for number in 240..300 {
        let all = told(channel.receive(datagram(Line::B, later, &quotes(number, number, 0))));
        assert!(all.is_empty(), "{all:?}");
    }
    let reset = sequence_reset(300, 1);
    assert!(told(channel.receive(datagram(Line::B, later, &reset))).is_empty());
    let all = told(channel.receive(datagram(Line::B, later, &quotes(3, 903, 0))));
    assert_eq!(all, ["Quote 3.0 903"]);
}
