//! Tests of feeds that begin with number 0, or with a run that ends at once, and of packets with a
//! whole run.

use super::*;
use crate::arbiter::Start;

#[test]
fn number_0_is_delivered_once_and_behind_the_one_before_it() {
    for wait in [0, 100] {
        let mut config = ChannelConfig::new(2);
        config.arbiter.start = Start::First { wait };
        let mut channel = channel(config);
        let first = if wait > 0 { u32::MAX } else { 0 };
        let packets = [0, first, 1].map(|n| quotes(n, 50, 0));
        let packets = packets.iter();
        let packets = packets.flat_map(|p| [(Line::A, p), (Line::B, p)]);
        let mut all = all_told(&mut channel, packets);
        all.extend(told(channel.finish()));
        let mut expected = vec!["Quote 0.0 50", "Quote 1.0 50"];
        if wait > 0 {
            expected.insert(0, "Quote 4294967295.0 50");
        }
        assert_eq!(all, expected, "{wait}");
    }
}

/// The first packet is decoded as it is delivered, and has messages of two runs.
#[test]
fn a_line_may_begin_with_a_run_that_is_over_on_the_other_one() {
    // With 6, both SequenceResets would have the same bytes.
    for more in [0, 5] {
        let packets = [
            [sequence_reset(10, 1), quotes(1, 51, more)].concat(),
            quotes(2 + more as u32, 52, 1),
            sequence_reset(4 + more as u32, 1),
            quotes(1, 53, 0),
        ];
        let mut channel = channel(ChannelConfig::new(2));
        let mut all = Vec::new();
        for line in [Line::A, Line::B] {
            all.extend(all_told(&mut channel, packets.iter().map(|p| (line, p))));
        }
        all.extend(told(channel.finish()));
        let resets = all.iter().filter(|text| text.starts_with("reset")).count();
        assert_eq!(
            (resets, all.len()),
            (2, 2 + 1 + more + 2 + 2 + 1),
            "{all:?}"
        );
        assert_eq!(channel.arbiter().line(Line::B).first, 0);
    }
}

#[test]
fn a_packet_with_a_whole_run_is_repeated_once_at_once_and_restarts_nothing() {
    for more in [1, 6] {
        let front = [quotes(9, 50, 0), sequence_reset(10, 1)].concat();
        let run = [quotes(1, 51, more), sequence_reset(2 + more as u32, 1)].concat();
        let next = quotes(1, 52, 0);
        let mut channel = channel(ChannelConfig::new(2));
        let packets = [
            (Line::A, &front),
            (Line::B, &front),
            (Line::B, &run),
            (Line::A, &run),
            (Line::B, &run),
            (Line::A, &run),
            (Line::A, &next),
            (Line::B, &next),
        ];
        let mut all = all_told(&mut channel, packets);
        all.extend(told(channel.finish()));
        let resets = all.iter().filter(|text| text.starts_with("reset")).count();
        assert_eq!((resets, all.len()), (2, 3 + 1 + more + 2 + 1), "{all:?}");
    }
}
