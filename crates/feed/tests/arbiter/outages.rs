//! Lines that are new, that fall silent and return, and sequences that restart meanwhile.

use crate::messages::{DELIVER, MS, Scene, run, scene};
use fanfare_feed::{ArbiterConfig, Line, Refusal, Start, Verdict};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

#[test]
fn a_new_line_that_is_far_behind_the_start_restarts_nothing() {
    let mut s = scene();
    s.messages(Line::A, 1, 100_000..100_500);
    for sequence in 90_000..90_100 {
        s.messages(Line::A, 1, sequence + 10_500..sequence + 10_501);
        let refused = Verdict::Refused(Refusal::Stale);
        assert_eq!(s.message(Line::B, 1, sequence), refused);
    }
    // It is up to the others soon, and brings what they lose.
    s.messages(Line::B, 1, 100_500..100_600);
    assert_eq!(s.message(Line::A, 1, 100_601), Verdict::Held);
    assert_eq!(s.message(Line::B, 1, 100_600), DELIVER);
    assert_eq!(s.out, run(1, 100_000..100_602));
    assert!(s.resets.is_empty());
    assert_eq!(s.duplicates(Line::B), 100);
}

#[test]
fn a_restart_that_a_new_line_brings_first_waits_for_the_line_that_is_alive() {
    let mut s = scene();
    s.messages(Line::A, 1, 100_000..100_010);
    s.messages(Line::B, 2, 1..4);
    s.messages(Line::A, 1, 100_010..100_012);
    assert!(s.resets.is_empty());
    s.messages(Line::A, 2, 1..4);
    s.messages(Line::B, 2, 4..6);
    assert_eq!(s.resets, [1]);
    assert_eq!(s.out[12..], run(2, 1..6));
}

#[test]
fn a_restart_that_a_new_line_brings_alone_is_one_once_the_others_are_silent() {
    let mut s = scene();
    s.messages(Line::A, 1, 100_000..100_010);
    // The other site takes over at once.
    for sequence in 1..40 {
        s.wait(50);
        s.message(Line::B, 2, sequence);
    }
    let first = s.only_reset();
    assert!((2..=25).contains(&first), "{first}");
    assert_eq!(s.out[10..], run(2, first..40));
}

#[test]
fn a_line_that_returns_behind_the_others_restarts_nothing() {
    let mut s = scene();
    for sequence in 1..100 {
        s.messages(Line::A, 1, sequence..sequence + 1);
        s.message(Line::B, 1, sequence);
    }
    s.messages(Line::A, 1, 100..80_000);
    s.messages(Line::B, 1, 75_000..80_000);
    assert_eq!(s.message(Line::A, 1, 80_001), Verdict::Held);
    assert_eq!(s.message(Line::B, 1, 80_000), DELIVER);
    assert_eq!(s.out, run(1, 1..80_002));
    assert!(s.resets.is_empty());
    assert_eq!(s.arbiter.line(Line::B).lost, 75_000 - 100);
}

#[test]
fn a_line_that_was_silent_during_a_restart_returns_in_the_new_run() {
    for (begin, last) in [(1, 5_000), (5_000, 5_600)] {
        let mut s = scene();
        for sequence in begin..last {
            s.messages(Line::A, 1, sequence..sequence + 1);
            s.message(Line::B, 1, sequence);
        }
        s.wait(1_500);
        s.messages(Line::A, 2, 1..20_000);
        assert_eq!(s.resets, [1]);
        s.messages(Line::B, 2, 19_990..20_000);
        assert_eq!(s.message(Line::A, 2, 20_001), Verdict::Held);
        assert_eq!(s.message(Line::B, 2, 20_000), DELIVER);
        assert_eq!(s.resets, [1]);
        assert_eq!(s.out[(last - begin) as usize..], run(2, 1..20_002));
        assert_eq!(s.arbiter.line(Line::B).refused, 0);
    }
}

#[test]
fn a_site_that_takes_over_with_its_own_numbers_is_heard() {
    for (begin, silence) in [(1, 300), (1, 2_000), (50, 300), (50, 2_000)] {
        let mut s = scene();
        let (a, c) = (Line::A, Line::new(2).unwrap());
        s.messages(a, 1, begin..2_990);
        s.wait(12_000);
        s.messages(a, 1, 2_990..3_000);
        s.wait(silence);
        s.out.clear();
        // Two lines of it, neither of which was heard before.
        for sequence in 1..2_000 {
            s.messages(Line::B, 2, sequence..sequence + 1);
            s.wait(1);
            s.message(c, 2, sequence);
        }
        let first = s.only_reset();
        let most = if silence < 1_000 { 900 } else { 2 };
        assert!(first <= most, "{first}");
        assert_eq!(s.out, run(2, first..2_000), "{begin} {silence}");
        assert_eq!(s.gaps, 0);
    }
}

#[test]
fn a_restart_below_the_first_number_is_one() {
    let mut s = scene();
    for sequence in 500..600 {
        s.message(Line::A, 1, sequence);
        s.message(Line::B, 1, sequence);
    }
    s.wait(1_000);
    for sequence in 1..700 {
        s.message(Line::A, 2, sequence);
        s.message(Line::B, 2, sequence);
    }
    assert_eq!(s.resets, [1]);
    assert_eq!(s.out[100..], run(2, 1..700));
}

#[test]
fn a_new_line_joins_a_feed_of_heartbeats() {
    let mut s = scene();
    let c = Line::new(2).unwrap();
    s.messages(Line::A, 1, 1..51);
    for line in [Line::B, c, Line::B, Line::A] {
        s.wait(2_000);
        assert_eq!(s.message(line, 1, 50), Verdict::Duplicate);
    }
    s.messages(c, 1, 51..53);
    assert_eq!(s.out, run(1, 1..53));
    assert!(s.resets.is_empty());
}

#[test]
fn a_line_that_is_seconds_behind_restarts_nothing_in_a_lull() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..3_000);
    s.wait(2_000);
    let second = s.now;
    // Line A has a lull of 2 s; line B brings what was before it.
    s.messages(Line::A, 1, 3_000..3_001);
    s.messages(Line::B, 1, 1..3_000);
    s.until(second + 2_500 * MS);
    s.messages(Line::B, 1, 3_000..3_001);
    assert_eq!(s.out, run(1, 1..3_001));
    assert!(s.resets.is_empty());
    assert_eq!(s.duplicates(Line::B), 3_000);
}

#[test]
fn a_line_that_was_delayed_brings_any_number_of_packets_in_a_lull() {
    // The line goes on, has lost some packets, or sends a heartbeat first.
    for from in [100, 105, 99] {
        let mut s = scene();
        for sequence in 1..100 {
            s.messages(Line::A, 1, sequence..sequence + 1);
            s.message(Line::B, 1, sequence);
        }
        s.messages(Line::A, 1, 100..30_000);
        s.wait(1_200);
        s.messages(Line::B, 1, from..30_000);
        assert_eq!(s.message(Line::B, 1, 30_000), DELIVER);
        assert!(s.out == run(1, 1..30_001));
        assert!(s.resets.is_empty());
    }
}

#[test]
fn a_line_that_was_always_seconds_behind_restarts_nothing_once_the_other_is_silent() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..20_000);
    for sequence in 1..=40_000 {
        s.messages(Line::A, 1, sequence + 19_999..sequence + 20_000);
        s.message(Line::B, 1, sequence);
    }
    s.messages(Line::B, 1, 40_001..60_000);
    assert!(s.out == run(1, 1..60_000));
    assert!(s.resets.is_empty());
    assert_eq!(s.duplicates(Line::B), 59_999);
}

#[test]
fn a_site_that_takes_over_a_run_of_some_seconds_is_heard() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..50_000);
    for sequence in 1..7_000 {
        s.messages(Line::A, 1, sequence + 49_999..sequence + 50_000);
        s.message(Line::B, 2, sequence);
    }
    s.out.clear();
    s.messages(Line::B, 2, 7_000..30_000);
    let first = s.only_reset();
    // The other line has been silent for 10,000 messages, which are `restart_timeout`.
    assert!(first <= 17_000, "{first}");
    assert!(s.out == run(2, first..30_000));
}

#[test]
fn a_line_that_returns_near_the_end_of_the_run_before_is_in_the_newest_one() {
    let mut s = scene();
    let both = |s: &mut Scene, run, sequences: Range<u32>| {
        for sequence in sequences {
            s.messages(Line::A, run, sequence..sequence + 1);
            s.message(Line::B, run, sequence);
        }
    };
    both(&mut s, 1, 1..5_000);
    s.messages(Line::A, 1, 5_000..5_001);
    assert!(s.arbiter.announce(1));
    s.message(Line::B, 1, 5_000);
    both(&mut s, 2, 1..200);
    s.messages(Line::A, 2, 200..4_600);
    s.wait(1_000);
    s.messages(Line::B, 2, 4_600..5_500);
    assert_eq!(s.resets, [1]);
    assert!(s.out == [run(1, 1..5_001), run(2, 1..5_500)].concat());
}

/// Returns a scene in which line B stalls at 2,000. Line A ends the run with 4,999, and brings
/// 20,000 messages of a second one from `first`.
fn stalled(first: u32) -> Scene {
    let mut s = scene();
    for sequence in 1..2_000 {
        s.messages(Line::A, 1, sequence..sequence + 1);
        s.message(Line::B, 1, sequence);
    }
    s.messages(Line::A, 1, 2_000..5_000);
    s.wait(1_500);
    s.messages(Line::A, 2, first..first + 20_000);
    assert_eq!(s.only_reset(), first);
    s
}

#[test]
fn a_line_that_stalls_across_a_restart_repeats_nothing() {
    // The second run begins far below the end of the first one, or near it; the backlog comes while
    // the second run goes on, or in a lull of it.
    for (first, lull) in [(1, 0), (1, 1_500), (4_900, 0), (4_900, 1_500)] {
        let mut s = stalled(first);
        s.wait(lull);
        let last = first + 20_000;
        // Some packets are lost.
        for (run, sequences) in [(1, 2_010..3_000), (1, 4_000..4_999), (2, first..last)] {
            s.messages(Line::B, run, sequences);
        }
        assert_eq!(s.message(Line::A, 2, last + 1), Verdict::Held);
        assert_eq!(s.message(Line::B, 2, last), DELIVER);
        assert_eq!(s.only_reset(), first);
        assert!(s.out == [run(1, 1..5_000), run(2, first..last + 2)].concat());
        assert_eq!((s.gaps, s.arbiter.line(Line::B).refused), (0, 0));
    }
}

#[test]
fn what_a_stalled_line_brings_beyond_the_end_of_a_run_that_is_over_is_refused() {
    let mut s = stalled(1);
    s.messages(Line::B, 1, 2_000..5_000);
    let refused = Verdict::Refused(Refusal::Stale);
    for sequence in 5_000..6_000 {
        assert_eq!(s.message(Line::B, 1, sequence), refused);
    }
    s.messages(Line::B, 2, 1..20_001);
    assert_eq!(s.message(Line::A, 2, 20_002), Verdict::Held);
    assert_eq!(s.message(Line::B, 2, 20_001), DELIVER);
    assert_eq!(s.only_reset(), 1);
    assert!(s.out == [run(1, 1..5_000), run(2, 1..20_003)].concat());
}

#[test]
fn a_line_that_returns_in_a_new_run_where_it_was_is_believed_after_ten_seconds() {
    let mut s = scene();
    for sequence in 1..500 {
        s.messages(Line::A, 1, sequence..sequence + 1);
        s.message(Line::B, 1, sequence);
    }
    s.messages(Line::A, 1, 500..5_000);
    s.wait(1_500);
    for sequence in 1..1_600 {
        s.wait(10);
        s.message(Line::A, 2, sequence);
        if sequence >= 510 {
            s.message(Line::B, 2, sequence);
        }
    }
    assert_eq!(s.message(Line::A, 2, 1_601), Verdict::Held);
    assert_eq!(s.message(Line::B, 2, 1_600), DELIVER);
    assert_eq!(s.only_reset(), 1);
    assert!(s.out == [run(1, 1..5_000), run(2, 1..1_602)].concat());
}

#[test]
fn after_a_snapshot_a_new_line_may_be_behind() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..500);
    s.wait(3_000);
    s.arbiter.resume(1_000);
    for sequence in 980..1_000 {
        assert_eq!(s.message(Line::B, 1, sequence), Verdict::Duplicate);
    }
    assert_eq!(s.message(Line::B, 1, 1_000), DELIVER);
    assert!(s.resets.is_empty());
}

#[test]
fn numbers_that_are_sent_again_after_a_lull_restart_nothing() {
    let mut s = scene();
    s.messages(Line::A, 1, 1..2_000);
    s.messages(Line::A, 1, 2_011..2_500);
    s.wait(1_200);
    for sequence in 2_000..2_011 {
        let late = Verdict::Late { filled: 1 };
        assert_eq!(s.message(Line::A, 1, sequence), late);
    }
    s.messages(Line::A, 1, 2_011..2_020);
    s.messages(Line::A, 1, 2_500..2_502);
    assert!(s.resets.is_empty());
    assert_eq!(s.gaps, 11);
    assert_eq!(s.out.len(), 2_501 - 11);
}

#[test]
fn no_run_restarts_before_it_has_begun() {
    for line in [Line::A, Line::B] {
        let mut s = Scene::new(ArbiterConfig {
            start: Start::First { wait: 3_000 * MS },
            ..ArbiterConfig::default()
        });
        s.messages(Line::A, 1, 100..101);
        s.wait(1_500);
        s.messages(line, 1, 90..100);
        s.wait(3_000);
        assert_eq!(s.out, run(1, 90..101));
        assert!(s.resets.is_empty());
    }
}

#[test]
fn a_line_that_only_repeats_its_last_number_holds_up_no_other_site() {
    let mut s = scene();
    s.messages(Line::A, 1, 100_000..100_500);
    s.out.clear();
    // The old site is still there, and heartbeats.
    for sequence in 1..40 {
        s.wait(50);
        s.message(Line::B, 2, sequence);
        s.message(Line::A, 1, 100_499);
    }
    let first = s.only_reset();
    assert!(first <= 25, "{first}");
    assert_eq!(s.out, run(2, first..40));
}

#[test]
fn a_site_that_takes_over_after_heartbeats_is_heard() {
    for resumes in [false, true] {
        let mut s = scene();
        if resumes {
            s.arbiter.resume(1);
        }
        s.messages(Line::A, 1, 1..3_000);
        for _ in 0..10 {
            s.wait(2_000);
            assert_eq!(s.message(Line::A, 1, 2_999), Verdict::Duplicate);
        }
        s.wait(1_500);
        s.out.clear();
        s.messages(Line::B, 2, 1..2_000);
        assert_eq!(s.resets, [1]);
        assert_eq!(s.out, run(2, 1..2_000));
    }
}

/// The time from the start of a run to the start of the next one, in milliseconds. A run has
/// messages for 18 s, and is silent for 4 s.
pub(crate) const RUN: u64 = 22_000;

/// A line in simulations, with times in ms.
#[derive(Debug, Clone)]
pub(crate) struct Outages {
    /// When the line is out, and loses what is sent.
    pub(crate) out: Vec<Range<u64>>,
    pub(crate) delay: u64,
    /// When the line stalls: it brings all that is sent meanwhile afterwards.
    pub(crate) stall: Range<u64>,
    /// How many times as fast as it was sent the line brings what was sent while it stalled.
    pub(crate) pace: u64,
}

impl Outages {
    /// Returns when the line brings what is sent at `at`, if it does.
    fn arrival(&self, at: u64) -> Option<u64> {
        let is_out = self.out.iter().any(|out| out.contains(&at));
        let stalled = at.checked_sub(self.stall.start);
        let sent = stalled.map_or(at, |since| at.max(self.stall.end + since / self.pace));
        (!is_out).then_some(sent + self.delay)
    }
}

/// What came out of an arbiter in a simulation.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How many messages came again.
    pub(crate) repeated: usize,
    /// Messages that a line brought in time and that did not come, except those sent within 1.2 s
    /// after the start of a run, or after a line was out or stalled, or began to be.
    pub(crate) lost: Vec<(u32, u32)>,
}

/// Plays messages, with their times in ms and runs, into an arbiter over these lines.
pub(crate) fn play(lines: &[Outages], sent: &[(u64, u32, u32)], step: u32) -> Outcome {
    let mut arrivals = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        for &(at, run, sequence) in sent {
            let arrival = line.arrival(at);
            arrivals.extend(arrival.map(|arrival| (arrival, index, run, sequence, at)));
        }
    }
    arrivals.sort_by_key(|&(at, index, .., sent_at)| (at, index, sent_at));
    let mut s = scene();
    for &(at, index, run, sequence, _) in &arrivals {
        while let Some(t) = s.arbiter.poll_timeout().filter(|t| *t <= at * MS) {
            s.until(t);
        }
        s.now = at * MS;
        s.message_of(Line::new(index).unwrap(), run, sequence, step);
    }
    s.arbiter.flush();
    s.drain();
    let came: BTreeSet<_> = s.out.iter().copied().collect();
    let changes = lines
        .iter()
        .flat_map(|line| line.out.iter().chain([&line.stall]));
    let changes = changes.flat_map(|out| [out.start, out.end]);
    let changes: Vec<u64> = changes.chain([0, RUN, 2 * RUN]).collect();
    let must_come = |&&(at, index, .., sent_at): &&(u64, usize, u32, u32, u64)| {
        let is_settled = changes.iter().all(|c| !(*c..*c + 1_200).contains(&sent_at));
        is_settled && at == sent_at + lines[index].delay
    };
    let brought = arrivals
        .iter()
        .filter(must_come)
        .map(|&(_, _, run, sequence, _)| (run, sequence));
    Outcome {
        repeated: s.out.len() - came.len(),
        lost: brought.filter(|message| !came.contains(message)).collect(),
    }
}

/// A line without outages.
pub(crate) const ALIVE: Outages = Outages {
    out: Vec::new(),
    delay: 0,
    stall: 0..0,
    pace: u64::MAX,
};

/// Returns a line that is out up to two times, or stalls once: within a run, or up to 1 s before
/// the next one.
fn outages() -> impl Strategy<Value = Outages> {
    let out = (0..3 * RUN, 1u64..20_000).prop_map(|(from, length)| from..from + length);
    let stall = (0u64..3, 1_200u64..18_000, 1u64..20_000).prop_map(|(run, from, length)| {
        let end = (from + length).min(RUN - 1_100);
        run * RUN + from..run * RUN + end
    });
    let out = prop_oneof![
        3 => (prop::collection::vec(out, 0..3), Just(0..0)),
        1 => (Just(Vec::new()), stall),
    ];
    (out, 0u64..40).prop_map(|((out, stall), delay)| Outages {
        out,
        delay,
        stall,
        pace: u64::MAX,
    })
}

/// Returns messages of `step` numbers each in three runs, with their times in ms: one each 10 ms.
pub(crate) fn messages(starts: &[(bool, u32)], step: u32) -> Vec<(u64, u32, u32)> {
    let mut sent = Vec::new();
    let mut last = 0..300_000;
    for (run, (is_one, start)) in (0u32..).zip(starts) {
        let mut start = if *is_one { 1 } else { start % last.end };
        // Packets with the numbers of others of the last seconds are taken for those.
        if run > 0 && last.contains(&start) && (start - last.start).is_multiple_of(step) {
            start += 1;
        }
        last = start..start + 1_800 * step;
        for i in 0..1_800 {
            let at = u64::from(run) * RUN + u64::from(i) * 10;
            sent.push((at, run, start + i * step));
        }
    }
    sent
}

proptest! {
    // `PROPTEST_CASES` sets the number of cases.

    /// Whenever lines are out or stall, and wherever below the end of the last one a run begins,
    /// nothing comes twice, and all comes that a line brings in time, except within 1.2 s after the
    /// start of a run or after a line was out.
    #[test]
    fn lines_that_come_and_go_repeat_and_hide_nothing(
        mut lines in prop::collection::vec(outages(), 2..4),
        starts in prop::collection::vec((any::<bool>(), 1u32..300_000), 3),
        step in 2u32..400,
    ) {
        // A line without outages goes on while another one stalls, or the feed would seem silent.
        if lines.iter().any(|line| !line.stall.is_empty()) {
            lines.push(ALIVE);
        }
        let outcome = play(&lines, &messages(&starts, step), step);
        prop_assert_eq!(outcome.repeated, 0, "nothing comes twice");
        prop_assert!(outcome.lost.is_empty(), "{:?}", outcome.lost);
    }
}
