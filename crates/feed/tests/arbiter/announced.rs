//! Runs that the feed announces, some with the same bytes as the ones before, on two lines of which
//! one may be behind, lose packets, or send some again. Each packet is brought by a line at least,
//! so that what comes out is exactly what was sent.

use crate::net::{MS, Random};
use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, Start, Unit, Verdict};
use std::collections::BTreeMap;

/// The number of simulations of each kind.
const SEEDS: u64 = 20;

/// The properties of the feed and of its lines, in percent and ms.
#[derive(Debug, Clone, Copy)]
struct Feed {
    /// The lengths of runs without their SequenceReset.
    lengths: (u64, u64),
    /// The length of the first run: the receiver may join anywhere.
    first: Option<u64>,
    /// The first number of the first run.
    base: u32,
    /// Whether the SequenceReset has a time, so that it has other bytes in each run.
    is_timed: bool,
    /// How many numbers have the same bytes in each run.
    same: u64,
    /// The most messages in a packet.
    packed: u64,
    lines: usize,
    lag: u64,
    jitter: u64,
    /// How many packets the lossy line loses, and which line that is.
    loss: (u64, usize),
    /// How many packets are sent twice, one after the other.
    repeat: u64,
}

const CALM: Feed = Feed {
    lengths: (20, 60),
    first: None,
    base: 1,
    is_timed: true,
    same: 0,
    packed: 1,
    lines: 2,
    lag: 0,
    jitter: 0,
    loss: (0, 1),
    repeat: 0,
};

/// A message: its number, and what else distinguishes its bytes.
type Message = (u32, u32);

/// Consecutive messages, of which the last one may announce the next run.
#[derive(Debug, Clone)]
struct Packet {
    messages: Vec<Message>,
    announces: bool,
}

fn packets(random: &mut Random, feed: Feed) -> Vec<Packet> {
    let (low, high) = feed.lengths;
    let is_same: Vec<_> = (0..=high).map(|_| random.percent(feed.same)).collect();
    let usual = low + random.below(high - low + 1);
    let mut all = Vec::new();
    for run in 1..=12 {
        let length = match feed.first {
            Some(first) if run == 1 => first,
            _ if random.percent(70) => usual,
            _ => low + random.below(high - low + 1),
        };
        let base = if run == 1 { feed.base } else { 1 };
        let message = |at: u64| {
            let is_same = match at == length {
                true => !feed.is_timed,
                false => is_same.get(at as usize).copied().unwrap_or_default(),
            };
            let kind = 1000 * u32::from(at == length);
            (
                base.wrapping_add(at as u32),
                kind + if is_same { 0 } else { run },
            )
        };
        let mut at = 0;
        while at <= length {
            let end = (at + 1 + random.below(feed.packed)).min(length + 1);
            all.push(Packet {
                messages: (at..end).map(message).collect(),
                announces: end > length,
            });
            at = end;
        }
    }
    all
}

/// Returns the index of each packet with the time and the line of its arrival.
fn arrivals(random: &mut Random, feed: Feed, count: usize) -> Vec<(u64, usize, usize)> {
    let mut all = Vec::new();
    for line in 0..feed.lines {
        for index in 0..count {
            let is_lossy = feed.lines > 1 && feed.loss.1 == line && index > 0;
            if is_lossy && random.percent(feed.loss.0) {
                continue;
            }
            let late = feed.lag * MS * line as u64 + random.below(feed.jitter * MS + 1);
            let at = index as u64 * MS + late + 10_000 * line as u64;
            all.push((at, index, line));
            if random.percent(feed.repeat) {
                all.push((at + 1_000, index, line));
            }
        }
    }
    all.sort();
    all
}

fn bytes(packet: &Packet) -> Vec<u8> {
    let words = packet
        .messages
        .iter()
        .flat_map(|(number, of)| [*number, *of]);
    words.flat_map(u32::to_le_bytes).collect()
}

fn unpack(bytes: &[u8], skip: u32, out: &mut Vec<Message>) {
    for message in bytes.chunks(8).skip(skip as usize) {
        let word = |at: usize| u32::from_le_bytes(message[at..at + 4].try_into().unwrap());
        out.push((word(0), word(4)));
    }
}

fn drain(arbiter: &mut Arbiter, out: &mut Vec<Message>, resets: &mut usize) {
    while let Some(event) = arbiter.poll_event() {
        match event {
            Event::Unit(unit) => unpack(unit.bytes, unit.skip, out),
            Event::Reset { .. } => *resets += 1,
            Event::Gap(_) | Event::Recover(_) => {}
        }
    }
}

/// The messages that did not come out as often as they were sent, and whether their order and the
/// number of resets are as sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    lost: usize,
    doubled: usize,
    is_wrong: bool,
}

fn play(seed: u64, feed: Feed) -> Outcome {
    let mut random = Random::new(seed);
    let packets = packets(&mut random, feed);
    let arrivals = arrivals(&mut random, feed, packets.len());
    let mut arbiter = Arbiter::new(ArbiterConfig {
        start: Start::First { wait: 3 * MS },
        ..ArbiterConfig::default()
    });
    let (mut out, mut resets) = (Vec::new(), 0);
    for (at, index, line) in arrivals {
        while let Some(t) = arbiter.poll_timeout().filter(|t| *t <= at) {
            arbiter.handle_timeout(t);
            drain(&mut arbiter, &mut out, &mut resets);
        }
        let packet = &packets[index];
        let bytes = bytes(packet);
        let unit = Unit {
            sequence: packet.messages[0].0,
            count: packet.messages.len() as u32,
            bytes: &bytes,
        };
        let verdict = arbiter.receive(at, Line::new(line).unwrap(), unit);
        if packet.announces {
            arbiter.announce(1);
        }
        if let Verdict::Deliver { skip } = verdict {
            unpack(&bytes, skip, &mut out);
        }
        drain(&mut arbiter, &mut out, &mut resets);
    }
    arbiter.flush();
    drain(&mut arbiter, &mut out, &mut resets);
    let sent: Vec<_> = packets.iter().flat_map(|p| p.messages.clone()).collect();
    let mut counts: BTreeMap<Message, isize> = BTreeMap::new();
    sent.iter()
        .for_each(|m| *counts.entry(*m).or_default() += 1);
    out.iter().for_each(|m| *counts.entry(*m).or_default() -= 1);
    let sum = |all: Vec<isize>| all.into_iter().sum::<isize>() as usize;
    let runs = packets.iter().filter(|packet| packet.announces).count();
    Outcome {
        lost: sum(counts.values().map(|n| *n.max(&0)).collect()),
        doubled: sum(counts.values().map(|n| -*n.min(&0)).collect()),
        is_wrong: sent != out || runs != resets,
    }
}

/// In how many simulations messages are lost, doubled, or anything else is not as it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures {
    lost: usize,
    doubled: usize,
    wrong: usize,
}

fn failures(feeds: impl IntoIterator<Item = Feed>) -> Failures {
    let (mut failures, mut count) = (Failures::default(), 0);
    for feed in feeds {
        let mut of_feed = Failures::default();
        for seed in 1..=SEEDS {
            let outcome = play(seed, feed);
            of_feed.lost += usize::from(outcome.lost > 0);
            of_feed.doubled += usize::from(outcome.doubled > 0);
            of_feed.wrong += usize::from(outcome.is_wrong);
        }
        if of_feed.wrong > 0 {
            println!("{of_feed:?} {feed:?}");
        }
        count += SEEDS;
        failures.lost += of_feed.lost;
        failures.doubled += of_feed.doubled;
        failures.wrong += of_feed.wrong;
    }
    println!("{failures:?} of {count}");
    failures
}

/// Returns feeds whose runs have these lengths, on one line and on two.
fn feeds(lengths: &[(u64, u64)], of: Feed) -> Vec<Feed> {
    let feed = |(lengths, lines)| Feed {
        lengths,
        lines,
        ..of
    };
    let all = lengths.iter().flat_map(|of| [(*of, 1), (*of, 2)]);
    all.map(feed).collect()
}

const SHORT: [(u64, u64); 6] = [(1, 1), (2, 2), (3, 3), (5, 5), (1, 3), (4, 8)];
const LONG: [(u64, u64); 4] = [(10, 10), (30, 30), (20, 60), (300, 300)];

#[test]
fn a_sequence_reset_may_have_the_same_bytes_in_each_run() {
    let feed = Feed {
        is_timed: false,
        ..CALM
    };
    for lengths in [&SHORT[..], &LONG[..]] {
        assert_eq!(failures(feeds(lengths, feed)), Failures::default());
    }
}

#[test]
fn messages_may_have_the_same_bytes_in_each_run() {
    for same in [2, 10, 50, 100] {
        for is_timed in [true, false] {
            let feed = Feed {
                is_timed,
                same,
                ..CALM
            };
            for lengths in [&SHORT[..], &LONG[..]] {
                assert_eq!(failures(feeds(lengths, feed)), Failures::default());
            }
        }
    }
}

#[test]
fn a_line_may_begin_in_the_run_before() {
    let mut all = Vec::new();
    for first in [0, 1, 2, 5, 40] {
        for lag in [2, 5, 10, 20, 50] {
            for packed in [1, 3] {
                for base in [1, 5, 1000] {
                    all.push(Feed {
                        first: Some(first),
                        lag,
                        packed,
                        base,
                        ..CALM
                    });
                }
            }
        }
    }
    assert_eq!(failures(all), Failures::default());
}

#[test]
fn a_line_may_be_some_runs_behind() {
    // Some messages have the same bytes in each run: they do not tell where a line begins.
    for (same, lost, doubled) in [(0, 0, 0), (5, 20, 60), (20, 40, 120)] {
        let mut all = Vec::new();
        for lengths in [(5, 5), (10, 20), (20, 20), (20, 60)] {
            for lag in [10, 20, 21, 45] {
                for jitter in [0, 1] {
                    all.push(Feed {
                        lengths,
                        lag,
                        same,
                        jitter,
                        ..CALM
                    });
                }
            }
        }
        let found = failures(all);
        assert!(
            found.lost <= lost && found.doubled <= doubled,
            "{same}: {found:?}"
        );
    }
}

#[test]
fn what_a_line_loses_the_other_one_brings() {
    let mut all = Vec::new();
    for lengths in [(10, 20), (30, 30), (20, 60)] {
        for lossy in [0, 1] {
            for lag in [0, 2, 10] {
                for same in [0, 2, 10, 30] {
                    for is_timed in [true, false] {
                        all.push(Feed {
                            lengths,
                            lag,
                            same,
                            is_timed,
                            loss: (20, lossy),
                            ..CALM
                        });
                    }
                }
            }
        }
    }
    assert_eq!(failures(all), Failures::default());
}

#[test]
fn a_packet_with_a_run_that_is_sent_again_restarts_nothing() {
    let mut all = Vec::new();
    for (lengths, packed) in [
        ((1, 1), 4),
        ((2, 2), 4),
        ((1, 3), 4),
        ((5, 20), 30),
        ((10, 60), 3),
    ] {
        for (lag, repeat) in [(0, 5), (0, 30), (1, 10), (4, 10)] {
            for lines in [1, 2] {
                all.push(Feed {
                    lengths,
                    packed,
                    lag,
                    repeat,
                    lines,
                    ..CALM
                });
            }
        }
    }
    assert_eq!(failures(all), Failures::default());
}

/// Packets are reordered, also around the ends of runs: a few simulations fail, as the first
/// unit of a run may arrive in front of the feed's first announcement.
#[test]
fn a_line_may_reorder() {
    let mut all = Vec::new();
    for lengths in [(10, 20), (20, 20), (20, 60)] {
        for lag in [0, 2, 10] {
            for same in [0, 5, 20] {
                all.push(Feed {
                    lengths,
                    lag,
                    same,
                    jitter: 3,
                    ..CALM
                });
            }
        }
    }
    let failures = failures(all);
    assert!(failures.wrong <= 30, "{failures:?}");
}
