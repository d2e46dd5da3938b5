use crate::net::{Arrival, MS, Out, Random, Weather, play, send};
use crate::oracle::Slow;
use fanfare_feed::{Arbiter, ArbiterConfig, Line, Start};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns loss, repetition, delay and jitter that stay below the gap time-out.
fn mild() -> impl Strategy<Value = Weather> {
    (0u64..40, 0u64..10, 0u64..10 * MS, 0u64..10 * MS).prop_map(|(loss, repeat, delay, jitter)| {
        Weather {
            loss,
            repeat,
            delay,
            jitter,
        }
    })
}

/// Returns any conditions, up to four times the gap time-out.
fn harsh() -> impl Strategy<Value = Weather> {
    (0u64..95, 0u64..30, 0u64..100 * MS, 0u64..100 * MS).prop_map(
        |(loss, repeat, delay, jitter)| Weather {
            loss,
            repeat,
            delay,
            jitter,
        },
    )
}

fn two_lines(seed: u64, packets: [&[(u64, u32)]; 2], weather: [Weather; 2]) -> Vec<Arrival> {
    let mut random = Random::new(seed);
    let mut arrivals = send(&mut random, 0, 0, packets[0], weather[0]);
    arrivals.extend(send(&mut random, 1, 0, packets[1], weather[1]));
    arrivals.sort();
    arrivals
}

/// Returns the indices that arrived on any line, counted from 0.
fn arrived(arrivals: &[Arrival]) -> BTreeSet<u64> {
    let all = arrivals.iter();
    all.flat_map(|a| a.index..a.index + u64::from(a.count))
        .collect()
}

/// Returns the output of a perfect receiver: all that arrived in order, and the gaps between.
fn perfect(have: &BTreeSet<u64>, from: u64, number: impl Fn(u64) -> u32) -> Vec<Out> {
    let mut out = Vec::new();
    let mut next = from;
    for &index in have.range(from..) {
        if index > next {
            out.push(Out::Gap {
                first: number(next),
                count: (index - next) as u32,
            });
        }
        out.push(Out::Got(number(index)));
        next = index + 1;
    }
    out
}

/// Cuts 0..total into packets of 1 to 5 messages.
fn packed(random: &mut Random, total: u64) -> Vec<(u64, u32)> {
    let (mut at, mut packets) = (0, Vec::new());
    while at < total {
        let count = 1 + random.below(5).min(total - at - 1);
        packets.push((at, count as u32));
        at += count;
    }
    packets
}

fn sums_agree(arbiter: &Arbiter, arrivals: &[Arrival]) -> Result<(), TestCaseError> {
    for line in [Line::A, Line::B] {
        let s = arbiter.line(line);
        let sent = arrivals.iter().filter(|a| a.line == line.index()).count();
        prop_assert_eq!(s.received, sent as u64);
        prop_assert_eq!(s.received, s.first + s.duplicate + s.late + s.refused);
        let have: BTreeSet<u64> = arrived(
            &arrivals
                .iter()
                .copied()
                .filter(|a| a.line == line.index())
                .collect::<Vec<_>>(),
        );
        if let (Some(first), Some(last)) = (have.first(), have.last()) {
            prop_assert_eq!(s.lost, last - first + 1 - have.len() as u64);
        }
    }
    prop_assert_eq!(arbiter.held(), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn below_the_time_out_nothing_that_arrived_is_missing(
        seed: u64, base: u32, near_wrap: bool, a in mild(), b in mild(), n in 1u64..600,
    ) {
        let base = if near_wrap { u32::MAX - 100 } else { base };
        let number = |index: u64| base.wrapping_add(index as u32);
        let packets: Vec<(u64, u32)> = (0..n).map(|i| (i, 1)).collect();
        let mut arrivals = two_lines(seed, [&packets, &packets], [a, b]);
        let mut arbiter = Arbiter::new(ArbiterConfig {
            start: Start::At(base),
            ..ArbiterConfig::default()
        });
        let out = play(&mut arbiter, &mut arrivals, number);
        let have = arrived(&arrivals);
        prop_assert_eq!(out, perfect(&have, 0, number));
        sums_agree(&arbiter, &arrivals)?;
        let span = have.last().map_or(0, |last| last + 1);
        prop_assert_eq!(arbiter.stats().missing, span - have.len() as u64);
        prop_assert_eq!(arbiter.missing().count(), arbiter.stats().missing);
    }

    #[test]
    fn lines_may_pack_the_same_messages_differently(
        seed: u64, a in mild(), b in mild(), n in 1u64..600,
    ) {
        let mut random = Random::new(seed);
        let (left, right) = (packed(&mut random, n), packed(&mut random, n));
        let number = |index: u64| (u32::MAX - 50).wrapping_add(index as u32);
        let mut arrivals = two_lines(seed, [&left, &right], [a, b]);
        let mut arbiter = Arbiter::new(ArbiterConfig {
            start: Start::At(number(0)),
            ..ArbiterConfig::default()
        });
        let out = play(&mut arbiter, &mut arrivals, number);
        prop_assert_eq!(out, perfect(&arrived(&arrivals), 0, number));
        sums_agree(&arbiter, &arrivals)?;
    }

    #[test]
    fn in_any_weather_it_says_what_the_slow_one_says(
        seed: u64, base: u32, a in harsh(), b in harsh(), n in 1u64..500, hold_back in 1usize..40,
    ) {
        let number = |index: u64| base.wrapping_add(index as u32);
        let packets: Vec<(u64, u32)> = (0..n).map(|i| (i, 1)).collect();
        let mut arrivals = two_lines(seed, [&packets, &packets], [a, b]);
        let config = ArbiterConfig { hold_back, ..ArbiterConfig::default() };
        let mut arbiter = Arbiter::new(config);
        let out = play(&mut arbiter, &mut arrivals, number);
        let slow = Slow::new(hold_back, config.gap_timeout);
        prop_assert_eq!(out, slow.play(&arrivals, number));
        for line in [Line::A, Line::B] {
            let s = arbiter.line(line);
            prop_assert_eq!(s.received, s.first + s.duplicate + s.late + s.refused);
        }
    }

    #[test]
    fn resets_start_a_new_run(
        seed: u64, a in mild(), b in mild(), starts in prop::collection::vec(any::<u32>(), 1..5),
    ) {
        // Runs are far enough apart for a reset to be recognized, and each is over before the next.
        let starts: Vec<u32> = (0u32..).zip(&starts).map(|(i, s)| (s >> 5) + (i << 28)).collect();
        let mut random = Random::new(seed);
        let (mut arrivals, mut expected) = (Vec::new(), Vec::new());
        for (run, start) in (0u64..).zip(&starts) {
            let packets: Vec<(u64, u32)> = (0..300).map(|i| (run << 32 | i, 1)).collect();
            let mut these = send(&mut random, 0, run * 1_000 * MS, &packets, a);
            these.extend(send(&mut random, 1, run * 1_000 * MS, &packets, b));
            let number = |index: u64| start.wrapping_add(index as u32);
            let have = arrived(&these);
            let first = *have.first().unwrap();
            if let (Some(last), true) = (expected.last(), run > 0) {
                let Out::Got(last) = last else { panic!("{last:?}") };
                let expected_next = last.wrapping_add(1);
                let next = number(first);
                expected.push(Out::Reset { expected: expected_next, next });
            }
            expected.extend(perfect(&have, first, number));
            arrivals.extend(these);
        }
        let mut arbiter = Arbiter::new(ArbiterConfig {
            start: Start::First { wait: 25 * MS },
            ..ArbiterConfig::default()
        });
        let number = |index: u64| starts[(index >> 32) as usize].wrapping_add(index as u32);
        let out = play(&mut arbiter, &mut arrivals, number);
        prop_assert_eq!(out, expected);
    }

    #[test]
    fn any_calls_at_all_keep_order_and_limits(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
    ) {
        crate::ops::run(&bytes);
    }
}

/// Operations that fuzzing found, after three bytes of configuration: a unit placed below the start
/// of a run that was over before its own start.
#[rustfmt::skip]
const FOUND: &[u8] = &[
    8, 1, 1,
    0, 0, 254, 255, 255, 255, 255, 255, 14, 15, 10, 1, 7, 1, 0, 0,
    2, 0, 10, 2, 14, 2, 0, 0, 1, 10, 0, 21, 3, 0, 0, 0,
    0, 0, 1, 1, 1, 10, 7, 1, 0, 0, 2, 0, 10, 2, 14, 2,
    0, 0, 3, 1, 10, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
    2, 0, 10, 0, 5, 1, 10, 2, 35, 5, 0, 0, 10, 2, 119, 17,
    65, 0, 2, 0, 0, 0, 0, 1, 126, 18, 10, 3, 10, 1, 24, 19,
    246, 198, 10, 0, 0, 11, 1, 10, 2, 91, 91, 91, 91, 91, 247, 0,
    126, 18, 0, 0, 3, 1, 10, 17, 0, 0, 102, 0, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 10, 0, 126, 18, 0, 0, 3, 1, 9, 1, 10, 1, 133,
    0, 0, 254, 255, 255, 255, 255, 255, 14, 15, 10, 1, 7, 1, 0, 0,
    19, 0, 0,
];

#[test]
fn what_fuzzing_found_keeps_order_and_limits() {
    crate::ops::run(FOUND);
}
