//! Faults of single lines: packets that are sent again, and runs whose first numbers a line lacks.

use crate::messages::{Scene, run, scene};
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
