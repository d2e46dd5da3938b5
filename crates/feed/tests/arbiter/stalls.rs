//! Lines that stall across a restart that nothing announces, and then bring what they have of the
//! run before.

use crate::net::Random;
use crate::outages::{ALIVE, Outages, RUN, messages, play};
use std::iter;
use std::ops::Range;

/// The number of simulations of each kind.
const SEEDS: u64 = 200;

/// Returns a line that is out at this time.
fn out(time: Range<u64>) -> Outages {
    Outages {
        out: iter::once(time).collect(),
        ..ALIVE
    }
}

/// Returns a line that stalls from some time in one of the first two runs to some time in the next
/// one, and may lose some packets meanwhile.
fn stalls(random: &mut Random) -> Outages {
    let run = random.below(2);
    let from = run * RUN + 1_200 + random.below(16_700);
    let until = (run + 1) * RUN + random.below(RUN);
    let lost = from + random.below(until - from);
    let at_once = random.percent(50);
    let pace = if at_once {
        u64::MAX
    } else {
        4 + random.below(60)
    };
    Outages {
        delay: random.below(40),
        stall: from..until,
        pace,
        ..out(lost..lost + random.below(100))
    }
}

/// Returns a line that is out from some time in a run until about the same time in the next one, so
/// that it returns at most 20 packets from where it was if both runs begin with the same number.
fn skips(random: &mut Random) -> Outages {
    let from = random.below(2 * RUN);
    let until = from + RUN - 200 + random.below(400);
    out(from..until)
}

/// Returns a line that is out once, for up to 20 s.
fn drops(random: &mut Random) -> Outages {
    let from = random.below(3 * RUN);
    out(from..from + random.below(20_000))
}

/// Returns the first numbers of three runs: half of the time up to 1,000 below the end of the run
/// before.
fn starts(random: &mut Random, step: u32) -> [(bool, u32); 3] {
    let is_near = random.percent(50);
    let mut end = 0;
    [0; 3].map(|_| {
        let start = if is_near && end > 0 {
            (false, end - 1 - random.below(1_000) as u32)
        } else {
            (
                random.percent(50) && !is_near,
                1 + random.below(300_000) as u32,
            )
        };
        end = start.1 + 1_800 * step;
        start
    })
}

/// Returns in how many simulations messages come again, and in how many some do not come.
fn failures(lines: impl Fn(&mut Random) -> Vec<Outages>) -> (usize, usize) {
    let mut failures = (0, 0);
    for seed in 1..=SEEDS {
        let mut random = Random::new(seed);
        let step = 2 + random.below(398) as u32;
        let starts = starts(&mut random, step);
        let outcome = play(&lines(&mut random), &messages(&starts, step), step);
        failures.0 += usize::from(outcome.repeated > 0);
        failures.1 += usize::from(!outcome.lost.is_empty());
    }
    failures
}

/// What remains is a line that is two runs behind, and a silence while it brings its backlog.
#[test]
fn a_line_that_stalls_beside_one_that_is_alive_seldom_repeats_what_came() {
    let failures = failures(|random| vec![ALIVE, stalls(random)]);
    assert!(failures.0 <= 3 && failures.1 <= 1, "{failures:?}");
}

/// Where the other line is out, nothing may show that a run has begun.
#[test]
fn a_line_that_stalls_beside_one_that_is_out_seldom_repeats_what_came() {
    let failures = failures(|random| vec![stalls(random), drops(random)]);
    assert!(failures.0 <= 12 && failures.1 <= 1, "{failures:?}");
}

/// A line that is out across a restart is taken for one that stalled if it returns where it was.
#[test]
fn a_line_that_returns_near_where_it_was_in_the_run_before_seldom_hides_anything() {
    let failures = failures(|random| {
        let skips = skips(random);
        // The other line ends at some time around the return.
        let ends = skips.out[0].end - RUN + 1_200 + random.below(2 * RUN);
        vec![skips, out(ends..3 * RUN)]
    });
    assert!(failures.0 == 0 && failures.1 <= 2, "{failures:?}");
}
