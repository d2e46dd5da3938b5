//! Faults of single lines: packets that are sent again, packets with a wrong number, and runs whose
//! first numbers a line lacks.

use crate::messages::{DELIVER, MS, Scene, run, scene};
use crate::net::Random;
use fanfare_feed::{Line, Verdict};
use std::ops::Range;

/// Receives messages of a run on both lines.
fn both(s: &mut Scene, of: u32, sequences: Range<u32>) {
    for sequence in sequences {
        s.messages(Line::A, of, sequence..sequence + 1);
        s.message(Line::B, of, sequence);
    }
}

#[test]
fn packets_that_are_sent_again_after_the_first_reset_restart_nothing() {
    for line in [Line::A, Line::B] {
        let mut s = scene();
        both(&mut s, 1, 1..51);
        s.messages(Line::A, 1, 51..52);
        assert!(s.arbiter.announce(1));
        s.message(Line::B, 1, 51);
        both(&mut s, 2, 1..31);
        for sequence in 1..3 {
            assert_eq!(s.message(line, 2, sequence), Verdict::Duplicate);
        }
        both(&mut s, 2, 31..61);
        s.wait(100);
        assert_eq!(s.only_reset(), 1);
        assert!(s.out == [run(1, 1..52), run(2, 1..61)].concat());
    }
}

#[test]
fn packets_that_are_sent_again_after_a_silent_restart_restart_nothing() {
    let mut s = scene();
    both(&mut s, 1, 1..51);
    s.wait(1_500);
    both(&mut s, 2, 1..31);
    for sequence in 1..3 {
        assert_eq!(s.message(Line::A, 2, sequence), Verdict::Duplicate);
    }
    both(&mut s, 2, 31..61);
    s.wait(100);
    assert_eq!(s.only_reset(), 1);
    assert!(s.out == [run(1, 1..51), run(2, 1..61)].concat());
}

/// Where each line has bytes of its own, those that the second one brought are remembered, too.
#[test]
fn packets_of_lines_with_their_own_bytes_are_sent_again_and_restart_nothing() {
    let mut s = scene();
    for of in 0..5 {
        for sequence in 1..41 {
            s.messages(Line::A, 2 * of, sequence..sequence + 1);
            if sequence == 40 {
                assert!(s.arbiter.announce(1));
            }
            s.message(Line::B, 2 * of + 1, sequence);
            if sequence == 30 {
                for line in [Line::A, Line::B] {
                    let bytes = 2 * of + line.index() as u32;
                    assert_eq!(s.message(line, bytes, 2), Verdict::Duplicate);
                }
            }
        }
    }
    assert_eq!(s.resets.len(), 5);
    assert_eq!(s.out.len(), 200);
}

/// Returns a scene in which one packet of `line` has a number that is too high by `jump`.
fn wrong_number(jump: u32, line: Line) -> Scene {
    let mut s = scene();
    both(&mut s, 1, 1..100);
    s.messages(Line::A, 1, 100..101);
    s.message(Line::B, 1, 100);
    let verdict = s.message(line, 9, 101 + jump);
    assert_eq!(verdict, Verdict::Held);
    for sequence in 101..1_200 {
        s.wait(1);
        s.message(Line::A, 1, sequence);
        s.message(Line::B, 1, sequence);
    }
    s
}

#[test]
fn one_number_that_is_too_high_on_one_line_stops_nothing() {
    for jump in [300, 500, 1_025, 10_000, 65_000] {
        for line in [Line::A, Line::B] {
            let s = wrong_number(jump, line);
            assert!(s.out == run(1, 1..1_200), "{jump} {line}");
            assert_eq!(s.gaps, 0);
            let stats = s.arbiter.line(line);
            assert_eq!((stats.refused, stats.lost, stats.late), (1, 0, 0));
            assert_eq!(s.arbiter.held(), 0);
        }
    }
}

#[test]
fn a_wrong_number_is_not_delivered_once_its_number_comes() {
    // 300 packets come within the time-out.
    let mut s = scene();
    both(&mut s, 1, 1..101);
    assert_eq!(s.message(Line::B, 9, 401), Verdict::Held);
    both(&mut s, 1, 101..500);
    assert!(s.out == run(1, 1..500));
    assert_eq!(s.arbiter.line(Line::B).refused, 1);
}

#[test]
fn a_line_on_which_each_third_number_is_wrong_spoils_nothing() {
    let mut s = scene();
    both(&mut s, 1, 1..10);
    let mut random = Random::new(1);
    for sequence in 10..3_000 {
        s.wait(1);
        if sequence % 3 == 0 {
            let jump = 300 + random.below(65_000) as u32;
            s.message(Line::B, 9, sequence + jump);
        } else {
            s.message(Line::B, 1, sequence);
        }
        s.message(Line::A, 1, sequence);
    }
    s.wait(2_000);
    let came = s.out.iter().filter(|(of, _)| *of == 1).count();
    // Two of them may agree by chance.
    assert!(came >= 2_990, "{came}");
}

#[test]
fn a_number_that_is_too_high_in_a_slow_feed_stops_nothing() {
    let mut s = scene();
    both(&mut s, 1, 1..100);
    assert_eq!(s.message(Line::B, 9, 10_100), Verdict::Held);
    for sequence in 100..140 {
        s.wait(200);
        s.message(Line::A, 1, sequence);
        s.message(Line::B, 1, sequence);
    }
    assert!(s.out == run(1, 1..140));
    assert_eq!(s.gaps, 0);
}

#[test]
fn a_line_that_jumps_is_believed_as_soon_as_a_second_packet_agrees() {
    // The second one comes on the same line or on the other one, or is the same packet.
    for (line, second) in [(Line::A, 5_001), (Line::B, 5_001), (Line::B, 5_000)] {
        let mut s = scene();
        both(&mut s, 1, 1..100);
        assert_eq!(s.message(Line::A, 1, 5_000), Verdict::Held);
        s.wait(10);
        s.message(line, 1, second);
        assert_eq!(s.arbiter.poll_timeout(), Some(s.now + 40 * MS));
        s.wait(40);
        assert_eq!(s.gaps, 4_900);
        assert!(s.out == [run(1, 1..100), run(1, 5_000..second + 1)].concat());
        assert_eq!(s.arbiter.line(Line::A).lost, 4_900);
    }
}

#[test]
fn a_jump_that_nothing_contradicts_is_a_gap_at_last() {
    for (jump, wait) in [(1_024, 50), (10_000, 1_000)] {
        let mut s = scene();
        both(&mut s, 1, 1..100);
        assert_eq!(s.message(Line::A, 1, 100 + jump), Verdict::Held);
        assert_eq!(s.arbiter.poll_timeout(), Some(s.now + wait * MS));
        s.wait(wait - 1);
        assert_eq!(s.gaps, 0);
        s.wait(1);
        assert_eq!(s.gaps, jump);
        assert_eq!(s.out.last(), Some(&(1, 100 + jump)));
        // It goes on from there.
        assert_eq!(s.message(Line::A, 1, 101 + jump), DELIVER);
    }
}

#[test]
fn a_line_that_repeats_its_wrong_number_does_not_confirm_it() {
    let mut s = scene();
    both(&mut s, 1, 1..100);
    assert_eq!(s.message(Line::B, 9, 10_100), Verdict::Held);
    assert_eq!(s.message(Line::B, 9, 10_100), Verdict::Duplicate);
    for sequence in 100..200 {
        s.wait(1);
        s.message(Line::A, 1, sequence);
    }
    assert!(s.out == run(1, 1..200));
    assert_eq!(s.arbiter.line(Line::B).refused, 1);
}

#[test]
fn a_jump_at_the_end_of_the_stream_is_not_lost() {
    let mut s = scene();
    both(&mut s, 1, 1..100);
    assert_eq!(s.message(Line::A, 1, 5_000), Verdict::Held);
    s.arbiter.flush();
    s.drain();
    assert_eq!((s.gaps, s.out.last()), (4_900, Some(&(1, 5_000))));
    assert_eq!(s.arbiter.held(), 0);
}

#[test]
fn a_jump_of_the_only_line_that_is_alive_is_a_gap_as_ever() {
    // The other line was never heard, or not for a second.
    for other in [false, true] {
        let mut s = scene();
        s.messages(Line::A, 1, 1..50);
        if other {
            s.messages(Line::B, 1, 1..50);
        }
        s.wait(1_000);
        s.messages(Line::A, 1, 50..100);
        assert_eq!(s.message(Line::A, 1, 600), Verdict::Held);
        for sequence in 100..103 {
            assert_eq!(s.message(Line::A, 1, sequence), DELIVER);
        }
        s.wait(50);
        assert_eq!(s.gaps, 600 - 103);
    }
}

#[test]
fn a_line_that_starts_late_or_lost_a_burst_waits_no_longer() {
    let mut s = scene();
    // Line B is 2,000 packets ahead; line A goes on.
    s.messages(Line::A, 1, 1..100);
    s.messages(Line::B, 1, 2_100..2_102);
    s.messages(Line::A, 1, 100..110);
    s.wait(48);
    assert_eq!(s.gaps, 0);
    s.wait(2);
    assert_eq!(s.gaps, 1_990);
}

#[test]
fn a_wrong_number_does_not_outlive_its_run() {
    let mut s = scene();
    both(&mut s, 1, 1..101);
    assert_eq!(s.message(Line::B, 9, 10_100), Verdict::Held);
    assert!(
        !s.arbiter.announce(1),
        "a doubtful packet announces nothing"
    );
    both(&mut s, 1, 101..110);
    s.messages(Line::A, 1, 110..111);
    assert!(s.arbiter.announce(1));
    s.message(Line::B, 1, 110);
    both(&mut s, 2, 1..50);
    assert!(s.out == [run(1, 1..111), run(2, 1..50)].concat());
    assert_eq!(s.gaps, 0);
}

#[test]
fn the_first_number_of_a_run_comes_though_the_run_before_lacked_it() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..201);
    s.wait(12_000);
    s.messages(Line::A, 2, 2..201);
    s.wait(12_000);
    s.messages(Line::A, 3, 1..201);
    s.wait(100);
    assert!(s.out == [run(1, 1..201), run(2, 2..201), run(3, 1..201)].concat());
    assert_eq!(s.resets, [2, 1]);
    assert_eq!(s.arbiter.line(Line::A).refused, 0);
}

#[test]
fn the_first_number_of_a_run_comes_on_a_line_that_lacked_it_in_the_run_before() {
    for (second, third) in [(Line::B, Line::A), (Line::A, Line::B)] {
        let mut s = scene();
        both(&mut s, 1, 1..201);
        for (of, line) in [(2, second), (3, third)] {
            s.wait(12_000);
            s.message(line, of, 1);
            both(&mut s, of, 2..201);
        }
        s.wait(100);
        assert!(s.out == [run(1, 1..201), run(2, 1..201), run(3, 1..201)].concat());
        assert_eq!(s.gaps, 0);
    }
}

#[test]
fn runs_may_lack_their_first_number_again_and_again() {
    let mut s = scene();
    both(&mut s, 1, 1..201);
    // The third run is recognized by its second number, so that its first one is declared missing.
    for (of, first) in [(2, 1), (3, 2), (4, 1), (5, 4), (6, 2), (7, 3), (8, 1)] {
        s.wait(12_000);
        both(&mut s, of, first..201);
        s.wait(100);
        let last = 200 - first as usize;
        assert!(s.out.ends_with(&run(of, first..201)[..=last]), "{of}");
    }
    assert_eq!(s.resets.len(), 7);
}

#[test]
fn a_gap_at_the_start_of_a_run_is_filled_where_no_silence_precedes() {
    let mut s = scene();
    both(&mut s, 1, 1..201);
    s.wait(12_000);
    both(&mut s, 2, 1..201);
    s.wait(12_000);
    both(&mut s, 3, 2..201);
    s.wait(900);
    assert_eq!(s.message(Line::A, 3, 1), Verdict::Late { filled: 1 });
    assert_eq!(s.resets, [1, 1]);
}
